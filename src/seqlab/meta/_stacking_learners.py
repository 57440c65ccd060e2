"""The learners inside a stacked learner, and their seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor

from seqlab.data.errors import InputError
from seqlab.meta.independent import IndependentLabeler

Ints = NDArray[np.int64]


def as_labeler(estimator: Any) -> Any:
    """A labeler as it is; a classifier, step by step."""
    if estimator is None:
        return IndependentLabeler()
    if is_regressor(estimator):
        raise InputError(f"{type(estimator).__name__} is a regressor; labels need a classifier")
    return IndependentLabeler(estimator) if is_classifier(estimator) else estimator


def draw_seed(random: np.random.RandomState) -> int:
    """A seed for a learner, from a source of random numbers."""
    return int(random.randint(np.iinfo(np.int32).max))


def seeded(labeler: Any, random: np.random.RandomState) -> Any:
    """The labeler with a seed wherever it has none, so that ours decides everything."""
    seeds = {
        name: draw_seed(random)
        for name, value in sorted(labeler.get_params().items(), key=lambda param: param[0])
        if name.split("__")[-1] == "random_state" and value is None
    }
    return clone(labeler).set_params(**seeds) if seeds else labeler
