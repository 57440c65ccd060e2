"""One classifier per previous label: the local models of PMM and MEMM.

The *projection* of a label is the set of training steps that follow it; first steps are one more
projection. Each has its own classifier, unless its distribution does not depend on the step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from seqlab.data import state_checks
from seqlab.learning import TrainingData
from seqlab.models._markov import LegalTransitions
from seqlab.models._posteriors import StepPosteriors, fit_posteriors, weights_and_groups
from seqlab.structures import chain


class Projections:
    """``P(label | step, previous label)`` for every previous label and for the first step.

    Parameters
    ----------
    posteriors : list of StepPosteriors or None, of length n_labels + 1
        By previous label; the last is of first steps. None if ``fixed`` is the distribution.
    fixed : array of shape (n_labels + 1, n_labels)
        The distribution, if it does not depend on the step. Otherwise the probability of legal labels that
        the classifier was not trained on, which is added to its posteriors, and 0 for all other labels.
    """

    def __init__(self, posteriors: list[StepPosteriors | None], fixed: NDArray[np.float64]) -> None:
        self.posteriors = posteriors
        self.fixed = fixed

    def check_classifiers(self, n_features: int, n_labels: int) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        shape = (n_labels + 1, n_labels)
        state_checks.check_array(self.fixed, "fixed", shape, low=0, high=1 + 1e-6)
        kinds = (StepPosteriors, type(None))
        state_checks.require(len(self.posteriors) == n_labels + 1, "posteriors")
        for posteriors in self.posteriors:
            state_checks.check_type(posteriors, "posteriors", *kinds)
            if posteriors is not None:
                posteriors.check_classifier(n_features, n_labels)

    @property
    def classifiers(self) -> list[Any]:
        """The fitted classifiers, None for projections without one."""
        return [None if each is None else each.classifier for each in self.posteriors]

    def proba(
        self, context: int, matrix: Any, steps: NDArray[np.int64], offsets: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the distributions of the rows of ``matrix`` after label ``context``, (n_rows, n_labels)."""
        posteriors, fixed = self.posteriors[context], self.fixed[context]
        if posteriors is None:
            return np.broadcast_to(fixed, (matrix.shape[0], fixed.size))
        return posteriors.proba(matrix, steps, offsets) * (1.0 - fixed.sum()) + fixed


def fit_projections(
    classifier: Any,
    data: TrainingData,
    matrix: Any,
    legal: LegalTransitions,
    *,
    smoothing: float,
    n_jobs: int | None,
) -> Projections:
    """Fit the classifiers of all projections.

    Parameters
    ----------
    classifier : what `seqlab.models._posteriors.prepare_classifier` returned
    data : TrainingData
    matrix : array or CSR matrix of shape (n_steps, n_features)
        The features of the steps, which may have more columns than those of ``data``.
    legal : LegalTransitions
        Which labels may follow each other.
    smoothing : float
        Total probability of the legal labels that a projection does not show.
    n_jobs : int, optional
        Threads (or workers of the active joblib backend).
    """
    codes, classes, n_labels = data.codes, data.classes, data.classes.size
    previous = chain.previous_codes(codes, data.X.offsets)
    weights, groups = weights_and_groups(data)
    may_follow = np.vstack([legal.transitions, legal.start])
    used = np.ones(codes.size, dtype=bool) if weights is None else weights > 0
    # Plus 1, so that every legal label is possible after a label that nothing followed.
    frequencies = np.bincount(codes[used], minlength=n_labels) + 1.0
    fixed = np.zeros((n_labels + 1, n_labels))
    tasks: dict[int, Any] = {}
    for context in range(n_labels + 1):
        rows = np.flatnonzero(used & (previous == (context if context < n_labels else -1)))
        present = np.zeros(n_labels, dtype=bool)
        present[codes[rows]] = True
        may = may_follow[context]
        missing = may & ~present
        if may.sum() == 1:
            fixed[context] = may
        elif not rows.size:  # training shows the label only at the end of sequences
            fixed[context] = frequencies * may / max((frequencies * may).sum(), 1.0)
        else:
            fixed[context] = missing * (smoothing / max(missing.sum(), 1))
            if present.sum() == 1:
                fixed[context] += present * (1.0 - fixed[context].sum())
            else:
                tasks[context] = delayed(fit_posteriors)(
                    classifier,
                    matrix[rows],
                    codes[rows],
                    classes,
                    weights=None if weights is None else weights[rows],
                    groups=groups[rows],
                    place=_describe_projection(context, classes),
                )
    # Threads, because the projections share the data and processes would copy them.
    fitted = Parallel(n_jobs=n_jobs, prefer="threads")(tasks.values())
    by_context = dict(zip(tasks, fitted, strict=True))
    return Projections([by_context.get(c) for c in range(n_labels + 1)], fixed)


def _describe_projection(context: int, classes: NDArray[Any]) -> str:
    if context == classes.size:
        return " that begin a sequence"
    return f" after {classes.tolist()[context]!r}"
