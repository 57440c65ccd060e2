"""Sequences: the one internal form of sequence data.

All steps of all sequences are stacked in one matrix; `offsets` says where each sequence begins:
the steps of sequence ``i`` are rows ``offsets[i]:offsets[i + 1]``. The matrix is a C-contiguous
float64 array or a CSR matrix with int32 indices, so that every kernel of the library sees one of
two types. `Sequences` has a length, a shape and array indexing over *sequences*, which is all that
scikit-learn's splitters need to cut it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError
from seqlab.data.vocabulary import Vocabulary

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
    feature_names : sequence of str or Vocabulary, optional
        Names of the columns; of a vocabulary they are made when someone asks for them.

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

    __slots__ = ("_names", "matrix", "offsets")

    matrix: Matrix
    offsets: NDArray[np.int64]
    _names: NDArray[np.object_] | Vocabulary | None

    def __init__(
        self,
        matrix: Any,
        offsets: ArrayLike,
        *,
        feature_names: ArrayLike | Vocabulary | None = None,
    ) -> None:
        self.matrix = _canonical_matrix(matrix)
        self.offsets = _canonical_offsets(offsets, self.matrix.shape[0])
        self._names = None
        if feature_names is not None:
            if isinstance(feature_names, Vocabulary):
                self._names, shape = feature_names, (len(feature_names),)
            else:
                self._names = np.asarray(feature_names, dtype=object)
                shape = self._names.shape
            if shape != (self.matrix.shape[1],):
                raise InputError(
                    f"feature_names has {math.prod(shape)} entries but the matrix has "
                    f"{self.matrix.shape[1]} columns"
                )

    @classmethod
    def from_list(cls, items: Iterable[Any]) -> Sequences:
        """Stack 2-D matrices: arrays, sparse matrices or lists of rows, at least one.

        An empty sequence is a matrix without rows, ``np.zeros((0, n_features))``.
        """
        blocks = [_canonical_matrix(item, f"items[{i}]") for i, item in enumerate(items)]
        if not blocks:
            raise InputError("items is empty: at least one sequence is required")
        width = blocks[0].shape[1]
        for i, block in enumerate(blocks):
            if block.shape[1] != width:
                raise InputError(
                    f"items[{i}] has {block.shape[1]} features but items[0] has {width}"
                )
        offsets = np.zeros(len(blocks) + 1, dtype=np.int64)
        np.cumsum([block.shape[0] for block in blocks], out=offsets[1:])
        if any(sp.issparse(block) for block in blocks):
            return cls(sp.vstack([sp.csr_matrix(block) for block in blocks], format="csr"), offsets)
        return cls(np.concatenate(blocks, axis=0), offsets)

    @classmethod
    def of_checked(cls, matrix: Matrix, offsets: NDArray[np.int64], names: Any = None) -> Sequences:
        """Wrap what is known to be as it should, such as parts of other `Sequences`, without a check."""
        new = cls.__new__(cls)
        offsets.flags.writeable = False
        new.matrix, new.offsets, new._names = matrix, offsets, names
        return new

    @property
    def feature_names(self) -> NDArray[np.object_] | None:
        """Names of the columns, shape (n_features,), or None."""
        return self._names.names if isinstance(self._names, Vocabulary) else self._names

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
        return Sequences.of_checked(self.matrix[rows], offsets, self._names)

    def split(self, stacked: Any) -> list[Any]:
        """Cut an array with one row per step into one piece per sequence."""
        return [stacked[a:b] for a, b in pairwise(self.offsets.tolist())]

    def block(self, first: int, last: int) -> SequenceBlock:
        """Sequences ``first`` to ``last - 1`` as a view of this object; the matrix is not copied."""
        if not 0 <= first <= last <= self.n_sequences:
            raise InputError(
                f"block({first}, {last}) must satisfy 0 <= first <= last <= {self.n_sequences}"
            )
        offsets = self.offsets[first : last + 1] - self.offsets[first]
        offsets.flags.writeable = False
        return SequenceBlock(self, first, last, offsets)

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
        return {"matrix": self.matrix, "offsets": self.offsets, "feature_names": self._names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(  # type: ignore[misc]
            state["matrix"], state["offsets"], feature_names=state["feature_names"]
        )


@dataclass(frozen=True, slots=True, eq=False)
class SequenceBlock:
    """Consecutive sequences of a `Sequences`, as returned by `Sequences.block`.

    Attributes
    ----------
    parent : Sequences
        The data that the block is a part of.
    first, last : int
        The block holds the sequences ``first`` to ``last - 1`` of the parent.
    offsets : array of shape (last - first + 1,)
        Position of each sequence in the block, counted from the first step of the block.
    """

    parent: Sequences
    first: int
    last: int
    offsets: NDArray[np.int64]

    @property
    def begin(self) -> int:
        """Row of the parent's matrix that holds the first step of the block."""
        return int(self.parent.offsets[self.first])

    @property
    def stop(self) -> int:
        """Row of the parent's matrix after the last step of the block."""
        return int(self.parent.offsets[self.last])

    @property
    def steps(self) -> slice:
        """Rows of the parent's matrix that belong to the block: ``slice(begin, stop)``."""
        return slice(self.begin, self.stop)

    @property
    def n_steps(self) -> int:
        """Number of steps in the block."""
        return int(self.offsets[-1])

    @property
    def matrix(self) -> Matrix:
        """The whole matrix of the parent; only its rows `steps` belong to the block."""
        return self.parent.matrix

    def __len__(self) -> int:
        return self.last - self.first


