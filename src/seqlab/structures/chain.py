"""Linear chains: weights to scores, labelings to features.

The joint feature vector of a sequence is the concatenation of

- state features: for each (feature, label) pair, the sum of the feature over the steps with that label;
- edge features (optional): the same for each (feature, label pair), at the later of the two steps;
- transition counts for each parameterised pair of labels;
- start and end indicators (optional).

``w`` lies in that order. The score of a labeling is ``w' phi(x, y)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.inference import ChainScores
from seqlab.structures.emission import MAX_LABELS, EmissionTable
from seqlab.structures.pattern import FeaturePattern, emit

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
# Entries of the data, for each feature of the model, from which on laying out the weights pays: a 64th.
LAYOUT_SHARE = 64


@dataclass(slots=True)
class ChainWeights:
    """The weights of a linear chain in the form people read.

    Parameters
    ----------
    coef : array or CSC matrix of shape (n_labels, n_features)
        Weight of each feature for each label.
    transitions : array of shape (n_labels, n_labels)
        From the first axis to the second.
    start, end : arrays of shape (n_labels,)
        Boundary weights.
    edge_coef : array or CSC matrix of shape (n_labels * n_labels, n_features), optional
        Weight of each feature for each pair of labels (row ``i * n_labels + j`` is from i to j).
    """

    coef: Any
    transitions: Floats
    start: Floats
    end: Floats
    edge_coef: Any = None

    def check(self, n_features: int) -> None:
        """Raise `InputError` where the parts do not fit each other or the data: kernels trust them."""
        n_labels = self.coef.shape[0]
        shapes = {
            "coef": (self.coef, (n_labels, n_features)),
            "transitions": (self.transitions, (n_labels, n_labels)),
            "edge_coef": (self.edge_coef, (n_labels * n_labels, n_features)),
        }
        for name, (part, shape) in shapes.items():
            if part is not None and part.shape != shape:
                raise InputError(f"{name} has shape {part.shape}, expected {shape}")


class ChainMarginals(NamedTuple):
    """Marginals of a block of sequences, as `ChainStructure.add_expected_features` reads them.

    Each array is already multiplied with the weights of the sequences. ``pair`` may be None unless
    the structure has edge features.
    """

    node: Floats  # (n_block_steps, n_labels)
    transitions: Floats  # (n_labels, n_labels), summed over the block
    pair: Floats | None  # (n_block_steps, n_labels, n_labels)


def as_csr(X: Sequences) -> Sequences:
    """The same sequences with a CSR matrix: kernels of the chain read rows of non-zero entries."""
    if X.is_sparse:
        return X
    return Sequences(sp.csr_matrix(X.matrix), X.offsets, feature_names=X.feature_names)


def chain_scores(
    weights: ChainWeights,
    X: Sequences,
    first: int,
    last: int,
    table: EmissionTable | None = None,
) -> ChainScores:
    """Scores of sequences first..last of X (CSR).

    With edge features the pairwise scores are per step, ``(n_block_steps, n_labels, n_labels)``: callers
    go block by block. ``table`` holds ``weights.coef``, laid out for X.
    """
    weights.check(X.n_features)
    offsets = X.offsets
    begin, stop = int(offsets[first]), int(offsets[last])
    if table is not None:
        unary = table.emit(begin, stop)
    else:
        unary = emit(X.matrix, weights.coef, begin, stop)
    pairwise = weights.transitions
    if weights.edge_coef is not None:
        n_labels = pairwise.shape[0]
        edges = emit(X.matrix, weights.edge_coef, begin, stop).reshape(-1, n_labels, n_labels)
        edges += pairwise
        pairwise = edges
    local = offsets[first : last + 1] - begin
    return ChainScores(unary, pairwise, weights.start, weights.end, local)


def chain_scorer(weights: ChainWeights, X: Sequences) -> Callable[[int, int], ChainScores]:
    """`chain_scores` of all of X, block by block: a function of (first, last).

    Weights are laid out anew for it where X is large enough to make up for that.
    """
    weights.check(X.n_features)
    csr, coef = as_csr(X), weights.coef
    if (
        sp.issparse(coef)
        and coef.nnz
        and coef.shape[1] < LAYOUT_SHARE * csr.matrix.nnz
        and coef.shape[0] <= MAX_LABELS
    ):
        table = EmissionTable(coef if coef.format == "csc" else coef.tocsc(), csr.matrix)
        return lambda first, last: chain_scores(weights, csr, first, last, table)
    return lambda first, last: chain_scores(weights, csr, first, last)


class ChainStructure:
    """Parameters of a linear chain and their features.

    Parameters
    ----------
    n_labels : int
        Number of labels.
    state : FeaturePattern
        (feature, label) pairs that have a weight.
    transition_index : int64 array of shape (n_labels, n_labels)
        Number of each transition among the transition weights; -1 where a transition has none
        (its score is then 0).
    boundary : bool
        Whether there are start and end weights.
    edge : FeaturePattern, optional
        (feature, label pair) pairs that have a weight.
    """

    def __init__(
        self,
        n_labels: int,
        state: FeaturePattern,
        transition_index: NDArray[np.int64],
        boundary: bool,
        edge: FeaturePattern | None = None,
    ) -> None:
        self.n_labels = n_labels
        self.state = state
        self.edge = edge
        self.transition_index = transition_index
        self.boundary = boundary
        sizes = {
            "state": state.n_weights,
            "edge": 0 if edge is None else edge.n_weights,
            "transitions": int(transition_index.max(initial=-1)) + 1,
            "start": n_labels if boundary else 0,
            "end": n_labels if boundary else 0,
        }
        bounds = np.concatenate([[0], np.cumsum(list(sizes.values()))]).tolist()
        self.slices = {
            name: slice(a, b) for name, a, b in zip(sizes, bounds[:-1], bounds[1:], strict=True)
        }
        self.n_params = bounds[-1]

    @classmethod
    def from_data(
        cls,
        X: Sequences,
        codes: Codes,
        n_labels: int,
        *,
        allowed: NDArray[np.bool_] | None = None,
        all_states: bool = False,
        all_transitions: bool = False,
        min_freq: float = 0,
        boundary: bool = True,
        edge_features: bool = False,
    ) -> ChainStructure:
        """The parameters that the training data call for (CRFsuite's ``feature.*`` options)."""
        matrix = as_csr(X).matrix
        previous = previous_codes(codes, X.offsets)
        pairs = np.where((codes >= 0) & (previous >= 0), previous * n_labels + codes, -1)
        if all_states:
            state = FeaturePattern(X.n_features, n_labels)
        else:
            rows, labels = _possible_labels(codes, allowed)
            state = FeaturePattern.observed(matrix, labels, n_labels, rows=rows, min_count=min_freq)
        edge = None
        if edge_features:
            edge = FeaturePattern.observed(matrix, pairs, n_labels * n_labels, min_count=min_freq)
        counts = np.bincount(pairs[pairs >= 0], minlength=n_labels * n_labels)
        # Partly known labels leave transitions unobserved that the truth may contain: keep them all.
        everything = all_transitions or allowed is not None
        has_weight = np.ones_like(counts, dtype=bool) if everything else counts >= max(min_freq, 1)
        index = np.where(has_weight, np.cumsum(has_weight) - 1, -1).reshape(n_labels, n_labels)
        return cls(n_labels, state, index, boundary, edge)

    def weights(self, w: Floats) -> ChainWeights:
        """``w`` in readable form; the feature weights share its memory."""
        index = self.transition_index
        transitions = np.where(
            index >= 0, np.append(w[self.slices["transitions"]], 0.0)[index], 0.0
        )
        none = np.zeros(self.n_labels)
        return ChainWeights(
            coef=self.state.matrix(w[self.slices["state"]]),
            transitions=transitions,
            start=w[self.slices["start"]].copy() if self.boundary else none,
            end=w[self.slices["end"]].copy() if self.boundary else none.copy(),
            edge_coef=None if self.edge is None else self.edge.matrix(w[self.slices["edge"]]),
        )

    def scores(
        self, w: Floats, X: Sequences, first: int = 0, last: int | None = None
    ) -> ChainScores:
        """Scores of sequences first..last under weights ``w``."""
        last = len(X) if last is None else last
        return chain_scores(self.weights(w), as_csr(X), first, last)

    def add_expected_features(
        self,
        X: Sequences,
        marginals: ChainMarginals,
        first: int,
        last: int,
        out: Floats,
    ) -> None:
        """Add the expected features of sequences first..last to ``out`` (n_params,)."""
        matrix, offsets = X.matrix, X.offsets
        begin, stop = int(offsets[first]), int(offsets[last])
        self.state.scatter(matrix, marginals.node, begin, stop, out[self.slices["state"]])
        if self.edge is not None:
            assert marginals.pair is not None
            flat = marginals.pair.reshape(stop - begin, -1)
            self.edge.scatter(matrix, flat, begin, stop, out[self.slices["edge"]])
        has_weight = self.transition_index >= 0
        out[self.slices["transitions"]] += marginals.transitions[has_weight]
        if self.boundary:
            bounds = offsets[first : last + 1] - begin
            nonempty = bounds[1:] > bounds[:-1]
            out[self.slices["start"]] += marginals.node[bounds[:-1][nonempty]].sum(axis=0)
            out[self.slices["end"]] += marginals.node[bounds[1:][nonempty] - 1].sum(axis=0)

    def joint_features(self, X: Sequences, codes: Codes) -> sp.csr_matrix:
        """``phi(x_i, y_i)`` of every sequence, shape (n_sequences, n_params)."""
        rows, columns, values = self._fired(X, codes)
        return sp.csr_matrix((values, (rows, columns)), shape=(len(X), self.n_params))

    def total_features(
        self, X: Sequences, codes: Codes, weights: Floats, state: Floats | None = None
    ) -> Floats:
        """``sum_i weights_i phi(x_i, y_i)``, shape (n_params,); ``state`` is its first part, where known."""
        matrix, n_labels = as_csr(X).matrix, self.n_labels
        step_weights = np.repeat(weights, X.lengths)
        pairs = self.pairs(X, codes)
        out = np.zeros(self.n_params)
        if state is not None:
            out[self.slices["state"]] = state
        else:
            self.state.add_observed(matrix, codes, step_weights, out[self.slices["state"]])
        if self.edge is not None:
            self.edge.add_observed(matrix, pairs, step_weights, out[self.slices["edge"]])
        seen = pairs >= 0
        counts = np.bincount(pairs[seen], step_weights[seen], n_labels * n_labels)
        has_weight = self.transition_index >= 0
        out[self.slices["transitions"]] = counts.reshape(n_labels, n_labels)[has_weight]
        if self.boundary:
            sequences = np.flatnonzero(X.lengths)
            first, last = X.offsets[sequences], X.offsets[sequences + 1] - 1
            weight = weights[sequences]
            out[self.slices["start"]] = np.bincount(codes[first], weight, n_labels)
            out[self.slices["end"]] = np.bincount(codes[last], weight, n_labels)
        return out

    def pairs(self, X: Sequences, codes: Codes) -> Codes:
        """Number of the label pair that ends at each step; -1 at the first steps."""
        previous = previous_codes(codes, X.offsets)
        return np.where((previous >= 0) & (codes >= 0), previous * self.n_labels + codes, -1)

    def _fired(self, X: Sequences, codes: Codes) -> tuple[Codes, Codes, Floats]:
        """Entries (sequence, parameter, value) of the joint features; duplicates add up."""
        matrix, offsets = as_csr(X).matrix, X.offsets
        sequence_of_step = np.repeat(np.arange(len(X)), X.lengths)
        sequence_of_entry = np.repeat(sequence_of_step, np.diff(matrix.indptr))
        pairs = self.pairs(X, codes)
        transition = np.append(self.transition_index.ravel(), -1)[pairs]
        parts = [
            ("state", sequence_of_entry, self.state.fired(matrix, codes), matrix.data),
            ("transitions", sequence_of_step, transition, np.ones(codes.size)),
        ]
        if self.edge is not None:
            fired = self.edge.fired(matrix, pairs)
            parts.append(("edge", sequence_of_entry, fired, matrix.data))
        if self.boundary:
            sequences = np.flatnonzero(X.lengths)
            ones = np.ones(sequences.size)
            parts.append(("start", sequences, codes[offsets[sequences]], ones))
            parts.append(("end", sequences, codes[offsets[sequences + 1] - 1], ones))
        rows, columns, values = [], [], []
        for name, sequence, index, value in parts:
            has_weight = index >= 0
            rows.append(sequence[has_weight])
            columns.append(index[has_weight] + self.slices[name].start)
            values.append(value[has_weight])
        return np.concatenate(rows), np.concatenate(columns), np.concatenate(values)

    def loss(self, codes: Codes, predicted: Codes, X: Sequences) -> Floats:
        """Hamming loss of each sequence: the number of wrong labels."""
        wrong = np.append(0, np.cumsum(codes != predicted))
        return np.diff(wrong[X.offsets]).astype(np.float64)

    def loss_unary(self, codes: Codes) -> Floats:
        """The same loss as unary scores: 1 for every wrong label, shape (n_steps, n_labels)."""
        unary = np.ones((codes.size, self.n_labels))
        unary[np.arange(codes.size), codes] = 0.0
        return unary


def previous_codes(codes: Codes, offsets: NDArray[np.int64]) -> Codes:
    """Code of the step before, -1 at the first step of every sequence."""
    previous = np.empty_like(codes)
    previous[1:] = codes[:-1]
    previous[offsets[:-1][offsets[:-1] < codes.size]] = -1
    return previous


def _possible_labels(
    codes: Codes, allowed: NDArray[np.bool_] | None
) -> tuple[NDArray[np.int64], Codes]:
    """(step, label) pairs that count as seen: known labels, and those of partly known steps.

    A step of which nothing is known says nothing about which features go with which labels.
    """
    steps = np.arange(codes.size)
    if allowed is None:
        return steps, codes
    informative = allowed & ~allowed.all(axis=1, keepdims=True)
    rows, labels = np.nonzero(informative)
    return rows, labels
