"""Ctrl-C and SIGTERM: at once while the program starts, as KeyboardInterrupt while a command works.

Until a command begins its work, nothing can be lost, and most of the time goes into imports. An exception
inside an import can be swallowed, or leave half a module behind; waiting for the end of the imports would
take seconds. So the program says that it was interrupted and ends.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # for type checkers, which know the name; see `seqlab`
if TYPE_CHECKING:
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_has_terminated = False


def exit_on_signals() -> None:
    """Let SIGINT and SIGTERM end the process, until `begin_work`; a signal that is ignored stays ignored."""
    for number in _SIGNALS:
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            signal.signal(number, _exit)


def begin_work() -> None:
    """Let SIGINT and SIGTERM raise KeyboardInterrupt, so that files are closed and removed.

    Nothing changes in a program that calls a command as a function: its signals are its own.
    """
    for number in _SIGNALS:
        if signal.getsignal(number) is _exit:
            signal.signal(number, _interrupt)


def was_terminated() -> bool:
    """Return whether a KeyboardInterrupt came from SIGTERM."""
    return _has_terminated


def ignore_signals() -> None:
    """Ignore SIGINT and SIGTERM: while Python shuts down, they would only print a traceback."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _exit(number: int, frame: FrameType | None) -> None:
    try:
        os.write(2, b"seqlab: interrupted\n")
    except OSError:  # standard error is closed or full
        pass
    finally:
        os._exit(128 + number)


# `seqlab.utils.signals.hold_interrupts` leaves this handler in place.
_exit.never_waits = True  # type: ignore[attr-defined]


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _has_terminated
    _has_terminated = _has_terminated or number == signal.SIGTERM
    raise KeyboardInterrupt
