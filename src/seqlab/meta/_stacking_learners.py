"""The inner learners of a stacked learner, and their random seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor

from seqlab.data.errors import InputError
from seqlab.meta.independent import IndependentLabeler

Ints = NDArray[np.int64]


def as_labeler(estimator: Any) -> Any:
    """Return a labeler unchanged; wrap a classifier in `IndependentLabeler`."""
    if estimator is None:
        return IndependentLabeler()
    if is_regressor(estimator):
        raise InputError(f"{type(estimator).__name__} is a regressor; labels need a classifier")
    return IndependentLabeler(estimator) if is_classifier(estimator) else estimator


def draw_seed(random: np.random.RandomState) -> int:
    """Draw a seed for a learner."""
    return int(random.randint(np.iinfo(np.int32).max))


def set_seeds(labeler: Any, random: np.random.RandomState) -> Any:
    """Return the labeler with a seed for every ``random_state=None``, so that results are reproducible."""
    seeds = {
        name: draw_seed(random)
        for name, value in sorted(labeler.get_params().items(), key=lambda param: param[0])
        if name.split("__")[-1] == "random_state" and value is None
    }
    return clone(labeler).set_params(**seeds) if seeds else labeler
