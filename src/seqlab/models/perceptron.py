"""StructuredPerceptron: the averaged or voted perceptron on chains (Collins 2002).

For each training sequence: decode under the current weights; if the labeling is wrong, add the features of
the gold labeling and subtract those of the decoded one. The averaged perceptron predicts with the mean of all
weight vectors of training. In the voted perceptron each of them has one vote per sequence it was current for.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.metaestimators import available_if

from seqlab import inference, learning
from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.inference import ChainScores, Mask
from seqlab.learning import FitProgress, FitResult, TrainingData
from seqlab.models.base import EARLY_STOPPING_CONSTRAINTS, LIMIT_CONSTRAINTS
from seqlab.models.chain_labeler import ChainLabeler, ProbabilisticChainMixin, cut_mask
from seqlab.models.linear_chain import STRUCTURE_CONSTRAINTS, LinearChainLabeler
from seqlab.structures import chain


def _has_one_vector(self: StructuredPerceptron) -> bool:
    return self.combination != "voted"


def _decodes_exactly(self: StructuredPerceptron) -> bool:
    return self.combination != "voted" and self.beam_width is None


class _Trained(NamedTuple):
    """What the passes so far have learned."""

    weights: NDArray[np.float64]
    n_passes: int
    n_visits: int


class StructuredPerceptron(ProbabilisticChainMixin, LinearChainLabeler):
    """Averaged or voted structured perceptron.

    Parameters
    ----------
    combination : {"averaged", "voted", "last"}, default="averaged"
        How the weight vectors of training are combined for prediction: their mean; a vote of all of them at
        each step, weighted by the number of sequences each survived (one decoding per stored vector: for
        small data); or only the last one.
    max_iter : int, default=10
        Number of passes over the data. There is no optimum to converge to: more passes fit the data
        more closely.
    tol : float, default=0.0
        Stop if the proportion of wrong labels in a pass is at most this.
    beam_width : int or None, default=None
        Labels kept per step in decoding; None for exact decoding.
    early_update : bool, default=False
        With a beam: stop at the step at which the gold label falls out of the beam, and update on the
        prefix, so that every update corrects an actual error. Needs more passes: raise ``max_iter``.
    keep_gold : bool, default=False
        With a beam of at least two: always keep the gold label in the beam during training, in addition to
        the best ``beam_width - 1`` others.
    order : {0, 1}, default=1
        With 0 there are no weights for transitions, and none for the first and last label: each step is
        labelled from its features alone.
    ties : {"auto", "lowest", "random"}, default="auto"
        Which of several best labelings is decoded in training: that with the lowest codes, or one at
        random (from ``random_state``). "auto" is "random" for the columns of a `SequentialOutputCode`,
        else "lowest". Prefer "random" for two labels and few binary features per step; see the notes.
        Prediction does not depend on this parameter: there, ties go to the lowest code.
    all_states, all_transitions, min_freq, boundary
        Which parameters exist; see `LinearChainCRF` (``boundary`` is a bool here).
    temperature : float, default=1.0
        Scores are divided by it before `predict_proba`.
    shuffle : bool, default=True
        Visit the sequences in a new order in each pass.
    max_seconds : float or None, default=None
        Training stops after the pass in which this time is exceeded, with a warning.
    validation_fraction : float or None, default=None
        Proportion of the sequences that is held out for early stopping: training stops if their token
        accuracy has not improved for ``n_iter_no_change`` passes, and the weights of the best pass are kept.
        It makes sense with a large ``max_iter``: the number of passes is then chosen by the held-out
        sequences. `fit` also accepts held-out sequences.
    n_iter_no_change : int, default=5
        With early stopping: number of passes without improvement after which training stops.
    callback : callable or None, default=None
        Called after every pass with a `seqlab.learning.FitProgress`; training stops if it returns True.
        `seqlab.save` leaves it out.
    random_state : int, RandomState or None, default=None
        Chooses the order of the sequences, and the sequences to hold out.
    n_jobs : int, default=None
        Number of threads for prediction; training is sequential.
    verbose : bool, default=False
        Show progress on standard error.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    coef_, transitions_, start_, end_
        Weights, as in `LinearChainCRF`; of the mean vector if the combination is "voted".
    votes_ : CSR matrix of shape (n_updates + 1, n_params) or None
        For "voted": the updates in order; vector k is the sum of rows 0 to k.
    survival_ : array of shape (n_updates + 1,) or None
        For "voted": the number of sequences that each vector survived.
    n_iter_ : int
    converged_ : bool
        Whether the last pass reached ``tol``.
    history_ : dict of str to list
        iteration, objective (wrong labels of the pass), seconds, n_updates and, with early stopping,
        validation_score.
    best_iteration_ : int or None
        With early stopping: the pass whose weights are kept.
    best_validation_score_ : float or None
        Its token accuracy on the held-out sequences.

    Notes
    -----
    `predict_nbest` exists if decoding is exact and one weight vector predicts, `decision_function` if one
    weight vector predicts (not for "voted"). `predict_proba` of "voted" gives the proportions of the votes;
    otherwise it takes the scores as log-potentials of a chain, which is not calibrated: raise ``temperature``
    to make them less extreme. Each pass costs O(T (L^2 + L F)); with a beam of width B, O(T (B L + L F)).

    A difference of two weights that is 0 or 1 after every update never becomes negative. This happens for
    two labels, one binary feature per step and ties that always go to the first label: if the weights are
    equal, only steps with the second label are wrong. The average then prefers the second label even if it is
    rare. With random ties the difference is negative as often as it should be.

    References
    ----------
    Collins (2002), *Discriminative training methods for hidden Markov models*. Freund & Schapire (1999),
    *Large margin classification using the perceptron algorithm*. Collins & Roark (2004), *Incremental
    parsing with the perceptron algorithm*.

    Examples
    --------
    >>> from seqlab import StructuredPerceptron
    >>> X = [[["w=the"], ["w=dog"], ["w=barks"]], [["w=dogs"], ["w=bark"]]]
    >>> y = [["DET", "NOUN", "VERB"], ["NOUN", "VERB"]]
    >>> model = StructuredPerceptron(random_state=0).fit(X, y)
    >>> model.predict([[["w=the"], ["w=cat"], ["w=barks"]]])
    [array(['DET', 'NOUN', 'VERB'], dtype='<U4')]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "combination": [StrOptions({"averaged", "voted", "last"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "beam_width": [Interval(Integral, 1, None, closed="left"), None],
        "early_update": ["boolean"],
        "keep_gold": ["boolean"],
        "order": [Options(Integral, {0, 1})],
        "ties": [StrOptions({"auto", "random", "lowest"})],
        **STRUCTURE_CONSTRAINTS,
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "shuffle": ["boolean"],
        **LIMIT_CONSTRAINTS,
        **EARLY_STOPPING_CONSTRAINTS,
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        combination: str = "averaged",
        max_iter: int = 10,
        tol: float = 0.0,
        beam_width: int | None = None,
        early_update: bool = False,
        keep_gold: bool = False,
        order: int = 1,
        ties: str = "auto",
        all_states: bool = False,
        all_transitions: bool = False,
        min_freq: float = 0,
        boundary: bool = True,
        temperature: float = 1.0,
        shuffle: bool = True,
        max_seconds: float | None = None,
        validation_fraction: float | None = None,
        n_iter_no_change: int = 5,
        callback: Callable[[FitProgress], Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.combination = combination
        self.max_iter = max_iter
        self.tol = tol
        self.beam_width = beam_width
        self.early_update = early_update
        self.keep_gold = keep_gold
        self.order = order
        self.ties = ties
        self.all_states = all_states
        self.all_transitions = all_transitions
        self.min_freq = min_freq
        self.boundary = boundary
        self.temperature = temperature
        self.shuffle = shuffle
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
    ) -> StructuredPerceptron:
        """Learn the weights.

        Parameters
        ----------
        X, y, lengths, X_val, y_val : see `LinearChainCRF.fit`
        sample_weight : array of shape (n_sequences,), optional
            Factor of the updates of each sequence. Of weights per step their mean is used.
        """
        return self._fit(X, y, sample_weight, lengths, X_val, y_val)

    def _learn(self, data: TrainingData) -> FitResult:
        if self.early_update and self.beam_width is None:
            raise InputError("early_update needs a beam: set beam_width")
        if self.keep_gold and self.beam_width is None:
            raise InputError("keep_gold needs a beam: set beam_width")
        if self.keep_gold and self.beam_width == 1:
            raise InputError(
                "keep_gold needs beam_width >= 2: a beam of one would hold the gold label only"
            )
        if self.early_update and self.keep_gold:
            raise InputError(
                "with keep_gold the gold labels never fall out of the beam: do not set early_update"
            )
        if self.early_update and self.combination == "voted":
            raise InputError("early_update works with 'averaged' or 'last', not with 'voted'")
        bound = self._bind(data)
        random_state = check_random_state(self.random_state)
        learner = learning.Perceptron(
            bound,
            data.codes,
            data.sequence_weights,
            tol=self.tol,
            random=random_state if self.shuffle else None,
            beam_width=self.beam_width or 0,
            early_update=self.early_update,
            keep_gold=self.keep_gold,
            tie_seed=random_state.randint(np.iinfo(np.int32).max)
            if self.ties == "random"
            else None,
            keep_updates=self.combination == "voted",
        )
        online = learner.online

        def read(_: Any) -> _Trained:
            weights = online.current() if self.combination == "last" else online.average()
            return _Trained(weights.copy(), len(learner.updates), online.n_steps)

        def store(trained: _Trained) -> None:
            self._store(bound.structure, trained.weights)
            self._store_votes(bound.structure, learner, trained)

        # There is no optimum to converge to.
        return self._train(learner.states(), data, store, copy=read, can_warn=False)

    def _store_votes(
        self, structure: chain.ChainStructure, learner: learning.Perceptron, trained: _Trained
    ) -> None:
        self.votes_: Any = None
        self.survival_: Any = None
        self.structure_: Any = None
        if self.combination == "voted":
            passes = learner.updates[: trained.n_passes]
            zero = sp.csr_matrix((1, structure.n_params))
            self.votes_ = sp.vstack([zero, *[update for update, _ in passes]], format="csr")
            n_visits = [visits for _, visits in passes]
            self.survival_ = np.diff(np.concatenate([[0], *n_visits, [trained.n_visits]]))
            self.structure_ = structure

    def _check_state(self) -> None:
        super()._check_state()
        if not state_checks.has_fitted_attributes(self) or self.votes_ is None:
            return
        structure = state_checks.check_type(self.structure_, "structure_", chain.ChainStructure)
        n_votes = state_checks.check_matrix(
            self.votes_, "votes_", (None, structure.n_params)
        ).shape[0]
        state_checks.require(sp.issparse(self.votes_) and self.votes_.format == "csr", "votes_")
        state_checks.check_array(self.survival_, "survival_", (n_votes,), "i", low=0)
        state_checks.require(self.survival_.sum() > 0, "survival_")
        state_checks.require(structure.n_labels == self.classes_.size, "structure_")
        state_checks.require(structure.state.n_features == self.n_features_in_, "structure_")

    def _predict(self, X: Sequences, mask: Mask | None = None) -> NDArray[np.int64]:
        if self.votes_ is not None:
            return np.argmax(self._vote_shares(X, mask), axis=1)
        blocks = self._run(X, lambda s, local, _: self._decode(s, local), mask)
        return np.concatenate([np.zeros(0, dtype=np.int64), *blocks])

    def _decode(self, scores: ChainScores, mask: Mask | None) -> NDArray[np.int64]:
        if self.beam_width is None:
            return inference.viterbi(scores, mask=mask).labels
        return inference.beam(scores, min(self.beam_width, scores.n_labels), mask=mask).labels

    def _predict_marginals(self, X: Sequences, mask: Mask | None = None) -> NDArray[np.float64]:
        if self.votes_ is not None:
            return self._vote_shares(X, mask)

        def scaled_marginals(scores: ChainScores, local: Mask | None, _: slice) -> Any:
            temperature = self.temperature
            scaled = ChainScores(
                scores.unary / temperature,
                scores.pairwise / temperature,
                scores.start / temperature,
                scores.end / temperature,
                scores.offsets,
            )
            return inference.marginals(scaled, mask=local).node

        blocks = self._run(X, scaled_marginals, mask)
        return np.concatenate([np.zeros((0, self.classes_.size)), *blocks])

    def _log_potentials(self) -> chain.ChainWeights | None:
        if self.votes_ is not None:
            return None
        scale = 1.0 / self.temperature
        return chain.ChainWeights(
            self.coef_ * scale,
            self.transitions_ * scale,
            self.start_ * scale,
            self.end_ * scale,
        )

    predict_nbest = available_if(_decodes_exactly)(ChainLabeler.predict_nbest)
    decision_function = available_if(_has_one_vector)(ChainLabeler.decision_function)

    def _vote_shares(self, X: Sequences, mask: Mask | None) -> NDArray[np.float64]:
        """Return the proportion of votes for each label at each step."""
        votes = np.zeros((X.n_steps, self.classes_.size))
        bound = self.structure_.bind(X)
        w = np.zeros(self.structure_.n_params)
        for k, survived in enumerate(self.survival_):
            begin, stop = self.votes_.indptr[k], self.votes_.indptr[k + 1]
            w[self.votes_.indices[begin:stop]] += self.votes_.data[begin:stop]
            if survived > 0:
                source = bound.source(w)
                for block in bound.blocks():
                    labels = self._decode(bound.scores(source, block), cut_mask(mask, block.steps))
                    votes[np.arange(block.begin, block.stop), labels] += survived
        return votes / self.survival_.sum()
