"""Directions in which features, transitions and boundary weights of a label nearly cancel.

If some features add up to a constant, adding a number to their weights for one label and subtracting it from
all transitions into that label, and from its start weight, changes almost no score; likewise with all
transitions from that label and its end weight. Blocks of single labels do not see this, because transitions
are not in them, and training would be slow in these directions. In each of them the scores change by a small
number per step: the difference of the sum of the features from 1. So the Hessian among them follows from
these numbers and the variances of the labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.structures.chain.columns import ROWS, outer_products
from seqlab.utils.cholesky import factorise, solve_cholesky
from seqlab.utils.linalg import multiply

if TYPE_CHECKING:
    from seqlab.data.sequences import Sequences
    from seqlab.structures.chain.structure import ChainStructure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Steps from which the sum of features is found: this number per feature, and this number besides.
STEPS_PER_FEATURE, MIN_STEPS = 4, 1000
# Penalty of the weights in that sum, relative to the squares of their features.
RIDGE = 1e-4
# Steps from which the Hessian is computed.
MAX_STEPS = 20_000


class OffsetDirections:
    """Two directions per label: with the transitions into it, and with those from it.

    Parameters
    ----------
    structure : ChainStructure
        Without edge features.
    X : Sequences

    Attributes
    ----------
    directions : CSR matrix of shape (2 * n_labels, n_params)
    """

    def __init__(self, structure: ChainStructure, X: Sequences) -> None:
        self._structure, self._X = structure, X
        self._sum = constant_sum(X.matrix)
        self.directions = self._matrix()

    def _matrix(self) -> sp.csr_matrix:
        structure, n_labels = self._structure, self._structure.n_labels
        starts, label = structure.state.explicit()
        of_weights = np.repeat(self._sum, np.diff(starts))
        before, after = np.nonzero(structure.has_transition)
        parts: list[tuple[str, Any, Any, Any]] = [
            ("state", label, label, of_weights),
            ("transitions", after, before, None),
        ]
        if structure.boundary:
            every = np.arange(n_labels)
            parts += [("start", every, None, None), ("end", None, every, None)]
        rows, columns, values = [], [], []
        for name, into, out_of, given in parts:
            places = structure.slices[name]
            for shift, labels in ((0, into), (n_labels, out_of)):
                if labels is not None:
                    rows.append(labels + shift)
                    columns.append(np.arange(places.start, places.stop))
                    values.append(np.full(labels.size, -1.0) if given is None else given)
        entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
        return sp.csr_matrix(entries, shape=(2 * n_labels, structure.n_params))

    def hessian(self, first_place: Ints, variances: NDArray[np.float32]) -> Floats:
        """Return the Hessian of the log-partitions among the directions, treating steps as independent.

        Labels are treated as independent too. ``variances`` (n_labels, n_places) are those of the labels at
        steps, ``first_place`` (n_sequences,) the places of the first steps of sequences, or -1.
        """
        n_labels, X = self._structure.n_labels, self._X
        stored = np.flatnonzero((first_place >= 0) & (X.lengths > 0))
        stored = stored[:: max(1, -(-variances.shape[1] // MAX_STEPS))]
        lengths, begins = X.lengths[stored], X.offsets[stored]
        firsts = np.cumsum(lengths) - lengths
        within = np.arange(lengths.sum()) - np.repeat(firsts, lengths)
        steps, places = (
            np.repeat(begin, lengths) + within for begin in (begins, first_place[stored])
        )
        into = _products_with(X.matrix, steps, self._sum) - 1.0
        out_of = into.copy()
        if not self._structure.boundary:
            into[firsts] += 1.0
            out_of[firsts + lengths - 1] += 1.0
        chosen, scale = variances[:, places], X.n_steps / max(steps.size, 1)
        hessian, label = np.zeros((2 * n_labels, 2 * n_labels)), np.arange(n_labels)
        for a, b, products in ((0, 0, into * into), (0, 1, into * out_of), (1, 1, out_of * out_of)):
            sums = scale * np.einsum("jt,t->j", chosen, products)
            hessian[a * n_labels + label, b * n_labels + label] = sums
            hessian[b * n_labels + label, a * n_labels + label] = sums
        return hessian


def constant_sum(matrix: Any) -> Floats:
    """Return the factors of the features whose weighted sum is nearest to 1, by least squares."""
    n_steps, n_features = matrix.shape
    every = max(1, n_steps // (STEPS_PER_FEATURE * n_features + MIN_STEPS))
    steps = np.arange(0, n_steps, every)
    products = outer_products(matrix, steps, np.ones(steps.size))
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.asarray(matrix[::every].sum(axis=0), dtype=np.float64).ravel()
        roots = np.sqrt(np.diag(products))
        is_used = np.isfinite(roots) & (roots > 0.0)
        products = np.where(is_used & is_used[:, None], products, 0.0)
    roots, sums = np.where(is_used, roots, 1.0), np.where(is_used, sums, 0.0)
    products /= roots
    products /= roots[:, None]
    products[np.diag_indices_from(products)] += RIDGE
    if not factorise(products):
        return np.zeros(n_features)
    return solve_cholesky(products, sums / roots) / roots


def _products_with(matrix: Any, steps: Ints, factors: Floats) -> Floats:
    """Return the products of rows with a vector, a few rows at a time."""
    out = np.empty(steps.size)
    for first in range(0, steps.size, ROWS):
        part = matrix[steps[first : first + ROWS]]
        # Not by BLAS, whose last bits depend on its number of threads.
        out[first : first + ROWS] = part @ factors if sp.issparse(part) else multiply(part, factors)
    return out
