"""Vocabularies: positions, both forms, round trips, invalid states."""

import pickle

import numpy as np
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st

from seqlab.data import InputError
from seqlab.data.vocabulary import Vocabulary

TRUSTED = ["seqlab.data.vocabulary.Vocabulary"]
any_text = st.text(st.characters(exclude_categories=()), max_size=6)  # lone surrogates included


def through_skops(vocabulary):
    return skops.io.loads(skops.io.dumps(vocabulary), trusted=TRUSTED)


def through_pickle(vocabulary):
    return pickle.loads(pickle.dumps(vocabulary))


@given(st.lists(any_text, unique=True, max_size=30))
def test_order_positions_and_round_trips(names):
    vocabulary = Vocabulary(names)
    assert list(vocabulary) == names
    assert [vocabulary.index[name] for name in names] == list(range(len(names)))
    assert vocabulary.names.tolist() == names
    for restored in (through_pickle(vocabulary), through_skops(vocabulary)):
        assert restored == vocabulary
        assert restored.index == vocabulary.index


@pytest.mark.parametrize(
    "names",
    [
        [],
        [""],
        ["", "\0", "\0\0", "\n", "a\nb"],
        ["\ud800", "\udc00", "\ud800\udc00"],  # the two halves are not joined
        [b"caf\xe9".decode("utf-8", "surrogateescape"), "café", "😀", "日本"],
    ],
)
@pytest.mark.parametrize("trip", [through_pickle, through_skops])
def test_unusual_names_survive_a_round_trip(names, trip):
    assert list(trip(Vocabulary(names))) == names


def test_state_is_one_blob_and_offsets():
    state = Vocabulary(["ab", "é"]).__getstate__()
    assert set(state) == {"blob", "offsets"}
    assert state["blob"].dtype == np.uint8
    assert state["offsets"].tolist() == [0, 2, 4]


@pytest.mark.parametrize("trip", [through_pickle, through_skops])
def test_many_names(trip):
    vocabulary = Vocabulary(f"w[{i % 5}]={i}é" for i in range(300_000))
    restored = trip(vocabulary)
    assert restored == vocabulary
    assert restored.index["w[4]=299999é"] == 299_999


def test_equality_and_membership():
    vocabulary = Vocabulary(["a", "b"])
    assert vocabulary == Vocabulary("ab")
    assert hash(vocabulary) == hash(Vocabulary("ab"))
    assert vocabulary != Vocabulary("ba")
    assert vocabulary != ["a", "b"]
    assert "a" in vocabulary
    assert "c" not in vocabulary
    assert vocabulary[-1] == "b"
    assert repr(Vocabulary("abcd")) == "Vocabulary(4 names: 'a', 'b', 'c', ...)"


def test_names_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        Vocabulary(["a"]).names[0] = "b"


def test_rejects_repeated_names_and_other_types():
    with pytest.raises(InputError, match="'a' twice"):
        Vocabulary(["a", "b", "a"])
    with pytest.raises(InputError, match="name 1 of a vocabulary is int"):
        Vocabulary(["a", 3])


@pytest.mark.parametrize(
    ("blob", "offsets"),
    [
        ([97, 98], [0, 1]),
        ([97, 98], [0, 2, 1, 2]),
        ([97, 98], [1, 2]),
        ([97, 98], []),
        ([255, 98], [0, 2]),
        ([195, 169], [0, 1, 2]),
    ],
)
def test_rejects_an_invalid_state(blob, offsets):
    state = {"blob": np.array(blob, np.uint8), "offsets": np.array(offsets, np.int64)}
    with pytest.raises(InputError, match="invalid"):
        Vocabulary.__new__(Vocabulary).__setstate__(state)


def stored(names):
    """The same vocabulary as loaded from a file: without Python strings."""
    return through_pickle(Vocabulary(names))


@given(st.lists(any_text, unique=True, max_size=20), st.data())
def test_both_forms_give_the_same_results(names, data):
    vocabulary = Vocabulary(names)
    for function in (list, len, hash, repr, Vocabulary.__getstate__):
        np.testing.assert_equal(function(stored(names)), function(vocabulary))
    for one, other in ((stored(names), vocabulary), (vocabulary, stored(names))):
        assert one == other
        assert one != Vocabulary([*names, "".join(names) + "?"])
    for position in range(-len(names), len(names)):
        assert stored(names)[position] == names[position]
    with pytest.raises(IndexError):
        stored(names)[len(names)]
    kept = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(names), max_size=len(names))), bool
    )
    expected = [name for name, keep in zip(names, kept, strict=True) if keep]
    assert list(vocabulary.select(kept)) == list(stored(names).select(kept)) == expected


def test_vocabularies_with_equal_blobs_and_different_offsets_differ():
    assert stored(["ab", "c"]) != stored(["a", "bc"])
    assert stored(["ab"]) != stored(["ab", ""])


def test_the_table_is_built_from_either_form():
    for vocabulary in (Vocabulary(["b", "é", ""]), stored(["b", "é", ""])):
        assert vocabulary.table.find([["", "é", "e", "b"]], 4).tolist() == [2, 1, -1, 0]
        assert vocabulary.table is vocabulary.table
        assert Vocabulary.from_table(vocabulary.table) == vocabulary


def test_the_arrays_of_the_state_are_read_only():
    vocabulary = Vocabulary(["a", "b"])
    for array in vocabulary.__getstate__().values():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_name_that_is_stored_twice_is_an_error():
    state = {"blob": np.frombuffer(b"aa", np.uint8), "offsets": np.array([0, 1, 2])}
    vocabulary = Vocabulary.__new__(Vocabulary)
    vocabulary.__setstate__(state)
    with pytest.raises(InputError, match="twice"):
        _ = vocabulary.table
