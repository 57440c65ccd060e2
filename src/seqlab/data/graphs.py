"""Graphs: samples whose nodes are joined by edges.

The nodes of all graphs are stacked like the steps of sequences, so `Graphs` is a `Sequences` with edges. A
graph is given as ``(features, edges)`` or ``(features, edges, edge_features)``; see `Graph`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# What types of edges may be, by the kind of their NumPy type.
_KINDS = {"U": "strings", "i": "integers", "u": "integers", "b": "booleans"}
WANTED = "a graph is a tuple (features, edges) or (features, edges, edge_features)"


class Graph(NamedTuple):
    """One graph, as the graph models accept it; a plain tuple of the same parts does as well.

    Attributes
    ----------
    features : array or sparse matrix of shape (n_nodes, n_features), or list of dicts
        Features of the nodes, in any form that a sequence may have.
    edges : int array of shape (n_edges, 2)
        The two nodes of each edge, counted from 0. If direction matters, from the first to the second.
    edge_features : array, optional
        One type per edge, shape (n_edges,), such as strings; or numbers of shape (n_edges, n_edge_features).
        All edges are of one type by default.
    """

    features: Any
    edges: Any
    edge_features: Any = None


class Graphs(Sequences):
    """Many graphs: stacked node features, offsets, and edges.

    Parameters
    ----------
    matrix, offsets, feature_names
        As in `Sequences`: one row per node.
    edges : int array of shape (n_edges, 2)
        Rows of ``matrix`` that each edge joins, ordered by graph.
    edge_features : array of shape (n_edges, n_edge_features)
    """

    __slots__ = ("edge_features", "edges")

    def __init__(
        self,
        matrix: Any,
        offsets: ArrayLike,
        *,
        edges: Ints,
        edge_features: Floats,
        feature_names: Any = None,
    ) -> None:
        super().__init__(matrix, offsets, feature_names=feature_names)
        self.edges = edges
        self.edge_features = edge_features

    @classmethod
    def from_nodes(cls, nodes: Sequences, edges: Ints, edge_features: Floats) -> Graphs:
        """Add edges to stacked nodes."""
        graphs = cls.__new__(cls)
        graphs.matrix, graphs.offsets, graphs._names = nodes.matrix, nodes.offsets, nodes._names
        graphs.edges, graphs.edge_features = edges, edge_features
        return graphs

    def edge_range(self, first: int, last: int) -> slice:
        """Return the rows of the edges of graphs ``first`` to ``last - 1``."""
        bounds = np.searchsorted(self.edges[:, 0], self.offsets[[first, last]])
        return slice(int(bounds[0]), int(bounds[1]))

    def __getitem__(self, key: Any) -> Any:
        """One graph's node features for an integer; new `Graphs` for a slice, list or mask."""
        nodes = super().__getitem__(key)
        if not isinstance(nodes, Sequences):
            return nodes
        chosen = np.arange(len(self))[key[0] if isinstance(key, tuple) else key]
        rows, edges = [np.zeros(0, dtype=np.int64)], [np.zeros((0, 2), dtype=np.int64)]
        for at, g in enumerate(chosen.tolist()):
            part = self.edge_range(g, g + 1)
            rows.append(np.arange(part.start, part.stop))
            edges.append(self.edges[part] - self.offsets[g] + nodes.offsets[at])
        taken = self.edge_features[np.concatenate(rows)]
        return Graphs.from_nodes(nodes, np.concatenate(edges), taken)

    def __getstate__(self) -> dict[str, Any]:
        edges = {"edges": self.edges, "edge_features": self.edge_features}
        return {**super().__getstate__(), **edges}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


class EdgeTypes(NamedTuple):
    """How the edges of the training graphs were described.

    Attributes
    ----------
    types : array or None
        The types, sorted, if edges have types.
    n_features : int
        Number of edge features: one per type; 1 if edges have neither types nor features.
    is_plain : bool
        Whether edges have neither types nor features.
    """

    types: NDArray[Any] | None
    n_features: int
    is_plain: bool


