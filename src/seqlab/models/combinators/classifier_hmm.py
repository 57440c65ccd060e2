"""ClassifierHMM: a hidden Markov model whose emissions are a classifier's posteriors.

By Bayes' rule ``P_t(o | s) = P(s | o) P_t(o) / P_t(s)``, and ``P_t(o)`` is the same for all labels. The
score of a labeling, up to a factor that depends on the observations only, is therefore::

    P_1(s_1) prod_{t>1} P(s_t | s_{t-1}) prod_t P(s_t | o_t) / P_t(s_t)

with the label frequencies that the chain itself implies, ``P_t = P_{t-1} P``.

References
----------
Punyakanok and Roth, "The use of classifiers in sequential inference", NIPS 2000.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from seqlab.data import state_checks
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.inference import ChainScores, Mask
from seqlab.learning import TrainingData
from seqlab.models._markov import count_chain, estimate_chain, fill_empty_rows
from seqlab.models._posteriors import (
    CLASSIFIER_CONSTRAINTS,
    MIN_POSTERIOR,
    StepPosteriors,
    fit_posteriors,
    prepare_classifier,
    weights_and_groups,
)
from seqlab.models._structural_zeros import CONSTRAINTS, find_legal_transitions, log_or_forbidden
from seqlab.models.chain_labeler import ChainLabeler, ProbabilisticChainMixin
from seqlab.models.combinators._propagation import (
    MIN_PRIOR,
    PositionTable,
    is_alternating,
    propagate_prior,
)


class ClassifierHMM(ProbabilisticChainMixin, ChainLabeler):
    """Hidden Markov model whose emissions come from the posteriors of any classifier.

    The classifier gives the probability of each label given the step, transition frequencies give the
    probability of each labeling, and Bayes' rule combines them. The score of a labeling is::

        log P_1(s_1) + sum_{t>1} log P(s_t | s_{t-1}) + sum_t [log P(s_t | o_t) - log P_t(s_t)]

    Parameters
    ----------
    classifier : scikit-learn classifier, default=None
        Gives ``P(label | step)``; its features may come from a window around the step. None stands for
        ``LogisticRegression(max_iter=1000)``.
    divide_by_prior : bool or {"propagated", "marginal"}, default="propagated"
        The prior ``P_t(s)`` that posteriors are divided by: "propagated" (or True) through the chain from
        the first step; "marginal", the frequency of the label in training; False for no division (the
        posterior itself is the emission, and the frequency of a label counts twice).
    smoothing : float, default=0.1
        Added to the count of every legal first label and transition. A label that training shows only
        at the end of sequences is followed by labels in proportion to their overall frequency.
    constraints : str, Mask or None, default="auto"
        Structural zeros: transitions that are not allowed have probability exactly 0. None allows all;
        "seen", those in the training data; the name of a tag scheme ("IOB2") or a
        `seqlab.inference.Mask` over ``classes_``, what it allows. With "auto", open/close decisions
        (`seqlab.data.open_close`) follow their state diagram; for other labels, a transition is impossible
        if training does not show it although independent labels would show it ten times. Occurrences
        are counted without sample weights.
    calibrate : {"auto", "sigmoid", "isotonic"} or None, default="auto"
        Method of ``CalibratedClassifierCV``, which wraps the classifier; None does not wrap it. "auto" uses
        "sigmoid" for a classifier without ``predict_proba``.
    n_jobs : int, default=None
        Threads of prediction; with several, the classifier is called from several threads.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    classifier_ : fitted classifier, or None if training shows a single label
        A list of two if the chain alternates between two sets of labels.
    transitions_ : array of shape (n_labels, n_labels)
        Probability of each label (column) after each (row); exactly 0 if impossible.
    start_ : array of shape (n_labels,)
        Probability of each label at the first step.
    may_end_ : boolean array of shape (n_labels,)
        Which labels may be last.
    marginal_ : array of shape (n_labels,)
        Frequency of the labels in training.
    posteriors_ : list of StepPosteriors
        The classifiers with their columns in the order of ``classes_``.

    See Also
    --------
    ProjectionMarkovModel : one classifier per previous label.
    IndependentLabeler : the classifier alone.

    Notes
    -----
    `predict_proba` runs forward-backward over the same scores. The result is ``P(s_t | all observations)``
    if the steps are independent given their labels. A classifier whose features come from neighbouring
    steps uses the same evidence more than once; its results are a ranking rather than calibrated
    probabilities. The scores of `predict_nbest` are the formula above, not normalised.

    A label that cannot occur at step t (``P_t(s) = 0``, such as a close decision in the place of an open
    decision) is forbidden there. If no label can occur both at even and at odd positions, each of the
    two sets of labels has its own classifier (one for open decisions, one for close decisions).

    A classifier without position features learns the label frequencies of all steps together. For it,
    ``divide_by_prior="marginal"`` may be better, especially if every sequence begins with the same label.

    Posteriors are kept above 1e-12. Decoding costs O(T L^2) for T steps and L labels.

    References
    ----------
    Punyakanok & Roth (2000), *The use of classifiers in sequential inference*.

    Examples
    --------
    >>> from sklearn.naive_bayes import BernoulliNB
    >>> from seqlab import ClassifierHMM
    >>> X = [[["w=the"], ["w=dog"], ["w=barks"]], [["w=dogs"], ["w=bark"]]]
    >>> y = [["DET", "NOUN", "VERB"], ["NOUN", "VERB"]]
    >>> model = ClassifierHMM(BernoulliNB()).fit(X, y)
    >>> model.predict([[["w=the"], ["w=cat"], ["w=barks"]]])
    [array(['DET', 'NOUN', 'VERB'], dtype='<U4')]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **CLASSIFIER_CONSTRAINTS,
        "divide_by_prior": ["boolean", StrOptions({"propagated", "marginal"})],
        "smoothing": [Interval(Real, 0, None, closed="left")],
        "constraints": CONSTRAINTS,
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        classifier: Any = None,
        *,
        divide_by_prior: bool | str = "propagated",
        smoothing: float = 0.1,
        constraints: str | Mask | None = "auto",
        calibrate: str | None = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.classifier = classifier
        self.divide_by_prior = divide_by_prior
        self.smoothing = smoothing
        self.constraints = constraints
        self.calibrate = calibrate
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, lengths: Any = None
    ) -> ClassifierHMM:
        """Fit the classifier on all steps and count the transitions.

        Parameters
        ----------
        X, y, lengths : see `LinearChainCRF.fit`
        sample_weight : array of shape (n_sequences,) or (n_steps,), optional
            The classifier must accept sample weights.
        """
        return self._fit(X, y, sample_weight, lengths)

    def _learn(self, data: TrainingData) -> None:
        offsets = data.X.offsets
        classifier = prepare_classifier(self.classifier, self.calibrate)
        counts = count_chain(data.codes, offsets, data.sequence_weights, self.classes_.size)
        legal = find_legal_transitions(self, data)
        chain = estimate_chain(fill_empty_rows(counts), legal, self.smoothing, with_end=False)
        self.start_, self.transitions_, _ = chain
        self.may_end_ = legal.end
        position = np.arange(offsets[-1]) - np.repeat(offsets[:-1], data.X.lengths)
        weights, groups = weights_and_groups(data)
        n_kinds = 2 if is_alternating(self.start_ > 0, self.transitions_ > 0) else 1
        self.posteriors_ = []
        for kind in range(n_kinds):
            rows = np.flatnonzero(position % n_kinds == kind)
            fitted = fit_posteriors(
                classifier,
                data.X.matrix[rows] if n_kinds > 1 else data.X.matrix,
                data.codes[rows],
                self.classes_,
                weights=None if weights is None else weights[rows],
                groups=groups[rows],
                place="" if n_kinds == 1 else f" at {('even', 'odd')[kind]} positions",
            )
            self.posteriors_.append(fitted)
        labels = np.bincount(data.codes, data.step_weights, self.classes_.size)
        self.marginal_ = labels / labels.sum()

    @property
    def classifier_(self) -> Any:
        """The fitted classifier, or the two of an alternating chain; None for a single label."""
        fitted = [each.classifier for each in self.posteriors_]
        return fitted[0] if len(fitted) == 1 else fitted

    def _check_state(self) -> None:
        super()._check_state()
        if not state_checks.has_fitted_attributes(self):
            return
        n_labels = self.classes_.size
        self._check_chain()
        state_checks.check_array(self.may_end_, "may_end_", (n_labels,), "b")
        state_checks.check_array(self.marginal_, "marginal_", (n_labels,), low=0, high=1 + 1e-6)
        for name in ("start_", "transitions_"):
            array = getattr(self, name)
            state_checks.check_array(array, name, array.shape, low=0, high=1 + 1e-6)
        state_checks.check_list(self.posteriors_, "posteriors_", StepPosteriors)
        state_checks.require(len(self.posteriors_) in (1, 2), "posteriors_")
        for posteriors in self.posteriors_:
            posteriors.check_classifier(self.n_features_in_, n_labels)

    def _prepare_scoring(self, X: Sequences) -> Any:
        return self._log_prior(int(X.lengths.max(initial=0)))

    def _block_scores(self, block: SequenceBlock, prepared: Any) -> ChainScores:
        position = block.positions
        proba = self._posteriors(block.matrix[block.steps], position, block.offsets)
        # Also for labels that the classifier was not trained on: only the chain forbids labels.
        unary = np.log(np.maximum(proba, MIN_POSTERIOR))
        if prepared is not None:
            divisor = prepared.at(position)
            # A label that is impossible here is forbidden, not divided by 0.
            unary = np.where(np.isneginf(divisor), -np.inf, unary - divisor)
        return ChainScores(
            unary,
            log_or_forbidden(self.transitions_),
            log_or_forbidden(self.start_),
            log_or_forbidden(self.may_end_),
            block.offsets,
        )

    def _posteriors(
        self, matrix: Any, position: NDArray[np.int64], offsets: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return ``P(label | step)`` of some sequences, from the classifier of each position."""
        steps = np.arange(position.size)
        if len(self.posteriors_) == 1:
            return self.posteriors_[0].proba(matrix, steps, offsets)
        out = np.zeros((position.size, self.classes_.size))
        for kind, posteriors in enumerate(self.posteriors_):
            rows = steps[position % len(self.posteriors_) == kind]
            out[rows] = posteriors.proba(matrix[rows], rows, offsets)
        return out

    def _log_prior(self, longest: int) -> PositionTable | None:
        """Return the log-prior to divide by at each position, None for no division."""
        if self.divide_by_prior == "marginal":
            # The frequency is 0 for a label that occurs only with weight 0.
            marginal = np.maximum(self.marginal_, MIN_PRIOR)
            return PositionTable(np.log(marginal)[np.newaxis], period=1)
        if self.divide_by_prior:  # True or "propagated"
            return propagate_prior(self.start_, self.transitions_, longest)
        return None
