"""Open and close decisions as training data, and their posteriors on sequences a classifier has not seen."""

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
    """One kind of decision, of all tokens, and the classifier that is to learn it."""

    matrix: Any  # (n_tokens, n_features)
    codes: Ints  # (n_tokens,)
    classes: NDArray[Any]
    weights: Floats | None
    groups: Ints  # sequence of each token
    classifier: Any

    def fit(self, tokens: Ints | None = None) -> StepPosteriors:
        """Fit a clone of the classifier on all tokens, or on some."""
        matrix, codes, classes, weights, groups, classifier = self
        if tokens is not None:
            matrix, codes, groups = matrix[tokens], codes[tokens], groups[tokens]
            weights = None if weights is None else weights[tokens]
        return fit_posteriors(classifier, matrix, codes, classes, weights=weights, groups=groups)


def held_out_posteriors(
    kinds: list[Decisions], offsets: Ints, n_parts: int, *, random_state: Any, n_jobs: int | None
) -> list[Floats]:
    """Posteriors of every token by a classifier that has not seen its sequence.

    Parameters
    ----------
    kinds : list of Decisions
    offsets : int array of shape (n_sequences + 1,)
        Where each sequence of tokens begins.
    n_parts : int
        Parts into which the sequences are cut; each is asked of a classifier fitted on the others.
    random_state, n_jobs
        As in scikit-learn.

    Returns
    -------
    list of arrays of shape (n_tokens, n_classes), one per kind
    """
    n_sequences = offsets.size - 1
    if n_sequences < 2:
        raise InputError(
            "tuning cuts the training data by sequences, and there is one: give a threshold (and "
            "inside_weight), or choose the cost 'map'"
        )
    folds = KFold(
        min(n_parts, n_sequences), shuffle=True, random_state=check_random_state(random_state)
    )
    of_token = kinds[0].groups
    parts = [
        tuple(np.flatnonzero(np.isin(of_token, sequences)) for sequences in split)
        for split in folds.split(np.arange(n_sequences))
    ]
    answers = Parallel(n_jobs=n_jobs)(
        delayed(_fit_and_ask)(kind, kept, held, offsets) for kind in kinds for kept, held in parts
    )
    out = [np.zeros((kind.codes.size, kind.classes.size)) for kind in kinds]
    for number, answer in enumerate(answers):
        out[number // len(parts)][parts[number % len(parts)][1]] = answer
    return out


def used_columns(matrix: Any) -> Ints:
    """Columns that are not zero throughout."""
    if sp.issparse(matrix):
        return np.flatnonzero(np.bincount(matrix.indices, minlength=matrix.shape[1]))
    return np.flatnonzero((matrix != 0).any(axis=0))


def _fit_and_ask(kind: Decisions, kept: Ints, held: Ints, offsets: Ints) -> Floats:
    return kind.fit(kept).proba(kind.matrix[held], held, offsets)
