"""What a sequence is: the internal form, labels, tag schemes, readers and writers."""

from seqlab.data.errors import InputError, NoLegalLabelingError, NumericalError, SeqlabError
from seqlab.data.sequences import Sequences

__all__ = [
    "InputError",
    "NoLegalLabelingError",
    "NumericalError",
    "SeqlabError",
    "Sequences",
]
