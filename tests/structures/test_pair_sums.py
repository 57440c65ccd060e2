"""Gradients with respect to tables of scores: finite differences, enumeration, merged rows, beams."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import oracle
from seqlab.data import Sequences
from seqlab.inference import path_scores
from seqlab.structures import BeamOptions, BoundStructure, PairSums, RowScores
from seqlab.structures.chain import ChainStructure
from structures.star import StarStructure

LENGTHS = (4, 1, 3, 2)
labels = pytest.mark.parametrize("n_labels", [2, 3], ids=["two labels", "three labels"])
orders = pytest.mark.parametrize("has_pairs", [True, False], ids=["pairs", "no pairs"])


def problem(n_labels, *, has_pairs=True, seed=0, n_rows=4, scale=1.0, n_jobs=None):
    """Return a chain, random scores, labels and weights."""
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    X = Sequences(np.zeros((offsets[-1], 1)), offsets)
    rows = random.integers(0, n_rows, X.n_steps).astype(np.int32)
    source = RowScores(rows, n_rows, n_labels, has_pairs=has_pairs)
    source.node[:] = scale * random.normal(size=source.node.shape)
    source.pair[:] = scale * random.normal(size=source.pair.shape)
    bound = ChainStructure.without_weights(1, n_labels).bind(X, n_jobs=n_jobs)
    return bound, source, random.integers(0, n_labels, X.n_steps), random.random(len(X)) + 0.5


def evaluate(bound, source, codes, weights, **options):
    """Return the log-likelihoods, gradient and curvature in floating point."""
    total = float(np.repeat(weights, bound.X.lengths).sum())
    sums = PairSums(source, total, with_curvature=True)
    found = bound.add_pair_sums(source, codes, weights, sums, **options)
    return found, sums.gradient / sums.scale, sums.curvature / sums.scale


@labels
@orders
def test_gradient_is_that_of_the_log_likelihood(n_labels, has_pairs):
    bound, source, codes, weights = problem(n_labels, has_pairs=has_pairs)
    _, gradient, _ = evaluate(bound, source, codes, weights)
    step = 1e-5

    def difference(table, at):
        values = []
        for change in (step, -step):
            table[at] += change
            values.append(weights @ evaluate(bound, source, codes, weights)[0])
            table[at] -= change
        return (values[0] - values[1]) / (2 * step)

    # Every cell of a row that is used; all previous labels share a node score.
    for at in np.ndindex(source.node.shape):
        assert gradient[at].sum() == pytest.approx(difference(source.node, at), abs=1e-8)
    for at in np.ndindex(source.pair.shape):
        assert gradient[at] == pytest.approx(difference(source.pair, at), abs=1e-8)


@labels
def test_gradient_curvature_and_likelihood_by_enumeration(n_labels):
    bound, source, codes, weights = problem(n_labels)
    found, gradient, curvature = evaluate(bound, source, codes, weights)
    expected, expected_curvature = np.zeros(gradient.shape), np.zeros(gradient.shape)
    scores = bound.scores(source, bound.block(0, len(bound.X)))
    for i, one in enumerate(oracle.sequences_of(scores)):
        begin, stop = bound.X.offsets[i : i + 2]
        log_z = oracle.log_partition(one)
        assert found[i] == pytest.approx(oracle.score(one, tuple(codes[begin:stop])) - log_z)
        node, pair = oracle.pair_marginals(one)
        for t in range(begin, stop):
            first = t == begin
            row = source.rows[t]
            expected[codes[t], row, n_labels if first else codes[t - 1]] += weights[i]
            for k in range(n_labels):
                p = node[0, k] if first else pair[t - begin, :, k]
                column = n_labels if first else slice(n_labels)
                expected[k, row, column] -= weights[i] * p
                expected_curvature[k, row, column] += weights[i] * p * (1 - p)
    np.testing.assert_allclose(gradient, expected, atol=1e-12)
    np.testing.assert_allclose(curvature, expected_curvature, atol=1e-12)


def test_the_gradient_of_a_position_sums_to_zero():
    bound, source, codes, weights = problem(3, n_rows=sum(LENGTHS))
    source.rows[:] = np.arange(sum(LENGTHS))  # one row per position
    _, gradient, _ = evaluate(bound, source, codes, weights)
    np.testing.assert_allclose(gradient.sum(axis=(0, 2)), 0.0, atol=1e-12)


@labels
def test_fused_passes_agree_with_inference(n_labels):
    bound, source, codes, weights = problem(n_labels, seed=3)
    sums = [PairSums(source, 100.0, with_curvature=True) for _ in range(2)]
    fused = bound.add_pair_sums(source, codes, weights, sums[0])
    general = BoundStructure.add_pair_sums(bound, source, codes, weights, sums[1])
    np.testing.assert_allclose(fused, general, rtol=1e-12)
    assert np.abs(sums[0].gradient - sums[1].gradient).max() <= 1e-13 * sums[0].scale
    assert np.abs(sums[0].curvature - sums[1].curvature).max() <= 1e-13 * sums[0].scale


@labels
@orders
def test_merged_rows_give_the_sums_of_their_positions_exactly(n_labels, has_pairs):
    bound, source, codes, weights = problem(n_labels, has_pairs=has_pairs)
    n_steps = bound.X.n_steps
    plain = RowScores(np.arange(n_steps, dtype=np.int32), n_steps, n_labels, has_pairs=has_pairs)
    plain.node[:] = source.node[:, source.rows]
    plain.pair[:] = source.pair[:, source.rows]
    sums = PairSums(source, 100.0, with_curvature=True)
    plain_sums = PairSums(plain, 100.0, with_curvature=True)
    found = bound.add_pair_sums(source, codes, weights, sums)
    np.testing.assert_array_equal(found, bound.add_pair_sums(plain, codes, weights, plain_sums))
    for name in ("gradient", "curvature"):
        merged = np.zeros_like(getattr(sums, name))
        np.add.at(merged, (slice(None), source.rows), getattr(plain_sums, name))
        np.testing.assert_array_equal(merged, getattr(sums, name))


@labels
def test_extreme_scores(n_labels):
    bound, source, codes, weights = problem(n_labels, scale=1e4)
    found, gradient, curvature = evaluate(bound, source, codes, weights)
    scores = bound.scores(source, bound.block(0, len(bound.X)))
    log_z = [oracle.log_partition(one) for one in oracle.sequences_of(scores)]
    np.testing.assert_allclose(found, path_scores(scores, codes) - log_z, rtol=1e-12, atol=1e-8)
    assert np.isfinite(gradient).all()
    assert (curvature >= 0).all()


@pytest.mark.parametrize("keep_gold", [True, False])
def test_a_beam_as_wide_as_the_labels_is_exact(keep_gold):
    bound, source, codes, weights = problem(3)
    exact = evaluate(bound, source, codes, weights)
    beam = evaluate(bound, source, codes, weights, beam=BeamOptions(3, keep_gold))
    for a, b in zip(exact, beam, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("keep_gold", [True, False])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_beam_by_enumeration(width, keep_gold):
    """Paths within the beam, and the gold path."""
    n_labels, n_outside = 4, 0
    for seed in range(3):
        bound, source, codes, weights = problem(n_labels, seed=seed)
        options = BeamOptions(width, keep_gold)
        found, gradient, curvature = evaluate(bound, source, codes, weights, beam=options)
        expected, expected_curvature = np.zeros(gradient.shape), np.zeros(gradient.shape)
        scores = bound.scores(source, bound.block(0, len(bound.X)))
        for i, one in enumerate(oracle.sequences_of(scores)):
            rows = source.rows[slice(*bound.X.offsets[i : i + 2])]
            gold = tuple(codes[slice(*bound.X.offsets[i : i + 2])])
            kept = kept_labels(one, width, gold if keep_gold else None)
            paths = {*itertools.product(*kept), gold}
            n_outside += len(paths) > np.prod([len(labels) for labels in kept])
            log_z = np.logaddexp.reduce([oracle.score(one, path) for path in paths])
            assert found[i] == pytest.approx(oracle.score(one, gold) - log_z, abs=1e-12)
            cells = np.zeros((rows.size, n_labels, n_labels + 1))  # of each position
            for path in paths:
                probability = np.exp(oracle.score(one, path) - log_z)
                for t, k in enumerate(path):
                    cells[t, k, path[t - 1] if t else n_labels] += probability
            for t, row in enumerate(rows):
                expected[gold[t], row, gold[t - 1] if t else n_labels] += weights[i]
                expected[:, row] -= weights[i] * cells[t]
                expected_curvature[:, row] += weights[i] * cells[t] * (1 - cells[t])
        np.testing.assert_allclose(gradient, expected, atol=1e-12)
        np.testing.assert_allclose(curvature, expected_curvature, atol=1e-12)
    assert (n_outside > 0) == (not keep_gold)


def kept_labels(scores, width, gold):
    """Return the labels in the beam at each step, by the sums over all prefixes within the beam."""
    kept = []
    for t in range(scores.n_steps):
        sums = np.full(scores.n_labels, -np.inf)
        for prefix in itertools.product(*kept, range(scores.n_labels)):
            steps = range(1, t + 1)
            total = scores.start[prefix[0]] + sum(scores.unary[u, k] for u, k in enumerate(prefix))
            total += sum(scores.pairwise[u][prefix[u - 1], prefix[u]] for u in steps)
            sums[prefix[-1]] = np.logaddexp(sums[prefix[-1]], total)
        best = set(np.argsort(-sums)[:width].tolist())
        kept.append(sorted(best | ({int(gold[t])} if gold is not None else set())))
    return kept


@pytest.mark.parametrize("keep_gold", [True, False])
def test_extreme_scores_with_a_beam(keep_gold):
    bound, source, codes, weights = problem(4, scale=1e4)
    options = BeamOptions(2, keep_gold)
    found, gradient, curvature = evaluate(bound, source, codes, weights, beam=options)
    assert np.isfinite(found).all()
    assert (found <= 0).all()
    assert np.isfinite(gradient).all()
    assert (curvature >= 0).all()


def test_samples_of_weight_zero_add_nothing():
    bound, source, codes, weights = problem(3)
    weights[1:] = 0.0
    found, gradient, _ = evaluate(bound, source, codes, weights)
    assert (found < 0).all()
    unused = np.setdiff1d(source.rows, source.rows[: LENGTHS[0]])
    assert (gradient[:, unused] == 0).all()


def test_a_model_without_pairs_works_on_any_structure():
    random = np.random.default_rng(0)
    X = Sequences(random.normal(size=(5, 2)), [0, 3, 5])
    bound = StarStructure(2, 3).bind(X)
    source = RowScores(np.arange(5, dtype=np.int32), 5, 3, has_pairs=False)
    source.node[:] = random.normal(size=(3, 5))
    codes = random.integers(0, 3, 5)
    found, gradient, _ = evaluate(bound, source, codes, np.ones(2))
    p = np.exp(source.node) / np.exp(source.node).sum(axis=0)
    np.testing.assert_allclose(gradient[:, :, 0], np.eye(3)[codes].T - p, atol=1e-12)
    np.testing.assert_allclose(found.sum(), np.log(p[codes, np.arange(5)]).sum())
    pairs = RowScores(np.arange(5, dtype=np.int32), 5, 3, has_pairs=True)
    with pytest.raises(NotImplementedError, match="BoundStar"):
        evaluate(bound, pairs, codes, np.ones(2))
