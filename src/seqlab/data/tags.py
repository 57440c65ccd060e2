"""Tag schemes: phrase sets written as one tag per step.

A tag is a letter, a hyphen and a type (``B-NP``), or only a letter if phrases have no types; the
type is everything after the *first* hyphen (``B-NP-SBJ`` has the type ``NP-SBJ``). Tags without a type
give phrases of type None. The letters:

======  ======================================================================================
IO      ``I`` inside a phrase, ``O`` outside. Adjacent phrases of one type cannot be told apart.
IOB1    ``I`` inside; ``B`` only if a phrase directly follows another one of its type.
IOB2    ``B`` on the first step of every phrase, ``I`` on the others (also called BIO).
IOBES   ``S`` for a phrase of one step; else ``B`` first, ``E`` last, ``I`` between (also BIOES).
BILOU   IOBES with ``L`` (last) for ``E`` and ``U`` (unit) for ``S``.
======  ======================================================================================

Every scheme is a set of rules for two adjacent tags, so that reading, checking and masking use the
same table. A *run* is a maximal sequence of tags that continue each other (``B`` or ``I``, then ``I``
or ``E`` of the same type); every phrase is part of one run.

Malformed tags, such as ``O I-NP`` in IOB2, are read in one of two ways:

- by default like ``conlleval``, the script of the CoNLL shared tasks: every tag except ``O`` belongs
  to a phrase, and every run is one phrase. ``I`` after ``O`` or after another type starts a phrase.
- ``strict``: only well-formed phrases count. The rules are those of seqeval's ``mode="strict"``.

References
----------
Ramshaw and Marcus, "Text chunking using transformation-based learning", 1995.
Tjong Kim Sang and Veenstra, "Representing text chunks", EACL 1999.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.phrases import Phrase, check_phrases, sort_phrases

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# One code for the letters of all schemes; BILOU's L and U are E and S.
_LETTERS = "OBIES"
_O, _B, _I, _E, _S = range(5)


def _rules(*patterns: str) -> Bools:
    """Build a table [previous letter, letter, same type] from patterns such as ``"BI>IE="``.

    A pattern has the previous letters, ``>`` and the current letters (``*``: all); a final ``=``
    means equal types, ``!`` different ones.
    """
    table = np.zeros((5, 5, 2), dtype=bool)
    for pattern in patterns:
        before, after = pattern.rstrip("=!").replace("*", _LETTERS).split(">")
        same = {"=": [1], "!": [0]}.get(pattern[-1], [0, 1])
        rows, columns = ([_LETTERS.index(letter) for letter in part] for part in (before, after))
        table[np.ix_(rows, columns, same)] = True
    return table


_CONTINUES = _rules("BI>IE=")
_LENIENT_BEGINS = _rules("*>BIES")
_LENIENT_CLOSES = _rules("*>*")


@dataclass(frozen=True, slots=True, eq=False)
class _Scheme:
    name: str
    letters: str  # in the order of `codes`
    codes: tuple[int, ...]
    legal: Bools  # [previous, current, same type]: the scheme allows the pair
    begins: Bools  # strict reading: a phrase may begin at the current step
    closes: Bools  # strict reading: a phrase may end before the current step


_IOBES_TABLES = (_rules("OES>OBS", "BI>IE="), _rules("*>BS"), _rules("ES>*"))
_SCHEMES = {
    scheme.name: scheme
    for scheme in (
        _Scheme("IO", "OI", (_O, _I), _rules("*>*"), _rules("*>I"), _rules("*>*")),
        _Scheme(
            "IOB1",
            "OIB",
            (_O, _I, _B),
            _rules("*>OI", "BI>B="),
            # As in seqeval: an I after a misplaced B begins a phrase, and a phrase B-X before a
            # misplaced B-Y does not count.
            _rules("O>I", "I>I!", "B>I", "BI>B="),
            _rules("I>*", "B>O", "B>I!", "B>B="),
        ),
        _Scheme("IOB2", "OBI", (_O, _B, _I), _rules("*>OB", "BI>I="), _rules("*>B"), _rules("*>*")),
        _Scheme("IOBES", "OBIES", (_O, _B, _I, _E, _S), *_IOBES_TABLES),
        _Scheme("BILOU", "OBILU", (_O, _B, _I, _E, _S), *_IOBES_TABLES),
    )
}
SCHEMES: tuple[str, ...] = tuple(_SCHEMES)
_OTHER_NAMES = {"BIO": "IOB2", "IOB": "IOB2", "BIO2": "IOB2", "BIOES": "IOBES"}


class SchemeMask(NamedTuple):
    """The transitions and labels that a scheme allows.

    Attributes
    ----------
    transitions : boolean array of shape (n_labels, n_labels)
        ``transitions[i, j]``: label ``j`` may follow label ``i``.
    start, end : boolean arrays of shape (n_labels,)
        Labels that may be first and last.
    """

    transitions: Bools
    start: Bools
    end: Bools


class StackedPhrases(NamedTuple):
    """Phrases of many sequences, as positions in the stacked steps, sorted by start.

    Attributes
    ----------
    start, stop, type : integer arrays of shape (n_phrases,)
        First step, step after the last one, code of the type.
    """

    start: Ints
    stop: Ints
    type: Ints


def get_scheme(name: Any) -> _Scheme:
    """Return the rules of a scheme; an unknown name is an `InputError` with a suggestion."""
    if isinstance(name, str) and name in _SCHEMES:
        return _SCHEMES[name]
    known = ", ".join(SCHEMES)
    hint = ""
    if isinstance(name, str):
        near = difflib.get_close_matches(name.upper(), [*SCHEMES, *_OTHER_NAMES], 1, cutoff=0.5)
        hint = f"; did you mean {_OTHER_NAMES.get(near[0], near[0])!r}?" if near else ""
    raise InputError(f"unknown tag scheme {name!r}{hint} (schemes: {known})")


def parse_tag(tag: Any, scheme: str = "IOB2", *, where: str = "") -> tuple[int, str | None]:
    """Split a tag into the code of its letter (an index into ``"OBIES"``) and its type.

    Parameters
    ----------
    tag : str
    scheme : str
    where : str
        Position of the tag in the error message (``"at position 3"``).

    Examples
    --------
    >>> from seqlab.data.tags import parse_tag
    >>> parse_tag("B-NP-SBJ"), parse_tag("O")
    ((1, 'NP-SBJ'), (0, None))
    """
    rules = get_scheme(scheme)
    if isinstance(tag, str) and tag:
        letter = rules.letters.find(tag[0])
        typed = len(tag) > 2 and tag[1] == "-" and letter > 0
        if letter >= 0 and (len(tag) == 1 or typed):
            return rules.codes[letter], str(tag[2:]) if typed else None
    spelled = ", ".join(["O", *(f"{letter}-type" for letter in rules.letters[1:])])
    place = f" {where}" if where else ""
    raise InputError(f"tag {tag!r}{place} does not belong to {scheme} ({spelled})")


def find_phrases(
    letters: Ints, types: Ints, offsets: Ints, scheme: str = "IOB2", *, strict: bool = False
) -> StackedPhrases:
    """Find the phrases of many encoded tag sequences, without a Python loop over steps.

    Parameters
    ----------
    letters, types : integer arrays of shape (n_steps,)
        Codes of letters (see `parse_tag`) and of types; the type of an ``O`` is ignored.
    offsets : integer array of shape (n_sequences + 1,)
        First step of each sequence, then ``n_steps``. No phrase is in two sequences.
    scheme, strict
        As in `tags_to_phrases`.

    Notes
    -----
    Linear in the number of steps. A phrase goes from the first step of a run at which the rules
    allow a beginning to the end of the run, if they allow an ending there.
    """
    rules = get_scheme(scheme)
    n_steps = letters.size
    # The steps before and after a sequence count as O.
    before = np.zeros(n_steps + 1, dtype=np.int64)
    before[1:] = letters
    current = np.zeros(n_steps + 1, dtype=np.int64)
    current[:-1] = letters
    same = np.zeros(n_steps + 1, dtype=np.int64)
    same[1:-1] = types[1:] == types[:-1]
    before_start, after_end = before.copy(), current.copy()
    before_start[offsets] = _O
    after_end[offsets] = _O

    continues = _CONTINUES[before_start, current, same]
    begins = (rules.begins if strict else _LENIENT_BEGINS)[before_start, current, same]
    closes = (rules.closes if strict else _LENIENT_CLOSES)[before, after_end, same]

    heads = np.flatnonzero(~continues)  # the last entry is n_steps
    run_of_step = np.cumsum(~continues) - 1
    start = np.flatnonzero(begins)
    run = run_of_step[start]
    first = np.ones(start.size, dtype=bool)
    first[1:] = run[1:] != run[:-1]
    start, run = start[first], run[first]
    stop = heads[run + 1] if start.size else start
    kept = closes[stop]
    return StackedPhrases(start[kept], stop[kept], types[start[kept]])


def tags_to_phrases(
    tags: Iterable[str], scheme: str = "IOB2", strict: bool = False
) -> list[Phrase]:
    """Return the phrases of a tag sequence.

    Parameters
    ----------
    tags : sequence of str
        The tags of one sequence.
    scheme : {"IO", "IOB1", "IOB2", "IOBES", "BILOU"}
    strict : bool
        Whether only well-formed phrases count. By default malformed tags are read like
        ``conlleval`` does: an ``I`` after ``O`` or after another type starts a phrase.

    Returns
    -------
    list of Phrase
        Sorted and disjoint. The type is None for tags without a type.

    Raises
    ------
    InputError
        For a tag that is not in the scheme; the message gives its position.

    Notes
    -----
    The default reading equals seqeval's default mode on IOB1, IOB2 and IOBES, and ``conlleval``
    on IOB1 and IOB2. ``conlleval`` does not support ``S`` and does not end a phrase between ``E`` and
    ``B``; here, as in seqeval, the phrase ends. seqeval's default mode does not support BILOU; here
    it is IOBES with other letters.

    Examples
    --------
    >>> from seqlab.data import tags_to_phrases
    >>> tags_to_phrases(["B-NP", "I-NP", "O", "I-VP"])
    [Phrase(start=0, stop=2, type='NP'), Phrase(start=3, stop=4, type='VP')]
    >>> tags_to_phrases(["B-NP", "I-NP", "O", "I-VP"], strict=True)
    [Phrase(start=0, stop=2, type='NP')]
    """
    if isinstance(tags, str):
        raise InputError(f"expected a sequence of tags, got the string {tags!r}")
    known: dict[str, tuple[int, str | None]] = {}
    types: dict[str | None, int] = {}
    letters, codes = [], []
    for position, tag in enumerate(tags):
        if not isinstance(tag, str) or tag not in known:
            known[tag] = parse_tag(tag, scheme, where=f"at position {position}")
        letter, type_ = known[tag]
        letters.append(letter)
        codes.append(types.setdefault(type_, len(types)))
    found = find_phrases(
        np.array(letters, dtype=np.int64),
        np.array(codes, dtype=np.int64),
        np.array([0, len(letters)]),
        scheme,
        strict=strict,
    )
    names = list(types)
    starts, stops, type_codes = (part.tolist() for part in found)
    return [Phrase(a, b, names[c]) for a, b, c in zip(starts, stops, type_codes, strict=True)]


def phrases_to_tags(phrases: Iterable[Any], length: int, scheme: str = "IOB2") -> list[str]:
    """Convert a phrase set to tags.

    Parameters
    ----------
    phrases : iterable of Phrase or (start, stop, type) tuples
        Disjoint and inside the sequence, in any order.
    length : int
        Number of steps of the sequence.
    scheme : {"IO", "IOB1", "IOB2", "IOBES", "BILOU"}

    Raises
    ------
    InputError
        For phrases that overlap or are not inside the sequence, and in ``"IO"`` for adjacent
        phrases of one type, which would be read as one phrase.

    Examples
    --------
    >>> from seqlab.data import phrases_to_tags
    >>> phrases_to_tags([(0, 2, "NP"), (2, 3, "NP")], length=4)
    ['B-NP', 'I-NP', 'B-NP', 'O']
    >>> phrases_to_tags([(0, 2, "NP"), (2, 3, "NP")], length=4, scheme="IOB1")
    ['I-NP', 'I-NP', 'B-NP', 'O']
    """
    rules = get_scheme(scheme)
    letter_of = dict(zip(rules.codes, rules.letters, strict=True))
    tags = ["O"] * length
    previous: Phrase | None = None
    for phrase in check_phrases(sort_phrases(phrases), length):
        if phrase.type == "":
            raise InputError(f"{phrase} has an empty type: use None for phrases without a type")
        is_adjacent = (
            previous is not None and previous.stop == phrase.start and previous.type == phrase.type
        )
        if is_adjacent and scheme == "IO":
            raise InputError(
                f"{previous} and {phrase} are adjacent and have the same type: IO would merge them at "
                f"step {phrase.start}; use another scheme or merge them first"
            )
        suffix = "" if phrase.type is None else f"-{phrase.type}"
        codes = _phrase_codes(scheme, phrase.stop - phrase.start, is_adjacent=is_adjacent)
        tags[phrase.start : phrase.stop] = [letter_of[code] + suffix for code in codes]
        previous = phrase
    return tags


def convert_tags(tags: Sequence[str], source: str, target: str) -> list[str]:
    """Convert the tags of one sequence to another scheme; malformed tags become well-formed.

    Examples
    --------
    >>> from seqlab.data import convert_tags
    >>> convert_tags(["B-NP", "I-NP", "O", "B-VP"], "IOB2", "IOBES")
    ['B-NP', 'E-NP', 'O', 'S-VP']
    """
    tags = list(tags) if not isinstance(tags, str) else tags
    return phrases_to_tags(tags_to_phrases(tags, source), len(tags), target)


def scheme_mask(classes: Iterable[str], scheme: str = "IOB2") -> SchemeMask:
    """Find which classes may follow each other, and which may be first or last, under a scheme.

    Parameters
    ----------
    classes : sequence of str
        The tags, in the order of the mask's axes.
    scheme : {"IO", "IOB1", "IOB2", "IOBES", "BILOU"}

    Returns
    -------
    SchemeMask
        Boolean arrays (transitions, start, end). A tag sequence that they allow is well-formed:
        `tags_to_phrases` gives the same phrases with and without ``strict``, and
        `phrases_to_tags` converts these to the same tags.

    Examples
    --------
    >>> from seqlab.data import scheme_mask
    >>> mask = scheme_mask(["B-NP", "I-NP", "O"], "IOB2")
    >>> mask.transitions.astype(int)
    array([[1, 1, 1],
           [1, 1, 1],
           [1, 0, 1]])
    >>> mask.start
    array([ True, False,  True])
    """
    rules = get_scheme(scheme)
    parsed = [parse_tag(tag, scheme, where=f"(class {i})") for i, tag in enumerate(classes)]
    letters = np.array([letter for letter, _ in parsed], dtype=np.int64)
    codes: dict[str | None, int] = {}
    types = np.array([codes.setdefault(type_, len(codes)) for _, type_ in parsed], dtype=np.int64)
    same = (types[:, None] == types[None, :]).astype(np.int64)
    return SchemeMask(
        rules.legal[letters[:, None], letters[None, :], same],
        rules.legal[_O, letters, 0],
        rules.legal[letters, _O, 0],
    )


class PhraseRules(NamedTuple):
    """How labels form phrases, read like ``conlleval``.

    Attributes
    ----------
    continues : boolean array of shape (n_labels, n_labels)
        ``continues[i, j]``: label ``j`` after label ``i`` is in the same phrase.
    types : integer array of shape (n_labels,)
        Code of the type of the phrase that a label is in; -1 for ``O``.
    """

    continues: Bools
    types: Ints


def phrase_rules(classes: Iterable[str], scheme: str = "IOB2") -> PhraseRules:
    """Return how the labels of a tag scheme form phrases.

    Examples
    --------
    >>> phrase_rules(["B-NP", "I-NP", "O"]).continues.astype(int)
    array([[0, 1, 0],
           [0, 1, 0],
           [0, 0, 0]])
    """
    parsed = [parse_tag(tag, scheme) for tag in classes]
    letters = np.array([letter for letter, _ in parsed], dtype=np.int64)
    names = {name: code for code, (_, name) in enumerate(parsed)}
    types = np.array([names[name] for _, name in parsed], dtype=np.int64)
    same = (types[:, None] == types[None, :]).astype(np.int64)
    continues = _CONTINUES[letters[:, None], letters[None, :], same]
    return PhraseRules(continues, np.where(letters == _O, -1, types))


def _phrase_codes(scheme: str, n_steps: int, *, is_adjacent: bool) -> list[int]:
    codes = [_I] * n_steps
    if scheme == "IOB2" or (scheme == "IOB1" and is_adjacent):
        codes[0] = _B
    elif scheme in ("IOBES", "BILOU"):
        codes[0], codes[-1] = _B, _E
        if n_steps == 1:
            codes = [_S]
    return codes
