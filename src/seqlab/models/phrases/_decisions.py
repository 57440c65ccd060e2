"""Open and close decisions as training data, and their out-of-fold posteriors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

from seqlab.data.errors import InputError
from seqlab.models._posteriors import StepPosteriors, fit_posteriors

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Decisions(NamedTuple):
    """One kind of decision for all tokens, and its classifier."""

    matrix: Any  # (n_tokens, n_features)
    codes: Ints  # (n_tokens,)
    classes: NDArray[Any]
    weights: Floats | None
    groups: Ints  # sequence of each token
    classifier: Any

    def fit(self, tokens: Ints | None = None) -> StepPosteriors:
        """Fit a clone of the classifier on all tokens, or on the given ones."""
        matrix, codes, classes, weights, groups, classifier = self
        if tokens is not None:
            matrix, codes, groups = matrix[tokens], codes[tokens], groups[tokens]
            weights = None if weights is None else weights[tokens]
        return fit_posteriors(classifier, matrix, codes, classes, weights=weights, groups=groups)


def out_of_fold_posteriors(
    kinds: list[Decisions], offsets: Ints, n_folds: int, *, random_state: Any, n_jobs: int | None
) -> list[Floats]:
    """Return the posteriors of every token from a classifier that was not trained on its sequence.

    Parameters
    ----------
    kinds : list of Decisions
    offsets : int array of shape (n_sequences + 1,)
        First token of each sequence, and the number of tokens.
    n_folds : int
        Folds of sequences; the classifier of each is fitted on the others.
    random_state, n_jobs
        As in scikit-learn.

    Returns
    -------
    list of arrays of shape (n_tokens, n_classes), one per kind
    """
    n_sequences = offsets.size - 1
    if n_sequences < 2:
        raise InputError(
            "tuning needs at least two training sequences: set threshold (and inside_weight), or "
            "cost='map'"
        )
    folds = KFold(
        min(n_folds, n_sequences), shuffle=True, random_state=check_random_state(random_state)
    )
    sequence_of_token = kinds[0].groups
    splits = [
        tuple(np.flatnonzero(np.isin(sequence_of_token, sequences)) for sequences in split)
        for split in folds.split(np.arange(n_sequences))
    ]
    posteriors = Parallel(n_jobs=n_jobs)(
        delayed(_fit_and_predict)(kind, *split, offsets) for kind in kinds for split in splits
    )
    out = [np.zeros((kind.codes.size, kind.classes.size)) for kind in kinds]
    for i, values in enumerate(posteriors):
        out[i // len(splits)][splits[i % len(splits)][1]] = values
    return out


def find_used_columns(matrix: Any) -> Ints:
    """Find the columns with a nonzero entry."""
    if sp.issparse(matrix):
        return np.flatnonzero(np.bincount(matrix.indices, minlength=matrix.shape[1]))
    return np.flatnonzero((matrix != 0).any(axis=0))


def _fit_and_predict(kind: Decisions, train: Ints, test: Ints, offsets: Ints) -> Floats:
    return kind.fit(train).proba(kind.matrix[test], test, offsets)
