"""PhraseInference: phrases from classifiers of open and close decisions.

One classifier decides, for each token, whether a phrase opens there (``O``; if not, ``nOi`` inside a phrase,
``nOo`` outside); another whether a phrase closes (``C``, ``nCi``, ``nCo``). Their decisions may contradict
each other; the prediction is the cheapest set of *disjoint* phrases (`seqlab.inference.best_phrases`).

References
----------
Punyakanok and Roth, "The use of classifiers in sequential inference", NIPS 2000.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.labels import sequence_weights
from seqlab.data.open_close import CLOSE_DECISIONS, OPEN_DECISIONS
from seqlab.data.phrase_set import PhraseSet
from seqlab.data.sequences import Sequences
from seqlab.inference import LengthLimit, PhraseCosts, constrained_phrases
from seqlab.inference.phrases.constraints import LinearConstraint, PathConstraint, check_constraints
from seqlab.inference.phrases.integer_program import limit_costs
from seqlab.learning import unchanged_on_failure
from seqlab.metrics import span_f1
from seqlab.models._posteriors import CLASSIFIER_CONSTRAINTS, prepare_classifier
from seqlab.models.base import BaseLabeler
from seqlab.models.phrases._costs import COSTS, TUNED_COSTS, make_costs
from seqlab.models.phrases._decisions import (
    Decisions,
    find_used_columns,
    out_of_fold_posteriors,
)
from seqlab.models.phrases._state import check_phrase_model
from seqlab.models.phrases._targets import (
    decision_codes,
    decision_names,
    encode_phrases,
    output_classes,
    read_targets,
    stack_phrases,
    unstack_phrases,
)
from seqlab.models.phrases._tuning import INSIDE_WEIGHTS, tune_costs


class DecisionProba(NamedTuple):
    """Posteriors of the open and close decisions.

    Attributes
    ----------
    open, close : list of arrays of shape (n_tokens, n_types + 2), or stacked if X is stacked
        Columns in the order of ``open_classes_`` and ``close_classes_``.
    """

    open: Any
    close: Any


class PhraseInference(BaseLabeler):
    """The set of disjoint phrases of lowest cost, given classifiers of open and close decisions.

    A phrase of type ``k`` over the tokens ``i, ..., j`` costs, with ``p = P(O_k, i) P(C_k, j)``::

        weighted    threshold - log p - w sum of log P(nCi, t) P(nOi, t + 1) over i <= t < j
        map         the same with w = 1
        threshold   threshold - p
        product     -p
        log_odds    threshold - log(p / (1 - p))

    and a token outside all phrases costs ``-w log P(nOo, t) P(nCo, t)`` under the first two, otherwise 0. The
    prediction is the set of disjoint phrases with the lowest total cost.

    Parameters
    ----------
    classifier : scikit-learn classifier, default=None
        Decides whether a phrase opens. None stands for ``LogisticRegression(max_iter=1000)``.
    close_classifier : scikit-learn classifier, default=None
        Decides whether a phrase closes. None stands for a clone of ``classifier``.
    cost : {"weighted", "map", "threshold", "product", "log_odds"}, default="weighted"
        See above. "product" is the cost of the paper, "map" finds the most probable legal path of
        decisions.
    threshold : "auto", "tune" or float, default="auto"
        Added to the cost of every phrase; a higher threshold gives fewer phrases. "tune" selects the best F1
        on held-out parts of the training data; "auto" does so for the costs that need it (weighted,
        threshold, log_odds) and uses 0 for the others.
    inside_weight : "auto" or float, default="auto"
        The ``w`` of "weighted": the weight of decisions inside and outside phrases, as opposed to their
        first and last tokens. "auto" tunes it together with the threshold. Other costs ignore it.
    min_probability : float, default=0.0
        Phrases must open and close with at least this probability. The "product" cost needs it, because
        it makes every additional phrase cheaper (0.1 to 0.3 are good values).
    max_length : int, optional
        Maximum number of tokens in a phrase.
    constraints : sequence of constraints, or a single one, default=()
        Additional conditions on the phrases of a sequence: `seqlab.inference.LengthLimit`, `Covered`,
        `CountLimit`, `TypeOrder`, `Requires`. They hold exactly; the last three need integer programming.
    scheme : str, default="IOB2"
        Tag scheme of ``y``, if it consists of tags.
    output : {"auto", "phrases", "open_close"} or a tag scheme, default="auto"
        Form of predictions; "auto" is the form of ``y``.
    steps : {"auto", "tokens", "decisions"}, default="auto"
        What a row of X is: a token, whose features are used for both decisions, or one decision (open and
        close of each token in turn, as `seqlab.features.BracketFeatures` makes them). "auto" compares the
        lengths of X and y; with lists of phrases, rows are tokens.
    calibrate : {"auto", "sigmoid", "isotonic"} or None, default="auto"
        Method of ``CalibratedClassifierCV``, which wraps the classifiers; None does not wrap them. "auto"
        uses "sigmoid" for a classifier without ``predict_proba``.
    cv : int, default=3
        Folds for tuning, by sequences.
    n_jobs : int, default=None
        Folds fitted in parallel, and threads of prediction.
    random_state : int, RandomState or None, default=None
        Assigns sequences to folds.

    Attributes
    ----------
    types_ : list of str or None
        Types of phrases; ``[None]`` if they have no type.
    open_classes_, close_classes_ : arrays of shape (n_types + 2,)
        The decisions: ``O, nOi, nOo``, or ``O-NP, O-VP, ..., nOi, nOo`` if there are several types.
    open_posteriors_, close_posteriors_ : StepPosteriors
        The fitted classifiers.
    threshold_, inside_weight_ : float
        Given or tuned.
    tuning_ : dict of arrays, or None
        The values tried: ``inside_weight``, ``threshold`` and the ``f1`` of held-out sequences.
    steps_, coding_, output_ : str
        What rows of X are, the form of y, and the form of predictions.
    classes_ : array
        The elements of predictions: tags, decisions or, for phrases, types.

    See Also
    --------
    ClassifierHMM, ProjectionMarkovModel : the same classifiers under a Markov model.
    seqlab.inference.best_phrases : the shortest path alone.

    Notes
    -----
    If there are several types, one open classifier and one close classifier distinguish all of them; a
    phrase has the type of the lowest cost, the same for both ends.

    Decoding T tokens and K types takes O(K T) for the first two costs, O(K T log T) for products, O(K T^2)
    for log-odds and O(K T max_length) with limits of length. Tuning fits each classifier ``cv`` more
    times. If rows are decisions, each classifier sees only the columns that its own rows use.

    References
    ----------
    Punyakanok & Roth (2000), *The use of classifiers in sequential inference*.

    Examples
    --------
    >>> from seqlab import PhraseInference
    >>> X = [[["the"], ["cat"], ["sat"]], [["a"], ["dog"], ["saw"], ["the"], ["cat"]]] * 3
    >>> y = [["B-NP", "I-NP", "O"], ["B-NP", "I-NP", "O", "B-NP", "I-NP"]] * 3
    >>> model = PhraseInference(cost="map").fit(X, y)
    >>> model.predict([[["the"], ["dog"], ["sat"]]])
    [array(['B-NP', 'I-NP', 'O'], dtype='<U4')]
    >>> model.predict_phrases([[["the"], ["dog"], ["sat"]]])
    [PhraseSet([(0, 2, 'NP')], length=3)]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **CLASSIFIER_CONSTRAINTS,
        "close_classifier": [HasMethods(["fit", "predict"]), None],
        "cost": [StrOptions(set(COSTS))],
        "threshold": [StrOptions({"auto", "tune"}), Interval(Real, None, None, closed="neither")],
        "inside_weight": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "min_probability": [Interval(Real, 0, 1, closed="both")],
        "max_length": [Interval(Integral, 1, None, closed="left"), None],
        "constraints": ["array-like", *get_args(PathConstraint | LinearConstraint), None],
        "scheme": [str],
        "output": [str],
        "steps": [StrOptions({"auto", "tokens", "decisions"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        classifier: Any = None,
        *,
        close_classifier: Any = None,
        cost: str = "weighted",
        threshold: str | float = "auto",
        inside_weight: str | float = "auto",
        min_probability: float = 0.0,
        max_length: int | None = None,
        constraints: Any = (),
        scheme: str = "IOB2",
        output: str = "auto",
        steps: str = "auto",
        calibrate: str | None = "auto",
        cv: int = 3,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.classifier = classifier
        self.close_classifier = close_classifier
        self.cost = cost
        self.threshold = threshold
        self.inside_weight = inside_weight
        self.min_probability = min_probability
        self.max_length = max_length
        self.constraints = constraints
        self.scheme = scheme
        self.output = output
        self.steps = steps
        self.calibrate = calibrate
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, lengths: Any = None
    ) -> PhraseInference:
        """Fit both classifiers on all decisions, and tune threshold and weight if asked for.

        Parameters
        ----------
        X : list of sequences, `Sequences`, 3-D array, or one stacked 2-D matrix with ``lengths``
            One or two rows per token (see ``steps``).
        y : list
            For each sequence, a list of phrases (`PhraseSet`, or tuples ``(start, stop, type)``), of
            tags, or of open/close decisions, two per token.
        sample_weight : array of shape (n_sequences,) or (n_rows,), optional
            The classifiers must accept sample weights.
        lengths : list of int, optional
            Rows per sequence, if X is one stacked matrix.
        """
        with unchanged_on_failure(self):
            rows, layout = self._read_training_features(X, y, lengths)
            targets = read_targets(
                y, rows.lengths, stacked=not layout.is_list, scheme=self.scheme, steps=self.steps
            )
            self.coding_, self.steps_ = targets.coding, targets.steps
            found = {phrase.type for phrases in targets.sets for phrase in phrases}
            if not found:
                raise InputError("no sequence of y has a phrase, so there is nothing to learn from")
            self.types_ = sorted(found, key=lambda type_: type_ or "")
            check_constraints(self.constraints, self.types_)
            self.output_ = self.output
            if self.output == "auto":
                self.output_ = self.scheme if self.coding_ == "tags" else self.coding_
            self.classes_ = output_classes(self.output_, self.types_)
            self.open_classes_ = decision_names(OPEN_DECISIONS, self.types_)
            self.close_classes_ = decision_names(CLOSE_DECISIONS, self.types_)
            offsets = self._token_offsets(rows)
            gold = stack_phrases(targets.sets, offsets, self.types_)
            _, weights = sequence_weights(sample_weight, rows.offsets)
            kinds = self._decisions(rows, offsets, gold, None if sample_weight is None else weights)
            self.open_posteriors_, self.close_posteriors_ = (kind.fit() for kind in kinds)
            self._tune(kinds, offsets, gold, weights[:: self._rows_per_token])
        return self

    def predict(self, X: Any, *, lengths: Any = None, constraints: Any = ()) -> Any:
        """Phrases of each sequence, in the form of ``output``.

        Parameters
        ----------
        X, lengths : see `fit`
        constraints : sequence of constraints, default=()
            In addition to those of the estimator.

        Returns
        -------
        list of arrays of tags or decisions (one stacked array if X is stacked), or of PhraseSet
        """
        rows, layout = self._read(X, lengths)
        return encode_phrases(
            self._find(rows, constraints), self.output_, self.classes_.dtype, layout
        )

    def predict_phrases(
        self, X: Any, *, lengths: Any = None, constraints: Any = ()
    ) -> list[PhraseSet]:
        """Phrases of each sequence as `PhraseSet`; for the parameters see `predict`."""
        rows, _ = self._read(X, lengths)
        return self._find(rows, constraints)

    def decision_proba(self, X: Any, *, lengths: Any = None) -> DecisionProba:
        """Posteriors of the decisions.

        Parameters
        ----------
        X, lengths : see `fit`

        Returns
        -------
        DecisionProba
            Named tuple (open, close), each a list of arrays of shape (n_tokens, n_types + 2), columns in the
            order of ``open_classes_`` and ``close_classes_``.
        """
        rows, layout = self._read(X, lengths)
        opened, closed, offsets = self._posteriors(rows)
        return DecisionProba(layout.restore(opened, offsets), layout.restore(closed, offsets))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, lengths: Any = None) -> float:
        """F1 of phrases; a phrase is correct if its boundaries and type are.

        Parameters
        ----------
        X, lengths : see `fit`
        y : see `fit`; the form may differ from that in `fit`
        sample_weight : array of shape (n_sequences,), optional
        """
        rows, layout = self._read(X, lengths)
        gold = read_targets(
            y,
            rows.lengths,
            stacked=not layout.is_list,
            scheme=self.scheme,
            steps=self.steps_,
            type_=self.types_[0] if len(self.types_) == 1 else None,
        )
        found = self._find(rows)
        return span_f1(
            [phrases.to_tags() for phrases in gold.sets],
            [phrases.to_tags() for phrases in found],
            sample_weight=sample_weight,
        )

    @property
    def open_classifier_(self) -> Any:
        """The fitted classifier of open decisions; None if training shows a single decision."""
        return self.open_posteriors_.classifier

    @property
    def close_classifier_(self) -> Any:
        """The fitted classifier of close decisions; None if training shows a single decision."""
        return self.close_posteriors_.classifier

    @property
    def _rows_per_token(self) -> int:
        return 2 if self.steps_ == "decisions" else 1

    def _token_offsets(self, rows: Sequences) -> NDArray[np.int64]:
        if self.steps_ == "tokens":
            return rows.offsets.copy()
        odd = np.flatnonzero(rows.lengths % 2)
        if odd.size:
            n = int(rows.lengths[odd[0]])
            raise InputError(
                f"X[{odd[0]}] has {n} rows, but this model was fitted on two decisions per token"
            )
        return rows.offsets // 2

    def _check_state(self) -> None:
        super()._check_state()
        if state_checks.has_fitted_attributes(self):
            check_phrase_model(self)

    def _decisions(self, rows: Sequences, offsets: Any, gold: Any, weights: Any) -> list[Decisions]:
        """Return the open and the close decisions of the training data."""
        codes = decision_codes(gold, int(offsets[-1]), len(self.types_))
        groups = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
        close = self.classifier if self.close_classifier is None else self.close_classifier
        classifiers = [
            prepare_classifier(each, self.calibrate) for each in (self.classifier, close)
        ]
        kinds = []
        self.columns_ = []
        for i, classes in enumerate((self.open_classes_, self.close_classes_)):
            own_rows = slice(i if self._rows_per_token == 2 else 0, None, self._rows_per_token)
            matrix = rows.matrix[own_rows]
            self.columns_.append(find_used_columns(matrix) if self._rows_per_token == 2 else None)
            matrix = self._own_columns(matrix, i)
            own_weights = None if weights is None else weights[own_rows]
            kinds.append(Decisions(matrix, codes[i], classes, own_weights, groups, classifiers[i]))
        return kinds

    def _own_columns(self, matrix: Any, i: int) -> Any:
        """Select the columns that training shows for a kind of decision (0: open, 1: close)."""
        return matrix if self.columns_[i] is None else matrix[:, self.columns_[i]]

    def _posteriors(self, rows: Sequences) -> tuple[Any, Any, NDArray[np.int64]]:
        """Return the posteriors of open and close decisions, and the offsets of the tokens."""
        offsets = self._token_offsets(rows)
        tokens = np.arange(offsets[-1])
        proba = []
        for i, posteriors in enumerate((self.open_posteriors_, self.close_posteriors_)):
            matrix = rows.matrix
            if self._rows_per_token == 2:
                matrix = self._own_columns(matrix[i::2], i)
            proba.append(posteriors.proba(matrix, tokens, offsets))
        return proba[0], proba[1], offsets

    def _costs(self, opened: Any, closed: Any, offsets: Any, inside_weight: float) -> PhraseCosts:
        limits = self.min_probability, self.max_length
        return make_costs(self.cost, opened, closed, offsets, inside_weight, *limits)

    def _tune(self, kinds: list[Decisions], offsets: Any, gold: Any, weights: Any) -> None:
        """Set the threshold and the inside weight, tuned or given."""
        tunes_threshold = self.threshold == "tune" or (
            self.threshold == "auto" and self.cost in TUNED_COSTS
        )
        tunes_weight = self.cost == "weighted" and self.inside_weight == "auto"
        self.threshold_ = 0.0 if isinstance(self.threshold, str) else float(self.threshold)
        self.inside_weight_ = 1.0 if isinstance(self.inside_weight, str) else self.inside_weight
        self.tuning_ = None
        if not (tunes_threshold or tunes_weight):
            return
        opened, closed = out_of_fold_posteriors(
            kinds, offsets, self.cv, random_state=self.random_state, n_jobs=self.n_jobs
        )
        path, _ = check_constraints(self.constraints, self.types_)
        # Only limits of length: they can always be met, others perhaps not for every threshold.
        limits = [constraint for constraint in path if isinstance(constraint, LengthLimit)]

        def costs_of(inside_weight: float) -> PhraseCosts:
            costs = self._costs(opened, closed, offsets, inside_weight)
            return limit_costs(costs, limits, self.types_)

        tuning = tune_costs(
            costs_of,
            gold,
            logarithmic=self.cost not in ("threshold", "product"),
            inside_weights=INSIDE_WEIGHTS if tunes_weight else np.array([self.inside_weight_]),
            thresholds=None if tunes_threshold else np.array([self.threshold_]),
            weights=weights,
            n_jobs=self.n_jobs,
        )
        self.threshold_, self.inside_weight_ = tuning.threshold, tuning.inside_weight
        self.tuning_ = {name: np.array(values) for name, values in tuning.history.items()}

    def _find(self, rows: Sequences, constraints: Any = ()) -> list[PhraseSet]:
        """Find the cheapest phrases of each sequence under all constraints."""
        own, further = (
            check_constraints(given, self.types_) for given in (self.constraints, constraints)
        )
        opened, closed, offsets = self._posteriors(rows)
        costs = self._costs(opened, closed, offsets, self.inside_weight_)
        costs = costs.with_threshold(self.threshold_)
        every = [*own[0], *own[1], *further[0], *further[1]]
        best = constrained_phrases(costs, every, self.types_, n_jobs=self.n_jobs)
        return unstack_phrases(best.phrases, offsets, self.types_)
