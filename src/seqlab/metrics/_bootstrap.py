"""Bootstrap over sequences.

A resample draws as many sequences as there are, with replacement. Its counts are the counts of each
sequence times the number of times it was drawn, so that all resamples are one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.metrics._align import Floats

_BLOCK = 2_000_000  # drawn sequences in memory at a time: 16 MB of indices


def generator(random_state: Any) -> np.random.Generator:
    """Create a random generator from None, an integer, a `Generator` or a `RandomState`."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(np.iinfo(np.int32).max)
    return np.random.default_rng(random_state)


def draw(
    n_sequences: int, n_resamples: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Yield blocks of resamples, each an index array of shape (n_in_block, n_sequences)."""
    if n_sequences < 2:
        raise InputError(f"a bootstrap over sequences needs at least two, got {n_sequences}")
    if n_resamples < 1:
        raise InputError(f"n_resamples must be at least 1, got {n_resamples}")
    block = max(1, _BLOCK // n_sequences)
    for done in range(0, n_resamples, block):
        n_rows = min(block, n_resamples - done)
        yield rng.integers(n_sequences, size=(n_rows, n_sequences))


def resampled_totals(
    matrices: list[Any], n_resamples: int, rng: np.random.Generator
) -> list[Floats]:
    """Sum the counts of each resample; the resamples are the same for all matrices.

    Parameters
    ----------
    matrices : list of CSR matrices of shape (n_sequences, n_counts)
    n_resamples : int
    rng : Generator

    Returns
    -------
    list of arrays of shape (n_resamples, n_counts)
    """
    n_sequences = matrices[0].shape[0]
    parts: list[list[Floats]] = [[] for _ in matrices]
    for indices in draw(n_sequences, n_resamples, rng):
        n_rows = indices.shape[0]
        cells = (indices + n_sequences * np.arange(n_rows)[:, None]).ravel()
        times = np.bincount(cells, minlength=n_rows * n_sequences).reshape(n_rows, n_sequences)
        for part, matrix in zip(parts, matrices, strict=True):
            part.append(np.asarray((matrix.T @ times.T).T, dtype=np.float64))
    return [np.concatenate(part) for part in parts]


def percentile_interval(samples: Floats, confidence: float) -> Floats:
    """Percentile interval of samples along their first axis, shape (2, ...).

    NaN is the score of a resample with nothing to score, and is ignored; if all are NaN, they count as 0.
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, got {confidence!r}")
    tail = (1 - confidence) / 2
    undefined = np.isnan(samples)
    if not undefined.any():  # nanquantile is much slower
        return np.quantile(samples, [tail, 1 - tail], axis=0)
    samples = np.where(undefined.all(axis=0), 0.0, samples)
    return np.nanquantile(samples, [tail, 1 - tail], axis=0)
