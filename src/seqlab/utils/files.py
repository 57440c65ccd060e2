"""Atomic file writing: a reader sees the complete old or the complete new content.

The content goes to a temporary file in the same folder, which is renamed when it is complete. The temporary
file is locked while it is written, so that a later run can tell a file that is in use from one that a killed
process has left behind, and removes the latter.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

_fcntl: Any = None
with suppress(ImportError):  # Windows does not have it
    import fcntl as _fcntl

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_ATTEMPTS = 10
_MAX_LINKS = 40
_DESCRIPTOR = re.compile(r"/(?:dev/fd|proc/(self|thread-self|[0-9]+)/fd)/([0-9]{1,9})")


def find_descriptor(path: str | os.PathLike[str]) -> int | None:
    """Return the number of the open file that a path such as /dev/stdout or /dev/fd/3 leads to, if it does.

    Such a file is written where it is: it may be a pipe, or a file that already has the output of others.
    """
    name = os.path.abspath(path)
    for _ in range(_MAX_LINKS):
        found = _DESCRIPTOR.fullmatch(name)
        if found and found[1] in (None, "self", "thread-self", str(os.getpid())):
            return int(found[2])
        try:
            name = os.path.normpath(os.path.join(os.path.dirname(name), os.readlink(name)))
        except OSError:  # not a link
            return None
    return None


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether a path is written directly: a device, a pipe, a socket, or an open file such as /dev/stdout."""
    if find_descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def resolve_target(path: str | os.PathLike[str]) -> Path:
    """Return the path that `open_atomic` needs: symbolic links to files and folders are resolved.

    Links to open files are not: /dev/stdout may lead to ``pipe:[123]``, a name that cannot be opened.
    """
    return Path(path if is_special(path) else os.path.realpath(path))


@contextmanager
def open_atomic(target: Path) -> Iterator[IO[bytes]]:
    """Open a temporary binary file that replaces the target when the block ends.

    If the block raises, the target stays unchanged. A file that is replaced keeps its permissions and, if
    the system allows it, its owner; the temporary file is never readable by more users than the target. An
    existing target that is not a regular file (a device, a pipe) is written directly, never replaced, and
    so is the open file that /dev/stdout leads to; a socket is refused.

    Parameters
    ----------
    target : Path
        Must not be a symbolic link to a file (see `resolve_target`): the link itself would be replaced.
    """
    descriptor = find_descriptor(target)
    if descriptor is not None:
        with _CompleteWriter(os.dup(descriptor), "wb") as opened:
            yield opened
        return
    old = _find_target(target)
    if old is not None and not stat.S_ISREG(old.st_mode):
        with _CompleteWriter(target, "wb") as special:
            yield special
        return
    remove_leftovers(target)
    temporary, handle = _create(target, 0o666 if old is None else 0o600)
    try:
        try:
            # A wrapper that compresses or encodes may close the file: the handle must stay open.
            with os.fdopen(handle, "wb", closefd=False) as file:
                yield file
            if old is not None:
                _copy_permissions(handle, temporary, old)
            os.fsync(handle)
            if os.name == "posix":  # while the file is locked
                os.replace(temporary, target)
        finally:
            os.close(handle)
        if os.name != "posix":  # Windows does not rename an open file
            os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


class _CompleteWriter(io.FileIO):
    """An unbuffered file that writes all bytes, also if a signal or the system ends a write early.

    A buffered file would try to write its rest while it is closed, and an interrupt could not end that.
    """

    def write(self, data: Any) -> int:
        with memoryview(data) as view, view.cast("B") as rest:
            done = 0
            while done < len(rest):
                done += super().write(rest[done:])
            return done


def _find_target(target: Path) -> os.stat_result | None:
    """Return the status of the target, None if it does not exist."""
    try:
        old = os.stat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if stat.S_ISSOCK(old.st_mode):
        raise OSError(errno.ENXIO, "cannot write to a socket", str(target))
    return old


def _create(target: Path, mode: int) -> tuple[Path, int]:
    """Create a locked temporary file; return its path and handle."""
    for _ in range(_ATTEMPTS):
        temporary = target.with_name(f".{target.name}.{os.urandom(8).hex()}.tmp")
        handle = os.open(temporary, _FLAGS, mode)
        if _fcntl is None:
            return temporary, handle
        try:
            _fcntl.flock(handle, _fcntl.LOCK_EX)
        except OSError:  # a file system without locks
            return temporary, handle
        # Another process may have taken the file for a leftover before it was locked.
        if temporary.exists():
            return temporary, handle
        os.close(handle)
    raise FileNotFoundError(errno.ENOENT, "temporary files disappear", str(target.parent))


def remove_leftovers(target: Path) -> None:
    """Remove the temporary files of a target that killed processes have left behind."""
    if _fcntl is None:
        return
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{16}}\.tmp")
    with suppress(OSError):
        for entry in list(os.scandir(target.parent)):
            if name.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _remove_unlocked(entry.path)


def _remove_unlocked(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        _fcntl.flock(handle, _fcntl.LOCK_EX | _fcntl.LOCK_NB)  # raises if a process writes the file
        os.unlink(path)
    finally:
        os.close(handle)


def _copy_permissions(handle: int, temporary: Path, old: os.stat_result) -> None:
    """Give the temporary file the owner and the mode of the target."""
    mode = stat.S_IMODE(old.st_mode)
    if not hasattr(os, "fchown"):
        os.chmod(temporary, mode)
        return
    now = os.fstat(handle)
    if (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(handle, old.st_uid, old.st_gid)
        except PermissionError:
            mode &= 0o777
            try:
                os.fchown(handle, -1, old.st_gid)
            except PermissionError:  # another group must not see more than everybody
                mode = (mode & ~0o070) | ((mode & 0o007) << 3)
    os.fchmod(handle, mode)


def _sync_folder(folder: Path) -> None:
    """Flush the rename to disk, so that it survives a crash, if the system supports it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError:
        pass  # some file systems cannot sync a folder; the file itself is safe
    finally:
        os.close(handle)
