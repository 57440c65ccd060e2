"""StackedSequentialLearner: sequential stacking of any learner (Cohen & Carvalho 2005).

A first learner A labels every step. A second learner B of the same kind sees the features of step t and A's
prediction scores for the steps from ``t - h`` to ``t + f``::

    x'(t) = [x(t), g(t - h), ..., g(t), ..., g(t + f)]          prediction: B(x')

with g the log-odds of A's labels. In training, g are out-of-fold predictions: those for a sequence come from
a learner that was not trained on it, so that B learns how reliable they are.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.learning import TrainingData, unchanged_on_failure
from seqlab.meta._stacking_features import (
    ScoreScaler,
    ScoreWindow,
    StepScores,
    column_names,
    score_single_label,
    score_steps,
)
from seqlab.meta._stacking_folds import fold_units, split_folds
from seqlab.meta._stacking_learners import as_labeler, draw_seed, set_seeds
from seqlab.models.base import BaseLabeler, fit_prepared, predict_prepared

Ints = NDArray[np.int64]


def _second_has(name: str) -> Callable[[StackedSequentialLearner], bool]:
    def check(self: StackedSequentialLearner) -> bool:
        return hasattr(getattr(self, "labeler_", None) or as_labeler(self.estimator), name)

    return check


class StackedSequentialLearner(BaseLabeler):
    """Sequential stacking over any classifier or labeler.

    Parameters
    ----------
    estimator : scikit-learn classifier or labeler, default=None
        The learner of both stages. A classifier labels each step on its own
        (`IndependentLabeler`); None stands for ``IndependentLabeler()``.
    cv : int, "two_halves" or splitter, default=5
        How the out-of-fold predictions on the training data are made. An int: the number of random folds of
        sequences. A scikit-learn splitter: each sequence must be in exactly one test part. "two_halves":
        the first learner is trained on one half of the sequences, the second on the other; two fits of
        half the size, for large data.
    window : (int, int) or None, default=(5, 5)
        Number of steps before and after whose predictions are seen. None: no stacking.
    include_self : bool, default=True
        Whether the prediction for the step itself is seen.
    levels : int, default=1
        With 2, the first learner is itself a stacked one, and so on. Predictions are out-of-fold at every
        level: ``cv + 1`` stacked learners of one level less and one learner, 43 fits for two levels of 5
        folds.
    clip : float, default=10.0
        Prediction scores (log-odds) are clipped to the interval from ``-clip`` to ``clip``.
    standardise : bool, default=True
        Scale the columns of prediction scores to mean 0 and standard deviation 1, so that a penalty treats
        them like other features.
    n_jobs : int, default=None
        Number of parallel fits, through joblib. The result is the same for any number.
    random_state : int, RandomState or None, default=None
        Assigns the sequences to folds, and seeds the learners that have no seed of their own
        (``random_state=None``).
    verbose : int, default=0
        As for `joblib.Parallel`, on standard error.

    Attributes
    ----------
    base_ : labeler or None
        The first learner, fitted on all sequences; None without a window.
    labeler_ : labeler
        The second learner, which predicts.
    kind_ : {"log_odds", "margin", "vote"} or None
        Kind of the first learner's prediction scores.
    scale_ : array of shape (1 + 2 * n_columns,) or None
        Unit, means and standard deviations of the prediction scores.
    n_opinions_ : int
        Number of columns appended to the features.
    classes_ : array of shape (n_labels,)

    See Also
    --------
    IndependentLabeler : the learner that stacking improves most.
    LinearChainCRF : stacking improves it too if labels come in long runs.

    Notes
    -----
    Training takes ``cv + 2`` fits: one per fold, one on all data, one of the second learner. A label that is
    missing from a fold's training part has probability 0 for that fold's learner. Two labels give one column
    per distance, L > 2 labels L columns, and each distance other than 0 one more for steps outside the
    sequence. Prediction scores are log-odds if the learner has probabilities, else margins of its
    max-marginals or decision values, else 1 for the predicted label and -1 for the others.

    A single sequence is cut into ``cv ** levels`` pieces. Several sequences, but fewer than ``cv``, are an
    error.

    Methods exist if the second learner has them.

    References
    ----------
    Cohen & Carvalho (2005), *Stacked sequential learning*, IJCAI.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from seqlab import IndependentLabeler, StackedSequentialLearner
    >>> from seqlab.datasets import make_partition_sequences
    >>> X, y = make_partition_sequences(60, random_state=0, return_X_y=True)
    >>> plain = IndependentLabeler(LogisticRegression()).fit(X[:40], y[:40])
    >>> stacked = StackedSequentialLearner(LogisticRegression(), random_state=0).fit(X[:40], y[:40])
    >>> round(plain.score(X[40:], y[40:]), 2), round(stacked.score(X[40:], y[40:]), 2)
    (0.68, 0.89)
    """

    _parameter_constraints: dict[str, Any] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "cv": [
            Interval(Integral, 2, None, closed="left"),
            StrOptions({"two_halves"}),
            HasMethods(["split", "get_n_splits"]),
        ],
        "window": "no_validation",  # see ScoreWindow.from_params
        "include_self": ["boolean"],
        "levels": [Interval(Integral, 1, None, closed="left")],
        "clip": [Interval(Real, 0, None, closed="neither")],
        "standardise": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        cv: Any = 5,
        window: Any = (5, 5),
        include_self: bool = True,
        levels: int = 1,
        clip: float = 10.0,
        standardise: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.window = window
        self.include_self = include_self
        self.levels = levels
        self.clip = clip
        self.standardise = standardise
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        lengths: Any = None,
        groups: Any = None,
    ) -> StackedSequentialLearner:
        """Fit the first learner, on each fold and on all data, and the second on its predictions.

        Parameters
        ----------
        X, y, lengths : see `LinearChainCRF.fit`
            Every label must be known.
        sample_weight : array of shape (n_sequences,) or (n_steps,), optional
            Passed on to the learners.
        groups : array of shape (n_sequences,), optional
            Sequences of one group (author, thread, day) stay in one fold, at every level.
        """
        with unchanged_on_failure(self):
            data = self._read_training(X, y, sample_weight, lengths)
            if groups is not None:
                data.groups = np.asarray(groups)
                if data.groups.shape != (len(data.X),):
                    raise InputError(
                        f"groups has shape {data.groups.shape} but X has {len(data.X)} sequences"
                    )
            self._learn(data)
        return self

    def _learn(self, data: TrainingData) -> None:
        if self.window is not None:
            ScoreWindow.from_params(self.window, self.include_self)  # check before any fit
        first, second = self._learners()
        self.base_: Any = None
        self.kind_: str | None = None
        self.scale_: Any = None
        self.n_opinions_ = 0
        if self.window is None:
            self.labeler_ = fit_prepared(clone(second), data)
        elif isinstance(self.cv, str):  # "two_halves"
            self._fit_two_halves(data, first, second)
        else:
            self._fit_stacked(data, first, second)

    def _learners(self) -> tuple[Any, Any]:
        """Return the learners of the two stages, not fitted."""
        labeler, below = as_labeler(self.estimator), None
        if self.window is not None and self.levels > 1:
            below = clone(self).set_params(levels=self.levels - 1, n_jobs=None, verbose=0)
        if self.random_state is not None:
            random = check_random_state(self.random_state)
            if below is not None:
                # The folds of the lower level depend on this seed, but differ from those of this level.
                below.set_params(random_state=draw_seed(random))
            labeler = set_seeds(labeler, random)
        return (labeler if below is None else below), labeler

    def _fit_stacked(self, data: TrainingData, first: Any, second: Any) -> None:
        scores, self.base_ = self._cross_validate(data, first)
        extended = self._extend(data.X, scores, fit=True)
        self.labeler_ = fit_prepared(clone(second), data.with_features(extended))

    def _cross_validate(self, data: TrainingData, learner: Any) -> tuple[StepScores, Any]:
        """Return out-of-fold prediction scores, and the learner fitted on all data."""
        bounds = fold_units(data.X.offsets, self.cv, self.levels)
        # A single sequence is cut into pieces, without groups: it is its own group.
        units = data if bounds is data.X.offsets else data.cut(bounds)
        parts = self._folds(len(units.X), units.groups)
        jobs = [
            delayed(_fit_and_score)(learner, units.part(train), units.X[test], self.classes_)
            for train, test in parts
        ]
        # Threads: solvers and kernels release the interpreter lock, and the data are not copied. A joblib
        # backend chosen by the user (processes, Dask) takes precedence over this preference.
        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads", verbose=int(self.verbose))
        *scores, base = parallel([*jobs, delayed(fit_prepared)(clone(learner), data)])
        kind = next((one.kind for one in scores if isinstance(one, StepScores)), "log_odds")
        values = np.empty((data.X.n_steps, self.classes_.size))
        for (_, test), found in zip(parts, scores, strict=True):
            rows = np.concatenate([np.arange(bounds[i], bounds[i + 1]) for i in test])
            if not isinstance(found, StepScores):  # the only label of the fold's training part
                found = score_single_label(kind, found, rows.size, self.classes_)
            values[rows] = found.values
        return StepScores(kind, values), base

    def _fit_two_halves(self, data: TrainingData, first: Any, second: Any) -> None:
        bounds = fold_units(data.X.offsets, self.cv, self.levels)
        units = data if bounds is data.X.offsets else data.cut(bounds)
        (one, other), *_ = self._folds(len(units.X), units.groups)
        self.base_ = fit_prepared(clone(first), units.part(one))
        rest = units.part(other)
        scores = score_steps(self.base_, rest.X, self.classes_)
        extended = self._extend(rest.X, scores, fit=True)
        self.labeler_ = fit_prepared(clone(second), rest.with_features(extended))

    def _check_state(self) -> None:
        super()._check_state()
        if not state_checks.has_fitted_attributes(self):
            return
        n_opinions = state_checks.check_int(self.n_opinions_, "n_opinions_", 0)
        state_checks.require((self.base_ is None) == (self.window is None), "base_")
        labels, n_features = self.classes_.tolist(), self.n_features_in_
        state_checks.require(labels == sorted(labels), "classes_")
        for name, n_columns in (("base_", n_features), ("labeler_", n_features + n_opinions)):
            labeler = getattr(self, name)
            if name == "labeler_" or labeler is not None:
                state_checks.check_type(labeler, name, BaseLabeler)
                state_checks.require(labeler.n_features_in_ == n_columns, name)
                state_checks.require(set(labeler.classes_.tolist()) <= set(labels), name)
        if self.base_ is None:
            state_checks.require(n_opinions == 0, "n_opinions_")
            return
        columns = column_names(self.classes_)
        window = ScoreWindow.from_params(self.window, self.include_self)
        state_checks.require(len(window.names(columns)) == n_opinions, "n_opinions_")
        state_checks.check_array(self.scale_, "scale_", (1 + 2 * len(columns),), dtype=np.float64)
        state_checks.require(self.kind_ in ("log_odds", "margin", "vote"), "kind_")

    def _folds(self, n_sequences: int, groups: Any) -> list[tuple[Ints, Ints]]:
        return split_folds(
            n_sequences, self.cv, groups, levels=self.levels, random_state=self.random_state
        )

    def _extend(self, X: Sequences, scores: StepScores, *, fit: bool = False) -> Sequences:
        """Return X with the prediction scores in the window of each step; ``fit`` fits their scale first."""
        window = ScoreWindow.from_params(self.window, self.include_self)
        if fit:
            scale = ScoreScaler.fit(scores, self.clip, standardise=self.standardise)
            self.kind_ = scores.kind
            self.scale_ = np.concatenate([[scale.unit], scale.mean, scale.deviation])
            self.n_opinions_ = len(window.names(column_names(self.classes_)))
        unit, columns = self.scale_[0], self.scale_[1:].reshape(2, -1)
        scale = ScoreScaler(unit, columns[0], columns[1])
        return window.extend(X, scale.columns(scores, self.clip))

    def _add_prediction_scores(self, X: Sequences) -> Sequences:
        """Return X with the prediction scores of the first learner."""
        if self.base_ is None:
            return X
        return self._extend(X, score_steps(self.base_, X, self.classes_))

    def _call_second(self, method: str, X: Any, *args: Any, lengths: Any, **options: Any) -> Any:
        """Call a method of the second learner on X; return its result and the layout of X."""
        sequences, layout = self._read(X, lengths)
        extended = self._add_prediction_scores(sequences)
        given = {name: value for name, value in options.items() if value is not None}
        answer = getattr(self.labeler_, method)(extended, *args, **given)
        return answer, layout

    def predict(self, X: Any, *, lengths: Any = None, constraints: Any = None) -> Any:
        """Return the second learner's labels for each sequence.

        Parameters
        ----------
        X : see `fit`
        lengths : list of int, optional
            Steps per sequence, if X is one stacked matrix.
        constraints : optional
            Passed on to the second learner, which must support them; see `LinearChainCRF.predict`.

        Returns
        -------
        list of arrays of labels, or one stacked array if X is stacked
        """
        answer, layout = self._call_second("predict", X, lengths=lengths, constraints=constraints)
        return answer if layout.is_list else np.concatenate([self.classes_[:0], *answer])

    @available_if(_second_has("predict_proba"))
    def predict_proba(self, X: Any, *, lengths: Any = None, constraints: Any = None) -> Any:
        """Return the probability of each label at each step.

        Parameters
        ----------
        X, lengths, constraints : see `predict`

        Returns
        -------
        list of arrays of shape (n_steps, n_labels), or one stacked array if X is stacked
            Columns in the order of ``classes_``.
        """
        return self._predict_tables("predict_proba", X, lengths, constraints, missing=0.0)

    @available_if(_second_has("decision_function"))
    def decision_function(self, X: Any, *, lengths: Any = None, constraints: Any = None) -> Any:
        """Return the score of each label at each step; see the learner's `decision_function`.

        Parameters
        ----------
        X, lengths, constraints : see `predict`
        """
        return self._predict_tables("decision_function", X, lengths, constraints, missing=-np.inf)

    @available_if(_second_has("predict_nbest"))
    def predict_nbest(
        self, X: Any, n: int = 5, *, lengths: Any = None, constraints: Any = None
    ) -> Any:
        """Return the ``n`` best labelings of each sequence; see the learner's `predict_nbest`.

        Parameters
        ----------
        X, lengths, constraints : see `predict`
        n : int
        """
        return self._call_second("predict_nbest", X, n, lengths=lengths, constraints=constraints)[0]

    @available_if(_second_has("sequence_log_proba"))
    def sequence_log_proba(self, X: Any, y: Any, *, lengths: Any = None) -> Any:
        """Return the log-probability of each labeling; see the learner's `sequence_log_proba`.

        Parameters
        ----------
        X, lengths : see `predict`
        y : list of label sequences
        """
        sequences, layout = self._read(X, lengths)
        y = list(y)
        self._read_labels(y, sequences, layout, partial=True)  # errors that refer to the given y
        if not layout.is_list and not isinstance(y[0], list | tuple | np.ndarray):
            y = sequences.split(y)
        return self.labeler_.sequence_log_proba(self._add_prediction_scores(sequences), y)

    def _predict_tables(
        self, method: str, X: Any, lengths: Any, constraints: Any, missing: float
    ) -> Any:
        """Return a table per sequence, with a column for every class."""
        tables, layout = self._call_second(method, X, lengths=lengths, constraints=constraints)
        known = np.searchsorted(self.classes_, self.labeler_.classes_)
        n_labels = self.classes_.size
        if known.size < n_labels:  # a label may be missing from one half of the data
            wide = [np.full((len(table), n_labels), missing) for table in tables]
            for to, table in zip(wide, tables, strict=True):
                to[:, known] = table
            tables = wide
        return tables if layout.is_list else np.concatenate([np.zeros((0, n_labels)), *tables])

    def _predict(self, X: Sequences) -> Ints:
        return predict_prepared(self.labeler_, self._add_prediction_scores(X), self.classes_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features that the second learner sees.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the features of X; needed only if X was not given as dicts or strings.
        """
        check_is_fitted(self)
        if input_features is not None:
            names = list(input_features)
        elif self.vectorizer_ is not None:
            names = self.vectorizer_.get_feature_names_out().tolist()
        else:
            numbered = [f"x{k}" for k in range(self.n_features_in_)]
            names = list(getattr(self, "feature_names_in_", numbered))
        if len(names) != self.n_features_in_:
            raise InputError(f"input_features should have {self.n_features_in_} names")
        if self.base_ is not None:
            window = ScoreWindow.from_params(self.window, self.include_self)
            names = [*names, *window.names(column_names(self.classes_))]
        return np.array(names, dtype=object)


def _fit_and_score(learner: Any, train: TrainingData, test: Sequences, classes: Any) -> Any:
    """Return the prediction scores on ``test`` of a learner fitted on ``train``.

    If the training part has only one label, return that label: there is nothing to learn.
    """
    if train.n_labels == 1 < classes.size:
        return train.classes[0]
    return score_steps(fit_prepared(clone(learner), train), test, classes)
