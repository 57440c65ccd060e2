"""Ctrl-C while queries are searched and trees grow."""

import signal

import pytest

from seqlab import RelationalBoostedCRF
from seqlab.learning.boosting import LanguageTreeGrower
from seqlab.relational.trees.facts import WindowFacts

X = [[["use(a)", "near(a, b)"], ["use(b)"], ["use(b)", "near(b, a)"], ["use(a)"]]] * 2
Y = [["n", "n", "s", "n"]] * 2


@pytest.mark.parametrize(
    ("owner", "name"), [(WindowFacts, "join"), (LanguageTreeGrower, "_find_split")]
)
def test_an_interrupt_takes_effect_inside_a_round(monkeypatch, owner, name):
    original, calls = getattr(owner, name), []

    def interrupt(*args):
        calls.append(1)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)
        return original(*args)

    monkeypatch.setattr(owner, name, interrupt)
    with pytest.raises(KeyboardInterrupt):
        RelationalBoostedCRF(window=(1, 0), max_iter=3).fit(X, Y)
    assert len(calls) == 1
