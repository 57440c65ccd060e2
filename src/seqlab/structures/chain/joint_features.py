"""The joint feature vectors of labelings of a chain."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.sequences import Sequences
from seqlab.structures.chain.structure import ChainStructure, label_pairs
from seqlab.structures.chain.weights import as_csr


def joint_features(
    structure: ChainStructure, X: Sequences, codes: NDArray[np.int64]
) -> sp.csr_matrix:
    """Return ``phi(x_i, y_i)`` of sequences, shape (n_sequences, n_params); duplicates are added up."""
    X = as_csr(X)
    matrix, offsets = X.matrix, X.offsets
    sequence_of_step = np.repeat(np.arange(len(X)), X.lengths)
    sequence_of_entry = np.repeat(sequence_of_step, np.diff(matrix.indptr))
    pairs = label_pairs(codes, offsets, structure.n_labels)
    transition = np.append(structure.transition_index.ravel(), -1)[pairs]
    entries: list[tuple[str, Any, Any, Any]] = [
        ("state", sequence_of_entry, structure.state.weight_index(matrix, codes), matrix.data),
        ("transitions", sequence_of_step, transition, np.ones(codes.size)),
    ]
    if structure.edge is not None:
        index = structure.edge.weight_index(matrix, pairs)
        entries.append(("edge", sequence_of_entry, index, matrix.data))
    if structure.boundary:
        sequences = np.flatnonzero(X.lengths)
        ones = np.ones(sequences.size)
        entries.append(("start", sequences, codes[offsets[sequences]], ones))
        entries.append(("end", sequences, codes[offsets[sequences + 1] - 1], ones))
    rows, columns, values = [], [], []
    for name, sequence, index, value in entries:
        has_weight = index >= 0
        rows.append(sequence[has_weight])
        columns.append(index[has_weight] + structure.slices[name].start)
        values.append(value[has_weight])
    place = np.concatenate(rows), np.concatenate(columns)
    return sp.csr_matrix((np.concatenate(values), place), shape=(len(X), structure.n_params))
