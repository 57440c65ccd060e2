"""Significance: values computed by hand, SciPy, and resampled counts against the plain bootstrap."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

from seqlab.data import InputError
from seqlab.metrics import (
    bootstrap_interval,
    border_f1,
    macro_recall,
    mcnemar_test,
    paired_bootstrap,
    run_f1,
    sequence_accuracy,
    sign_test,
    span_f1,
    span_precision,
    span_recall,
    token_accuracy,
)
from seqlab.metrics._bootstrap import draw

NAMES = ["O", "B-X", "I-X", "B-Y", "I-Y"]


def labelings(n_sequences=25, seed=0):
    """Gold labels, a good system and a worse one."""
    rng = np.random.default_rng(seed)
    gold = [rng.choice(NAMES, size=rng.integers(1, 7)).tolist() for _ in range(n_sequences)]

    def noisy(keep):
        return [[g if rng.random() < keep else rng.choice(NAMES).item() for g in y] for y in gold]

    return gold, noisy(0.8), noisy(0.5)


def test_sign_test_values_computed_by_hand():
    assert sign_test(9, 1).p_value == pytest.approx(11 / 1024)
    assert sign_test(5, 0).p_value == pytest.approx(1 / 32)
    assert sign_test(0, 5).p_value == 1.0
    assert sign_test(0, 5, alternative="less").p_value == pytest.approx(1 / 32)
    assert sign_test(5, 0, alternative="two-sided").p_value == pytest.approx(1 / 16)
    assert sign_test(0, 0).p_value == 1.0


def test_sign_test_ignores_ties():
    result = sign_test([0.9, 0.8, 0.7, 0.6], np.array([0.8, 0.9, 0.7, 0.5]))
    assert result == (pytest.approx(0.5), 2, 1, 1)
    assert sign_test([1, 1], [1, 1]) == (1.0, 0, 0, 2)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([1, 2], [1], r"got shapes \(2,\) and \(1,\)"),
        ([1, 2], 3, "two counts or two score lists"),
        (-1, 2, "non-negative whole numbers, got -1"),
        (1.5, 2, "whole numbers, got 1.5"),
        ([0.1, np.nan], [0.2, 0.3], "NaN"),
    ],
)
def test_sign_test_invalid_input(a, b, message):
    with pytest.raises(InputError, match=message):
        sign_test(a, b)
    with pytest.raises(InputError, match="alternative"):
        sign_test(1, 2, alternative="more")


def test_mcnemar_values_computed_by_hand():
    gold = [["a"] * 20]
    a = [["a"] * 10 + ["b"] * 2 + ["a"] * 8]  # wrong at 10, 11
    b = [["b"] * 8 + ["a"] * 4 + ["a"] * 8]  # wrong at 0 .. 7
    exact = mcnemar_test(gold, a, b)
    assert (exact.only_a, exact.only_b, exact.statistic) == (8, 2, 2.0)
    assert exact.p_value == pytest.approx(2 * (1 + 10 + 45) / 1024)
    approximate = mcnemar_test(gold, a, b, method="chi2")
    assert approximate.statistic == pytest.approx(25 / 10)
    assert approximate.p_value == pytest.approx(stats.chi2.sf(2.5, 1))
    assert mcnemar_test(gold, b, a).p_value == exact.p_value
    assert mcnemar_test(gold[0], a[0], b[0]) == exact


def test_mcnemar_without_discordant_steps():
    gold, a, _ = labelings()
    for method in ("exact", "chi2"):
        assert mcnemar_test(gold, a, a, method=method).p_value == 1.0
    two = mcnemar_test([["a", "a"]], [["a", "b"]], [["b", "a"]], method="chi2")
    assert (two.statistic, two.p_value) == (0.0, 1.0)


def test_mcnemar_invalid_input():
    with pytest.raises(InputError, match=r"y_true\[0\] has 1 labels but y_b\[0\] has 2"):
        mcnemar_test([["a"]], [["a"]], [["a", "b"]])
    with pytest.raises(InputError, match="method must be 'exact' or 'chi2'"):
        mcnemar_test([["a"]], [["a"]], [["a"]], method="t")


METRICS = [
    border_f1,
    run_f1,
    token_accuracy,
    sequence_accuracy,
    macro_recall,
    span_precision,
    span_recall,
    span_f1,
    partial(span_f1, average="macro"),
    partial(span_f1, average="weighted", strict=True),
    partial(token_accuracy, ignore="O"),
]


@pytest.mark.parametrize("metric", METRICS)
def test_resampled_counts_equal_recomputed_metrics(metric):
    gold, a, b = labelings()
    kwargs = {"n_resamples": 40, "random_state": 5}
    fast = paired_bootstrap(gold, a, b, metric, **kwargs)
    plain = paired_bootstrap(gold, a, b, lambda y, p: metric(y, p), **kwargs)
    np.testing.assert_allclose(fast, plain, atol=1e-12)
    interval = bootstrap_interval(gold, a, metric, **kwargs)
    again = bootstrap_interval(gold, a, lambda y, p: metric(y, p), **kwargs)
    np.testing.assert_allclose(interval, again, atol=1e-12)


RARE = [["B-X"], *[["O"]] * 9]  # about every third resample contains no phrase


@pytest.mark.parametrize(
    "metric", [span_f1, partial(span_f1, average="macro"), partial(token_accuracy, ignore="O")]
)
def test_resamples_with_nothing_to_score_are_ignored(metric):
    interval = bootstrap_interval(RARE, RARE, metric, random_state=0)
    assert interval == (1.0, 1.0, 1.0)
    wrong = [["O"]] * 10
    paired = paired_bootstrap(RARE, RARE, wrong, metric, n_resamples=200, random_state=0)
    assert (paired.difference, paired.low, paired.high) == (1.0, 1.0, 1.0)


def test_data_with_nothing_to_score_have_score_zero():
    nothing = [["O"]] * 5
    assert bootstrap_interval(nothing, nothing, n_resamples=20) == (0.0, 0.0, 0.0)
    assert paired_bootstrap(nothing, nothing, nothing, n_resamples=20).p_value == 1.0


def test_paired_bootstrap_finds_the_better_system():
    gold, a, b = labelings(200)
    result = paired_bootstrap(gold, a, b, n_resamples=999, random_state=0)
    assert result.score_a == span_f1(gold, a)
    assert result.difference == pytest.approx(span_f1(gold, a) - span_f1(gold, b))
    assert 0 < result.low < result.difference < result.high
    assert result.p_value == pytest.approx(0.001)
    kwargs = {"n_resamples": 999, "random_state": 0}
    assert paired_bootstrap(gold, a, b, alternative="greater", **kwargs).p_value < 0.01
    assert paired_bootstrap(gold, a, b, alternative="less", **kwargs).p_value > 0.99
    swapped = paired_bootstrap(gold, b, a, **kwargs)
    assert swapped.p_value == result.p_value
    assert swapped.difference == -result.difference


def test_equal_systems_do_not_differ():
    gold, a, _ = labelings()
    for alternative in ("two-sided", "greater", "less"):
        result = paired_bootstrap(gold, a, a, alternative=alternative, n_resamples=50)
        assert result.p_value == 1.0
        assert result[1:4] == (0.0, 0.0, 0.0)


def test_bootstrap_agrees_with_the_normal_approximation():
    rng = np.random.default_rng(0)
    gold = [["a"]] * 400
    pred = [["a"] if rng.random() < 0.7 else ["b"] for _ in gold]
    score, low, high = bootstrap_interval(
        gold, pred, "token_accuracy", n_resamples=4000, random_state=1
    )
    half = stats.norm.ppf(0.975) * np.sqrt(score * (1 - score) / 400)
    assert low == pytest.approx(score - half, abs=0.006)
    assert high == pytest.approx(score + half, abs=0.006)


def test_p_values_are_uniform_under_the_null_hypothesis():
    p_values = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        gold = [["a"] * 4] * 40
        a, b = ([[x.item() for x in rng.choice(["a", "b"], 4)] for _ in gold] for _ in range(2))
        p_values.append(
            paired_bootstrap(
                gold, a, b, "token_accuracy", n_resamples=200, random_state=seed
            ).p_value
        )
    assert stats.kstest(p_values, "uniform").pvalue > 0.001


def test_resamples_are_drawn_in_blocks(monkeypatch):
    monkeypatch.setattr("seqlab.metrics._bootstrap._BLOCK", 30)
    blocks = list(draw(10, 8, np.random.default_rng(0)))
    assert [block.shape for block in blocks] == [(3, 10), (3, 10), (2, 10)]


def test_bootstrap_invalid_input():
    gold, a, b = labelings()
    with pytest.raises(InputError, match=r"unknown metric 'f1' \(metrics: border_f1, macro_recall"):
        bootstrap_interval(gold, a, "f1")
    with pytest.raises(InputError, match="at least two, got 1"):
        bootstrap_interval(gold[:1], a[:1])
    with pytest.raises(InputError, match="n_resamples must be at least 1"):
        bootstrap_interval(gold, a, n_resamples=0)
    with pytest.raises(InputError, match="alternative must be"):
        paired_bootstrap(gold, a, b, alternative="better")
    with pytest.raises(InputError, match="keywords other than sample_weight"):
        bootstrap_interval(gold, a, partial(span_f1, sample_weight=np.ones(25)))
    with pytest.raises(InputError, match="y_true has 25 sequences but y_b has 24"):
        paired_bootstrap(gold, a, b[:-1], lambda y, p: 0.0)
    with pytest.raises(InputError, match="y_true has 25 sequences but y_b has 24"):
        paired_bootstrap(gold, a, b[:-1])
