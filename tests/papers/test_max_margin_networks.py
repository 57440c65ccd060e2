"""Max-margin networks: the experiments that take seconds; ``make reproduce`` runs all of them."""

from __future__ import annotations

import numpy as np
import pytest

from seqlab.data import Sequences
from seqlab.datasets import DatasetError, fetch_ocr_letters
from seqlab.papers import max_margin_networks as paper
from seqlab.papers.experiment import judge_claims, run


def test_names_are_distinct():
    names = [one.name for one in paper.EXPERIMENTS]
    assert len(set(names)) == len(names)
    needed = {name for claim in paper.CLAIMS for name in claim.needs}
    assert needed <= set(names)


def test_claim_about_the_dual():
    chosen = [one for one in paper.EXPERIMENTS if one.name == "dual/factored-exponential"]
    verdicts = judge_claims(paper.CLAIMS, list(run(chosen)))
    assert {one.text for one in verdicts if not one.claim.obstacle} == {"holds"}
    assert sum(not one.claim.obstacle for one in verdicts) == 1


def test_pairs_of_pixels():
    image = np.zeros((16, 8))
    image[3, 2] = image[15, 7] = 1.0
    found = paper.pair_pixels(Sequences(image.reshape(1, 128), [0, 1])).matrix.reshape(4, 16, 8)
    for (down, right), pairs in zip([(0, 1), (1, 0), (1, 1), (1, -1)], found, strict=True):
        expected = image.copy()
        expected[3 + down, 2 + right] = 1.0
        assert np.array_equal(pairs, expected)


@pytest.mark.data
def test_every_model_learns_letters(monkeypatch):
    """Few words and one setting: better than chance, and words help."""
    try:
        fetch_ocr_letters(download_if_missing=False)
    except DatasetError as error:
        pytest.skip(str(error))
    words = paper.load_words()
    train, test = np.arange(80), np.arange(80, 160)
    errors = {}
    for name, (make, grid) in paper.MODELS.items():
        model = make(*grid[-1]).fit(words.X[train], list(words.y[train]))
        errors[name] = paper.error_percent(model, words.X[test], words.y[test])
    assert max(errors.values()) < 65.0  # the most frequent letter: about 88 % wrong
    assert errors["m3n-cubic"] < errors["svm-cubic"]
    assert errors["crf"] < errors["lr"]
    make, grid = paper.MODELS["m3n-quadratic"]
    monkeypatch.setitem(paper.MODELS, "m3n-quadratic", (make, grid[1:]))
    assert paper.choose_setting("m3n-quadratic", train) in grid[1:]
