"""Sequences drawn from a random hidden Markov model, with the best accuracy anyone can reach.

The model of the SECOC experiments: every label ``i`` has a favourite observation ``o_i`` and a
small set of others, stays with some probability and otherwise moves to a small set of labels,

    P(o | i) = po if o = o_i,  (1 - po) / ko for o in O_i,   |O_i| = ko, o_i not in O_i
    P(j | i) = pl if j = i,    (1 - pl) / kl for j in L_i,   |L_i| = kl, i not in L_i

with the sets drawn once per data set and a uniform start. Preset "transition" makes the labels'
order informative (po 0.2, ko 8, pl 0.6, kl 2), preset "both" makes order and observations
informative (po 0.6, ko 2, pl 0.6, kl 2).

`hmm_bayes_ceilings` gives the accuracy of the optimal classifier that sees one observation, three
observations or the whole sequence: no learner can beat them but by luck.

References
----------
Hao, G. & Fern, A. (2007). Revisiting output coding for sequential supervised learning. IJCAI.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError
from seqlab.datasets._bunch import make_bunch
from seqlab.datasets._bunch import random_state as _random_state

if TYPE_CHECKING:
    from sklearn.utils import Bunch

_PRESETS: dict[str | None, dict[str, float]] = {
    "transition": {"po": 0.2, "ko": 8, "pl": 0.6, "kl": 2},
    "both": {"po": 0.6, "ko": 2, "pl": 0.6, "kl": 2},
    None: {},
}
_ENCODINGS = ("onehot", "sparse", "index")
# Length of one run when ceilings are estimated: long against the mixing time of the presets, short
# enough that a batch of runs vectorises.
_RUN = 1000

_DESCR = """\
Sequences from a random hidden Markov model
-------------------------------------------
{n_labels} labels, {n_observations} observation symbols, {n_sequences} sequences.
Label i shows its own symbol with probability {po:g}, else one of {ko} others; it stays with
probability {pl:g}, else moves to one of {kl} labels. Best possible accuracy: {w1:.1%} from one
observation, {w3:.1%} from three, {full:.1%} from the whole sequence.
"""


class BayesCeilings(NamedTuple):
    """Accuracy of the optimal classifiers of an HMM, each a fraction.

    Attributes
    ----------
    window_1 : float
        It sees the observation of the step: ``argmax_s pi(s) P(o | s)``.
    window_3 : float
        It sees the observations before, at and after the step.
    posterior : float
        It sees the whole sequence: the posterior of the true HMM.
    """

    window_1: float
    window_3: float
    posterior: float


class HMMParameters(NamedTuple):
    """The true parameters of a generated data set.

    Attributes
    ----------
    start : array of shape (n_labels,)
    transition : array of shape (n_labels, n_labels)
        ``transition[i, j]`` is the probability of moving from i to j.
    emission : array of shape (n_labels, n_observations)
    """

    start: NDArray[np.float64]
    transition: NDArray[np.float64]
    emission: NDArray[np.float64]


def make_hmm_sequences(
    n_sequences: int = 100,
    length: int | tuple[int, int] = 50,
    *,
    preset: str | None = "transition",
    n_labels: int = 40,
    n_observations: int = 40,
    po: float | None = None,
    ko: int | None = None,
    pl: float | None = None,
    kl: int | None = None,
    encoding: str = "onehot",
    random_state: Any = None,
    return_X_y: bool = False,
) -> Bunch | tuple[list[Any], list[NDArray[np.int64]]]:
    """Sequences from a random hidden Markov model with many labels.

    The parameters are drawn first, then the sequences: to train and test on the same model, draw
    all sequences at once and split them.

    Parameters
    ----------
    n_sequences : int, default=100
        How many sequences.
    length : int or (int, int), default=50
        Steps per sequence, or the inclusive range they are drawn from uniformly.
    preset : {"transition", "both", None}, default="transition"
        Values of `po`, `ko`, `pl`, `kl` where these are not given; with None all four are needed.
    n_labels, n_observations : int, default=40
        Number of labels and of observation symbols; label ``i`` favours symbol ``i``
        (modulo `n_observations`).
    po, pl : float, optional
        Probability of the favourite symbol, and of staying at a label.
    ko, kl : int, optional
        Number of other symbols of a label, and of its successors.
    encoding : {"onehot", "sparse", "index"}, default="onehot"
        How an observation is given: a float row with a single 1, the same as a CSR matrix, or the
        symbol's number as a column of integers, shape (n_steps, 1).
    random_state : int, RandomState or None
        Seed.
    return_X_y : bool, default=False
        Give ``(data, target)`` only, without the ceilings.

    Returns
    -------
    Bunch
        ``data`` (list of matrices), ``target`` (list of int arrays), ``start``, ``transition``,
        ``emission`` (the true parameters), ``bayes_ceilings`` (`BayesCeilings`), ``feature_names``,
        ``target_names``, ``DESCR``.

    See Also
    --------
    hmm_bayes_ceilings : The ceilings of any HMM.

    Examples
    --------
    >>> from seqlab.datasets import make_hmm_sequences
    >>> data = make_hmm_sequences(10, 20, preset="both", random_state=0)
    >>> data.data[0].shape, data.target[0].shape
    ((20, 40), (20,))
    >>> data.bayes_ceilings.window_1 < data.bayes_ceilings.posterior
    True
    """
    if isinstance(n_sequences, str):
        raise InputError(
            f"n_sequences must be an integer, got {n_sequences!r}; parameters after length are "
            f"given by name: preset={n_sequences!r}"
        )
    check_count(n_sequences, "n_sequences")
    check_count(n_labels, "n_labels", least=2)
    check_count(n_observations, "n_observations", least=2)
    _check_choice(preset, "preset", _PRESETS)
    _check_choice(encoding, "encoding", _ENCODINGS)
    settings = {
        **_PRESETS[preset],
        **{
            name: value
            for name, value in {"po": po, "ko": ko, "pl": pl, "kl": kl}.items()
            if value is not None
        },
    }
    missing = sorted({"po", "ko", "pl", "kl"} - settings.keys())
    if missing:
        raise InputError(f"with preset=None, give {', '.join(missing)}")
    rng = _random_state(random_state)
    truth = _draw_parameters(
        n_labels,
        n_observations,
        settings["po"],
        settings["ko"],
        settings["pl"],
        settings["kl"],
        rng,
    )
    lengths = _draw_lengths(n_sequences, length, rng)
    states, symbols = _draw_sequences(truth, lengths, rng)
    data = [_encode(sequence, n_observations, encoding) for sequence in symbols]
    if return_X_y:
        return data, states
    ceilings = hmm_bayes_ceilings(*truth, random_state=rng)
    names = [f"o{k}" for k in range(n_observations)]
    return make_bunch(
        data=data,
        target=states,
        start=truth.start,
        transition=truth.transition,
        emission=truth.emission,
        bayes_ceilings=ceilings,
        feature_names=["symbol"] if encoding == "index" else names,
        target_names=[str(label) for label in range(n_labels)],
        DESCR=_DESCR.format(
            n_labels=n_labels,
            n_observations=n_observations,
            n_sequences=n_sequences,
            w1=ceilings.window_1,
            w3=ceilings.window_3,
            full=ceilings.posterior,
            **settings,
        ),
    )


def hmm_bayes_ceilings(
    start: ArrayLike,
    transition: ArrayLike,
    emission: ArrayLike,
    *,
    n_steps: int = 20_000,
    random_state: Any = None,
) -> BayesCeilings:
    """Best possible token accuracy of an HMM, from one, three and all observations.

    Draws long runs from the model, in its stationary regime, and averages the largest posterior
    probability of each step, ``E[max_s P(s_t | what is seen)]``: the accuracy of the optimal
    classifier, with less variance than counting its hits.

    Parameters
    ----------
    start : array of shape (n_labels,)
        Start probabilities; the stationary distribution is reached from them.
    transition : array of shape (n_labels, n_labels)
        ``transition[i, j]`` is the probability of moving from i to j.
    emission : array of shape (n_labels, n_observations)
        Probability of each symbol at each label.
    n_steps : int, default=20000
        Steps drawn; the estimates' standard error is below ``0.5 / sqrt(n_steps)`` per independent
        step.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    BayesCeilings
        ``window_1``, ``window_3`` and ``posterior``.

    Examples
    --------
    >>> from seqlab.datasets import hmm_bayes_ceilings
    >>> sticky = [[0.95, 0.05], [0.05, 0.95]]
    >>> noisy = [[0.7, 0.3], [0.3, 0.7]]
    >>> ceilings = hmm_bayes_ceilings([0.5, 0.5], sticky, noisy, random_state=0)
    >>> [round(float(value), 1) for value in ceilings]
    [0.7, 0.8, 0.9]
    """
    check_count(n_steps, "n_steps")
    rng = _random_state(random_state)
    A = np.asarray(transition, dtype=np.float64)  # (n_labels, n_labels)
    B = np.asarray(emission, dtype=np.float64)  # (n_labels, n_observations)
    pi = _stationary(np.asarray(start, dtype=np.float64), A)
    run = min(_RUN, n_steps)
    n_runs = -(-n_steps // run)
    _, observed = _draw_sequences(HMMParameters(pi, A, B), np.full(n_runs, run), rng)
    symbols = np.stack(observed)  # (n_runs, run)
    likelihood = np.moveaxis(B.T[symbols], 0, 1)  # (run, n_runs, n_labels)

    window_1 = pi * likelihood
    before = (B.T * pi) @ A  # (n_observations, n_labels): sum_r pi(r) P(o | r) P(s | r)
    after = B.T @ A.T  # (n_observations, n_labels): sum_r P(r | s) P(o | r)
    left = np.broadcast_to(pi, likelihood.shape).copy()
    left[1:] = before[symbols.T[:-1]]
    right = np.ones_like(likelihood)
    right[:-1] = after[symbols.T[1:]]
    window_3 = left * likelihood * right
    return BayesCeilings(
        _mean_max(window_1),
        _mean_max(window_3),
        _mean_max(_posteriors(pi, A, likelihood)),
    )


def check_count(value: Any, name: str, *, least: int = 1) -> None:
    """Refuse what is not an integer of at least `least`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be an integer of at least {least}, got {value!r}")


