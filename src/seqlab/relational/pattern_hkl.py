"""PatternHKL: relational patterns are mined first, then StructHKL learns conjunctions of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from seqlab.data import state_checks
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.data.symbolic import AtomTable, SymbolicSequences, name_atoms
from seqlab.features.window import check_window
from seqlab.learning import FitProgress, FitResult, TrainingData
from seqlab.relational.hkl import StructHKL
from seqlab.relational.hkl.rules import binary_inputs
from seqlab.relational.patterns import (
    Literal,
    Pattern,
    PatternBudgetWarning,
    PatternLanguage,
    match_patterns,
)
from seqlab.relational.patterns.language import MAX_VARIABLES
from seqlab.relational.patterns.mining import minimum_count, search_patterns
from seqlab.relational.trees.atom_vectorizer import AtomVectorizer, first_columns
from seqlab.utils.training_clock import training_time

# Larger distances than any sequence is long.
MAX_OFFSET = 2**31


class PatternHKL(StructHKL):
    """Max-margin chain over conjunctions of mined relational patterns (enumAF).

    A pattern says what happens around a step, such as ``on(fridge)[t-2] & on(cupboard)[t]`` or
    ``use(A)[t-1] & use(A)[t]`` (the same object twice). The frequent patterns are found by level-wise search
    in the training sequences; `StructHKL` then chooses conjunctions of them.

    Parameters
    ----------
    window : tuple (before, after), default=(2, 0)
        Patterns refer to steps ``t - before`` to ``t + after``.
    modes : sequence of str or None, default=None
        How the predicates of the data may be used: ``"on(#)"`` with a constant, ``"use(?)"`` with a variable,
        ``"color(?, #)"`` with both; the other forms of `RelationalBoostedCRF` have the same meaning here. By
        default with constants only. A column named ``use(cup)`` is this atom,
        ``word=to`` is ``word(to)``, every other name ``door`` is ``on(door)``.
    max_pattern_length : int, default=2
        Limit on the literals of a pattern.
    min_support : int or float, default=0.001
        Number of steps at which a pattern must hold; a float is a share of all steps: 1 is one step, 1.0
        all steps. If no pattern is frequent, a warning says so.
    support_unit : {"steps", "sequences"}, default="steps"
        What the support counts.
    max_patterns : int, default=500
        Limit on the patterns. If it is reached, a `seqlab.relational.patterns.PatternBudgetWarning` says so.
    max_variables : int, default=2
        Limit on the variables of a pattern.
    link : {"time", "variables"}, default="time"
        Literals of a pattern must be connected. Two literals are connected if they share a variable or, with
        "time", if they refer to different steps.
    C, rho, max_length, max_nodes, label_wise, rescaling, class_weight, boundary, max_iter, tol, \
max_seconds, callback, n_jobs, verbose
        See `StructHKL`; ``max_length`` is 2 by default, and ``max_seconds`` includes the search for patterns.
    length_penalty : float, default=4.0
        See `StructHKL`. It is larger here, because many patterns hold at the same steps.

    Attributes
    ----------
    patterns_ : list of Pattern
        The mined patterns; conjunctions refer to them by number.
    classes_, conjunctions_, conjunction_coef_, is_selected_, rules_, transitions_, start_, end_, \
