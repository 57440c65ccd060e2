"""ProjectionMarkovModel: one classifier per previous label.

    P(s | o) = P_1(s_1 | o_1) prod_{t>1} P_{s_{t-1}}(s_t | o_t)

with a classifier ``P_{s'}`` trained on the steps that follow label ``s'``, and another, ``P_1``, trained on
first steps.

References
----------
Punyakanok and Roth, "The use of classifiers in sequential inference", NIPS 2000.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from seqlab.data import state_checks
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.inference import ChainScores, Mask
from seqlab.learning import TrainingData
from seqlab.models._posteriors import CLASSIFIER_CONSTRAINTS, prepare_classifier
from seqlab.models._structural_zeros import CONSTRAINTS, find_legal_transitions, log_or_forbidden
from seqlab.models.chain_labeler import ChainLabeler, DistributionMixin
from seqlab.models.combinators._projections import Projections, fit_projections
from seqlab.models.combinators._propagation import find_reachable


class ProjectionMarkovModel(DistributionMixin, ChainLabeler):
    """Markov model with one classifier per previous label.

    ``P(s | o) = P_1(s_1 | o_1) prod_{t>1} P(s_t | s_{t-1}, o_t)``: each label has a classifier of the steps
    that follow it (its *projection*), and first steps have another.

    Parameters
    ----------
    classifier : scikit-learn classifier, default=None
        Cloned for every projection. None stands for ``LogisticRegression(max_iter=1000)``.
    smoothing : float, default=1e-3
        Total probability, in equal parts, of the legal labels that the training steps of a projection do
        not show. In a projection with a single label, that label has probability ``1 - smoothing``. With
        0, a label that training does not show after another cannot follow it.
    constraints : str, Mask or None, default="auto"
        Structural zeros: transitions that are not allowed have probability exactly 0. "auto", "seen", a
        tag scheme, a `seqlab.inference.Mask` or None (all are allowed), as in `ClassifierHMM`. A label
        with a single legal successor needs no classifier.
    calibrate : {"auto", "sigmoid", "isotonic"} or None, default="auto"
        Method of ``CalibratedClassifierCV``, which wraps the classifiers; None does not wrap them. "auto"
        uses "sigmoid" for a classifier without ``predict_proba``.
    n_jobs : int, default=None
        Projections fitted in parallel, and threads of prediction.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    classifiers_ : list of length n_labels + 1
        Fitted classifiers by previous label, then the one of first steps; None if none is needed.
    projections_ : Projections
        The classifiers, together with the distributions that need no classifier.
    may_follow_ : boolean array of shape (n_labels, n_labels)
        Which labels (columns) may follow which (rows).
    may_start_, may_end_ : boolean arrays of shape (n_labels,)
        Which labels may be first and last.

    See Also
    --------
    ClassifierHMM : one classifier for all steps, and transition frequencies.
    MEMM : the previous labels as features of one classifier.

    Notes
    -----
    The model is normalised at each step, so later observations cannot change the probability of an
    earlier label (label bias): if a label has a single legal successor, the observation has no effect. A
    label that nothing follows in training is followed by labels in proportion to their overall frequency.
    If some labels cannot be last (open/close decisions), the probabilities are conditional on a last
    label that can.

    Every step is used once in training; decoding costs L classifier calls per step and O(T L^2).
    Posteriors are kept above 1e-12.

    References
    ----------
    Punyakanok & Roth (2000), *The use of classifiers in sequential inference*.

    Examples
    --------
    >>> from sklearn.naive_bayes import BernoulliNB
    >>> from seqlab import ProjectionMarkovModel
    >>> X = [[["w=the"], ["w=dog"], ["w=barks"]], [["w=the"], ["w=old"], ["w=dog"]]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "ADJ", "NOUN"]]
    >>> model = ProjectionMarkovModel(BernoulliNB()).fit(X, y)
    >>> model.predict([[["w=the"], ["w=dog"], ["w=barks"]]])
    [array(['DET', 'NOUN', 'VERB'], dtype='<U4')]
    >>> [each is not None for each in model.classifiers_]  # only DET is followed by two labels
    [False, True, False, False, False]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **CLASSIFIER_CONSTRAINTS,
        "smoothing": [Interval(Real, 0, 1, closed="left")],
        "constraints": CONSTRAINTS,
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        classifier: Any = None,
        *,
        smoothing: float = 1e-3,
        constraints: str | Mask | None = "auto",
        calibrate: str | None = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.classifier = classifier
        self.smoothing = smoothing
        self.constraints = constraints
        self.calibrate = calibrate
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, lengths: Any = None
    ) -> ProjectionMarkovModel:
        """Fit a classifier on every projection.

        Parameters
        ----------
        X, y, lengths : see `LinearChainCRF.fit`
        sample_weight : array of shape (n_sequences,) or (n_steps,), optional
            The classifier must accept sample weights.
        """
        return self._fit(X, y, sample_weight, lengths)

    def _learn(self, data: TrainingData) -> None:
        classifier = prepare_classifier(self.classifier, self.calibrate)
        legal = find_legal_transitions(self, data)
        options: Any = {"smoothing": self.smoothing, "n_jobs": self.n_jobs}
        self.projections_ = fit_projections(classifier, data, data.X.matrix, legal, **options)
        self.may_start_, self.may_follow_, self.may_end_ = legal

    @property
    def classifiers_(self) -> list[Any]:
        """Fitted classifiers by previous label, then the one of first steps."""
        return self.projections_.classifiers

    def _check_state(self) -> None:
        super()._check_state()
        if not state_checks.has_fitted_attributes(self):
            return
        n_labels = self.classes_.size
        for name in ("may_start_", "may_end_"):
            state_checks.check_array(getattr(self, name), name, (n_labels,), "b")
        state_checks.check_array(self.may_follow_, "may_follow_", (n_labels, n_labels), "b")
        projections = state_checks.check_type(self.projections_, "projections_", Projections)
        projections.check_classifiers(self.n_features_in_, n_labels)

    def _prepare_scoring(self, X: Sequences) -> Any:
        return find_reachable(self.may_start_, self.may_follow_, int(X.lengths.max(initial=0)))

    def _block_scores(self, block: SequenceBlock, prepared: Any) -> ChainScores:
        n_labels, offsets = self.classes_.size, block.offsets
        matrix, steps = block.matrix[block.steps], np.arange(block.n_steps)
        position = block.positions
        first_steps = offsets[:-1][np.diff(offsets) > 0]
        proba = self.projections_.proba(n_labels, matrix[first_steps], first_steps, offsets)
        unary = np.zeros((steps.size, n_labels))
        unary[first_steps] = log_or_forbidden(proba)
        pairwise = np.zeros((steps.size, n_labels, n_labels))
        later = np.flatnonzero(position > 0)
        # Only for steps before which the label is possible: every second step, for an open decision.
        before = prepared.at(position[later] - 1)
        for label in range(n_labels):
            rows = later[before[:, label]]
            if rows.size == later.size:
                pairwise[:, label] = self.projections_.proba(label, matrix, steps, offsets)
            elif rows.size:
                found = self.projections_.proba(label, matrix[rows], rows, offsets)
                pairwise[rows, label] = found
        end = log_or_forbidden(self.may_end_)
        return ChainScores(unary, log_or_forbidden(pairwise), None, end, offsets)

    def _pairwise_per_step(self) -> bool:
        return True