def _check_choice(value: Any, name: str, choices: Iterable[str | None]) -> None:
    """Refuse what is not among the choices, and suggest the nearest one."""
    known = list(choices)
    if value in known:
        return
    words = [choice for choice in known if choice is not None]
    near = get_close_matches(value.lower(), words, 1, cutoff=0.5) if isinstance(value, str) else []
    said = ", ".join(repr(choice) for choice in known)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(f"{name} must be one of {said}, got {value!r}{hint}")


def _posteriors(
    pi: NDArray[np.float64], A: NDArray[np.float64], likelihood: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Scaled forward-backward over a batch of runs, shape (run, n_runs, n_labels)."""
    forward = np.empty_like(likelihood)
    current = pi * likelihood[0]
    for t in range(len(likelihood)):
        if t:
            current = (forward[t - 1] @ A) * likelihood[t]
        forward[t] = current / current.sum(axis=1, keepdims=True)
    backward = np.ones_like(likelihood[0])
    for t in range(len(likelihood) - 2, -1, -1):
        backward = (backward * likelihood[t + 1]) @ A.T
        backward /= backward.sum(axis=1, keepdims=True)
        forward[t] *= backward
    return forward


def _mean_max(joint: NDArray[np.float64]) -> float:
    return float((joint.max(axis=-1) / joint.sum(axis=-1)).mean())


def _stationary(start: NDArray[np.float64], A: NDArray[np.float64]) -> NDArray[np.float64]:
    """Time average of the chain from `start`: defined for periodic and reducible chains too."""
    pi, power = start, A
    for _ in range(40):  # average over 2**40 steps by doubling
        pi = 0.5 * (pi + pi @ power)
        power = power @ power
    return pi / pi.sum()


def _draw_parameters(
    n_labels: int,
    n_observations: int,
    po: float,
    ko: Any,
    pl: float,
    kl: Any,
    rng: np.random.RandomState,
) -> HMMParameters:
    for name, value in (("po", po), ("pl", pl)):
        if not isinstance(value, Real) or not 0 <= value <= 1:
            raise InputError(f"{name} is a probability, got {value!r}")
    for name, value, limit in (("ko", ko, n_observations), ("kl", kl, n_labels)):
        if not isinstance(value, int | np.integer) or not 1 <= value < limit:
            raise InputError(f"{name} must lie in 1..{limit - 1}, got {value!r}")
    emission = _favour(n_labels, n_observations, po, ko, rng)
    transition = _favour(n_labels, n_labels, pl, kl, rng)
    return HMMParameters(np.full(n_labels, 1.0 / n_labels), transition, emission)


def _favour(
    n_rows: int, n_columns: int, own: float, n_others: int, rng: np.random.RandomState
) -> NDArray[np.float64]:
    """Rows with probability `own` at their own column and the rest spread over a few others."""
    table = np.zeros((n_rows, n_columns))
    for i in range(n_rows):
        favourite = i % n_columns
        others = np.delete(np.arange(n_columns), favourite)
        table[i, rng.choice(others, size=n_others, replace=False)] = (1 - own) / n_others
        table[i, favourite] = own
    return table


def _draw_lengths(
    n_sequences: int, length: int | tuple[int, int], rng: np.random.RandomState
) -> NDArray[np.int64]:
    ends = [length, length] if isinstance(length, int | np.integer) else length
    if (
        not isinstance(ends, tuple | list)
        or len(ends) != 2
        or not all(isinstance(end, int | np.integer) for end in ends)
        or not 1 <= ends[0] <= ends[1]
    ):
        raise InputError(
            "length must be an integer of at least 1, or the two ends of a range that is not "
            f"empty, got {length!r}"
        )
    low, high = ends
    return rng.randint(low, high + 1, size=n_sequences).astype(np.int64)


def _draw_sequences(
    truth: HMMParameters, lengths: NDArray[np.int64], rng: np.random.RandomState
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Labels and symbols of every sequence; all sequences advance together."""
    n_sequences, longest = len(lengths), int(lengths.max(initial=0))
    states = np.empty((longest, n_sequences), dtype=np.int64)
    step_cdf, emit_cdf = truth.transition.cumsum(axis=1), truth.emission.cumsum(axis=1)
    for t in range(longest):
        cdf = truth.start.cumsum() if t == 0 else step_cdf[states[t - 1]]
        states[t] = _invert(cdf, rng.random_sample(n_sequences))
    symbols = np.empty_like(states)
    for t in range(longest):
        symbols[t] = _invert(emit_cdf[states[t]], rng.random_sample(n_sequences))
    return (
        [states[:n, i].copy() for i, n in enumerate(lengths)],
        [symbols[:n, i].copy() for i, n in enumerate(lengths)],
    )


def _invert(cdf: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.int64]:
    """First index whose cumulative probability exceeds u; the total is taken as exactly 1."""
    return (u[:, None] * cdf[..., -1:] >= cdf).sum(axis=-1).astype(np.int64)


def _encode(symbols: NDArray[np.int64], n_observations: int, encoding: str) -> Any:
    if encoding == "index":
        return symbols[:, None]
    rows = np.arange(len(symbols))
    if encoding == "sparse":
        ones = np.ones(len(symbols))
        return sp.csr_matrix((ones, (rows, symbols)), shape=(len(symbols), n_observations))
    onehot = np.zeros((len(symbols), n_observations))
    onehot[rows, symbols] = 1.0
    return onehot
