"""Errors of the commands: each becomes one line on standard error and an exit code.

====  ===========================================================================
0     success
1     the command failed (no space left, a data set that cannot be loaded, a bug)
2     the command line is wrong, or a file that it names; the message says where
130   interrupted (128 + SIGINT)
143   terminated (128 + SIGTERM)
141   the reader of the output has gone (128 + SIGPIPE); no message
====  ===========================================================================

A traceback is shown only with ``--debug`` or ``SEQLAB_DEBUG=1``.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from seqlab.utils.files import find_descriptor
from seqlab.utils.signals import signals_blocked
from seqlab.utils.text import show_controls

FAILURE, USAGE, INTERRUPTED, BROKEN_PIPE, TERMINATED = 1, 2, 130, 141, 143
DEBUG = "SEQLAB_DEBUG"

# Messages of the library name parameters; on the command line these are options.
_OPTION_OF_PARAMETER = (
    ("set sep='whitespace' to accept both", "use --separator whitespace to accept both"),
    ("set the encoding of the file, for example encoding='latin-1'", "try --encoding latin-1"),
    (" (or set label=None)", ""),
)
_LIMITS = re.compile(r"pass limits=Limits\((.*?)\) of seqlab.persistence")
_DAMAGED = re.compile(r"(the model file is damaged) \(.*\)$", re.DOTALL)
_MAX_LINE = 4000  # characters of a message, which may quote a file without line ends
_SMALL_FILE = 1 << 14  # bytes; most models are larger
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TEMPLATE_PLACE = re.compile(r'^(template ".*") \(line (\d+) of (.*?)\)(:? .*)$', re.DOTALL)


class CommandError(Exception):
    """An error that the user can correct; the message is the line that is shown.

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
    """An interrupt with a message for the user.

    Parameters
    ----------
    message : str
    code : int, default=130
        Exit code.
    """

    def __init__(self, message: str, code: int = INTERRUPTED) -> None:
        super().__init__(message)
        self.code = code


def report_error(error: BaseException) -> int:
    """Print an error as one line, except for a broken pipe, and return the exit code."""
    if isinstance(error, BrokenPipeError):
        discard_stdout()
        return BROKEN_PIPE
    if isinstance(error, KeyboardInterrupt):
        print_message(str(error) or "interrupted")
        return error.code if isinstance(error, Interrupted) else INTERRUPTED
    if is_debug():
        traceback.print_exception(error)
    message, code = _describe(error)
    print_message(message)
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        discard_stdout()
    return code


def print_message(message: str) -> None:
    """Write one line to standard error."""
    line = show_controls(" ".join(message.split("\n")).strip())
    if len(line) > _MAX_LINE:
        line = f"{line[:_MAX_LINE]}..."
    with suppress(OSError):
        print(f"seqlab: {line}", file=sys.stderr, flush=True)


def is_debug() -> bool:
    """Whether tracebacks are shown."""
    return os.environ.get(DEBUG, "") not in ("", "0")


def _describe(error: BaseException) -> tuple[str, int]:
    """Message and exit code of an error."""
    from seqlab.data.errors import InputError, NoLegalLabelingError, SeqlabError

    if isinstance(error, CommandError):
        return str(error), error.code
    if isinstance(error, InputError | NoLegalLabelingError):
        return rephrase(str(error)), USAGE
    if isinstance(error, SeqlabError):
        from seqlab.persistence import ModelFileError

        if isinstance(error, ModelFileError):
            message = rephrase(str(error))
            return message if is_debug() else _DAMAGED.sub(r"\1", message), USAGE
        return str(error), FAILURE
    if isinstance(
        error, FileNotFoundError | IsADirectoryError | NotADirectoryError | PermissionError
    ):
        return _describe_os_error(error), USAGE
    if isinstance(error, OSError) and error.strerror:
        return _describe_os_error(error), FAILURE
    if isinstance(error, UnicodeEncodeError):
        return f"the encoding {error.encoding} does not have {error.object[error.start]!r}", FAILURE
    if isinstance(error, MemoryError):
        return "out of memory", FAILURE
    if isinstance(error, ImportError):
        return str(error), FAILURE
    kind = type(error).__name__
    return f"{kind}: {error} (probably a bug; SEQLAB_DEBUG=1 shows the traceback)", FAILURE


def rephrase(message: str) -> str:
    """Rephrase a message of the library for the command line: file and line first, option names."""
    for parameter, option in _OPTION_OF_PARAMETER:
        message = message.replace(parameter, option)
    message = _LIMITS.sub(_to_limit_options, message)
    found = _TEMPLATE_PLACE.match(message)
    if found:
        template, line, file, rest = found.groups()
        message = f"{file}:{line}: {template}{rest}"
    return message


def _to_limit_options(found: re.Match[str]) -> str:
    """Return the options of the command line that set limits, from a message of `load` or `save`."""
    return "use " + " ".join(f"--limit {setting}" for setting in found[1].split(", "))


def _describe_os_error(error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename else reason


def discard_stdout() -> None:
    """Redirect standard output to nowhere, or the interpreter fails when it flushes it at exit."""
    with suppress(OSError, ValueError, AttributeError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Show each warning as one line, without source code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print_message(f"warning: {rephrase(str(message))}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def check_output(path: Path) -> None:
    """Raise an error if the output file cannot be written, before the command does any work."""
    folder = path.parent
    if path.is_dir():
        raise CommandError(f"{path}: is a folder")
    descriptor = find_descriptor(path)
    if descriptor is not None:  # /dev/stdout, whatever it leads to
        _check_open_file(path, descriptor)
        return
    if not folder.is_dir():
        raise CommandError(f"{path}: the folder {folder} does not exist")
    if path.exists():
        mode = path.stat().st_mode
        # The super-user can write any file; one that is marked read-only must still not be replaced.
        if stat.S_ISSOCK(mode):
            raise CommandError(f"{path}: is a socket")
        if stat.S_ISREG(mode) and not (mode & 0o222 and os.access(path, os.W_OK)):
            raise CommandError(f"{path}: is read-only")
    if path.is_file() or not path.exists():
        if not os.access(folder, os.W_OK | os.X_OK):
            raise CommandError(f"{path}: the folder {folder} is read-only")
        _check_new_file(path)


@contextmanager
def naming_output(path: Path | None) -> Iterator[None]:
    """Name the user's file in errors of writing, not the temporary file beside it."""
    try:
        yield
    except OSError as error:
        if path is not None:
            hidden = f".{Path(os.path.realpath(path)).name}."
            named = os.path.basename(os.fsdecode(error.filename)) if error.filename else ""
            if named.startswith(hidden) or (not named and error.errno in _NO_SPACE):
                error.filename = str(path)
        raise


def _check_open_file(path: Path, descriptor: int) -> None:
    try:
        os.write(descriptor, b"")  # fails if it is not open for writing
    except OSError as error:
        raise CommandError(f"{path}: is not open for writing") from error


def _check_new_file(path: Path) -> None:
    """Create and delete a file beside the target: that is how the target will be written."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.urandom(8).hex()}.tmp")
    try:
        with signals_blocked():
            handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            try:
                os.write(handle, bytes(_SMALL_FILE))  # fails if the disk is full
            finally:
                os.close(handle)
                temporary.unlink()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        code = FAILURE if error.errno in _NO_SPACE else USAGE
        raise CommandError(f"{path}: cannot be written ({reason})", code) from error
