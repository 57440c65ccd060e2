"""BoostedCRF: a conditional random field whose scores are sums of regression trees (TreeCRF)."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.inference import ChainScores, Mask, beam, beam_marginals, marginals, viterbi
from seqlab.learning import FitProgress, FitResult, TrainingData
from seqlab.learning.boosting import (
    MIN_GAIN,
    BinnedRows,
    Boosting,
    FeatureTreeGrower,
    TreeEnsemble,
    TreeGrower,
)
from seqlab.learning.boosting.binned import take_rows, unique_rows
from seqlab.models._two_label_boosting import TwoLabelBoosting
from seqlab.models.base import EARLY_STOPPING_CONSTRAINTS, LIMIT_CONSTRAINTS
from seqlab.models.chain_labeler import ChainLabeler, DistributionMixin
from seqlab.structures import BeamOptions, RowScores
from seqlab.structures.chain import ChainStructure, chain_scores
from seqlab.utils.training_clock import training_time

# Limit of the absolute value of a leaf, before the learning rate. It matters if the curvature of a leaf is
# almost zero: a rare label that the model already excludes.
MAX_LEAF_VALUE = 4.0
# The same with a beam: labels outside of it add no curvature, so that steps of Newton's method are too long.
MAX_LEAF_VALUE_WITH_BEAM = 1.0


def _decodes_exactly(self: BoostedCRF) -> bool:
    return self.beam_width is None


class BoostedCRF(DistributionMixin, ChainLabeler):
    """Conditional random field with regression trees, trained by gradient boosting (TreeCRF).

    The score of label ``k`` after label ``c`` at step ``t`` is a sum of trees that split on the features of
    the step and on the previous label::

        p(y | x) = exp(sum_t F_{y_t}(y_{t-1}, x_t)) / Z(x)

    Each round computes the gradient of the log-likelihood with respect to all scores, fits one tree per
    label to it, and adds the trees to the scores. The trees find conjunctions of features, and of features
    with the previous label, which a linear CRF has to be given as features.

    Parameters
    ----------
    max_leaf_nodes : int, default=31
        Maximum number of leaves of a tree; trees grow best-first. More leaves allow larger conjunctions.
    learning_rate : float, default=0.5
        Factor of every tree. A smaller rate needs more rounds, and is often more accurate.
    order : {0, 1}, default=1
        1 for a chain; 0 for a model without previous labels: boosted softmax regression, step by step.
    beam_width : int or None, default=None
        Labels kept per step, in training and in prediction; None for exact marginals. Saves more than half
        of the time of training if there are hundreds of labels; a beam of 20 is about as accurate as the
        exact model, narrower ones need not be. With a beam the model has no `predict_nbest`,
        `decision_function` and `sequence_log_proba`.
    keep_gold : bool, default=True
        With a beam: whether the gold label of a step is kept too during training, besides ``beam_width``
        others. If not, and the gold labels of a sequence are not all in the beam, their path is compared
        with the paths in the beam as a whole.
    leaf_values : {"newton", "least_squares"}, default="newton"
        Whether trees are fitted to gradients divided by second derivatives, or to the gradients
        alone, as in the original algorithm. The latter needs larger learning rates.
    l2_regularization : float, default=1.0
        Added to the second derivative of every leaf: larger values make leaves with little data smaller.
        Not used with "least_squares".
    max_iter : int, default=50
        Maximum number of rounds.
    tol : float, default=1e-4
        Training stops if a round decreases the objective by less than this proportion.
    categorical_features : array-like of int or bool, optional
        Features (indices, or a mask) whose values are categories, whole numbers from 0 to 254: a split
        sends any set of them to one side. Strings and dicts become binary features and need no declaration.
    max_seconds : float or None, default=None
        Training stops when this time is exceeded, with a warning. The trees of the last round may then be
        smaller than ``max_leaf_nodes`` allows.
    validation_fraction : float or None, default=None
        Proportion of the sequences that is held out for early stopping: training stops if their token
        accuracy has not improved for ``n_iter_no_change`` rounds, and the rounds up to the best one are
        kept. `fit` also accepts held-out sequences.
    n_iter_no_change : int, default=5
        With early stopping: number of rounds without improvement after which training stops.
    callback : callable or None, default=None
        Called after every round with a `seqlab.learning.FitProgress`; training stops if it returns True.
        `seqlab.save` leaves it out.
    random_state : int, RandomState instance or None, default=None
        Chooses the sequences to hold out.
    n_jobs : int, default=None
        Number of threads; the result is bitwise identical for any number.
    verbose : bool, default=False
        Show progress on standard error.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    trees_ : TreeEnsemble
        The trees, as arrays.
    feature_importances_ : array of shape (n_features,)
        Proportion of the total gain of all splits that is due to each feature. The rest, up to 1, is
        ``previous_label_importance_``.
    previous_label_importance_ : float
        Proportion of the total gain that is due to splits on the previous label.
    n_iter_ : int
        Number of rounds. The last one adds no trees if no step decreases the objective.
    converged_ : bool
        Whether training stopped before ``max_iter``.
    history_ : dict of str to list
        iteration, objective (negative log-likelihood), seconds, step (the learning rate after
        backtracking) and, with early stopping, validation_score.
    best_iteration_ : int or None
        With early stopping: the last round that is kept.
    best_validation_score_ : float or None
        Its token accuracy on the held-out sequences.

    See Also
    --------
    LinearChainCRF : linear scores; faster for many sparse features.

    Notes
    -----
    If the trees of a round raise the objective, their step is halved until they do not: the objective
    never rises (with a beam: not above the largest of the last five rounds).

    Steps with equal features are merged. With U distinct rows, T steps, L labels and a depth D of the
    trees, a round takes O(T L^2 + D U L (A + L)) time for A active features per step, and O(U L^2) memory.
    A numeric feature is divided into at most 255 bins. Sums over the data are kept in fixed point, so that
    merged rows and threads do not change a bit of the result.

    References
    ----------
    Dietterich, T., Hao, G. & Ashenfelter, A. (2008). Gradient tree boosting for training conditional random
    fields. Journal of Machine Learning Research 9.

    Examples
    --------
    A label that depends on two features together, which a linear model cannot express:

    >>> import numpy as np
    >>> from seqlab import BoostedCRF, LinearChainCRF
    >>> random = np.random.default_rng(0)
    >>> X = [random.integers(0, 2, size=(5, 2)) for _ in range(40)]
    >>> y = [(x[:, 0] ^ x[:, 1]).tolist() for x in X]
    >>> BoostedCRF(max_leaf_nodes=4).fit(X, y).score(X, y)
    1.0
    >>> LinearChainCRF().fit(X, y).score(X, y) < 0.7
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "order": [Interval(Integral, 0, 1, closed="both")],
        "beam_width": [Interval(Integral, 1, None, closed="left"), None],
        "keep_gold": ["boolean"],
        "leaf_values": [StrOptions({"newton", "least_squares"})],
        "l2_regularization": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "categorical_features": ["array-like", None],
        **LIMIT_CONSTRAINTS,
        **EARLY_STOPPING_CONSTRAINTS,
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        max_leaf_nodes: int = 31,
        learning_rate: float = 0.5,
        order: int = 1,
        beam_width: int | None = None,
        keep_gold: bool = True,
        leaf_values: str = "newton",
        l2_regularization: float = 1.0,
        max_iter: int = 50,
        tol: float = 1e-4,
        categorical_features: Any = None,
        max_seconds: float | None = None,
        validation_fraction: float | None = None,
        n_iter_no_change: int = 5,
        callback: Callable[[FitProgress], Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.max_leaf_nodes = max_leaf_nodes
        self.learning_rate = learning_rate
        self.order = order
        self.beam_width = beam_width
        self.keep_gold = keep_gold
        self.leaf_values = leaf_values
        self.l2_regularization = l2_regularization
        self.max_iter = max_iter
        self.tol = tol
        self.categorical_features = categorical_features
        self.max_seconds = max_seconds
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.callback = callback
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        lengths: Any = None,
        X_val: Any = None,
        y_val: Any = None,
    ) -> BoostedCRF:
        """Grow the trees.

        Parameters
        ----------
        X, y, lengths, X_val, y_val : see `LinearChainCRF.fit`
        sample_weight : array of shape (n_sequences,), optional
            Factor of the log-likelihood of each sequence. Of weights per step their mean is used.
        """
        return self._fit(X, y, sample_weight, lengths, X_val, y_val)

    def _learn(self, data: TrainingData) -> FitResult:
        if self.order == 0 and self.beam_width is not None:
            raise InputError("a model of order 0 has no beam: set beam_width=None or order=1")
        began = training_time()
        structure = ChainStructure.without_weights(data.X.n_features, data.n_labels)
        bound = structure.bind(data.X, n_jobs=self.n_jobs)
        newton = self.leaf_values == "newton"
        beam = None
        if self.beam_width is not None and self.beam_width < data.n_labels:
            beam = BeamOptions(self.beam_width, self.keep_gold)
        grower, store_rounds = self._new_grower(
            data,
            max_leaf_nodes=self.max_leaf_nodes,
            l2=self.l2_regularization if newton else 0.0,
            max_value=MAX_LEAF_VALUE if beam is None else MAX_LEAF_VALUE_WITH_BEAM,
            min_gain=MIN_GAIN * float(data.step_weights.mean()),
            deadline=began + (math.inf if self.max_seconds is None else self.max_seconds),
        )
        problem = bound, grower, data.codes, data.sequence_weights
        options: dict[str, Any] = {
            "learning_rate": self.learning_rate,
            "newton": newton,
            "tol": self.tol,
        }
        learner: Boosting
        is_plain = self.order == 1 and beam is None and isinstance(grower, FeatureTreeGrower)
        if data.n_labels == 2 and is_plain:
            learner = TwoLabelBoosting(*problem, max_iter=self.max_iter, **options)
        else:
            learner = Boosting(*problem, has_pairs=self.order == 1, beam=beam, **options)

        def store(n_rounds: int) -> None:
            store_rounds(learner.first_rounds(n_rounds))

        # The number of rounds is a means of regularisation: no warning if max_iter is reached.
        return self._train(
            learner.states(), data, store, can_warn=False, unit="rounds", began=began
        )

    def _new_grower(
        self, data: TrainingData, **options: Any
    ) -> tuple[TreeGrower, Callable[[list[Any]], None]]:
        """Return a grower of trees, and a function that stores the trees of rounds."""
        rows = self._bin(data)

        def store(rounds: list[Any]) -> None:
            self.trees_ = TreeEnsemble.from_rounds(
                rounds, rows.bins, data.n_labels, has_pairs=self.order == 1
            )

        return FeatureTreeGrower(rows, **options), store

    def _bin(self, data: TrainingData) -> BinnedRows:
        """Return the distinct rows; fits on the same X share them."""
        categorical = self._categorical(data.X.n_features)
        key = ("binned rows", *categorical)
        if key not in data.derived:
            data.derived[key] = BinnedRows.from_sequences(data.X, categorical)
        return data.derived[key]

    def _categorical(self, n_features: int) -> list[int]:
        """Return the indices of the categorical features."""
        if self.categorical_features is None:
            return []
        given = np.asarray(self.categorical_features)
        if given.dtype == np.bool_ and given.shape == (n_features,):
            return np.flatnonzero(given).tolist()
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise InputError(
                f"categorical_features must be indices of features, or a mask of shape ({n_features},)"
            )
        outside = (given < 0) | (given >= n_features)
        if outside.any():
            raise InputError(
                f"categorical_features has the index {given[outside][0]}, but X has {n_features} features"
            )
        return np.unique(given).tolist()

    def _check_state(self) -> None:
        super()._check_state()
        if state_checks.has_fitted_attributes(self):
            trees = self.trees_
            if not isinstance(trees, TreeEnsemble):
                raise InputError("trees_ is not a TreeEnsemble")
            if (trees.n_labels, trees.n_features) != (self.classes_.size, self._n_tree_features()):
                raise InputError("trees_ has other numbers of labels or features than the model")

    def _n_tree_features(self) -> int:
        """Return the number of features that trees may test."""
        return self.n_features_in_

    def _block_scores(self, block: SequenceBlock, prepared: Any) -> ChainScores:
        part = sp.csr_matrix(block.matrix[block.steps])
        rows, first = unique_rows(part.indptr, part.indices, part.data)
        indptr, indices, values = take_rows(first, part.indptr, part.indices, part.data)
        has_pairs = self.trees_.has_pairs
        source = RowScores(rows, first.size, self.classes_.size, has_pairs=has_pairs)
        self.trees_.add_scores(indptr, indices, values, source.node, source.pair)
        local = Sequences.from_checked(part, block.offsets.copy())
        return chain_scores(source, local.block(0, len(block)))

    def _pairwise_per_step(self) -> bool:
        return self.trees_.has_pairs

    def _predict(self, X: Sequences, mask: Mask | None = None) -> NDArray[np.int64]:
        def decode(scores: ChainScores, local: Mask | None, _: slice) -> NDArray[np.int64]:
            if self.beam_width is None:
                return viterbi(scores, mask=local).labels
            return beam(scores, self.beam_width, mask=local).labels

        return np.concatenate([np.zeros(0, dtype=np.int64), *self._run(X, decode, mask)])

    def _predict_marginals(self, X: Sequences, mask: Mask | None = None) -> NDArray[np.float64]:
        def node(scores: ChainScores, local: Mask | None, _: slice) -> NDArray[np.float64]:
            if self.beam_width is None:
                return marginals(scores, mask=local).node
            return beam_marginals(scores, self.beam_width, mask=local).node

        return np.concatenate([np.zeros((0, self.classes_.size)), *self._run(X, node, mask)])

    predict_nbest = available_if(_decodes_exactly)(ChainLabeler.predict_nbest)
    decision_function = available_if(_decodes_exactly)(ChainLabeler.decision_function)
    sequence_log_proba = available_if(_decodes_exactly)(DistributionMixin.sequence_log_proba)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Proportion of the total gain that is due to each feature."""
        return self._importances()[0]

    @property
    def previous_label_importance_(self) -> float:
        """Proportion of the total gain that is due to the previous label."""
        return self._importances()[1]

    def _importances(self) -> tuple[NDArray[np.float64], float]:
        check_is_fitted(self)
        features, previous = self.trees_.importances()
        total = float(features.sum()) + previous
        return (features / total, previous / total) if total > 0.0 else (features, previous)
