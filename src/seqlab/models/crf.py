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

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.inference import ChainScores
from seqlab.learning import run_fit
from seqlab.models._base import TrainingData
from seqlab.models._chain import ChainLabeler, DistributionMixin
from seqlab.models._fast_likelihood import FastChainLikelihood
from seqlab.models._likelihood import ChainLikelihood
from seqlab.models._warm_start import from_warm_start, pays
from seqlab.optim import FitState, lbfgs, owlqn
from seqlab.structures.chain import ChainStructure, ChainWeights, as_csr, chain_scorer

# Default distance from the optimum: what large data need, and what small data get for nothing.
TOL_LARGE = 1e-3
TOL_SMALL = 1e-6


class LinearChainCRF(DistributionMixin, ChainLabeler):
    """Linear-chain conditional random field.

    Minimises the summed negative log-likelihood plus ``c1 |w|_1 + c2 |w|_2^2``, the penalties being
    those of CRFsuite. A Gaussian prior of variance ``s2`` is ``c2 = 1 / (2 s2)``; scikit-learn's
    ``LogisticRegression(C)`` is ``c2 = 1 / (2 C)``.

    Parameters
    ----------
    c1 : float, default=0.0
        L1 penalty: makes weights exactly zero.
    c2 : float, default=1.0
        L2 penalty.
    solver : {"auto", "lbfgs", "owlqn"}, default="auto"
        "lbfgs" for ``c1 = 0``, "owlqn" for ``c1 > 0``; "auto" chooses between them and, on large
        data, begins with a few stochastic passes and goes on in coordinates scaled by the diagonal of
        the Hessian.
    max_iter : int, default=1000
        Iterations at most.
    tol : float or None, default=None
        Training stops when the objective is within ``tol`` of the optimum, relatively. The distance is
        the smaller of a certified bound, ``|g|^2 / (4 c2)`` for the gradient g, and an estimate from
        the gain of the last iterations; both are in ``history_``. None stands for 1e-3 where a
        pass over the data takes more than a few milliseconds, else for 1e-6.
    all_states : bool, default=False
        Give a weight to every (feature, label) pair, not only to those seen in training.
    all_transitions : bool, default=False
        Give a weight to every pair of labels, not only to those seen in training. A transition
        without a weight scores 0; it is not forbidden (see ``constraints`` of `predict`).
    min_freq : int, default=0
        Drop (feature, label) pairs and transitions seen less often.
    boundary : bool or "unpenalized", default=True
        Whether there are weights for the first and the last label of a sequence. "unpenalized" leaves
        them out of the penalty, as an intercept; on sequences of one step the model then equals
        multinomial logistic regression with an intercept.
    edge_features : bool, default=False
        Give features a weight per pair of labels too (seen in training): transitions then depend on
        the observation. Time and memory per step grow with the square of the number of labels.
    class_weight : dict, "balanced" or None, default=None
        Cost of missing a label, relative to 1 (softmax-margin training): above 1 for labels that
        should be missed less often. "balanced" is inversely proportional to the frequency.
    n_jobs : int, default=None
        Threads; the result has the same bits for any number.
    verbose : bool, default=False
        Show progress on standard error.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    coef_ : array or CSC matrix of shape (n_labels, n_features)
        Weights of the features; sparse where they are limited to pairs seen in training.
    transitions_ : array of shape (n_labels, n_labels)
        Weights from one label (row) to the next (column).
    start_, end_ : arrays of shape (n_labels,)
        Weights of the first and of the last label.
    edge_coef_ : array or CSC matrix of shape (n_labels ** 2, n_features), or None
        Weights of the features for pairs of labels; row ``i * n_labels + j`` is from i to j.
    n_iter_ : int
    converged_ : bool
    objective_ : float
        Value of the objective at the end, penalties included.
    history_ : dict of str to list
        iteration, objective, seconds, gradient_norm, gap (estimated distance from the optimum) and
        bound (certified).

    See Also
    --------
    StructuredPerceptron : faster to train, without probabilities of whole labelings.
    IndependentLabeler : any classifier, position by position.

    Notes
    -----
    Each iteration costs O(T (L^2 + L F)) for T steps in all, L labels and F active features per step.

    Labels may be unknown (``None``) or partly known (a set of labels): training then maximises the
    probability of all labelings that agree, and is no longer convex.

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
        "solver": [StrOptions({"auto", "lbfgs", "owlqn"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "all_states": ["boolean"],
        "all_transitions": ["boolean"],
        "min_freq": [Interval(Real, 0, None, closed="left")],
        "boundary": ["boolean", StrOptions({"unpenalized"})],
        "edge_features": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
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
        class_weight: dict[Any, float] | str | None = None,
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
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, lengths: Any = None
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
            Weight of each sequence. One weight per step is accepted too (a sequence then weighs the
            mean of its steps).
        lengths : list of int, optional
            Steps per sequence, where X is one stacked matrix.
        """
        if self.solver == "lbfgs" and self.c1 > 0:
            raise InputError("solver='lbfgs' cannot honour c1 > 0; use 'owlqn' or 'auto'")
        with self._fitting():
            data = self._read_training(X, y, sample_weight, lengths)
            sequences = as_csr(data.X)
            structure = ChainStructure.from_data(
                sequences,
                data.codes,
                self.classes_.size,
                allowed=data.allowed,
                all_states=self.all_states,
                all_transitions=self.all_transitions,
                min_freq=self.min_freq,
                boundary=bool(self.boundary),
                edge_features=self.edge_features,
            )
            penalised = _penalised(structure, self.boundary)
            plain = data.allowed is None and structure.edge is None
            objective = (FastChainLikelihood if plain else ChainLikelihood)(
                structure,
                sequences,
                data.codes,
                data.sequence_weights,
                self.c2,
                allowed=data.allowed,
                miss_cost=self._miss_cost(data),
                penalised=penalised,
                n_jobs=self.n_jobs,
            )
            name = type(self).__name__
            large = isinstance(objective, FastChainLikelihood) and pays(objective)
            tol = self.tol if self.tol is not None else (TOL_LARGE if large else TOL_SMALL)
            solver = self._solve(objective, penalised, tol)
            result = run_fit(
                solver,
                title=name,
                max_iter=self.max_iter,
                tol=tol,
                verbose=self.verbose,
                first_iteration=0,
            )
            self._store(structure.weights(result.state.point))
            self.objective_ = result.state.objective
            result.report_to(self)
        result.conclude("" if self.converged_ else _scale_hint(sequences))
        return self

    def _solve(
        self, objective: ChainLikelihood, penalised: NDArray[np.bool_] | None, tol: float
    ) -> Iterator[FitState]:
        """The states of the solver that the parameters ask for."""
        c1 = None
        if self.c1 > 0 or self.solver == "owlqn":
            c1 = np.full(objective.n_params, float(self.c1))
            if penalised is not None:
                c1[~penalised] = 0.0

        def batch(w: NDArray[np.float64], n_left: int, scales: Any) -> Iterator[FitState]:
            options: dict[str, Any] = {
                "max_iter": n_left, "tol": tol, "preconditioner": scales, "n_jobs": self.n_jobs
            }  # fmt: skip
            if c1 is None:
                return lbfgs(objective, w, **options)
            return owlqn(objective, w, c1=c1, **options)

        auto = self.solver == "auto"
        if auto and isinstance(objective, FastChainLikelihood) and pays(objective):
            return from_warm_start(objective, batch, self.max_iter, sparse=c1 is not None)
        return batch(np.zeros(objective.n_params), self.max_iter, None)

    def _store(self, weights: ChainWeights) -> None:
        self.coef_ = weights.coef
        self.transitions_ = weights.transitions
        self.start_ = weights.start
        self.end_ = weights.end
        self.edge_coef_ = weights.edge_coef

    def _miss_cost(self, data: TrainingData) -> NDArray[np.float64] | None:
        """Log cost of missing the label of each step; 0 where the label is not known."""
        if self.class_weight is None:
            return None
        known = data.codes >= 0
        if isinstance(self.class_weight, str):  # "balanced"
            counts = np.bincount(data.codes[known], minlength=self.classes_.size)
            weights = known.sum() / (self.classes_.size * np.maximum(counts, 1))
        else:
            weights = np.ones(self.classes_.size)
            for label, weight in self.class_weight.items():
                where = np.flatnonzero(self.classes_ == label)
                if where.size == 0:
                    raise InputError(f"class_weight names {label!r}, which is not a label of y")
                if not (isinstance(weight, Real) and np.isfinite(weight) and weight > 0):
                    raise InputError(
                        f"class_weight[{label!r}] is {weight!r}; it must be a positive number"
                    )
                weights[where[0]] = weight
        return np.where(known, np.log(weights)[np.maximum(data.codes, 0)], 0.0)

    def _chain_scores(self, X: Sequences) -> Callable[[int, int], ChainScores]:
        weights = ChainWeights(
            self.coef_, self.transitions_, self.start_, self.end_, self.edge_coef_
        )
        return chain_scorer(weights, X)

    def _pairwise_per_step(self) -> bool:
        return self.edge_coef_ is not None


def _penalised(structure: ChainStructure, boundary: bool | str) -> NDArray[np.bool_] | None:
    """Which weights the penalties count; None for all."""
    if boundary != "unpenalized":
        return None
    counted = np.ones(structure.n_params, dtype=bool)
    counted[structure.slices["start"]] = False
    counted[structure.slices["end"]] = False
    return counted


def _scale_hint(X: Sequences) -> str:
    """A word on the feature that dwarfs the others, where there is one; else nothing."""
    if X.matrix.nnz == 0:
        return ""
    largest = np.zeros(X.n_features)
    np.maximum.at(largest, X.matrix.indices, np.abs(X.matrix.data))
    feature = int(np.argmax(largest))
    if largest[feature] <= 1e6 * np.median(largest[largest > 0]) and largest[feature] < 1e9:
        return ""
    name = f"feature {feature}" if X.feature_names is None else repr(X.feature_names[feature])
    return f"; {name} has values up to {largest[feature]:.3g}: scale it"
