"""The links of a sparse network of Winnows: which features are connected to which class nodes.

They are stored feature by feature, as a CSR matrix of weights (n_features, n_classes); other arrays hold
one value per link in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def add_links(
    links: sp.csr_matrix,
    values: list[NDArray[Any]],
    matrix: sp.csr_matrix,
    codes: NDArray[np.int64],
) -> tuple[sp.csr_matrix, list[NDArray[Any]]]:
    """Add links between the features of each example and the node of its class.

    Parameters
    ----------
    links : CSR matrix of shape (n_features, n_classes)
    values : list of arrays
        Further values of the links, one array per kind of value.
    matrix : CSR matrix of shape (n_samples, n_features)
        The examples.
    codes : int64 array of shape (n_samples,)
        Class of each example.

    Returns
    -------
    links, values
        New links have weight 0 and values 0; the input itself if there are none.
    """
    (n_features, n_classes), n_samples = links.shape, codes.size
    members = sp.csr_matrix(
        (np.ones(n_samples), (codes, np.arange(n_samples))), (n_classes, n_samples)
    )
    present = sp.csr_matrix(
        (np.ones_like(matrix.data), matrix.indices, matrix.indptr), matrix.shape
    )
    needed = (members @ present).T.tocsr()
    needed.sort_indices()
    old, new = _link_keys(links), _link_keys(needed)
    missing = np.ones(new.size, bool)
    if old.size:
        missing = old[np.minimum(np.searchsorted(old, new), old.size - 1)] != new
    if not missing.any():
        return links, values
    keys = np.sort(np.concatenate([old, new[missing]]), kind="stable")  # merges sorted runs
    positions = np.searchsorted(keys, old)
    indptr = np.searchsorted(keys, np.arange(n_features + 1) * n_classes)
    weights, *extended = (_spread(part, positions, keys.size) for part in (links.data, *values))
    return sp.csr_matrix((weights, keys % n_classes, indptr), links.shape), extended


def _spread(values: NDArray[Any], positions: NDArray[np.int64], size: int) -> NDArray[Any]:
    out = np.zeros(size, values.dtype)
    out[positions] = values
    return out


def _link_keys(links: sp.csr_matrix) -> NDArray[np.int64]:
    """Return each link as one number, ``feature * n_classes + class``, in ascending order."""
    features = np.repeat(np.arange(links.shape[0]), np.diff(links.indptr))
    return features * links.shape[1] + links.indices
