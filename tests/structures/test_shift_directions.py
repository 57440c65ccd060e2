"""Directions in which all weights of a feature change together, against explicit sums."""

import numpy as np
import pytest
import scipy.sparse as sp

from seqlab import LinearChainCRF
from seqlab.inference import marginals
from seqlab.structures.chain.shift_directions import ShiftDirections

N_LABELS = 4


def chain(*, is_sparse=False):
    """A chain in which feature 0 has all labels, 1 and 2 some, and 3 a single one; with small weights.

    Feature 2 has the weights of two labels: both others are missing.
    """
    random = np.random.default_rng(0)
    X, y = [], []
    for _ in range(40):
        labels = random.integers(N_LABELS, size=random.integers(1, 9))
        x = random.uniform(0.5, 1.5, size=(labels.size, 4))
        x[labels == 3, 1] = 0.0
        x[labels >= 2, 2] = 0.0
        x[labels != 1, 3] = 0.0
        X.append(sp.csr_matrix(x) if is_sparse else x)
        y.append(labels)
    model = LinearChainCRF()
    data = model._read_training(X, y, None, None)
    bound = model._bind(data)
    return bound, 0.3 * random.normal(size=bound.n_params)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_curvature_is_that_of_the_event_that_a_label_is_missing(is_sparse):
    bound, w = chain(is_sparse=is_sparse)
    structure, X = bound.structure, bound.X
    matrix = X.matrix.toarray() if is_sparse else X.matrix
    node = marginals(bound.scores(bound.source(w), X.block(0, len(X)))).node
    assert (node[:, 2:] < 0.5).all()  # the variance tells the probability
    shifts = ShiftDirections(structure, X)
    starts, _ = structure.state.explicit()
    expected_directions = np.zeros((2, bound.n_params))
    for row, feature in enumerate((1, 2)):
        expected_directions[row, starts[feature] : starts[feature + 1]] = 1.0
    np.testing.assert_array_equal(shifts.directions.toarray(), expected_directions)
    variances = (node * (1.0 - node)).T.astype(np.float32)
    missing = np.column_stack([node[:, 3], node[:, 2] + node[:, 3]])
    expected = np.sum(matrix[:, 1:3] ** 2 * missing * (1.0 - missing), axis=0)
    found = shifts.curvatures(np.arange(X.n_steps), variances)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_a_sample_of_steps_estimates_the_curvature(monkeypatch):
    bound, _ = chain()
    variances = np.random.default_rng(1).uniform(0.0, 0.2, (N_LABELS, bound.X.n_steps))
    arguments = np.arange(bound.X.n_steps), variances.astype(np.float32)
    shifts = ShiftDirections(bound.structure, bound.X)
    every = shifts.curvatures(*arguments)
    monkeypatch.setattr("seqlab.structures.chain.shift_directions.MAX_STEPS", 50)
    sample = shifts.curvatures(*arguments)
    assert not np.array_equal(sample, every)
    np.testing.assert_allclose(sample, every, rtol=0.3)


def test_there_are_no_directions_if_all_weights_exist():
    random = np.random.default_rng(0)
    X, y = [random.normal(size=(9, 3))], [random.integers(N_LABELS, size=9)]
    model = LinearChainCRF(all_states=True)
    data = model._read_training(X, y, None, None)
    shifts = ShiftDirections(model._bind(data).structure, data.X)
    assert shifts.directions.shape[0] == 0
    assert shifts.curvatures(np.arange(9), np.ones((N_LABELS, 9), dtype=np.float32)).size == 0
