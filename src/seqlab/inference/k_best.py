"""The n best labelings of every sequence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.inference._prepare import over_blocks, prepare, require_legal
from seqlab.inference.kernels.kbest import kbest_block
from seqlab.inference.scores import ChainScores, Mask


def kbest(
    scores: ChainScores, n: int, *, mask: Mask | None = None, n_jobs: int | None = None
) -> list[list[tuple[NDArray[np.int64], float]]]:
    """The ``n`` labelings with the highest score of each sequence, best first.

    Parameters
    ----------
    scores : ChainScores
        Scores of all sequences.
    n : int
        Number of labelings; fewer are returned if a sequence has fewer legal labelings.
    mask : Mask, optional
        Labelings to exclude.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    list of lists of (labels, score)
        Per sequence, by decreasing score; ties in lexicographic order of the labels. ``labels`` has
        shape (n_steps of the sequence,). An empty sequence has one labeling, empty, of score 0.

    Notes
    -----
    Exact: a sorted list of the ``n`` best suffixes in every cell, O(T L^2 n) time and O(T L n)
    memory for a sequence of T steps and L labels.

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab.inference import ChainScores, kbest
    >>> scores = ChainScores(np.array([[1.0, 0], [0, 0], [0, 1]]), np.eye(2))
    >>> [(labels.tolist(), score) for labels, score in kbest(scores, 2)[0]]
    [([0, 0, 0], 3.0), ([0, 0, 1], 3.0)]
    """
    if n < 1:
        raise InputError(f"n must be at least 1, got {n}")
    scores = prepare(scores, mask)
    if scores.n_sequences == 0:
        return []
    # At most as many rows as the longest sequence has labelings (Python integers do not overflow).
    longest = int(np.diff(scores.offsets).max())
    n_rows = n if scores.n_labels > 1 and longest > 62 else min(n, scores.n_labels**longest)
    n_rows = max(int(n_rows), 1)
    labels = np.zeros((n_rows, scores.n_steps), dtype=np.int64)
    score = np.full((scores.n_sequences, n_rows), -np.inf)
    found = np.zeros(scores.n_sequences, dtype=np.int64)
    work = n_rows * scores.n_labels**2
    over_blocks(scores, kbest_block, n_jobs, labels, score, found, work_per_step=work)
    require_legal(scores, score[:, 0])
    bounds = scores.offsets.tolist()
    return [
        [
            (labels[rank, bounds[i] : bounds[i + 1]].copy(), float(score[i, rank]))
            for rank in range(found[i])
        ]
        for i in range(scores.n_sequences)
    ]
