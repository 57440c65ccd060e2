"""Level-wise search for frequent patterns, as Warmr and Apriori do it.

Level k holds the frequent connected patterns of k literals. The candidates of the next level add one
literal; a candidate is dropped without counting if one of its connected parts of k literals is not frequent,
or if it is a renaming of another candidate. Support never grows when a literal is added, so nothing frequent
is missed.
"""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import NamedTuple

from seqlab.data.symbolic import SymbolicSequences
from seqlab.relational.patterns.language import PatternLanguage
from seqlab.relational.patterns.matching import Bindings, BitColumns, order_literals
from seqlab.relational.patterns.pattern import Pattern


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
) -> list[MinedPattern]:
    """Return the frequent patterns, short ones first, in canonical order.

    Parameters
    ----------
    X : SymbolicSequences
    language : PatternLanguage
    min_support : int or float
        Number of pivots (or sequences) at which a pattern must hold; a float is a share of all.
    max_length : int
        Limit on the literals of a pattern.
    max_patterns : int
        Limit on the patterns. If it is reached, the patterns of the last level with the highest support are
        kept, the search ends, and a `PatternBudgetWarning` says so.
    unit : {"steps", "sequences"}
        What the support counts.
    distinct : bool
        Whether to leave out patterns that hold at the same steps as an earlier one.

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
    columns = BitColumns(X)
    total = columns.n_steps if unit == "steps" else columns.n_sequences
    is_count = isinstance(min_support, Integral)
    needed = max(1.0, float(min_support) if is_count else float(min_support) * total - 1e-9)
    count = columns.count if unit == "steps" else columns.count_sequences
    found: list[MinedPattern] = []
    seen: set[bytes] = set()
    level: dict[Pattern, Bindings] = {Pattern([]): columns.everywhere()}
    for length in range(1, max_length + 1):
        following: dict[Pattern, Bindings] = {}
        mined: list[tuple[MinedPattern, bytes]] = []
        tried: set[Pattern] = set()
        for parent in level:
            for literal in language.literals(parent):
                candidate = Pattern([*parent, literal])
                if len(candidate) < length or candidate in tried:
                    continue
                tried.add(candidate)
                if not _is_possible(candidate, level, language):
                    continue
                bindings = columns.everywhere()
                # The bindings of the parent can be reused only if its variables keep their numbers.
                prefix = order_literals(candidate)
                start = Pattern(prefix[:-1])
                if start in level and list(start) == prefix[:-1]:
                    bindings, prefix = level[start], prefix[-1:]
                for further in prefix:
                    bindings = columns.extend(bindings, further)
                bits = columns.union(bindings)
                support = count(bits)
                if support >= needed:
                    following[candidate] = bindings
                    if candidate.is_reduced():
                        mined.append((MinedPattern(candidate, support), bits.tobytes()))
        mined.sort(key=lambda pair: (-pair[0].support, str(pair[0].pattern)))
        for k, (one, key) in enumerate(mined):
            if distinct and key in seen:
                continue
            if len(found) == max_patterns:
                warnings.warn(
                    f"the search for patterns stopped at max_patterns={max_patterns}, among the {len(mined)} "
                    f"frequent patterns of {length} literal(s): {len(mined) - k} were left out, none of them "
                    f"with more than {one.support} {unit}. Raise max_patterns or min_support, or shorten "
                    "the window",
                    PatternBudgetWarning,
                    stacklevel=2,
                )
                return found
            seen.add(key)
            found.append(one)
        if not following:
            break
        level = following
    return found


def _is_possible(
    candidate: Pattern, level: dict[Pattern, Bindings], language: PatternLanguage
) -> bool:
    """Return whether the candidate is connected and all its parts in the language are frequent (Apriori)."""
    if not candidate.is_connected(language.link):
        return False
    parts = (candidate.without(literal) for literal in candidate)
    return all(part in level for part in parts if language.contains(part))
