"""A folder for compiled kernels, if neither the installation nor the user's cache folder is writable.

numba stores compiled functions beside their source or in the user's cache folder, and refuses to compile if
it can write to neither, as in a read-only installation for a user without a home folder. Then the kernels
go to a folder of this user for temporary files. A program that sets ``NUMBA_CACHE_DIR`` decides itself.
"""

from __future__ import annotations

import os
import stat

VARIABLE = "NUMBA_CACHE_DIR"


def ensure_numba_cache(package: str) -> None:
    """Set ``NUMBA_CACHE_DIR`` if numba would find no folder for its cache; call before importing numba.

    Parameters
    ----------
    package : str
        Folder of the installed package.
    """
    if os.environ.get(VARIABLE) or os.access(package, os.W_OK) or _can_create(_user_cache()):
        return
    from tempfile import gettempdir

    try:
        os.environ[VARIABLE] = _private_folder(gettempdir())
    except OSError:  # there is no writable folder at all: numba's own error says so
        return


def _user_cache() -> str:
    """Return the folder that numba uses for users."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "numba")


def _can_create(folder: str) -> bool:
    """Return whether a folder is writable, or can be created in the nearest folder that exists."""
    while folder and not os.path.exists(folder):
        parent = os.path.dirname(folder)
        if parent == folder:
            return False
        folder = parent
    return bool(folder) and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _private_folder(base: str) -> str:
    """Return a folder that only this user can write to: numba runs what it finds in its cache."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = os.path.join(base, f"seqlab-numba-{user}")
    try:
        os.mkdir(folder, mode=0o700)
    except FileExistsError:
        found = os.lstat(folder)
        is_private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
        if not is_private or (hasattr(os, "getuid") and found.st_uid != user):
            from tempfile import mkdtemp

            return mkdtemp(prefix="seqlab-numba-")
    return folder
