"""Emissions: P(observation | label) of a hidden Markov model, one class per distribution.

Every distribution has the methods:

``prepare``
    check X, once, and convert it to the form that the kernels need;
``make_scorer``
    return the function that computes ``log P(x_t | s)`` of consecutive steps, ``(n_steps, n_labels)``;
``statistics``
    additive counts of consecutive steps, each step weighted by its responsibility for each label;
``estimate``
    return the same distribution with the most probable parameters given these counts;
``log_prior``
    log-density of the prior that smoothing implies, up to a constant: smoothing by e is the mode under a
    Dirichlet prior with all parameters 1 + e;
``sample``
    random observations of given labels.

Discrete distributions are in `_discrete_emissions`, normal ones in `_gaussian_emissions`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.models.hmm._kernels import CSRRows

Floats: TypeAlias = NDArray[np.float64]
Statistics: TypeAlias = tuple[Floats, ...]
# (prepared matrix, first step, step after the last) -> (n_steps, n_labels)
Scorer: TypeAlias = Callable[[Any, int, int], Floats]


class Emissions(Protocol):
    """The base class of emission distributions; smoothing has no effect by default."""

    def prepare(self, X: Sequences, *, training: bool) -> Any:
        """Check X and convert it to the form that the kernels need."""
        ...

    def make_scorer(self) -> Scorer:
        """Return the function that scores consecutive steps."""
        ...

    def statistics(self, matrix: Any, begin: int, stop: int, weights: Floats) -> Statistics:
        """Return additive counts of the steps from begin to stop."""
        ...

    def estimate(self, statistics: Statistics) -> Emissions:
        """Return the distribution with parameters estimated from counts."""
        ...

    def with_smoothing(self, smoothing: float) -> Emissions:
        """Return the same distribution with another smoothing for the next estimate."""
        return self

    def log_prior(self) -> float:
        """Return the log-density of the prior at the parameters, up to a constant."""
        return 0.0

    def sample(self, codes: NDArray[np.int64], random: np.random.RandomState) -> Any:
        """Draw one observation per label code, as a dense or CSR matrix."""
        ...


def csr_rows(matrix: Any, begin: int, stop: int) -> CSRRows:
    """Return rows of a CSR matrix in the form that the kernels take."""
    return matrix.indptr[begin : stop + 1], matrix.indices, matrix.data


def choose_emissions(matrix: Any) -> str:
    """Return the kind of distribution that "auto" stands for, given the numbers of X.

    ======================================================  ===============
    every row has a single 1 among zeros (two columns up)   "categorical"
    only 0 and 1                                            "bernoulli"
    one column of whole numbers, none negative              "categorical"
    several such columns, no missing value                  "multinomial"
    otherwise                                               "gaussian"
    ======================================================  ===============
    """
    values = matrix if isinstance(matrix, np.ndarray) else matrix.data
    missing = np.isnan(values)
    known = values[~missing]
    n_columns = matrix.shape[1]
    if ((known == 0) | (known == 1)).all():
        is_one_hot = n_columns > 1 and (count_nonzero_per_row(matrix) == 1).all()
        return "categorical" if is_one_hot else "bernoulli"
    if (known < 0).any() or (known != np.floor(known)).any():
        return "gaussian"
    if n_columns == 1:
        return "categorical"
    # Counts with missing entries have an unknown total, so they are treated as measurements.
    return "gaussian" if missing.any() else "multinomial"


def count_nonzero_per_row(matrix: Any) -> NDArray[np.int64]:
    """Count the entries of each row that are not 0; NaN counts."""
    if isinstance(matrix, np.ndarray):
        return np.count_nonzero(matrix, axis=1)
    cumulative = np.concatenate([[0], np.cumsum(matrix.data != 0)])
    return cumulative[matrix.indptr[1:]] - cumulative[matrix.indptr[:-1]]


def check_not_infinite(X: Sequences) -> None:
    """Raise an error that names the first infinite entry of X."""
    values = X.matrix.data if X.is_sparse else X.matrix
    if np.isinf(values).any():
        check_entries(X, np.isinf, "numbers must be finite, or NaN if missing")


def check_entries(X: Sequences, is_bad: Callable[[Any], Any], rule: str) -> None:
    """Raise an error that names the first entry of X for which ``is_bad`` (elementwise) holds."""
    if X.is_sparse:
        wrong = is_bad(X.matrix.data)
        if not wrong.any():
            return
        entry = int(np.argmax(wrong))
        step = int(np.searchsorted(X.matrix.indptr, entry, side="right") - 1)
        feature, value = int(X.matrix.indices[entry]), X.matrix.data[entry]
    else:
        wrong = is_bad(X.matrix)
        if not wrong.any():
            return
        step, feature = (int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
        value = X.matrix[step, feature]
    sequence, position = X.locate(step)
    raise InputError(
        f"X[{sequence}] position {position} feature {feature} is {value:g}, but {rule}"
    )
