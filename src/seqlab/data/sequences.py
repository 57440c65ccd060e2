"""Sequences: the only internal form of sequence data.

The steps of all sequences are stacked in one matrix: those of sequence ``i`` are the rows
``offsets[i]:offsets[i + 1]``. The matrix is a C-contiguous float64 array or a CSR matrix with int32
indices, so that kernels need to support two types only. `Sequences` has a length, a shape and array
indexing over *sequences*, which is all that scikit-learn's splitters need.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from seqlab.data._canonical import Matrix, to_canonical
from seqlab.data.errors import InputError
from seqlab.data.vocabulary import Vocabulary


class Sequences:
    """The stacked feature matrices of many sequences.

    Parameters
    ----------
    matrix : array or sparse matrix of shape (n_steps, n_features)
        The steps of all sequences, in order.
    offsets : array of shape (n_sequences + 1,)
        First row of each sequence, then ``n_steps``. Empty sequences are allowed.
    feature_names : sequence of str or Vocabulary, optional
        Names of the columns; those of a vocabulary are decoded on first use.

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
        self.matrix = to_canonical(matrix)
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
        """Stack one or more 2-D matrices: arrays, sparse matrices or lists of rows.

        An empty sequence is a matrix without rows, ``np.zeros((0, n_features))``.
        """
        blocks = [to_canonical(item, f"items[{i}]") for i, item in enumerate(items)]
        if not blocks:
            raise InputError("items is empty: at least one sequence is required")
        width = blocks[0].shape[1]
        for i, block in enumerate(blocks):
            if block.shape[1] != width:
                raise InputError(
                    f"items[{i}] has {block.shape[1]} features but items[0] has {width}"
                )
        offsets = to_offsets([block.shape[0] for block in blocks])
        if any(sp.issparse(block) for block in blocks):
            return cls(sp.vstack([sp.csr_matrix(block) for block in blocks], format="csr"), offsets)
        return cls(np.concatenate(blocks, axis=0), offsets)

    @classmethod
    def from_checked(
        cls, matrix: Matrix, offsets: NDArray[np.int64], names: Any = None
    ) -> Sequences:
        """Wrap arrays that are known to be valid, such as parts of other `Sequences`, without checks."""
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
        """Total number of steps."""
        return int(self.matrix.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_sequences, n_features)``: splitters of scikit-learn count the first axis."""
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
        if isinstance(key, tuple):  # scikit-learn writes X[key, ...]
            if len(key) != 2 or key[1] is not Ellipsis:
                raise IndexError("Sequences are indexed along their first axis only")
            key = key[0]
        if isinstance(key, int | np.integer):
            index = range(len(self))[key]
            return self.matrix[self.offsets[index] : self.offsets[index + 1]]
        chosen = np.arange(len(self))[key]
        lengths = self.lengths[chosen]
        offsets = to_offsets(lengths)
        # A row is the first row of its sequence plus its position in the sequence.
        position = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        rows = np.repeat(self.offsets[:-1][chosen], lengths) + position
        return Sequences.from_checked(self.matrix[rows], offsets, self._names)

    def split(self, stacked: Any) -> list[Any]:
        """Split an array with one row per step into one array per sequence."""
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
    def positions(self) -> NDArray[np.int64]:
        """Position of each step of the block in its sequence, counted from 0."""
        return np.arange(self.n_steps) - np.repeat(self.offsets[:-1], np.diff(self.offsets))

    @property
    def matrix(self) -> Matrix:
        """The whole matrix of the parent; only its rows `steps` belong to the block."""
        return self.parent.matrix

    def __len__(self) -> int:
        return self.last - self.first


def to_offsets(lengths: list[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """First row of each sequence in the stacked steps, then the number of steps."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def integer_lengths(lengths: Iterable[int]) -> NDArray[np.int64]:
    """Check that the ``lengths`` of a user are counts; return them as an array (n_sequences,)."""
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
        at = _find_non_integer(values)
        raise InputError(f"{message}, but lengths[{at}] is {values[at]!r}")
    if np.any(given < 0):
        raise InputError(f"lengths[{int(np.argmax(given < 0))}] is negative")
    return np.minimum(given, np.iinfo(np.int64).max).astype(np.int64)


def _canonical_offsets(offsets: ArrayLike, n_steps: int) -> NDArray[np.int64]:
    try:
        array = np.asarray(offsets)
    except ValueError:  # ragged
        raise InputError("offsets must be a list of integers") from None
    if array.ndim == 1 and array.size and array.dtype.kind not in "iu":
        values = array.tolist()
        at = _find_non_integer(values)
        raise InputError(f"offsets must be integers, but offsets[{at}] is {values[at]!r}")
    if array.ndim != 1 or array.size == 0 or array[0] != 0 or array[-1] != n_steps:
        raise InputError(f"offsets must start at 0 and end at the {n_steps} steps of the matrix")
    if np.any(array[1:] < array[:-1]):
        raise InputError("offsets must not decrease")
    array = array.astype(np.int64)  # a copy, because it is made read-only
    array.flags.writeable = False
    return array


def _find_non_integer(values: list[Any]) -> int:
    """Index of the first entry that is not a whole number, or 0 if all of them are."""
    for at, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
            return at
    return 0
