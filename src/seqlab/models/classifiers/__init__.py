"""Plain scikit-learn classifiers, for use inside labelers."""

from seqlab.models.classifiers.snow import SNoW
from seqlab.models.classifiers.tempered import TemperedClassifier

__all__ = ["SNoW", "TemperedClassifier"]