objective_, n_iter_, converged_, history_
        See `StructHKL`.

    References
    ----------
    Nagesh, Nair & Ramakrishnan (2013), *Comparison between explicit learning and implicit modeling of
    relational features in structured output spaces*. Dehaspe & Toivonen (1999), *Discovery of frequent
    Datalog patterns*.

    Examples
    --------
    >>> from seqlab import PatternHKL
    >>> X = [[["cup"], ["kettle"], ["cup"], ["cup"], ["kettle"], ["kettle"], ["cup"]]] * 3
    >>> y = [["a", "b", "b", "a", "b", "a", "b"]] * 3  # b: another object than in the step before
    >>> model = PatternHKL(window=(1, 0), modes=["on(#)", "on(?)"], C=10).fit(X, y)
    >>> model.score(X, y)
    1.0
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **StructHKL._parameter_constraints,
        "window": [tuple, list],
        "modes": ["array-like", None],
        "max_pattern_length": [Interval(Integral, 1, None, closed="left")],
        "min_support": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
        ],
        "support_unit": [StrOptions({"steps", "sequences"})],
        "max_patterns": [Interval(Integral, 1, None, closed="left")],
        "max_variables": [Interval(Integral, 0, MAX_VARIABLES, closed="both")],
        "link": [StrOptions({"time", "variables"})],
    }

    def __init__(
        self,
        *,
        window: tuple[int, int] = (2, 0),
        modes: Sequence[str] | None = None,
        max_pattern_length: int = 2,
        min_support: float = 0.001,
        support_unit: str = "steps",
        max_patterns: int = 500,
        max_variables: int = 2,
        link: str = "time",
        C: float = 1.0,
        rho: float = 1.5,
        length_penalty: float = 4.0,
        max_length: int | None = 2,
        max_nodes: int = 20_000,
        label_wise: bool = True,
        rescaling: str = "margin",
        class_weight: dict[Any, float] | str | None = None,
        boundary: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-2,
        max_seconds: float | None = None,
        callback: Callable[[FitProgress], Any] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        super().__init__(
            C=C,
            rho=rho,
            length_penalty=length_penalty,
            max_length=max_length,
            max_nodes=max_nodes,
            label_wise=label_wise,
            rescaling=rescaling,
            class_weight=class_weight,
            boundary=boundary,
            max_iter=max_iter,
            tol=tol,
            max_seconds=max_seconds,
            callback=callback,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.window = window
        self.modes = modes
        self.max_pattern_length = max_pattern_length
        self.min_support = min_support
        self.support_unit = support_unit
        self.max_patterns = max_patterns
        self.max_variables = max_variables
        self.link = link

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, lengths: Any = None) -> PatternHKL:
        """Mine patterns, then learn their conjunctions and the weights.

        Parameters
        ----------
        X, y, sample_weight, lengths : see `StructHKL.fit`
        """
        self._fit(X, y, sample_weight, lengths)
        return self

    def _learn(self, data: TrainingData) -> FitResult:
        began = training_time()
        window = check_window(self.window)
        symbols = self._symbols(data.X.matrix, data.X.offsets, [])
        language = PatternLanguage(
            symbols.table,
            window=window,
            modes=self.modes,
            max_variables=self.max_variables,
            link=self.link,
        )
        search = search_patterns(
            symbols,
            language,
            min_support=self.min_support,
            max_length=self.max_pattern_length,
            max_patterns=self.max_patterns,
            unit=self.support_unit,
            distinct=True,
            max_seconds=self.max_seconds,
            verbose=self.verbose,
        )
        mined = search.patterns
        if search.message and not search.is_late:
            warnings.warn(search.message, PatternBudgetWarning, stacklevel=2)
        if not mined and not search.is_late:
            self._warn_of_no_pattern(symbols)
        # Plain lists, which a model file can hold: [[offset, predicate, [terms]], ...] for each pattern.
        self.pattern_literals_: list[Any] = [
            [[one.offset, one.predicate, list(one.arguments)] for one in pattern]
            for pattern, _ in mined
        ]
        self.pattern_supports_ = np.array([support for _, support in mined], dtype=np.int64)
        matrix = match_patterns(self.patterns_, symbols)
        with_patterns = data.with_features(Sequences(matrix, np.array(data.X.offsets)))
        result = self._learn_conjunctions(with_patterns, began)
        if search.is_late and result.stop_reason == "max_seconds":
            result.hint = "; the time was over before all frequent patterns were found"
        elif search.is_late:
            warnings.warn(search.message, PatternBudgetWarning, stacklevel=2)
        return result

    def _warn_of_no_pattern(self, X: SymbolicSequences) -> None:
        total = X.n_steps if self.support_unit == "steps" else len(X)
        needed = math.ceil(minimum_count(self.min_support, total))
        warnings.warn(
            f"no pattern of the language holds in at least {needed} of {total} {self.support_unit}, so that "
            f"the model has no rules: lower min_support={self.min_support!r} (1 is one of them, 1.0 all), or "
            "allow other patterns with modes and max_variables",
            stacklevel=2,
        )

    def _new_vectorizer(self) -> Any:
        # A pattern with variables may hold for objects that training does not show.
        return AtomVectorizer(predicate="on")

    def _check_features(self, X: Any, sequences: Sequences, *, reset: bool) -> None:
        if not (reset or self.vectorizer_ is None or isinstance(X, Sequences)):
            X = sequences = first_columns(sequences, self.n_features_in_)
        super()._check_features(X, sequences, reset=reset)

    def _symbols(self, matrix: Any, offsets: Any, new_names: list[str]) -> SymbolicSequences:
        """Return the atoms of every step: the columns that are on.

        ``new_names`` are the names of the columns after those of training.
        """
        names = [*super()._input_names(), *new_names]
        inputs = binary_inputs(matrix)
        table = AtomTable(name_atoms(names, len(names)))
        return SymbolicSequences(table, inputs.indptr, inputs.indices, offsets)

    @property
    def patterns_(self) -> list[Pattern]:
        """The mined patterns."""
        check_is_fitted(self)
        return [
            Pattern(Literal(offset, name, tuple(terms)) for offset, name, terms in literals)
            for literals in self.pattern_literals_
        ]

    def _input_names(self) -> list[str]:
        return [str(pattern) for pattern in self.patterns_]

    def _n_inputs(self) -> int:
        return len(self.pattern_literals_)

    def _block_inputs(self, block: SequenceBlock) -> sp.csr_matrix:
        rows = block.matrix[block.begin : block.begin + block.n_steps]
        names = block.parent.feature_names
        new = [] if names is None else [str(name) for name in names[self.n_features_in_ :]]
        return match_patterns(self.patterns_, self._symbols(rows, block.offsets, new))

    def _check_state(self) -> None:
        if state_checks.has_fitted_attributes(self):
            literals = self.pattern_literals_
            is_valid = isinstance(literals, list) and all(map(_is_stored_pattern, literals))
            state_checks.require(is_valid, "pattern_literals_")
            shape = (len(literals),)
            state_checks.check_array(self.pattern_supports_, "pattern_supports_", shape, "i")
        super()._check_state()


def _is_stored_pattern(literals: Any) -> bool:
    """Return whether a restored object has the form of a stored pattern."""
    if not isinstance(literals, list) or not literals:
        return False
    for literal in literals:
        if not isinstance(literal, list) or len(literal) != 3 or not isinstance(literal[2], list):
            return False
        offset, name, terms = literal
        if not isinstance(offset, int) or abs(offset) > MAX_OFFSET or not isinstance(name, str):
            return False
        is_term = (
            isinstance(x, str) or (isinstance(x, int) and 0 <= x < MAX_VARIABLES) for x in terms
        )
        if not all(is_term):
            return False
    return True
