"""What every public inference function does around its kernel: checks, blocks, error messages."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError, NoLegalLabelingError, NumericalError
from seqlab.inference.kernels.path_scores import count_invalid_scores
from seqlab.inference.scores import Bools, ChainArrays, ChainScores, Floats, Mask
from seqlab.utils.threads import block_bounds, effective_n_jobs, run_blocks

if TYPE_CHECKING:
    from seqlab.inference.graphs.scores import GraphScores

Result = TypeVar("Result")


def chain_arrays(scores: ChainScores) -> ChainArrays:
    """The scores as the first argument of every chain kernel."""
    pairwise3 = scores.pairwise if scores.per_step else scores.pairwise[np.newaxis]
    return (
        _writable(scores.unary),
        _writable(pairwise3),
        int(scores.per_step),
        _writable(scores.start),
        _writable(scores.end),
        _writable(scores.offsets),
    )


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    # For numba a read-only array is another type, for which it would compile every kernel again.
    return array if array.flags.writeable else array.copy()


def require_chains(scores: Any) -> None:
    """Raise an error if the scores are not those of chains."""
    if not isinstance(scores, ChainScores):
        raise InputError(
            f"this function needs ChainScores, got {type(scores).__name__}; for graphs there are "
            "log_partition, marginals, pair_marginals, viterbi, max_marginals, path_scores and sample"
        )


def prepare(scores: ChainScores, mask: Mask | None) -> ChainScores:
    """Apply the mask and raise an error if a score is NaN or ``+inf``.

    This takes one pass over the scores, a few per cent of the time of forward-backward.
    """
    require_chains(scores)
    scores = scores.masked(mask)
    if np.any(np.diff(scores.offsets) < 0):
        raise InputError("offsets must not decrease")
    boundary = np.concatenate([scores.start, scores.end])
    if not np.all(boundary < np.inf) or count_invalid_scores(chain_arrays(scores)):
        scores.check()
    return scores


def over_blocks(
    scores: ChainScores,
    kernel: Callable[Concatenate[ChainArrays, int, int, ...], Result],
    n_jobs: int | None,
    *arguments: Any,
    work_per_step: int = 0,
    independent: bool = False,
) -> list[Result]:
    """Call ``kernel(chain, first, last, *arguments)`` for each block of sequences.

    The results are in the order of the blocks.

    The blocks do not depend on ``n_jobs``. If no sum runs over several sequences (``independent``), a
    single thread takes them all in one call.
    """
    chain = chain_arrays(scores)
    if independent and effective_n_jobs(n_jobs) == 1:
        return [kernel(chain, 0, scores.n_sequences, *arguments)]
    # Even with few labels a step costs as much as about 64 operations.
    work = max(scores.n_labels**2, work_per_step, 64)
    bounds = block_bounds(scores.offsets, work)

    def run(block: int) -> Result:
        return kernel(chain, int(bounds[block]), int(bounds[block + 1]), *arguments)

    return run_blocks(run, bounds.size - 1, n_jobs)


def require_legal(scores: ChainScores, values: Floats) -> None:
    """Raise an error that explains the first of the sequences' values that is not finite."""
    finite = np.isfinite(values)
    if finite.all():
        return
    sequence = int(np.argmin(finite))
    position = first_blocked_position(scores, sequence)
    if position is None:
        raise NumericalError(
            "the scores of sequence {sequence} are too large: their sum overflows", sequence
        )
    raise NoLegalLabelingError(
        f"sequence {{sequence}} has no legal labeling: every path is forbidden by position {position}",
        sequence,
    )


def first_blocked_position(scores: ChainScores, sequence: int) -> int | None:
    """First position that no legal prefix of a sequence reaches; ``None`` if every position is reached.

    It is the last position if the end scores forbid all remaining labels.
    """
    first, last = int(scores.offsets[sequence]), int(scores.offsets[sequence + 1])
    allowed = scores.unary[first:last] > -np.inf
    alive: Bools = scores.start > -np.inf
    for position in range(last - first):
        if position > 0:
            pairwise = scores.pairwise[first + position] if scores.per_step else scores.pairwise
            alive = np.any(alive[:, np.newaxis] & (pairwise > -np.inf), axis=0)
        alive = alive & allowed[position]
        if position == last - first - 1:
            alive = alive & (scores.end > -np.inf)
        if not alive.any():
            return position
    return None


def check_labels(
    scores: ChainScores | GraphScores, labels: ArrayLike, name: str
) -> NDArray[np.int64]:
    """The labels of all steps as int64; an error if one is not a valid label."""
    array = np.asarray(labels)
    if array.shape == (0,):
        array = array.astype(np.int64)  # NumPy reads an empty list as floats
    if array.shape != (scores.n_steps,) or array.dtype.kind not in "iu":
        raise InputError(
            f"{name} must be integers of shape ({scores.n_steps},), "
            f"got {array.dtype} of shape {array.shape}"
        )
    bad = (array < 0) | (array >= scores.n_labels)
    if bad.any():
        step = int(np.argmax(bad))
        sequence = int(np.searchsorted(scores.offsets, step, side="right") - 1)
        raise InputError(
            f"{name} of sequence {sequence} at position {step - int(scores.offsets[sequence])} is "
            f"{array[step]}, but there are {scores.n_labels} labels"
        )
    return np.ascontiguousarray(array, dtype=np.int64)


_LOCAL = threading.local()
# Doubles of scratch memory that a thread keeps between calls (16 MB). Requests for more are allocated each
# time: fresh pages from the system take a quarter of the time of Viterbi on a long chain.
KEPT_DOUBLES = 1 << 21


def scratch(n_rows: int, n_columns: int) -> Floats:
    """An uninitialised array, valid until the same thread calls this function again."""
    size = n_rows * n_columns
    if size > KEPT_DOUBLES:
        return np.empty((n_rows, n_columns))
    kept: Floats | None = getattr(_LOCAL, "doubles", None)
    if kept is None or kept.size < size:
        kept = _LOCAL.doubles = np.empty(size)
    return kept[:size].reshape(n_rows, n_columns)
