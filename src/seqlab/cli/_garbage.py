"""The collector of cyclic garbage, kept from looking through what stays until the program ends.

A training file and the imported modules are hundreds of thousands of objects. They do not become garbage,
yet Python would look through them again and again while they are made, and once more when it ends. What is
garbage without a cycle, nearly everything, goes at once all the same.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def making_what_stays() -> Iterator[None]:
    """Do not look for garbage within, nor later in what was made within."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def look_again() -> None:
    """Take back what `making_what_stays` has done: the command is over, the process may go on."""
    gc.unfreeze()


def leave_the_rest() -> None:
    """Let the process end without a last look: the system takes its memory back in one piece."""
    gc.freeze()
