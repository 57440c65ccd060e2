"""Readable versions of the inference kernels: enumerate every labeling, then sum, sort or count.

Only for tiny problems (n_labels ** n_steps labelings per sequence). Every function takes the scores
of *one* sequence; `sequences_of` splits a batch into such scores. `make_scores` and `make_mask`
generate random problems.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from seqlab.inference import ChainScores, Mask


def sequences_of(scores: ChainScores) -> list[ChainScores]:
    """One ``ChainScores`` per sequence."""
    pieces = []
    for a, b in itertools.pairwise(scores.offsets.tolist()):
        pairwise = scores.pairwise[a:b] if scores.per_step else scores.pairwise
        pieces.append(ChainScores(scores.unary[a:b], pairwise, scores.start, scores.end))
    return pieces


def labelings(scores: ChainScores) -> list[tuple[int, ...]]:
    """All labelings in lexicographic order."""
    return list(itertools.product(range(scores.n_labels), repeat=scores.n_steps))


def score(scores: ChainScores, labeling: tuple[int, ...]) -> float:
    """The score of one labeling, term by term."""
    if not labeling:
        return 0.0
    total = scores.start[labeling[0]] + scores.end[labeling[-1]]
    for t, label in enumerate(labeling):
        total += scores.unary[t, label]
        if t > 0:
            arcs = scores.pairwise[t] if scores.per_step else scores.pairwise
            total += arcs[labeling[t - 1], label]
    return float(total)


def legal(scores: ChainScores) -> list[tuple[tuple[int, ...], float]]:
    """Every legal labeling with its score, in lexicographic order."""
    scored = [(labeling, score(scores, labeling)) for labeling in labelings(scores)]
    return [(labeling, value) for labeling, value in scored if value > -math.inf]


def log_partition(scores: ChainScores) -> float:
    """``log sum_y exp(score(y))``."""
    values = np.array([value for _, value in legal(scores)])
    high = values.max()
    return float(high + np.log(np.exp(values - high).sum()))


def probabilities(scores: ChainScores) -> list[tuple[tuple[int, ...], float]]:
    """Every legal labeling with its probability."""
    log_z = log_partition(scores)
    return [(labeling, math.exp(value - log_z)) for labeling, value in legal(scores)]


def pair_marginals(scores: ChainScores) -> tuple[np.ndarray, np.ndarray]:
    """Node marginals (n_steps, n_labels) and pair marginals (n_steps, n_labels, n_labels)."""
    node = np.zeros((scores.n_steps, scores.n_labels))
    pair = np.zeros((scores.n_steps, scores.n_labels, scores.n_labels))
    for labeling, probability in probabilities(scores):
        for t, label in enumerate(labeling):
            node[t, label] += probability
            if t > 0:
                pair[t, labeling[t - 1], label] += probability
    return node, pair


def kbest(scores: ChainScores, n: int) -> list[tuple[tuple[int, ...], float]]:
    """The ``n`` best labelings, ties in lexicographic order (Python's sort is stable)."""
    return sorted(legal(scores), key=lambda item: -item[1])[:n]


def max_marginals(scores: ChainScores) -> np.ndarray:
    """Best score of any labeling with each label at each step."""
    best = np.full((scores.n_steps, scores.n_labels), -np.inf)
    for labeling, value in legal(scores):
        for t, label in enumerate(labeling):
            best[t, label] = max(best[t, label], value)
    return best


def loss_augmented(
    scores: ChainScores, gold: tuple[int, ...], cost: np.ndarray
) -> tuple[tuple[int, ...], float]:
    """Best labeling of ``score(y) + sum_t cost[t, y_t] [y_t != gold_t]``."""
    best: tuple[tuple[int, ...], float] = ((), -math.inf)
    for labeling, value in legal(scores):
        loss = sum(cost[t, s] for t, s in enumerate(labeling) if s != gold[t])
        if value + loss > best[1]:
            best = (labeling, value + loss)
    return best


def beam(
    scores: ChainScores, width: int, forced: tuple[int, ...] | None = None, soft: bool = False
):
    """Labels kept at each step: the best ``width`` by prefix maximum, or prefix sum if ``soft``."""
    kept: list[list[int]] = []
    for t in range(scores.n_steps):
        value = np.full(scores.n_labels, -np.inf)
        for prefix in itertools.product(*kept, range(scores.n_labels)):
            total = scores.start[prefix[0]] + sum(scores.unary[u, s] for u, s in enumerate(prefix))
            for u in range(1, t + 1):
                arcs = scores.pairwise[u] if scores.per_step else scores.pairwise
                total += arcs[prefix[u - 1], prefix[u]]
            if t == scores.n_steps - 1:
                total += scores.end[prefix[-1]]
            join = np.logaddexp if soft else max
            value[prefix[-1]] = join(value[prefix[-1]], total)
        order = sorted(range(scores.n_labels), key=lambda s: -value[s])
        if forced is not None:
            order.remove(forced[t])
            order.insert(0, forced[t])
        kept.append(sorted([s for s in order if value[s] > -np.inf][:width]))
    return kept


def restricted(scores: ChainScores, kept: list[list[int]]) -> ChainScores:
    """The scores with ``-inf`` for every label that was not kept."""
    unary = np.full_like(scores.unary, -np.inf)
    for t, labels in enumerate(kept):
        unary[t, labels] = scores.unary[t, labels]
    return ChainScores(unary, scores.pairwise, scores.start, scores.end)


def make_scores(rng, lengths, n_labels, *, per_step=False, integers=False, scale=1.5):
    """Random scores of sequences with the given lengths; small integers give ties."""
    n_steps = int(np.sum(lengths))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def draw(*shape):
        if integers:
            return rng.integers(-1, 2, size=shape).astype(float)
        return rng.normal(scale=scale, size=shape)

    pairwise = draw(n_steps, n_labels, n_labels) if per_step else draw(n_labels, n_labels)
    return ChainScores(draw(n_steps, n_labels), pairwise, draw(n_labels), draw(n_labels), offsets)


def make_mask(rng, scores, allowed=0.75):
    """A random mask with all four parts, such that every sequence has a legal labeling."""
    while True:
        mask = Mask(
            steps=rng.random((scores.n_steps, scores.n_labels)) < allowed,
            transitions=rng.random((scores.n_labels, scores.n_labels)) < allowed,
            start=rng.random(scores.n_labels) < allowed,
            end=rng.random(scores.n_labels) < allowed,
        )
        if all(legal(piece) for piece in sequences_of(scores.masked(mask))):
            return mask
        allowed = min(1.0, allowed + 0.02)
