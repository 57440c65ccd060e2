"""LinearChainCRF: the linear-chain conditional random field (Lafferty, McCallum & Pereira 2001).

    p(y | x) = exp(w' phi(x, y)) / Z(x)

with the joint features of `seqlab.structures.chain`, trained by penalised maximum likelihood::

    min_w  sum_i a_i [ log Z(x_i) - w' phi(x_i, y_i) ]  +  c1 |w|_1  +  c2 |w|_2^2
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from seqlab import learning, optim
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.features.vectorizer import SequenceVectorizer
from seqlab.learning import FitProgress, FitResult, TrainingData
from seqlab.models.base import EARLY_STOPPING_CONSTRAINTS, LIMIT_CONSTRAINTS
from seqlab.models.chain_labeler import DistributionMixin
from seqlab.models.linear_chain import STRUCTURE_CONSTRAINTS, LinearChainLabeler
from seqlab.optim import FitState
from seqlab.structures import chain

# Default tolerance, and the operations per pass over the data (about two milliseconds) from which it
# holds. With less work per pass it is smaller in proportion: a tight solution of small data costs next to
# no time.
TOL, MIN_TOL = 1e-3, 1e-6
WORK_OF_TOL = 2_000_000
# Pairs that quasi-Newton solvers keep. More save iterations, but each iteration then takes longer; they
# are worthwhile if there are few weights for the work of a pass. The keys say whether there is an L1 penalty:
# then the cost of a pair grows with the number of pairs.
MIN_MEMORY, MAX_MEMORY = {False: 5, True: 8}, {False: 30, True: 20}
WORK_PER_PAIR = 400
# A warning names a few of the features whose scale is larger than the usual one by this factor.
MAX_SCALE_RATIO = 50.0
MAX_NAMED = 3


class LinearChainCRF(DistributionMixin, LinearChainLabeler):
    """Linear-chain conditional random field.

    Minimises the summed negative log-likelihood plus ``c1 |w|_1 + c2 |w|_2^2``, the same penalties as in
    CRFsuite. A Gaussian prior of variance ``s2`` corresponds to ``c2 = 1 / (2 s2)``, scikit-learn's
    ``LogisticRegression(C)`` to ``c2 = 1 / (2 C)``.

    Parameters
    ----------
    c1 : float, default=0.0
        L1 penalty: makes weights exactly zero.
    c2 : float, default=1.0
        L2 penalty.
    solver : {"auto", "lbfgs", "proximal", "owlqn"}, default="auto"
        "lbfgs" is for ``c1 = 0``; "proximal" (a proximal quasi-Newton method) and the slower "owlqn" are for
        ``c1 > 0``. "auto" chooses "lbfgs" or "proximal". On large data "auto" begins with a few stochastic
        passes. All solvers adapt to the scale of each feature, so features need not be scaled for training
        to converge (the penalties do depend on the scale). Single values that are far from all others make
        training slow: clip them.
    max_iter : int, default=1000
        Maximum number of iterations.
    tol : float or None, default=None
        Training stops when the objective is within ``tol`` of the optimum, relative to the objective. The
        distance is the smaller of a certified bound and an estimate; both are in ``history_``. None means
        1e-3 if a pass over the data takes at least 2,000,000 operations (about two milliseconds),
        proportionally less for smaller data, and at least 1e-6. Operations are counted, so that it does not
        depend on the machine. On generated data, the default changed at most 0.11 % of the predicted labels
        of new sequences, compared with 1e-7.
    all_states : bool, default=False
        Whether every (feature, label) pair has a weight, not only the pairs seen in training.
    all_transitions : bool, default=False
        Whether every pair of labels has a weight, not only the pairs seen in training. A transition
        without a weight scores 0; it is not forbidden (see ``constraints`` of `predict`).
    min_freq : float, default=0
        Drop (feature, label) pairs and transitions seen less often.
    boundary : bool or "unpenalized", default=True
        Whether there are weights for the first and the last label of a sequence. "unpenalized" excludes
        them from the penalty, like an intercept; on sequences of one step the model then equals
        multinomial logistic regression with an intercept.
    edge_features : bool, default=False
        Whether features also have weights for pairs of labels (seen in training): transitions then depend
        on the observation. Time and memory per step grow with the square of the number of labels.
    crfsuite_features : bool, default=False
        Whether pairs of feature and label get weights by the rules of CRFsuite: in dicts, False and 0 are
        values like any other number (instead of no feature), and ``{"a": "b"}`` is the same feature as
        ``{"a:b": 1}``; a pair has a weight if its values in training sum to at least ``min_freq``
        (instead of the number of its steps), and ``all_states`` and ``all_transitions`` add pairs with a
        sum of 0, which have no weight if ``min_freq`` is larger. With ``boundary=False`` the model is
        then exactly that of CRFsuite.
    class_weight : dict, "balanced" or None, default=None
        Weights of labels, 1 if not given: the loss of a step is multiplied by the weight of its label, as
        in scikit-learn's ``LogisticRegression``. Labels of larger weight are missed less often, and other
        labels more often. "balanced" means ``n_steps / (n_labels * count)``; if labels tend to stay the same
        from step to step and single observations say little about them, it can lower the accuracy far below
        the share of the most frequent label, and the square roots of these weights are a better start.
        See Notes.
    max_seconds : float or None, default=None
        Training stops after the iteration in which this time is exceeded, with a warning and
        ``converged_ = False``. The conversion of X and the compilation of kernels are not counted.
    validation_fraction : float or None, default=None
        Proportion of the sequences that is held out for early stopping: training stops if their token
        accuracy has not improved for ``n_iter_no_change`` iterations, and the weights of the best iteration
        are kept. It makes sense with a weak penalty; with a penalty chosen by cross-validation, training to
        the optimum on all sequences is usually as accurate. Not used if `fit` is given held-out sequences.
    n_iter_no_change : int, default=10
        With early stopping: number of iterations without improvement after which training stops.
    callback : callable or None, default=None
        Called before the first and after every iteration with a `seqlab.learning.FitProgress`, which has
        ``iteration``, ``objective``, ``seconds`` and ``info``; training stops if it returns True, after
        the first iteration at the earliest.
        `seqlab.save` leaves it out.
    random_state : int, RandomState or None, default=None
        Chooses the sequences to hold out.
    n_jobs : int, default=None
        Number of threads; the result is bitwise identical for any number.
    verbose : bool, default=False
        Show progress on standard error.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    coef_ : array or CSC matrix of shape (n_labels, n_features)
        Weights of the features; sparse if they are limited to pairs seen in training.
    transitions_ : array of shape (n_labels, n_labels)
        Weights from one label (row) to the next (column).
    start_, end_ : arrays of shape (n_labels,)
        Weights of the first and of the last label.
    edge_coef_ : array or CSC matrix of shape (n_labels ** 2, n_features), or None
        Weights of the features for pairs of labels; row ``i * n_labels + j`` is from i to j.
    n_iter_ : int
        Number of iterations, including those after the best one.
    converged_ : bool
        Whether these are the weights of the optimum, within ``tol`` or as near as rounding errors allow;
        False after early stopping.
    objective_ : float
        Value of the objective for these weights, penalties included.
    history_ : dict of str to list
        iteration, objective, seconds, gradient_norm, gap (estimated distance from the optimum),
        bound (certified) and, with early stopping, validation_score. If rounding errors prevent any further
        decrease, a fit may count as converged although its last gap and bound exceed ``tol``.
    best_iteration_ : int or None
        With early stopping: the iteration whose weights are kept.
    best_validation_score_ : float or None
        Its token accuracy on the held-out sequences.

    See Also
    --------
    StructuredPerceptron : faster to train, without probabilities of whole labelings.
    IndependentLabeler : any classifier, applied to each step independently.

    Notes
    -----
    Each iteration costs O(T (L^2 + L F)) for T steps in total, L labels and F active features per step.

    With ``class_weight``, the summed loss is, for weights ``a_t`` of the labels of the steps::

        1/2 sum_t a_t [ -log p(y_t | y_1 .. y_{t-1}, x) - log p(y_t | y_{t+1} .. y_T, x) ]

    If all weights are 1, both sums are the negative log-likelihood (chain rule). On sequences of one step it
    is the loss of weighted logistic regression. Unless all weights are equal, it is not convex, and an
    iteration takes longer.

    Labels may be unknown (``None``) or partly known (a set of labels): training then maximises the
    probability of all labelings that agree with them, and is no longer convex, so that ``bound`` in
    ``history_`` is infinite. Transitions seen between two known labels have a weight. If no labeling of
    consecutive hidden labels has only such transitions, those of its labelings with the fewest others have
    a weight too.

    References
    ----------
    Lafferty, McCallum & Pereira (2001), *Conditional random fields*. Okazaki (2007), *CRFsuite*.

    Examples
    --------
    >>> from seqlab import LinearChainCRF
    >>> X = [[{"word": "the"}, {"word": "dog"}, {"word": "barks"}], [{"word": "dogs"}, {"word": "bark"}]]
    >>> y = [["DET", "NOUN", "VERB"], ["NOUN", "VERB"]]
    >>> crf = LinearChainCRF(c2=0.1).fit(X, y)
    >>> crf.predict([[{"word": "the"}, {"word": "cat"}, {"word": "barks"}]])
    [array(['DET', 'NOUN', 'VERB'], dtype='<U4')]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "c1": [Interval(Real, 0, None, closed="left")],
        "c2": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions({"auto", "lbfgs", "owlqn", "proximal"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        **STRUCTURE_CONSTRAINTS,
        "boundary": ["boolean", StrOptions({"unpenalized"})],
        "edge_features": ["boolean"],
        "crfsuite_features": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **LIMIT_CONSTRAINTS,
        **EARLY_STOPPING_CONSTRAINTS,
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    _accepts_partial_labels = True

    def __init__(
        self,
        *,
        c1: float = 0.0,
        c2: float = 1.0,
        solver: str = "auto",
        max_iter: int = 1000,
        tol: float | None = None,
        all_states: bool = False,
        all_transitions: bool = False,
        min_freq: float = 0,
        boundary: bool | str = True,
        edge_features: bool = False,
        crfsuite_features: bool = False,
        class_weight: dict[Any, float] | str | None = None,
        max_seconds: float | None = None,
        validation_fraction: float | None = None,
        n_iter_no_change: int = 10,
        callback: Callable[[FitProgress], Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.c1 = c1
        self.c2 = c2
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.all_states = all_states
        self.all_transitions = all_transitions
        self.min_freq = min_freq
        self.boundary = boundary
        self.edge_features = edge_features
        self.crfsuite_features = crfsuite_features
        self.class_weight = class_weight
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
    ) -> LinearChainCRF:
        """Learn the weights.

        Parameters
        ----------
        X : list of sequences
            Each a list of dicts, a list of bags of strings, a 2-D array, a sparse matrix or a data
            frame; or `Sequences`; or a 3-D array; or one stacked 2-D matrix (with ``lengths``; a
            single sequence without).
        y : list of label sequences
            ``None`` for an unknown label, a set for a partly known one.
        sample_weight : array of shape (n_sequences,), optional
            Weight of each sequence. One weight per step is accepted too (the weight of a sequence is then
            the mean over its steps).
        lengths : list of int, optional
            Steps per sequence, if X is one stacked matrix.
        X_val, y_val : list of sequences, list of label sequences, optional
            Held-out sequences for early stopping, in place of ``validation_fraction``.
        """
        return self._fit(X, y, sample_weight, lengths, X_val, y_val)

    def _new_vectorizer(self) -> Any:
        if self.crfsuite_features:
            return SequenceVectorizer(separator=":", keep_zeros=True, n_jobs=self.n_jobs)
        return super()._new_vectorizer()

    def _learn(self, data: TrainingData) -> FitResult:
        if self.solver == "lbfgs" and self.c1 > 0:
            raise InputError("solver='lbfgs' does not support c1 > 0; use 'auto'")
        bound = self._bind(data)
        X, structure, restore = bound.X, bound.structure, None
        rotated = bound.rotated() if self.c1 == 0 else None
        # An L2 penalty is the same for rotated columns, an L1 penalty is not.
        if rotated is not None:
            bound, weights = rotated
            restore = weights.restore
        term = self._data_term(bound, data)
        objective = learning.PenalisedObjective(
            term, self.c2, penalised=_penalised(structure, self.boundary)
        )
        tol = default_tol(bound.work_per_pass) if self.tol is None else self.tol
        result = self._train(
            self._solve(objective, term, tol),
            data,
            lambda w: self._store(structure, w if restore is None else restore(w)),
            tol=tol,
            first_iteration=0,
        )
        self.objective_ = result.state.objective
        if not self.converged_:
            result.advice = _scale_advice(X)
        return result

    def _solve(
        self, objective: learning.PenalisedObjective, term: learning.Likelihood, tol: float
    ) -> Iterator[FitState]:
        """Return the states of the solver that the parameters specify."""
        c1 = None
        if self.c1 > 0 or self.solver in ("owlqn", "proximal"):
            c1 = np.full(objective.n_params, float(self.c1))
            if objective.penalised is not None:
                c1[~objective.penalised] = 0.0
        curvature = learning.LikelihoodCurvature(objective, sparse=c1 is not None)

        def batch(w: NDArray[np.float64], n_left: int, scales: Any) -> Iterator[FitState]:
            work_per_weight = term.bound.work_per_pass / max(objective.n_params, 1)
            memory = MIN_MEMORY[c1 is not None] + int(work_per_weight / WORK_PER_PAIR)
            options: dict[str, Any] = {
                "max_iter": n_left, "tol": tol, "memory": min(memory, MAX_MEMORY[c1 is not None]),
                "preconditioner": scales, "curvature": curvature,
                "n_jobs": self.n_jobs,
            }  # fmt: skip
            if c1 is None:
                return optim.lbfgs(objective, w, project=objective.remove_constant_part, **options)
            if self.solver == "owlqn":
                return optim.owlqn(objective, w, c1=c1, **options)
            return optim.proximal(objective, w, c1=c1, project=objective.reduce_penalty, **options)

        if term.bound.n_labels == 1:  # all weights predict that label; zero has the least penalty
            info = {"gradient_norm": 0.0, "bound": 0.0}
            zero = np.zeros(objective.n_params)
            return iter([FitState(zero, 0.0, 0.0, converged=True, info=info)])
        support = term.bound.stochastic_support()
        if self.solver == "auto" and support is not None and learning.is_worthwhile(term, support):
            start = learning.WarmStart(objective, term, support, curvature, self.max_seconds)
            return start.states(batch, self.max_iter)
        zero = np.zeros(objective.n_params)
        return batch(zero, self.max_iter, curvature.at_zero(zero))

    def _data_term(self, bound: chain.BoundChain, data: TrainingData) -> learning.Likelihood:
        weights = learning.class_weights(self.class_weight, data)
        if (weights == weights[0]).all():
            weight_of_sequences = data.sequence_weights * weights[0]
            return learning.Likelihood(bound, data.codes, weight_of_sequences, allowed=data.allowed)
        step_weights = learning.step_class_weights(self.class_weight, data)
        return learning.StepWeightedLikelihood(
            bound, data.codes, step_weights, allowed=data.allowed
        )


def default_tol(work_per_pass: float) -> float:
    """Return the default tolerance for a number of operations per pass over the data."""
    return min(max(TOL * work_per_pass / WORK_OF_TOL, MIN_TOL), TOL)


def _penalised(structure: chain.ChainStructure, boundary: bool | str) -> NDArray[np.bool_] | None:
    """Return which weights are penalised; None if all are."""
    if boundary != "unpenalized":
        return None
    counted = np.ones(structure.n_params, dtype=bool)
    counted[structure.slices["start"]] = False
    counted[structure.slices["end"]] = False
    return counted


def _scale_advice(X: Sequences) -> str:
    """Return which features to change, because of their scale, offset or outliers; '' if there are none.

    The scale is compared with that of the median feature, or with 1 if that is less.
    """
    squares, shares = chain.ChainFeatures(X).mean_squares, chain.typical_shares(X.matrix)
    has_outliers = shares < 1.0 / MAX_SCALE_RATIO
    usual = min(float(np.median(squares)), 1.0)
    named = np.flatnonzero((squares > MAX_SCALE_RATIO**2 * usual) | has_outliers)
    if named.size == 0:
        return ""
    facts = []
    for feature in named[np.argsort(-squares[named], kind="stable")][:MAX_NAMED]:
        name = f"feature {feature}" if X.feature_names is None else repr(X.feature_names[feature])
        largest = np.abs(X.matrix[:, feature]).max()
        facts.append(f"{name} has values up to {largest:.3g}")
    them, their = ("it", "its mean") if named.size == 1 else ("them", "their means")
    if has_outliers[named].any():
        advice = f"clip {them}"
    elif chain.has_large_offset(X.matrix)[named].any():
        advice = f"subtract {their}, or use differences"
    else:
        advice = f"scale {them}"
    return f"{', '.join(facts)}: {advice}"
