"""The errors of seqlab; each message names the problem and its position.

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
    """An error that concerns one sequence.

    Parameters
    ----------
    message : str
        May contain ``{sequence}``, which is replaced by the number of the sequence.
    sequence : int, optional
        Number of the sequence. Code that sees only a block of sequences counts from the first of the
        block; its caller corrects the number with `shifted`.
    """

    def __init__(self, message: str, sequence: int | None = None) -> None:
        super().__init__(message if sequence is None else message.format(sequence=sequence))
        self.message = message
        self.sequence = sequence

    def shifted(self, by: int) -> Self:
        """The same error with ``by`` added to the number of the sequence."""
        return type(self)(self.message, None if self.sequence is None else self.sequence + by)


class NoLegalLabelingError(PlacedError, ValueError):
    """The hard constraints forbid every labeling of a sequence."""


class NumericalError(PlacedError, FloatingPointError):
    """A computation gave NaN or infinity; the message names the first sequence concerned."""
