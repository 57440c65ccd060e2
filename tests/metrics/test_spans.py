"""Span scores: examples computed by hand, symmetry, and equality with seqeval."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.metrics.sequence_labeling import precision_recall_fscore_support as lenient_seqeval
from seqeval.metrics.v1 import precision_recall_fscore_support as strict_seqeval
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES

from seqlab.data import InputError, tags_to_phrases
from seqlab.metrics import (
    span_f1,
    span_precision,
    span_precision_recall_f1,
    span_recall,
    span_report,
)
from seqlab.metrics.spans import span_counts

LETTERS = {"IO": "I", "IOB1": "IB", "IOB2": "BI", "IOBES": "BIES", "BILOU": "BILU"}


def flat(y):
    return list(chain.from_iterable(y))


@st.composite
def tag_pairs(draw, scheme, types=("X", "Y", "NP-SBJ", None)):
    """Gold and predicted tags of the same shape, well-formed or not."""
    tags = ["O"] + [
        letter if type_ is None else f"{letter}-{type_}"
        for letter in LETTERS[scheme]
        for type_ in types
    ]
    tag = st.sampled_from(tags)
    gold = draw(st.lists(st.lists(tag, min_size=1, max_size=8), min_size=1, max_size=4))
    # Every other predicted tag is the gold one; random tags would hardly ever be right.
    pred = [[g if draw(st.booleans()) else draw(tag) for g in sequence] for sequence in gold]
    return gold, pred


def assert_equal_scores(gold, pred, scheme, strict, peer, peer_types):
    if not peer_types:
        for average in ("micro", "macro", "weighted"):
            assert span_precision_recall_f1(gold, pred, scheme, strict, average) == (0, 0, 0, 0)
        return
    for average in ("micro", "macro", "weighted", None):
        ours = span_precision_recall_f1(gold, pred, scheme, strict, average)
        for mine, theirs in zip(ours, peer(average), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-12)
    assert span_report(gold, pred, scheme, strict).classes == sorted(peer_types)


@pytest.mark.parametrize("scheme", ["IO", "IOB1", "IOB2", "IOBES"])
@given(data=st.data())
def test_equals_seqeval_in_default_mode(scheme, data):
    gold, pred = data.draw(tag_pairs(scheme))
    types = {type_ for y in (gold, pred) for type_, _, _ in get_entities(y)}

    def peer(average):
        return lenient_seqeval(gold, pred, average=average, zero_division=0)

    assert_equal_scores(gold, pred, scheme, False, peer, types)


@pytest.mark.parametrize(
    ("scheme", "peer_scheme"), [("IOB1", IOB1), ("IOB2", IOB2), ("IOBES", IOBES), ("BILOU", BILOU)]
)
@given(data=st.data())
def test_equals_seqeval_in_strict_mode(scheme, peer_scheme, data):
    gold, pred = data.draw(tag_pairs(scheme))
    types = {
        phrase.type or "_"
        for y in (gold, pred)
        for tags in y
        for phrase in tags_to_phrases(tags, scheme, strict=True)
    }

    def peer(average):
        return strict_seqeval(gold, pred, average=average, zero_division=0, scheme=peer_scheme)

    assert_equal_scores(gold, pred, scheme, True, peer, types)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("scheme", LETTERS)
@settings(max_examples=50)
@given(data=st.data())
def test_counts_equal_those_of_the_phrases(scheme, strict, data):
    gold, pred = data.draw(tag_pairs(scheme))
    counts = span_counts(gold, pred, scheme, strict)
    table = counts.matrix.toarray().reshape(len(gold), len(counts.types), 3)
    for i, (g, p) in enumerate(zip(gold, pred, strict=True)):
        gold_set, pred_set = (set(tags_to_phrases(y, scheme, strict)) for y in (g, p))
        for k, type_ in enumerate(counts.types):
            sets = [
                {phrase for phrase in phrases if (phrase.type or "_") == type_}
                for phrases in (gold_set & pred_set, pred_set, gold_set)
            ]
            assert table[i, k].tolist() == [len(s) for s in sets]


@given(tag_pairs("IOB2"))
def test_swapping_gold_and_prediction(pair):
    gold, pred = pair
    scores, swapped = span_precision_recall_f1(gold, pred), span_precision_recall_f1(pred, gold)
    assert scores.f1 == pytest.approx(swapped.f1)
    assert scores.precision == pytest.approx(swapped.recall)
    assert span_f1(gold, pred, average="macro") == pytest.approx(
        span_f1(pred, gold, average="macro")
    )


@given(tag_pairs("IOB2"))
def test_forms_and_single_scores_agree(pair):
    gold, pred = pair
    scores = span_precision_recall_f1(gold, pred)
    assert span_precision(gold, pred) == scores.precision
    assert span_recall(gold, pred) == scores.recall
    assert span_f1(gold, pred) == scores.f1
    lengths = [len(sequence) for sequence in gold]
    flat_gold, flat_pred = np.array(flat(gold)), np.array(flat(pred))
    assert span_precision_recall_f1(flat_gold, flat_pred, lengths=lengths) == scores
    as_arrays = [np.array(p, dtype=object) for p in pred]
    assert span_precision_recall_f1(gold, as_arrays) == scores
    doubled = span_precision_recall_f1(gold, pred, sample_weight=np.full(len(gold), 2.0))
    assert doubled[:3] == pytest.approx(scores[:3])
    assert doubled.support == 2 * scores.support


def test_sentence_computed_by_hand():
    gold = [["B-NP", "I-NP", "O", "B-VP", "B-NP"]]
    pred = [["B-NP", "I-NP", "B-PP", "B-VP", "B-VP"]]
    # Right: NP 0:2 and VP 3:4 of four predicted and three gold phrases.
    assert span_precision_recall_f1(gold, pred) == pytest.approx((2 / 4, 2 / 3, 4 / 7, 3))
    per_type = span_precision_recall_f1(gold, pred, average=None)  # NP, PP, VP
    np.testing.assert_allclose(per_type.precision, [1, 0, 1 / 2])
    np.testing.assert_allclose(per_type.recall, [1 / 2, 0, 1])
    np.testing.assert_allclose(per_type.f1, [2 / 3, 0, 2 / 3])
    assert per_type.support.tolist() == [2, 0, 1]
    assert span_f1(gold, pred, average="macro") == pytest.approx(4 / 9)
    assert span_f1(gold, pred, average="weighted") == pytest.approx(2 / 3)


def test_phrases_do_not_cross_sequences():
    gold = [["B-X"], ["I-X"]]
    assert span_f1(gold, [["B-X"], ["B-X"]]) == 1.0
    assert span_f1(flat(gold), ["B-X", "B-X"]) == 0.0
    assert span_f1([[], ["B-X"], []], [[], ["B-X"], []]) == 1.0


def test_empty_prediction_is_zero_without_warning():
    assert span_precision_recall_f1([["B-X"]], [["O"]]) == (0.0, 0.0, 0.0, 1)
    assert span_precision_recall_f1([["O"]], [["B-X"]]) == (0.0, 0.0, 0.0, 0)
    for average in ("micro", "macro", "weighted"):
        assert span_f1([["O"]], [["O"]], average=average) == 0.0
        assert span_f1([], [], average=average) == 0.0
    assert span_precision_recall_f1([["O"]], [["O"]], average=None).f1.shape == (0,)


def test_types_unseen_in_gold_are_errors():
    assert span_precision_recall_f1([["B-X", "O"]], [["B-X", "B-NEW"]]).precision == 0.5


def test_invalid_input():
    with pytest.raises(InputError, match=r"tag 'E-X' at y_pred\[1\]\[1\] does not belong to IOB2"):
        span_f1([["O"], ["O", "O"]], [["O"], ["O", "E-X"]])
    with pytest.raises(InputError, match=r"tag 7 at y_true\[1\] does not belong"):
        span_f1(["O", 7], ["O", "O"])
    with pytest.raises(InputError, match="did you mean 'IOB2'"):
        span_f1([["O"]], [["O"]], "BIO")
    with pytest.raises(InputError, match="average must be one of 'micro', 'macro', 'weighted'"):
        span_f1([["O"]], [["O"]], average=None)
    with pytest.raises(InputError, match="or None, got 'samples'"):
        span_precision_recall_f1([["O"]], [["O"]], average="samples")


def test_a_hundred_thousand_steps():
    tags = ["B-X", "I-X", "O", "B-Y", "I-Y", "I-Y"] * 20_000
    assert span_f1(tags, tags) == 1.0
    assert span_precision_recall_f1([tags], [tags]).support == 40_000
