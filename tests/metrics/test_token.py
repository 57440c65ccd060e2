"""Token and sequence scores, confusion matrix, error at the best threshold, invalid input."""

from itertools import chain

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, confusion_matrix

from seqlab.data import InputError
from seqlab.metrics import (
    confusion,
    macro_recall,
    min_error_threshold,
    sequence_accuracy,
    span_f1,
    token_accuracy,
    token_report,
)

GOLD = [["N", "V", "N"], ["D", "N"], []]
PRED = [["N", "V", "V"], ["D", "N"], []]


def flat(y):
    return list(chain.from_iterable(y))


@st.composite
def labelings(draw):
    """Gold and predicted labels of the same shape, at least one label."""
    labels = st.sampled_from(["a", "b", "c"])
    gold = [*draw(st.lists(st.lists(labels, max_size=5), max_size=4)), [draw(labels)]]
    return gold, [[draw(labels) for _ in sequence] for sequence in gold]


def test_hand_example():
    assert token_accuracy(GOLD, PRED) == pytest.approx(4 / 5)
    assert macro_recall(GOLD, PRED) == pytest.approx((1 + 2 / 3 + 1) / 3)
    assert sequence_accuracy(GOLD, PRED) == pytest.approx(2 / 3)


@given(labelings())
def test_equals_scikit_learn_on_the_stacked_labels(case):
    gold, pred = case
    flat_gold, flat_pred = flat(gold), flat(pred)
    assert token_accuracy(gold, pred) == pytest.approx(accuracy_score(flat_gold, flat_pred))
    present = set(flat_gold)
    kept = [(g, p) for g, p in zip(flat_gold, flat_pred, strict=True)]
    recalls = [np.mean([p == g for g, p in kept if g == label]) for label in present]
    assert macro_recall(gold, pred) == pytest.approx(np.mean(recalls))
    if set(flat_pred) <= present and len(present) > 1:
        assert macro_recall(gold, pred) == pytest.approx(
            balanced_accuracy_score(flat_gold, flat_pred)
        )
    table = confusion(gold, pred, labels=["a", "b", "c"])
    np.testing.assert_array_equal(
        table.matrix, confusion_matrix(flat_gold, flat_pred, labels=table.labels)
    )


@given(labelings())
def test_accuracy_is_the_weighted_mean_of_the_recalls(case):
    gold, pred = case
    rows = token_report(gold, pred).to_dict()
    labels = sorted(set(flat(gold)))
    n_steps = sum(map(len, gold))
    weighted = sum(rows[label]["recall"] * rows[label]["support"] for label in labels) / n_steps
    assert token_accuracy(gold, pred) == pytest.approx(weighted)
    assert rows["micro avg"]["f1"] == pytest.approx(weighted)


@given(labelings())
def test_forms_of_the_input_agree(case):
    gold, pred = case
    lengths = [len(sequence) for sequence in gold]
    flat_gold, flat_pred = np.array(flat(gold)), np.array(flat(pred))
    objects = np.empty(len(gold), dtype=object)
    objects[:] = gold
    for metric in (token_accuracy, macro_recall, sequence_accuracy):
        expected = metric(gold, pred)
        assert metric([np.array(g, dtype=str) for g in gold], pred) == expected
        assert (
            metric(tuple(map(tuple, gold)), [pd.Series(p, dtype=object) for p in pred]) == expected
        )
        assert metric(objects, pred) == expected
        assert metric(flat_gold, flat_pred, lengths=lengths) == expected
        assert metric(flat_gold.tolist(), pd.Series(flat_pred), lengths=lengths) == expected
        order = np.argsort(lengths)
        shuffled = [gold[i] for i in order], [pred[i] for i in order]
        assert metric(*shuffled) == pytest.approx(expected)


@given(labelings(), st.data())
def test_integer_weights_equal_repeated_sequences(case, data):
    gold, pred = case
    weight = [data.draw(st.integers(0, 2)) for _ in gold[:-1]] + [1]
    repeated = [
        [sequence for sequence, w in zip(y, weight, strict=True) for _ in range(w)]
        for y in (gold, pred)
    ]
    for metric in (token_accuracy, macro_recall, sequence_accuracy):
        assert metric(gold, pred, sample_weight=weight) == pytest.approx(metric(*repeated))


def test_equal_lengths_as_a_matrix_and_integer_labels():
    gold, pred = np.array([[0, 1], [2, 2]]), [[0, 1], [2, 1]]
    assert token_accuracy(gold, pred) == 0.75
    assert sequence_accuracy(gold, np.array(pred)) == 0.5


def test_ignore():
    gold, pred = [["idle", "idle", "cook", "eat"]], [["cook", "idle", "cook", "idle"]]
    assert token_accuracy(gold, pred, ignore="idle") == 0.5
    assert macro_recall(gold, pred, ignore=["idle"]) == 0.5
    assert macro_recall(gold, pred, ignore={"idle", "eat"}) == 1.0
    rows = token_report(gold, pred, ignore="idle").to_dict()
    assert "idle" not in rows
    assert rows["cook"]["precision"] == 0.5  # the idle step still counts as an error
    with pytest.raises(InputError, match="no label to score"):
        token_accuracy(gold, pred, ignore=["idle", "cook", "eat"])


def test_labels_unseen_in_gold_are_errors():
    assert token_accuracy([["a", "b"]], [["a", "zzz"]]) == 0.5
    assert macro_recall([["a", "b"]], [["a", "zzz"]]) == 0.5
    assert token_accuracy([[1, 2]], [["1", "2"]]) == 0.0


