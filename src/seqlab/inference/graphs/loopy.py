"""Approximate inference on graphs with cycles: loopy belief propagation.

On a graph without cycles the result is exact. Otherwise ``log_z`` is the Bethe approximation and the
marginals are beliefs, which are consistent with each other if the messages have converged.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from seqlab.inference.graphs.layout import OneGraph
from seqlab.inference.kernels.loopy_messages import propagate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class LoopyBeliefs:
    """Beliefs of one graph.

    Parameters
    ----------
    graph : OneGraph
    unary : array of shape (n_nodes, n_labels)
    pair : array of shape (n_simple_edges, n_labels, n_labels)
    use_max : bool
        Whether messages are maxima instead of sums.
    damping, tol, max_rounds, use_residual
        As in `GraphInference`.

    Attributes
    ----------
    converged : bool
    n_rounds : int
    """

    def __init__(
        self,
        graph: OneGraph,
        unary: Floats,
        pair: Floats,
        use_max: bool,
        *,
        damping: float,
        tol: float,
        max_rounds: int,
        use_residual: bool,
    ) -> None:
        self._graph, self._unary, self._pair = graph, unary, pair
        start = 0.0 if use_max else -np.log(unary.shape[1])
        self._messages = np.full((2 * len(graph.edges), unary.shape[1]), start)
        self._belief = np.empty(unary.shape)
        self.n_rounds, change = propagate(
            unary,
            pair,
            graph.edges,
            graph.starts,
            graph.links,
            use_max,
            damping,
            tol,
            max_rounds,
            use_residual,
            self._messages,
            self._belief,
        )
        self.converged = bool(change <= tol)

    def marginals(self, node: Floats, pair: Floats) -> float:
        """Fill the beliefs of all nodes and edges; return the Bethe approximation of the log-partition."""
        node[:] = _normalise(self._belief)
        edges = self._graph.edges
        first = self._without(edges[:, 0], self._messages[1::2], 1)
        second = self._without(edges[:, 1], self._messages[0::2], 0)
        joint = first[:, :, np.newaxis] + self._pair + second[:, np.newaxis, :]
        flat = _normalise(joint.reshape(len(edges), -1))
        pair[:] = flat.reshape(joint.shape)
        degree = np.diff(self._graph.starts)
        energy = _expected(node, self._unary) + _expected(pair, self._pair)
        entropy = _entropy(pair).sum() + ((1 - degree) * _entropy(node)).sum()
        return float(energy + entropy)

    def decode(self) -> Ints:
        """Return the label with the largest belief at every node; the lowest in case of ties."""
        labels: Ints = np.argmax(self._belief, axis=1)
        return labels

    def max_marginals(self, out: Floats) -> None:
        """Fill the max-product beliefs of all nodes."""
        out[:] = self._belief

    def _without(self, nodes: Ints, incoming: Floats, back: int) -> Floats:
        """Beliefs of one end of every edge, without the message from the other end."""
        with np.errstate(invalid="ignore"):
            rest = self._belief[nodes] - incoming
        for e, label in np.argwhere(np.isneginf(incoming)):
            i, total = nodes[e], self._unary[nodes[e], label]
            for k in range(self._graph.starts[i], self._graph.starts[i + 1]):
                other = self._graph.links[k]
                if other != e:
                    total += self._messages[2 * other + (self._graph.edges[other, 0] == i), label]
            rest[e, label] = total
        return rest


def _normalise(logs: Floats) -> Floats:
    """Exponentiate and normalise every row."""
    top = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - np.where(top > -np.inf, top, 0.0))
    total = weights.sum(axis=1, keepdims=True)
    result: Floats = weights / np.where(total > 0.0, total, 1.0)
    return result


def _expected(probabilities: Floats, scores: Floats) -> float:
    """Expected score; forbidden labels have probability 0 and do not count."""
    return float((probabilities * np.where(probabilities > 0.0, scores, 0.0)).sum())


def _entropy(probabilities: Floats) -> Floats:
    """Entropy of each row (or table)."""
    logs = np.log(np.where(probabilities > 0.0, probabilities, 1.0))
    result: Floats = -(probabilities * logs).reshape(len(probabilities), -1).sum(axis=1)
    return result
