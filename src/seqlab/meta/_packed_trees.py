"""PackedTreeColumns: the marginals of all columns of an output code in one call, if they are boosted trees.

A kernel goes through the columns one after the other. For a column it writes the cascade features of all
steps into their rows, walks the trees of the column, and runs forward-backward on log-odds with the scores
``s(t)[k, c]`` of bit k after bit c::

    a(t) = log (e^s(t)[1, 0] + e^(a(t-1) + s(t)[1, 1])) / (e^s(t)[0, 0] + e^(a(t-1) + s(t)[0, 1]))
    b(t) = log (e^s(t+1)[0, 1] + e^(s(t+1)[1, 1] + b(t+1))) / (e^s(t+1)[0, 0] + e^(s(t+1)[1, 0] + b(t+1)))

so that the probability of the bit is the logistic function of ``a(t) + b(t)``. Without a cascade all columns
see the same rows, and steps with equal features are one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from seqlab.data.sequences import Sequences
from seqlab.learning.boosting.binned import take_rows, unique_rows
from seqlab.learning.boosting.packed import PackedTrees, add_packed_trees
from seqlab.meta._cascade import PRECISION, TIE_WIDTH, CascadeWindow
from seqlab.meta._packed_columns import log_add
from seqlab.models.boosted_crf import BoostedCRF

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]

# Rows that visit the trees of a column together: more do not fit in the cache, with fewer the trees do not.
BLOCK_ROWS = 256
# Features in a row; for more, columns are predicted one by one.
MAX_PLACES = 20_000


class PackedTreeColumns:
    """The trees of all columns, as a few arrays.

    Parameters
    ----------
    columns : sequence of BoostedCRF
        Exact models with two labels.
    window : CascadeWindow
    n_features : int
        Number of features without those of the cascade.
    """

    def __init__(
        self, columns: Sequence[BoostedCRF], window: CascadeWindow, n_features: int
    ) -> None:
        self.window, self.n_features = window, n_features
        self.trees = PackedTrees([column.trees_ for column in columns])
        self.has_pairs = columns[0].trees_.has_pairs

    @classmethod
    def from_columns(
        cls, columns: Sequence[Any], window: CascadeWindow, n_features: int
    ) -> PackedTreeColumns | None:
        """Return the packed columns; None if they are not boosted trees, or have too many features."""
        is_packable = columns and all(
            type(column) is BoostedCRF and column.beam_width is None for column in columns
        )
        if not is_packable or len({column.trees_.has_pairs for column in columns}) > 1:
            return None
        packed = cls(columns, window, n_features)
        return packed if packed.trees.n_places <= MAX_PLACES else None

    def holds(self, columns: Sequence[Any]) -> bool:
        """Return whether these are the trees of the columns."""
        own = self.trees.ensembles
        return len(own) == len(columns) and all(
            column.trees_ is trees for column, trees in zip(columns, own, strict=True)
        )

    def predict_bits(self, X: Sequences, *, rounded: bool) -> Floats:
        """Return the probability that each bit is 1, shape (n_steps, n_columns)."""
        matrix = sp.csr_matrix(X.matrix)
        arrays = matrix.indptr, matrix.indices, matrix.data
        rows = np.arange(X.n_steps, dtype=np.int32)
        window, trees = self.window, self.trees
        if window.n_columns == 0:
            rows, first = unique_rows(*arrays)
            arrays = take_rows(first, *arrays)
        out = np.empty((X.n_steps, trees.ensemble_begin.size - 1))
        features = trees.place, trees.n_places, trees.depth, self.n_features
        kernel: Any = _predict_rows if window.n_columns == 0 else _predict_cascade
        options: Any = () if window.n_columns == 0 else (*window, rounded)
        kernel(
            *trees.arrays, trees.tree_begin, trees.ensemble_begin, trees.has_categories, *features,
            *arrays, rows, X.offsets, self.has_pairs, *options, out,
        )  # fmt: skip
        return out


@njit(nogil=True, cache=True)
def _fill_rows(
    indptr: Ints32, indices: Ints32, data: Floats, first: int, last: int, place: Ints32, x: Floats
) -> None:
    """Write the rows ``first <= i < last`` of a CSR matrix; entries of other features are not needed."""
    x[: last - first] = 0.0
    for row in range(first, last):
        for e in range(indptr[row], indptr[row + 1]):
            at = place[indices[e]]
            if at >= 0:
                x[row - first, at] = data[e]


@njit(nogil=True, cache=True)
def _forward_backward(
    scores: Floats, rows: Ints32, t0: int, t1: int, has_pairs: bool, k: int, out: Floats
) -> None:
    """Write the marginals of one sequence into column ``k`` of ``out``."""
    if not has_pairs:
        for t in range(t0, t1):
            s = scores[rows[t]]
            out[t, k] = 1.0 / (1.0 + np.exp(s[0, 2] - s[1, 2]))
        return
    s = scores[rows[t0]]
    odds = s[1, 2] - s[0, 2]
    out[t0, k] = odds
    for t in range(t0 + 1, t1):
        s = scores[rows[t]]
        odds = log_add(s[1, 0], odds + s[1, 1]) - log_add(s[0, 0], odds + s[0, 1])
        out[t, k] = odds
    evidence = 0.0
    for t in range(t1 - 1, t0 - 1, -1):
        if t < t1 - 1:
            s = scores[rows[t + 1]]
            evidence = log_add(s[0, 1], s[1, 1] + evidence) - log_add(s[0, 0], s[1, 0] + evidence)
        out[t, k] = 1.0 / (1.0 + np.exp(-(out[t, k] + evidence)))


@njit(nogil=True, cache=True)
def _predict_rows(
    nodes: Any,
    label_sets: Floats,
    category_set: Ints32,
    category_sets: Any,
    tree_begin: Ints,
    ensemble_begin: Ints,
    has_categories: bool,
    place: Ints32,
    n_places: int,
    depth: int,
    n_features: int,
    indptr: Ints32,
    indices: Ints32,
    data: Floats,
    rows: Ints32,
    offsets: Ints,
    has_pairs: bool,
    out: Floats,
) -> None:
    """Write the probabilities of all bits of independent columns; ``rows`` has the row of each step."""
    n_rows = indptr.size - 1
    x, stack = np.empty((BLOCK_ROWS, n_places)), np.empty(depth, dtype=np.int64)
    n_columns = ensemble_begin.size - 1
    scores = np.zeros((n_columns, n_rows, 2, 3))
    for begin in range(0, n_rows, BLOCK_ROWS):
        stop = min(begin + BLOCK_ROWS, n_rows)
        _fill_rows(indptr, indices, data, begin, stop, place, x)
        for k in range(n_columns):
            add_packed_trees(
                nodes, label_sets, category_set, category_sets, tree_begin, ensemble_begin[k],
                ensemble_begin[k + 1], has_categories, x, stop - begin, stack,
                scores[k, begin:stop],
            )  # fmt: skip
    for k in range(n_columns):
        for i in range(offsets.size - 1):
            if offsets[i] < offsets[i + 1]:
                _forward_backward(scores[k], rows, offsets[i], offsets[i + 1], has_pairs, k, out)


@njit(nogil=True, cache=True)
def _predict_cascade(
    nodes: Any,
    label_sets: Floats,
    category_set: Ints32,
    category_sets: Any,
    tree_begin: Ints,
    ensemble_begin: Ints,
    has_categories: bool,
    place: Ints32,
    n_places: int,
    depth: int,
    n_features: int,
    indptr: Ints32,
    indices: Ints32,
    data: Floats,
    rows: Ints32,
    offsets: Ints,
    has_pairs: bool,
    n_seen: int,
    before: int,
    after: int,
    rounded: bool,
    out: Floats,
) -> None:
    """Write the probabilities of all bits of a cascade."""
    n_sequences, longest = offsets.size - 1, 0
    for i in range(n_sequences):
        longest = max(longest, offsets[i + 1] - offsets[i])
    size = max(longest, BLOCK_ROWS)
    x, stack = np.empty((size, n_places)), np.empty(depth, dtype=np.int64)
    scores = np.empty((size, 2, 3))
    local = np.arange(size).astype(np.int32)
    first = 0
    while first < n_sequences:
        last = first + 1  # as many sequences as fit
        while last < n_sequences and offsets[last + 1] - offsets[first] <= size:
            last += 1
        t0, t1 = offsets[first], offsets[last]
        _fill_rows(indptr, indices, data, t0, t1, place, x)
        for k in range(ensemble_begin.size - 1):
            for i in range(first, last):
                _fill_cascade(
                    out, offsets[i], offsets[i + 1], k, n_features, place, n_seen, before, after,
                    rounded, x[offsets[i] - t0 :],
                )  # fmt: skip
            scores[: t1 - t0] = 0.0
            add_packed_trees(
                nodes, label_sets, category_set, category_sets, tree_begin, ensemble_begin[k],
                ensemble_begin[k + 1], has_categories, x, t1 - t0, stack, scores,
            )  # fmt: skip
            for i in range(first, last):
                if offsets[i] < offsets[i + 1]:
                    _forward_backward(
                        scores, local, offsets[i] - t0, offsets[i + 1] - t0, has_pairs, k, out[t0:]
                    )
        first = last


@njit(nogil=True, cache=True)
def _fill_cascade(
    out: Floats,
    t0: int,
    t1: int,
    k: int,
    n_features: int,
    place: Ints32,
    n_seen: int,
    before: int,
    after: int,
    rounded: bool,
    x: Floats,
) -> None:
    """Write the cascade features of column ``k`` for one sequence; see `CascadeWindow.extend`."""
    feature = n_features
    for c in range(min(n_seen, k)):
        for shift in range(-before, after + 1):
            if shift == 0:
                continue
            one, zero = place[feature], place[feature + 1]
            feature += 2
            if one < 0 and zero < 0:
                continue
            for t in range(t0, t1):
                u = t + shift
                p_one, p_zero = 0.0, 0.0
                if t0 <= u < t1:
                    p = out[u, k - 1 - c]
                    if not rounded:
                        p_one = np.rint(p * PRECISION) / PRECISION
                        p_zero = 1.0 - p_one
                    elif abs(p - 0.5) > TIE_WIDTH:
                        p_one = 1.0 if p > 0.5 else 0.0
                        p_zero = 1.0 - p_one
                if one >= 0:
                    x[t - t0, one] = p_one
                if zero >= 0:
                    x[t - t0, zero] = p_zero
