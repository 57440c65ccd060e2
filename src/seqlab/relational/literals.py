"""Literals: predicates with constants and variables, at a step relative to ``t``.

Mined patterns and the queries of relational trees are conjunctions of literals. ``use(A)[t-1]`` says that
some atom ``use(...)`` holds one step before ``t``. The same variable stands for the same constant in all
literals of a conjunction.
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Mapping
from typing import NamedTuple

from seqlab.data.atoms import quote

Term = str | int  # a constant, or the number of a variable


class Literal(NamedTuple):
    """A predicate with constants and variables, at a step relative to ``t``.

    Attributes
    ----------
    offset : int or None
        The literal must hold at step ``t + offset``. None for a comparison of variables and for background
        knowledge, which do not depend on the step.
    predicate : str
    arguments : tuple of str and int
        Constants are strings; variables are numbers.

    Examples
    --------
    >>> print(Literal(-1, "use", (0,)), Literal(None, "kind", (0, "tea cup")))
    use(A)[t-1] kind(A, 'tea cup')
    """

    offset: int | None
    predicate: str
    arguments: tuple[Term, ...]

    def __str__(self) -> str:
        terms = [_variable_name(x) if isinstance(x, int) else quote(x) for x in self.arguments]
        text = quote(self.predicate) + (f"({', '.join(terms)})" if terms else "")
        return text if self.offset is None else f"{text}[{format_step(self.offset)}]"

    @property
    def signature(self) -> str:
        """Predicate and number of arguments, such as ``use/1``."""
        return f"{self.predicate}/{len(self.arguments)}"

    def variables(self) -> KeysView[int]:
        """Return the distinct variables, in order of appearance."""
        return dict.fromkeys([term for term in self.arguments if isinstance(term, int)]).keys()

    def substitute(self, mapping: Mapping[int, Term]) -> Literal:
        """Return the literal with some variables replaced."""
        arguments = tuple(mapping.get(x, x) if isinstance(x, int) else x for x in self.arguments)
        return self._replace(arguments=arguments)


def format_step(offset: int) -> str:
    """Return a step as text.

    Examples
    --------
    >>> format_step(-2), format_step(0)
    ('t-2', 't')
    """
    return f"t{offset:+d}" if offset else "t"


def format_conjunction(literals: Iterable[Literal]) -> str:
    """Return literals as text.

    Examples
    --------
    >>> format_conjunction([Literal(0, "use", (0,)), Literal(None, "kind", (0, "cup"))])
    'use(A)[t] & kind(A, cup)'
    """
    return " & ".join(map(str, literals))


def number_variables(literals: Iterable[Literal]) -> tuple[Literal, ...]:
    """Number the variables in order of appearance.

    Examples
    --------
    >>> format_conjunction(number_variables([Literal(0, "near", (7, 3)), Literal(0, "use", (3,))]))
    'near(A, B)[t] & use(B)[t]'
    """
    literals = tuple(literals)
    names = dict.fromkeys(name for literal in literals for name in literal.variables())
    if not names:
        return literals
    numbers = {name: number for number, name in enumerate(names)}
    return tuple(literal.substitute(numbers) for literal in literals)


def _variable_name(number: int) -> str:
    letter = chr(ord("A") + number % 26)
    return letter if number < 26 else f"{letter}{number // 26}"
