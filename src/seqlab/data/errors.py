"""The errors seqlab raises: each says what is wrong and where.

Every class also derives from the built-in error that Python or scikit-learn users would catch
(`ValueError`, `FloatingPointError`), so that generic handlers keep working.
"""


class SeqlabError(Exception):
    """Base class of every error that seqlab raises on purpose."""


class InputError(SeqlabError, ValueError):
    """Data that cannot be used: the message names the sequence and the position."""


class NoLegalLabelingError(SeqlabError, ValueError):
    """The hard constraints leave a sequence without any labeling."""


class NumericalError(SeqlabError, FloatingPointError):
    """A computation left the finite numbers; the message names the sequence where it began."""
