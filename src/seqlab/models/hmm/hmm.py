"""HMM: the hidden Markov model, learned from labels by counting.

    P(x, y) = P(y_1) prod_t P(y_t | y_{t-1}) prod_t P(x_t | y_t)

Where labels are missing, expectation-maximisation fills them in (see `_em`); emissions are in `_emissions`,
the Markov chain in `_markov`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from seqlab.data.convert import Layout
from seqlab.data.errors import InputError
from seqlab.data.labels import decode_labels
from seqlab.data.sequences import Sequences
from seqlab.features.vectorizer import SequenceVectorizer
from seqlab.inference import ChainScores, Mask, log_partition, sample
from seqlab.learning import Monitor
from seqlab.models._base import TrainingData
from seqlab.models._chain import ChainLabeler, DistributionMixin
from seqlab.models._markov import MarkovChain
from seqlab.models._structural_zeros import (
    LEGAL_CONSTRAINTS,
    find_legal_transitions,
    log_or_forbidden,
)
from seqlab.models.hmm._discrete_emissions import (
    BernoulliEmissions,
    CategoricalEmissions,
    MultinomialEmissions,
)
from seqlab.models.hmm._em import HMMFit, HMMParameters, Part, chain_scorer
from seqlab.models.hmm._emissions import Emissions, choose_emissions, refuse_infinite
from seqlab.models.hmm._gaussian_emissions import (
    FullGaussianEmissions,
    GaussianEmissions,
    overall_moments,
)
from seqlab.models.hmm._symbols import SymbolVectorizer, wrap_strings


class HMM(DistributionMixin, ChainLabeler):
    """Hidden Markov model, from labelled sequences by counting.

    Parameters
    ----------
    emissions : {"auto", "categorical", "bernoulli", "multinomial", "gaussian"}, default="auto"
        What an observation is, given its label:

        - "categorical": one symbol per step, or several columns of symbols, independent given the label.
          Steps are strings, dicts of strings, or whole numbers in columns; or rows of zeros with a single 1.
        - "bernoulli": many binary features, each on where it is not 0. Sparse matrices stay sparse.
        - "multinomial": counts of events.
        - "gaussian": numbers, normal given the label.

        "auto" takes "categorical" for strings and for dicts of strings. For numbers: "bernoulli" where there
        is nothing but 0 and 1 ("categorical" where every step has a single 1), "multinomial" for whole
        numbers that are not negative ("categorical" where there is one column; "gaussian" where some are
        missing), else "gaussian".
    smoothing : float, default=0.1
        Added to every count of a first label, of a transition, of a symbol. 0 gives relative frequencies.
    emission_smoothing : float or None, default=None
        Added to the counts of symbols instead of ``smoothing``.
    constraints : str, Mask or None, default=None
        Structural zeros: what they forbid has probability exactly 0, and the rest is normalised over
        what is legal. "seen": only what was seen in training may come first or follow (a label that was
        never followed: anything); "auto": what was not seen is legal where the data are too few to tell;
        the name of a tag scheme ("IOB2"); or a `seqlab.inference.Mask` over ``classes_``.
    model_end : bool, default=False
        Whether being the last step is an event that each label has a probability of: then sequences of all
        lengths together have probability 1. Else the length is given.
    covariance : {"diag", "full"}, default="diag"
        Of "gaussian": features independent given the label, or not.
    variance_floor : float, default=1e-3
        Of "gaussian": least variance at a label, as a share of the feature's overall variance.
    allow_missing : bool, default=False
        Whether NaN may stand for a missing number: its factor is left out. Counts ("multinomial") and
        ``covariance="full"`` know none. (A symbol may always be None.)
    max_iter : int, default=100
        Passes over the data at most, where labels are missing; one pass does where none is.
    tol : float, default=1e-4
        Where labels are missing: stop when the objective gains less than this share of itself.
    n_jobs : int, default=None
        Threads; the result has the same bits for any number.
    verbose : bool, default=False
        Show progress on standard error.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    start_ : array of shape (n_labels,)
        Probability of each label at the first step.
    transitions_ : array of shape (n_labels, n_labels)
        Probability of the next label (column) after a label (row). A row is zero where nothing is legal.
    end_ : array of shape (n_labels,) or None
        Probability of each label being the last, with ``model_end``; a row of ``transitions_`` then sums
        to 1 less that.
    may_end_ : boolean array of shape (n_labels,)
        Labels that may be the last.
    emissions_ : object
        The distribution of observations, with ``probabilities`` (of each feature or symbol at each label;
        for categorical emissions a list with one array per column, the unseen symbol last), or
        ``means`` and ``variances`` (``covariances``).
    emission_kind_ : str
        What "auto" became.
    n_iter_ : int
        Passes over the data: 1 where all labels are known.
    converged_ : bool
    history_ : dict of str to list
        iteration, objective (what falls: log-likelihood and prior, negated), seconds, log_likelihood.

    See Also
    --------
    LinearChainCRF : the conditional counterpart; overlapping features do it no harm.

    Notes
    -----
    One pass costs O(T F) for T steps with F active features; decoding O(T L^2).

    Labels may be unknown (``None``) or partly known (a set of labels), some steps of a sequence or all of
    them (``[None] * n_steps``): semi-supervised learning. EM starts from the known labels, whose counts
    never change. Give the unlabelled sequences a smaller ``sample_weight`` to trust them less. EM cannot
    tell apart two labels of which no step is known.

    A symbol that was never seen has the probability ``e / (c(s) + e (V + 1))`` at label s, where c(s) symbols
    of V kinds were counted. Without smoothing it is impossible, and a sequence that has it an error.

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
        "constraints": LEGAL_CONSTRAINTS,
        "model_end": ["boolean"],
        "covariance": [StrOptions({"diag", "full"})],
        "variance_floor": [Interval(Real, 0, None, closed="neither")],
        "allow_missing": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    _accepts_partial_labels = True

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
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.allow_missing
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, lengths: Any = None) -> HMM:
        """Count, or run EM where labels are missing.

        Parameters
        ----------
        X : list of sequences
            As in `LinearChainCRF.fit`; steps may also be plain strings, one symbol each (None where it
            is missing).
        y : list of label sequences
            ``None`` for an unknown label, a set for a partly known one.
        sample_weight : array of shape (n_sequences,), optional
            Weight of each sequence. One weight per step is accepted too (a sequence then weighs the
            mean of its steps).
        lengths : list of int, optional
            Steps per sequence, where X is one stacked matrix.
        """
        with self._fitting():
            data = self._read_training(X, y, sample_weight, lengths)
            if isinstance(self.vectorizer_, SymbolVectorizer) and self.vectorizer_.inner_:
                self.vectorizer_ = self.vectorizer_.inner_
            legal = find_legal_transitions(self, data, with_end=self.model_end)
            emissions = self._new_emissions(data)
            part = Part(
                emissions.prepare(data.X, training=True),
                data.X.offsets,
                data.codes,
                data.allowed,
                data.sequence_weights,
                np.arange(len(data.X)),
            )
            problem = HMMFit(part, legal, self.smoothing, self.model_end, self.n_jobs)
            interrupted = self._run_passes(problem, emissions)
        if interrupted is not None:
            raise interrupted
        if not self.converged_:
            warnings.warn(
                f"HMM stopped after max_iter={self.max_iter} passes before reaching tol; raise max_iter "
                "or tol",
                ConvergenceWarning,
                stacklevel=3,  # from here over scikit-learn's wrapper to the caller
            )
        return self

    def _run_passes(self, problem: HMMFit, emissions: Emissions) -> KeyboardInterrupt | None:
        """Store state after state; return the interrupt that ended it, if one did."""
        smoothing = self.smoothing if self.emission_smoothing is None else self.emission_smoothing
        supervised = problem.data.allowed is None
        before = np.inf
        monitor = Monitor(type(self).__name__, self.max_iter, self.verbose, tol=self.tol)
        self.n_iter_, self.converged_, self.history_ = 0, False, monitor.history
        self.may_end_ = problem.legal.end
        try:
            with monitor:
                for n_iter, state in enumerate(problem.run(emissions, smoothing), 1):
                    self._store(state.parameters)
                    self.n_iter_ = n_iter
                    gain = before - state.objective
                    before = state.objective
                    monitor.record(n_iter, state.objective, log_likelihood=state.log_likelihood)
                    self.converged_ = supervised or gain <= self.tol * max(abs(before), 1.0)
                    if self.converged_ or n_iter >= self.max_iter:
                        break
        except KeyboardInterrupt as interrupt:
            if self.n_iter_ == 0:
                raise
            self.converged_ = False
            return interrupt
        return None

    def _store(self, parameters: HMMParameters) -> None:
        self.start_, self.transitions_, self.end_ = parameters.chain
        self.emissions_: Any = parameters.emissions

    def _new_vectorizer(self) -> Any:
        if self.emissions in ("auto", "categorical"):
            return SymbolVectorizer(fallback=self.emissions == "auto")
        return SequenceVectorizer()

    def _allows_missing(self) -> bool:
        return self.allow_missing

    def _read_training(self, X: Any, y: Any, sample_weight: Any, lengths: Any) -> TrainingData:
        wrapped = wrap_strings(X, stacked=lengths is not None)
        return super()._read_training(wrapped, y, sample_weight, lengths)

    def _read(self, X: Any, lengths: Any = None) -> tuple[Sequences, Layout]:
        return super()._read(wrap_strings(X, stacked=lengths is not None), lengths)

    def _new_emissions(self, data: TrainingData) -> Any:
        """The distribution for the data, without parameters yet."""
        X, n_labels = data.X, self.classes_.size
        refuse_infinite(X)
        symbols = self.vectorizer_ if isinstance(self.vectorizer_, SymbolVectorizer) else None
        kind = self.emissions
        if kind == "auto":
            kind = "categorical" if symbols is not None else choose_emissions(X.matrix)
        self.emission_kind_ = kind
        if kind == "categorical":
            sizes = None if symbols is None else [len(v) for v in symbols.vocabularies_]
            return CategoricalEmissions.for_data(X, n_labels, 0.0, symbols=sizes)
        if kind == "bernoulli":
            return BernoulliEmissions(n_labels, 0.0)
        if kind == "multinomial":
            return MultinomialEmissions.for_data(X, n_labels, 0.0)
        gaussian = GaussianEmissions if self.covariance == "diag" else FullGaussianEmissions
        steps = np.repeat(data.sequence_weights, X.lengths)
        return gaussian(n_labels, self.variance_floor, *overall_moments(X, steps))

    def _chain_scores(self, X: Sequences) -> Callable[[int, int], ChainScores]:
        parameters = HMMParameters(
            MarkovChain(self.start_, self.transitions_, self.end_), self.emissions_
        )
        matrix = self.emissions_.prepare(X, training=False)
        return chain_scorer(parameters, self.may_end_, matrix, X.offsets)

    def log_likelihood(self, X: Any, y: Any = None, *, lengths: Any = None) -> NDArray[np.float64]:
        """Log-probability of each sequence of observations, or of it together with its labels.

        Parameters
        ----------
        X, lengths : see `predict`
        y : list of label sequences, optional
            Then ``log P(x, y)``, summed over all labelings that agree where labels are unknown or partly
            known; else ``log P(x)``.

        Returns
        -------
        array of shape (n_sequences,)
            Of a density where the emissions are Gaussian. Constraints on the last label, where the end is
            not modelled, count as observed.
        """
        if isinstance(X, Iterator):  # read twice
            X = list(X)
        sequences, _ = self._read(X, lengths)
        blocks = self._run(sequences, lambda scores, *_: log_partition(scores), None)
        found = np.concatenate([np.zeros(0), *blocks])
        return found if y is None else found + self.sequence_log_proba(X, y, lengths=lengths)

    def sample(
        self, n: int = 1, lengths: Any = None, random_state: Any = None
    ) -> tuple[list[Any], list[NDArray[Any]]]:
        """Draw sequences with their labels.

        Parameters
        ----------
        n : int, default=1
            How many sequences.
        lengths : int or list of int, optional
            Steps of all sequences, or of each. Without it, where the end is modelled, they are drawn too.
        random_state : int, RandomState or None

        Returns
        -------
        X : list of sequences
            In the form of the training data: strings, bags or dicts; else arrays or CSR matrices.
        y : list of label arrays
        """
        check_is_fitted(self)
        if not isinstance(n, Integral) or n < 0:
            raise InputError(f"n must be a whole number of at least 0, got {n!r}")
        random = check_random_state(random_state)
        if lengths is None:
            drawn = self._draw_lengths(int(n), random)
        else:
            given = np.asarray(lengths)
            if given.dtype.kind not in "iu" or given.shape not in ((), (n,)) or (given < 0).any():
                raise InputError(
                    f"lengths must be a whole number, or one for each of the {n} sequences"
                )
            drawn = np.broadcast_to(given, n).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(drawn)]).astype(np.int64)
        nothing = np.zeros((int(offsets[-1]), self.classes_.size))
        ends = self.may_end_.astype(np.float64) if self.end_ is None else self.end_
        logs = map(log_or_forbidden, (self.transitions_, self.start_, ends))
        chain = ChainScores(nothing, *logs, offsets)
        codes = sample(chain, 1, random)[0]
        X = Sequences(self.emissions_.draw(codes, random), offsets)
        labels = X.split(decode_labels(codes, self.classes_))
        if isinstance(self.vectorizer_, SymbolVectorizer):
            return [self.vectorizer_.steps(one) for one in X], labels
        if self.vectorizer_ is not None:
            return self.vectorizer_.inverse_transform(X), labels
        return list(X), labels

    def _draw_lengths(self, n: int, random: np.random.RandomState) -> NDArray[np.int64]:
        if self.end_ is None:
            raise InputError("say how long the sequences are (lengths), or fit with model_end=True")
        lengths = np.zeros(n, dtype=np.int64)
        going = np.arange(n)
        # Where each sequence can be is a distribution, the same for all that still go on.
        belief = self.start_
        while going.size:
            lengths[going] += 1
            stops = float(belief @ self.end_)
            going = going[random.random_sample(going.size) >= stops]
            belief = belief @ self.transitions_
            belief = belief / (belief.sum() or 1.0)
        return lengths
