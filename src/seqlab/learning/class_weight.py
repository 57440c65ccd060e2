"""Class weights: how much each step counts, and the likelihood with weighted steps.

In logistic regression a class weight multiplies the log-loss of the samples of that class. The steps of a
sequence have no separate log-losses, but the chain rule splits the log-loss of a sequence into terms that
belong to one step each, from the left or from the right:

    -log p(y | x) = sum_t -log p(y_t | y_1 .. y_{t-1}, x) = sum_t -log p(y_t | y_{t+1} .. y_T, x).

`StepWeightedLikelihood` multiplies each term by the weight of its step and takes the mean of both directions.
With all weights 1 it is the ordinary likelihood; on sequences of one step it is weighted logistic regression.
It is not convex in general.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError, NumericalError
from seqlab.data.labels import sequence_weights
from seqlab.learning.likelihood import Likelihood, TermValue
from seqlab.learning.training_data import TrainingData
from seqlab.structures.values import ExpectedFeatures

Floats = NDArray[np.float64]


def class_weights(class_weight: Mapping[Any, float] | str | None, data: TrainingData) -> Floats:
    """Return the weight of each class, shape (n_labels,).

    Parameters
    ----------
    class_weight : mapping, "balanced" or None
        Weights of labels, 1 for labels that are not in the mapping. "balanced" means
        ``n / (n_labels * n_c)`` for a label that n_c of n steps have, as in scikit-learn.
    data : TrainingData

    Raises
    ------
    InputError
        If a label does not occur in the data, or a weight is not a positive number.
    """
    weights = np.ones(data.n_labels)
    if class_weight is None:
        return weights
    if isinstance(class_weight, str):  # "balanced"
        known = data.codes[data.codes >= 0]
        counts = np.bincount(known, minlength=data.n_labels)
        return known.size / (data.n_labels * np.maximum(counts, 1.0))
    for label, weight in class_weight.items():
        code = np.flatnonzero(data.classes == label)
        if code.size == 0:
            raise InputError(f"class_weight has {label!r}, which is not a label of y")
        if not (isinstance(weight, Real) and np.isfinite(weight) and weight > 0):
            raise InputError(f"class_weight[{label!r}] is {weight!r}; it must be a positive number")
        weights[code[0]] = weight
    return weights


def step_class_weights(
    class_weight: Mapping[Any, float] | str | None, data: TrainingData
) -> Floats:
    """Return the class weight of every step times the weight of its sequence, shape (n_steps,).

    If several labels of a step are possible, its class weight is the mean of theirs. The weight of a step
    whose label is not known at all has no effect on the loss; it is the mean weight of the other steps of
    its sequence, so that the mean over a sequence is that of its known steps.
    """
    weights = class_weights(class_weight, data)
    of_steps = weights[np.maximum(data.codes, 0)]
    if data.allowed is not None:
        n_allowed = data.allowed.sum(axis=1)
        of_steps = data.allowed @ weights / n_allowed
        known, starts = n_allowed < data.n_labels, data.X.offsets[:-1]
        n_known = np.add.reduceat(known.astype(np.int64), starts)
        sums = np.add.reduceat(np.where(known, of_steps, 0.0), starts)
        means = np.where(n_known > 0, sums / np.maximum(n_known, 1), 1.0)
        of_steps = np.where(known, of_steps, np.repeat(means, data.X.lengths))
    return of_steps * np.repeat(data.sequence_weights, data.X.lengths)


class ChainRuleSupport(Protocol):
    """What a structure needs for weighted steps: an order of its positions."""

    def chain_rule_features(
        self,
        w: Floats,
        codes: NDArray[np.int64],
        step_weights: Floats,
        allowed: NDArray[np.bool_] | None = None,
    ) -> ExpectedFeatures:
        """Return the weighted losses of single positions and their gradient."""
        ...


class StepWeightedLikelihood(Likelihood):
    """Negative log-likelihood of a chain with a weight for every step; a `DataTerm`.

    Parameters
    ----------
    bound : BoundStructure with `ChainRuleSupport`
        The structure, bound to the training data.
    codes : int64 array of shape (n_positions,)
        Gold labels (negative if not known).
    step_weights : array of shape (n_positions,)
    allowed : boolean array of shape (n_positions, n_labels), optional
        Possible labels of each position, if some labels are not known.
    """

    def __init__(
        self,
        bound: Any,
        codes: NDArray[np.int64],
        step_weights: Floats,
        *,
        allowed: NDArray[np.bool_] | None = None,
    ) -> None:
        # Warm start and preconditioner use the ordinary likelihood, with the mean weight of each sequence.
        weights, _ = sequence_weights(step_weights, bound.X.offsets)
        super().__init__(bound, codes, weights, allowed=allowed)
        self.is_convex = False
        self._support: ChainRuleSupport = bound
        self.step_weights, self.allowed = step_weights, allowed

    def evaluate(self, w: Floats) -> TermValue:
        """Return value and gradient at ``w``."""
        found = self._support.chain_rule_features(w, self.codes, self.step_weights, self.allowed)
        loss = float(found.log_z.sum())
        if not math.isfinite(loss):
            bad = int(np.argmax(~np.isfinite(found.log_z)))
            raise NumericalError("the likelihood of sequence {sequence} is not finite", bad)
        return TermValue(loss, found.parts, np.zeros(0))
