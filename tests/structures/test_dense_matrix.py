"""Dense feature matrices: the same results as CSR, without a copy of the data."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from blocks import count_parallel_tasks, use_small_blocks
from seqlab import LinearChainCRF, StructuredPerceptron
from seqlab.data import Sequences
from seqlab.structures.chain import ChainStructure
from seqlab.structures.chain.columns import count_entries, csr_rows, mean_squares
from seqlab.structures.chain.features import ChainFeatures
from seqlab.structures.chain.mixed_rows import MixedRows

N_LABELS = 5
KINDS = ["embeddings", "pixels", "half and half", "few ones", "many ones"]


def example(kind, n_sequences=30, n_features=21, seed=0):
    """Return sequences of random length with a dense matrix, and their label codes."""
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(random.integers(1, 12, n_sequences))])
    matrix = random.normal(size=(offsets[-1], n_features))
    if kind == "half and half":
        matrix[:, 10:] = random.random((offsets[-1], n_features - 10)) < 0.1
    elif kind != "embeddings":
        share = {"pixels": 0.2, "few ones": 0.05, "many ones": 0.8}[kind]
        matrix = (random.random(matrix.shape) < share).astype(np.float64)
    return Sequences(matrix, offsets), random.integers(0, N_LABELS, offsets[-1])


def as_sparse(X):
    return Sequences(sp.csr_matrix(X.matrix), X.offsets)


def bind_both(kind, n_jobs=None, **options):
    """Return the same chain, bound to a dense and to a CSR matrix."""
    X, codes = example(kind)
    chains = []
    for given in (X, as_sparse(X)):
        structure = ChainStructure.from_data(given, codes, N_LABELS, **options)
        chains.append(structure.bind(given, n_jobs=n_jobs))
    return *chains, codes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"edge_features": True}, {"min_freq": 3}], ids=str)
def test_dense_and_sparse_data_give_the_same_chain(kind, options):
    dense, sparse, codes = bind_both(kind, **options)
    random = np.random.default_rng(1)
    w = random.normal(size=dense.n_params)
    weights = random.random(len(dense.X))
    assert dense.X.matrix is not sparse.X.matrix
    assert not dense.X.is_sparse
    for call in (
        lambda b: b.expected_features(w).log_z,
        lambda b: b.expected_features(w).parts.sum(axis=0),
        lambda b: b.expected_features(w, weights).parts.sum(axis=0),
        lambda b: b.total_features(codes, weights),
        lambda b: b.curvature_at_zero(weights),
        lambda b: b.squared_scales() if b.squared_scales() is not None else np.ones(b.n_params),
        lambda b: b.joint_features(codes).toarray(),
        lambda b: b.scores(b.source(w), b.block(2, 9)).unary,
        lambda b: b.scores(b.source(w), b.block(2, 9)).pairwise,
        lambda b: np.array(b.work_per_pass),
    ):
        assert_allclose(call(dense), call(sparse), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_warm_start_of_dense_data_is_that_of_sparse_data(kind):
    dense, sparse, codes = bind_both(kind)
    w, ones = np.full(dense.n_params, 0.1), np.ones(len(dense.X))
    found = []
    for chain in (dense, sparse):
        support = chain.stochastic_support()
        passes = support.stochastic_passes(codes, ones, 0.1, 0.1)
        loss, mean = passes.run(np.arange(len(chain.X)))
        facts = support.mean_square, support.is_evenly_scaled, loss
        found.append(np.concatenate([facts, mean, support.curvature(w)]))
    assert_allclose(*found, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("kind", "n_chosen"),
    [("embeddings", 21), ("pixels", 0), ("half and half", 10), ("few ones", 0), ("many ones", 21)],
)
def test_full_columns_become_a_matrix(kind, n_chosen):
    X, _ = example(kind)
    for given in (X, as_sparse(X)):
        assert ChainFeatures(given).matrix_columns.sum() == n_chosen


def test_full_matrix_is_not_copied():
    X, codes = example("embeddings")
    rows = MixedRows(ChainFeatures(X), ChainStructure.from_data(X, codes, N_LABELS).state)
    assert rows.columns.matrix is X.matrix
    assert rows.arrays.dense_row.size == rows.arrays.pair_weight.size == 0


def test_embeddings_beside_strings_leave_the_strings_without_values():
    X, codes = example("half and half")
    features = ChainFeatures(as_sparse(X))
    rows = MixedRows(features, ChainStructure.from_data(X, codes, N_LABELS).state)
    assert rows.n_matrix == 10
    assert rows.is_unit
    assert not features.has_only_ones


def test_columns_of_dense_and_sparse_matrices():
    matrix = np.array([[1.0, 0.0, 2.0], [1.0, 0.0, 0.0], [1.0, 0.0, -4.0]])
    for given in (matrix, sp.csr_matrix(matrix)):
        counts = count_entries(given)
        assert counts.per_column.tolist() == [3, 0, 2]
        assert not counts.only_ones
        assert count_entries(given[:, :2]).only_ones
        assert mean_squares(given, counts).tolist() == [1.0, 1.0, 10.0]
        assert_allclose(csr_rows(given, 1, 3).toarray(), matrix[1:3])
    assert csr_rows(np.zeros((2, 3)), 0, 2).nnz == 0


def test_threads_give_the_same_bits_on_dense_data(monkeypatch):
    use_small_blocks(monkeypatch)
    counts = count_parallel_tasks(monkeypatch)
    w = np.random.default_rng(0).normal(size=1000)
    found = []
    for n_jobs in (None, 2, 3):
        dense, _, _ = bind_both("embeddings", n_jobs=n_jobs)
        passes = dense.expected_features(w[: dense.n_params])
        found.append(np.append(passes.parts.sum(axis=0), passes.log_z))
    assert min(counts) >= 2
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize("kind", ["embeddings", "pixels", "half and half"])
@pytest.mark.parametrize(
    "model",
    [
        LinearChainCRF(tol=1e-9),
        LinearChainCRF(c1=0.1, tol=1e-9),
        StructuredPerceptron(max_iter=3, random_state=0),
    ],
    ids=["lbfgs", "owlqn", "perceptron"],
)
def test_models_of_dense_data_are_those_of_sparse_data(kind, model):
    X, codes = example(kind)
    y = X.split(codes)
    coef, labels = [], []
    for given in (X, as_sparse(X)):
        model.fit(given, y)
        dense_coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
        coef.append(dense_coef)
        labels.append(np.concatenate(model.predict(given)))
    assert_allclose(*coef, atol=1e-4 if isinstance(model, LinearChainCRF) else 1e-10)
    assert np.array_equal(*labels)


@pytest.mark.parametrize("kind", ["embeddings", "pixels"])
@pytest.mark.parametrize("model", [LinearChainCRF(max_iter=3), StructuredPerceptron(max_iter=2)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_dense_data_are_not_multiplied_in_memory(kind, model):
    X, codes = example(kind, n_sequences=2000, n_features=128)
    y = X.split(codes)
    model.fit(X, y).predict(X[:50])  # compile the kernels
    size = X.matrix.nbytes
    tracemalloc.start()
    try:
        model.fit(X, y)
        fit_peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        model.predict(X)
        predict_peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert fit_peak < 0.5 * size
    assert predict_peak < 0.5 * size
