"""Level-wise search for frequent patterns, as Warmr and Apriori do it.

Level k holds the frequent connected patterns of k literals. The candidates of the next level add one
literal; a candidate is dropped without counting if one of its connected parts of k literals is not frequent,
or if it is a renaming of another candidate. Support never grows when a literal is added, so nothing frequent
is missed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Iterator
from numbers import Integral, Real
from typing import NamedTuple

from seqlab.data.errors import InputError
from seqlab.data.symbolic import SymbolicSequences
from seqlab.learning import ProgressBar
from seqlab.relational.literals import Literal, number_variables
from seqlab.relational.patterns.language import PatternLanguage
from seqlab.relational.patterns.matching import Bindings, BitColumns
from seqlab.relational.patterns.pattern import Pattern
from seqlab.utils.signals import check_signals
from seqlab.utils.training_clock import training_time


class PatternBudgetWarning(UserWarning):
    """The search for patterns reached its limit; the message says where, and what to change."""


class MinedPattern(NamedTuple):
    """A frequent pattern."""

    pattern: Pattern
    support: int


def mine_patterns(
    X: SymbolicSequences,
    language: PatternLanguage,
    *,
    min_support: float = 0.001,
    max_length: int = 2,
    max_patterns: int = 1000,
    unit: str = "steps",
    distinct: bool = False,
    max_seconds: float | None = None,
    verbose: bool | int = False,
) -> list[MinedPattern]:
    """Return the frequent patterns, short ones first, in canonical order.

    Parameters
    ----------
    X : SymbolicSequences
    language : PatternLanguage
    min_support : int or float
        Number of pivots (or sequences) at which a pattern must hold; a float is a share of all: 1 is one
        pivot, 1.0 all of them.
    max_length : int
        Limit on the literals of a pattern.
    max_patterns : int
        Limit on the patterns. If it is reached, the patterns of the last level with the highest support are
        kept, the search ends, and a `PatternBudgetWarning` says so.
    unit : {"steps", "sequences"}
        What the support counts.
    distinct : bool
        Whether to leave out patterns that hold at the same steps as an earlier one.
    max_seconds : float, optional
        The search ends after this time, with a `PatternBudgetWarning`.
    verbose : bool or int
        Show progress on standard error.

    Notes
    -----
    The candidates of two literals are counted one by one: their number is quadratic in the number of atoms
    times the steps of the window, even if few of them are kept.

    Examples
    --------
    >>> from seqlab.data import SymbolicSequences
    >>> from seqlab.relational.patterns import PatternLanguage, mine_patterns
    >>> X = SymbolicSequences.from_steps([[["use(cup)"], ["use(cup)"], ["use(pan)"], ["use(pan)"]]])
    >>> language = PatternLanguage(X.table, window=(1, 0), modes=["use(?)"])
    >>> for pattern, support in mine_patterns(X, language, min_support=2, distinct=True):
    ...     print(support, pattern)
    4 use(A)[t]
    3 use(A)[t-1]
    2 use(A)[t-1] & use(A)[t]
    """
    result = search_patterns(
        X,
        language,
        min_support=min_support,
        max_length=max_length,
        max_patterns=max_patterns,
        unit=unit,
        distinct=distinct,
        max_seconds=max_seconds,
        verbose=verbose,
    )
    if result.message:
        warnings.warn(result.message, PatternBudgetWarning, stacklevel=2)
    return result.patterns


class SearchResult(NamedTuple):
    """Frequent patterns, and what ended the search for them."""

    patterns: list[MinedPattern]
    message: str  # the limit that was reached, if any
    is_late: bool  # whether it was the time limit


def search_patterns(
    X: SymbolicSequences,
    language: PatternLanguage,
    *,
    min_support: float,
    max_length: int,
    max_patterns: int,
    unit: str,
    distinct: bool,
    max_seconds: float | None,
    verbose: bool | int,
) -> SearchResult:
    """Find the frequent patterns; see `mine_patterns`, which warns of a limit that was reached."""
    total = _check_arguments(X, language, min_support, max_length, max_patterns, unit)
    columns = BitColumns(X)
    deadline = math.inf if max_seconds is None else training_time() + max_seconds
    needed = minimum_count(min_support, total)
    count = columns.count if unit == "steps" else columns.count_sequences
    found: list[MinedPattern] = []
    message, is_late = "", False
    seen: set[Hashable] = set()
    level: dict[Pattern, _Frequent] = {Pattern([]): _Frequent(columns.everywhere(), total)}
    for length in range(1, max_length + 1):
        following: dict[Pattern, _Frequent] = {}
        best = _BestPatterns(max_patterns - len(found), seen if distinct else set())
        tried: set[Pattern] = set()
        with ProgressBar(f"patterns of {length} literal(s)", len(level), verbose) as bar:
            for parent, literal in _extensions(level, language, bar):
                check_signals()
                is_late = training_time() >= deadline
                if is_late:
                    break
                candidate = Pattern([*parent, literal])
                if len(candidate) < length or candidate in tried:
                    continue
                tried.add(candidate)
                # The support of a part is an upper bound.
                if level[parent].support < best.least or not _is_possible(
                    candidate, level, language
                ):
                    continue
                bindings = _find_bindings(candidate, level, columns)
                bits = columns.union(bindings)
                support = count(bits)
                if support < needed:
                    continue
                # The next level is searched only if all patterns of this one are kept.
                if best.is_full:
                    following.clear()
                elif length < max_length:
                    following[candidate] = _Frequent(bindings, support)
                if support >= best.least and candidate.is_reduced():
                    mined = MinedPattern(candidate, support)
                    best.add(mined, bits.tobytes() if distinct else candidate)
                if best.is_full and not best.room:
                    break
        kept, keys = best.choose()
        found += kept
        seen.update(keys)
        if best.is_full or is_late:
            message = _name_limit(
                best, length, max_patterns, max_seconds if is_late else None, unit
            )
            break
        if not following:
            break
        level = following
    return SearchResult(found, message, is_late)


def minimum_count(min_support: float, total: int) -> float:
    """Return the number of steps or sequences at which a pattern must hold."""
    is_count = isinstance(min_support, Integral)
    return max(1.0, float(min_support) if is_count else float(min_support) * total - 1e-9)


class _Frequent(NamedTuple):
    bindings: Bindings
    support: int


class _BestPatterns:
    """The patterns of a level with the highest support, in bounded memory.

    Parameters
    ----------
    room : int
        Number of patterns that can be kept.
    seen : set
        Keys of patterns that are left out.

    Attributes
    ----------
    is_full : bool
        Whether there are more patterns than room.
    least : int
        Support that a pattern needs to be kept.
    """

    def __init__(self, room: int, seen: set[Hashable]) -> None:
        self.room, self.seen = room, seen
        self.is_full, self.least = False, 0
        self._patterns: dict[Hashable, tuple[int, str, MinedPattern]] = {}

    def add(self, mined: MinedPattern, key: Hashable) -> None:
        """Add a pattern; of several with the same key, the first in alphabetical order counts."""
        if key in self.seen:
            return
        entry = -mined.support, str(mined.pattern), mined
        known = self._patterns.get(key)
        if known is None or entry[:2] < known[:2]:
            self._patterns[key] = entry
        # Not after every pattern, because it takes a sort.
        if len(self._patterns) > (2 * self.room + 64 if self.is_full else self.room):
            self._shrink()

    def _shrink(self) -> None:
        """Drop the patterns beyond the limit."""
        order = sorted(self._patterns, key=lambda key: self._patterns[key][:2])
        for key in order[self.room :]:
            self.is_full = True
            del self._patterns[key]
        if self.is_full and self.room:
            self.least = -self._patterns[order[self.room - 1]][0]

    def choose(self) -> tuple[list[MinedPattern], list[Hashable]]:
        """Return the patterns that are kept, the highest support first, and their keys."""
        self._shrink()
        keys = sorted(self._patterns, key=lambda key: self._patterns[key][:2])
        return [self._patterns[key][2] for key in keys], keys


def _extensions(
    level: dict[Pattern, _Frequent], language: PatternLanguage, bar: ProgressBar
) -> Iterator[tuple[Pattern, Literal]]:
    """Yield the patterns of a level with each literal that may be added to them."""
    # High supports first: they raise the support that the others need.
    for parent in sorted(level, key=lambda one: -level[one].support):
        for literal in language.literals(parent):
            yield parent, literal
        bar.advance()


def _find_bindings(
    candidate: Pattern, level: dict[Pattern, _Frequent], columns: BitColumns
) -> Bindings:
    bindings = columns.everywhere()
    # The bindings of the parent can be reused only if its variables keep their numbers.
    literals = number_variables(candidate)
    start = Pattern(literals[:-1])
    if start in level and tuple(start) == literals[:-1]:
        bindings, literals = level[start].bindings, literals[-1:]
    for literal in literals:
        bindings = columns.extend(bindings, literal)
    return bindings


def _name_limit(
    best: _BestPatterns,
    length: int,
    max_patterns: int,
    max_seconds: float | None,
    unit: str,
) -> str:
    where = f"among the frequent patterns of {length} literal(s)"
    if max_seconds is not None:
        return (
            f"the search for patterns stopped after max_seconds={max_seconds:.3g}, {where}: raise "
            "max_seconds or min_support, or shorten the window"
        )
    left_out = f"those that were left out hold in at most {best.least} {unit}"
    return (
        f"the search for patterns stopped at max_patterns={max_patterns}, {where}: "
        f"{left_out if best.room else 'all of them were left out'}. Raise max_patterns or min_support, or "
        "shorten the window"
    )


def _check_arguments(
    X: SymbolicSequences,
    language: PatternLanguage,
    min_support: float,
    max_length: int,
    max_patterns: int,
    unit: str,
) -> int:
    """Check the arguments of `mine_patterns`; return the number of steps or sequences."""
    if not isinstance(X, SymbolicSequences):
        raise InputError(
            f"X must be SymbolicSequences, for example SymbolicSequences.from_steps(X), not "
            f"{type(X).__name__}"
        )
    if not isinstance(language, PatternLanguage):
        raise InputError(f"language must be a PatternLanguage, not {type(language).__name__}")
    if unit not in ("steps", "sequences"):
        raise InputError(f"unit must be 'steps' or 'sequences', got {unit!r}")
    is_number = isinstance(min_support, Real) and not isinstance(min_support, bool)
    if not is_number or not (
        min_support >= 1 if isinstance(min_support, Integral) else 0 < min_support <= 1
    ):
        raise InputError(
            "min_support must be a whole number of at least 1, or a share of more than 0 and at most 1.0, "
            f"got {min_support!r}"
        )
    for name, value in (("max_length", max_length), ("max_patterns", max_patterns)):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise InputError(f"{name} must be a whole number of at least 1, got {value!r}")
    return X.n_steps if unit == "steps" else len(X)


def _is_possible(
    candidate: Pattern, level: dict[Pattern, _Frequent], language: PatternLanguage
) -> bool:
    """Return whether the candidate is connected and all its parts in the language are frequent (Apriori)."""
    if not candidate.is_connected(language.link):
        return False
    parts = (candidate.without(literal) for literal in candidate)
    return all(part in level for part in parts if language.contains(part))
