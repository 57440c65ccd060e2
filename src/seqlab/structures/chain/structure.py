"""The parameters of a linear chain.

The joint feature vector of a sequence is the concatenation of

- state features: for each (feature, label) pair, the sum of the feature over the steps with that label;
- edge features (optional): the same for each (feature, label pair), at the later of the two steps;
- transition counts for each parameterised pair of labels;
- start and end indicators (optional).

``w`` has the same order. The score of a labeling is ``w' phi(x, y)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from seqlab.data import state_checks
from seqlab.data.sequences import Sequences
from seqlab.structures.chain.hidden_runs import count_unseen_transitions
from seqlab.structures.chain.pattern import FeaturePattern
from seqlab.structures.chain.weights import ChainWeights

if TYPE_CHECKING:
    from seqlab.structures.chain.bound import BoundChain
    from seqlab.structures.chain.features import ChainFeatures

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class ChainStructure:
    """Parameters of a linear chain.

    Parameters
    ----------
    n_labels : int
        Number of labels.
    state : FeaturePattern
        (feature, label) pairs that have a weight.
    transition_index : int64 array of shape (n_labels, n_labels)
        Index of each transition among the transition weights; -1 if a transition has no weight
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

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        n_labels = state_checks.check_int(self.n_labels, "n_labels", 1, 2**16)
        state_checks.check_type(self.boundary, "boundary", bool)
        index = state_checks.check_array(
            self.transition_index, "transition_index", (n_labels, n_labels), "i", dtype=np.int64
        )
        used = np.sort(index[index >= 0])
        state_checks.require(index.min() >= -1 and (np.diff(used) == 1).all(), "transition_index")
        state_checks.require(not used.size or used[0] == 0, "transition_index")
        for name, n_columns in (("state", n_labels), ("edge", n_labels**2)):
            pattern = getattr(self, name)
            if pattern is not None:
                state_checks.check_type(pattern, name, FeaturePattern)
                state_checks.require(pattern.n_columns == n_columns, name)
        sound = ChainStructure(n_labels, self.state, index, self.boundary, self.edge)
        state_checks.require(
            sound.slices == self.slices and sound.n_params == self.n_params, "slices"
        )

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
        order: int = 1,
        by_value_sums: bool = False,
    ) -> ChainStructure:
        """Choose the parameters from the training data (CRFsuite's ``feature.*`` options).

        With ``order`` 0 there are no weights for transitions and boundaries: steps are independent.
        ``min_freq`` is compared with the number of steps in which a pair of feature and label occurs or,
        if ``by_value_sums``, with the sum of the values there, as in CRFsuite. Pairs and transitions that
        only ``all_states`` and ``all_transitions`` add have weights in any case or, if ``by_value_sums``,
        count as seen with a sum of 0, as in CRFsuite: they have weights only if ``min_freq`` is 0.

        A feature counts as seen with every label of a set, but not with an unknown label. A transition
        counts as seen between two known labels; further ones are added if a run of hidden labels has no
        labeling with seen transitions only (see `count_unseen_transitions`).
        """
        matrix = X.matrix
        pairs = label_pairs(codes, X.offsets, n_labels)
        rows, labels = _possible_labels(codes, allowed)
        if by_value_sums:
            state = FeaturePattern.with_value_sums(
                matrix, labels, n_labels, rows=rows, min_sum=min_freq, all_columns=all_states
            )
        elif all_states:
            state = FeaturePattern(X.n_features, n_labels)
        else:
            state = FeaturePattern.observed(matrix, labels, n_labels, rows=rows, min_count=min_freq)
        edge = None
        if edge_features:
            edge = FeaturePattern.observed(matrix, pairs, n_labels * n_labels, min_count=min_freq)
        counts = np.bincount(pairs[pairs >= 0], minlength=n_labels * n_labels)
        if all_transitions:
            has_weight = counts >= (min_freq if by_value_sums else 0)
        else:
            has_weight = counts >= max(min_freq, 1)
        if allowed is not None and not has_weight.all():
            seen = has_weight.reshape(n_labels, n_labels)
            counts = count_unseen_transitions(codes, allowed, X.offsets, seen).ravel()
            has_weight |= counts >= max(min_freq, 1)
        has_weight &= order > 0
        index = np.where(has_weight, np.cumsum(has_weight) - 1, -1).reshape(n_labels, n_labels)
        return cls(n_labels, state, index, boundary and order > 0, edge)

    @classmethod
    def without_weights(cls, n_features: int, n_labels: int) -> ChainStructure:
        """Return a chain without parameters, for scores that come from functions."""
        none = np.zeros(n_features + 1, dtype=np.int32), np.zeros(0, dtype=np.int32)
        index = np.full((n_labels, n_labels), -1)
        return cls(n_labels, FeaturePattern(n_features, n_labels, *none), index, False)

    def bind(
        self, X: Sequences, *, n_jobs: int | None = None, features: ChainFeatures | None = None
    ) -> BoundChain:
        """Return the structure bound to these data; see `seqlab.structures.BoundStructure`.

        ``features``, of X, may be shared by several chains.
        """
        # Imported here because that module imports this one.
        from seqlab.structures.chain.bound import BoundChain

        return BoundChain(self, X, n_jobs=n_jobs, features=features)

    @property
    def has_transition(self) -> NDArray[np.bool_]:
        """Whether each transition has a weight, shape (n_labels, n_labels)."""
        return self.transition_index >= 0

    def weights(self, w: Floats) -> ChainWeights:
        """Return ``w`` in readable form; the feature weights share its memory."""
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


def previous_codes(codes: Codes, offsets: NDArray[np.int64]) -> Codes:
    """Return the code of the previous step, -1 at the first step of every sequence."""
    previous = np.empty_like(codes)
    previous[1:] = codes[:-1]
    previous[offsets[:-1][offsets[:-1] < codes.size]] = -1
    return previous


def label_pairs(codes: Codes, offsets: NDArray[np.int64], n_labels: int) -> Codes:
    """Return the index of the label pair that ends at each step; -1 at first steps and unknown labels."""
    previous = previous_codes(codes, offsets)
    return np.where((codes >= 0) & (previous >= 0), previous * n_labels + codes, -1)


def _possible_labels(
    codes: Codes, allowed: NDArray[np.bool_] | None
) -> tuple[NDArray[np.int64], Codes]:
    """Return (step, label) pairs that count as seen: known labels, and those of partly known steps.

    A step with an unknown label gives no information on which features occur with which labels.
    """
    steps = np.arange(codes.size)
    if allowed is None:
        return steps, codes
    informative = allowed & ~allowed.all(axis=1, keepdims=True)
    rows, labels = np.nonzero(informative)
    return rows, labels
