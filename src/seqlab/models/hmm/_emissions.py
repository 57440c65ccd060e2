"""Emissions: P(observation | label) of a hidden Markov model, one class per distribution.

What they share, and what an HMM asks of them:

``prepare``
    checks X, once, and gives it the form that the kernels read;
``scorer``
    the function that gives ``log P(x_t | s)`` of a run of steps, ``(n_steps, n_labels)``;
``statistics``
    additive counts of a run of steps, each step counting for each label by its share;
``estimated``
    the same distribution with the parameters that these counts make most probable;
``log_prior``
    the logarithm of the prior that smoothing stands for, up to a constant: smoothing by e is the mode
    under a Dirichlet prior with all parameters 1 + e;
``draw``
    random observations of given labels.

Discrete distributions are in `_discrete_emissions`, the normal one in `_gaussian_emissions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences

Floats: TypeAlias = NDArray[np.float64]
Statistics: TypeAlias = tuple[Floats, ...]
# (matrix as prepared, first step, step after the last) -> (n_steps, n_labels)
Scorer: TypeAlias = Callable[[Any, int, int], Floats]


class Emissions(Protocol):
    """What an HMM asks of its emissions."""

    def prepare(self, X: Sequences, *, training: bool) -> Any:
        """Check X and give it the form of the kernels."""
        ...

    def scorer(self) -> Scorer:
        """The function that scores a run of steps."""
        ...

    def statistics(self, matrix: Any, begin: int, stop: int, shares: Floats) -> Statistics:
        """Additive counts of steps begin..stop."""
        ...

    def estimated(self, statistics: Statistics) -> Emissions:
        """The distribution with parameters estimated from counts."""
        ...

    def with_smoothing(self, smoothing: float) -> Emissions:
        """The same distribution, to be estimated with another smoothing."""
        ...

    def log_prior(self) -> float:
        """Logarithm of the prior density of the parameters, up to a constant."""
        ...

    def draw(self, codes: NDArray[np.int64], random: np.random.RandomState) -> Any:
        """One observation per label code, as a dense or CSR matrix."""
        ...


def choose_emissions(matrix: Any) -> str:
    """The distribution that "auto" stands for, from the numbers of X alone.

    ======================================================  ===============
    every row has a single 1 among zeros (two columns up)   "categorical"
    nothing but 0 and 1                                     "bernoulli"
    one column of whole numbers, none negative              "categorical"
    several of them, none missing                           "multinomial"
    else                                                    "gaussian"
    ======================================================  ===============
    """
    values = matrix if isinstance(matrix, np.ndarray) else matrix.data
    missing = np.isnan(values)
    known = values[~missing]
    n_columns = matrix.shape[1]
    if ((known == 0) | (known == 1)).all():
        one_each = n_columns > 1 and (ones_per_row(matrix) == 1).all()
        return "categorical" if one_each else "bernoulli"
    if (known < 0).any() or (known != np.floor(known)).any():
        return "gaussian"
    if n_columns == 1:
        return "categorical"
    # How many events a step has is not known where some counts are missing: these are measurements.
    return "gaussian" if missing.any() else "multinomial"


def ones_per_row(matrix: Any) -> NDArray[np.int64]:
    """Entries of each row that are not 0; NaN counts."""
    if isinstance(matrix, np.ndarray):
        return np.count_nonzero(matrix, axis=1)
    before = np.concatenate([[0], np.cumsum(matrix.data != 0)])
    return before[matrix.indptr[1:]] - before[matrix.indptr[:-1]]


def refuse_infinite(X: Sequences) -> None:
    """Raise an error at the first infinite number of X."""
    values = X.matrix.data if X.is_sparse else X.matrix
    if np.isinf(values).any():
        refuse(X, np.isinf, "infinity; numbers are finite, or NaN where missing")


def refuse(X: Sequences, bad: Callable[[Any], Any], what: str) -> None:
    """Raise an error that names the first entry of X that ``bad`` (elementwise) says is bad, if any is."""
    if X.is_sparse:
        wrong = bad(X.matrix.data)
        if not wrong.any():
            return
        entry = int(np.argmax(wrong))
        step = int(np.searchsorted(X.matrix.indptr, entry, side="right") - 1)
        feature, value = int(X.matrix.indices[entry]), X.matrix.data[entry]
    else:
        wrong = bad(X.matrix)
        if not wrong.any():
            return
        step, feature = (int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
        value = X.matrix[step, feature]
    sequence, position = X.locate(step)
    raise InputError(
        f"X[{sequence}] position {position} feature {feature} is {value:g}, but {what}"
    )
