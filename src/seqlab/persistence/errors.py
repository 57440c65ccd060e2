"""The error of everything that is wrong with a model file."""

from seqlab.data.errors import SeqlabError


class ModelFileError(SeqlabError, ValueError):
    """A file that is not a valid model file, or a model that cannot be stored in a file."""
