"""Every way a command can end badly: one line on standard error and an exit code.

====  =====================================================================
0     done
1     the work failed (no space left, a data set that cannot be had, a bug)
2     the command line or what it names is wrong; the line says what and where
130   interrupted (128 + SIGINT)
141   nobody reads the output any more (128 + SIGPIPE); said without words
====  =====================================================================

A traceback is shown with ``--debug`` or ``SEQLAB_DEBUG=1`` only.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

FAILURE, USAGE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141
DEBUG = "SEQLAB_DEBUG"

# The library's messages name its parameters; here they are options.
_OPTION_OF_PARAMETER = (
    ("set sep='whitespace' to accept both", "use --separator whitespace to accept both"),
    ("set the encoding of the file, for example encoding='latin-1'", "try --encoding latin-1"),
    (" (or set label=None)", ""),
)
_DAMAGED = re.compile(r"(the model file is damaged) \(.*\)$", re.DOTALL)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TEMPLATE_PLACE = re.compile(r'^(template ".*") \(line (\d+) of (.*?)\)(:? .*)$', re.DOTALL)


class CommandError(Exception):
    """Something the user can mend; the message is the line shown.

    Parameters
    ----------
    message : str
    code : int, default=2
        Exit code.
    """

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code


class Interrupted(KeyboardInterrupt):
    """An interrupt that has something to say."""


def answer(error: BaseException) -> int:
    """Say what went wrong in one line, if there is anything to say, and give the exit code."""
    if isinstance(error, BrokenPipeError):
        _silence_stdout()
        return BROKEN_PIPE
    if is_debug() and not isinstance(error, KeyboardInterrupt):
        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt):
        say(str(error) or "interrupted")
        return INTERRUPTED
    message, code = _explain(error)
    say(message)
    return code


def say(message: str) -> None:
    """Write one line to standard error."""
    line = " ".join(message.split("\n")).strip()
    with suppress(OSError):
        print(f"seqlab: {line}", file=sys.stderr, flush=True)


def is_debug() -> bool:
    """Whether tracebacks are wanted."""
    return os.environ.get(DEBUG, "") not in ("", "0")


def _explain(error: BaseException) -> tuple[str, int]:
    from seqlab.data.errors import InputError, NoLegalLabelingError, SeqlabError

    if isinstance(error, CommandError):
        return str(error), error.code
    if isinstance(error, InputError | NoLegalLabelingError):
        return in_terms_of_files(str(error)), USAGE
    if isinstance(error, SeqlabError):
        from seqlab.persistence import ModelFileError

        if isinstance(error, ModelFileError):
            return str(error) if is_debug() else _DAMAGED.sub(r"\1", str(error)), USAGE
        return str(error), FAILURE
    if isinstance(error, FileNotFoundError | IsADirectoryError | NotADirectoryError):
        return _of_file(error), USAGE
    if isinstance(error, PermissionError):
        return _of_file(error), USAGE
    if isinstance(error, OSError) and error.strerror:
        return _of_file(error), FAILURE
    if isinstance(error, MemoryError):
        return "out of memory", FAILURE
    if isinstance(error, ImportError):
        return str(error), FAILURE
    kind = type(error).__name__
    return f"{kind}: {error} (a bug? SEQLAB_DEBUG=1 shows where)", FAILURE


def in_terms_of_files(message: str) -> str:
    """A message of the library as the command line says it: places first, options by name."""
    for parameter, option in _OPTION_OF_PARAMETER:
        message = message.replace(parameter, option)
    found = _TEMPLATE_PLACE.match(message)
    if found:
        template, line, file, rest = found.groups()
        message = f"{file}:{line}: {template}{rest}"
    return message


def _of_file(error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename else reason


def _silence_stdout() -> None:
    """Nothing more can be written; keep the interpreter from trying when it ends."""
    with suppress(OSError, ValueError, AttributeError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Show warnings as one line each, without source code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def check_output(path: Path) -> None:
    """Refuse an output that could not be written, before any work is done for it."""
    folder = path.parent
    if path.is_dir():
        raise CommandError(f"{path}: is a folder")
    if not folder.is_dir():
        raise CommandError(f"{path}: there is no folder {folder}")
    if path.exists():
        mode = path.stat().st_mode
        # The super-user may write anything; a file marked read-only is still meant to stay.
        if stat.S_ISREG(mode) and not (mode & 0o222 and os.access(path, os.W_OK)):
            raise CommandError(f"{path}: is read-only")
    if (path.is_file() or not path.exists()) and not os.access(folder, os.W_OK | os.X_OK):
        raise CommandError(f"{path}: the folder {folder} is read-only")
    if path.is_file() or not path.exists():
        _try_neighbour(path)


@contextmanager
def writing_to(path: Path | None) -> Iterator[None]:
    """Name the user's file in the errors of writing it, not the temporary one beside it."""
    try:
        yield
    except OSError as error:
        if path is not None:
            hidden = f".{Path(os.path.realpath(path)).name}."
            named = os.path.basename(os.fsdecode(error.filename)) if error.filename else ""
            if named.startswith(hidden) or (not named and error.errno in _NO_SPACE):
                error.filename = str(path)
        raise


def _try_neighbour(path: Path) -> None:
    """Make and remove a file beside the target, as writing it will."""
    target = Path(os.path.realpath(path))
    neighbour = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        os.close(os.open(neighbour, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        neighbour.unlink()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        code = FAILURE if error.errno in _NO_SPACE else USAGE
        raise CommandError(f"{path}: cannot be written there ({reason})", code) from error