def integer_lengths(lengths: Iterable[int]) -> NDArray[np.int64]:
    """Steps per sequence as the user gave them, checked to be counts; shape (n_sequences,)."""
    message = "lengths must be a list of integers, one per sequence"
    if isinstance(lengths, str | bytes | Mapping | Set) or not isinstance(lengths, Iterable):
        raise InputError(f"{message}, got {lengths!r}")
    if not isinstance(lengths, np.ndarray):
        lengths = list(lengths)
    try:
        given = np.asarray(lengths)
    except ValueError:  # ragged
        raise InputError(message) from None
    if given.size == 0 and given.ndim == 1:
        return np.zeros(0, dtype=np.int64)
    if given.ndim != 1:
        raise InputError(f"{message}, got {given.ndim} dimensions")
    if given.dtype.kind not in "iu":
        values = given.tolist() if isinstance(lengths, np.ndarray) else list(lengths)
        at = _first_that_is_no_integer(values)
        raise InputError(f"{message}, but lengths[{at}] is {values[at]!r}")
    if np.any(given < 0):
        raise InputError(f"lengths[{int(np.argmax(given < 0))}] is negative")
    return np.minimum(given, np.iinfo(np.int64).max).astype(np.int64)


def checked_csr(matrix: Any, place: str) -> Matrix:
    """Sparse matrix as CSR float64 whose indices lie inside it and are not repeated in a row.

    Compiled kernels trust the indices, and so do SciPy's own conversions: they are checked first.
    The given matrix is never modified, and not copied where it is right already. Linear in the
    number of stored entries.

    Parameters
    ----------
    matrix : sparse matrix or array
    place : str
        What errors call it.
    """
    if matrix.ndim != 2:
        raise InputError(
            f"Expected 2D array, got {matrix.ndim}D array instead: {place} must be steps x features"
        )
    _check_indices(matrix, place)
    csr = sp.csr_matrix(matrix, dtype=np.float64)
    if matrix.format not in ("csr", "csc", "bsr", "coo"):
        _check_indices(csr, place)
    if not csr.has_canonical_format:  # unsorted, or repeated
        summed = csr.copy()
        summed.sum_duplicates()
        if summed.nnz < csr.nnz:
            return summed
    return csr


