"""What holds for every test process: signals as in a terminal, one thread for libraries, rare collections.

pytest reads this file before NumPy is imported and before workers start, so that they inherit it.
"""

from __future__ import annotations

import gc
import os
import signal

# A job in the background ignores SIGINT, and so would the processes that the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Workers use all cores already: more threads of BLAS and OpenMP would only wait for each other.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# A collection scans the objects of thousands of tests: with the default, a twentieth of the time.
gc.set_threshold(50_000)
