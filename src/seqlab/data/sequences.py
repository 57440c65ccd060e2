"""Sequences: the one internal form of sequence data.

All steps of all sequences are stacked in one matrix; `offsets` says where each sequence begins:
the steps of sequence ``i`` are rows ``offsets[i]:offsets[i + 1]``. The matrix is a C-contiguous
float64 array or a CSR matrix with int32 indices, so that every kernel of the library sees one of
two types. `Sequences` has a length, a shape and array indexing over *sequences*, which is all that
scikit-learn's splitters need to cut it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError

# A C-contiguous float64 array or a CSR matrix with int32 indices (which type checkers cannot tell apart).
Matrix: TypeAlias = Any


class Sequences:
    """Feature matrices of many sequences, stacked.

    Parameters
    ----------
    matrix : array or sparse matrix of shape (n_steps, n_features)
        The steps of all sequences, one below the other.
    offsets : array of shape (n_sequences + 1,)
        Row where each sequence begins; the last entry is ``n_steps``. Empty sequences are allowed.
    feature_names : sequence of str, optional
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab.data import Sequences
    >>> seqs = Sequences(np.eye(3), [0, 2, 3])
    >>> len(seqs), seqs.shape, seqs.lengths.tolist()
    (2, (2, 3), [2, 1])
    >>> seqs[1]
    array([[0., 0., 1.]])
    """

    __slots__ = ("feature_names", "matrix", "offsets")

    matrix: Matrix
    offsets: NDArray[np.int64]
    feature_names: NDArray[np.object_] | None

    def __init__(
        self, matrix: Any, offsets: ArrayLike, *, feature_names: ArrayLike | None = None
    ) -> None:
        self.matrix = _canonical_matrix(matrix)
        self.offsets = _canonical_offsets(offsets, self.matrix.shape[0])
        self.feature_names = None
        if feature_names is not None:
            self.feature_names = np.asarray(feature_names, dtype=object)
            if self.feature_names.shape != (self.matrix.shape[1],):
                raise InputError(
                    f"feature_names has {self.feature_names.size} entries but the matrix has "
                    f"{self.matrix.shape[1]} columns"
                )

    @classmethod
    def from_list(cls, items: list[Any]) -> Sequences:
        """Stack a list of 2-D matrices (all dense or all sparse)."""
        offsets = np.zeros(len(items) + 1, dtype=np.int64)
        np.cumsum([item.shape[0] for item in items], out=offsets[1:])
        if any(sp.issparse(item) for item in items):
            return cls(sp.vstack([sp.csr_matrix(item) for item in items], format="csr"), offsets)
        return cls(np.concatenate(items, axis=0), offsets)

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return int(self.offsets.size - 1)

    @property
    def n_steps(self) -> int:
        """Number of steps of all sequences together."""
        return int(self.matrix.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_sequences, n_features)``: the first axis is what splitters count."""
        return self.n_sequences, self.n_features

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Steps per sequence, shape (n_sequences,)."""
        return np.diff(self.offsets)

    @property
    def is_sparse(self) -> bool:
        """Whether the matrix is CSR."""
        return sp.issparse(self.matrix)

    def __len__(self) -> int:
        return self.n_sequences

    def __iter__(self) -> Iterator[Matrix]:
        for i in range(len(self)):
            yield self[i]

    def __getitem__(self, key: Any) -> Any:
        """One sequence's matrix for an integer; a new `Sequences` for a slice, list or mask."""
        if isinstance(key, tuple):  # scikit-learn indexes as X[key, ...]
            if len(key) != 2 or key[1] is not Ellipsis:
                raise IndexError("Sequences are indexed along their first axis only")
            key = key[0]
        if isinstance(key, int | np.integer):
            index = range(len(self))[key]
            return self.matrix[self.offsets[index] : self.offsets[index + 1]]
        chosen = np.arange(len(self))[key]
        lengths = self.lengths[chosen]
        offsets = np.zeros(chosen.size + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        # Rows of the chosen sequences: each row is its sequence's start plus its place in it.
        place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        rows = np.repeat(self.offsets[:-1][chosen], lengths) + place
        return Sequences(self.matrix[rows], offsets, feature_names=self.feature_names)

    def split(self, stacked: Any) -> list[Any]:
        """Cut an array with one row per step into one piece per sequence."""
        return [stacked[a:b] for a, b in pairwise(self.offsets.tolist())]

    def locate(self, step: int) -> tuple[int, int]:
        """Sequence and position of a stacked row, for error messages."""
        sequence = int(np.searchsorted(self.offsets, step, side="right") - 1)
        return sequence, int(step - self.offsets[sequence])

    def __repr__(self) -> str:
        kind = f"CSR, {self.matrix.nnz} stored" if self.is_sparse else "dense"
        return (
            f"Sequences(n_sequences={self.n_sequences}, n_steps={self.n_steps}, "
            f"n_features={self.n_features}, {kind})"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(  # type: ignore[misc]
            state["matrix"], state["offsets"], feature_names=state["feature_names"]
        )


def _canonical_matrix(matrix: Any) -> Matrix:
    if sp.issparse(matrix):
        csr = sp.csr_matrix(matrix, dtype=np.float64)
        if csr.indices.dtype != np.int32:
            if csr.nnz > np.iinfo(np.int32).max or csr.shape[1] > np.iinfo(np.int32).max:
                raise InputError(
                    f"a sparse matrix with {csr.nnz} entries is too large for CSR int32"
                )
            csr.indices = csr.indices.astype(np.int32)
            csr.indptr = csr.indptr.astype(np.int32)
        return csr
    dense = np.ascontiguousarray(matrix, dtype=np.float64)
    if dense.ndim != 2:
        raise InputError(f"Expected 2D array, got {dense.ndim}D array instead: steps x features")
    return dense


def _canonical_offsets(offsets: ArrayLike, n_steps: int) -> NDArray[np.int64]:
    array = np.array(offsets, dtype=np.int64)
    if array.ndim != 1 or array.size == 0 or array[0] != 0 or array[-1] != n_steps:
        raise InputError(f"offsets must run from 0 to the {n_steps} steps of the matrix")
    if np.any(np.diff(array) < 0):
        raise InputError("offsets must not decrease")
    array.flags.writeable = False
    return array
