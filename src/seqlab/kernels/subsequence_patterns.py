"""The subsequences behind a subsequence kernel: explicit features, and what a kernel model says about a
step.

A subsequence ``u`` has the feature ``phi_u(window) = sum over its occurrences of decay^span`` (times the
values of the features), and ``K_n(a, b)`` is the sum over subsequences of n elements of ``phi_u(a)
phi_u(b)``. A kernel model with coefficients ``alpha_j`` is therefore a linear model with the weights

    w_u = sum_j alpha_j phi_u(x_j)

and the score of a window is the sum over its own subsequences of ``w_u phi_u(x)``. Only these are counted
in the support windows, by a recursion over positions; no list of all subsequences is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations, product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.kernels.subsequence import SubsequenceKernel

Floats = NDArray[np.float64]
# Subsequences of one window that are listed; 100,000 take about a minute.
MAX_SUBSEQUENCES = 100_000
MARK = -1  # the feature that marks the pivot, with anchor="marked"


class Subsequence(NamedTuple):
    """A subsequence of feature sets.

    Attributes
    ----------
    elements : tuple of tuple of int
        Columns of the features of each element; -1 is the mark of the step itself (``anchor="marked"``).
    pivot : int or None
        Which element is the step itself; None unless ``anchor="pivot"``.
    """

    elements: tuple[tuple[int, ...], ...]
    pivot: int | None

    def to_text(self, names: Any = None) -> str:
        """Return the subsequence in words; the step itself is in brackets."""
        parts = []
        for place, element in enumerate(self.elements):
            known = [f"x{f}" if names is None else str(names[f]) for f in element if f != MARK]
            text = " & ".join(known)
            is_step = place == self.pivot or MARK in element
            parts.append(f"[{text}]" if is_step else text)
        return " ... ".join(parts) if parts else "(no subsequence)"


class SubsequenceWeight(NamedTuple):
    """A subsequence of a window and its part in the score.

    Attributes
    ----------
    subsequence : Subsequence
    value : float
        Its feature in the window, after normalisation.
    weight : float
        Its weight in the kernel model.
    """

    subsequence: Subsequence
    value: float
    weight: float

    @property
    def contribution(self) -> float:
        """Its part of the score."""
        return self.value * self.weight


def list_subsequences(kernel: SubsequenceKernel, window: Any) -> list[Subsequence]:
    """Return all subsequences of a window that the kernel counts.

    Parameters
    ----------
    kernel : SubsequenceKernel
    window : array or sparse row of shape (width * n_features,) or (1, width * n_features)
        A row of `SubsequenceKernel.windows`.
    """
    steps = _as_steps(kernel, window)[0]
    pivot = int(kernel.window[0])
    choices = [
        _elements(np.flatnonzero(step), kernel, is_step=position == pivot)
        for position, step in enumerate(steps)
    ]
    found: dict[Subsequence, None] = {}  # a set in the order of insertion
    for length in range(1, min(kernel.max_length, len(steps)) + 1):
        for positions in combinations(range(len(steps)), length):
            if kernel.anchor == "pivot" and pivot not in positions:
                continue
            place = positions.index(pivot) if kernel.anchor == "pivot" else None
            for elements in product(*(choices[position] for position in positions)):
                found[Subsequence(elements, place)] = None
                if len(found) > MAX_SUBSEQUENCES:
                    raise InputError(
                        f"the window has more than {MAX_SUBSEQUENCES:,} subsequences: use a smaller "
                        "max_length or window"
                    )
    return list(found)


def count_subsequences(
    kernel: SubsequenceKernel, windows: Any, subsequences: Sequence[Subsequence]
) -> Floats:
    """Return the features of subsequences, without normalisation, shape (n_windows, n_subsequences)."""
    steps = _as_steps(kernel, windows)  # (n_windows, width, n_features)
    out = np.empty((steps.shape[0], len(subsequences)))
    for column, subsequence in enumerate(subsequences):
        out[:, column] = _count(kernel, steps, subsequence)
    return out


def explain_score(
    kernel: SubsequenceKernel, window: Any, support: Any, coefs: Any
) -> list[SubsequenceWeight]:
    """Split the score ``sum_j coefs[j] k(window, support[j])`` into the parts of subsequences.

    Parameters
    ----------
    kernel : SubsequenceKernel
    window : row of `SubsequenceKernel.windows`
    support : matrix of shape (n_support, width * n_features)
    coefs : array of shape (n_support,)

    Returns
    -------
    list of SubsequenceWeight
        In decreasing order of the absolute contribution. The contributions sum to the score.
    """
    window = sp.csr_matrix(window) if sp.issparse(window) else np.atleast_2d(window)
    coefs = np.asarray(coefs, dtype=np.float64)
    own, others = kernel.scales(window)[0], kernel.scales(support)
    if not own.any():  # similar to windows without subsequences only, with normalisation
        is_empty = ~others.any(axis=1)
        return [SubsequenceWeight(Subsequence((), None), 1.0, float(coefs[is_empty].sum()))]
    subsequences = list_subsequences(kernel, window)
    values = count_subsequences(kernel, window, subsequences)[0]
    counts = count_subsequences(kernel, support, subsequences)
    length = np.array([len(one.elements) - 1 for one in subsequences], dtype=np.int64)
    values = values * own[length]
    weights = (counts * others[:, length] * coefs[:, None]).sum(axis=0)
    parts = [
        SubsequenceWeight(one, float(value), float(weight))
        for one, value, weight in zip(subsequences, values, weights, strict=True)
    ]
    return sorted(parts, key=lambda part: -abs(part.contribution))


def _elements(
    features: NDArray[np.int64], kernel: SubsequenceKernel, *, is_step: bool
) -> list[tuple[int, ...]]:
    """Return what one element of a subsequence may be at a step with these features."""
    names = features.tolist()
    if is_step and kernel.anchor == "marked":
        names = [MARK, *names]
    sizes = range(1, len(names) + 1) if kernel.conjunctions else (1,)
    return list(chain.from_iterable(combinations(names, size) for size in sizes))


def _count(kernel: SubsequenceKernel, steps: Floats, subsequence: Subsequence) -> Floats:
    """Return ``phi_u`` of every window."""
    n_windows, width, _ = steps.shape
    pivot, decay = int(kernel.window[0]), float(kernel.decay)
    ends = np.zeros((n_windows, width))
    for place, element in enumerate(subsequence.elements):
        known = [feature for feature in element if feature != MARK]
        present = steps[:, :, known].prod(axis=2)
        if MARK in element or place == subsequence.pivot:
            present[:, np.arange(width) != pivot] = 0.0
        if place == 0:
            ends = present
            continue
        before = np.zeros(n_windows)  # decayed sum of the ends before the position
        extended = np.zeros_like(ends)
        for position in range(1, width):
            before = decay * (before + ends[:, position - 1])
            extended[:, position] = present[:, position] * before
        ends = extended
    return decay * ends.sum(axis=1)


def _as_steps(kernel: SubsequenceKernel, windows: Any) -> Floats:
    """Return windows as (n_windows, width, n_features), from the first step to the last."""
    dense = windows.toarray() if sp.issparse(windows) else np.atleast_2d(windows)
    order = kernel.step_order()
    return dense.reshape(dense.shape[0], order.size, -1)[:, order]
