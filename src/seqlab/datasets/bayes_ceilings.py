"""The best possible accuracy on sequences from a known hidden Markov model.

No learner can exceed these values in expectation: they are the accuracies of the Bayes-optimal classifiers
that see one observation, three observations or the whole sequence.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlab.datasets._helpers import check_count, check_random_state

# Steps of one run: many more than the mixing time of the presets, but few enough that several runs are
# computed together.
_RUN = 1000


class BayesCeilings(NamedTuple):
    """Accuracies of the Bayes-optimal classifiers of an HMM.

    Attributes
    ----------
    window_1 : float
        From the observation of the step: ``argmax_s pi(s) P(o | s)``.
    window_3 : float
        From the observations before, at and after the step.
    posterior : float
        From the whole sequence: the posterior of the true HMM.
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


def hmm_bayes_ceilings(
    start: ArrayLike,
    transition: ArrayLike,
    emission: ArrayLike,
    *,
    n_steps: int = 20_000,
    random_state: Any = None,
) -> BayesCeilings:
    """Estimate the best possible token accuracy of an HMM, from one, three and all observations.

    Draws long runs from the stationary distribution and averages the largest posterior probability
    of each step, ``E[max_s P(s_t | observations)]``. This is the accuracy of the optimal classifier,
    with less variance than counting its correct labels.

    Parameters
    ----------
    start : array of shape (n_labels,)
        Start probabilities, from which the stationary distribution is computed.
    transition : array of shape (n_labels, n_labels)
        ``transition[i, j]`` is the probability of moving from i to j.
    emission : array of shape (n_labels, n_observations)
        Probability of each symbol at each label.
    n_steps : int, default=20000
        Steps to draw; the standard error of the estimates is below ``0.5 / sqrt(n_steps)`` if steps
        are independent.
    random_state : int, RandomState or None
        Seed of the generator.

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
    rng = check_random_state(random_state)
    A = np.asarray(transition, dtype=np.float64)  # (n_labels, n_labels)
    B = np.asarray(emission, dtype=np.float64)  # (n_labels, n_observations)
    pi = _stationary(np.asarray(start, dtype=np.float64), A)
    run = min(_RUN, n_steps)
    n_runs = -(-n_steps // run)
    _, observed = draw_sequences(HMMParameters(pi, A, B), np.full(n_runs, run), rng)
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


def draw_sequences(
    truth: HMMParameters, lengths: NDArray[np.int64], rng: np.random.RandomState
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Draw the labels and symbols of all sequences, one step of all of them at a time."""
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
    """First index with a cumulative probability above u; the total counts as exactly 1."""
    return (u[:, None] * cdf[..., -1:] >= cdf).sum(axis=-1).astype(np.int64)


def _posteriors(
    pi: NDArray[np.float64], A: NDArray[np.float64], likelihood: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Scaled forward-backward for several runs, shape (run, n_runs, n_labels)."""
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
    """Time average of the chain from `start`, which periodic and reducible chains have too."""
    pi, power = start, A
    for _ in range(40):  # each pass doubles the number of steps in the average: 2**40 in the end
        pi = 0.5 * (pi + pi @ power)
        power = power @ power
    return pi / pi.sum()
