"""Stacking on signature lines: the experiments that take seconds; ``make reproduce`` runs all of them."""

from __future__ import annotations

import pytest

from seqlab.datasets import DatasetError, fetch_email_signatures
from seqlab.papers import stacked_sequential_learning as paper
from seqlab.papers.experiment import check_claims, run

QUICK = ("me", "s-me-5", "s-me-20", "crf", "memm", "crf/noise", "memm/noise", "me/noise")


@pytest.fixture(scope="module")
def results():
    try:
        fetch_email_signatures(download_if_missing=False)
    except DatasetError as error:
        pytest.skip(str(error))
    names = {f"signature/basic/{name}" for name in QUICK}
    chosen = [one for one in paper.EXPERIMENTS if one.name in names]
    assert len(chosen) == len(QUICK)
    return list(run(chosen))


@pytest.mark.data
def test_targets(results):
    missed = {r.experiment.name: r.measured for r in results if r.met is False}
    assert not missed
    assert sum(r.met is True for r in results) == 4


@pytest.mark.data
def test_claims(results):
    claims = check_claims(paper.CLAIMS, results)
    assert len(claims) == 6
    assert all(holds for _, holds in claims), claims


def test_names_are_distinct():
    names = [one.name for one in paper.EXPERIMENTS]
    assert len(set(names)) == len(names)
    needed = {name for claim in paper.CLAIMS for name in claim.needs}
    assert needed <= set(names)
