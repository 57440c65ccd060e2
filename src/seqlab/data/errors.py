"""The errors seqlab raises: each says what is wrong and where.

Every class also derives from the built-in error that Python or scikit-learn users would catch
(`ValueError`, `FloatingPointError`), so that generic handlers keep working.
"""

from __future__ import annotations

from typing import Self


class SeqlabError(Exception):
    """Base class of every error that seqlab raises on purpose."""


class InputError(SeqlabError, ValueError):
    """Data that cannot be used: the message names the sequence and the position."""


class PlacedError(SeqlabError):
    """An error of one sequence among many.

    Parameters
    ----------
    message : str
        May name the sequence as ``{sequence}``.
    sequence : int, optional
        Its number. Code that works on a block of sequences counts from the block's first; whoever cut
        the block puts the number right with `shifted`.
    """

    def __init__(self, message: str, sequence: int | None = None) -> None:
        super().__init__(message if sequence is None else message.format(sequence=sequence))
        self.message = message
        self.sequence = sequence

    def shifted(self, by: int) -> Self:
        """The same error, with the sequence counted from ``by`` sequences further back."""
        return type(self)(self.message, None if self.sequence is None else self.sequence + by)


class NoLegalLabelingError(PlacedError, ValueError):
    """The hard constraints leave a sequence without any labeling."""


class NumericalError(PlacedError, FloatingPointError):
    """A computation left the finite numbers; the message names the sequence where it began."""
