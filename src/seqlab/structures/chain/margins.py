"""Max-margin models of chains: weights or kernel coefficients, trained by compiled passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.sequences import Sequences
from seqlab.kernels import GramMatrix
from seqlab.structures.chain._kernels.error_ranges import find_range_violators
from seqlab.structures.chain._kernels.plane_steps import (
    COSTS,
    SLACK,
    SPANS,
    find_violators,
    subgradient_pass,
)
from seqlab.structures.chain.duals import ChainMarginalDual, ChainPlaneDual
from seqlab.structures.margins import MarginProblem, Violators, weighted_average
from seqlab.utils.linalg import dot

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

# Steps whose kernel rows are loaded at a time, if the kernel matrix does not fit into memory.
MAX_CHUNK = 2048


class ChainMarginModel:
    """Weights or kernel coefficients of a chain; a `seqlab.structures.margins.MarginModel`.

    The vector is the concatenation of the table of weights (n_features, n_labels) or of coefficients
    (n_places, n_labels), the same for label pairs if arcs have features, and the weights of transitions,
    start labels and end labels. For weights this is the order of `ChainStructure`.

    Parameters
    ----------
    X : Sequences
        CSR if the model has weights.
    problem : MarginProblem
    boundary : bool
        Whether there are start and end weights.
    edge_features : bool
        Whether label pairs have features, too.
    gram : GramMatrix, optional
        Kernel matrix of the distinct inputs; the model has weights if it is not given.
    place : int64 array of shape (n_steps,), optional
        Index of the input of each step among the distinct ones.
    """

    def __init__(
        self,
        X: Sequences,
        problem: MarginProblem,
        *,
        boundary: bool,
        edge_features: bool = False,
        gram: GramMatrix | None = None,
        place: NDArray[np.int64] | None = None,
    ) -> None:
        self.X, self.problem, self.gram = X, problem, gram
        self.boundary = boundary
        n_labels = problem.costs.shape[1]
        self.n_edge_columns = n_labels * n_labels if edge_features else 0
        self.offsets = np.array(X.offsets)
        self.arcs = np.zeros(n_labels * (n_labels + 2))
        self.place = np.zeros(0, dtype=np.int64) if place is None else place
        n_rows = X.n_features if gram is None else gram.n_inputs
        self.table = np.zeros((n_rows, n_labels))
        self.edge_table = np.zeros((n_rows, self.n_edge_columns))
        self.space = self._make_space(n_labels)
        self.rule = _make_rule(problem)
        self.arrays = (self.offsets, problem.codes, problem.costs, problem.limits, boundary)

    def _make_space(self, n_labels: int) -> Any:
        """Return the arrays of the model as the kernels take them."""
        none, nothing = np.zeros((0, 0)), np.zeros(0, dtype=np.int64)
        is_linear = self.gram is None
        matrix = self.X.matrix if is_linear else sp.csr_matrix((0, 0))
        rows = matrix.indptr, matrix.indices, matrix.data
        if self.gram is None:
            scratch = np.zeros_like(self.table), np.zeros_like(self.edge_table)
            linear = (rows, self.table, self.edge_table, *scratch)
            kernel = (none, nothing, nothing, none, none, none, none)
            self.scores = self.edge_scores = none
        else:
            self.scores = np.zeros(self.table.shape[::-1])
            self.edge_scores = np.zeros(self.edge_table.shape[::-1])
            linear = (rows, none, none, none, none)
            kernel = (
                self.gram.stored, self.gram.row_of, self.place, self.scores, self.table,
                self.edge_scores, self.edge_table,
            )  # fmt: skip
        return is_linear, linear, kernel, self.arcs, self.n_edge_columns

    def chunks(self, order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Yield parts of ``order`` whose rows of the kernel matrix are loaded."""
        if self.gram is None or self.gram.is_complete:
            yield order
            return
        lengths, limit = np.diff(self.offsets)[order], max(self.gram.stored.shape[0] // 2, 1)
        first = 0
        while first < order.size:
            n_taken = np.searchsorted(np.cumsum(lengths[first:]), min(limit, MAX_CHUNK), "right")
            last = first + max(int(n_taken), 1)
            chunk = order[first:last]
            bounds = [np.arange(self.offsets[i], self.offsets[i + 1]) for i in chunk]
            self.gram.load(self.place[np.concatenate(bounds)])
            yield chunk
            first = last

    @property
    def _n_arcs(self) -> int:
        n_labels = self.table.shape[1]
        return n_labels * (n_labels + 2) if self.boundary else n_labels * n_labels

    def vector(self) -> Floats:
        """Return a copy of the model."""
        return self._flatten(self.table, self.edge_table, self.arcs)

    def _flatten(self, table: Floats, edge_table: Floats, arcs: Floats) -> Floats:
        return np.concatenate([table.ravel(), edge_table.ravel(), arcs[: self._n_arcs]])

    def split(self, vector: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the parts of a vector: table, table of label pairs, arcs."""
        a, b = self.table.size, self.table.size + self.edge_table.size
        table = vector[:a].reshape(self.table.shape)
        return table, vector[a:b].reshape(self.edge_table.shape), vector[b:]

    def image(self, vector: Floats) -> Floats:
        """Return the image of a vector: kernel scores of all inputs instead of coefficients."""
        if self.gram is None:
            return vector
        table, edge_table, arcs = self.split(vector)
        scores = self.gram.multiply(table)
        edge_scores = self.gram.multiply(edge_table) if edge_table.size else edge_table
        return np.concatenate([scores.ravel(), edge_scores.ravel(), arcs])

    def set(self, vector: Floats, image: Floats | None = None) -> None:
        """Replace the model."""
        table, edge_table, arcs = self.split(vector)
        self.table[:], self.edge_table[:], self.arcs[: self._n_arcs] = table, edge_table, arcs
        if self.gram is not None:
            scores, edge_scores, _ = self.split(self.image(vector) if image is None else image)
            self.scores[:], self.edge_scores[:] = scores.T, edge_scores.T

    def reset(self) -> None:
        """Set the model to zero."""
        zero = np.zeros(self.table.size + self.edge_table.size + self._n_arcs)
        self.set(zero, zero)

    def squared_norm(self) -> float:
        """Return the squared norm of the model."""
        parts = [(self.table, self.table), (self.edge_table, self.edge_table)]
        if self.gram is not None:
            parts = [(self.table, self.scores.T), (self.edge_table, self.edge_scores.T)]
        total = sum(float(dot(a.ravel(), np.ascontiguousarray(b).ravel())) for a, b in parts)
        return total + float(dot(self.arcs, self.arcs))

    def total(self, labels: Codes, weights: Floats) -> Floats:
        """Return the vector of ``sum_i weights_i psi_i(labels_i)``."""
        codes, n_labels = self.problem.codes, self.table.shape[1]
        step_weights = np.repeat(weights, np.diff(self.offsets))
        used = step_weights != 0.0
        table, edges = np.zeros_like(self.table), np.zeros_like(self.edge_table)
        arcs = np.zeros_like(self.arcs)
        starts = self.offsets[:-1]
        ends = self.offsets[1:] - 1
        inside = used.copy()
        inside[starts] = False
        pair = n_labels * n_labels
        for y, sign in ((codes, 1.0), (labels, -1.0)):
            self._add_rows(table, y, used, sign * step_weights)
            pairs = np.concatenate([[0], y[:-1] * n_labels + y[1:]])
            if self.n_edge_columns:
                self._add_rows(edges, pairs, inside, sign * step_weights)
            arcs[:pair] += sign * np.bincount(pairs[inside], step_weights[inside], pair)
            if self.boundary:
                arcs[pair : pair + n_labels] += sign * np.bincount(y[starts], weights, n_labels)
                arcs[pair + n_labels :] += sign * np.bincount(y[ends], weights, n_labels)
        return self._flatten(table, edges, arcs)

    def _add_rows(
        self, out: Floats, columns: Codes, used: NDArray[np.bool_], weights: Floats
    ) -> None:
        """Add the features (or unit coefficients) of the used steps to their columns."""
        steps = np.flatnonzero(used)
        if self.gram is not None:
            np.add.at(out, (self.place[steps], columns[steps]), weights[steps])
            return
        matrix = self.X.matrix
        lengths = np.where(used, np.diff(matrix.indptr), 0)
        entries = np.repeat(used, np.diff(matrix.indptr))
        column, weight = np.repeat(columns, lengths), np.repeat(weights, lengths)
        index = matrix.indices[entries].astype(np.int64) * out.shape[1] + column
        out += np.bincount(index, weight * matrix.data[entries], out.size).reshape(out.shape)

    def find_violators(self, unit: float = 1.0) -> Violators:
        """Search the labeling of highest ``h`` of every sequence."""
        problem = self.problem
        labels = np.empty_like(problem.codes)
        slack, losses, scales = np.empty((3, problem.limits.size))
        find_violators(self.arrays, self.space, self.rule, unit, labels, slack, losses, scales)
        return Violators(labels, slack, losses, scales)

    def find_many_violators(self) -> list[Violators]:
        """Return the labelings of highest ``h``; with slack rescaling those for ranges of errors, too.

        The ranges are those of 1, 2-3, 4-7, ... wrong labels.
        """
        if not self.problem.rescale_slack:
            return [self.find_violators()]
        codes, n = self.problem.codes, self.problem.limits.size
        n_ranges = int(np.diff(self.offsets).max(initial=1)).bit_length()
        # The gold labeling, whose h is 0, is the first candidate.
        labels = np.empty((n_ranges + 1, codes.size), dtype=np.int64)
        labels[0] = codes
        slack, losses = np.zeros((2, n_ranges + 1, n))
        find_range_violators(self.arrays, self.space, labels[1:], slack[1:], losses[1:])
        scales = np.where(losses > 0.0, losses, 1.0)
        top = slack.argmax(axis=0)
        labels[0] = labels[np.repeat(top, np.diff(self.offsets)), np.arange(codes.size)]
        for values in (slack, losses, scales):
            values[0] = values[top, np.arange(n)]
        return [Violators(*one) for one in zip(labels, slack, losses, scales, strict=True)]

    def plane_dual(self) -> ChainPlaneDual:
        """Return the dual over stored labelings; the model becomes zero."""
        self.reset()
        return ChainPlaneDual(self)

    def marginal_dual(self) -> ChainMarginalDual:
        """Return the dual over the marginals of nodes and edges; the model becomes zero."""
        self.reset()
        return ChainMarginalDual(self)

    def subgradient(self) -> ChainSubgradient:
        """Return a stochastic subgradient method; the model becomes zero."""
        self.reset()
        return ChainSubgradient(self)


class ChainSubgradient:
    """Stochastic subgradient steps on chains; see `seqlab.structures.margins.StochasticSubgradient`.

    The model is used for the sum of the steps; call `ChainMarginModel.set` on another model to evaluate.
    """

    def __init__(self, model: ChainMarginModel) -> None:
        self._model = model
        tables = model.table, model.edge_table, model.arcs
        self._weighted = tuple(np.zeros_like(table) for table in tables)
        self._sum = model.vector()
        self._n_updates = 0

    def run_pass(self, order: NDArray[np.int64]) -> None:
        """Make one step for each of these sequences."""
        model = self._model
        model.set(self._sum)
        for chunk in model.chunks(order):
            self._n_updates = subgradient_pass(
                chunk, self._n_updates, model.arrays, model.space, self._weighted,
                model.rule,
            )  # fmt: skip
        self._sum = model.vector()

    def average(self) -> Floats:
        """Return the vector of the weighted average."""
        weighted = self._model._flatten(*self._weighted)
        return weighted_average(self._sum, weighted, self._n_updates)


def _make_rule(problem: MarginProblem) -> tuple[int, NDArray[np.bool_], Codes]:
    """Return what the search for violating labelings maximises, as the kernels take it."""
    if problem.spans is not None:
        return SPANS, problem.spans.continues, problem.spans.types
    mode = SLACK if problem.rescale_slack else COSTS
    return mode, np.zeros((0, 0), dtype=bool), np.zeros(0, dtype=np.int64)