def split_graphs(X: Any) -> list[Graph]:
    """Check that X is a list of graphs, without looking into their parts."""
    if isinstance(X, Graph) or not isinstance(X, Iterable) or isinstance(X, str | dict):
        raise InputError(f"X must be a list of graphs: {WANTED}")
    result = []
    for g, item in enumerate(X):
        if not isinstance(item, tuple | list) or len(item) not in (2, 3):
            raise InputError(f"X[{g}] is not a graph: {WANTED}")
        result.append(Graph(*item))
    if not result:
        raise InputError("X is empty: at least one graph is required")
    return result


def stack_edges(
    graphs: list[Graph], nodes: Sequences, known: EdgeTypes | None = None
) -> tuple[Graphs, EdgeTypes]:
    """Add the edges of graphs to their stacked nodes.

    Parameters
    ----------
    graphs : list of Graph
    nodes : Sequences
        The nodes of all graphs.
    known : EdgeTypes, optional
        The description of the training edges; learned from these graphs if not given. An edge of a type that
        was not seen in training has no features.
    """
    edges = [
        check_edges(graph.edges, int(n), f"X[{g}]: edges") + begin
        for g, (graph, n, begin) in enumerate(
            zip(graphs, nodes.lengths, nodes.offsets[:-1], strict=True)
        )
    ]
    described = [
        _edge_description(graph.edge_features, len(rows), g)
        for g, (graph, rows) in enumerate(zip(graphs, edges, strict=True))
    ]
    if known is None:
        known = _learn_types(described)
    features = [
        _encode(one, known, len(rows), g)
        for g, (one, rows) in enumerate(zip(described, edges, strict=True))
    ]
    # Edges are sorted by their first node, so that those of a range of graphs are a slice.
    all_edges = np.concatenate(edges)
    order = np.argsort(all_edges[:, 0], kind="stable")
    stacked = Graphs.from_nodes(nodes, all_edges[order], np.concatenate(features)[order])
    return stacked, known


def check_edges(edges: ArrayLike, n_nodes: int, name: str) -> Ints:
    """Return edges as an int64 array of shape (n_edges, 2); raise `InputError` if a node does not exist."""
    if edges is None or hasattr(edges, "tocsr"):
        given = "None" if edges is None else "a sparse matrix"
        raise InputError(
            f"{name} is {given}: pass pairs of node numbers, an empty list if there are no edges"
        )
    try:
        array = np.asarray(edges)
    except ValueError:  # ragged
        raise InputError(f"{name} must have two columns, one for each node of an edge") from None
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(f"{name} must have shape (n_edges, 2), got {array.shape}")
    if array.dtype.kind not in "iu":
        raise InputError(
            f"{name} must be integers (numbers of nodes), got entries of type {array.dtype}"
        )
    bad = (array < 0) | (array >= n_nodes)
    if bad.any():
        e = int(np.argmax(bad.any(axis=1)))
        raise InputError(
            f"{name}[{e}] = {array[e].tolist()} names a node that does not exist: there are {n_nodes} nodes"
        )
    return np.ascontiguousarray(array, dtype=np.int64)


def _edge_description(given: Any, n_edges: int, g: int) -> NDArray[Any] | None:
    """Return types (1-D) or numbers (2-D) of the edges of one graph; None if they have neither."""
    if given is None:
        return None
    try:
        array = np.asarray(given.toarray() if hasattr(given, "toarray") else given)
    except ValueError:  # ragged
        raise InputError(
            f"X[{g}]: edge_features must be one type or one row of numbers per edge"
        ) from None
    if array.size == 0 and n_edges == 0:
        return None
    if array.ndim not in (1, 2) or len(array) != n_edges:
        raise InputError(
            f"X[{g}] has {n_edges} edges but edge_features of shape {array.shape}: "
            "pass one type or one row of numbers per edge"
        )
    if array.ndim == 1:
        return _check_types(given, g)
    try:
        numbers = array.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"X[{g}]: edge_features with two dimensions must be numbers") from None
    if not np.isfinite(numbers).all():
        e = int(np.argmax(~np.isfinite(numbers).all(axis=1)))
        raise InputError(f"X[{g}]: edge_features[{e}] contains NaN or infinity")
    return numbers


