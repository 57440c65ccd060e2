"""One classifier per previous label: the local models of PMM and MEMM.

The *projection* of a label is the set of training steps that follow it; the steps that begin a
sequence are one more. Each gets a classifier of its own, unless the answer is known without one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from seqlab.models._markov import Legal
from seqlab.models._posteriors import StepPosteriors, fit_posteriors


class Projections:
    """``P(label | step, previous label)`` for every previous label and for the first step.

    Parameters
    ----------
    posteriors : list of StepPosteriors or None, of length n_labels + 1
        By previous label; the last is of first steps. None where ``fixed`` is the answer.
    fixed : array of shape (n_labels + 1, n_labels)
        The distribution where it does not depend on the step; for the others, what the classifier's
        is mixed with: probability for legal labels that it has not seen, 0 in all.
    """

    def __init__(self, posteriors: list[StepPosteriors | None], fixed: NDArray[np.float64]) -> None:
        self.posteriors = posteriors
        self.fixed = fixed

    @property
    def classifiers(self) -> list[Any]:
        """The fitted classifiers, None where there is none."""
        return [None if each is None else each.classifier for each in self.posteriors]

    def proba(
        self, context: int, matrix: Any, steps: NDArray[np.int64], offsets: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Distributions of the rows of ``matrix`` after label ``context``, (n_rows, n_labels)."""
        posteriors, fixed = self.posteriors[context], self.fixed[context]
        if posteriors is None:
            return np.broadcast_to(fixed, (matrix.shape[0], fixed.size))
        return posteriors.proba(matrix, steps, offsets) * (1.0 - fixed.sum()) + fixed


def fit_projections(
    classifier: Any,
    matrix: Any,
    codes: NDArray[np.int64],
    previous: NDArray[np.int64],
    classes: NDArray[Any],
    legal: Legal,
    *,
    smoothing: float,
    weights: NDArray[np.float64] | None,
    groups: NDArray[np.int64],
    n_jobs: int | None,
) -> Projections:
    """Fit the classifiers of all projections.

    Parameters
    ----------
    classifier : what `seqlab.models._posteriors.checked_classifier` returned
    matrix : array or CSR matrix of shape (n_steps, n_features)
    codes, previous : int arrays of shape (n_steps,)
        Label of each step and of the step before, -1 at first steps.
    classes : array of shape (n_labels,)
    legal : Legal
        What may follow what.
    smoothing : float
        Probability of the legal labels that a projection does not show, together.
    weights : array of shape (n_steps,), optional
    groups : int array of shape (n_steps,)
        Number of the sequence.
    n_jobs : int, optional
        Threads (or workers of the joblib backend in force).
    """
    n_labels = classes.size
    may_follow = np.vstack([legal.transitions, legal.start])
    used = np.ones(codes.size, dtype=bool) if weights is None else weights > 0
    # One more than counted, so that no legal label is impossible after an unknown one.
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
        elif not rows.size:  # a label that only ends sequences: nothing is known of what follows
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
                    place=_place(context, classes),
                )
    # Threads: the projections share the data, and nothing is left behind in a forked child.
    fitted = Parallel(n_jobs=n_jobs, prefer="threads")(tasks.values())
    by_context = dict(zip(tasks, fitted, strict=True))
    return Projections([by_context.get(c) for c in range(n_labels + 1)], fixed)


def _place(context: int, classes: NDArray[Any]) -> str:
    if context == classes.size:
        return " that begin a sequence"
    return f" after {classes.tolist()[context]!r}"
