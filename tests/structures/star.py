"""A second, simple structure: a star whose first position is connected to all others.

It shows that learners do not depend on chains. Weights: one per (feature, label), then one per (label of the
first position, label of another position).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from seqlab.structures import BoundStructure, FunctionSource


class StarStructure:
    """Parameters of a star."""

    def __init__(self, n_features, n_labels):
        self.n_features, self.n_labels = n_features, n_labels
        self.n_params = n_features * n_labels + n_labels * n_labels

    def bind(self, X, *, n_jobs=None):
        return BoundStar(self, X, n_jobs=n_jobs)


class StarScores(NamedTuple):
    node: np.ndarray  # (n_positions, n_labels)
    edge: np.ndarray  # (n_labels, n_labels), from the first position to the others
    offsets: np.ndarray


class StarMarginals(NamedTuple):
    log_z: np.ndarray
    node: np.ndarray
    edge: np.ndarray  # (n_labels, n_labels), summed over the block

    def minus(self, other):
        return StarMarginals(*(a - b for a, b in zip(self, other, strict=True)))


class BoundStar(BoundStructure):
    """A star bound to its data."""

    def __init__(self, structure, X, *, n_jobs=None):
        super().__init__(structure.n_labels, structure.n_params, X, n_jobs=n_jobs)
        self.n_features = structure.n_features

    def source(self, w):
        coef, edge = np.split(w, [self.n_features * self.n_labels])
        coef = coef.reshape(self.n_features, self.n_labels)
        return FunctionSource(
            self.n_labels,
            lambda block: block.matrix[block.steps] @ coef,
            edge.reshape(self.n_labels, self.n_labels),
        )

    def scores(self, source, block):
        return StarScores(source.node_scores(block), source.edge_scores(block), block.offsets)

    def add_costs(self, scores, costs):
        return scores._replace(node=scores.node + costs)

    def argmax(self, scores):
        labels = []
        for node in np.split(scores.node, scores.offsets[1:-1]):
            best = scores.edge[:, None] + node[None, 1:]  # (hub label, other position, label)
            hub = np.argmax(node[0] + best.max(axis=2).sum(axis=1))
            labels += [hub, *best[hub].argmax(axis=1)]
        return np.array(labels)

    def marginals(self, scores, weights=None, allowed=None):
        node_scores = scores.node if allowed is None else np.where(allowed, scores.node, -np.inf)
        log_z, nodes, edge = [], [], np.zeros_like(scores.edge)
        for i, node in enumerate(np.split(node_scores, scores.offsets[1:-1])):
            weight = 1.0 if weights is None else weights[i]
            joint = scores.edge[:, None] + node[None, 1:]
            messages = np.logaddexp.reduce(joint, axis=2)  # (hub label, other position)
            hub = node[0] + messages.sum(axis=1)
            log_z.append(np.logaddexp.reduce(hub))
            p_hub = np.exp(hub - log_z[-1])
            p_pair = p_hub[:, None, None] * np.exp(joint - messages[:, :, None])
            nodes.append(weight * np.vstack([p_hub, p_pair.sum(axis=0)]))
            edge += weight * p_pair.sum(axis=1)
        return StarMarginals(np.array(log_z), np.concatenate(nodes), edge)

    def add_expected_features(self, marginals, block, out):
        out[: self.n_features * self.n_labels] += (
            block.matrix[block.steps].T @ marginals.node
        ).ravel()
        out[self.n_features * self.n_labels :] += marginals.edge.ravel()

    def joint_features(self, codes, samples=None):
        X = self.X if samples is None else self.X[samples]
        rows = []
        for i, (begin, stop) in enumerate(zip(X.offsets[:-1], X.offsets[1:], strict=True)):
            labels = np.eye(self.n_labels)[codes[begin:stop]]
            rows.append(np.append(X[i].T @ labels, np.outer(labels[0], labels[1:].sum(axis=0))))
        return sp.csr_matrix(np.array(rows).reshape(-1, self.n_params))
