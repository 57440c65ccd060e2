"""ChainScores and Mask: the input of chain inference.

The score of a labeling ``y`` of one sequence with steps ``0 .. T-1`` is::

    score(y) = start[y_0] + sum_t unary[t, y_t] + sum_{t>0} pairwise[t][y_{t-1}, y_t] + end[y_{T-1}]

``pairwise[i, j]`` is *from label i to label j*, everywhere in the library. With scores per step,
``pairwise[t]`` is from step ``t - 1`` to step ``t``; the entry of a sequence's first step is never
read. A forbidden label or transition has the score ``-inf``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError, NumericalError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# The scores as the kernels take them. A plain tuple, because calls with a named one take more time in numba.
ChainArrays: TypeAlias = tuple[
    Floats,  # unary (n_steps, n_labels)
    Floats,  # pairwise3 (1 or n_steps, n_labels, n_labels)
    int,  # stride: 0 for constant pairwise scores, 1 for scores per step
    Floats,  # start (n_labels,)
    Floats,  # end (n_labels,)
    NDArray[np.int64],  # offsets (n_sequences + 1,)
]


@dataclass(frozen=True, slots=True)
class ChainScores:
    """Scores of many chains, stacked.

    Parameters
    ----------
    unary : array of shape (n_steps, n_labels)
        Score of each label at each step of all sequences, stacked.
    pairwise : array of shape (n_labels, n_labels) or (n_steps, n_labels, n_labels)
        Score from the previous label (first label axis) to the current one.
    start, end : arrays of shape (n_labels,)
        Added at the first and at the last step of every sequence. Zeros by default.
    offsets : array of shape (n_sequences + 1,)
        Row where each sequence begins; the last entry is ``n_steps``.
    """

    unary: Floats
    pairwise: Floats
    start: Floats
    end: Floats
    offsets: NDArray[np.int64]

    def __init__(
        self,
        unary: Floats,
        pairwise: Floats,
        start: Floats | None = None,
        end: Floats | None = None,
        offsets: NDArray[np.int64] | None = None,
    ) -> None:
        unary = np.ascontiguousarray(unary, dtype=np.float64)
        if unary.ndim != 2:
            raise InputError(f"unary must be (n_steps, n_labels), got shape {unary.shape}")
        n_steps, n_labels = unary.shape
        pairwise = np.ascontiguousarray(pairwise, dtype=np.float64)
        if pairwise.shape not in ((n_labels, n_labels), (n_steps, n_labels, n_labels)):
            raise InputError(
                f"pairwise must be ({n_labels}, {n_labels}) or ({n_steps}, {n_labels}, {n_labels}) "
                f"to match unary, got shape {pairwise.shape}"
            )
        if offsets is None:
            offsets = np.array([0, n_steps])
        offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        if offsets.ndim != 1 or offsets.size == 0 or offsets[0] != 0 or offsets[-1] != n_steps:
            raise InputError(f"offsets must run from 0 to the {n_steps} steps of unary")
        object.__setattr__(self, "unary", unary)
        object.__setattr__(self, "pairwise", pairwise)
        object.__setattr__(self, "start", _label_vector(start, n_labels, "start"))
        object.__setattr__(self, "end", _label_vector(end, n_labels, "end"))
        object.__setattr__(self, "offsets", offsets)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.unary.shape[1])

    @property
    def n_steps(self) -> int:
        """Number of steps of all sequences together."""
        return int(self.unary.shape[0])

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return int(self.offsets.size - 1)

    @property
    def per_step(self) -> bool:
        """Whether ``pairwise`` differs from step to step."""
        return self.pairwise.ndim == 3

    def with_unary(self, unary: Floats) -> ChainScores:
        """Return scores with other unary scores; everything else is the same."""
        return ChainScores(unary, self.pairwise, self.start, self.end, self.offsets)

    def check(self) -> None:
        """Raise `NumericalError` if a score is NaN or ``+inf`` (``-inf`` means forbidden)."""
        bad = np.isnan(self.unary) | np.isposinf(self.unary)
        if bad.any():
            step = int(np.argmax(bad.any(axis=1)))
            sequence = int(np.searchsorted(self.offsets, step, side="right") - 1)
            position = step - int(self.offsets[sequence])
            raise NumericalError(
                f"a score of sequence {{sequence}} at position {position} is NaN or +inf", sequence
            )
        for name in ("pairwise", "start", "end"):
            array = getattr(self, name)
            if np.isnan(array).any() or np.isposinf(array).any():
                raise NumericalError(f"the {name} scores contain NaN or +inf")

    def masked(self, mask: Mask | None) -> ChainScores:
        """The same scores, with ``-inf`` for everything that ``mask`` forbids."""
        if mask is None:
            return self
        mask.check(self.n_steps, self.n_labels)
        unary, pairwise, start, end = self.unary, self.pairwise, self.start, self.end
        if mask.steps is not None:
            unary = np.where(mask.steps, unary, -np.inf)
        if mask.transitions is not None:
            pairwise = np.where(mask.transitions, pairwise, -np.inf)
        if mask.start is not None:
            start = np.where(mask.start, start, -np.inf)
        if mask.end is not None:
            end = np.where(mask.end, end, -np.inf)
        return ChainScores(unary, pairwise, start, end, self.offsets)


@dataclass(frozen=True, slots=True)
class Mask:
    """Hard constraints: ``True`` means allowed, ``None`` means no constraint of that kind.

    Parameters
    ----------
    steps : boolean array of shape (n_steps, n_labels), optional
        Labels allowed at each step (lexicons, known or partly known labels).
    transitions : boolean array of shape (n_labels, n_labels), optional
        Allowed transitions from one label (first axis) to the next (tag schemes).
    start, end : boolean arrays of shape (n_labels,), optional
        Labels allowed at the first and at the last step.

    Notes
    -----
    Lists, and the integers 0 and 1, become boolean arrays. Other numbers raise `InputError`: floats are
    probably scores, for which 0 would mean the opposite.
    """

    steps: Bools | None = None
    transitions: Bools | None = None
    start: Bools | None = None
    end: Bools | None = None

    def __post_init__(self) -> None:
        for name, n_axes in (("steps", 2), ("transitions", 2), ("start", 1), ("end", 1)):
            part = getattr(self, name)
            if part is not None:
                object.__setattr__(self, name, _booleans(part, n_axes, f"mask.{name}"))
        if self.transitions is not None and len(set(self.transitions.shape)) != 1:
            raise InputError(f"mask.transitions must be square, got {self.transitions.shape}")

    def check(self, n_steps: int, n_labels: int) -> None:
        """Raise `InputError` if the shape of a part does not match the scores."""
        expected = {
            "steps": (n_steps, n_labels),
            "transitions": (n_labels, n_labels),
            "start": (n_labels,),
            "end": (n_labels,),
        }
        for name, shape in expected.items():
            part = getattr(self, name)
            if part is not None and part.shape != shape:
                raise InputError(f"mask.{name} must have shape {shape}, got {part.shape}")

    def __and__(self, other: Mask) -> Mask:
        """A mask that allows what both masks allow."""
        parts = {}
        for name in ("steps", "transitions", "start", "end"):
            a, b = getattr(self, name), getattr(other, name)
            if a is not None and b is not None and a.shape != b.shape:
                raise InputError(f"the masks' {name} have the shapes {a.shape} and {b.shape}")
            parts[name] = b if a is None else a if b is None else a & b
        return Mask(**parts)


def _booleans(part: ArrayLike, n_axes: int, name: str) -> Bools:
    """One part of a mask as a boolean array."""
    try:
        array = np.asarray(part)
    except ValueError:  # ragged
        raise InputError(f"{name} must be a boolean array, not lists of unequal length") from None
    if array.ndim != n_axes:
        raise InputError(f"{name} must have {n_axes} dimensions, got shape {array.shape}")
    if array.dtype.kind in "iu":
        odd = (array != 0) & (array != 1)
        if odd.any():
            where = [int(i) for i in np.unravel_index(np.argmax(odd), array.shape)]
            raise InputError(f"{name}{where} is {array[tuple(where)]}, expected True or False")
    elif array.dtype.kind != "b" and array.size:
        raise InputError(
            f"{name} must be boolean (True for allowed), got entries of type {array.dtype}"
        )
    return array.astype(np.bool_, copy=False)


def _label_vector(vector: Floats | None, n_labels: int, name: str) -> Floats:
    if vector is None:
        return np.zeros(n_labels)
    vector = np.ascontiguousarray(vector, dtype=np.float64)
    if vector.shape != (n_labels,):
        raise InputError(f"{name} must have shape ({n_labels},), got {vector.shape}")
    return vector
