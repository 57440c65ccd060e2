"""Long runs with false cues: lengths, cues, and the errors of a model of the previous label."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from seqlab.data import InputError
from seqlab.datasets import make_partition_sequences


def runs(labels):
    return np.diff(np.flatnonzero(np.r_[True, np.diff(labels) != 0, True]))


@pytest.mark.parametrize("mean_run", [20, 50])
def test_runs_are_long(mean_run):
    _, y = make_partition_sequences(200, mean_run=mean_run, random_state=0, return_X_y=True)
    lengths = np.concatenate([runs(labels) for labels in y])
    assert abs(lengths.mean() - mean_run) < 0.1 * mean_run
    assert lengths.min() >= 5


def test_cues_are_at_the_start_of_runs_and_in_bursts():
    data = make_partition_sequences(50, n_labels=3, random_state=1)
    for x, y, burst in zip(data.data, data.target, data.bursts, strict=True):
        assert x.shape == (len(y), 12)
        assert y[0] == 0
        cue = x[:, 10:]
        starts = np.flatnonzero(np.r_[True, np.diff(y) != 0])
        opening = np.isin(np.arange(len(y)), np.r_[starts, starts + 1])
        assert not cue[~opening & ~burst].any()
        assert cue[burst].any(axis=1).all()
        # The cue of a burst is that of another label.
        assert not (
            cue[burst][np.arange(burst.sum()), np.maximum(y[burst] - 1, 0)] * (y[burst] > 0)
        ).any()
    assert any(burst.any() for burst in data.bursts)
    assert not any(
        b.any() for b in make_partition_sequences(20, burst_rate=0, random_state=0).bursts
    )


def test_features_are_weak_but_informative():
    data = make_partition_sequences(100, random_state=2)
    X, y = np.vstack(data.data), np.concatenate(data.target)
    half = len(y) // 2
    accuracy = LogisticRegression(max_iter=1000).fit(X[:half], y[:half]).score(X[half:], y[half:])
    assert 0.6 < accuracy < 0.9


def test_a_model_of_the_previous_label_repeats_its_error():
    """After a false burst a left-to-right model stays wrong until the true run begins."""
    data = make_partition_sequences(300, signal=0.1, burst_rate=0.5, random_state=3)
    half = 150
    joined = [
        np.column_stack([x, np.r_[0, y[:-1]]])
        for x, y in zip(data.data[:half], data.target[:half], strict=True)
    ]
    model = LogisticRegression(max_iter=1000)
    model.fit(np.vstack(joined), np.concatenate(data.target[:half]))
    after_burst, elsewhere = [], []
    for x, y, burst in list(zip(data.data, data.target, data.bursts, strict=True))[half:]:
        scores = x @ model.coef_[0, :-1] + model.intercept_[0]
        previous, wrong = 0, np.zeros(len(y), dtype=bool)
        for t in range(len(y)):
            previous = int(scores[t] + model.coef_[0, -1] * previous > 0)
            wrong[t] = previous != y[t]
        ends = np.flatnonzero(burst[:-1] & ~burst[1:])
        zone = np.zeros(len(y), dtype=bool)
        for end in ends:
            zone[end + 1 : end + 6] = True
        zone &= y == 0
        after_burst.append(wrong[zone])
        elsewhere.append(wrong[(y == 0) & ~zone & (np.cumsum(burst) == 0)])
    stuck, free = np.concatenate(after_burst).mean(), np.concatenate(elsewhere).mean()
    assert stuck > 0.5
    assert free < 0.2


def test_seed_and_invalid_parameters():
    one = make_partition_sequences(3, random_state=7, return_X_y=True)
    two = make_partition_sequences(3, random_state=7, return_X_y=True)
    for a, b in zip(one[0], two[0], strict=True):
        np.testing.assert_array_equal(a, b)
    for options in ({"n_labels": 1}, {"mean_run": 2}, {"n_runs": (3, 2)}):
        with pytest.raises(InputError):
            make_partition_sequences(2, **options)


@pytest.mark.parametrize("count", [0, -1, 1.5, "two", None, True])
@pytest.mark.parametrize("name", ["n_sequences", "n_labels", "n_features"])
def test_counts_are_positive_integers(name, count):
    with pytest.raises(InputError, match=f"{name} must be an integer of at least"):
        make_partition_sequences(**{name: count})


@pytest.mark.parametrize("n_runs", [3, (2,), (0, 2), (1.5, 2), "26", (1, 2, 3)])
def test_number_of_runs_is_a_range(n_runs):
    with pytest.raises(InputError, match="n_runs must be"):
        make_partition_sequences(2, n_runs=n_runs)
