"""The collector is paused while numba compiles, and only then."""

from __future__ import annotations

import gc
import time

import pytest
from numba import njit
from numba.core.errors import TypingError
from numba.core.event import Listener, install_listener

from seqlab.simd import builder  # noqa: F401  (registers the listener)
from seqlab.utils.training_clock import training_time


class Recorder(Listener):
    """Whether the collector is enabled at the end of each compilation."""

    def __init__(self):
        self.enabled = []

    def on_start(self, event):
        pass

    def on_end(self, event):
        self.enabled.append(gc.isenabled())


@pytest.mark.parametrize("enabled", [True, False])
def test_collector_is_paused_during_compilation(enabled):
    @njit
    def inner(x):
        return x + 1

    @njit
    def outer(x):
        return inner(x)

    recorder = Recorder()
    was_enabled = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with install_listener("numba:compile", recorder):
            assert outer(1) == 2
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()
    assert recorder.enabled[0] is False  # the end of the inner function


def test_collector_is_enabled_after_an_error():
    @njit
    def broken(x):
        return x.missing

    assert gc.isenabled()
    with pytest.raises(TypingError):
        broken(1)
    assert gc.isenabled()


def test_training_time_leaves_compilation_out():
    @njit
    def compiled(x):
        return x + 1

    began, training_began = time.perf_counter(), training_time()
    compiled(1)
    seconds, training_seconds = time.perf_counter() - began, training_time() - training_began
    assert 0.0 <= training_seconds < 0.5 * seconds
    time.sleep(0.01)
    assert training_time() - training_began >= training_seconds + 0.01
