r"""Active nodes in lattices of conjunctions: the set grows, closed under sub-conjunctions.

There is one lattice for all labels or one for each label. A node is a sorted tuple of inputs. The sum of the
kernels of all descendants of a node ``u``, divided by their squared penalties, is a product:

    sum_{w >= u} K_w(x, z) / (a^|u| (1 + a)^|w \ u|)^2
        = a^(-2 |u|) prod_{b in u} x_b z_b prod_{b not in u} (1 + x_b z_b / (1 + a)^2)

so a condition over exponentially many nodes takes polynomial time.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import NumericalError
from seqlab.relational.hkl.norm import NOT_FINITE, HierarchicalNorm
from seqlab.utils.linalg import matmul
from seqlab.utils.signals import check_signals

Floats = NDArray[np.float64]
Node = tuple[int, ...]


class Candidate(NamedTuple):
    """A node outside the active set whose parents are all active."""

    bound: float  # bound on the squared dual norm of the node and its descendants
    lattice: int
    node: Node


class ActiveLattices:
    """The active nodes of one lattice, or of one lattice per label.

    Parameters
    ----------
    inputs : boolean array of shape (n_rows, n_inputs)
        The distinct steps.
    n_labels : int
    label_wise : bool
        Whether every label has a lattice of its own.
    a : float
        A node of k inputs has penalty a^k.
    rho : float
    max_length : int or None
        Limit on the inputs of a conjunction.
    """

    def __init__(
        self,
        inputs: NDArray[np.bool_],
        n_labels: int,
        *,
        label_wise: bool,
        a: float,
        rho: float,
        max_length: int | None,
    ) -> None:
        self.inputs = inputs
        self.n_labels, self.label_wise = n_labels, label_wise
        self.a, self.rho = float(a), rho
        n_inputs = inputs.shape[1]
        self.max_length = n_inputs if max_length is None else min(max_length, n_inputs)
        used = np.flatnonzero(inputs.any(axis=0)).tolist() if self.max_length > 0 else []
        first: list[Node] = [(), *((b,) for b in used)]
        self.active: list[set[Node]] = [set(first) for _ in range(self.n_lattices)]
        self.nodes: list[Node] = []
        self._rows_of: list[NDArray[np.int64]] = []  # where each node holds
        self._place: dict[Node, int] = {}
        self._update()

    @property
    def n_lattices(self) -> int:
        """Number of lattices."""
        return self.n_labels if self.label_wise else 1

    @property
    def n_active(self) -> int:
        """Number of active nodes, over all lattices."""
        return len(self.lattice_of)

    def _update(self) -> None:
        """Build the arrays that describe the active nodes."""
        for node in sorted(set().union(*self.active) - set(self._place), key=_by_length):
            self._place[node] = len(self.nodes)
            self.nodes.append(node)
            self._rows_of.append(np.flatnonzero(self.inputs[:, list(node)].all(axis=1)))
        indptr = np.concatenate([[0], np.cumsum([rows.size for rows in self._rows_of])])
        indices = np.concatenate(self._rows_of)
        shape = (self.inputs.shape[0], len(self.nodes))
        self.columns = sp.csc_matrix((np.ones(indices.size), indices, indptr), shape).tocsr()
        pairs = [
            (lattice, node)
            for lattice, active in enumerate(self.active)
            for node in sorted(active, key=_by_length)
        ]
        place = {pair: k for k, pair in enumerate(pairs)}
        self.pairs = pairs
        self.lattice_of = np.array([lattice for lattice, _ in pairs])
        self.node_of = np.array([self._place[node] for _, node in pairs])
        rows, cols = [], []
        for k, (lattice, node) in enumerate(pairs):
            for size in range(len(node) + 1):
                for part in combinations(node, size):
                    rows.append(k)
                    cols.append(place[lattice, part])
        ancestors = sp.csr_matrix((np.ones(len(rows)), (rows, cols)), (len(pairs), len(pairs)))
        sizes = np.array([len(node) for _, node in pairs])
        with np.errstate(over="ignore"):  # HierarchicalNorm raises an error
            penalties = self.a**sizes
        self.norm = HierarchicalNorm(ancestors, penalties, self.rho)

    def add(self, chosen: list[Candidate]) -> None:
        """Make candidates active."""
        for candidate in chosen:
            self.active[candidate.lattice].add(candidate.node)
        self._update()

    def project(self, tables: Floats) -> Floats:
        """Return the sums over rows of every active node.

        Parameters
        ----------
        tables : array of shape (n, n_rows, n_labels)

        Returns
        -------
        array of shape (n, n_active, 1) for lattices per label, else (n, n_active, n_labels)
        """
        n = tables.shape[0]
        wide = tables.transpose(1, 0, 2).reshape(tables.shape[1], -1)
        sums = np.asarray(self.columns.T @ wide).reshape(-1, n, self.n_labels).transpose(1, 0, 2)
        if self.label_wise:
            return np.ascontiguousarray(sums[:, self.node_of, self.lattice_of])[:, :, None]
        return np.ascontiguousarray(sums[:, self.node_of, :])

    def expand(self, f: Floats) -> Floats:
        """Return the weights of active nodes, as `project` orders them, in a table (n_nodes, n_labels)."""
        table = np.zeros((len(self.nodes), self.n_labels))
        if self.label_wise:
            table[self.node_of, self.lattice_of] = f[:, 0]
        else:
            table[self.node_of] = f
        return table

    def find_candidates(self, beta: Floats) -> list[Candidate]:
        """Return the inactive nodes with active parents, and the bounds on their descendants.

        Nodes that are false at every row are left out, because all their descendants are false, too.

        Parameters
        ----------
        beta : array of shape (n_rows, n_labels)
            Coefficients of the rows in the dual.
        """
        found: list[Candidate] = []
        largest = max(len(node) for active in self.active for node in active)
        support = np.flatnonzero(beta.any(axis=1))
        inputs = self.inputs[support].astype(np.float64)
        # Inputs that are on in both of two rows: all that the sums over descendants depend on.
        overlap = np.rint(matmul(inputs, inputs.T)).astype(np.int64)
        kernels = [
            descendant_kernel(overlap, size + 1, self.a, self.max_length)
            for size in range(min(largest + 1, self.max_length))
        ]
        for lattice, active in enumerate(self.active):
            labels = [lattice] if self.label_wise else list(range(self.n_labels))
            coefs = beta[support][:, labels]
            used = np.flatnonzero(coefs.any(axis=1))
            products = matmul(coefs[used], coefs[used].T)
            weighted = [kernel[np.ix_(used, used)] * products for kernel in kernels]
            own = self.inputs[support[used]]
            for node in sorted(active, key=_by_length):
                check_signals()
                if len(node) < self.max_length:
                    found += self._extend(lattice, node, own, weighted[len(node)])
        return found

    def _extend(
        self, lattice: int, node: Node, inputs: NDArray[np.bool_], weighted: Floats
    ) -> list[Candidate]:
        """Return the candidates that extend a node by one input of a higher number."""
        active = self.active[lattice]
        rows = np.flatnonzero(inputs[:, list(node)].all(axis=1))
        first = node[-1] + 1 if node else 0
        further = first + np.flatnonzero(inputs[rows, first:].any(axis=0))
        children = [(*node, int(b)) for b in further]
        children = [
            child
            for child in children
            if child not in active and all(part in active for part in _parents(child))
        ]
        if not children:
            return []
        columns = inputs[rows][:, [child[-1] for child in children]].T.astype(np.float64)
        bounds = (matmul(columns, weighted[np.ix_(rows, rows)]) * columns).sum(axis=1)
        return [
            Candidate(float(bound), lattice, child)
            for bound, child in zip(bounds, children, strict=True)
        ]


def descendant_kernel(
    overlap: NDArray[np.int64], size: int, a: float, max_length: int | None = None
) -> Floats:
    """Return the sum of the kernels of all descendants of a node, divided by their squared penalties.

    The values are for pairs of rows at which the node is true.

    Parameters
    ----------
    overlap : int array
        Number of inputs that are on in both rows of a pair.
    size : int
        Number of inputs of the node.
    a : float
    max_length : int, optional
        Longer descendants are left out of the sum.
    """
    c = (1.0 + a) ** -2.0
    highest = int(overlap.max(initial=0))
    limit = highest if max_length is None else max_length - size
    further = [max(n - size, 0) for n in range(highest + 1)]
    try:
        table = np.array(
            [
                (1.0 + c) ** n if n <= limit else sum(comb(n, k) * c**k for k in range(limit + 1))
                for n in further
            ]
        )
        values: Floats = a ** (-2.0 * size) * table[overlap]
    except OverflowError:
        raise NumericalError(NOT_FINITE) from None
    return values


def _parents(node: Node) -> list[Node]:
    return [node[:k] + node[k + 1 :] for k in range(len(node))]


def _by_length(node: Node) -> tuple[int, Node]:
    return len(node), node
