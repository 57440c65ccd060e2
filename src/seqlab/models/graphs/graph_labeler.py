"""GraphLabeler: input, storage and predictions that all models of graphs share."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from seqlab.data import state_checks
from seqlab.data.convert import Layout, as_sequences
from seqlab.data.errors import InputError
from seqlab.data.graphs import EdgeTypes, Graphs, split_graphs, stack_edges
from seqlab.data.labels import decode_labels
from seqlab.data.sequences import Sequences
from seqlab.inference import GraphInference, GraphScores
from seqlab.learning import TrainingData
from seqlab.models.base import LIMIT_CONSTRAINTS, BaseLabeler
from seqlab.structures.graph import BoundGraph, GraphStructure, GraphWeights

# Constraints of the parameters that all models of graphs have.
GRAPH_CONSTRAINTS: dict[str, list[Any]] = {
    "directed": ["boolean"],
    "fit_intercept": ["boolean"],
    "inference": [StrOptions({"auto", "exact", "loopy", "lp"})],
    "damping": [Interval(Real, 0, 1, closed="left")],
    "max_rounds": [Interval(Integral, 1, None, closed="left")],
    "max_entries": [Interval(Integral, 1, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    **LIMIT_CONSTRAINTS,
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
}


class GraphLabeler(BaseLabeler):
    """Base class of the models of graphs.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    coef_ : array of shape (n_labels, n_features)
        Weights of the node features.
    intercept_ : array of shape (n_labels,)
    edge_coef_ : array of shape (n_edge_features, n_labels, n_labels)
        Weights of the pairs of labels, for each type (or feature) of edges.
    edge_types_ : array or None
        The types of edges, if they have types.
    """

    directed: bool
    fit_intercept: bool
    inference: str
    damping: float
    max_rounds: int
    max_entries: int
    n_jobs: int | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags

    def predict(self, X: Any) -> list[NDArray[Any]]:
        """Return the best labeling of each graph.

        Parameters
        ----------
        X : list of graphs

        Returns
        -------
        list of arrays of labels, one label per node
        """
        graphs, layout = self._read(X)
        restored: list[NDArray[Any]] = layout.restore(
            decode_labels(self._predict(graphs), self.classes_), graphs.offsets
        )
        return restored

    def decision_function(self, X: Any) -> list[NDArray[np.float64]]:
        """Return max-marginals: the best score of any labeling that has a given label at a given node.

        With approximate inference they are beliefs, known up to a constant for each graph.

        Parameters
        ----------
        X : list of graphs

        Returns
        -------
        list of arrays of shape (n_nodes, n_labels)
            Columns in the order of ``classes_``.
        """
        graphs, layout = self._read(X)
        table = self._inference().max_marginals(self._scores(graphs), n_jobs=self.n_jobs)
        restored: list[NDArray[np.float64]] = layout.restore(table, graphs.offsets)
        return restored

    def _inference(self) -> GraphInference:
        return GraphInference(
            self.inference,  # type: ignore[arg-type]
            max_entries=self.max_entries,
            damping=self.damping,
            max_rounds=self.max_rounds,
        )

    def _structure(self, n_labels: int, X: Graphs) -> GraphStructure:
        return GraphStructure(
            X.n_features, n_labels, X.edge_features.shape[1], self.fit_intercept, self.directed
        )

    def _bind(self, data: TrainingData) -> BoundGraph:
        """Return the network that parameters and training data determine, bound to the data."""
        assert isinstance(data.X, Graphs)
        structure = self._structure(data.n_labels, data.X)
        return structure.bind(data.X, inference=self._inference(), n_jobs=self.n_jobs)

    def _store(self, structure: GraphStructure, w: NDArray[np.float64]) -> None:
        self.coef_, self.intercept_, self.edge_coef_ = structure.weights(w)

    def _check_state(self) -> None:
        super()._check_state()
        if not state_checks.has_fitted_attributes(self):
            return
        n_labels = self.classes_.size
        n_kinds = state_checks.check_int(self.n_edge_features_in_, "n_edge_features_in_", 0)
        state_checks.check_array(self.coef_, "coef_", (n_labels, self.n_features_in_))
        state_checks.check_array(self.intercept_, "intercept_", (n_labels,))
        state_checks.check_array(self.edge_coef_, "edge_coef_", (n_kinds, n_labels, n_labels))
        is_plain = state_checks.check_type(self.has_plain_edges_, "has_plain_edges_", bool)
        state_checks.require(not is_plain or n_kinds == 1, "has_plain_edges_")
        if self.edge_types_ is not None:
            state_checks.require(not is_plain, "edge_types_")
            n_types = state_checks.check_classes(self.edge_types_, "edge_types_")
            state_checks.require(n_types == n_kinds, "edge_types_")

    def _scores(self, X: Graphs) -> GraphScores:
        bound = self._structure(self.classes_.size, X).bind(X)
        weights = GraphWeights(self.coef_, self.intercept_, self.edge_coef_)
        return bound.scores(bound.source_of(weights), X.block(0, len(X)))

    def _predict(self, X: Sequences) -> NDArray[np.int64]:
        assert isinstance(X, Graphs)
        return self._inference().labelings(self._scores(X), n_jobs=self.n_jobs).labels

    def _set_labels(self, data: TrainingData) -> None:
        self.classes_ = data.classes

    def _read_training_features(self, X: Any, y: Any, lengths: Any) -> tuple[Graphs, Layout]:
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        if isinstance(X, Graphs):
            graphs, layout = X, Layout(is_list=True)
            n_kinds = X.edge_features.shape[1]
            is_plain = n_kinds == 1 and bool((X.edge_features == 1.0).all())
            self.vectorizer_, self._edge_types = None, EdgeTypes(None, n_kinds, is_plain)
        else:
            items = split_graphs(X)
            vectorizer = self._new_vectorizer()
            nodes, layout = as_sequences(
                [graph.features for graph in items], vectorizer=vectorizer, fit_vectorizer=True
            )
            self.vectorizer_ = vectorizer if layout.symbolic else None
            graphs, self._edge_types = stack_edges(items, nodes)
        if graphs.n_steps == 0:
            raise InputError("the graphs of X have no nodes: there is nothing to learn from")
        self._check_features(X, graphs, reset=True)
        return graphs, layout

    def _read(self, X: Any, lengths: Any = None) -> tuple[Graphs, Layout]:
        check_is_fitted(self)
        if lengths is not None:
            raise InputError("lengths cannot be given with graphs: X is a list of graphs")
        if isinstance(X, Graphs):
            graphs, layout = X, Layout(is_list=True)
            if X.edge_features.shape[1] != self._edge_types.n_features:
                raise InputError(
                    f"X has {X.edge_features.shape[1]} edge features, expected {self._edge_types.n_features}"
                )
        else:
            items = split_graphs(X)
            nodes, layout = as_sequences(
                [graph.features for graph in items], vectorizer=self.vectorizer_
            )
            if layout.empty:
                nodes = Sequences(np.zeros((0, self.n_features_in_)), nodes.offsets)
            graphs, _ = stack_edges(items, nodes, self._edge_types)
        if self.vectorizer_ is not None and not (layout.symbolic or isinstance(X, Graphs)):
            raise InputError(
                f"this {type(self).__name__} was fitted on dicts or strings, but X holds numbers"
            )
        if not layout.empty:
            self._check_features(X, graphs, reset=False)
        return graphs, layout

    def _check_features(self, X: Any, sequences: Sequences, *, reset: bool) -> None:
        # The nodes of all graphs, without the edges, are one matrix for scikit-learn's check of columns.
        nodes = Sequences.from_checked(sequences.matrix, sequences.offsets)
        super()._check_features(nodes, nodes, reset=reset)

    @property
    def _edge_types(self) -> EdgeTypes:
        return EdgeTypes(self.edge_types_, self.n_edge_features_in_, self.has_plain_edges_)

    @_edge_types.setter
    def _edge_types(self, known: EdgeTypes) -> None:
        self.edge_types_, self.n_edge_features_in_, self.has_plain_edges_ = known
