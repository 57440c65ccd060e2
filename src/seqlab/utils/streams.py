"""Standard streams that are missing or fail.

Messages on standard error may be lost, but not the work of the program. Results on a standard output that is
closed are an error, as on a full disk.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import Any


class UnfailingStream:
    """A text stream that ignores the errors of another one, such as a full disk or a closed pipe.

    Parameters
    ----------
    stream : text stream or None
        None if the program was started without it.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text if possible."""
        with suppress(OSError, ValueError, AttributeError):
            self._stream.write(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write lines if possible."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush if possible."""
        with suppress(OSError, ValueError, AttributeError):
            self._stream.flush()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        with suppress(OSError, ValueError, AttributeError):
            return bool(self._stream.isatty())
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class ClosedOutput(io.TextIOBase):
    """Stands for a standard output that was closed before the program started."""

    def writable(self) -> bool:
        """Return True: writing gives a clearer error than a stream that refuses it."""
        return True

    def write(self, text: str) -> int:
        """Raise an error, unless there is nothing to write."""
        if text:
            raise OSError(errno.EBADF, "standard output is closed")
        return 0


def replace_closed_streams() -> None:
    """Make a program safe that was started with closed standard streams (``seqlab ... >&-``).

    Their descriptors are given to the null device. Otherwise the next file that is opened would get them,
    and what a library writes to standard error would end up in it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    sys.stderr = UnfailingStream(sys.stderr)
