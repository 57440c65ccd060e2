"""SubsequenceKernel: the similarity of two steps by the subsequences around them.

The window of a step holds the feature sets of the steps before and after it. With ``c(x, z)`` common
features of two steps, the kernel of two windows is a sum over pairs of index sequences i and j of equal
length n,

    K_n = sum_{i, j} prod_k c(a[i_k], b[j_k]) decay^(span(i) + span(j)),     span(i) = i_n - i_1 + 1

that is, over all common subsequences, gaps allowed, each with a weight that decreases with its span (Lodhi
et al. 2002; Bunescu & Mooney 2005 for sets). The sum over n up to ``max_length`` is computed exactly in
O(max_length width^2).

Steps outside the sequence are empty sets. They match nothing, which is the same as a shorter window.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from seqlab.data.convert import as_sequences
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.features import SequenceVectorizer, Window
from seqlab.features.window import check_window
from seqlab.kernels._subsequence_loops import fill_kernel, fill_own
from seqlab.kernels.functions import LinearKernel, Matrix
from seqlab.kernels.merging import merge_equal_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Entries of the table of matches of distinct steps (64 MB): rows are processed in blocks with smaller
# tables.
MAX_MATCHES = 1 << 23


class SubsequenceKernel(BaseEstimator):
    """Similarity of two steps by the common subsequences of their windows.

    A kernel for `M3N` and `StructuredSVM` (``kernel=SubsequenceKernel(...)``), and for scikit-learn on
    the rows of `windows`.

    Parameters
    ----------
    max_length : int, default=3
        Maximum number of steps in a subsequence.
    decay : float, default=0.75
        Factor for each step that a subsequence spans, in each of the two windows; in (0, 1].
    window : (int, int), default=(5, 5)
        Number of steps before and after the step.
    anchor : {"pivot", "plain", "marked"}, default="pivot"
        "pivot": only subsequences that contain the step itself, in both windows. "plain": all
        subsequences of the two windows; where the step is does not matter. "marked": as "plain", but the
        steps themselves have one more feature in common.
    conjunctions : bool, default=False
        Whether an element of a subsequence is any non-empty set of features of a step (``2^c - 1`` matches)
        instead of one feature (``c`` matches). Needs features that are 0 or 1.
    normalize : bool or "length", default=True
        Divide by ``sqrt(k(a, a) k(b, b))``, so that ``k(a, a) = 1``; the kernel of two windows without any
        subsequence is 1 then. "length" does so for each length before the lengths are summed, so that the
        long subsequences do not count less because of the decay.

    Notes
    -----
    Features count with their values: ``c(x, z)`` is the inner product, which is the number of common
    features if all values are 0 or 1. All anchors give positive semidefinite kernels. Equal windows and
    equal steps are merged before anything is computed.

    References
    ----------
    Lodhi, Saunders, Shawe-Taylor, Cristianini & Watkins (2002), *Text classification using string
    kernels*. Bunescu & Mooney (2005), *Subsequence kernels for relation extraction*. Nagesh, Nair &
    Ramakrishnan, *Comparison between explicit learning and implicit modeling of relational features in
    structured output spaces*.

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab import M3N, SubsequenceKernel
    >>> X = [np.array([[1.0, 0], [0, 0], [0, 1], [0, 0]]), np.array([[0.0, 1], [0, 0], [0, 1], [0, 0]])]
    >>> y = [["-", "-", "after a", "-"], ["-", "-", "after b", "-"]]
    >>> kernel = SubsequenceKernel(max_length=2, window=(2, 0))
    >>> M3N(kernel=kernel, C=10, random_state=0).fit(X, y).predict(X)[0].tolist()
    ['-', '-', 'after a', '-']

    The kernel between whole sequences:

    >>> plain = SubsequenceKernel(max_length=2, decay=0.5, anchor="plain", normalize=False)
    >>> plain.between([[["c"], ["a"], ["t"]]], [[["c"], ["a"], ["r"]]])
    array([[0.5625]])
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "max_length": [Interval(Integral, 1, None, closed="left")],
        "decay": [Interval(Real, 0, 1, closed="right")],
        "window": [tuple, list],
        "anchor": [StrOptions({"pivot", "plain", "marked"})],
        "conjunctions": ["boolean"],
        "normalize": ["boolean", StrOptions({"length"})],
    }

    def __init__(
        self,
        max_length: int = 3,
        decay: float = 0.75,
        *,
        window: tuple[int, int] = (5, 5),
        anchor: str = "pivot",
        conjunctions: bool = False,
        normalize: bool | str = True,
    ) -> None:
        self.max_length = max_length
        self.decay = decay
        self.window = window
        self.anchor = anchor
        self.conjunctions = conjunctions
        self.normalize = normalize

    def __call__(self, A: Any, B: Any = None) -> Floats:
        """Return the kernel between the rows of two matrices of windows.

        Parameters
        ----------
        A, B : array or sparse matrix of shape (n_steps, width * n_features)
            Windows, as returned by `windows`. B is A by default.

        Returns
        -------
        array of shape (n_steps of A, n_steps of B)
        """
        A = _as_matrix(A)
        rows, place = merge_equal_rows(A)
        bound, columns = self.bind(rows), place
        if B is not None:
            others, columns = merge_equal_rows(_as_matrix(B))
            bound = self.bind(others)
        return np.ascontiguousarray(bound.rows(rows)[place][:, columns])

    def windows(self, X: Any) -> Matrix:
        """Return the window of every step as one row: the step itself, the steps before, the steps after.

        Parameters
        ----------
        X : Sequences, or list of matrices, one per sequence

        Returns
        -------
        array or CSR matrix of shape (n_steps, width * n_features)
        """
        before, after = self._check()
        return Window(before=before, after=after, boundary=False).fit_transform(X).matrix

    def inputs(self, X: Sequences) -> Matrix:
        """Return what the kernel compares for every step: its window."""
        return self.windows(X)

    @property
    def width(self) -> int:
        """Number of steps in a window."""
        return sum(self._check()) + 1

    def step_order(self) -> Ints:
        """Return where the steps of a window are in a row of `windows`, from the first step to the last."""
        before, after = self._check()
        return np.array([*range(1, before + 1), 0, *range(before + 1, before + 1 + after)])

    def scales(self, windows: Matrix) -> Floats:
        """Return the factor of each length for each window, by which the kernel is normalised.

        Returns
        -------
        array of shape (n_windows, n_lengths)
            One column per length, up to ``max_length`` or the width of a window, whichever is smaller. Zeros
            if the window has no subsequence.
        """
        return self.bind(windows).scales

    def bind(self, B: Matrix) -> _BoundSubsequences:
        """Fix the right-hand windows."""
        order = self.step_order()
        width = order.size
        if B.shape[1] % width:
            raise InputError(
                f"the windows have {B.shape[1]} columns, which is not a multiple of the {width} steps of "
                f"window={tuple(self.window)}: use the method `windows`"
            )
        return _BoundSubsequences(self, B, order, int(self.window[0]))

    def between(self, A: Any, B: Any = None) -> Floats:
        """Return the kernel between whole sequences, of any lengths; ``window`` has no influence.

        Parameters
        ----------
        A, B : list of sequences
            Each a matrix, or a list of steps with their features as strings or dicts. B is A by default.

        Returns
        -------
        array of shape (n_sequences of A, n_sequences of B)
        """
        self._check()
        if self.anchor != "plain":
            raise InputError("sequences do not have a pivot: between needs anchor='plain'")
        n_first = len(A)
        every = [*A, *B] if B is not None else list(A)
        sequences, _ = as_sequences(every, vectorizer=SequenceVectorizer(), fit_vectorizer=True)
        width = max(int(sequences.lengths.max(initial=1)), 1)
        rows = np.repeat(np.arange(len(every)), sequences.lengths)
        padded = _spread(sequences, rows, width)
        fixed = padded if B is None else padded[n_first:]
        return _BoundSubsequences(self, fixed, np.arange(width), 0).rows(padded[:n_first])

    def _check(self) -> tuple[int, int]:
        """Check the parameters; return the number of steps before and after."""
        self._validate_params()
        window = check_window(self.window)
        if float(self.decay) ** 2 == 0.0:
            raise InputError(f"decay={self.decay} is too small: its square is 0 in floating point")
        return window

    def _check_state(self) -> None:
        """Raise an `InputError` if restored parameters are not valid."""
        self._check()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class _Windows(NamedTuple):
    """Windows as numbers of distinct steps."""

    ids: Ints  # (n_windows, width), from the first step to the last
    steps: Matrix  # (n_distinct_steps, n_features)


