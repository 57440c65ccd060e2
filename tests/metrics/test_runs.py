"""Runs: values computed by hand, a second implementation by enumeration, invariants, errors."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import maximum_bipartite_matching

from seqlab.data import InputError
from seqlab.metrics import (
    bootstrap_interval,
    border_f1,
    label_runs,
    run_f1,
    run_report,
)

GOLD = ["t"] * 8 + ["s"] * 4 + ["t"] * 3
LATE = ["t"] * 9 + ["s"] * 3 + ["t"] * 3


@st.composite
def labelings(draw):
    labels = st.sampled_from(["a", "b", "c"])
    gold = [*draw(st.lists(st.lists(labels, max_size=9), max_size=3)), [draw(labels)]]
    return gold, [[draw(labels) for _ in sequence] for sequence in gold]


def f1(right, predicted, gold):
    return 2 * right / (predicted + gold) if predicted + gold else 0.0


def test_runs_of_a_sequence():
    assert label_runs([]) == []
    assert [tuple(run) for run in label_runs(np.array(GOLD))] == [
        ("t", 0, 8),
        ("s", 8, 12),
        ("t", 12, 15),
    ]
    assert [run.label for run in label_runs([True, False, False])] == [True, False]


def test_values_computed_by_hand():
    assert run_f1([GOLD], [LATE]) == pytest.approx(1 / 3)  # only the last run is exact
    assert run_f1([GOLD], [LATE], overlap=0.75) == 1.0
    assert run_f1([GOLD], [LATE], overlap=0.8) == pytest.approx(2 / 3)
    assert run_f1([GOLD], [LATE], overlap=0.75, ignore="t") == 1.0
    assert run_f1([GOLD], [LATE], ignore="t") == 0.0
    assert border_f1([GOLD], [LATE]) == 0.5
    assert border_f1([GOLD], [LATE], tolerance=1) == 1.0
    assert border_f1([["t", "t"]], [["t", "t"]]) == 1.0  # no borders
    assert border_f1([["t", "t"]], [["t", "s"]]) == 0.0
    # Borders to different labels do not match.
    assert border_f1([["a", "b"]], [["a", "c"]], tolerance=5) == 0.0


@given(labelings(), st.sampled_from([0.51, 0.6, 0.75, 1.0]))
def test_run_f1_by_enumeration(data, overlap):
    gold, found = data
    right = n_gold = n_found = 0
    for a, b in zip(gold, found, strict=True):
        ours, theirs = label_runs(a), label_runs(b)
        n_gold, n_found = n_gold + len(ours), n_found + len(theirs)
        for run in ours:
            for other in theirs:
                x, y = set(range(run.start, run.stop)), set(range(other.start, other.stop))
                enough = len(x & y) >= overlap * len(x | y)
                right += run.label == other.label and enough
    assert run_f1(gold, found, overlap=overlap) == pytest.approx(f1(right, n_found, n_gold))


@given(labelings(), st.integers(0, 4))
def test_border_f1_by_bipartite_matching(data, tolerance):
    gold, found = data
    right = n_gold = n_found = 0
    for a, b in zip(gold, found, strict=True):
        ours, theirs = label_runs(a)[1:], label_runs(b)[1:]
        n_gold, n_found = n_gold + len(ours), n_found + len(theirs)
        near = np.array(
            [
                [p.label == q.label and abs(p.start - q.start) <= tolerance for q in theirs]
                for p in ours
            ]
        )
        if ours and theirs:
            right += (maximum_bipartite_matching(sp.csr_matrix(near), "column") >= 0).sum()
    expected = f1(right, n_found, n_gold) if n_gold + n_found else 1.0
    assert border_f1(gold, found, tolerance=tolerance) == pytest.approx(expected)


@given(labelings())
def test_identities(data):
    gold, found = data
    assert run_f1(gold, gold) == border_f1(gold, gold) == 1.0
    assert run_f1(gold, found) == pytest.approx(run_f1(found, gold))
    assert border_f1(gold, found, tolerance=2) == pytest.approx(border_f1(found, gold, tolerance=2))
    lengths = [len(labels) for labels in gold]
    flat = [list(chain(*gold)), list(chain(*found))]
    assert run_f1(*flat, lengths=lengths) == run_f1(gold, found)
    assert run_f1(gold, found, overlap=0.6) >= run_f1(gold, found, overlap=0.9)
    report = run_report(gold, found)
    assert report.total.gold == sum(one.gold for one in report.labels.values())
    assert report.total.found == sum(one.found for one in report.labels.values())


@pytest.mark.parametrize("percent", range(51, 101))
def test_overlap_is_compared_without_rounding_errors(percent):
    # The shortest predicted run that reaches the overlap, for gold runs of 1 to 100 steps.
    just_enough = {n: -(-percent * n // 100) for n in range(1, 101)}
    gold = [["a"] * n for n in just_enough]
    for short, score in ((0, 1.0), (1, 0.0)):
        found = [["a"] * (k - short) + ["b"] * (n - k + short) for n, k in just_enough.items()]
        assert run_f1(gold, found, overlap=percent / 100, ignore="b") == score


def test_report():
    report = run_report([GOLD, GOLD], [LATE, GOLD], overlap=0.8, tolerance=0)
    signature = report.labels["s"]
    assert (signature.gold, signature.predicted, signature.found) == (2, 2, 1)
    assert signature.predicted_length == 3.5
    assert report.border_f1 == 0.75
    text = str(report)
    assert text.splitlines()[0].split()[-2:] == ["run", "F1"]
    assert len({len(line) for line in text.splitlines()[:4]}) == 1  # columns line up
    assert "within 0 steps: 0.750" in text
    nothing = run_report([["a"]], [["b"]])
    assert nothing.labels["b"].gold_length == 0.0
    assert nothing.total.f1 == 0.0


def test_weights_and_intervals():
    both = [GOLD, GOLD], [LATE, GOLD]
    assert run_f1(*both, sample_weight=[0, 1]) == 1.0
    assert run_f1(*both, sample_weight=[1, 0]) == pytest.approx(1 / 3)
    interval = bootstrap_interval(*both, run_f1, n_resamples=50, random_state=0)
    assert interval.low <= run_f1(*both) <= interval.high
    # Of two sequences, a quarter of the resamples have only the bad one, a quarter only the good one.
    interval = bootstrap_interval(*both, border_f1, n_resamples=50, random_state=0)
    assert (interval.low, interval.high) == (border_f1([GOLD], [LATE]), 1.0)
    assert interval.low < interval.high


def test_an_interval_of_perfect_borders_is_one():
    for labels in ([["t", "t"]] * 4, [["t", "s"], *[["t", "t"]] * 9]):
        assert bootstrap_interval(labels, labels, "border_f1", random_state=0) == (1.0, 1.0, 1.0)


def test_invalid_input():
    for overlap in (0.5, 1.2):
        with pytest.raises(InputError, match="overlap must be above"):
            run_f1([GOLD], [LATE], overlap=overlap)
    for tolerance in (-1, 0.5):
        with pytest.raises(InputError, match="tolerance must be a number of steps"):
            border_f1([GOLD], [LATE], tolerance=tolerance)
    with pytest.raises(InputError, match=r"y_true\[0\] has 15 labels but y_pred\[0\] has 14"):
        run_report([GOLD], [LATE[:-1]])
