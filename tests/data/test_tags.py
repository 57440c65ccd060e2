"""Tag schemes: hand examples, round trips, masks, errors."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlab.data import (
    SCHEMES,
    InputError,
    Phrase,
    convert_tags,
    phrases_to_tags,
    scheme_mask,
    tags_to_phrases,
)

LETTERS = {"IO": "I", "IOB1": "IB", "IOB2": "BI", "IOBES": "BIES", "BILOU": "BILU"}


@st.composite
def phrase_sets(draw, types=("NP", "VP", "A-B", None)):
    """The length of a sequence, and a phrase set of it."""
    phrases, at = [], 0
    for _ in range(draw(st.integers(0, 5))):
        start = at + draw(st.integers(0, 2))
        at = start + draw(st.integers(1, 3))
        phrases.append(Phrase(start, at, draw(st.sampled_from(types))))
    return at + draw(st.integers(0, 2)), phrases


def any_tags(scheme, types=("X", "Y", None)):
    tags = ["O"] + [
        letter if type_ is None else f"{letter}-{type_}"
        for letter in LETTERS[scheme]
        for type_ in types
    ]
    return st.lists(st.sampled_from(tags), max_size=12)


def merges_in_io(phrases):
    return any(a.stop == b.start and a.type == b.type for a, b in itertools.pairwise(phrases))


HAND = [Phrase(0, 1, "N"), Phrase(1, 4, "N"), Phrase(5, 7, "V")]


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("IOB1", "I-N B-N I-N I-N O I-V I-V"),
        ("IOB2", "B-N B-N I-N I-N O B-V I-V"),
        ("IOBES", "S-N B-N I-N E-N O B-V E-V"),
        ("BILOU", "U-N B-N I-N L-N O B-V L-V"),
    ],
)
def test_hand_example(scheme, tags):
    assert phrases_to_tags(HAND, 7, scheme) == tags.split()
    assert phrases_to_tags(HAND[::-1], 7, scheme) == tags.split()
    for strict in (False, True):
        assert tags_to_phrases(tags.split(), scheme, strict) == HAND


@given(phrase_sets())
def test_round_trip_is_exact_in_every_scheme(case):
    length, phrases = case
    for scheme in SCHEMES:
        if scheme == "IO" and merges_in_io(phrases):
            with pytest.raises(InputError, match="IO would merge them at step"):
                phrases_to_tags(phrases, length, scheme)
            continue
        tags = phrases_to_tags(phrases, length, scheme)
        assert len(tags) == length
        for strict in (False, True):
            assert tags_to_phrases(tags, scheme, strict=strict) == phrases


@given(phrase_sets())
def test_conversion_goes_through_the_phrases(case):
    length, phrases = case
    for source, target in itertools.product(SCHEMES[1:], repeat=2):
        tags = phrases_to_tags(phrases, length, source)
        assert convert_tags(tags, source, target) == phrases_to_tags(phrases, length, target)


def plain_conlleval(tags):
    """The rules of conlleval, one step at a time."""
    phrases, start, type_ = [], None, None
    for i, tag in enumerate([*tags, "O"]):
        letter, current = tag[0], tag[2:] or None
        begins = letter == "B" or (letter == "I" and (start is None or current != type_))
        if start is not None and (letter == "O" or begins):
            phrases.append(Phrase(start, i, type_))
            start = None
        if begins:
            start, type_ = i, current
    return phrases


@given(any_tags("IOB2"))
def test_default_reading_equals_conlleval(tags):
    assert tags_to_phrases(tags, "IOB2") == plain_conlleval(tags)
    assert tags_to_phrases(tags, "IOB1") == plain_conlleval(tags)


@given(any_tags("IOBES"))
def test_bilou_is_iobes_with_other_letters(tags):
    bilou = [tag.replace("E-", "L-").replace("S-", "U-") for tag in tags]
    bilou = [{"E": "L", "S": "U"}.get(tag, tag) for tag in bilou]
    for strict in (False, True):
        assert tags_to_phrases(bilou, "BILOU", strict) == tags_to_phrases(tags, "IOBES", strict)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_mask_allows_exactly_the_tags_of_phrases(scheme):
    classes = ["O"] + [f"{letter}-{type_}" for letter in LETTERS[scheme] for type_ in "XY"]
    mask = scheme_mask(np.array(classes), scheme)
    assert mask.transitions.dtype == bool
    assert mask.transitions.shape == (len(classes), len(classes))
    for length in range(1, 4):
        for path in itertools.product(range(len(classes)), repeat=length):
            legal = (
                mask.start[path[0]]
                and mask.end[path[-1]]
                and all(mask.transitions[i, j] for i, j in itertools.pairwise(path))
            )
            tags = [classes[k] for k in path]
            phrases = tags_to_phrases(tags, scheme)
            assert legal == (phrases_to_tags(phrases, length, scheme) == tags)
            if legal:
                assert tags_to_phrases(tags, scheme, strict=True) == phrases


@given(any_tags("IOBES"))
def test_strict_phrases_are_well_formed(tags):
    strict = tags_to_phrases(tags, "IOBES", strict=True)
    for start, stop, type_ in strict:
        suffix = "" if type_ is None else f"-{type_}"
        expected = [f"B{suffix}", *[f"I{suffix}"] * (stop - start - 2), f"E{suffix}"]
        assert tags[start:stop] == (expected if stop - start > 1 else [f"S{suffix}"])


def test_malformed_hand_examples():
    tags = ["I-X", "I-Y", "O", "I-X", "B-X", "I-Y"]
    assert tags_to_phrases(tags) == [
        Phrase(0, 1, "X"),
        Phrase(1, 2, "Y"),
        Phrase(3, 4, "X"),
        Phrase(4, 5, "X"),
        Phrase(5, 6, "Y"),
    ]
    assert tags_to_phrases(tags, strict=True) == [Phrase(4, 5, "X")]


def test_type_is_everything_after_the_first_hyphen():
    assert tags_to_phrases(["B-NP-SBJ", "I-NP-SBJ"]) == [Phrase(0, 2, "NP-SBJ")]
    assert tags_to_phrases(["B--X"]) == [Phrase(0, 1, "-X")]


def test_empty_sequence_and_arrays():
    for scheme in SCHEMES:
        assert tags_to_phrases([], scheme) == []
        assert phrases_to_tags([], 0, scheme) == []
    assert tags_to_phrases(np.array(["B-X", "O"])) == [Phrase(0, 1, "X")]
    assert tags_to_phrases(np.array(["B-X", "O"], dtype=object)) == [Phrase(0, 1, "X")]
    assert convert_tags(np.array(["B-X", "O"]), "IOB2", "BILOU") == ["U-X", "O"]


@pytest.mark.parametrize(
    ("tags", "scheme", "message"),
    [
        (["O", "E-X"], "IOB2", r"tag 'E-X' at position 1 does not belong to IOB2 \(O, B-type, I"),
        (["O", "B-X"], "IO", "tag 'B-X' at position 1 does not belong to IO"),
        (["L-X"], "IOBES", "'L-X' at position 0"),
        (["O-X"], "IOB2", "'O-X'"),
        (["B-"], "IOB2", "'B-'"),
        (["BX"], "IOB2", "'BX'"),
        ([""], "IOB2", "tag '' at position 0"),
        (["B-X", 3], "IOB2", "tag 3 at position 1"),
        (["B-X", None], "IOB2", "tag None at position 1"),
        ([["B-X"]], "IOB2", r"tag \['B-X'\] at position 0"),
        ("B-X", "IOB2", "got the string 'B-X'"),
    ],
)
def test_tags_of_other_schemes_are_named(tags, scheme, message):
    with pytest.raises(InputError, match=message):
        tags_to_phrases(tags, scheme)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("BIO", "IOB2"), ("iob2", "IOB2"), ("BIOES", "IOBES"), ("BILUO", "BILOU"), ("IOB3", "IOB2")],
)
def test_unknown_scheme_suggests_the_nearest(name, nearest):
    with pytest.raises(InputError, match=f"unknown tag scheme '{name}'; did you mean '{nearest}'"):
        scheme_mask(["O"], name)


@pytest.mark.parametrize("name", [None, 3, "something else"])
def test_unknown_scheme_without_a_similar_one(name):
    with pytest.raises(InputError, match=r"unknown tag scheme .* \(schemes: IO, IOB1, IOB2"):
        tags_to_phrases(["O"], name)


def test_bad_phrases_and_classes():
    with pytest.raises(InputError, match="ends after the last of 2 steps"):
        phrases_to_tags([(0, 3, "X")], 2)
    with pytest.raises(InputError, match="empty type"):
        phrases_to_tags([(0, 1, "")], 2)
    with pytest.raises(InputError, match=r"tag 'E-X' \(class 1\) does not belong to IOB2"):
        scheme_mask(["O", "E-X"], "IOB2")