class _BoundSubsequences:
    """A subsequence kernel with fixed right-hand windows."""

    def __init__(self, kernel: SubsequenceKernel, B: Matrix, order: Ints, pivot: int) -> None:
        self._kernel = kernel
        self._order = order
        self._pivot = pivot
        self._n_columns = B.shape[1]
        self._n_lengths = min(int(kernel.max_length), order.size)  # no window has longer ones
        self._fixed = self._split(B)
        with np.errstate(over="ignore", invalid="ignore"):  # see `_check_range`
            self._matches = LinearKernel().bind(self._fixed.steps)
            self.scales = self._own_scales(self._fixed)

    def rows(self, A: Matrix) -> Floats:
        """Return ``k(a, b)`` for the windows of ``A`` and the fixed ones, shape (n_rows, n_fixed)."""
        if A.shape[1] != self._n_columns:
            raise InputError(
                f"the windows have {A.shape[1]} and {self._n_columns} columns; they must have the same "
                "features"
            )
        windows = self._split(A)
        with np.errstate(over="ignore", invalid="ignore"):  # see `_check_range`
            return self._values(windows)

    def _values(self, windows: _Windows) -> Floats:
        """Return the kernel between windows and the fixed ones."""
        scales = self._own_scales(windows)
        out = np.empty((windows.ids.shape[0], self._fixed.ids.shape[0]))
        for part in self._blocks(windows, self._fixed.steps.shape[0]):
            ids, steps = _used_steps(windows, part)
            matches = self._count(self._matches.rows(steps))
            fill_kernel(
                matches,
                ids,
                self._fixed.ids,
                scales[part],
                self.scales,
                *self._options(),
                out[part],
            )
        _check_range(out)
        if self._kernel.normalize:
            is_empty, other = ~scales.any(axis=1), ~self.scales.any(axis=1)
            out[np.ix_(is_empty, other)] = 1.0
        return out

    def own_values(self, windows: _Windows) -> Floats:
        """Return ``K_n(a, a)`` of each window, shape (n_windows, n_lengths)."""
        out = np.empty((windows.ids.shape[0], self._n_lengths))
        for part in self._blocks(windows, windows.steps.shape[0]):
            ids, steps = _used_steps(windows, part)
            matches = self._count(LinearKernel().bind(steps).rows(steps))
            fill_own(matches, ids, *self._options(), out[part])
        return out

    def _own_scales(self, windows: _Windows) -> Floats:
        """Return the factor of each length for each window; zeros if it has no subsequence."""
        normalize = self._kernel.normalize
        shape = (windows.ids.shape[0], self._n_lengths)
        if not normalize:
            return np.ones(shape)
        own = self.own_values(windows)
        _check_range(own)
        if normalize == "length":
            n_lengths = (own > 0.0).sum(axis=1, keepdims=True)
        else:
            own = np.repeat(own.sum(axis=1, keepdims=True), shape[1], axis=1)
            n_lengths = np.ones((shape[0], 1))
        positive = own > 0.0
        return np.where(
            positive, 1.0 / np.sqrt(np.where(positive, own, 1.0) * np.maximum(n_lengths, 1)), 0.0
        )

    def _options(self) -> tuple[int, bool, float, float]:
        """Return pivot, whether it is obligatory, the factor of its mark, and the decay."""
        kernel = self._kernel
        # One more common feature: c + 1 matches, or 2^(c + 1) - 1 = 2 (2^c - 1) + 1.
        mark = (2.0 if kernel.conjunctions else 1.0) if kernel.anchor == "marked" else 0.0
        return self._pivot, kernel.anchor == "pivot", mark, float(kernel.decay)

    def _count(self, products: Floats) -> Floats:
        """Return the number of matches, given the number of common features."""
        return np.exp2(products) - 1.0 if self._kernel.conjunctions else products

    def _split(self, rows: Matrix) -> _Windows:
        """Split windows into steps and merge the equal ones."""
        width = self._order.size
        n_features = rows.shape[1] // width
        shape = (rows.shape[0] * width, n_features)
        if sp.issparse(rows):
            steps = sp.csr_matrix(rows.reshape(shape))
            steps.eliminate_zeros()
            steps.sort_indices()
        else:
            steps = np.ascontiguousarray(rows, dtype=np.float64).reshape(shape)
        merged = merge_equal_rows(steps)
        values = merged.rows.data if sp.issparse(merged.rows) else merged.rows
        if self._kernel.conjunctions and not np.isin(values, (0.0, 1.0)).all():
            value = values[~np.isin(values, (0.0, 1.0))][0]
            raise InputError(f"conjunctions=True needs features that are 0 or 1, found {value:g}")
        ids = merged.place.reshape(rows.shape[0], width)[:, self._order]
        return _Windows(np.ascontiguousarray(ids), merged.rows)

    def _blocks(self, windows: _Windows, n_columns: int) -> list[slice]:
        """Return blocks of windows whose tables of matches have a bounded size."""
        n, width = windows.ids.shape
        size = n if windows.steps.shape[0] * n_columns <= MAX_MATCHES else 0
        size = max(size, MAX_MATCHES // max(width * n_columns, 1), 1)
        return [slice(first, min(first + size, n)) for first in range(0, n, size)]


def _used_steps(windows: _Windows, part: slice) -> _Windows:
    """Return some windows with only the steps that they contain."""
    used, ids = np.unique(windows.ids[part], return_inverse=True)
    shape = windows.ids[part].shape
    return _Windows(np.ascontiguousarray(ids.reshape(shape), dtype=np.int64), windows.steps[used])


def _spread(sequences: Sequences, rows: Ints, width: int) -> Matrix:
    """Return one row per sequence with the features of its steps side by side, padded with zeros."""
    n_features = sequences.n_features
    position = np.arange(sequences.n_steps) - sequences.offsets[:-1][rows]
    entries = sp.coo_matrix(sequences.matrix)
    column = position[entries.row] * n_features + entries.col
    shape = (len(sequences), width * n_features)
    return sp.csr_matrix((entries.data, (rows[entries.row], column)), shape)


def _check_range(values: Floats) -> None:
    """Raise an `InputError` if values of the kernel have overflowed."""
    if not np.isfinite(values).all():
        raise InputError(
            "the kernel exceeds the range of numbers: the values of the features are too large, or a step "
            "has too many features for conjunctions=True"
        )


def _as_matrix(rows: Any) -> Matrix:
    """Return windows as a matrix; raise an `InputError` if they are not two-dimensional and finite."""
    matrix: Any = sp.csr_matrix(rows) if sp.issparse(rows) else np.asarray(rows, dtype=np.float64)
    if matrix.ndim != 2:
        raise InputError(f"windows must be a matrix, got an array of {matrix.ndim} dimensions")
    values = matrix.data if sp.issparse(matrix) else matrix.ravel()
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        row = bad[0] // matrix.shape[1]
        if sp.issparse(matrix):
            row = np.searchsorted(matrix.indptr, bad[0], side="right") - 1
        raise InputError(f"row {row} of the windows contains NaN or infinity")
    return matrix
