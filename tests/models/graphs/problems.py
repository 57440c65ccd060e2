"""Random graphs with labels that depend on the features of nodes and on their neighbours."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from seqlab.inference import GraphInference, GraphScores


def make_graphs(seed=0, n_graphs=6, n_nodes=8, n_labels=3, n_features=4, kinds=None, n_edges=10):
    """Return X, y: features are noisy indicators; labels are drawn from a random network."""
    rng = np.random.default_rng(seed)
    tables = {kind: 1.5 * rng.normal(size=(n_labels, n_labels)) for kind in kinds or [None]}
    coef = rng.normal(size=(n_features, n_labels))
    X, y = [], []
    for g in range(n_graphs):
        n = n_nodes + g % 3
        features = rng.normal(size=(n, n_features))
        edges = rng.integers(0, n, size=(n_edges, 2))
        edge_kinds = None if kinds is None else rng.choice(kinds, size=n_edges)
        pairwise = np.array([tables[kind] for kind in (edge_kinds if kinds else [None] * n_edges)])
        scores = GraphScores(features @ coef, pairwise, edges)
        labels = GraphInference("exact").sample(scores, rng)
        X.append((features, edges) if kinds is None else (features, edges, edge_kinds))
        y.append(np.array(list("abcdefg"))[labels])
    return X, y


def as_sparse(X):
    """The same graphs with sparse node features."""
    return [(sp.csr_matrix(graph[0]), *graph[1:]) for graph in X]


def as_chains(X):
    """Sequences of features as graphs: every node is linked to the next one."""
    return [(x, np.column_stack([np.arange(len(x) - 1), np.arange(1, len(x))])) for x in X]
