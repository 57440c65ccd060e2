"""PhraseInference: phrases from classifiers that say where one opens and where one closes.

One classifier decides, for each token, whether a phrase opens there (``O``, or not: ``nOi`` inside a phrase,
``nOo`` outside); another whether one closes (``C``, ``nCi``, ``nCo``). Their decisions contradict each
other; the cheapest set of *disjoint* phrases settles it (`seqlab.inference.best_phrases`).

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

from seqlab.data.convert import Layout
from seqlab.data.errors import InputError
from seqlab.data.labels import sequence_weights
from seqlab.data.open_close import CLOSE_DECISIONS, DECISIONS, OPEN_DECISIONS
from seqlab.data.phrase_set import PhraseSet
from seqlab.data.sequences import Sequences
from seqlab.data.tags import get_scheme
from seqlab.inference import LengthLimit, PhraseCosts, constrained_phrases
from seqlab.inference.phrases.constraints import (
    LinearConstraint,
    PathConstraint,
    check_constraints,
)
from seqlab.inference.phrases.integer_program import limit_costs
from seqlab.metrics import span_f1
from seqlab.models._base import BaseLabeler
from seqlab.models._posteriors import CLASSIFIER_CONSTRAINTS, prepare_classifier
from seqlab.models.phrases._decisions import Decisions, held_out_posteriors, used_columns
from seqlab.models.phrases._targets import (
    decision_codes,
    decision_names,
    read_targets,
    stacked_phrases,
    to_sets,
    write_sets,
)
from seqlab.models.phrases._tuning import INSIDE_WEIGHTS, tune

COSTS = ("weighted", "map", "threshold", "product", "log_odds")
# Costs whose threshold "auto" tunes; the others have a meaning of their own at 0.
TUNED = ("weighted", "threshold", "log_odds")


class DecisionProba(NamedTuple):
    """Probabilities of the decisions.

    Attributes
    ----------
    open, close : list of arrays of shape (n_tokens, n_types + 2), or stacked where X is stacked
        Columns in the order of ``open_classes_`` and ``close_classes_``.
    """

    open: Any
    close: Any


class PhraseInference(BaseLabeler):
    """Any classifiers of open and close decisions, made a set of phrases at the lowest cost.

    A phrase of type ``k`` over the tokens ``i, ..., j`` costs, with ``p = P(O_k, i) P(C_k, j)``::

        weighted    threshold - log p - w sum of log P(nCi, t) P(nOi, t + 1) over i <= t < j
        map         the same with w = 1
        threshold   threshold - p
        product     -p
        log_odds    threshold - log(p / (1 - p))

    and a token in no phrase ``-w log P(nOo, t) P(nCo, t)`` under the first two, else nothing. Of all sets of
    disjoint phrases the cheapest is predicted.

    Parameters
    ----------
    classifier : scikit-learn classifier, default=None
        Decides whether a phrase opens. ``LogisticRegression(max_iter=1000)`` where None.
    close_classifier : scikit-learn classifier, default=None
        Decides whether a phrase closes; a clone of ``classifier`` where None.
    cost : {"weighted", "map", "threshold", "product", "log_odds"}, default="weighted"
        See above. "product" is the paper's, "map" the exact most probable legal path of decisions.
    threshold : "auto", "tune" or float, default="auto"
        Added to the cost of every phrase: higher, and there are fewer. "tune" takes the best F1 on held-out
        parts of the training data; "auto" does so for the costs that need it (weighted, threshold,
        log_odds) and takes 0 for the others.
    inside_weight : "auto" or float, default="auto"
        The ``w`` of "weighted": how much decisions count that are no end of a phrase. "auto" tunes it
        together with the threshold. Other costs have no choice of it.
    min_probability : float, default=0.0
        Phrases open and close with at least this probability; others are no candidates. The
        "product" cost, which never says no, needs it (0.1 to 0.3 are good values).
    max_length : int, optional
        Tokens of the longest phrase.
    constraints : sequence of constraints, or a single one, default=()
        Further conditions on the phrases of a sequence: `seqlab.inference.LengthLimit`, `Covered`,
        `CountLimit`, `TypeOrder`, `Requires`. Exact; the last three by integer programming.
    scheme : str, default="IOB2"
        How tags in ``y`` write phrases.
    output : {"auto", "phrases", "open_close"} or a tag scheme, default="auto"
        What `predict` gives; "auto" is the coding of ``y``.
    steps : {"auto", "tokens", "decisions"}, default="auto"
        What a row of X is: a token, whose features serve both decisions, or one decision (open and close of
        each token in turn, as `seqlab.features.BracketFeatures` makes them). "auto" compares the
        lengths of X and y, and takes lists of phrases to go with tokens.
    calibrate : {"auto", "sigmoid", "isotonic"} or None, default="auto"
        Whether classifiers are wrapped in ``CalibratedClassifierCV``, and how. "auto": sigmoid
        for a classifier without ``predict_proba``.
    cv : int, default=3
        Parts of the training data, cut by sequences, for tuning.
    n_jobs : int, default=None
        Processes that fit the parts, and threads of prediction.
    random_state : int, RandomState or None, default=None
        How the parts are drawn.

    Attributes
    ----------
    types_ : list of str or None
        Types of phrases; ``[None]`` where they have none.
    open_classes_, close_classes_ : arrays of shape (n_types + 2,)
        The decisions: ``O, nOi, nOo``, or ``O-NP, O-VP, ..., nOi, nOo`` where there are several types.
    open_posteriors_, close_posteriors_ : StepPosteriors
        The fitted classifiers.
    threshold_, inside_weight_ : float
        As given or tuned.
    tuning_ : dict of arrays, or None
        What was tried: ``inside_weight``, ``threshold`` and the ``f1`` of held-out parts.
    steps_, coding_, output_ : str
        What X and y were found to be, and what `predict` gives.
    classes_ : array
        What `predict` gives: tags, decisions or, for phrases, the types.

    See Also
    --------
    ClassifierHMM, ProjectionMarkovModel : the same classifiers under a Markov model.
    seqlab.inference.best_phrases : the shortest path alone.

    Notes
    -----
    Where there are several types, one open classifier tells all types apart, and one close classifier: a
    phrase gets the type on which both agree at the lowest cost.

    Decoding T tokens and K types takes O(K T) for the first two costs, O(K T log T) for products, O(K T^2)
    for log-odds and O(K T max_length) with limits of length. Tuning fits each classifier ``cv`` times
    more. With `decisions` as rows, each classifier sees only the columns that its own rows use.

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
        """Fit both classifiers on all decisions, and tune what is to be tuned.

        Parameters
        ----------
        X : list of sequences, `Sequences`, 3-D array, or one stacked 2-D matrix with ``lengths``
            One row per token, or two (see ``steps``).
        y : list
            Per sequence a list of phrases (`PhraseSet`, or tuples ``(start, stop, type)``), of
            tags, or of open/close decisions, two per token.
        sample_weight : array of shape (n_sequences,) or (n_rows,), optional
            Needs classifiers that take sample weights.
        lengths : list of int, optional
            Rows per sequence, where X is one stacked matrix.
        """
        with self._fitting():
            rows, layout = self._read_training_features(X, y, lengths)
            targets = read_targets(
                y, rows.lengths, stacked=not layout.is_list, scheme=self.scheme, steps=self.steps
            )
            self.coding_, self.steps_ = targets.coding, targets.steps
            found = {phrase.type for phrases in targets.sets for phrase in phrases}
            if not found:
                raise InputError("no sequence of y has a phrase: there is nothing to learn from")
            self.types_ = sorted(found, key=lambda type_: type_ or "")
            check_constraints(self.constraints, self.types_)
            self.output_ = self._choose_output()
            self.classes_ = self._output_classes()
            self.open_classes_ = decision_names(OPEN_DECISIONS, self.types_)
            self.close_classes_ = decision_names(CLOSE_DECISIONS, self.types_)
            offsets = self._token_offsets(rows)
            gold = stacked_phrases(targets.sets, offsets, self.types_)
            _, weights = sequence_weights(sample_weight, rows.offsets)
            kinds = self._decisions(rows, offsets, gold, None if sample_weight is None else weights)
            self.open_posteriors_, self.close_posteriors_ = (kind.fit() for kind in kinds)
            self._tune(kinds, offsets, gold, weights[:: self._rows_per_token])
        return self

    def predict(self, X: Any, *, lengths: Any = None, constraints: Any = ()) -> Any:
        """Phrases of each sequence, in the coding that ``output`` asks for.

        Parameters
        ----------
        X, lengths : see `fit`
        constraints : sequence of constraints, default=()
            Beyond those of the estimator.

        Returns
        -------
        list of arrays of tags or decisions (one stacked array where X is stacked), or of PhraseSet
        """
        sets, layout = self._predict_sets(X, lengths, constraints)
        return write_sets(sets, self.output_, self.classes_.dtype, layout)

    def predict_phrases(
        self, X: Any, *, lengths: Any = None, constraints: Any = ()
    ) -> list[PhraseSet]:
        """Phrases of each sequence as `PhraseSet`; parameters as of `predict`."""
        return self._predict_sets(X, lengths, constraints)[0]

    def decision_proba(self, X: Any, *, lengths: Any = None) -> DecisionProba:
        """Probabilities that the classifiers give to the decisions.

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
        """F1 of phrases: exact borders and type.

        Parameters
        ----------
        X, lengths : see `fit`
        y : see `fit`; the coding need not be that of `fit`
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
        """The fitted classifier of open decisions; None where training showed one decision only."""
        return self.open_posteriors_.classifier

    @property
    def close_classifier_(self) -> Any:
        """The fitted classifier of close decisions; None where training showed one decision only."""
        return self.close_posteriors_.classifier

    @property
    def _rows_per_token(self) -> int:
        return 2 if self.steps_ == "decisions" else 1

    def _choose_output(self) -> str:
        """The coding of predictions: "phrases", "open_close" or the name of a scheme."""
        if self.output != "auto":
            return self.output
        return self.scheme if self.coding_ == "tags" else self.coding_

    def _output_classes(self) -> NDArray[Any]:
        """What predictions are made of; an error where the types cannot be written so."""
        output = self.output_
        if output == "phrases":
            return np.array([str(type_) for type_ in self.types_])
        if output == "open_close":
            if len(self.types_) > 1:
                raise InputError(
                    "open/close decisions carry one phrase type, but there are "
                    f"{', '.join(map(repr, self.types_))}: choose another output"
                )
            return np.array(DECISIONS)
        letters = get_scheme(output).letters[1:]
        tails = ["" if type_ is None else f"-{type_}" for type_ in self.types_]
        return np.array(sorted(["O", *(letter + tail for tail in tails for letter in letters)]))

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

    def _decisions(self, rows: Sequences, offsets: Any, gold: Any, weights: Any) -> list[Decisions]:
        """The open and the close decisions of the training data."""
        codes = decision_codes(gold, int(offsets[-1]), len(self.types_))
        groups = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
        open_classifier = prepare_classifier(self.classifier, self.calibrate)
        close_classifier = open_classifier
        if self.close_classifier is not None:
            close_classifier = prepare_classifier(self.close_classifier, self.calibrate)
        kinds = []
        self.columns_ = []
        for i, (classes, classifier) in enumerate(
            ((self.open_classes_, open_classifier), (self.close_classes_, close_classifier))
        ):
            every = slice(i if self._rows_per_token == 2 else 0, None, self._rows_per_token)
            matrix = rows.matrix[every]
            self.columns_.append(used_columns(matrix) if self._rows_per_token == 2 else None)
            chosen = self._own_columns(matrix, i)
            own = None if weights is None else weights[every]
            kinds.append(Decisions(chosen, codes[i], classes, own, groups, classifier))
        return kinds

    def _own_columns(self, matrix: Any, i: int) -> Any:
        """Columns that a kind of decision (0: open, 1: close) has in training."""
        return matrix if self.columns_[i] is None else matrix[:, self.columns_[i]]

    def _posteriors(self, rows: Sequences) -> tuple[Any, Any, NDArray[np.int64]]:
        """Posteriors of open and close decisions of all tokens, and where sequences begin."""
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
        """Costs of all phrases, with a threshold of 0."""
        options = {"min_probability": float(self.min_probability)}
        if self.cost in ("weighted", "map"):
            weight = 1.0 if self.cost == "map" else inside_weight
            costs = PhraseCosts.map(opened, closed, offsets, inside_weight=weight, **options)
        else:
            make = PhraseCosts.log_odds if self.cost == "log_odds" else PhraseCosts.product
            costs = make(opened[:, :-2], closed[:, :-2], offsets, **options)
        if self.max_length is not None:
            costs = costs.limited(longest=self.max_length)
        return costs

    def _tune(self, kinds: list[Decisions], offsets: Any, gold: Any, weights: Any) -> None:
        """Set the threshold and the weight of decisions inside."""
        tuned_threshold = self.threshold == "tune" or (
            self.threshold == "auto" and self.cost in TUNED
        )
        tuned_weight = self.cost == "weighted" and self.inside_weight == "auto"
        self.threshold_ = 0.0 if isinstance(self.threshold, str) else float(self.threshold)
        self.inside_weight_ = 1.0 if isinstance(self.inside_weight, str) else self.inside_weight
        self.tuning_ = None
        if not (tuned_threshold or tuned_weight):
            return
        opened, closed = held_out_posteriors(
            kinds, offsets, self.cv, random_state=self.random_state, n_jobs=self.n_jobs
        )
        path, _ = check_constraints(self.constraints, self.types_)
        # Conditions on covered tokens may be impossible under one threshold of candidates; lengths are not.
        limits = [constraint for constraint in path if isinstance(constraint, LengthLimit)]

        def costs_of(inside_weight: float) -> PhraseCosts:
            costs = self._costs(opened, closed, offsets, inside_weight)
            return limit_costs(costs, limits, self.types_)

        tuning = tune(
            costs_of,
            gold,
            logarithmic=self.cost not in ("threshold", "product"),
            inside_weights=INSIDE_WEIGHTS if tuned_weight else np.array([self.inside_weight_]),
            thresholds=None if tuned_threshold else np.array([self.threshold_]),
            weights=weights,
            n_jobs=self.n_jobs,
        )
        self.threshold_, self.inside_weight_ = tuning.threshold, tuning.inside_weight
        self.tuning_ = {name: np.array(tried) for name, tried in tuning.history.items()}

    def _predict_sets(
        self, X: Any, lengths: Any, constraints: Any
    ) -> tuple[list[PhraseSet], Layout]:
        rows, layout = self._read(X, lengths)
        return self._find(rows, constraints), layout

    def _find(self, rows: Sequences, constraints: Any = ()) -> list[PhraseSet]:
        """Cheapest phrases of each sequence under all constraints."""
        own, further = (
            check_constraints(given, self.types_) for given in (self.constraints, constraints)
        )
        opened, closed, offsets = self._posteriors(rows)
        costs = self._costs(opened, closed, offsets, self.inside_weight_)
        costs = costs.with_threshold(self.threshold_)
        every = [*own[0], *own[1], *further[0], *further[1]]
        best = constrained_phrases(costs, every, self.types_, n_jobs=self.n_jobs)
        return to_sets(best.phrases, offsets, self.types_)