def _check_indices(matrix: Any, place: str) -> None:
    """Refuse a sparse matrix that points outside itself (formats with index arrays)."""
    if matrix.format == "coo":
        for axis, indices in zip(("row", "column"), (matrix.row, matrix.col), strict=True):
            size = matrix.shape[0 if axis == "row" else 1]
            at = _first_outside(indices, size)
            if at is not None:
                where = place if axis == "row" else f"{place}[{matrix.row[at]}]"
                raise _outside(where, axis, indices[at], size)
        return
    if matrix.format not in ("csr", "csc", "bsr"):
        return
    rows, columns = getattr(matrix, "blocksize", (1, 1))
    n_rows, n_columns = matrix.shape[0] // rows, matrix.shape[1] // columns
    by_column = matrix.format == "csc"
    major, minor = (n_columns, n_rows) if by_column else (n_rows, n_columns)
    indptr, indices = matrix.indptr, matrix.indices
    if (
        indptr.shape != (major + 1,)
        or indptr[0] != 0
        or indptr[-1] > min(len(indices), len(matrix.data))
        or np.any(indptr[1:] < indptr[:-1])
    ):
        raise InputError(
            f"{place} is a damaged {matrix.format.upper()} matrix: indptr must rise from 0 to the "
            f"number of stored entries in {major + 1} numbers"
        )
    stored = indices[: indptr[-1]]
    at = _first_outside(stored, minor)
    if at is None:
        return
    if by_column:
        raise _outside(place, "row", stored[at], minor)
    row = int(np.searchsorted(indptr, at, side="right") - 1) * rows
    raise _outside(f"{place}[{row}]", "column", stored[at] * columns, matrix.shape[1])


def _first_outside(indices: NDArray[Any], size: int) -> int | None:
    if indices.size == 0 or (indices.min() >= 0 and indices.max() < size):
        return None
    return int(np.argmax((indices < 0) | (indices >= size)))


def _outside(place: str, axis: str, index: int, size: int) -> InputError:
    return InputError(f"{place} has the {axis} index {index}, but there are {size} {axis}s")


def _canonical_matrix(matrix: Any, place: str = "matrix") -> Matrix:
    if sp.issparse(matrix):
        csr = checked_csr(matrix, place)
        if csr.indices.dtype != np.int32:
            if csr.nnz > np.iinfo(np.int32).max or csr.shape[1] > np.iinfo(np.int32).max:
                raise InputError(
                    f"a sparse matrix with {csr.nnz} entries is too large for CSR int32"
                )
            csr.indices = csr.indices.astype(np.int32)
            csr.indptr = csr.indptr.astype(np.int32)
        return csr
    try:
        array = np.asarray(matrix)
        if array.dtype.kind not in "biufO":
            raise InputError(f"{place} must be numbers, steps x features, got dtype {array.dtype}")
        dense = np.asarray(array, dtype=np.float64, order="C")
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{place} must be numbers, steps x features: {error}") from None
    if dense.ndim != 2:
        raise InputError(
            f"Expected 2D array, got {dense.ndim}D array instead: {place} must be steps x features"
        )
    return dense


def _canonical_offsets(offsets: ArrayLike, n_steps: int) -> NDArray[np.int64]:
    try:
        array = np.asarray(offsets)
    except ValueError:  # ragged
        raise InputError("offsets must be a list of integers") from None
    if array.ndim == 1 and array.size and array.dtype.kind not in "iu":
        values = array.tolist()
        at = _first_that_is_no_integer(values)
        raise InputError(f"offsets must be integers, but offsets[{at}] is {values[at]!r}")
    if array.ndim != 1 or array.size == 0 or array[0] != 0 or array[-1] != n_steps:
        raise InputError(f"offsets must run from 0 to the {n_steps} steps of the matrix")
    if np.any(array[1:] < array[:-1]):
        raise InputError("offsets must not decrease")
    array = array.astype(np.int64)  # a copy: ours to lock
    array.flags.writeable = False
    return array


def _first_that_is_no_integer(values: list[Any]) -> int:
    """Index of the first entry that is no whole number; the first one where all are whole."""
    for at, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
            return at
    return 0
