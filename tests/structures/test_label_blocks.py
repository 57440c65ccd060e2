"""The blocks of the Hessian of single labels against explicit sums."""

import numpy as np
import pytest
import scipy.sparse as sp

import seqlab.structures.chain.columns as columns
import seqlab.structures.chain.curvature_block as curvature_block
import seqlab.structures.chain.label_blocks as label_blocks
from seqlab import LinearChainCRF
from seqlab.inference import marginals
from seqlab.learning import Likelihood

N_LABELS = 3


def likelihood(
    n_sequences, *, is_sparse=False, weights=None, n_jobs=None, all_states=True, **options
):
    """A likelihood of random data, and random weights."""
    random = np.random.default_rng(0)
    X = [random.normal(size=(random.integers(1, 7), 6)) for _ in range(n_sequences)]
    for x in X:
        x[random.random(x.shape) < 0.4] = 0.0
        x[:, 1] = x[:, 0] + 0.1 * x[:, 1]
    y = [random.integers(N_LABELS, size=len(x)) for x in X]
    y[0][0], y[-1][-1] = 0, N_LABELS - 1
    model = LinearChainCRF(all_states=all_states, n_jobs=n_jobs, **options)
    X = [sp.csr_matrix(x) for x in X] if is_sparse else X
    data = model._read_training(X, y, weights, None)
    bound = model._bind(data)
    return Likelihood(bound, data.codes, data.sequence_weights), random.normal(size=bound.n_params)


def explicit_blocks(term, w):
    """The indices and the block of each label: ``sum_t a_t p (1 - p) x x'`` over all steps."""
    bound = term.bound
    structure, matrix = bound.structure, bound.X.matrix
    matrix = matrix.toarray() if sp.issparse(matrix) else matrix
    node = marginals(bound.scores(bound.source(w), bound.X.block(0, len(bound.X)))).node
    starts, labels = structure.state.explicit()
    feature = np.repeat(np.arange(matrix.shape[1]), np.diff(starts))
    variances = node * (1.0 - node) * np.repeat(term.weights, bound.X.lengths)[:, None]
    for label in range(N_LABELS):
        weights = np.flatnonzero(labels == label)
        x = matrix[:, feature[weights]]
        yield weights, (x.T * variances[:, label]) @ x


@pytest.fixture
def every_step(monkeypatch):
    """A sample so large that it is the data, and no shrinkage."""
    monkeypatch.setattr(label_blocks, "MAX_PASSES", 1e12)
    monkeypatch.setattr(label_blocks, "MAX_SAMPLED", 20_000)
    monkeypatch.setattr(label_blocks, "SHRINKAGE", 0.0)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("all_states", [False, True])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_block_is_the_weighted_sum_of_outer_products(
    every_step, is_sparse, all_states, is_weighted
):
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 12) if is_weighted else None
    term, w = likelihood(12, is_sparse=is_sparse, weights=weights, all_states=all_states)
    found = term.bound.label_blocks(term.curvature(w)).blocks
    assert len(found) == N_LABELS
    for (indices, block), (expected, sums) in zip(found, explicit_blocks(term, w), strict=True):
        np.testing.assert_array_equal(indices, expected)
        np.testing.assert_allclose(block, sums, rtol=1e-3, atol=1e-3 * np.abs(sums).max())
        np.testing.assert_allclose(np.diag(block), np.diag(sums), rtol=1e-9)


@pytest.mark.parametrize("density", [0.0, 0.1, 0.9])
def test_outer_products_of_sparse_and_of_dense_rows(density):
    random = np.random.default_rng(0)
    rows = random.normal(size=(50, 9)) * (random.random((50, 9)) < density)
    steps, counts = np.array([3, 7, 8, 49]), np.array([1.0, 2.0, 0.5, 3.0])
    expected = (rows[steps].T * counts) @ rows[steps]
    csr = sp.csr_matrix(rows)
    reverse = [
        np.arange(a, b)[::-1] for a, b in zip(csr.indptr, csr.indptr[1:], strict=False)
    ]  # of each row
    order = np.concatenate(reverse)
    unsorted = sp.csr_matrix((csr.data[order], csr.indices[order], csr.indptr), shape=csr.shape)
    for matrix in (rows, csr, unsorted):
        found = columns.outer_products(matrix, steps, counts)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_sample_estimates_the_correlations(monkeypatch):
    monkeypatch.setattr(label_blocks, "MAX_PASSES", 1e12)
    monkeypatch.setattr(label_blocks, "MAX_SAMPLED", 100)
    term, w = likelihood(2000)
    found = term.bound.label_blocks(term.curvature(w)).blocks
    for (_, block), (_, sums) in zip(found, explicit_blocks(term, w), strict=True):
        scales = np.sqrt(np.outer(np.diag(sums), np.diag(sums)))
        np.testing.assert_allclose(block / scales, sums / scales, atol=0.12)
        assert block[0, 1] > 0.8 * scales[0, 1]


