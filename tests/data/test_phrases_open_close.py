"""Open/close coding: bijection with phrase sets, the diagram, errors."""

import itertools

import numpy as np
import pytest

from seqlab.data import (
    InputError,
    Phrase,
    open_close_mask,
    open_close_to_phrases,
    phrases_to_open_close,
)
from seqlab.data.open_close import CLOSE_DECISIONS, DECISIONS, OPEN_DECISIONS


def all_phrase_sets(length, start=0):
    yield []
    for a in range(start, length):
        for b in range(a + 1, length + 1):
            for rest in all_phrase_sets(length, b):
                yield [Phrase(a, b, "X"), *rest]


def legal_paths(length):
    transitions, start, end = open_close_mask()
    kinds = [range(3), range(3, 6)] * length
    for path in itertools.product(*kinds):
        pairs = itertools.pairwise(path)
        if not path or (
            start[path[0]] and end[path[-1]] and all(transitions[i, j] for i, j in pairs)
        ):
            yield [DECISIONS[k] for k in path]


@pytest.mark.parametrize(("length", "count"), [(0, 1), (1, 2), (2, 5), (3, 13), (4, 34)])
def test_legal_paths_are_the_phrase_sets(length, count):
    sets = list(all_phrase_sets(length))
    paths = list(legal_paths(length))
    assert len(sets) == len(paths) == count
    assert [open_close_to_phrases(phrases_to_open_close(s, length), "X") for s in sets] == sets
    decoded = [open_close_to_phrases(path, "X") for path in paths]
    assert [phrases_to_open_close(phrases, length) for phrases in decoded] == paths
    assert sorted(decoded) == sorted(sets)


def test_number_of_legal_paths():
    transitions, start, end = (part.astype(int) for part in open_close_mask())
    counts = [start @ np.linalg.matrix_power(transitions, 2 * n - 1) @ end for n in range(1, 6)]
    assert counts == [2, 5, 13, 34, 89]


def test_open_and_close_decisions_alternate():
    transitions, start, end = open_close_mask()
    assert not transitions[:3, :3].any()
    assert not transitions[3:, 3:].any()
    assert not start[3:].any()
    assert not end[:3].any()
    assert OPEN_DECISIONS + CLOSE_DECISIONS == DECISIONS


def test_hand_example():
    decisions = phrases_to_open_close([(3, 4, "X"), (0, 2, "X")], 4)
    assert decisions == ["O", "nCi", "nOi", "C", "nOo", "nCo", "O", "C"]
    assert open_close_to_phrases(np.array(decisions)) == [Phrase(0, 2), Phrase(3, 4)]


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        (["O"], "1 decisions are not two per step"),
        (["nOi", "C"], "decision 'nOi' at step 0 is not legal there: expected O or nOo"),
        (["O", "C", "nOi", "C"], "decision 'nOi' at step 1"),
        (["nOo", "C"], "decision 'C' at step 0 .* expected nCo"),
        (["nOo", "nCo", "O", "nCi"], "opens at step 1 is never closed"),
        (["O", "X"], "decision 'X' at step 0"),
    ],
)
def test_illegal_decisions_are_named(decisions, message):
    with pytest.raises(InputError, match=message):
        open_close_to_phrases(decisions)


def test_one_type_only():
    with pytest.raises(InputError, match="phrases of one type, got 'X', 'Y'"):
        phrases_to_open_close([(0, 1, "X"), (1, 2, "Y")], 2)
