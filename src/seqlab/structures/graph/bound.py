"""BoundGraph: a pairwise network bound to its graphs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.graphs import Graphs
from seqlab.data.sequences import SequenceBlock
from seqlab.inference import GraphInference, GraphLayout, GraphScores
from seqlab.inference.graphs import labeling_scores
from seqlab.structures.graph.structure import GraphStructure, GraphWeights
from seqlab.structures.protocol import BoundStructure
from seqlab.structures.sources import FunctionSource, ScoreSource
from seqlab.structures.values import ExpectedFeatures
from seqlab.utils.linalg import matmul

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class BlockMarginals(NamedTuple):
    """Marginals of a block of graphs, multiplied by the weights of the graphs."""

    log_z: Floats  # (n_block_graphs,), not weighted
    node: Floats  # (n_block_nodes, n_labels)
    pair: Floats  # (n_block_edges, n_labels, n_labels)

    def minus(self, other: BlockMarginals) -> BlockMarginals:
        """Subtract other marginals, and their log-partitions."""
        return BlockMarginals(*(a - b for a, b in zip(self, other, strict=True)))


class RelaxedArgmax(NamedTuple):
    """Loss-augmented labelings of a block, possibly fractional."""

    node: Floats  # (n_block_nodes, n_labels)
    pair: Floats  # (n_block_edges, n_labels, n_labels)
    value: Floats  # (n_block_graphs,), score plus loss: an upper bound on that of any labeling


class BoundGraph(BoundStructure):
    """A pairwise network bound to its graphs.

    Parameters
    ----------
    structure : GraphStructure
    X : Graphs
    inference : GraphInference, optional
        How marginals and labelings are computed.
    n_jobs : int, optional
        Number of threads; results are bitwise identical for any number.
    """

    X: Graphs

    def __init__(
        self,
        structure: GraphStructure,
        X: Graphs,
        *,
        inference: GraphInference | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(structure.n_labels, structure.n_params, X, n_jobs=n_jobs)
        self.structure = structure
        self.inference = inference or GraphInference()
        self._layouts: dict[tuple[int, int], GraphLayout] = {}

    def source(self, w: Floats) -> ScoreSource:
        """Return the scores that weights ``w`` give to the graphs."""
        return self.source_of(self.structure.weights(w))

    def source_of(self, weights: GraphWeights) -> ScoreSource:
        """Return the scores that weights in readable form give to the graphs."""
        coef, tables = np.ascontiguousarray(weights.coef.T), weights.tables
        n_kinds, L = len(tables), self.n_labels

        def node_scores(block: SequenceBlock) -> Floats:
            rows = self.X.matrix[block.steps]
            product = rows @ coef if sp.issparse(rows) else matmul(rows, coef)
            result: Floats = product + weights.intercept
            return result

        def edge_scores(block: SequenceBlock) -> Floats:
            features = self._edge_features(block)
            return matmul(features, tables.reshape(n_kinds, L * L)).reshape(-1, L, L)

        return FunctionSource(L, node_scores, edge_scores)

    def scores(self, source: ScoreSource, block: SequenceBlock) -> GraphScores:
        """Return the scores of a block."""
        layout = self._layout(block)
        nodes, edges = source.node_scores(block), source.edge_scores(block)
        return GraphScores(nodes, edges, layout.edges, layout.offsets, layout=layout)

    def add_costs(self, scores: GraphScores, costs: Floats) -> GraphScores:
        """Return scores with ``costs`` added to the node scores."""
        return scores.with_unary(scores.unary + costs)

    def argmax(self, scores: GraphScores) -> Codes:
        """Return the best labeling of each graph of a block, stacked."""
        return self.inference.labelings(scores).labels

    def marginals(
        self,
        scores: GraphScores,
        weights: Floats | None = None,
        allowed: NDArray[np.bool_] | None = None,
    ) -> BlockMarginals:
        """Return the marginals of a block."""
        if allowed is not None:
            scores = scores.with_unary(np.where(allowed, scores.unary, -np.inf))
        found = self.inference.marginals(scores)
        node, pair = found.node, found.pair
        if weights is not None:
            graphs = scores.layout.graph_of_node
            node = node * weights[graphs][:, np.newaxis]
            pair = pair * weights[graphs[scores.edges[:, 0]]][:, np.newaxis, np.newaxis]
        return BlockMarginals(found.log_z, node, pair)

    def relaxed_argmax(self, scores: GraphScores) -> RelaxedArgmax:
        """Return best labelings; with the method "lp", the solutions of the relaxation."""
        if self.inference.method == "lp":
            relaxed = self.inference.relaxed(scores)
            return RelaxedArgmax(relaxed.node, relaxed.pair, relaxed.value)
        labels, value = self.inference.labelings(scores)
        node = np.eye(self.n_labels)[labels]
        ends = labels[scores.edges]
        pair = np.zeros((len(ends), self.n_labels, self.n_labels))
        pair[np.arange(len(ends)), ends[:, 0], ends[:, 1]] = 1.0
        return RelaxedArgmax(node, pair, value)

    def add_expected_features(
        self, marginals: BlockMarginals | RelaxedArgmax, block: SequenceBlock, out: Floats
    ) -> None:
        """Add the features of a block, expected under its marginals, to ``out`` (n_params,)."""
        structure, L = self.structure, self.n_labels
        n_node = structure.n_features * L
        transposed = self.X.matrix[block.steps].T
        if sp.issparse(transposed):
            products = transposed @ marginals.node
        else:
            products = matmul(np.ascontiguousarray(transposed), marginals.node)
        out[:n_node] += products.ravel()
        if structure.fit_intercept:
            out[n_node : n_node + L] += marginals.node.sum(axis=0)
        features = np.ascontiguousarray(self._edge_features(block).T)
        tables = matmul(features, marginals.pair.reshape(-1, L * L)).reshape(-1, L, L)
        if not structure.directed:
            tables = (tables + tables.transpose(0, 2, 1)) / 2.0
        out[structure.first_table :] += tables.ravel()

    def joint_features(
        self, codes: Codes, samples: NDArray[np.int64] | None = None
    ) -> sp.csr_matrix:
        """Return ``phi(x_i, y_i)`` of graphs, shape (n_graphs, n_params)."""
        chosen = range(len(self.X)) if samples is None else samples.tolist()
        rows, begin = [], 0
        for g in chosen:
            block = self.X.block(g, g + 1)
            labels = codes[begin : begin + block.n_steps]
            begin += block.n_steps
            row = np.zeros(self.n_params)
            self.add_expected_features(self._indicators(labels, block), block, row)
            rows.append(sp.csr_matrix(row))
        return sp.vstack(rows, format="csr")

    def inner_products(self, codes: Codes, w: Floats) -> Floats:
        """Return the score of the labeling of every graph."""
        block = self.X.block(0, len(self.X))
        return labeling_scores(self.scores(self.source(w), block), codes)

    def conditional_features(
        self, w: Floats, codes: Codes, weights: Floats | None = None
    ) -> ExpectedFeatures:
        """Return value and gradient of the negative log-pseudo-likelihood, minus those of the labels.

        The pseudo-likelihood is the product of ``P(y_i | the labels of all other nodes)``. ``log_z`` holds
        one value per graph, and the parts are the gradient: the gold labels are already subtracted.
        """
        block = self.X.block(0, len(self.X))
        scores = self.scores(self.source(w), block)
        edges, tables, L = scores.edges, scores.tables, self.n_labels
        layout = scores.layout
        is_loop = layout.is_loop
        conditional = scores.unary.copy()
        np.add.at(conditional, edges[is_loop, 0], np.diagonal(tables[is_loop], axis1=1, axis2=2))
        ends, joined = codes[edges[~is_loop]], np.flatnonzero(~is_loop)
        np.add.at(conditional, edges[joined, 0], tables[joined, :, ends[:, 1]])
        np.add.at(conditional, edges[joined, 1], tables[joined, ends[:, 0], :])
        top = conditional.max(axis=1, keepdims=True)
        share = np.exp(conditional - top)
        total = share.sum(axis=1, keepdims=True)
        losses = (top + np.log(total))[:, 0] - conditional[np.arange(codes.size), codes]
        graphs = layout.graph_of_node
        log_z = np.bincount(graphs, losses, len(self.X)).astype(np.float64)
        residual = share / total - np.eye(L)[codes]
        if weights is not None:
            residual *= weights[graphs][:, np.newaxis]
        pair = np.zeros((len(edges), L, L))
        loops, labels = np.flatnonzero(is_loop), np.arange(L)
        pair[loops[:, np.newaxis], labels, labels] = residual[edges[loops, 0]]
        pair[joined, :, ends[:, 1]] += residual[edges[joined, 0]]
        pair[joined, ends[:, 0], :] += residual[edges[joined, 1]]
        gradient = np.zeros((1, self.n_params))
        self.add_expected_features(BlockMarginals(log_z, residual, pair), block, gradient[0])
        return ExpectedFeatures(log_z, gradient)

    def squared_scales(self) -> Floats:
        """Return the mean square of the feature of each weight, shape (n_params,)."""
        return self._per_weight(np.ones(self.X.n_steps), np.ones(len(self.X.edges)), mean=True)

    def curvature_at_zero(self, weights: Floats) -> Floats:
        """Return the diagonal of the Hessian of the summed log-partitions at zero weights."""
        graphs = np.repeat(np.arange(len(self.X)), self.X.lengths)
        nodes, edges = weights[graphs], weights[graphs[self.X.edges[:, 0]]]
        L = self.n_labels
        diagonal = self._per_weight(nodes * (L - 1) / L**2, edges * (L**2 - 1) / L**4, mean=False)
        return diagonal

    def _per_weight(self, nodes: Floats, edges: Floats, *, mean: bool) -> Floats:
        """Sum (or average over non-zeros) the squares of features, weighted by node and edge, per weight."""
        L = self.n_labels
        X, F = self.X.matrix, self.X.edge_features
        squares = X.multiply(X).T @ nodes if sp.issparse(X) else (X * X).T @ nodes
        n_edges = (F * F).T @ edges
        intercept = nodes.sum()
        if mean:
            counts = X.getnnz(axis=0) if sp.issparse(X) else np.count_nonzero(X, axis=0)
            squares = np.where(counts > 0, squares / np.maximum(counts, 1), 1.0)
            counts = np.count_nonzero(F, axis=0)
            n_edges = np.where(counts > 0, n_edges / np.maximum(counts, 1), 1.0)
            intercept = 1.0
        parts = [np.repeat(squares, L)]
        if self.structure.fit_intercept:
            parts.append(np.full(L, intercept))
        return np.concatenate([*parts, np.repeat(n_edges, L * L)])

    def _indicators(self, labels: Codes, block: SequenceBlock) -> BlockMarginals:
        edges = self._layout(block).edges
        pair = np.zeros((len(edges), self.n_labels, self.n_labels))
        pair[np.arange(len(edges)), labels[edges[:, 0]], labels[edges[:, 1]]] = 1.0
        return BlockMarginals(np.zeros(len(block)), np.eye(self.n_labels)[labels], pair)

    def _edge_features(self, block: SequenceBlock) -> Floats:
        return self.X.edge_features[self.X.edge_range(block.first, block.last)]

    def _layout(self, block: SequenceBlock) -> GraphLayout:
        """Return the layout of a block; kept, because training visits the same blocks again and again."""
        key = block.first, block.last
        if key not in self._layouts:
            edges = self.X.edges[self.X.edge_range(*key)] - block.begin
            self._layouts[key] = GraphLayout(edges, block.offsets)
        return self._layouts[key]
