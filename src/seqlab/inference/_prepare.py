"""What every public inference function does before and after its kernel: check, cut, explain."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError, NoLegalLabelingError, NumericalError
from seqlab.inference.kernels.paths import count_bad_scores
from seqlab.inference.scores import Bools, ChainScores, Floats, Mask
from seqlab.utils.threads import block_bounds, effective_n_jobs, run_blocks

Result = TypeVar("Result")


class ChainArrays(NamedTuple):
    """The leading arguments of every chain kernel (see `kernels.forward_backward`)."""

    unary: Floats  # (n_steps, n_labels)
    pairwise3: Floats  # (1 or n_steps, n_labels, n_labels)
    stride: int  # 0 for constant pairwise scores, 1 for scores per step
    start: Floats  # (n_labels,)
    end: Floats  # (n_labels,)
    offsets: NDArray[np.int64]  # (n_sequences + 1,)


def chain_arrays(scores: ChainScores) -> ChainArrays:
    """Scores in the form the kernels take."""
    pairwise3 = scores.pairwise if scores.per_step else scores.pairwise[np.newaxis]
    return ChainArrays(
        _writable(scores.unary),
        _writable(pairwise3),
        int(scores.per_step),
        _writable(scores.start),
        _writable(scores.end),
        _writable(scores.offsets),
    )


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    # numba types read-only arrays apart, and would compile every kernel a second time for them.
    return array if array.flags.writeable else array.copy()


def prepare(scores: ChainScores, mask: Mask | None) -> ChainScores:
    """Apply the mask and refuse scores that no kernel can use.

    One pass over the scores, a few per cent of what forward-backward costs.
    """
    scores = scores.masked(mask)
    if np.any(np.diff(scores.offsets) < 0):
        raise InputError("offsets must not decrease")
    arrays = chain_arrays(scores)
    boundary = np.concatenate([scores.start, scores.end])
    if not np.all(boundary < np.inf) or count_bad_scores(
        arrays.unary, arrays.pairwise3, arrays.stride, arrays.offsets
    ):
        scores.check()
    return scores


def over_blocks(
    scores: ChainScores,
    function: Callable[[int, int], Result],
    n_jobs: int | None,
    work_per_step: int = 0,
    *,
    apart: bool = False,
) -> list[Result]:
    """``function(first, last)`` on each block of the fixed partition, results in block order.

    Where sequences are dealt with ``apart``, so that no sum runs over several, one thread takes them all
    at once.
    """
    if apart and effective_n_jobs(n_jobs) == 1:
        return [function(0, scores.n_sequences)]
    # Even for few labels a step costs as much as some 64 operations.
    work = max(scores.n_labels**2, work_per_step, 64)
    bounds = block_bounds(scores.offsets, work)
    return run_blocks(
        lambda block: function(int(bounds[block]), int(bounds[block + 1])), bounds.size - 1, n_jobs
    )


def require_legal(scores: ChainScores, values: Floats) -> None:
    """Raise the error that explains the first value, per sequence, that is not finite."""
    finite = np.isfinite(values)
    if finite.all():
        return
    sequence = int(np.argmin(finite))
    position = first_blocked_position(scores, sequence)
    if position is None:
        raise NumericalError(
            "the scores of sequence {sequence} are too large: their sum leaves the finite numbers",
            sequence,
        )
    raise NoLegalLabelingError(
        f"sequence {{sequence}} has no legal labeling: every path is forbidden by position {position}",
        sequence,
    )


def first_blocked_position(scores: ChainScores, sequence: int) -> int | None:
    """First position that no legal prefix of a sequence reaches; ``None`` if there is none.

    The last position is named where the end scores forbid all that is left.
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


def check_labels(scores: ChainScores, labels: ArrayLike, name: str) -> NDArray[np.int64]:
    """Labelings of all steps as int64, each a valid label."""
    array = np.asarray(labels)
    if array.shape == (0,):
        array = array.astype(np.int64)  # an empty list has no integer type of its own
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
# Doubles of scratch memory that a thread keeps between calls (16 MB): fresh pages from the system take
# a quarter of the time of Viterbi on a long chain.
KEPT_DOUBLES = 1 << 21


def scratch(n_rows: int, n_columns: int) -> Floats:
    """An array with anything in it, of this thread until it asks again."""
    size = n_rows * n_columns
    if size > KEPT_DOUBLES:
        return np.empty((n_rows, n_columns))
    kept: Floats | None = getattr(_LOCAL, "doubles", None)
    if kept is None or kept.size < size:
        kept = _LOCAL.doubles = np.empty(size)
    return kept[:size].reshape(n_rows, n_columns)
