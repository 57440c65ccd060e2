"""Interrupts that wait: Ctrl-C takes effect where nothing can break.

Inside an import it can leave half a module behind, or be swallowed by code that catches every exception.
Inside `save` it would lose a model that took hours to train. While a compiled function returns an array or
is being compiled, or while a thread starts, it can crash Python or hang: `fit` therefore looks for signals
between blocks of data and between iterations.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager

TYPE_CHECKING = False  # for type checkers, which know the name; see `seqlab`
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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
    then looks at ``number`` itself. A handler with the attribute ``never_waits`` stays in place. Outside the
    main thread nothing changes, because only the main thread receives signals.

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
            handler = signal.getsignal(number)
            is_replaced = handler not in (signal.SIG_IGN, None)
            if is_replaced and not getattr(handler, "never_waits", False):
                before[number] = signal.signal(number, note)
        yield held
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if raise_after and held.number is not None:
        signal.raise_signal(held.number)


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Let the system hold back SIGINT and SIGTERM from this thread, if it can; for a few instructions."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# What `signals_at_safe_points` needs to know: the handlers that it has replaced, and the signals that wait.
_replaced: dict[int, Callable[[int, FrameType | None], Any]] = {}
_waiting: list[int] = []


@contextmanager
def signals_at_safe_points() -> Iterator[None]:
    """Let handlers of SIGINT and SIGTERM run only in `check_signals`, and when the block ends.

    The handlers are those that were active before, usually the one that raises KeyboardInterrupt. A second
    signal takes effect at once, in case that somebody else's code runs for hours inside the block. Handlers
    that are not Python functions stay as they are. In other threads and in nested blocks nothing changes.

    Examples
    --------
    >>> import signal
    >>> from seqlab.utils.signals import check_signals, signals_at_safe_points
    >>> done = []
    >>> try:
    ...     with signals_at_safe_points():
    ...         signal.raise_signal(signal.SIGINT)
    ...         done.append("first step")
    ...         check_signals()
    ...         done.append("second step")
    ... except KeyboardInterrupt:
    ...     done
    ['first step']
    """
    if _replaced or threading.current_thread() is not threading.main_thread():
        yield
        return
    try:
        for number in map(int, (signal.SIGINT, signal.SIGTERM)):
            handler = signal.getsignal(number)
            if callable(handler):
                _replaced[number] = handler
                signal.signal(number, _wait_or_handle)
        yield
    finally:
        for number, handler in _replaced.items():
            signal.signal(number, handler)
        _replaced.clear()
        waiting = _waiting.copy()
        _waiting.clear()
        for number in waiting:
            signal.raise_signal(number)


def check_signals() -> None:
    """Call the handlers of the signals that wait; cheap enough for every block and iteration."""
    if _waiting and threading.current_thread() is threading.main_thread():
        number = _waiting.pop(0)
        _replaced[number](number, None)


def has_waiting_signal() -> bool:
    """Return whether a signal waits for `check_signals`; tasks in other threads should then end soon."""
    return bool(_waiting)


def _wait_or_handle(number: int, frame: FrameType | None) -> None:
    if number in _waiting:
        _waiting.remove(number)
        _replaced[number](number, frame)
    else:
        _waiting.append(number)
