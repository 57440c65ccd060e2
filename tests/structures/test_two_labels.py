"""Chains with two labels: their own passes equal the general ones and enumeration."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone

from blocks import count_parallel_tasks, use_small_blocks
from seqlab import LinearChainCRF
from seqlab.data import Sequences
from seqlab.inference import ChainScores, expected_transitions
from seqlab.inference.kernels.two_labels import (
    MAX_LANES,
    exp_differences,
    two_label_marginals,
)
from seqlab.models.base import fit_prepared
from seqlab.structures.chain import ChainFeatures, ChainStructure

KINDS = ["ones", "values", "dense", "mostly zero"]


def example(kind, n_sequences=150, n_features=20, longest=9, seed=0):
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(random.integers(1, longest + 1, n_sequences))])
    matrix = random.normal(size=(offsets[-1], n_features))
    if kind != "dense":
        matrix *= random.random(matrix.shape) < 0.15
    if kind == "ones":
        matrix = (matrix != 0.0).astype(np.float64)
    if kind in ("ones", "values"):
        matrix = sp.csr_matrix(matrix)
    return Sequences(matrix, offsets), random.integers(0, 2, offsets[-1])


@pytest.mark.parametrize("scale", [0.1, 3.0, 40.0])
def test_recursion_equals_forward_backward(scale):
    random = np.random.default_rng(0)
    lengths = np.sort(random.integers(1, 15, MAX_LANES))
    offsets, n = np.concatenate([[0], np.cumsum(lengths)]), int(lengths.max())
    unary = scale * random.normal(size=(offsets[-1], 2))
    edges = random.normal(size=(2, 2))
    difference = np.zeros((n, MAX_LANES))
    for c, (a, b) in enumerate(pairwise(offsets)):
        difference[: b - a, c] = unary[a:b, 1] - unary[a:b, 0]
    factor, ratio, node = np.empty((3, n, MAX_LANES))
    twice, log_z = np.empty((2, MAX_LANES))
    largest = exp_differences(difference, n, MAX_LANES, twice, factor)
    assert largest == np.abs(difference).max()
    assert_allclose(factor, np.exp(difference), rtol=1e-14)
    work = np.empty((3, MAX_LANES))
    two_label_marginals(
        factor, lengths, n, MAX_LANES, np.exp(edges), ratio, node, work, twice, log_z
    )
    expected = expected_transitions(ChainScores(unary, edges, offsets=offsets))
    of_zero = np.add.reduceat(unary[:, 0], offsets[:-1])
    assert_allclose(log_z + of_zero, expected.log_z, rtol=1e-12, atol=1e-12)
    found = np.concatenate([node[:k, c] for c, k in enumerate(lengths)])
    assert_allclose(found, expected.node[:, 1], rtol=1e-10, atol=1e-14)
    assert_allclose(twice.sum(), expected.transitions[1, 1], rtol=1e-12)


def test_log_z_of_a_long_chain_does_not_overflow():
    X = Sequences(sp.csr_matrix(np.ones((5000, 1))), [0, 5000])
    codes = np.arange(5000) % 2
    chain = ChainStructure.from_data(X, codes, 2, all_states=True).bind(X)
    w = np.resize([100.0, 50.0, 1.0, 2.0], chain.n_params)
    expected = chain.passes.run(w)
    assert_allclose(chain.two_label_passes.run(w).log_z, expected.log_z, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options", [{}, {"all_states": True}, {"boundary": False}, {"min_freq": 80}], ids=str
)
def test_passes_equal_the_general_ones(kind, options):
    X, codes = example(kind)
    chain = ChainStructure.from_data(X, codes, 2, **options).bind(X)
    random = np.random.default_rng(1)
    w = random.normal(size=chain.n_params)
    weights = random.random(len(X))
    step_weights = np.repeat(weights, X.lengths)
    observed = chain.two_label_passes.observed(codes, step_weights)
    assert_allclose(observed, chain.passes.rows.observed(codes, step_weights), atol=1e-11)
    for arguments in ((w,), (w, weights)):
        expected, found = chain.passes.run(*arguments), chain.two_label_passes.run(*arguments)
        assert expected.n_skipped == found.n_skipped == 0
        assert_allclose(found.log_z, expected.log_z, rtol=1e-12, atol=1e-12)
        assert_allclose(found.parts.sum(axis=0), expected.parts.sum(axis=0), atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_extreme_scores_are_computed_in_another_way(weighted):
    X, codes = example("values")
    chain = ChainStructure.from_data(X, codes, 2).bind(X)
    w = 200.0 * np.random.default_rng(2).normal(size=chain.n_params)
    weights = np.random.default_rng(3).random(len(X)) if weighted else None
    assert chain.two_label_passes.run(w, weights).n_skipped > 0
    found = chain.expected_features(w, weights)
    general = super(type(chain), chain).expected_features(w, weights)
    assert_allclose(found.log_z, general.log_z, rtol=1e-12)
    assert_allclose(found.parts.sum(axis=0), general.parts.sum(axis=0), atol=1e-9)


def test_threads_give_the_same_bits(monkeypatch):
    use_small_blocks(monkeypatch)
    counts = count_parallel_tasks(monkeypatch)
    X, codes = example("values")
    results = []
    for n_jobs in (None, 2, 3):
        chain = ChainStructure.from_data(X, codes, 2).bind(X, n_jobs=n_jobs)
        w = np.random.default_rng(4).normal(size=chain.n_params)
        found = chain.expected_features(w)
        results.append(np.concatenate([found.log_z, found.parts.sum(axis=0)]))
    assert min(counts) >= 2
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_chains_on_the_same_data_share_what_depends_on_the_features(monkeypatch):
    X, codes = example("ones")
    inner = LinearChainCRF(tol=1e-6)
    data = inner._read_training(X, X.split(codes), None, None)
    made = []
    create = ChainFeatures.__init__
    monkeypatch.setattr(
        ChainFeatures, "__init__", lambda self, X: (made.append(X), create(self, X))[1]
    )
    random = np.random.default_rng(5)
    for _ in range(3):
        other = random.integers(0, 2, codes.size)
        shared = fit_prepared(clone(inner), data.with_labels(other, np.array([0, 1])))
        n_shared = len(made)
        alone = clone(inner).fit(X, X.split(other))
        assert n_shared == 1
        del made[1:]
        assert np.array_equal(shared.transitions_, alone.transitions_)
    assert data.derived
    assert not data.with_features(X[:10]).derived
    assert not data.part(np.arange(10)).derived
