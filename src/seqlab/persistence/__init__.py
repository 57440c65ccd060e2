"""Models on disk: `save` and `load`, without pickle."""

from seqlab.persistence._model_file import load, save
from seqlab.persistence.errors import ModelFileError
from seqlab.persistence.limits import Limits
from seqlab.persistence.type_names import TRUSTED_TYPES

__all__ = ["TRUSTED_TYPES", "Limits", "ModelFileError", "load", "save"]
