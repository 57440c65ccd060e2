"""Phrases and the checks on phrase sets."""

import pickle

import numpy as np
import pytest

from seqlab.data import InputError, Phrase, check_phrases, sort_phrases


def test_phrase_is_a_value():
    phrase = Phrase(0, 2, "NP")
    assert phrase == Phrase(start=0, stop=2, type="NP")
    assert len({phrase, Phrase(0, 2, "NP"), Phrase(0, 2)}) == 2
    assert repr(phrase) == "Phrase(start=0, stop=2, type='NP')"
    assert pickle.loads(pickle.dumps(phrase)) == phrase
    with pytest.raises(AttributeError):
        phrase.start = 1


def test_check_accepts_tuples_and_numpy_integers():
    checked = check_phrases([(np.int64(0), np.int32(1), "A"), (1, 3)], length=3)
    assert checked == [Phrase(0, 1, "A"), Phrase(1, 3, None)]
    assert type(checked[0].start) is int


@pytest.mark.parametrize(
    ("phrases", "message"),
    [
        ([(-1, 2, "A")], r"phrase 0 \(steps -1:2, type 'A'\) starts before step 0"),
        ([(0, 1, "A"), (2, 2, "B")], r"phrase 1 \(steps 2:2, type 'B'\) is empty"),
        ([(3, 6, "A")], r"phrase 0 .* ends after the last of 5 steps"),
        ([(0, 3, "A"), (2, 4, "B")], r"phrase 1 .* overlaps phrase 0 .* at step 2"),
        ([(2, 3, "A"), (0, 1, "B")], r"phrase 1 .* comes before phrase 0 .* sorted"),
        ([(0, 3, "A"), (0, 3, "A")], r"overlaps phrase 0 .* at step 0"),
        ([(0.5, 3, "A")], r"phrase 0 is \(0.5, 3, 'A'\): expected"),
        ([(0, 1, "A", 2)], "expected"),
        ([7], "phrase 0 is 7"),
        ([(0, 1, 3)], "phrase 0 has the type 3"),
    ],
)
def test_check_names_the_phrase(phrases, message):
    with pytest.raises(InputError, match=message):
        check_phrases(phrases, length=5)


def test_sort_ignores_types():
    assert sort_phrases([(1, 2, "A"), (0, 1, None), (1, 2, None)]) == [
        Phrase(0, 1, None),
        Phrase(1, 2, "A"),
        Phrase(1, 2, None),
    ]
