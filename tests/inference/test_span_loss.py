"""Loss-augmented Viterbi for the span loss against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from seqlab.data.tags import phrase_rules, tags_to_phrases
from seqlab.inference.kernels.span_loss import count_span_loss, span_viterbi, span_workspace

TAGS = {
    "IOB2": ["B-a", "B-b", "I-a", "I-b", "O"],
    "IOBES": ["B-a", "E-a", "I-a", "O", "S-a"],
}


def loss_of(gold, labels, tags, scheme):
    """Missed plus wrong phrases, from the phrases themselves."""
    a, b = (
        {tuple(phrase) for phrase in tags_to_phrases([tags[s] for s in one], scheme)}
        for one in (gold, labels)
    )
    return len(a - b) + len(b - a)


@pytest.mark.parametrize("scheme", list(TAGS))
def test_loss_and_best_labeling_equal_enumeration(scheme):
    tags = TAGS[scheme]
    rules = phrase_rules(tags, scheme)
    random = np.random.default_rng(0)
    for n_steps in (1, 2, 3, 4):
        for unit in (1.0, 0.3):
            scores = oracle.make_scores(random, [n_steps], len(tags), scale=0.7)
            gold = random.integers(0, len(tags), size=n_steps)
            every = []
            for labeling, value in oracle.legal(scores):
                labels = np.array(labeling)
                loss = loss_of(gold, labeling, tags, scheme)
                assert count_span_loss(gold, labels, *rules, n_steps) == loss
                every.append((value + unit * loss, labeling))
            table, back = span_workspace(len(tags), n_steps)
            found = np.empty(n_steps, dtype=np.int64)
            arrays = scores.unary, scores.pairwise[None], 0, scores.start, scores.end
            best = span_viterbi(*arrays, gold, *rules, unit, n_steps, table, back, found)
            assert best == pytest.approx(max(every)[0])
            assert tuple(found.tolist()) == max(every)[1]
