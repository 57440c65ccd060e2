"""The time limit of a forked child in the conformance checks."""

from __future__ import annotations

import time

import pytest

from conformance import TIME_LIMIT, run_in_forked_child


def test_a_forked_child_that_hangs_or_fails_is_reported():
    began = time.monotonic()
    with pytest.raises(AssertionError, match=r"still running after 0\.5 seconds"):
        run_in_forked_child(lambda: time.sleep(60), 0.5)
    assert time.monotonic() - began < 30
    with pytest.raises(AssertionError, match="exit code 1"):
        run_in_forked_child(lambda: 1 // 0, TIME_LIMIT)
    run_in_forked_child(lambda: None, TIME_LIMIT)
