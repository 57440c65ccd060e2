"""Labels to codes and back; unknown and partially known labels; weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from seqlab.data import InputError
from seqlab.data.labels import (
    PARTIAL,
    UNSEEN,
    decode_labels,
    encode_labels,
    sequence_weights,
)

OFFSETS = np.array([0, 2, 5])


def encode(y, offsets=OFFSETS, stacked=False, **options):
    return encode_labels(y, offsets, stacked=stacked, **options)


@pytest.mark.parametrize(
    "y",
    [
        [["b", "a"], ["a", "c", "b"]],
        [("b", "a"), np.array(["a", "c", "b"])],
        [np.array(["b", "a"]), np.array(["a", "c", "b"])],
        [pd.Series(["b", "a"]), pd.Series(["a", "c", "b"])],
        np.array([np.array(["b", "a"]), np.array(["a", "c", "b"])], dtype=object),
    ],
)
def test_lists_tuples_arrays_and_series(y):
    encoded = encode(y)
    assert encoded.classes.tolist() == ["a", "b", "c"]
    assert encoded.codes.tolist() == [1, 0, 0, 2, 1]
    assert encoded.allowed is None
    assert decode_labels(encoded.codes, encoded.classes).tolist() == ["b", "a", "a", "c", "b"]


@pytest.mark.parametrize(
    "y",
    [[3, 1, 1, 7, 3], np.array([3, 1, 1, 7, 3]), pd.Series([3, 1, 1, 7, 3]), [[3, 1], [1, 7, 3]]],
)
def test_stacked_numbers(y):
    encoded = encode(y, stacked=True)
    assert encoded.classes.tolist() == [1, 3, 7]
    assert encoded.codes.tolist() == [1, 0, 0, 2, 1]


def test_known_classes_and_unseen_labels():
    encoded = encode([["b", "a"], ["z", "c", "b"]], classes=np.array(["a", "b", "c"]))
    assert encoded.codes.tolist() == [1, 0, UNSEEN, 2, 1]
    numbers = encode([[1, 2], [9, 2, 1]], classes=np.array([1, 2]))
    assert numbers.codes.tolist() == [0, 1, UNSEEN, 1, 0]


def test_partially_known():
    encoded = encode([["b", None], [{"a", "c"}, frozenset("b"), "a"]], partial=True)
    assert encoded.classes.tolist() == ["a", "b", "c"]
    assert encoded.codes.tolist() == [
        1,
        PARTIAL,
        PARTIAL,
        1,
        0,
    ]  # a set of one label is a known label
    expected = [[0, 1, 0], [1, 1, 1], [1, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert encoded.allowed.astype(int).tolist() == expected


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, "y is None"),
        ([["a"], ["a", "b", "c"]], r"X\[0\] has 2 steps but y\[0\] has 1 labels"),
        ([["a", "b"]], "X has 2 sequences but y has 1"),
        (["a", "b", "a", "b", "c"], "X has 2 sequences but y has 5"),
        ([["a", None], ["a", "b", "c"]], r"y\[0\]\[1\] is None"),
        ([["a", "b"], ["a", {"a"}, "c"]], r"y\[1\]\[1\] is \{'a'\}"),
        ([["a", 1], ["a", "b", "c"]], "mix"),
        ([["a", ["b"]], ["a", "b", "c"]], r"y\[0\]\[1\] is a list"),
        ([[1.0, np.nan], [1.0, 2.0, 1.0]], r"NaN.*y\[0\]\[1\]"),
        ([np.array([1.0, np.nan]), np.array([1.0, 2.0, 1.0])], r"y\[0\]\[1\]"),
        ([[("a", 1), ("b", 2)], [("a", 1)] * 3], r"y\[0\]\[0\] is a tuple"),
        ([["a", "a\0"], ["a", "a", "a"]], "cannot be used"),
        ([[2**53 + 1, 0.5], [1, 1, 1]], "cannot be used"),
        ([[1.0, np.inf], [1.0, 2.0, 1.0]], r"y\[0\]\[1\]"),
        ([[1j, 2j], [1j, 2j, 1j]], "a complex"),
        ([np.array([1, 2]), np.array(["a", "b", "c"])], "mix strings and numbers"),
        (["ab", "abc"], r"y\[0\] must be a sequence of labels"),
        (7, "y must be a list"),
    ],
)
def test_errors_name_the_position(y, words):
    with pytest.raises(InputError, match=words):
        encode(y)


def test_partial_errors():
    with pytest.raises(InputError, match=r"y\[1\]\[0\] is an empty set"):
        encode([["b", "a"], [set(), "c", "b"]], partial=True)
    with pytest.raises(InputError, match=r"y\[1\]\[0\] allows none"):
        encode([["b", "a"], [{"q", "z"}, "a", "b"]], partial=True, classes=np.array(["a", "b"]))
    with pytest.raises(InputError, match="no label of y is known"):
        encode([[None, None], [None, None, None]], partial=True)
    with pytest.raises(InputError, match=r"known\[0\]\[1\] is an empty set"):
        encode([["b", set()], ["a", "b", "a"]], partial=True, name="known")


def test_stacked_length():
    with pytest.raises(InputError, match="X has 5 steps but y has 4 labels"):
        encode(["a"] * 4, stacked=True)


def test_weights():
    sequences, steps = sequence_weights([2.0, 3.0], OFFSETS)
    assert sequences.tolist() == [2.0, 3.0]
    assert steps.tolist() == [2.0, 2.0, 3.0, 3.0, 3.0]
    sequences, steps = sequence_weights([1.0, 3.0, 0.0, 3.0, 3.0], OFFSETS)
    assert sequences.tolist() == [2.0, 2.0]
    assert steps.tolist() == [1.0, 3.0, 0.0, 3.0, 3.0]
    assert sequence_weights(None, OFFSETS)[0].tolist() == [1.0, 1.0]
    sequences, steps = sequence_weights([[1.0, 3.0], np.array([0.0, 3.0, 3.0])], OFFSETS)
    assert sequences.tolist() == [2.0, 2.0]
    assert steps.tolist() == [1.0, 3.0, 0.0, 3.0, 3.0]
    for bad in ("x", ["a", "b"], [[1.0, 2.0], [3.0]]):
        with pytest.raises(InputError, match="sample_weight"):
            sequence_weights(bad, OFFSETS)


def test_generators_of_labels():
    encoded = encode(labels for labels in [["b", "a"], ["a", "c", "b"]])
    assert encoded.codes.tolist() == [1, 0, 0, 2, 1]