def test_blocks_from_part_of_the_sequences(every_step, monkeypatch):
    """Only every fourth sequence is stored."""
    term, w = likelihood(2000)
    monkeypatch.setattr(label_blocks, "MEMORY_SHARE", 0.0)
    monkeypatch.setattr(label_blocks, "MIN_BYTES", N_LABELS * term.bound.X.n_steps + 1)
    found = term.bound.label_blocks(term.curvature(w)).blocks
    assert term.bound._label_blocks.variances.shape[1] < 0.3 * term.bound.X.n_steps
    for (_, block), (_, sums) in zip(found, explicit_blocks(term, w), strict=True):
        scales = np.sqrt(np.outer(np.diag(sums), np.diag(sums)))
        np.testing.assert_allclose(block / scales, sums / scales, atol=0.15)


def test_there_are_no_blocks_if_they_would_take_too_long(monkeypatch):
    monkeypatch.setattr(label_blocks, "MAX_PASSES", 0.1)
    term, w = likelihood(5)
    assert term.bound.label_blocks(term.curvature(w)) is None
    monkeypatch.setattr(label_blocks, "MAX_PASSES", 1e12)
    edges, w = likelihood(5, edge_features=True)
    assert edges.bound.label_blocks(edges.curvature(w)) is None


def test_a_long_fit_can_afford_blocks(monkeypatch):
    monkeypatch.setattr(label_blocks, "MAX_PASSES", 0.1)
    term, w = likelihood(5)
    term.afford_label_blocks(1e12)
    assert term.bound.label_blocks(term.curvature(w)) is not None


def test_precise_blocks_have_all_of_their_correlation():
    term, w = likelihood(400)
    diagonal = term.curvature(w)
    shrunk, precise = (term.bound.label_blocks(diagonal, precise=p).blocks for p in (False, True))
    for (_, block), (_, other) in zip(shrunk, precise, strict=True):
        ratio = block[np.tril_indices(6, -1)] / other[np.tril_indices(6, -1)]
        np.testing.assert_allclose(ratio, 1.0 - curvature_block.SHRINKAGE)
    sparse = term.bound.label_blocks(diagonal, sparse=True)
    assert sparse.directions.shape == (0, term.n_params)
    for (_, block), (_, other) in zip(sparse.blocks, precise, strict=True):
        ratio = block[np.tril_indices(6, -1)] / other[np.tril_indices(6, -1)]
        np.testing.assert_allclose(ratio, 1.0 - label_blocks.SPARSE_SHRINKAGE)


def test_blocks_do_not_depend_on_the_number_of_threads(every_step):
    results = []
    for n_jobs in (1, 2):
        term, w = likelihood(400, n_jobs=n_jobs)
        results.append(term.bound.label_blocks(term.curvature(w)).blocks)
    for (_, block), (_, other) in zip(*results, strict=True):
        np.testing.assert_array_equal(block, other)


def test_a_label_that_no_step_is_undecided_about_has_an_empty_sample(every_step, monkeypatch):
    monkeypatch.setattr(label_blocks, "MIN_CORRELATION", 0.0)
    term, _ = likelihood(5)
    blocks = term.bound._label_blocks
    blocks.variances[:] = 0.0
    for _, block in blocks.compute(np.ones(term.n_params)).blocks:
        np.testing.assert_array_equal(block, np.eye(6))


def correlated(n_sequences):
    """Sequences of correlated columns of decreasing variance."""
    random = np.random.default_rng(0)
    mixing = random.normal(size=(40, 40)) / np.arange(1, 41)[:, None]
    directions = random.normal(size=(40, 12))
    X = [random.normal(size=(8, 40)) @ mixing + 0.3 for _ in range(n_sequences)]
    return X, [(x @ directions + random.gumbel(size=(8, 12))).argmax(axis=1) for x in X]


@pytest.mark.parametrize(("c1", "share"), [(0.0, 0.5), (0.1, 0.3), (1.0, 0.3)])
def test_with_blocks_correlated_columns_take_fewer_iterations(monkeypatch, c1, share):
    X, y = correlated(300)
    options = {"c1": c1, "c2": 0.1, "tol": 1e-4, "max_iter": 3000}
    model = LinearChainCRF(**options).fit(X, y)
    for name in ("label_blocks", "nonzero_block"):
        monkeypatch.setattr(Likelihood, name, lambda *arguments, **options: None)
    without = LinearChainCRF(**options).fit(X, y)
    assert model.converged_
    assert without.converged_
    assert model.objective_ <= without.objective_ * (1.0 + 1e-4)
    assert model.n_iter_ < share * without.n_iter_


@pytest.mark.parametrize("c1", [0.0, 0.1])
def test_a_fit_with_blocks_does_not_depend_on_the_number_of_threads(c1):
    X, y = correlated(300)
    one, two = (LinearChainCRF(c1=c1, c2=0.1, n_jobs=n).fit(X, y) for n in (1, 2))
    assert one.objective_ == two.objective_
    np.testing.assert_array_equal(one.coef_, two.coef_)


def test_there_are_no_blocks_if_exactly_one_feature_is_on(every_step):
    random = np.random.default_rng(0)
    X = [np.eye(6)[random.integers(6, size=8)] for _ in range(40)]
    y = [random.integers(N_LABELS, size=8) for _ in X]
    model = LinearChainCRF(all_states=True)
    data = model._read_training(X, y, None, None)
    term = Likelihood(model._bind(data), data.codes, data.sequence_weights)
    w = random.normal(size=term.n_params)
    assert term.bound.label_blocks(term.curvature(w)) is None
    other, w = likelihood(40)
    assert other.bound.label_blocks(other.curvature(w)) is not None
