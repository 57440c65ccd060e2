"""Templates: token columns to feature matrices, by CRF++, Wapiti or Python templates.

`Templates` is imported on first use, because it needs scikit-learn and `extraction` does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqlab.utils.lazy import import_on_use

if TYPE_CHECKING:
    from seqlab.features.templates.templates import Templates as Templates

__getattr__, __dir__ = import_on_use(__name__, {"templates": ("Templates",)})
__all__ = ["Templates"]
