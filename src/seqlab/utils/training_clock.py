"""The clock of ``history_`` and of time limits: it leaves out the time in which numba compiles.

The first fit on a new machine compiles its kernels, which can take longer than the fit itself. A limit of a
few seconds would then end it after one iteration.
"""

from __future__ import annotations

import time

from seqlab.simd.compile_time import compile_time


def training_time() -> float:
    """Return the time in seconds, as `time.perf_counter`, without that of compilation."""
    return time.perf_counter() - compile_time()
