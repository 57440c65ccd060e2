"""Interrupts that wait: Ctrl-C in the middle of an import or of saving a model takes effect afterwards.

An interrupt inside an import can leave half a module behind, or be swallowed by code that catches every
exception. One inside `save` would lose a model that took hours to train.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class HeldSignal:
    """What happened inside `hold_interrupts`.

    Attributes
    ----------
    number : int or None
        The first signal that arrived.
    """

    def __init__(self) -> None:
        self.number: int | None = None


@contextmanager
def hold_interrupts(*, raise_after: bool = True) -> Iterator[HeldSignal]:
    """Let SIGINT and SIGTERM wait until the block ends.

    The handlers that were active before then see the signal, unless ``raise_after`` is False: the caller
    then looks at ``number`` itself. Outside the main thread nothing changes, because only the main thread
    receives signals.

    Examples
    --------
    >>> import signal
    >>> from seqlab.utils.signals import hold_interrupts
    >>> with hold_interrupts(raise_after=False) as held:
    ...     signal.raise_signal(signal.SIGINT)
    ...     done = True
    >>> done, held.number == signal.SIGINT
    (True, True)
    """
    held = HeldSignal()
    if threading.current_thread() is not threading.main_thread():
        yield held
        return

    def note(number: int, frame: FrameType | None) -> None:
        held.number = held.number or number

    before: dict[int, Any] = {}
    try:
        for number in map(int, (signal.SIGINT, signal.SIGTERM)):
            # A signal that is ignored stays ignored; None is a handler that Python did not install.
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, note)
        yield held
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if raise_after and held.number is not None:
        signal.raise_signal(held.number)
