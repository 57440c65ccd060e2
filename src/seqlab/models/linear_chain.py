"""LinearChainLabeler: base class of the labelers with one weight vector over a chain.

It binds the structure to the training data, stores the weights in readable form, and scores with them. A new
linear learner only implements `_learn`.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from seqlab.data import state_checks
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.inference import ChainScores
from seqlab.learning import TrainingData
from seqlab.models.chain_labeler import ChainLabeler
from seqlab.structures import chain

# Constraints of the parameters `all_states`, `all_transitions`, `min_freq` and `boundary`.
STRUCTURE_CONSTRAINTS: dict[str, list[Any]] = {
    "all_states": ["boolean"],
    "all_transitions": ["boolean"],
    "min_freq": [Interval(Real, 0, None, closed="left")],
    "boundary": ["boolean"],
}


class LinearChainLabeler(ChainLabeler):
    """A labeler whose scores are linear in features, transitions and boundaries.

    Attributes
    ----------
    coef_ : array or CSC matrix of shape (n_labels, n_features)
        Weights of the features; sparse if they are limited to pairs seen in training.
    transitions_ : array of shape (n_labels, n_labels)
        Weights from one label (row) to the next (column).
    start_, end_ : arrays of shape (n_labels,)
        Weights of the first and of the last label.
    edge_coef_ : array or CSC matrix of shape (n_labels ** 2, n_features), or None
        Weights of the features for pairs of labels.
    """

    all_states: bool
    all_transitions: bool
    min_freq: float
    boundary: bool | str
    edge_features = False
    order = 1
    crfsuite_features = False
    n_jobs: int | None
    edge_coef_: Any = None

    def _bind(self, data: TrainingData) -> chain.BoundChain:
        """Return the chain that parameters and training data determine, bound to the data."""
        structure = chain.ChainStructure.from_data(
            data.X,
            data.codes,
            data.n_labels,
            allowed=data.allowed,
            all_states=self.all_states,
            all_transitions=self.all_transitions,
            min_freq=self.min_freq,
            boundary=bool(self.boundary),
            edge_features=self.edge_features,
            order=self.order,
            by_value_sums=self.crfsuite_features,
        )
        if chain.ChainFeatures not in data.derived:
            data.derived[chain.ChainFeatures] = chain.ChainFeatures(data.X)
        return structure.bind(
            data.X, n_jobs=self.n_jobs, features=data.derived[chain.ChainFeatures]
        )

    def _store(self, structure: chain.ChainStructure, w: NDArray[np.float64]) -> None:
        """Store a parameter vector in readable form."""
        weights = structure.weights(w)
        self.coef_ = weights.coef
        self.transitions_ = weights.transitions
        self.start_ = weights.start
        self.end_ = weights.end
        self.edge_coef_ = weights.edge_coef

    def _check_state(self) -> None:
        super()._check_state()
        if not state_checks.has_fitted_attributes(self):
            return
        n_labels, n_features = self.classes_.size, self.n_features_in_
        self._check_chain()
        state_checks.check_array(self.end_, "end_", (n_labels,))
        state_checks.check_matrix(self.coef_, "coef_", (n_labels, n_features))
        if self.edge_coef_ is not None:
            state_checks.check_matrix(self.edge_coef_, "edge_coef_", (n_labels**2, n_features))

    def _weights(self) -> chain.ChainWeights:
        return chain.ChainWeights(
            self.coef_, self.transitions_, self.start_, self.end_, self.edge_coef_
        )

    def _prepare_scoring(self, X: Sequences) -> chain.WeightSource:
        return chain.WeightSource(self._weights(), X, repeated=True)

    def _log_potentials(self) -> chain.ChainWeights | None:
        """Return the weights whose scores are the log-potentials of `predict_proba`.

        None if the probabilities do not come from one weight vector without edge features.
        """
        is_plain = type(self)._predict_marginals is ChainLabeler._predict_marginals
        if not is_plain or self.edge_coef_ is not None or not hasattr(self, "predict_proba"):
            return None
        return self._weights()

    def _block_scores(self, block: SequenceBlock, prepared: chain.WeightSource) -> ChainScores:
        return chain.chain_scores(prepared, block)

    def _pairwise_per_step(self) -> bool:
        return self.edge_coef_ is not None
