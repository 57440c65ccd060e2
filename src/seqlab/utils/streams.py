"""A standard error that cannot fail: messages are lost, but not the work of the program."""

from __future__ import annotations

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
