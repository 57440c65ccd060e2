"""Explicit subsequences: they give back the kernel, and split scores into readable parts."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from seqlab import StructuredSVM, SubsequenceKernel
from seqlab.data import InputError, Sequences
from seqlab.inspection import explain_subsequences
from seqlab.kernels.subsequence_patterns import (
    Subsequence,
    count_subsequences,
    explain_score,
    list_subsequences,
)


@pytest.fixture
def rows():
    random = np.random.default_rng(0)
    found = (random.random((7, 4 * 3)) < 0.5).astype(float)
    found[-1] = 0.0
    return found


@pytest.mark.parametrize("conjunctions", [False, True])
@pytest.mark.parametrize("anchor", ["plain", "pivot", "marked"])
def test_inner_products_of_the_counts_are_the_kernel(rows, anchor, conjunctions):
    kernel = SubsequenceKernel(
        3, 0.6, window=(2, 1), anchor=anchor, conjunctions=conjunctions, normalize=False
    )
    every = list({one: None for row in rows for one in list_subsequences(kernel, row)})
    counts = count_subsequences(kernel, rows, every)
    np.testing.assert_allclose(counts @ counts.T, kernel(rows), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("normalize", [False, True, "length"])
@pytest.mark.parametrize("anchor", ["plain", "pivot", "marked"])
def test_contributions_sum_to_the_score(rows, anchor, normalize):
    kernel = SubsequenceKernel(3, 0.6, window=(2, 1), anchor=anchor, normalize=normalize)
    coefs = np.random.default_rng(1).normal(size=rows.shape[0])
    for support in (rows, sp.csr_matrix(rows)):
        for t, row in enumerate(rows):
            parts = explain_score(kernel, support[t : t + 1] if t % 2 else row, support, coefs)
            total = sum(part.contribution for part in parts)
            assert total == pytest.approx(kernel(rows)[t] @ coefs, rel=1e-10, abs=1e-12)
            sizes = [abs(part.contribution) for part in parts]
            assert sizes == sorted(sizes, reverse=True)


def test_subsequences_in_words():
    assert Subsequence(((0,), (1, 2)), 1).to_text(["a", "b", "c"]) == "a ... [b & c]"
    assert Subsequence(((0,), (-1, 1)), None).to_text() == "x0 ... [x1]"
    assert Subsequence((), None).to_text() == "(no subsequence)"


def test_windows_with_too_many_subsequences_are_refused(monkeypatch):
    monkeypatch.setattr("seqlab.kernels.subsequence_patterns.MAX_SUBSEQUENCES", 10)
    kernel = SubsequenceKernel(3, window=(2, 2))
    with pytest.raises(InputError, match="more than 10 subsequences"):
        list_subsequences(kernel, np.ones(15))


@pytest.fixture(scope="module")
def model():
    """A step is "b" if the first feature was on two steps before."""
    random = np.random.default_rng(2)
    X = [(random.random((12, 3)) < 0.4).astype(float) for _ in range(12)]
    y = []
    for x in X:
        x[:, 2] = 1.0
        earlier = np.concatenate([[0, 0], x[:-2, 0]])
        y.append(np.where(earlier > 0, "b", "a"))
    X = Sequences(np.concatenate(X), np.arange(13) * 12)
    kernel = SubsequenceKernel(2, 0.8, window=(2, 0))
    return StructuredSVM(C=10, kernel=kernel, solver="1-slack", tol=1e-4).fit(X, y), X


def test_reasons_sum_to_the_difference_of_two_scores(model):
    svm, X = model
    alone = StructuredSVM(kernel=svm.kernel)
    alone.__dict__.update(svm.__dict__)
    alone.transitions_ = np.zeros((2, 2))
    alone.start_, alone.end_ = np.zeros((2, 2))
    scores = alone.decision_function(X)[0]
    for step in (0, 5, -1):
        reasons = explain_subsequences(svm, X[0], step, "b", versus="a", n=1000)
        total = sum(one.contribution for one in reasons)
        difference = scores[step, 1] - scores[step, 0]
        # Without transitions, max-marginals of two labels differ by the difference of their scores.
        assert total == pytest.approx(difference, abs=1e-8)
    few = explain_subsequences(svm, X[0], -1, n=3, names=["door", "tap", "any"])
    assert len(few) == 3
    assert all("[" in one.subsequence and "x0" not in one.subsequence for one in few)


def test_wrong_questions_are_refused(model):
    svm, X = model
    with pytest.raises(InputError, match="has no label 'c'"):
        explain_subsequences(svm, X[0], 0, "c")
    with pytest.raises(InputError, match="there are 2 names but 3 features"):
        explain_subsequences(svm, X[0], 0, names=["door", "tap"])
    with pytest.raises(InputError, match="step is 12, but the sequence has 12 steps"):
        explain_subsequences(svm, X[0], 12)
    linear = StructuredSVM().fit(X[:2], [np.repeat(["a", "b"], 6)] * 2)
    with pytest.raises(InputError, match="must be a SubsequenceKernel"):
        explain_subsequences(linear, X[0], 0)
