"""Emission tables compared with the matrix product."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from seqlab.structures.chain import ChainWeights, WeightSource
from seqlab.structures.chain import weights as module
from seqlab.structures.chain.emission import EmissionTable


def random_coef(rng, n_labels, n_features):
    """Return features with weights for none, few, some or all labels."""
    share = rng.choice([0.0, 1.5 / n_labels, 0.1, 0.3, 1.0], size=n_features)
    present = rng.random((n_labels, n_features)) < share
    return sp.csc_matrix(np.where(present, rng.normal(size=present.shape), 0.0))


@pytest.mark.parametrize("n_labels", [1, 2, 3, 5, 22, 40, 130])
def test_scores_equal_the_matrix_product(n_labels):
    rng = np.random.default_rng(n_labels)
    coef = random_coef(rng, n_labels, 300)
    values = np.where(rng.random((200, 300)) < 0.08, rng.normal(size=(200, 300)), 0.0)
    values[17] = 0.0  # a step without features
    X = sp.csr_matrix(values)
    expected = (X @ coef.T).toarray()
    table = EmissionTable(coef, X)
    assert_allclose(table.emit(0, 200), expected, atol=1e-12)
    assert_allclose(table.emit(50, 51), expected[50:51], atol=1e-12)
    assert table.emit(60, 60).shape == (0, n_labels)


def test_data_without_entries_or_steps():
    coef = random_coef(np.random.default_rng(0), 4, 10)
    assert not EmissionTable(coef, sp.csr_matrix((3, 10))).emit(0, 3).any()
    assert EmissionTable(coef, sp.csr_matrix((0, 10))).emit(0, 0).shape == (0, 4)


def test_more_labels_than_a_line_can_store(monkeypatch):
    from seqlab.data.sequences import Sequences

    rng = np.random.default_rng(1)
    coef = random_coef(rng, 6, 20)
    X = Sequences(sp.random(30, 20, density=0.3, format="csr", random_state=rng), [0, 30])
    zeros = np.zeros(6)
    weights = ChainWeights(coef, np.zeros((6, 6)), zeros, zeros)
    block = X.block(0, 1)
    with_table = WeightSource(weights, X, repeated=True).node_scores(block)
    monkeypatch.setattr(module, "MAX_LABELS", 5)
    monkeypatch.setattr(module, "EmissionTable", None)
    without = WeightSource(weights, X, repeated=True).node_scores(block)
    assert_allclose(with_table, without, atol=1e-12)
