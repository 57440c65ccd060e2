"""SequentialOutputCode: many labels by binary chains (Hao & Fern 2007, after Cohn, Smith & Osborne 2005).

Every label has a code word of n bits. For each bit a binary labeler is trained, which costs ``4 T`` per pass
instead of ``T L^2``. The probabilities p_k(t) of the bits decide the label of a step::

    y(t) = argmin_j  sum_k |p_k(t) - M_jk|

With independent columns (i-SECOC) a chain sees only transitions between sets of labels, and information is
lost. In a cascade, c-SECOC(h), a column also sees the predicted bits of the h columns before it at
neighbouring steps, from which it can learn transitions between labels.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.inference import ChainScores, Mask, marginals
from seqlab.learning import TrainingData
from seqlab.meta._cascade import CascadeWindow
from seqlab.meta._code_columns import BITS, ColumnFitter, predict_bits
from seqlab.meta._code_decoding import break_ties, score_labels, softmax
from seqlab.meta._code_matrix import Bits, make_code
from seqlab.meta._packed_columns import PackedColumns
from seqlab.meta._packed_trees import PackedTreeColumns
from seqlab.meta._stacking_folds import fold_units, split_folds
from seqlab.meta._stacking_learners import as_labeler, draw_seed
from seqlab.models.chain_labeler import ChainLabeler, ProbabilisticChainMixin
from seqlab.models.crf import LinearChainCRF
from seqlab.utils.threads import effective_n_jobs

Ints = NDArray[np.int64]
# Packed columns of models in memory; model files and copies do not have them.
_packed_trees: WeakKeyDictionary[SequentialOutputCode, PackedTreeColumns] = WeakKeyDictionary()


class SequentialOutputCode(ProbabilisticChainMixin, ChainLabeler):
    """Sequential error-correcting output codes (SECOC): many labels by binary labelers.

    Parameters
    ----------
    estimator : labeler or scikit-learn classifier, default=None
        Labels one bit; ``LinearChainCRF()`` if None. A classifier labels each step on its own
        (`IndependentLabeler`).
    code_length : int or None, default=None
        Number of columns of the code. None means 200 for a random code and ``10 log2(n_labels)`` for a
        dense one (Allwein, Schapire & Singer 2000), but at most ``2 ** (n_labels - 1) - 1``: there are no
        more different columns.
    cascade : int, "all" or "auto", default=0
        Number of earlier columns whose predicted bits a column sees: 0 for independent columns (i-SECOC),
        h for c-SECOC(h). "auto" chooses among ``cascade_candidates`` by the accuracy on a part of the
        training sequences, then fits on all of them.
    window : (int, int), default=(1, 1)
        Numbers of steps before and after a step at which the predicted bits are seen. The bits of the step
        itself are not.
    code : {"random", "dense", "exhaustive"} or array of shape (n_labels, n_columns), default="random"
        "random": a random code without equal or complementary columns and without equal rows. "dense":
        the one of 100 random codes whose closest code words are farthest apart. "exhaustive": all possible
        columns, for up to 11 labels. An array of zeros and ones: one row per label, in the order of
        ``classes_``.
    decoding : {"l1", "hamming", "likelihood"}, default="l1"
        How the bits decide the label: the distance of their probabilities from the code word, the number
        of bits that differ, or the product of the probabilities of the bits of the code word.
    cascade_values : {"bits", "probabilities"}, default="bits"
        Whether a column sees bits or their probabilities.
    cascade_cv : int, splitter or None, default=None
        With folds, cascade features in training are out-of-fold predictions, which takes ``cascade_cv``
        more fits per column. None: they are predictions for the training data of the column.
    cascade_candidates : sequence of int or "all", default=(0, 1, 2, 5, 11)
        Numbers of columns that ``cascade="auto"`` tries.
    validation_fraction : float, default=0.2
        Proportion of the sequences on which ``cascade="auto"`` compares the candidates.
    temperature : float, default=1.0
        Decoding scores are divided by it before `predict_proba`.
    n_jobs : int, default=None
        Number of threads, through joblib: for the columns if they are independent, and for the folds of
        ``cascade_cv``; in prediction for blocks of sequences. The result is the same for any number.
    random_state : int, RandomState or None, default=None
        Draws the code and the validation part, breaks ties (see Notes), and seeds labelers that have no
        seed of their own.
    verbose : int, default=0
        Show how many columns are fitted, on standard error.

    Attributes
    ----------
    estimators_ : list of labelers
        One per column; their labels are 0 and 1. A column that has only one bit, if there is only one
        label, is that bit as a float.
    code_ : int8 array of shape (n_labels, n_columns)
        Code words.
    cascade_ : int
        Number of earlier columns that a column sees.
    window_ : (int, int)
        Numbers of steps before and after a step at which they see predicted bits.
    cascade_values_ : {"bits", "probabilities"}
        What they see. These three describe the fitted columns; later changes of the parameters do not.
    validation_scores_ : dict of int to float, or None
        With ``cascade="auto"``: the accuracy of each candidate on the validation part.
    classes_ : array of shape (n_labels,)
    n_features_in_ : int

    See Also
    --------
    LinearChainCRF : exact training with all labels; the time grows with the square of their number.
    StructuredPerceptron : fast for many labels, also with a beam.

    Notes
    -----
    A column that sees h others has ``2 h (before + after)`` more features: for each bit and distance the
    probability that it is 1 and that it is 0; both are 0 outside the sequence.

    Independent columns cannot represent some transitions at all: for three labels that follow each other in a
    cycle, no binary column is a Markov chain, and without informative features the accuracy is 1/3.

    The estimator should have probabilities. If it has none, its predicted bits are used, and decoding is by
    the Hamming distance. The scores of labels are independent from step to step: `predict_nbest` and
    constraints use them as the scores of a chain without transitions. `predict_proba` is a softmax of the
    decoding scores, which is not calibrated: with many columns it is too extreme, so raise ``temperature``.

    Ties between labels are broken at random: decoding scores contain a term of at most 1e-9, which depends on
    ``random_state``, the label and the position of the step in its sequence, so that a sequence is labelled
    in the same way alone and together with others.

    An interrupt takes effect when the columns that are being fitted are finished, and leaves the estimator as
    it was before `fit`: a code without all its columns is of little use.

    References
    ----------
    Hao & Fern (2007), *Revisiting output coding for sequential supervised learning*, IJCAI. Cohn, Smith &
    Osborne (2005), *Scaling conditional random fields using error-correcting codes*, ACL. Dietterich &
    Bakiri (1995), *Solving multiclass learning problems via error-correcting output codes*.

    Examples
    --------
    >>> from seqlab import SequentialOutputCode, StructuredPerceptron
    >>> from seqlab.datasets import make_hmm_sequences
    >>> X, y = make_hmm_sequences(150, 30, preset="both", random_state=0, return_X_y=True)
    >>> code = SequentialOutputCode(StructuredPerceptron(), code_length=30, random_state=0)
    >>> code = code.fit(X[:100], y[:100])
    >>> code.code_.shape, round(code.score(X[100:], y[100:]), 2)
    ((40, 30), 0.74)
    """

    _parameter_constraints: dict[str, Any] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "code_length": [Interval(Integral, 1, None, closed="left"), None],
        "cascade": [Interval(Integral, 0, None, closed="left"), StrOptions({"all", "auto"})],
        "window": "no_validation",  # see CascadeWindow.from_params
        "code": [StrOptions({"random", "dense", "exhaustive"}), "array-like"],
        "decoding": [StrOptions({"l1", "hamming", "likelihood"})],
        "cascade_values": [StrOptions({"bits", "probabilities"})],
        "cascade_cv": [
            Interval(Integral, 2, None, closed="left"),
            HasMethods(["split", "get_n_splits"]),
            None,
        ],
        "cascade_candidates": ["array-like"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        code_length: int | None = None,
        cascade: Any = 0,
        window: Any = (1, 1),
        code: Any = "random",
        decoding: str = "l1",
        cascade_values: str = "bits",
        cascade_cv: Any = None,
        cascade_candidates: Any = (0, 1, 2, 5, 11),
        validation_fraction: float = 0.2,
        temperature: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.code_length = code_length
        self.cascade = cascade
        self.window = window
        self.code = code
        self.decoding = decoding
        self.cascade_values = cascade_values
        self.cascade_cv = cascade_cv
        self.cascade_candidates = cascade_candidates
        self.validation_fraction = validation_fraction
        self.temperature = temperature
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, lengths: Any = None
    ) -> SequentialOutputCode:
        """Draw the code and fit one labeler per column.

        Parameters
        ----------
        X, y, lengths : see `LinearChainCRF.fit`
            Every label must be known.
        sample_weight : array of shape (n_sequences,) or (n_steps,), optional
            Passed on to the labelers. Chain models use the mean weight of the steps of a sequence.
        """
        return self._fit(X, y, sample_weight, lengths)

    def _learn(self, data: TrainingData) -> None:
        effective_n_jobs(self.n_jobs)  # an error if it is 0
        random = check_random_state(self.random_state)
        code = make_code(self.code, self.code_length, data.n_labels, random)
        self.tie_seed_ = draw_seed(random)
        fold_seed = draw_seed(random)
        new_fitter = self._fitter_factory(code.shape[1], random)
        self.validation_scores_: dict[int, float] | None = None
        if self.cascade == "auto":
            scores = self._compare_cascades(data, code, new_fitter, fold_seed)
            self.validation_scores_ = scores
            # The first of several best candidates: the shortest cascade that is as good.
            n_seen = max(scores, key=lambda candidate: scores[candidate])
        else:
            n_seen = code.shape[1] if self.cascade == "all" else int(self.cascade)
        self.cascade_ = min(n_seen, max(code.shape[1] - 1, 0))
        _, *sides = CascadeWindow.from_params(self.cascade_, self.window)
        self.window_, self.cascade_values_ = tuple(sides), self.cascade_values
        self.code_ = code
        self.estimators_ = self._fit_columns(data, code, new_fitter(self.cascade_), fold_seed)

    def _hold_out(self, data: TrainingData) -> TrainingData:
        # The validation part only compares cascades; the columns are fitted on all data.
        return data

    def _fitter_factory(
        self, n_columns: int, random: np.random.RandomState
    ) -> Callable[[int], ColumnFitter]:
        """Return a function that makes the `ColumnFitter` of a cascade."""
        labeler = LinearChainCRF() if self.estimator is None else as_labeler(self.estimator)
        if labeler.get_params(deep=False).get("ties") == "auto":
            # With two labels and few binary features, a perceptron needs random ties.
            labeler = clone(labeler).set_params(ties="random")
        seeded = [
            name
            for name, value in sorted(labeler.get_params().items())
            if name.split("__")[-1] == "random_state" and value is None
        ]
        seeds = random.randint(np.iinfo(np.int32).max, size=(n_columns, len(seeded)))

        def new_fitter(n_seen: int) -> ColumnFitter:
            return ColumnFitter(
                labeler,
                CascadeWindow.from_params(n_seen, self.window),
                rounded=self.cascade_values == "bits",
                seeds=seeds,
                seeded=seeded if self.random_state is not None else [],
                n_jobs=self.n_jobs,
                verbose=int(self.verbose),
            )

        return new_fitter

    def _fit_columns(
        self, data: TrainingData, code: Bits, fitter: ColumnFitter, fold_seed: int
    ) -> list[Any]:
        folds = None
        if self.cascade_cv is not None and fitter.window.n_columns > 0:
            bounds = fold_units(data.X.offsets, self.cascade_cv, 1)
            # A single sequence is cut into pieces.
            data = data if bounds is data.X.offsets else data.cut(bounds)
            folds = split_folds(
                len(data.X), self.cascade_cv, data.groups, levels=1, random_state=fold_seed
            )
        return fitter.fit(data, code, folds)

    def _compare_cascades(
        self,
        data: TrainingData,
        code: Bits,
        new_fitter: Callable[[int], ColumnFitter],
        seed: int,
    ) -> dict[int, float]:
        """Return the accuracy of each number of earlier columns on a part of the sequences."""
        candidates = sorted(
            {self._candidate(one, code.shape[1]) for one in self.cascade_candidates}
        )
        if not candidates:
            raise InputError("cascade='auto' needs at least one of cascade_candidates")
        n_folds = max(2, round(1 / self.validation_fraction))
        data = data.cut(fold_units(data.X.offsets, n_folds, 1))
        weighted = np.flatnonzero(data.sequence_weights > 0.0)
        if weighted.size < 2:
            raise InputError(
                "cascade='auto' needs at least two sequences with a positive weight, or a sequence of at "
                f"least {n_folds} steps (n_samples={weighted.size})"
            )
        order = np.random.RandomState(seed).permutation(weighted)
        n_held = min(max(round(self.validation_fraction * weighted.size), 1), weighted.size - 1)
        held = np.sort(order[:n_held])
        kept = np.setdiff1d(np.arange(len(data.X)), held)
        part, rest = data.part(kept), data.part(held)
        rows = np.searchsorted(data.classes, part.classes)
        gold = np.searchsorted(data.classes, rest.classes)[rest.codes]
        positions = rest.X.block(0, len(rest.X)).positions
        scores = {}
        for n_seen in candidates:
            fitter = new_fitter(n_seen)
            columns = self._fit_columns(part, code[rows], fitter, seed)
            bits = predict_bits(columns, fitter.window, rest.X, rounded=fitter.rounded)
            of_labels = score_labels(bits, code, self.decoding)
            found = break_ties(of_labels, positions, self.tie_seed_).argmax(axis=1)
            scores[n_seen] = float(np.average(found == gold, weights=rest.step_weights))
        return scores

    def _candidate(self, value: Any, n_columns: int) -> int:
        """Return a number of earlier columns among ``cascade_candidates``, at most ``n_columns - 1``."""
        most = max(n_columns - 1, 0)
        if isinstance(value, str) and value == "all":
            return most
        if not isinstance(value, Integral) or value < 0:
            raise InputError(
                f"cascade_candidates must be whole numbers of at least 0 or 'all', got {value!r}"
            )
        return min(int(value), most)

    def _check_state(self) -> None:
        super()._check_state()
        if not state_checks.has_fitted_attributes(self):
            return
        n_columns, n_features = len(self.estimators_), self.n_features_in_
        state_checks.check_array(
            self.code_, "code_", (self.classes_.size, n_columns), "i", low=0, high=2, dtype=np.int8
        )
        state_checks.check_int(self.tie_seed_, "tie_seed_", 0, 2**63)
        n_seen = state_checks.check_int(self.cascade_, "cascade_", 0, 2**31)
        state_checks.check_type(self.window_, "window_", tuple)
        window = CascadeWindow.from_params(n_seen, self.window_)
        state_checks.require(self.cascade_values_ in ("bits", "probabilities"), "cascade_values_")
        span = 2 * (window.before + window.after)
        for k, column in enumerate(self.estimators_):
            if isinstance(column, float):
                state_checks.require(column in (0.0, 1.0), "estimators_")
                continue
            found = getattr(column, "n_features_in_", None)
            state_checks.require(found == n_features + span * window.n_seen(k), "estimators_")
            labels = np.asarray(getattr(column, "classes_", BITS))
            state_checks.require(labels.tolist() == BITS.tolist(), "estimators_")

    def _prepare_scoring(self, X: Sequences) -> PackedColumns | PackedTreeColumns | None:
        window = CascadeWindow(self.cascade_, *self.window_)
        columns, n_features = self.estimators_, self.n_features_in_
        # Trees are many more numbers than the features of a sequence: pack them once.
        packed = _packed_trees.get(self)
        if packed is None or packed.window != window or not packed.holds(columns):
            packed = PackedTreeColumns.from_columns(columns, window, n_features)
            if packed is None:
                return PackedColumns.from_columns(columns, window, n_features)
            _packed_trees[self] = packed
        return packed

    def _block_scores(self, block: SequenceBlock, prepared: Any) -> ChainScores:
        X, n_labels = block.parent[block.first : block.last], self.classes_.size
        rounded = self.cascade_values_ == "bits"
        if prepared is not None:
            bits = prepared.predict_bits(X, rounded=rounded)
        else:
            window = CascadeWindow(self.cascade_, *self.window_)
            bits = predict_bits(self.estimators_, window, X, rounded=rounded)
        scores = score_labels(bits, self.code_, self.decoding)
        unary = break_ties(scores, block.positions, self.tie_seed_)
        return ChainScores(unary, np.zeros((n_labels, n_labels)), offsets=block.offsets)

    def _predict(self, X: Sequences, mask: Mask | None = None) -> Ints:
        if mask is not None:
            return super()._predict(X, mask)
        blocks = self._run(X, lambda scores, *_: np.argmax(scores.unary, axis=1), None)
        return np.concatenate([np.zeros(0, dtype=np.int64), *blocks])

    def _predict_marginals(self, X: Sequences, mask: Mask | None = None) -> NDArray[np.float64]:
        def scaled_marginals(scores: ChainScores, local: Mask | None, _: slice) -> Any:
            unary = scores.unary / self.temperature
            if local is None:
                return softmax(unary)
            scaled = ChainScores(unary, scores.pairwise, offsets=scores.offsets)
            return marginals(scaled, mask=local).node

        blocks = self._run(X, scaled_marginals, mask)
        return np.concatenate([np.zeros((0, self.classes_.size)), *blocks])

    def decision_function(self, X: Any, *, lengths: Any = None, constraints: Any = None) -> Any:
        """Return the decoding score of each label at each step: minus the distance, or the log-likelihood.

        Under constraints these are max-marginals: the best score of any labeling that has the label there.

        Parameters
        ----------
        X, lengths, constraints : see `predict`

        Returns
        -------
        list of arrays of shape (n_steps, n_labels), or one stacked array if X is stacked
        """
        if constraints is not None:
            return super().decision_function(X, lengths=lengths, constraints=constraints)
        sequences, layout = self._read(X, lengths)
        blocks = self._run(sequences, lambda scores, *_: scores.unary, None)
        stacked = np.concatenate([np.zeros((0, self.classes_.size)), *blocks])
        return layout.restore(stacked, sequences.offsets)
