"""PhraseSet: the phrases of one sequence, with conversions from and to tags and open/close decisions."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, overload

from seqlab.data.errors import InputError
from seqlab.data.open_close import open_close_to_phrases, phrases_to_open_close
from seqlab.data.phrases import Phrase, check_phrases, sort_phrases
from seqlab.data.tags import phrases_to_tags, tags_to_phrases


class PhraseSet(Sequence[Phrase]):
    """The disjoint phrases of a sequence, sorted by position; immutable.

    Parameters
    ----------
    phrases : iterable of Phrase or (start, stop, type) tuples
        In any order.
    length : int
        Number of steps of the sequence.

    Raises
    ------
    InputError
        If phrases overlap, are empty or are not inside the sequence.

    Examples
    --------
    >>> from seqlab.data import PhraseSet
    >>> phrases = PhraseSet([(3, 4, "VP"), (0, 2, "NP")], length=4)
    >>> phrases[0], len(phrases), phrases.types
    (Phrase(start=0, stop=2, type='NP'), 2, ('NP', 'VP'))
    >>> phrases.to_tags()
    ['B-NP', 'I-NP', 'O', 'B-VP']
    >>> PhraseSet.from_tags(["B-NP", "I-NP", "O", "B-VP"]) == phrases
    True
    >>> sorted(phrases & PhraseSet([(0, 2, "NP"), (2, 4, "VP")], length=4))
    [Phrase(start=0, stop=2, type='NP')]
    """

    __slots__ = ("_phrases", "length")

    def __init__(self, phrases: Iterable[Any], length: int) -> None:
        try:
            self.length = operator.index(length)
        except TypeError:
            raise InputError(f"length must be a number of steps, got {length!r}") from None
        if self.length < 0:
            raise InputError(f"length must not be negative, got {length}")
        self._phrases = tuple(check_phrases(sort_phrases(phrases), self.length))

    @classmethod
    def from_tags(
        cls, tags: Iterable[str], scheme: str = "IOB2", *, strict: bool = False
    ) -> PhraseSet:
        """Convert from tags; see `tags_to_phrases`."""
        tags = tags if isinstance(tags, str) else list(tags)
        return cls(tags_to_phrases(tags, scheme, strict), len(tags))

    @classmethod
    def from_open_close(cls, decisions: Sequence[str], type: str | None = None) -> PhraseSet:
        """Convert from two decisions per step; see `open_close_to_phrases`."""
        return cls(open_close_to_phrases(decisions, type), len(decisions) // 2)

    def to_tags(self, scheme: str = "IOB2") -> list[str]:
        """Convert to one tag per step; see `phrases_to_tags`."""
        return phrases_to_tags(self._phrases, self.length, scheme)

    def to_open_close(self) -> list[str]:
        """Convert to two decisions per step; see `phrases_to_open_close`."""
        return phrases_to_open_close(self._phrases, self.length)

    @property
    def types(self) -> tuple[str | None, ...]:
        """The types of the phrases, sorted; None first."""
        return tuple(sorted({phrase.type for phrase in self._phrases}, key=lambda t: t or ""))

    @overload
    def __getitem__(self, index: int) -> Phrase: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Phrase, ...]: ...

    def __getitem__(self, index: int | slice) -> Phrase | tuple[Phrase, ...]:
        return self._phrases[index]

    def __len__(self) -> int:
        return len(self._phrases)

    def __and__(self, other: Iterable[Any]) -> frozenset[Phrase]:
        """The phrases in both: same start, stop and type."""
        return frozenset(self._phrases) & frozenset(other)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PhraseSet):
            return NotImplemented
        return self.length == other.length and self._phrases == other._phrases

    def __hash__(self) -> int:
        return hash((self._phrases, self.length))

    def __repr__(self) -> str:
        inner = ", ".join(f"({a}, {b}, {type_!r})" for a, b, type_ in self._phrases)
        return f"PhraseSet([{inner}], length={self.length})"
