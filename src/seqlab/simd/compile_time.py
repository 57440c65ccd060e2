"""How long numba has compiled in this process; `seqlab.simd.compiling` adds to it."""

from __future__ import annotations

_seconds = 0.0


def compile_time() -> float:
    """Return the number of seconds."""
    return _seconds


def add_compile_time(seconds: float) -> None:
    """Add the seconds of a compilation that has ended."""
    global _seconds
    _seconds += seconds
