"""Queries of relational trees: conjunctions of literals about the steps around ``t``, with shared variables.

``use(A)[t] & use(A)[t-1]`` holds if some object is used now and one step before.
"""

from __future__ import annotations

from seqlab.relational.literals import Literal, number_variables

Query = tuple[Literal, ...]


def connected_part(query: Query, n_last: int) -> Query:
    """Return the literals that share variables, directly or not, with the last ones, with renamed variables.

    Examples
    --------
    >>> from seqlab.relational.literals import format_conjunction
    >>> query = Literal(0, "on", (0,)), Literal(1, "on", (1,)), Literal(-1, "on", (1,))
    >>> format_conjunction(connected_part(query, 1))
    'on(A)[t+1] & on(A)[t-1]'
    """
    wanted = {v for literal in query[-n_last:] for v in literal.variables()}
    kept = set(range(len(query) - n_last, len(query)))
    while True:
        more = {
            i for i, literal in enumerate(query) if i not in kept and wanted & literal.variables()
        }
        if not more:
            break
        kept |= more
        wanted |= {v for i in more for v in query[i].variables()}
    return number_variables(query[i] for i in sorted(kept))