def _check_types(given: Any, g: int) -> NDArray[Any]:
    """Return the types of the edges of one graph: strings, integers or booleans, all of one kind."""
    # NumPy would turn integers among strings into strings.
    values = given.tolist() if hasattr(given, "tolist") else list(given)
    kinds = {_kind_of(one) for one in values}
    if len(kinds) == 1 and kinds <= set(_KINDS.values()):
        return np.array(values)
    numbers = ""
    if "float" in kinds:
        numbers = "; numbers need the shape (n_edges, n_edge_features)"
    raise InputError(
        f"X[{g}]: the types of edges must be all strings or all integers, got {', '.join(sorted(kinds))}"
        f"{numbers}"
    )


def _kind_of(value: Any) -> str:
    """Return what kind of type a value is, in the plural; the name of its class if it cannot be a type."""
    if isinstance(value, str):
        return "strings"
    if isinstance(value, bool | np.bool_):
        return "booleans"
    return "integers" if isinstance(value, int | np.integer) else type(value).__name__


def _check_same_kind(one: NDArray[Any], types: NDArray[Any], g: int) -> None:
    """Raise an error if the types of one graph can never equal the known ones."""
    if _KINDS[one.dtype.kind] != _KINDS[types.dtype.kind]:
        raise InputError(
            f"X[{g}]: the types of its edges are {_KINDS[one.dtype.kind]}, but those of other graphs are "
            f"{_KINDS[types.dtype.kind]}"
        )


def _learn_types(described: list[NDArray[Any] | None]) -> EdgeTypes:
    given = [one for one in described if one is not None]
    if not given:
        return EdgeTypes(None, 1, True)
    if given[0].ndim == 2:
        return EdgeTypes(None, int(given[0].shape[1]), False)
    flat = [one for one in given if one.ndim == 1]
    for g, one in enumerate(described):
        if one is not None and one.ndim == 1:
            _check_same_kind(one, flat[0], g)
    types = np.unique(np.concatenate(flat))
    return EdgeTypes(types, int(types.size), False)


def _encode(one: NDArray[Any] | None, known: EdgeTypes, n_edges: int, g: int) -> Floats:
    """Return the features of the edges of one graph, shape (n_edges, n_features)."""
    if n_edges == 0:
        return np.zeros((0, known.n_features))
    if known.is_plain:
        if one is not None:
            raise InputError(f"X[{g}] has edge_features, but the graphs of fit have none")
        return np.ones((n_edges, 1))
    if one is None:
        raise InputError(f"X[{g}] has no edge_features, but other graphs have them")
    if known.types is None:
        if one.shape != (n_edges, known.n_features):
            raise InputError(
                f"X[{g}] has edge_features of shape {one.shape}, expected ({n_edges}, {known.n_features})"
            )
        return one
    if one.ndim != 1:
        raise InputError(
            f"X[{g}] has edge_features with two dimensions, but other graphs have one type per edge"
        )
    _check_same_kind(one, known.types, g)
    code_of = {kind: code for code, kind in enumerate(known.types.tolist())}
    features = np.zeros((n_edges, known.n_features))
    for e, kind in enumerate(one.tolist()):
        if kind in code_of:
            features[e, code_of[kind]] = 1.0
    if not features.any():
        warnings.warn(
            f"X[{g}]: none of its edges is of a type that fit has seen, so that they are ignored",
            UserWarning,
            stacklevel=5,
        )
    return features
