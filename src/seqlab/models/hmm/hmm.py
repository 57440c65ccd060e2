"""HMM: the hidden Markov model, learned from labels by counting.

    P(x, y) = P(y_1) prod_t P(y_t | y_{t-1}) prod_t P(x_t | y_t)

Parameter estimation, with EM for missing labels, is in `_em`, emissions are in `_emissions`, the Markov
chain is in `seqlab.models._markov`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from seqlab import inference
from seqlab.data import state_checks
from seqlab.data.convert import Layout
from seqlab.data.errors import InputError
from seqlab.data.labels import decode_labels
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.features.vectorizer import SequenceVectorizer
from seqlab.inference import ChainScores, Mask
from seqlab.learning import FitProgress, FitResult, TrainingData
from seqlab.models._markov import MarkovChain
from seqlab.models._structural_zeros import CONSTRAINTS, find_legal_transitions, log_or_forbidden
from seqlab.models.base import LIMIT_CONSTRAINTS
from seqlab.models.chain_labeler import ChainLabeler, DistributionMixin
from seqlab.models.hmm._discrete_emissions import (
    BernoulliEmissions,
    CategoricalEmissions,
    MultinomialEmissions,
    SmoothedEmissions,
)
from seqlab.models.hmm._em import HMMParameters, HMMScorer, HMMTrainer, TrainingPart
from seqlab.models.hmm._emissions import check_not_infinite, choose_emissions
from seqlab.models.hmm._gaussian_emissions import (
    FullGaussianEmissions,
    GaussianEmissions,
    NormalEmissions,
    overall_moments,
)
from seqlab.models.hmm._symbols import SymbolVectorizer, wrap_strings


class HMM(DistributionMixin, ChainLabeler):
    """Hidden Markov model, estimated from labelled sequences by counting.

    Parameters
    ----------
    emissions : {"auto", "categorical", "bernoulli", "multinomial", "gaussian"}, default="auto"
        Distribution of an observation given its label:

        - "categorical": one symbol per step, or several columns of symbols, independent given the label.
          Steps are strings, dicts of strings, or whole numbers in columns; or rows of zeros with a single 1.
        - "bernoulli": many binary features, each on if it is not 0. Sparse matrices stay sparse.
        - "multinomial": counts of events.
        - "gaussian": numbers, normal given the label.

        "auto" is "categorical" for strings and for dicts of strings. For numbers, it is "bernoulli" if all
        are 0 or 1 ("categorical" if every step has a single 1), "multinomial" for whole numbers that are
        not negative ("categorical" if there is one column, "gaussian" if some are missing), and "gaussian"
        otherwise.
    smoothing : float, default=0.1
        Added to every count of a first label, of a transition, of a symbol. 0 gives relative frequencies.
    emission_smoothing : float or None, default=None
        Added to the counts of symbols instead of ``smoothing``.
    constraints : str, Mask or None, default=None
        Structural zeros: forbidden transitions have probability exactly 0, and probabilities are normalised
        over the legal ones. "seen" allows only first labels and transitions that training shows (after a
        label that nothing followed: every label). "auto" also allows unseen ones if there are too few data
        to decide. Or the name of a tag scheme ("IOB2"), or a `seqlab.inference.Mask` over ``classes_``.
    model_end : bool, default=False
        Whether each label has a probability of being the last: the probabilities of sequences of all
        lengths then sum to 1. Otherwise the length is given.
    covariance : {"diag", "full"}, default="diag"
        For "gaussian": whether features are independent given the label ("diag").
    variance_floor : float, default=1e-3
        For "gaussian": smallest variance given a label, as a fraction of the feature's overall variance.
    allow_missing : bool, default=False
        Whether NaN may stand for a missing number, whose factor is left out. Not for counts
        ("multinomial") or ``covariance="full"``. A symbol may always be None.
    max_iter : int, default=100
        Maximum number of passes over the data if labels are missing; otherwise there is one pass.
    tol : float, default=1e-4
        If labels are missing: stop if the objective decreases by less than this fraction of itself.
    max_seconds : float or None, default=None
        If labels are missing: training stops after the pass in which this time is exceeded, with a warning
        and ``converged_ = False``.
    callback : callable or None, default=None
        Called after every pass with a `seqlab.learning.FitProgress`; training stops if it returns True.
        `seqlab.save` leaves it out.
    n_jobs : int, default=None
        Threads; the result has the same bits for any number of threads.
    verbose : bool, default=False
        Show progress on standard error.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    start_ : array of shape (n_labels,)
        Probability of each label at the first step.
    transitions_ : array of shape (n_labels, n_labels)
        Probability of the next label (column) after a label (row). A row is zero if no label may follow.
    end_ : array of shape (n_labels,) or None
        With ``model_end``, the probability that the sequence ends after each label; a row of
        ``transitions_`` then sums to 1 minus this value.
    may_end_ : boolean array of shape (n_labels,)
        Labels that may be the last.
    emissions_ : object
        The distribution of observations, with ``probabilities`` (of each feature or symbol given each
        label; for categorical emissions a list with one array per column, whose last entry is for unseen
        symbols), or ``means`` and ``variances`` (``covariances``).
    emission_kind_ : str
        The kind of emissions, chosen by "auto" or given.
    n_iter_ : int
        Passes over the data; 1 if all labels are known.
    converged_ : bool
    history_ : dict of str to list
        iteration, objective (negative sum of log-likelihood and log-prior), seconds, log_likelihood.

    See Also
    --------
    LinearChainCRF : the conditional counterpart, which handles overlapping features.

    Notes
    -----
    One pass costs O(T F) for T steps with F active features; decoding O(T L^2).

    For semi-supervised learning, labels may be unknown (``None``) or partly known (a set of labels), at
    some steps of a sequence or at all of them (``[None] * n_steps``). EM starts from the known labels, whose
    counts never change. A smaller ``sample_weight`` reduces the influence of unlabelled sequences. EM cannot
    distinguish two labels if no step of either is known.

    An unseen symbol has the probability ``e / (c(s) + e (V + 1))`` given label s, if training shows c(s)
    symbols with s and V different symbols. Without smoothing its probability is 0, and a sequence that
    contains it raises an error.

    References
    ----------
    Rabiner (1989), *A tutorial on hidden Markov models and selected applications in speech recognition*.
    Merialdo (1994), *Tagging English text with a probabilistic model*.

    Examples
    --------
    >>> from seqlab import HMM
    >>> X = [["walk", "shop", "clean"], ["clean", "clean", "shop"], ["walk", "walk"]]
    >>> y = [["sun", "rain", "rain"], ["rain", "rain", "rain"], ["sun", "sun"]]
    >>> hmm = HMM(smoothing=0.5).fit(X, y)
    >>> hmm.predict([["walk", "shop"]])
    [array(['sun', 'rain'], dtype='<U4')]
    >>> hmm.transitions_.round(2)
    array([[0.88, 0.12],
           [0.5 , 0.5 ]])
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "emissions": [StrOptions({"auto", "categorical", "bernoulli", "multinomial", "gaussian"})],
        "smoothing": [Interval(Real, 0, None, closed="left")],
        "emission_smoothing": [Interval(Real, 0, None, closed="left"), None],
        "constraints": CONSTRAINTS,
        "model_end": ["boolean"],
        "covariance": [StrOptions({"diag", "full"})],
        "variance_floor": [Interval(Real, 0, None, closed="neither")],
        "allow_missing": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        **LIMIT_CONSTRAINTS,
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    _accepts_partial_labels = True
    emissions_: Any

    def __init__(
        self,
        *,
        emissions: str = "auto",
        smoothing: float = 0.1,
        emission_smoothing: float | None = None,
        constraints: str | Mask | None = None,
        model_end: bool = False,
        covariance: str = "diag",
        variance_floor: float = 1e-3,
        allow_missing: bool = False,
        max_iter: int = 100,
        tol: float = 1e-4,
        max_seconds: float | None = None,
        callback: Callable[[FitProgress], Any] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.emissions = emissions
        self.smoothing = smoothing
        self.emission_smoothing = emission_smoothing
        self.constraints = constraints
        self.model_end = model_end
        self.covariance = covariance
        self.variance_floor = variance_floor
        self.allow_missing = allow_missing
        self.max_iter = max_iter
        self.tol = tol
        self.max_seconds = max_seconds
        self.callback = callback
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.allow_missing
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, lengths: Any = None) -> HMM:
        """Estimate the parameters by counting, or by EM if labels are missing.

        Parameters
        ----------
        X : list of sequences
            As in `LinearChainCRF.fit`; steps may also be plain strings, one symbol each (None if
            missing).
        y : list of label sequences
            ``None`` for an unknown label, a set for a partly known one.
        sample_weight : array of shape (n_sequences,), optional
            Weight of each sequence. With one weight per step, a sequence has the mean of its steps.
        lengths : list of int, optional
            Steps per sequence, if X is one stacked matrix.
        """
        return self._fit(X, y, sample_weight, lengths)

    def _learn(self, data: TrainingData) -> FitResult:
        emissions = self._new_emissions(data)
        matrix = emissions.prepare(data.X, training=True)
        weights, numbers = data.sequence_weights, np.arange(len(data.X))
        part = TrainingPart(matrix, data.X.offsets, data.codes, data.allowed, weights, numbers)
        legal = find_legal_transitions(self, data, with_end=self.model_end)
        trainer = HMMTrainer(part, legal, self.smoothing, self.model_end, self.n_jobs)
        smoothing = self.smoothing if self.emission_smoothing is None else self.emission_smoothing
        self.may_end_ = legal.end

        def store(parameters: HMMParameters) -> None:
            chain, self.emissions_ = parameters
            self.start_, self.transitions_, self.end_ = chain

        states = trainer.run(emissions, smoothing, self.tol)
        return self._train(states, data, store, tol=self.tol, unit="passes")

    def _new_vectorizer(self) -> Any:
        if self.emissions in ("auto", "categorical"):
            return SymbolVectorizer(fallback=self.emissions == "auto")
        return SequenceVectorizer()

    def _allows_missing(self) -> bool:
        return self.allow_missing

    def _read_training(self, X: Any, y: Any, sample_weight: Any, lengths: Any) -> TrainingData:
        wrapped = wrap_strings(X, stacked=lengths is not None)
        data = super()._read_training(wrapped, y, sample_weight, lengths)
        if isinstance(self.vectorizer_, SymbolVectorizer) and self.vectorizer_.inner_:
            self.vectorizer_ = self.vectorizer_.inner_
        return data

    def _read(self, X: Any, lengths: Any = None) -> tuple[Sequences, Layout]:
        return super()._read(wrap_strings(X, stacked=lengths is not None), lengths)

    def _new_emissions(self, data: TrainingData) -> Any:
        """Return the distribution for the data, before its parameters are estimated."""
        check_not_infinite(data.X)
        symbols = self.vectorizer_ if isinstance(self.vectorizer_, SymbolVectorizer) else None
        self.emission_kind_ = self.emissions
        if self.emissions == "auto":
            self.emission_kind_ = "categorical" if symbols else choose_emissions(data.X.matrix)
        X, n_labels = data.X, self.classes_.size
        if self.emission_kind_ == "categorical":
            n_symbols = [len(v) for v in symbols.vocabularies_] if symbols else None
            return CategoricalEmissions.for_data(X, n_labels, 0.0, n_symbols=n_symbols)
        if self.emission_kind_ == "bernoulli":
            return BernoulliEmissions(n_labels, 0.0)
        if self.emission_kind_ == "multinomial":
            return MultinomialEmissions.for_data(X, n_labels, 0.0)
        gaussian = GaussianEmissions if self.covariance == "diag" else FullGaussianEmissions
        step_weights = np.repeat(data.sequence_weights, X.lengths)
        return gaussian(n_labels, self.variance_floor, *overall_moments(X, step_weights))

    def _check_state(self) -> None:
        super()._check_state()
        if not state_checks.has_fitted_attributes(self):
            return
        n_labels, n_features = self.classes_.size, self.n_features_in_
        self._check_chain()
        state_checks.check_array(self.may_end_, "may_end_", (n_labels,), "b")
        for name in ("start_", "transitions_", "end_"):
            if name != "end_" or self.end_ is not None:
                shape = (n_labels, n_labels) if name == "transitions_" else (n_labels,)
                state_checks.check_array(getattr(self, name), name, shape, low=0, high=1 + 1e-6)
        emissions = state_checks.check_type(
            self.emissions_, "emissions_", SmoothedEmissions, NormalEmissions
        )
        state_checks.require(emissions.n_labels == n_labels, "emissions_")
        state_checks.require(emissions.n_features == n_features, "emissions_")

    def _vectorizer_columns(self) -> int:
        if isinstance(self.vectorizer_, SymbolVectorizer):
            return len(self.vectorizer_.fields_)
        return super()._vectorizer_columns()

    def _prepare_scoring(self, X: Sequences) -> HMMScorer:
        parameters = HMMParameters(
            MarkovChain(self.start_, self.transitions_, self.end_), self.emissions_
        )
        matrix = self.emissions_.prepare(X, training=False)
        return HMMScorer(parameters, self.may_end_, matrix, X.offsets)

    def _block_scores(self, block: SequenceBlock, prepared: HMMScorer) -> ChainScores:
        return prepared.scores(block.first, block.last)

    def log_likelihood(self, X: Any, y: Any = None, *, lengths: Any = None) -> NDArray[np.float64]:
        """Log-probability of each sequence of observations, or of observations and labels.

        Parameters
        ----------
        X, lengths : see `predict`
        y : list of label sequences, optional
            If given, the result is ``log P(x, y)``, summed over all labelings that agree with known and
            partly known labels; otherwise ``log P(x)``.

        Returns
        -------
        array of shape (n_sequences,)
            Log-densities if the emissions are Gaussian. If the end is not modelled, constraints on the
            last label count as observed.
        """
        if isinstance(X, Iterator):  # it is read twice
            X = list(X)
        sequences, _ = self._read(X, lengths)
        blocks = self._run(sequences, lambda scores, *_: inference.log_partition(scores), None)
        found = np.concatenate([np.zeros(0), *blocks])
        return found if y is None else found + self.sequence_log_proba(X, y, lengths=lengths)

    def sample(
        self, n: int = 1, lengths: Any = None, random_state: Any = None
    ) -> tuple[list[Any], list[NDArray[Any]]]:
        """Draw sequences with their labels.

        Parameters
        ----------
        n : int, default=1
            Number of sequences.
        lengths : int or list of int, optional
            Steps of all sequences, or of each. By default they are drawn, which needs ``model_end=True``.
        random_state : int, RandomState or None

        Returns
        -------
        X : list of sequences
            In the form of the training data: strings, bags or dicts, otherwise arrays or CSR matrices.
        y : list of label arrays
        """
        check_is_fitted(self)
        if not isinstance(n, Integral) or n < 0:
            raise InputError(f"n must be a whole number of at least 0, got {n!r}")
        random = check_random_state(random_state)
        if lengths is None:
            lengths = self._sample_lengths(int(n), random)
        given = np.asarray(lengths)
        if given.dtype.kind not in "iu" or given.shape not in ((), (n,)) or (given < 0).any():
            raise InputError(
                f"lengths must be a whole number, or one for each of the {n} sequences"
            )
        offsets = np.concatenate([[0], np.cumsum(np.broadcast_to(given, n))]).astype(np.int64)
        unary = np.zeros((int(offsets[-1]), self.classes_.size))
        end = self.may_end_.astype(np.float64) if self.end_ is None else self.end_
        log_chain = map(log_or_forbidden, (self.transitions_, self.start_, end))
        codes = inference.sample(ChainScores(unary, *log_chain, offsets), 1, random)[0]
        X = Sequences(self.emissions_.sample(codes, random), offsets)
        labels = X.split(decode_labels(codes, self.classes_))
        if isinstance(self.vectorizer_, SymbolVectorizer):
            return [self.vectorizer_.steps(one) for one in X], labels
        if self.vectorizer_ is not None:
            return self.vectorizer_.inverse_transform(X), labels
        return list(X), labels

    def _sample_lengths(self, n: int, random: np.random.RandomState) -> NDArray[np.int64]:
        if self.end_ is None:
            raise InputError("give the lengths of the sequences, or fit with model_end=True")
        lengths = np.zeros(n, dtype=np.int64)
        unfinished = np.arange(n)
        # The distribution of the current label is the same for all sequences that have not ended.
        labels = self.start_
        while unfinished.size:
            lengths[unfinished] += 1
            p_end = float(labels @ self.end_)
            unfinished = unfinished[random.random_sample(unfinished.size) >= p_end]
            labels = labels @ self.transitions_
            labels = labels / (labels.sum() or 1.0)
        return lengths
