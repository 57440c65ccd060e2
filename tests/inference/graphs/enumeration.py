"""Inference on small graphs by enumerating all labelings, straight from the definition of the score."""

from __future__ import annotations

from itertools import product

import numpy as np

from seqlab.inference import GraphScores


def graph_score(unary, tables, edges, labels):
    """Score of one labeling of one graph."""
    total = sum(unary[i, label] for i, label in enumerate(labels))
    return total + sum(tables[e][labels[a], labels[b]] for e, (a, b) in enumerate(edges))


class Enumerated:
    """All labelings of one graph."""

    def __init__(self, scores):
        assert scores.n_graphs == 1
        n, L = scores.unary.shape
        self.labelings = [np.array(y) for y in product(range(L), repeat=n)]
        tables, edges = scores.tables, scores.edges.tolist()
        self.scores = np.array(
            [graph_score(scores.unary, tables, edges, y) for y in self.labelings]
        )
        top = self.scores.max()
        weights = np.exp(self.scores - top)
        self.log_z = top + np.log(weights.sum())
        p = weights / weights.sum()
        self.node, self.max = np.zeros((n, L)), np.full((n, L), -np.inf)
        self.pair = np.zeros(tables.shape)
        for y, probability, score in zip(self.labelings, p, self.scores, strict=True):
            for i, label in enumerate(y):
                self.node[i, label] += probability
                self.max[i, label] = max(self.max[i, label], score)
            for e, (a, b) in enumerate(edges):
                self.pair[e, y[a], y[b]] += probability


def random_graph(rng, *, n_nodes, n_labels, n_edges, simple=False, forbidden=0.0):
    """Scores of a random graph; edges may be parallel, reversed or loops unless ``simple``."""
    if simple:
        pairs = [(a, b) for a in range(n_nodes) for b in range(a + 1, n_nodes)]
        chosen = rng.permutation(len(pairs))[:n_edges]
        edges = np.array([pairs[k] for k in chosen], dtype=np.int64).reshape(-1, 2)
    else:
        edges = rng.integers(0, n_nodes, size=(n_edges, 2))
    unary = rng.normal(size=(n_nodes, n_labels))
    pairwise = rng.normal(size=(len(edges), n_labels, n_labels))
    if forbidden:
        unary[rng.random(unary.shape) < forbidden] = -np.inf
        pairwise[rng.random(pairwise.shape) < forbidden] = -np.inf
        unary[:, 0], pairwise[:, 0, 0] = 0.0, 0.0  # label 0 everywhere is always legal
    return GraphScores(unary, pairwise, edges)


def random_tree(rng, *, n_nodes, n_labels, n_trees=1, forbidden=0.0):
    """Scores of a random forest with edges in random directions."""
    edges = []
    for i in range(n_trees, n_nodes):
        pair = [int(rng.integers(0, i)), i]
        edges.append(pair[:: rng.choice([1, -1])])
    order = rng.permutation(n_nodes)
    scores = random_graph(rng, n_nodes=n_nodes, n_labels=n_labels, n_edges=0)
    tables = rng.normal(size=(len(edges), n_labels, n_labels))
    unary = scores.unary.copy()
    if forbidden:
        tables[rng.random(tables.shape) < forbidden] = -np.inf
        unary[rng.random(unary.shape) < forbidden] = -np.inf
        unary[:, 0], tables[:, 0, 0] = 0.0, 0.0
    return GraphScores(unary, tables, order[np.array(edges, dtype=np.int64).reshape(-1, 2)])
