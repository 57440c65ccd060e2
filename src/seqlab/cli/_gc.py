"""Garbage collection: do not scan objects that live until the program ends.

The imported modules and a training file are hundreds of thousands of objects. They never become garbage,
but Python scans them again and again while they are created, and once more at exit. Objects without a
reference cycle, nearly all of them, are freed at once as always.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_frozen() -> Iterator[None]:
    """Disable the collector inside the block; it does not scan later what the block has created."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
