"""Sequences of long label runs: a partitioning task with a systematic error of MEMMs.

Each sequence consists of long runs of one label (mean length 20 to 50 steps), like messages with
headers, quotes and signatures. The features of a step contain little information on its label. A *cue*
feature of a label is 1 on the first steps of its runs, but sometimes also in a short false burst some
steps before a run begins. A model that conditions on the previous label learns that the cue starts a
run and that runs continue: after a false burst it predicts the wrong label until the next cue. A model
of the whole sequence can correct this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.datasets._helpers import check_count, check_random_state, make_result

if TYPE_CHECKING:
    from sklearn.utils import Bunch

# Shape of the gamma distribution of run lengths; larger values give more similar lengths.
_RUN_SHAPE = 4.0
_SHORTEST_RUN = 5
_CUE_STEPS = 2
_BURST_STEPS = (2, 3)

_DESCR = """\
Long label runs with false cues
-------------------------------
{n_sequences} sequences of runs with mean length {mean_run:g}, {n_labels} labels, {n_features} weak
numeric features and one cue column per label except 0. The cue is 1 on the first steps of a run and,
before a fraction {burst_rate:g} of the runs, in a false burst of two or three steps.
"""


def make_partition_sequences(
    n_sequences: int = 50,
    *,
    n_labels: int = 2,
    mean_run: float = 30.0,
    n_runs: tuple[int, int] = (2, 6),
    n_features: int = 10,
    signal: float = 0.25,
    burst_rate: float = 0.5,
    cue_rate: float = 0.9,
    random_state: Any = None,
    return_X_y: bool = False,
) -> Bunch | tuple[list[NDArray[np.float64]], list[NDArray[np.int64]]]:
    """Generate sequences with long label runs, weak features and false cues before a run.

    A step with label ``k`` has features ``x = signal * profile[k] + noise`` with standard normal
    profiles and noise, and one binary cue column for each label except 0 (the background, with which
    every sequence begins).

    Parameters
    ----------
    n_sequences : int, default=50
        Number of sequences.
    n_labels : int, default=2
        Number of labels; consecutive runs have different labels.
    mean_run : float, default=30
        Mean number of steps in a run, at least 5.
    n_runs : (int, int), default=(2, 6)
        Inclusive range of the number of runs in a sequence.
    n_features : int, default=10
        Number of weak features.
    signal : float, default=0.25
        Standard deviation of the mean of a feature over the labels, in units of the noise.
    burst_rate : float, default=0.5
        Probability of a false burst of the cue before a run of its label.
    cue_rate : float, default=0.9
        Probability that the cue is 1, for each of the first two steps of a run.
    random_state : int, RandomState or None
        Seed of the generator.
    return_X_y : bool, default=False
        Whether to return only ``(data, target)``.

    Returns
    -------
    Bunch
        ``data`` (list of arrays of shape (n_steps, n_features + n_labels - 1)), ``target`` (list of
        int arrays), ``bursts`` (list of boolean arrays: the steps of a false burst),
        ``feature_names``, ``target_names``, ``DESCR``.

    Examples
    --------
    >>> from seqlab.datasets import make_partition_sequences
    >>> data = make_partition_sequences(4, random_state=0)
    >>> data.data[0].shape[1], data.feature_names[-1]
    (11, 'cue_1')
    >>> int(data.target[0][0])
    0
    """
    check_count(n_sequences, "n_sequences")
    check_count(n_labels, "n_labels", least=2)
    check_count(n_features, "n_features")
    if mean_run < _SHORTEST_RUN:
        raise InputError(f"mean_run must be at least {_SHORTEST_RUN}, got {mean_run}")
    if not isinstance(n_runs, tuple | list) or len(n_runs) != 2 or n_runs[0] > n_runs[1]:
        raise InputError(f"n_runs must be the two ends of a range, got {n_runs!r}")
    for end in n_runs:
        check_count(end, "each end of n_runs")
    rng = check_random_state(random_state)
    profiles = rng.standard_normal((n_labels, n_features))
    data, target, bursts = [], [], []
    for _ in range(n_sequences):
        labels, starts = _draw_runs(n_labels, mean_run, n_runs, rng)
        cues, false_cues = _draw_cues(labels, starts, n_labels, burst_rate, cue_rate, rng)
        noise = rng.standard_normal((len(labels), n_features))
        data.append(np.hstack([signal * profiles[labels] + noise, cues]))
        target.append(labels)
        bursts.append(false_cues)
    return make_result(
        return_X_y,
        data,
        target,
        bursts=bursts,
        feature_names=[f"x{k}" for k in range(n_features)]
        + [f"cue_{k}" for k in range(1, n_labels)],
        target_names=[str(k) for k in range(n_labels)],
        DESCR=_DESCR.format(
            n_sequences=n_sequences,
            n_labels=n_labels,
            n_features=n_features,
            mean_run=mean_run,
            burst_rate=burst_rate,
        ),
    )


def _draw_runs(
    n_labels: int, mean_run: float, n_runs: tuple[int, int], rng: np.random.RandomState
) -> tuple[NDArray[np.int64], list[int]]:
    """Draw the label of each step, and the first step of each run."""
    count = rng.randint(n_runs[0], n_runs[1] + 1)
    labels, starts, label, position = [], [], 0, 0
    for run in range(count):
        if run:  # any other label
            label = (label + rng.randint(1, n_labels)) % n_labels
        excess = mean_run - _SHORTEST_RUN
        length = _SHORTEST_RUN
        if excess > 0:
            length += round(rng.gamma(_RUN_SHAPE, excess / _RUN_SHAPE))
        labels.append(np.full(length, label, dtype=np.int64))
        starts.append(position)
        position += length
    return np.concatenate(labels), starts


def _draw_cues(
    labels: NDArray[np.int64],
    starts: list[int],
    n_labels: int,
    burst_rate: float,
    cue_rate: float,
    rng: np.random.RandomState,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Draw the cue columns, shape (n_steps, n_labels - 1), and the steps with false cues."""
    cues = np.zeros((len(labels), n_labels - 1))
    false_cues = np.zeros(len(labels), dtype=bool)
    for before, here in zip([0, *starts], starts, strict=False):
        label = int(labels[here])
        if label == 0:
            continue
        opening = slice(here, here + _CUE_STEPS)
        cues[opening, label - 1] = rng.random_sample(_CUE_STEPS) < cue_rate
        size = rng.randint(_BURST_STEPS[0], _BURST_STEPS[1] + 1)
        # The burst is in the previous run, after its cue and at least one step before its end.
        earliest, latest = before + _CUE_STEPS, here - size - 1
        if rng.random_sample() < burst_rate and earliest <= latest:
            at = rng.randint(earliest, latest + 1)
            cues[at : at + size, label - 1] = 1.0
            false_cues[at : at + size] = True
    return cues, false_cues
