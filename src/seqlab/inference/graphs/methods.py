"""Inference on graphs: exact if the graph allows it, approximate otherwise.

`GraphInference` holds the choice of method and its settings; its methods take the `GraphScores` of many
graphs at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError, NoLegalLabelingError
from seqlab.inference._prepare import check_labels
from seqlab.inference.graphs.forest import Forest
from seqlab.inference.graphs.junction_tree import JunctionTree
from seqlab.inference.graphs.layout import OneGraph
from seqlab.inference.graphs.local_search import improve
from seqlab.inference.graphs.loopy import LoopyBeliefs
from seqlab.inference.graphs.relaxation import Relaxed, solve_relaxation
from seqlab.inference.graphs.scores import GraphScores
from seqlab.inference.results import Labelings
from seqlab.utils.threads import run_blocks

Floats = NDArray[np.float64]
Method = Literal["auto", "exact", "loopy", "lp"]


class GraphMarginals(NamedTuple):
    """Log-partition and marginals of many graphs.

    Attributes
    ----------
    log_z : array of shape (n_graphs,)
        Log-partition of each graph; the Bethe approximation if it is not exact.
    node : array of shape (n_nodes, n_labels)
    pair : array of shape (n_edges, n_labels, n_labels)
        Marginals of both labels of each edge.
    is_exact : boolean array of shape (n_graphs,)
    converged : boolean array of shape (n_graphs,)
        Whether the messages of loopy belief propagation converged; True if exact.
    """

    log_z: Floats
    node: Floats
    pair: Floats
    is_exact: NDArray[np.bool_]
    converged: NDArray[np.bool_]


class RelaxedLabelings(NamedTuple):
    """Solutions of the linear-programming relaxation (see `GraphInference.relaxed`).

    Attributes
    ----------
    value : array of shape (n_graphs,)
        Upper bound on the best score of each graph.
    node : array of shape (n_nodes, n_labels)
    pair : array of shape (n_edges, n_labels, n_labels)
    is_integral : boolean array of shape (n_graphs,)
        Whether the solution is a labeling, which then is a best one.
    """

    value: Floats
    node: Floats
    pair: Floats
    is_integral: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class GraphInference:
    """How to compute marginals and best labelings of graphs.

    Parameters
    ----------
    method : {"auto", "exact", "loopy", "lp"}, default="auto"
        "exact" uses messages on graphs without cycles and a junction tree on others; its cost grows
        exponentially with the treewidth, and it raises `InputError` beyond ``max_entries``. "loopy" is
        loopy belief propagation (sum-product for marginals, max-product for labelings). "lp" solves the
        linear-programming relaxation for labelings; marginals are those of "loopy". "auto" is "exact" up to
        ``max_entries``, else "loopy".
    max_entries : int, default=4194304
        Largest number of entries of all clique tables of one graph (8 bytes each).
    damping : float in [0, 1), default=0.5
        Share of the old message in the new one (loopy belief propagation).
    tol : float, default=1e-6
        Messages that change by less, in logs, have converged.
    max_rounds : int, default=200
        Rounds of loopy belief propagation; in a round as many messages are sent as there are.
    schedule : {"sequential", "residual"}, default="sequential"
        Which message is sent next: one after the other, or the one that changes most. The second needs fewer
        messages, but more work for each; it is slow on graphs with nodes of many neighbours.
    """

    method: Method = "auto"
    max_entries: int = 2**22
    damping: float = 0.5
    tol: float = 1e-6
    max_rounds: int = 200
    schedule: Literal["sequential", "residual"] = "sequential"

    def __post_init__(self) -> None:
        _check_choice("method", self.method, ("auto", "exact", "loopy", "lp"))
        _check_choice("schedule", self.schedule, ("residual", "sequential"))
        if not _is_number(self.damping) or not 0.0 <= self.damping < 1.0:
            raise InputError(f"damping must be in [0, 1), got {self.damping!r}")
        if not _is_number(self.tol) or not self.tol >= 0.0:
            raise InputError(f"tol must be a number that is not negative, got {self.tol!r}")
        for name in ("max_entries", "max_rounds"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name} must be a positive integer, got {value!r}")

    def marginals(self, scores: GraphScores, *, n_jobs: int | None = None) -> GraphMarginals:
        """Return log-partitions, node and pair marginals."""
        scores.check()
        unary, merged = scores.layout.merge(scores.unary, scores.tables)
        node, pair = np.zeros(unary.shape), np.zeros(merged.shape)
        log_z = np.zeros(scores.n_graphs)
        is_exact, converged = np.ones(scores.n_graphs, bool), np.ones(scores.n_graphs, bool)

        def run(g: int, graph: OneGraph, nodes: slice, edges: slice) -> None:
            solver = self._solver(graph, unary[nodes], merged[edges], use_max=False)
            if isinstance(solver, LoopyBeliefs):
                is_exact[g], converged[g] = False, solver.converged
                log_z[g] = solver.marginals(node[nodes], pair[edges])
                return
            log_z[g] = solver.total
            if solver.total > -np.inf:
                solver.marginals(node[nodes], pair[edges])

        _for_each_graph(scores, run, n_jobs)
        _require_legal(log_z)
        return GraphMarginals(log_z, node, scores.layout.spread(node, pair), is_exact, converged)

    def labelings(self, scores: GraphScores, *, n_jobs: int | None = None) -> Labelings:
        """Return the best labeling of each graph and its score.

        If the method is approximate, single labels are changed afterwards as long as that raises the score.
        """
        scores.check()
        unary, merged = scores.layout.merge(scores.unary, scores.tables)
        labels = np.zeros(scores.n_nodes, dtype=np.int64)

        def run(g: int, graph: OneGraph, nodes: slice, edges: slice) -> None:
            local = unary[nodes], merged[edges]
            if self.method == "lp":
                relaxed = solve_relaxation(graph, *local)
                labels[nodes] = np.argmax(relaxed.node, axis=1)
                if not relaxed.is_integral:
                    improve(graph, *local, labels[nodes])
                return
            solver = self._solver(graph, *local, use_max=True)
            labels[nodes] = solver.decode()
            if isinstance(solver, LoopyBeliefs):
                improve(graph, *local, labels[nodes])

        _for_each_graph(scores, run, n_jobs)
        values = labeling_scores(scores, labels)
        _require_legal(values)
        return Labelings(labels, values)

    def max_marginals(self, scores: GraphScores, *, n_jobs: int | None = None) -> Floats:
        """Return the best score of any labeling through each label at each node, (n_nodes, n_labels).

        If the method is approximate, these are max-product beliefs, known up to a constant for each graph.
        """
        scores.check()
        unary, merged = scores.layout.merge(scores.unary, scores.tables)
        out = np.empty(unary.shape)

        def run(g: int, graph: OneGraph, nodes: slice, edges: slice) -> None:
            solver = self._solver(graph, unary[nodes], merged[edges], use_max=True)
            solver.max_marginals(out[nodes])
            if isinstance(solver, LoopyBeliefs):
                return
            # So far each node knows the best score of its own component.
            component = graph.breadth_first.component_of_node()
            best = np.zeros(int(component.max(initial=-1)) + 1)
            best[component] = out[nodes].max(axis=1)
            if best.min(initial=0.0) > -np.inf:  # else an error follows
                out[nodes] += (best.sum() - best)[component][:, np.newaxis]

        _for_each_graph(scores, run, n_jobs)
        _require_legal(_first_of_each(out.max(axis=1), scores.offsets))
        return out

    def relaxed(self, scores: GraphScores, *, n_jobs: int | None = None) -> RelaxedLabelings:
        """Solve the linear-programming relaxation of the best labeling of each graph."""
        scores.check()
        unary, merged = scores.layout.merge(scores.unary, scores.tables)
        node, pair = np.zeros(unary.shape), np.zeros(merged.shape)
        value, is_integral = np.zeros(scores.n_graphs), np.ones(scores.n_graphs, bool)

        def run(g: int, graph: OneGraph, nodes: slice, edges: slice) -> None:
            found: Relaxed = solve_relaxation(graph, unary[nodes], merged[edges])
            value[g], is_integral[g] = found.value, found.is_integral
            node[nodes], pair[edges] = found.node, found.pair

        _for_each_graph(scores, run, n_jobs)
        _require_legal(value)
        return RelaxedLabelings(value, node, scores.layout.spread(node, pair), is_integral)

    def sample(self, scores: GraphScores, random_state: np.random.Generator) -> NDArray[np.int64]:
        """Draw a labeling of each graph from ``P(y) = exp(score(y)) / Z``; the graphs must allow "exact"."""
        return self.sample_from(scores, random_state.random(scores.n_nodes))

    def sample_from(self, scores: GraphScores, uniform: Floats) -> NDArray[np.int64]:
        """Draw a labeling of each graph, given a uniform number in [0, 1) for each node."""
        scores.check()
        unary, merged = scores.layout.merge(scores.unary, scores.tables)
        labels = np.zeros(scores.n_nodes, dtype=np.int64)

        def run(g: int, graph: OneGraph, nodes: slice, edges: slice) -> None:
            tree = self._junction_tree(graph, unary[nodes], merged[edges], use_max=False)
            if tree is None:
                raise InputError(self._too_large(scores.n_labels))
            _require_legal(np.array([tree.total]), g)
            labels[nodes] = tree.sample(uniform[nodes])

        _for_each_graph(scores, run, None)
        return labels

    def _solver(self, graph: OneGraph, unary: Floats, pair: Floats, *, use_max: bool) -> Any:
        """Return the messages of one graph by the chosen method."""
        if self.method in ("auto", "exact"):
            if graph.breadth_first.is_forest:
                return Forest(graph, graph.breadth_first, unary, pair, use_max)
            tree = self._junction_tree(graph, unary, pair, use_max=use_max)
            if tree is not None:
                return tree
            if self.method == "exact":
                raise InputError(self._too_large(unary.shape[1]))
        return LoopyBeliefs(
            graph,
            unary,
            pair,
            use_max,
            damping=self.damping,
            tol=self.tol,
            max_rounds=self.max_rounds,
            use_residual=self.schedule == "residual",
        )

    def _junction_tree(
        self, graph: OneGraph, unary: Floats, pair: Floats, *, use_max: bool
    ) -> JunctionTree | None:
        n_labels = unary.shape[1]
        max_clique = int(np.log(self.max_entries) / np.log(max(n_labels, 2)))
        cliques = graph.clique_tree(min(max_clique, 30))  # numpy allows 32 axes
        if cliques is None or cliques.n_entries(n_labels) > self.max_entries:
            return None
        return JunctionTree(graph, cliques, unary, pair, use_max)

    def _too_large(self, n_labels: int) -> str:
        return (
            f"exact inference on a graph with cycles needs clique tables of more than {self.max_entries} "
            f"entries ({n_labels} labels): raise max_entries or use loopy belief propagation ('loopy')"
        )


def labeling_scores(scores: GraphScores, labels: ArrayLike) -> Floats:
    """Return the score of one given labeling per graph, shape (n_graphs,)."""
    codes = check_labels(scores, labels, "labels")
    layout, n_graphs = scores.layout, scores.n_graphs
    node = scores.unary[np.arange(codes.size), codes]
    ends = codes[scores.edges]
    edge = scores.tables[np.arange(len(ends)), ends[:, 0], ends[:, 1]]
    graph_of_edge = layout.graph_of_node[scores.edges[:, 0]]
    total: Floats = np.bincount(layout.graph_of_node, node, n_graphs).astype(np.float64)
    total += np.bincount(graph_of_edge, edge, n_graphs)
    return total


def _for_each_graph(
    scores: GraphScores, run: Callable[[int, OneGraph, slice, slice], None], n_jobs: int | None
) -> None:
    """Call ``run(number, graph, its nodes, its simple edges)`` for each graph."""
    graphs, offsets = scores.layout.graphs, scores.offsets

    def one(g: int) -> None:
        graph = graphs[g]
        edges = slice(graph.first_edge, graph.first_edge + len(graph.edges))
        run(g, graph, slice(int(offsets[g]), int(offsets[g + 1])), edges)

    run_blocks(one, len(graphs), n_jobs)


def _first_of_each(values: Floats, offsets: NDArray[np.int64]) -> Floats:
    """First value of each graph; 0 for a graph without nodes."""
    out = np.zeros(offsets.size - 1)
    occupied = np.diff(offsets) > 0
    out[occupied] = values[offsets[:-1][occupied]]
    return out


def _require_legal(values: Floats, first: int = 0) -> None:
    if np.isneginf(values).any():
        raise NoLegalLabelingError(
            "the constraints forbid every labeling of graph {sequence}",
            first + int(np.argmax(np.isneginf(values))),
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