def test_confusion_with_chosen_labels():
    table = confusion(GOLD, PRED, labels=["V", "N", "X"])
    assert table.matrix.tolist() == [[1, 0, 0], [1, 2, 0], [0, 0, 0]]
    assert table.worst() == [("N", "V", 1)]
    assert confusion(GOLD, GOLD).worst() == []


@pytest.mark.parametrize(
    ("gold", "pred", "message"),
    [
        ([["a"], ["a", "b"]], [["a"], ["a"]], r"y_true\[1\] has 2 labels but y_pred\[1\] has 1"),
        ([["a"]], [["a"], ["b"]], "y_true has 1 sequences but y_pred has 2"),
        (["a", "b"], ["a"], "y_true has 2 labels but y_pred has 1"),
        ([["a"]], ["a"], "y_true is a list of labels but y_pred is a flat sequence"),
        ([["a"], "b"], [["a"], ["b"]], r"y_true\[1\] is the label 'b'"),
        ([["a", None]], [["a", "b"]], r"y_true\[0\]\[1\] is None: only known labels"),
        ([["a", {"b"}]], [["a", "b"]], r"y_true\[0\]\[1\] is \{'b'\}: only known labels"),
        (["a", None], ["a", "b"], r"y_true\[1\] is None"),
        ([["a"]], [[["a"]]], r"y_pred\[0\]\[0\] is \['a'\]"),
        ([["a"]], [np.zeros((1, 2))], r"y_pred\[0\] has 2 dimensions"),
        (np.zeros((1, 1, 1)), [["a"]], "y_true must have one or two dimensions"),
        ([["a"], ["b", float("nan")]], [["a"], ["b", "b"]], r"y_true\[1\]\[1\] is nan: only known"),
        ([[1.0, 2.0]], [np.array([1.0, np.nan])], r"y_pred\[0\]\[1\] is nan: only known"),
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), r"y_true\[1\] is nan"),
        (np.array([[1.0, np.nan]]), [[1.0, 1.0]], r"y_true\[0\]\[1\] is nan"),
        (pd.Series(["a", None]), ["a", "b"], r"y_true\[1\] is (nan|None)"),
        ([["a", pd.NA]], [["a", "b"]], r"y_true\[0\]\[1\] is <NA>"),
        ([["a", frozenset("b")]], [["a", "b"]], r"y_true\[0\]\[1\] is frozenset"),
        ([["a", ([],)]], [["a", "b"]], r"y_true\[0\]\[1\] is \(\[\],\)"),
        ("abc", "abc", "y_true must be a list of label sequences, got str"),
        (None, [["a"]], "y_true must be a list of label sequences, got NoneType"),
    ],
)
def test_invalid_input_is_named(gold, pred, message):
    for metric in (token_accuracy, macro_recall, sequence_accuracy, confusion, span_f1):
        with pytest.raises(InputError, match=message):
            metric(gold, pred)


def test_nothing_to_score():
    for metric in (token_accuracy, macro_recall, sequence_accuracy):
        with pytest.raises(InputError, match="there is no"):
            metric([], [])
    with pytest.raises(InputError, match="there is no label"):
        token_accuracy([[], []], [[], []])
    assert sequence_accuracy([[], []], [[], []]) == 1.0


def test_invalid_lengths_and_weights():
    with pytest.raises(InputError, match="sum to the 3 labels"):
        token_accuracy(["a"] * 3, ["a"] * 3, lengths=[1, 1])
    for lengths in (3, [1.5, 2.5], "3", ["3"], [4, -1]):
        with pytest.raises(InputError, match="lengths"):
            token_accuracy(["a"] * 3, ["a"] * 3, lengths=lengths)
    with pytest.raises(InputError, match="is for stacked labels"):
        token_accuracy([["a"]], [["a"]], lengths=[1])
    with pytest.raises(InputError, match=r"shape \(1,\) but there are 2 sequences"):
        token_accuracy([["a"], ["b"]], [["a"], ["b"]], sample_weight=[1.0])
    with pytest.raises(InputError, match="finite and not negative"):
        token_accuracy([["a"]], [["a"]], sample_weight=[-1.0])


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from([-1.0, 0.0, 0.25, 2.0])), min_size=1, max_size=12
    )
)
def test_min_error_threshold_is_the_best_of_all(pairs):
    gold = np.array([g for g, _ in pairs])
    scores = np.array([s for _, s in pairs])
    result = min_error_threshold(gold, scores)
    errors = {t: np.mean((scores >= t) != gold) for t in [*sorted(set(scores)), np.inf]}
    assert result.error == pytest.approx(min(errors.values()))
    assert result.threshold == min(errors, key=lambda t: (round(errors[t], 12), t))


def test_min_error_threshold_forms_and_errors():
    assert min_error_threshold([["n", "y"], ["y"]], [[0.2, 0.7], [0.9]]) == (0.0, 0.7)
    assert min_error_threshold(["a", "a"], [0.5, 0.6], pos_label="b") == (0.0, np.inf)
    assert min_error_threshold(["n", "y"], [0.9, 0.2], pos_label="n") == (0.0, 0.9)
    with pytest.raises(InputError, match=r"y_true\[0\] has 2 labels but scores\[0\] has 1"):
        min_error_threshold([[0, 1], [1]], [[0.1], [0.2, 0.3]])
    with pytest.raises(InputError, match="two labels, got 3"):
        min_error_threshold([0, 1, 2], [0.1, 0.2, 0.3])
    with pytest.raises(InputError, match="score 1 is not finite"):
        min_error_threshold([0, 1], [0.1, np.nan])
    with pytest.raises(InputError, match="pos_label must be set"):
        min_error_threshold(["a"], [0.1])
    with pytest.raises(InputError, match="2 labels but there are 1 scores"):
        min_error_threshold([0, 1], [0.1])
