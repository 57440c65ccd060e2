"""Every function against the enumeration of all labelings, for all shapes up to 4 steps and 3 labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import oracle
from oracle import make_mask, make_scores
from seqlab.data.errors import NoLegalLabelingError
from seqlab.inference import (
    Mask,
    beam,
    beam_marginals,
    beam_pair_marginals,
    expected_transitions,
    kbest,
    log_partition,
    loss_augmented,
    marginals,
    max_marginals,
    pair_marginals,
    path_scores,
    sample,
    viterbi,
)

SHAPES = [(n_steps, n_labels) for n_steps in range(5) for n_labels in (1, 2, 3)]
KINDS = [
    "constant",
    "per_step",
    "ties",
    "ties_per_step",
    "masked",
    "masked_per_step",
    "masked_ties",
]


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=SHAPES, ids=lambda shape: f"T{shape[0]}-L{shape[1]}")
def problem(request, kind):
    """Scores, mask, and the masked scores of each sequence."""
    n_steps, n_labels = request.param
    rng = np.random.default_rng([n_steps, n_labels, KINDS.index(kind)])
    lengths = [n_steps, 2, 0, n_steps]
    scores = make_scores(
        rng, lengths, n_labels, per_step="per_step" in kind, integers="ties" in kind
    )
    mask = make_mask(rng, scores) if "masked" in kind else None
    return scores, mask, oracle.sequences_of(scores.masked(mask))


def test_log_partition(problem):
    scores, mask, pieces = problem
    assert_allclose(
        log_partition(scores, mask=mask), [oracle.log_partition(p) for p in pieces], atol=1e-12
    )


def test_marginals(problem):
    scores, mask, pieces = problem
    truth = [oracle.pair_marginals(p) for p in pieces]
    node = np.concatenate([t[0] for t in truth])
    pair = np.concatenate([t[1] for t in truth])
    weights = np.array([1.0, 2.0, 5.0, 0.5])
    per_sequence = np.array([t[1].sum(axis=0) for t in truth])
    result = marginals(scores, mask=mask)
    pairs = pair_marginals(scores, mask=mask)
    counts = expected_transitions(scores, mask=mask)
    weighted = expected_transitions(scores, weights, mask=mask)
    assert_allclose(result.node, node, atol=1e-13)
    assert_allclose(pairs.node, node, atol=1e-13)
    assert_allclose(pairs.pair, pair, atol=1e-13)
    assert_allclose(counts.node, node, atol=1e-13)
    assert_allclose(counts.transitions, per_sequence.sum(axis=0), atol=1e-13)
    assert_allclose(weighted.transitions, np.tensordot(weights, per_sequence, axes=1), atol=1e-13)
    log_z = log_partition(scores, mask=mask)
    for answer in (result, pairs, counts, weighted):
        assert_allclose(answer.log_z, log_z, atol=1e-13)
    # The probability of what is forbidden is exactly 0.
    assert np.all(result.node[node == 0] == 0)
    assert np.all(pairs.pair[pair == 0] == 0)


def test_viterbi(problem):
    scores, mask, pieces = problem
    best = [oracle.kbest(p, 1)[0] for p in pieces]
    result = viterbi(scores, mask=mask)
    assert result.labels.tolist() == [label for labels, _ in best for label in labels]
    assert result.labels.dtype == np.int64
    assert_allclose(result.score, [value for _, value in best], atol=1e-12)
    assert_allclose(path_scores(scores, result.labels, mask=mask), result.score, atol=1e-12)


def test_max_marginals(problem):
    scores, mask, pieces = problem
    truth = np.concatenate([oracle.max_marginals(p) for p in pieces])
    assert_allclose(max_marginals(scores, mask=mask), truth, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_kbest(problem, n):
    scores, mask, pieces = problem
    result = kbest(scores, n, mask=mask)
    for found, piece in zip(result, pieces, strict=True):
        truth = oracle.kbest(piece, n)
        assert [tuple(labels.tolist()) for labels, _ in found] == [labels for labels, _ in truth]
        assert_allclose([value for _, value in found], [value for _, value in truth], atol=1e-12)


@pytest.mark.parametrize("costs", ["hamming", "per_step", "per_label"])
def test_loss_augmented(problem, costs):
    scores, mask, pieces = problem
    rng = np.random.default_rng(5)
    gold = rng.integers(scores.n_labels, size=scores.n_steps)
    full = np.ones((scores.n_steps, scores.n_labels))
    given = None
    if costs == "per_step":
        given = rng.integers(1, 4, size=scores.n_steps).astype(float)
        full = full * given[:, np.newaxis]
    elif costs == "per_label":
        full = given = rng.integers(1, 4, size=full.shape).astype(float)
    result = loss_augmented(scores, gold, given, mask=mask)
    for i, piece in enumerate(pieces):
        rows = slice(*scores.offsets[i : i + 2])
        labels, value = oracle.loss_augmented(piece, tuple(gold[rows].tolist()), full[rows])
        assert_allclose(result.score[i], value, atol=1e-12)
        assert tuple(result.labels[rows].tolist()) == labels


def test_path_scores(problem):
    scores, mask, pieces = problem
    rng = np.random.default_rng(6)
    labels = rng.integers(scores.n_labels, size=scores.n_steps)
    truth = [
        oracle.score(p, tuple(labels[slice(*scores.offsets[i : i + 2])].tolist()))
        for i, p in enumerate(pieces)
    ]
    assert_allclose(path_scores(scores, labels, mask=mask), truth, atol=1e-12)


def test_sample_draws_only_legal_labelings(problem):
    scores, mask, _ = problem
    for labels in sample(scores, 20, random_state=1, mask=mask):
        assert np.isfinite(path_scores(scores, labels, mask=mask)).all()


@pytest.mark.parametrize("width", [1, 2, 3])
def test_beam(problem, width):
    scores, mask, pieces = problem
    kept = [oracle.beam(p, width) for p in pieces]
    truth = [oracle.restricted(p, k) for p, k in zip(pieces, kept, strict=True)]
    if not all(oracle.legal(p) for p in truth):
        with pytest.raises(NoLegalLabelingError, match="the beam lost every legal labeling"):
            beam(scores, width, mask=mask)
        return
    best = [oracle.kbest(p, 1)[0] for p in truth]
    result = beam(scores, width, mask=mask)
    assert result.labels.tolist() == [label for labels, _ in best for label in labels]
    assert_allclose(result.score, [value for _, value in best], atol=1e-12)
    assert np.all(result.score <= viterbi(scores, mask=mask).score + 1e-12)


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("forced", [False, True])
def test_beam_marginals(problem, kind, width, forced):
    scores, mask, pieces = problem
    if "ties" in kind:  # which of two equal sums is kept would depend on their last bit
        scores.unary[:] += 1e-3 * np.random.default_rng(4).random(scores.unary.shape)
        pieces = oracle.sequences_of(scores.masked(mask))
    rng = np.random.default_rng(7)
    gold = viterbi(scores, mask=mask).labels if forced else None
    if forced and mask is None:
        gold = rng.integers(scores.n_labels, size=scores.n_steps)
    truth = []
    for i, piece in enumerate(pieces):
        rows = slice(*scores.offsets[i : i + 2])
        kept = oracle.beam(piece, width, None if gold is None else tuple(gold[rows]), soft=True)
        truth.append(oracle.restricted(piece, kept))
    if not all(oracle.legal(p) for p in truth):
        with pytest.raises(NoLegalLabelingError, match="the beam lost every legal labeling"):
            beam_marginals(scores, width, gold, mask=mask)
        return
    exact = [oracle.pair_marginals(p) for p in truth]
    result = beam_marginals(scores, width, gold, mask=mask)
    pairs = beam_pair_marginals(scores, width, gold, mask=mask)
    assert_allclose(result.log_z, [oracle.log_partition(p) for p in truth], atol=1e-12)
    assert_allclose(result.node, np.concatenate([e[0] for e in exact]), atol=1e-13)
    assert_allclose(pairs.node, result.node, atol=1e-13)
    assert_allclose(pairs.pair, np.concatenate([e[1] for e in exact]), atol=1e-13)
    assert_allclose(result.node.sum(axis=1), 1.0, atol=1e-13)


@pytest.mark.parametrize("part", ["steps", "transitions", "start", "end"])
def test_mask_parts_alone(part):
    """Each kind of constraint by itself equals -inf in the scores."""
    rng = np.random.default_rng(8)
    scores = make_scores(rng, [4, 3], 3)
    full = make_mask(rng, scores)
    mask = Mask(**{part: getattr(full, part)})
    pieces = oracle.sequences_of(scores.masked(mask))
    assert_allclose(log_partition(scores, mask=mask), [oracle.log_partition(p) for p in pieces])
    assert viterbi(scores, mask=mask).labels.tolist() == [
        label for p in pieces for label in oracle.kbest(p, 1)[0][0]
    ]


@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize("scale", [1.5, 400.0])
def test_sample_frequencies(per_step, scale):
    """Chi-square of 20,000 draws against the exact distribution, for both forms of the forward pass."""
    rng = np.random.default_rng(9)
    scores = make_scores(rng, [3], 2, per_step=per_step)
    # A large cost for one label at step 1 and the reverse at step 2: too large a range for the scaled form.
    if scale > 300:
        scores.unary[1] += [0.0, -scale]
        scores.pairwise[..., 1, :] += scale
        scores.start[1] -= scale
    truth = dict(oracle.probabilities(scores))
    n = 20_000
    draws, counts = np.unique(sample(scores, n, random_state=3), axis=0, return_counts=True)
    seen = {tuple(d.tolist()): c for d, c in zip(draws, counts, strict=True)}
    likely = {y: p for y, p in truth.items() if p * n >= 5}
    assert sum(seen.get(y, 0) for y in likely) > 0.99 * n
    chi2 = sum((seen.get(y, 0) - n * p) ** 2 / (n * p) for y, p in likely.items())
    assert chi2 < 30  # 7 degrees of freedom: p < 1e-4 beyond 29.9; the draws are seeded
