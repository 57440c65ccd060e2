"""Labelings drawn from the posterior."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.inference import graphs
from seqlab.inference._prepare import over_blocks, prepare, require_legal
from seqlab.inference.graphs import GraphScores
from seqlab.inference.kernels.sampling import sample_block
from seqlab.inference.scores import ChainScores, Mask

RandomState: TypeAlias = "int | np.random.RandomState | np.random.Generator | None"


def sample(
    scores: ChainScores | GraphScores,
    n: int,
    random_state: RandomState = None,
    *,
    mask: Mask | None = None,
    n_jobs: int | None = None,
) -> NDArray[np.int64]:
    """Independent labelings drawn from ``P(y) = exp(score(y)) / Z``.

    Parameters
    ----------
    scores : ChainScores or GraphScores
        Scores of all sequences or graphs. Graphs must allow exact inference; see `GraphInference`.
    n : int
        Number of labelings per sequence.
    random_state : int, RandomState, Generator or None
        Source of the uniform numbers, one per step and labeling. All are drawn before the work is
        split, so the labelings do not depend on ``n_jobs``.
    mask : Mask, optional
        Labelings to exclude.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    int64 array of shape (n, n_steps)
        Each row is a labeling of all sequences, stacked.

    Notes
    -----
    Forward filtering, backward sampling: O(T L^2 + n T L) for a sequence of T steps and L labels.

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab.inference import ChainScores, sample
    >>> scores = ChainScores(np.array([[9.0, 0], [0, 9]]), np.zeros((2, 2)))
    >>> sample(scores, 3, random_state=0)
    array([[0, 1],
           [0, 1],
           [0, 1]])
    """
    if n < 0:
        raise InputError(f"n must not be negative, got {n}")
    if isinstance(scores, GraphScores):
        masked = scores.masked(mask)
        uniforms = _uniforms(random_state, (int(n), scores.n_nodes))
        rows = [graphs.GraphInference().sample_from(masked, row) for row in uniforms]
        return np.array(rows, dtype=np.int64).reshape(uniforms.shape)
    scores = prepare(scores, mask)
    uniforms = _uniforms(random_state, (int(n), scores.n_steps))
    labels = np.zeros(uniforms.shape, dtype=np.int64)
    log_z = np.zeros(scores.n_sequences)
    work = int(n) * scores.n_labels
    over_blocks(scores, sample_block, n_jobs, uniforms, labels, log_z, work_per_step=work)
    require_legal(scores, log_z)
    return labels


def _uniforms(random_state: RandomState, shape: tuple[int, int]) -> NDArray[np.float64]:
    if isinstance(random_state, np.random.RandomState):
        return random_state.random_sample(shape)
    if isinstance(random_state, np.random.Generator):
        return random_state.random(shape)
    if random_state is None or isinstance(random_state, int | np.integer):
        return np.random.default_rng(random_state).random(shape)
    raise InputError(
        "random_state must be an integer, a RandomState, a Generator or None, "
        f"got {type(random_state).__name__}"
    )
