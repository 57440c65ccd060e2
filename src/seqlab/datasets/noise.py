"""Swap noise: exchange steps, to measure how much a learner uses their order (Cohen & Carvalho 2005).

Each step is swapped, with some probability, with a random step of its sequence; features and label move
together. The pairs of features and label stay the same, so that classifiers of single steps are not
affected, but the runs of labels that sequence models use are broken.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.datasets._helpers import check_random_state


class NoisySequences(NamedTuple):
    """Sequences with swapped steps.

    Attributes
    ----------
    X, y : the reordered input
    order : list of int arrays
        ``order[i][t]`` is the step of the original sequence i that is now at position t.
    """

    X: Any
    y: list[Any]
    order: list[NDArray[np.int64]]


def swap_steps(
    X: Any, y: Any, *, probability: float = 0.1, random_state: Any = None
) -> NoisySequences:
    """Swap steps within their sequences.

    Each step in turn is swapped, with the given probability, with a step drawn uniformly from its
    sequence (itself included); features and label move together. The pairs of features and label stay
    the same, so that `IndependentLabeler` learns the same model; their order does not.

    Parameters
    ----------
    X : Sequences, or list of sequences
        A sequence is a list of steps, an array or a sparse matrix.
    y : list of label sequences
    probability : float, default=0.1
    random_state : int, RandomState or None
        Seed of the generator.

    Returns
    -------
    NoisySequences
        New objects; X and y are not modified.

    Examples
    --------
    >>> from seqlab.datasets import swap_steps
    >>> noisy = swap_steps([["a", "b", "c", "d"]], [[0, 0, 1, 1]], probability=0.5, random_state=5)
    >>> noisy.X, noisy.y
    ([['c', 'b', 'a', 'd']], [[1, 0, 0, 1]])
    """
    if not isinstance(probability, Real) or not 0 <= float(probability) <= 1:
        raise InputError(f"probability must be between 0 and 1, got {probability!r}")
    if len(X) != len(y):
        raise InputError(f"X has {len(X)} sequences but y has {len(y)}")
    rng = check_random_state(random_state)
    order = []
    for i, labels in enumerate(y):
        n_steps = X.lengths[i] if isinstance(X, Sequences) else _n_steps(X[i])
        if n_steps != len(labels):
            raise InputError(f"X[{i}] has {n_steps} steps but y[{i}] has {len(labels)} labels")
        order.append(_draw_order(int(n_steps), float(probability), rng))
    labels = [_reorder(part, places) for part, places in zip(y, order, strict=True)]
    if isinstance(X, Sequences):
        starts = X.offsets[:-1]
        rows = [start + places for start, places in zip(starts, order, strict=True)]
        stacked = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
        moved = Sequences(X.matrix[stacked], X.offsets, feature_names=X.feature_names)
        return NoisySequences(moved, labels, order)
    return NoisySequences(
        [_reorder(part, places) for part, places in zip(X, order, strict=True)], labels, order
    )


def _n_steps(sequence: Any) -> int:
    return sequence.shape[0] if hasattr(sequence, "shape") else len(sequence)


def _draw_order(n_steps: int, probability: float, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Original step at each position after all swaps."""
    order = np.arange(n_steps)
    for step in np.flatnonzero(rng.random_sample(n_steps) < probability).tolist():
        other = rng.randint(n_steps)
        order[step], order[other] = order[other], order[step]
    return order


def _reorder(sequence: Any, order: NDArray[np.int64]) -> Any:
    if isinstance(sequence, np.ndarray) or sp.issparse(sequence):
        return sequence[order]
    if hasattr(sequence, "iloc"):  # a data frame
        return sequence.iloc[order]
    return [sequence[place] for place in order.tolist()]
