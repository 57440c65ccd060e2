"""MEMM: the maximum-entropy Markov model, with any classifier and any length of history.

    P(y | x) = prod_t p(y_t | y_{t-1}, ..., y_{t-k}, x_t)

References
----------
McCallum, Freitag and Pereira, "Maximum entropy Markov models for information extraction and
segmentation", ICML 2000. Ratnaparkhi, "A maximum entropy model for part-of-speech tagging", EMNLP 1996
(beam search over histories).
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.inference import ChainScores, Mask
from seqlab.inference.history_beam import check_history, history_beam, history_codes
from seqlab.learning import TrainingData
from seqlab.metrics.threshold import MinError, min_error_threshold
from seqlab.models._markov import LegalTransitions
from seqlab.models._posteriors import (
    CLASSIFIER_CONSTRAINTS,
    fit_posteriors,
    prepare_classifier,
    weights_and_groups,
)
from seqlab.models.chain_labeler import ChainLabeler, DistributionMixin
from seqlab.models.combinators._history import HistoryColumns, LocalModel
from seqlab.models.combinators._projections import Projections, fit_projections

# With at most this many histories, "auto" decodes exactly. Larger: slower, but exact for more models.
EXACT_HISTORIES = 100


def _is_chain(self: MEMM) -> bool:
    return self.history <= 1


def _decodes_by_chain(self: MEMM) -> bool:
    return self.history <= 1 and self.decoding != "beam"


class MEMM(DistributionMixin, ChainLabeler):
    """Maximum-entropy Markov model: a classifier with the previous labels as features.

    ``P(y | x) = prod_t p(y_t | y_{t-1}, ..., y_{t-k}, x_t)``, trained with the true previous labels and
    decoded over the predicted ones.

    Parameters
    ----------
    classifier : scikit-learn classifier, default=None
        The local model. None stands for ``LogisticRegression(max_iter=1000)``, the maximum-entropy model.
    history : int, default=1
        Number of previous labels that the classifier sees; 0 is the classifier alone.
    transitions : {"feature", "models"}, default="feature"
        Previous labels as additional columns of one classifier, or one classifier per previous label
        (earlier labels, if any, remain columns).
    conjunction : bool, default=False
        With a history of two or more: adds a column for each combination of previous labels that
        training shows.
    decoding : {"auto", "viterbi", "beam"}, default="auto"
        Exact, or with the ``beam_width`` best histories at each step. "auto" is exact for up to 100
        possible histories, and always for a history of one label.
    beam_width : int, default=10
        Histories kept by the beam. Histories that agree in their last ``history`` labels count once.
    smoothing : float, default=1e-3
        With one model per previous label: total probability of labels that its training steps do not show.
    calibrate : {"auto", "sigmoid", "isotonic"} or None, default="auto"
        Method of ``CalibratedClassifierCV``, which wraps the classifier; None does not wrap it. "auto" uses
        "sigmoid" for a classifier without ``predict_proba``.
    n_jobs : int, default=None
        Models fitted in parallel (``transitions="models"``), and threads of exact decoding.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    classifier_ : fitted classifier, or list of them by previous label and for first steps
    local_ : LocalModel
        The classifier with its history columns.

    See Also
    --------
    ProjectionMarkovModel : one classifier per previous label, with structural zeros.
    LinearChainCRF : the same features normalised over whole labelings: no label bias.

    Notes
    -----
    `predict_proba` exists for a history of at most one label, `predict_nbest` and `decision_function` if
    decoding is also exact; `sequence_log_proba` and `local_proba` always exist.

    An MEMM is trained with true previous labels but predicts from its own. If labels come in long runs,
    it may learn to copy the previous one and never recover from a mistake. Fewer features do not help;
    `LinearChainCRF` or stacking do.

    Decoding costs O(T L^2) classifier rows for a history of one label (only O(T L) for a logistic
    regression, whose feature scores are the same for all histories) and O(T B L) with a beam of B.

    References
    ----------
    McCallum, Freitag & Pereira (2000), *Maximum entropy Markov models for information extraction and
    segmentation*. Ratnaparkhi (1996), *A maximum entropy model for part-of-speech tagging*.

    Examples
    --------
    >>> from seqlab import MEMM
    >>> X = [[["w=the"], ["w=dog"], ["w=barks"]], [["w=dogs"], ["w=bark"]]]
    >>> y = [["DET", "NOUN", "VERB"], ["NOUN", "VERB"]]
    >>> model = MEMM(history=2).fit(X, y)
    >>> model.predict([[["w=the"], ["w=cat"], ["w=sleeps"]]])
    [array(['DET', 'NOUN', 'VERB'], dtype='<U4')]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **CLASSIFIER_CONSTRAINTS,
        "history": [Interval(Integral, 0, None, closed="left")],
        "transitions": [StrOptions({"feature", "models"})],
        "conjunction": ["boolean"],
        "decoding": [StrOptions({"auto", "viterbi", "beam"})],
        "beam_width": [Interval(Integral, 1, None, closed="left")],
        "smoothing": [Interval(Real, 0, 1, closed="left")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        classifier: Any = None,
        *,
        history: int = 1,
        transitions: str = "feature",
        conjunction: bool = False,
        decoding: str = "auto",
        beam_width: int = 10,
        smoothing: float = 1e-3,
        calibrate: str | None = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.classifier = classifier
        self.history = history
        self.transitions = transitions
        self.conjunction = conjunction
        self.decoding = decoding
        self.beam_width = beam_width
        self.smoothing = smoothing
        self.calibrate = calibrate
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, lengths: Any = None) -> MEMM:
        """Fit the local model on all steps with their true previous labels.

        Parameters
        ----------
        X, y, lengths : see `LinearChainCRF.fit`
        sample_weight : array of shape (n_sequences,) or (n_steps,), optional
            The classifier must accept sample weights.
        """
        return self._fit(X, y, sample_weight, lengths)

    def _learn(self, data: TrainingData) -> None:
        n_labels = self.classes_.size
        check_history(n_labels, self.history)
        classifier = prepare_classifier(self.classifier, self.calibrate)
        by_previous = self.transitions == "models" and self.history > 0
        histories = history_codes(data.codes, data.X.offsets, n_labels, self.history)
        combined = self.conjunction and self.history > 1
        columns = HistoryColumns(
            n_labels,
            self.history,
            first_lag=2 if by_previous else 1,
            combinations=np.unique(histories) if combined else np.zeros(0, np.int64),
        )
        matrix = data.X.matrix
        if columns.n_columns:
            matrix = columns.append_to(matrix, histories)
        if by_previous:
            legal = LegalTransitions.unrestricted(n_labels)
            options: Any = {"smoothing": self.smoothing, "n_jobs": self.n_jobs}
            model: Any = fit_projections(classifier, data, matrix, legal, **options)
        else:
            weights, groups = weights_and_groups(data)
            model = fit_posteriors(
                classifier, matrix, data.codes, self.classes_, weights=weights, groups=groups
            )
        self.local_ = LocalModel(columns, model)

    @property
    def classifier_(self) -> Any:
        """The fitted classifier, or the list of them by previous label and for first steps."""
        model = self.local_.model
        return model.classifiers if isinstance(model, Projections) else model.classifier

    def _check_state(self) -> None:
        super()._check_state()
        if state_checks.has_fitted_attributes(self):
            local = state_checks.check_type(self.local_, "local_", LocalModel)
            local.check_classifiers(self.n_features_in_, self.classes_.size, self.history)

    def _block_scores(self, block: SequenceBlock, prepared: Any) -> ChainScores:
        n_labels, offsets = self.classes_.size, block.offsets
        steps = np.arange(block.n_steps)
        local = self.local_.bind(block.matrix[block.steps], offsets)
        if self.history == 0:
            unary = local(steps, np.zeros_like(steps))
            return ChainScores(unary, np.zeros((n_labels, n_labels)), offsets=offsets)
        first_steps = offsets[:-1][np.diff(offsets) > 0]
        unary = np.zeros((steps.size, n_labels))
        unary[first_steps] = local(first_steps, np.full_like(first_steps, n_labels))
        pairwise = np.zeros((steps.size, n_labels, n_labels))
        if first_steps.size < steps.size:
            for label in range(n_labels):
                pairwise[:, label] = local(steps, np.full_like(steps, label))
        return ChainScores(unary, pairwise, offsets=offsets)

    def _pairwise_per_step(self) -> bool:
        return self.history == 1

    def _predict(self, X: Sequences, mask: Mask | None = None) -> NDArray[np.int64]:
        if _decodes_by_chain(self) or self.history == 0:
            return super()._predict(X, mask)
        n_labels = self.classes_.size
        n_histories = n_labels**self.history
        exact = self.decoding == "viterbi" or (
            self.decoding == "auto" and n_histories <= EXACT_HISTORIES
        )
        width = n_histories if exact else self.beam_width
        local = self.local_.bind(X.matrix, X.offsets)
        return history_beam(local, X.offsets, n_labels, self.history, width, mask=mask).labels

    predict_proba = available_if(_is_chain)(DistributionMixin.predict_proba)
    predict_nbest = available_if(_decodes_by_chain)(ChainLabeler.predict_nbest)
    decision_function = available_if(_decodes_by_chain)(ChainLabeler.decision_function)

    def sequence_log_proba(self, X: Any, y: Any, *, lengths: Any = None) -> NDArray[np.float64]:
        """Log-probability of each given labeling.

        A labeling with a label that was not seen in training has probability 0 (``-inf``). With a
        history of at most one label, labels may be unknown or partly known: the probability is then
        the sum over all labelings that agree.

        Parameters
        ----------
        X, lengths : see `predict`
        y : list of label sequences

        Returns
        -------
        array of shape (n_sequences,)
        """
        if _is_chain(self):
            return super().sequence_log_proba(X, y, lengths=lengths)
        sequences, layout = self._read(X, lengths)
        codes = self._read_labels(y, sequences, layout).codes
        local = self._local_scores(sequences, np.maximum(codes, 0))
        at = np.where(codes >= 0, local[np.arange(codes.size), codes], -np.inf)
        owner = np.repeat(np.arange(len(sequences)), sequences.lengths)
        return np.bincount(owner, at, minlength=len(sequences)).astype(np.float64)

    def local_proba(self, X: Any, y: Any = None, *, lengths: Any = None) -> Any:
        """Probability of each label at each step, given the previous labels.

        Parameters
        ----------
        X, lengths : see `predict`
        y : list of label sequences, optional
            The previous labels; by default those that `predict` returns.

        Returns
        -------
        list of arrays of shape (n_steps, n_labels), or one stacked array if X is stacked
            Columns in the order of ``classes_``. These are not marginals; see `predict_proba`.
        """
        sequences, layout = self._read(X, lengths)
        if y is None:
            codes = self._predict(sequences)
        else:
            codes = self._read_labels(y, sequences, layout).codes
            if (codes < 0).any():
                sequence, position = sequences.locate(int(np.argmin(codes)))
                raise InputError(f"y[{sequence}][{position}] is not a label of this model")
        proba = np.exp(self._local_scores(sequences, codes))
        return layout.restore(proba, sequences.offsets)

    def min_error(self, X: Any, y: Any, *, pos_label: Any = None, lengths: Any = None) -> MinError:
        """Smallest error of any threshold on the probability of the positive label, for two labels.

        The probability is that of `local_proba`, given the *predicted* previous label. The threshold is
        chosen on the given data, so the error is optimistic: it measures how well the model can separate
        the two labels.

        Parameters
        ----------
        X, lengths : see `predict`
        y : list of label sequences
        pos_label : label, optional
            By default the second of ``classes_``.

        Returns
        -------
        MinError
            ``error`` and ``threshold``, see `seqlab.metrics.min_error_threshold`.
        """
        sequences, layout = self._read(X, lengths)
        if self.classes_.size != 2:
            raise InputError(
                f"min_error needs a model with two labels, but this one has {self.classes_.size}"
            )
        positive = 1
        if pos_label is not None:
            matches = np.flatnonzero(self.classes_ == pos_label)
            if matches.size == 0:
                raise InputError(f"pos_label={pos_label!r} is not a label of this model")
            positive = int(matches[0])
        gold = self._read_labels(y, sequences, layout).codes
        proba = np.exp(self._local_scores(sequences, self._predict(sequences)))
        # A label that was not seen in training is not the positive one.
        return min_error_threshold(
            (gold == positive).astype(int).tolist(), proba[:, positive], pos_label=1
        )

    def _local_scores(self, X: Sequences, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return ``log P(label | step, history)`` of every step, with histories from ``codes``."""
        histories = history_codes(codes, X.offsets, self.classes_.size, self.history)
        return self.local_.bind(X.matrix, X.offsets)(np.arange(X.n_steps), histories)
