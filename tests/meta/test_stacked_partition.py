"""Stacked sequential learning on the partition data of the paper."""

from __future__ import annotations

import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from seqlab import (
    MEMM,
    IndependentLabeler,
    LinearChainCRF,
    StackedSequentialLearner,
    StructuredPerceptron,
)
from seqlab.datasets import make_partition_sequences, swap_steps
from seqlab.metrics import token_accuracy

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def partition():
    data = make_partition_sequences(160, signal=0.25, random_state=0)
    return data.data[:100], data.target[:100], data.data[100:], data.target[100:]


def test_stacking_helps_on_long_runs(partition):
    X, y, X_test, y_test = partition
    plain = IndependentLabeler(LogisticRegression()).fit(X, y).score(X_test, y_test)
    found = {}
    for window in [(1, 1), (5, 5), (15, 15)]:
        learner = StackedSequentialLearner(LogisticRegression(), window=window, random_state=0)
        found[window] = learner.fit(X, y).score(X_test, y_test)
    assert plain < found[1, 1] < found[5, 5] < found[15, 15]
    assert 1 - found[15, 15] < 0.5 * (1 - plain)


@pytest.mark.parametrize("seed", range(6))
def test_memm_suffers_from_label_bias_and_swap_noise_helps(seed):
    """Label bias makes an MEMM worse than independent labels on long runs; swap noise reduces it.

    This holds for weak features and frequent false bursts; with stronger features it depends on the seed.
    """
    data = make_partition_sequences(160, signal=0.18, burst_rate=0.9, random_state=seed)
    X, y, X_test, y_test = data.data[:100], data.target[:100], data.data[100:], data.target[100:]

    def error(labeler, X, y):
        return 1 - labeler.fit(X, y).score(X_test, y_test)

    noisy = swap_steps(X, y, probability=0.1, random_state=0)
    independent = error(IndependentLabeler(LogisticRegression(tol=1e-10)), X, y)
    memm = error(MEMM(LogisticRegression()), X, y)
    assert memm > independent
    assert error(MEMM(LogisticRegression()), noisy.X, noisy.y) < 0.9 * memm
    # Swapping steps does not change what an independent labeler learns.
    undisturbed = error(IndependentLabeler(LogisticRegression(tol=1e-10)), noisy.X, noisy.y)
    assert undisturbed == pytest.approx(independent, abs=1e-12)


def test_crf_is_better_than_independent_labels(partition):
    X, y, X_test, y_test = partition
    independent = IndependentLabeler(LogisticRegression()).fit(X, y)
    crf = LinearChainCRF(c2=0.5).fit(X, y)
    assert 1 - crf.score(X_test, y_test) < 0.7 * (1 - independent.score(X_test, y_test))


def test_stacked_crf_and_perceptron_on_long_runs(partition):
    X, y, X_test, y_test = (part[:40] for part in partition)
    for base in (LinearChainCRF(c2=0.5), StructuredPerceptron(random_state=0)):
        alone = clone(base).fit(X, y).predict(X_test)
        stacked = StackedSequentialLearner(base, random_state=0).fit(X, y).predict(X_test)
        # At most 1 % worse: the chain already uses what the window adds.
        assert token_accuracy(y_test, stacked) > token_accuracy(y_test, alone) - 0.01
