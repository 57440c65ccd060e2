"""Atomic file writing: a reader sees the complete old or the complete new content."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def open_atomic(target: Path) -> Iterator[IO[bytes]]:
    """Open a temporary binary file that replaces the target when the block ends.

    If the block raises, the target stays unchanged. A file that is replaced keeps its permissions.

    Parameters
    ----------
    target : Path
        Must not be a symbolic link (see `os.path.realpath`): the link itself would be replaced.
    """
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    # 0o666 minus the umask, like any new file.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, 0o666)
    try:
        try:
            # A wrapper that compresses or encodes may close the file: the handle must stay open.
            with os.fdopen(handle, "wb", closefd=False) as file:
                yield file
            os.fsync(handle)
        finally:
            os.close(handle)
        if target.exists():
            os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


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
