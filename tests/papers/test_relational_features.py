"""Relational features: the experiments that take seconds; ``make reproduce`` runs all of them."""

from __future__ import annotations

import numpy as np
import pytest

from seqlab.datasets import DatasetError, fetch_kasteren
from seqlab.papers import _relational_runs as runs
from seqlab.papers import relational_features as paper
from seqlab.papers.experiment import judge_claims, run


def test_names_are_distinct():
    names = [one.name for one in paper.EXPERIMENTS]
    assert len(set(names)) == len(names)
    needed = {name for claim in paper.CLAIMS for name in claim.needs}
    assert needed | paper.TARGETS.keys() | paper.KASTEREN.keys() <= set(names)


def test_training_days_of_the_protocols():
    assert runs.training_days("contiguous", 28)[1] == [7, 8, 9, 10, 11, 12, 13]
    shifted = runs.training_days("shifted", 28)
    assert shifted[0] == [3, 4, 5, 6, 7, 8, 9]
    assert shifted[3] == [24, 25, 26, 27, 0, 1, 2]
    assert runs.training_days("interleaved", 28)[1] == [1, 5, 9, 13, 17, 21, 25]
    days = runs.training_days("day", 28)
    assert len(days) == 28
    assert days[3] == [day for day in range(28) if day != 3]


def test_a_claim_without_data_has_a_verdict():
    verdicts = judge_claims(paper.CLAIMS, [])
    assert [one.text for one in verdicts] == ["cannot be tested (the data are not available)"]
    assert not verdicts[0].claim.is_required


def test_settings_are_chosen_on_training_days(monkeypatch):
    # Rows: C = 0.001, 0.01, 0.1, 1; columns: days that are left out.
    scores = np.array([[0.5, 0.5, 0.6], [0.6, 0.7, 0.8], [0.6, 0.7, 0.8], [0.5, 0.8, 0.7]])
    monkeypatch.setattr(runs, "search", lambda *_: scores)
    arguments = "contiguous", "raw"
    assert runs.choose_setting(*arguments, "structhkl-best", 0).params == {"C": 0.01}
    scores[0] = [0.6, 0.6, 0.75]  # a mean of 0.65, and the standard error of the best is 0.058
    assert runs.choose_setting(*arguments, "structhkl-best", 0).params == {"C": 0.01}
    assert runs.choose_setting(*arguments, "structhkl", 0).params == {"C": 0.001}
    assert runs.choose_setting(*arguments, "hmm", 0).params == {}


@pytest.fixture
def home():
    try:
        return fetch_kasteren(features="raw", download_if_missing=False)
    except DatasetError as error:
        pytest.skip(str(error))


@pytest.mark.data
@pytest.mark.usefixtures("home")
def test_fast_experiments_meet_their_targets():
    wanted = ("contiguous/change+last/hmm", "contiguous/change+last/hmm/macro")
    chosen = [
        one
        for one in paper.EXPERIMENTS
        if one.name in wanted or one.name.startswith("composite") or "majority" in one.name
    ]
    results = {one.experiment.name: one for one in run(chosen)}
    assert all(one.met is not False for one in results.values())
    assert results["contiguous/raw/majority"].measured == pytest.approx(56.5, abs=0.1)
    verdicts = judge_claims(paper.CLAIMS, results.values())
    spans = {one.claim.text[-12:]: one.holds for one in verdicts if "spans" in one.claim.text}
    assert spans == {"^c - 1 matches"[-12:]: True, "as published": False}


@pytest.mark.data
def test_subsequence_kernel_model_on_two_days(home):
    model = runs.SYSTEMS["subseqsvm"].make().set_params(C=0.01)
    X = [np.hstack([x, np.ones((len(x), 1))]) for x in home.data]
    model.fit(X[1:3], home.target[1:3])
    assert model.history_["gap"][-1] <= runs.TOL * model.history_["objective"][-1]
    assert model.support_.size < 600  # of 2,880 slices
