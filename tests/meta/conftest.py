"""Records of the learners in `stacking`, cleared before each test."""

from __future__ import annotations

import pytest

from stacking import Counting, Watching


@pytest.fixture(autouse=True)
def _clear_records():
    Counting.calls.clear()
    Watching.overlaps.clear()
