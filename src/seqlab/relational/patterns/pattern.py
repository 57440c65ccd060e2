"""Patterns: sets of literals at steps relative to the pivot ``t``, with shared variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations

from seqlab.relational.literals import Literal, Term, format_conjunction


class Pattern(tuple[Literal, ...]):
    """A conjunction of literals in canonical form: equal patterns are equal tuples.

    Two patterns that differ only in the names of their variables or in the order of their literals are the
    same pattern.

    Examples
    --------
    >>> from seqlab.relational.patterns import Literal, Pattern
    >>> first = Pattern([Literal(0, "use", (5,)), Literal(-1, "use", (5,))])
    >>> print(first)
    use(A)[t-1] & use(A)[t]
    >>> first == Pattern([Literal(-1, "use", (0,)), Literal(0, "use", (0,))])
    True
    """

    __slots__ = ()

    def __new__(cls, literals: Iterable[Literal]) -> Pattern:
        """Return the canonical form."""
        given = set(literals)
        names = sorted({x for literal in given for x in literal.variables()})
        if not names:
            return super().__new__(cls, sorted(given, key=_key))
        forms = [
            tuple(sorted((one.substitute(dict(zip(names, order, strict=True))) for one in given), key=_key))
            for order in permutations(range(len(names)))
        ]  # fmt: skip
        best = min(forms, key=lambda form: tuple(map(_key, form)))
        return super().__new__(cls, best)

    def __str__(self) -> str:
        return format_conjunction(self)

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len({x for literal in self for x in literal.variables()})

    def without(self, literal: Literal) -> Pattern:
        """Return the pattern without one of its literals."""
        return Pattern(one for one in self if one != literal)

    def is_connected(self, link: str) -> bool:
        """Return whether the pattern cannot be split into parts that are linked to the pivot alone.

        Two literals are linked if they share a variable or, with ``link="time"``, if they are at different
        steps: their order in time is a relation between them.
        """
        reached, left = [self[0]] if self else [], list(self[1:])
        while left:
            following = [
                one for one in left if any(_is_linked(one, other, link) for other in reached)
            ]
            if not following:
                return False
            reached += following
            left = [one for one in left if one not in following]
        return True

    def subsumes(self, other: Iterable[Literal]) -> bool:
        """Return whether some substitution makes this pattern a subset of ``other`` (theta-subsumption).

        This pattern then holds wherever ``other`` holds.
        """
        return any(True for _ in _embeddings(list(self), list(other), {}))

    def is_reduced(self) -> bool:
        """Return whether no literal is redundant: the pattern does not subsume a part of itself."""
        return not any(self.subsumes([one for one in self if one != literal]) for literal in self)


def _key(literal: Literal) -> tuple[int, str, int, tuple[tuple[int, Term], ...]]:
    """Sort by step, predicate and arguments; variables come before constants."""
    assert literal.offset is not None  # only queries of trees have literals without a step
    terms = tuple((int(isinstance(x, str)), x) for x in literal.arguments)
    return literal.offset, literal.predicate, len(terms), terms


def _is_linked(a: Literal, b: Literal, link: str) -> bool:
    return bool(a.variables() & b.variables()) or (link == "time" and a.offset != b.offset)


def _embeddings(
    literals: list[Literal], targets: list[Literal], mapping: dict[int, Term]
) -> Iterator[dict[int, Term]]:
    """Yield the substitutions that map all literals to targets."""
    if not literals:
        yield mapping
        return
    first, rest = literals[0], literals[1:]
    for target in targets:
        extended = unify(first, target, mapping)
        if extended is not None:
            yield from _embeddings(rest, targets, extended)


def unify(literal: Literal, target: Literal, mapping: dict[int, Term]) -> dict[int, Term] | None:
    """Return the mapping extended so that the literal becomes the target; None if it cannot."""
    same = (literal.offset, literal.predicate) == (target.offset, target.predicate)
    if not same or len(literal.arguments) != len(target.arguments):
        return None
    extended = dict(mapping)
    for term, value in zip(literal.arguments, target.arguments, strict=True):
        if isinstance(term, str):
            if term != value:
                return None
        elif extended.setdefault(term, value) != value:
            return None
    return extended
