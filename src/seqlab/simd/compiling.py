"""No garbage collection while numba compiles, and no training time.

Compiling creates millions of objects, so that Python's collector scans the whole program again and again and
finds next to nothing: a tenth of the time of a first fit. Objects without a reference cycle, nearly all of
them, are freed at once as always; the others are collected after the function and all that it calls have
been compiled. This holds for every function that numba compiles in the process, also those of other packages.
Nor does compilation count as time of training; see `seqlab.utils.training_clock`.
"""

from __future__ import annotations

import gc
import time
from typing import Any

from numba.core.event import Listener, register

from seqlab.simd.compile_time import add_compile_time


class CompilationListener(Listener):
    """Disables the collector from the start of a compilation to its end, nested ones included, and times it.

    numba compiles in one thread at a time, and reports the end even if there is an error.
    """

    def __init__(self) -> None:
        self._depth, self._was_enabled, self._began = 0, False, 0.0

    def on_start(self, event: Any) -> None:
        """Disable the collector."""
        if self._depth == 0:
            self._began = time.perf_counter()
            self._was_enabled = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        """Enable the collector again, if it was enabled."""
        self._depth -= 1
        if self._depth > 0:
            return
        add_compile_time(time.perf_counter() - self._began)
        if self._was_enabled:
            gc.enable()


register("numba:compile", CompilationListener())
