"""Queries of relational trees: conjunctions of literals about the steps around ``t``, with shared variables.

``use(A, t), use(A, t-1)`` holds if some object is used now and one step before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from seqlab.data.atoms import quote

Term = str | int  # a constant, or the number of a variable


class Literal(NamedTuple):
    """A predicate with constants and variables, at a distance from the step.

    ``distance`` is None for a comparison and for background knowledge, which do not depend on the step.
    """

    signature: str
    distance: int | None
    terms: tuple[Term, ...]

    def variables(self) -> list[int]:
        """Return the numbers of the variables, in order of appearance."""
        return [term for term in self.terms if isinstance(term, int)]

    def __str__(self) -> str:
        parts = [_variable_name(t) if isinstance(t, int) else quote(t) for t in self.terms]
        if self.distance is not None:
            parts.append("t" if self.distance == 0 else f"t{self.distance:+d}")
        name = quote(self.signature.rpartition("/")[0])
        return f"{name}({', '.join(parts)})" if parts else name


Query = tuple[Literal, ...]


def format_query(query: Query) -> str:
    """Return a query as text.

    Examples
    --------
    >>> format_query((Literal("use/1", 0, (0,)), Literal("type/2", None, (0, "cup"))))
    'use(A, t), type(A, cup)'
    """
    return ", ".join(map(str, query))


def connected_part(query: Query, n_last: int) -> Query:
    """Return the literals that share variables, directly or not, with the last ones, with renamed variables.

    Examples
    --------
    >>> query = Literal("on/1", 0, (0,)), Literal("on/1", 1, (1,)), Literal("on/1", -1, (1,))
    >>> format_query(connected_part(query, 1))
    'on(A, t+1), on(A, t-1)'
    """
    wanted = {v for literal in query[-n_last:] for v in literal.variables()}
    kept = set(range(len(query) - n_last, len(query)))
    while True:
        more = {
            i
            for i, literal in enumerate(query)
            if i not in kept and wanted & set(literal.variables())
        }
        if not more:
            break
        kept |= more
        wanted |= {v for i in more for v in query[i].variables()}
    return rename_variables([query[i] for i in sorted(kept)])


def rename_variables(literals: Sequence[Literal]) -> Query:
    """Number the variables in order of appearance."""
    numbers: dict[int, int] = {}
    for literal in literals:
        for v in literal.variables():
            numbers.setdefault(v, len(numbers))
    return tuple(
        literal._replace(
            terms=tuple(numbers[t] if isinstance(t, int) else t for t in literal.terms)
        )
        for literal in literals
    )


def _variable_name(number: int) -> str:
    letter = chr(ord("A") + number % 26)
    return letter if number < 26 else f"{letter}{number // 26}"
