"""Early stopping: training ends when the score on held-out data no longer improves.

After every iteration the model is scored on sequences that it is not trained on. If the best score was
reached ``n_iter_no_change`` iterations ago, training stops; the model is that of the best iteration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from seqlab.data.errors import InputError
from seqlab.learning.training_data import TrainingData
from seqlab.optim import FitState


class EarlyStopping:
    """Scores iterations on held-out data and keeps the best one.

    Parameters
    ----------
    score : callable
        Returns the score of the point of a state; larger is better.
    n_iter_no_change : int
        Number of iterations without improvement after which training stops.
    copy : callable, optional
        Returns a copy of the point of a state, if later iterations change it.

    Attributes
    ----------
    best : FitState or None
        The first iteration with the best score so far.
    best_iteration : int
    best_score : float
    """

    def __init__(
        self,
        score: Callable[[Any], float],
        n_iter_no_change: int,
        *,
        copy: Callable[[Any], Any] | None = None,
    ) -> None:
        self.score, self.n_iter_no_change, self.copy = score, n_iter_no_change, copy
        self.best: FitState | None = None
        self.best_iteration = 0
        self.best_score = -math.inf

    def evaluate(self, iteration: int, state: FitState) -> float:
        """Return the score of an iteration, and keep it if it is the best so far."""
        point = state.point if self.copy is None else self.copy(state.point)
        score = self.score(point)
        if self.best is not None:
            self.best.converged = False  # a later iteration exists: this is not the optimum
        if score > self.best_score:
            self.best, self.best_score, self.best_iteration = state, score, iteration
            if self.copy is not None:
                self.best = replace(state, point=point)
        return score

    def is_exhausted(self, iteration: int) -> bool:
        """Return whether the last ``n_iter_no_change`` iterations brought no improvement."""
        return iteration - self.best_iteration >= self.n_iter_no_change

    def report_to(self, estimator: Any) -> None:
        """Set ``best_iteration_`` and ``best_validation_score_``."""
        estimator.best_iteration_ = self.best_iteration
        estimator.best_validation_score_ = self.best_score


def split_off_validation(
    data: TrainingData, fraction: float, random: np.random.RandomState
) -> tuple[TrainingData, TrainingData]:
    """Split training data into a part to train on and a held-out part of about ``fraction`` of the groups.

    Sequences without a group are groups of their own. A group stays in training if one of its labels would
    not occur there otherwise, because the model could not learn that label.

    Returns
    -------
    training, validation : TrainingData
        With the same classes as ``data``.
    """
    groups = np.arange(len(data.X)) if data.groups is None else data.groups
    names, group_of = np.unique(groups, return_inverse=True)
    known = data.codes >= 0
    codes, group_of_step = data.codes[known], np.repeat(group_of, data.X.lengths)[known]
    occurrences = np.unique(group_of_step * data.n_labels + codes)
    n_groups = np.bincount(occurrences % data.n_labels, minlength=data.n_labels)
    eligible = np.ones(names.size, dtype=bool)
    eligible[group_of_step[n_groups[codes] == 1]] = False
    order = random.permutation(names.size)
    is_chosen = np.zeros(names.size, dtype=bool)
    is_chosen[order[eligible[order]][: max(1, round(fraction * names.size))]] = True
    # Groups whose labels were all held out return to training.
    n_trained = np.bincount(codes[~is_chosen[group_of_step]], minlength=data.n_labels)
    is_chosen[group_of_step[n_trained[codes] == 0]] = False
    held_out = is_chosen[group_of]
    if not held_out.any() or held_out.all():
        unit = "sequences" if data.groups is None else "groups"
        raise InputError(
            f"validation_fraction={fraction} needs more {unit} than {names.size}: some are held out, and "
            "the others must contain every label"
        )
    training = data.part(np.flatnonzero(~held_out))
    return training, data.part(np.flatnonzero(held_out), keep_classes=True)
