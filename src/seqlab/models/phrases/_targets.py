"""Phrase sets out of any coding of y, and back: tags, open/close decisions, lists of phrases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.data.convert import Layout
from seqlab.data.errors import InputError
from seqlab.data.open_close import CLOSE_DECISIONS, DECISIONS
from seqlab.data.phrase_set import PhraseSet
from seqlab.data.phrases import Phrase
from seqlab.data.tags import StackedPhrases, get_scheme

Ints = NDArray[np.int64]


class Targets(NamedTuple):
    """What y says.

    Attributes
    ----------
    sets : list of PhraseSet
        One per sequence; their lengths are in tokens.
    coding : str
        "phrases", "open_close" or "tags".
    steps : str
        "tokens" where X has one row per token, "decisions" where it has two.
    """

    sets: list[PhraseSet]
    coding: str
    steps: str


def read_targets(
    y: Any,
    rows: Ints,
    *,
    stacked: bool = False,
    scheme: str = "IOB2",
    steps: str = "auto",
    type_: str | None = None,
) -> Targets:
    """Phrase sets of all sequences.

    Parameters
    ----------
    y : list of phrase lists, of tag lists or of decision lists; flat where ``stacked``
    rows : int array of shape (n_sequences,)
        Rows of X per sequence.
    stacked : bool
        Whether X came as one matrix, so that tags and decisions may be flat too.
    scheme : str
        How tags write phrases.
    steps : {"auto", "tokens", "decisions"}
        What a row of X is; "auto" compares lengths.
    type_ : str, optional
        Type of the phrases that decisions describe, which name none.
    """
    get_scheme(scheme)
    items = _as_list(y, "y")
    coding = _coding(items, stacked)
    if stacked and coding != "phrases" and not _nested(items):
        items, steps = _cut(items, rows, coding, steps)
    if len(items) != rows.size:
        raise InputError(f"X has {rows.size} sequences but y has {len(items)}")
    if steps == "auto":
        steps = _guess_steps(items, rows, coding)
    sets = []
    for i, (item, n_rows) in enumerate(zip(items, rows.tolist(), strict=True)):
        if steps == "decisions" and n_rows % 2:
            raise InputError(f"X[{i}] has {n_rows} rows, which are not two decisions per token")
        n_tokens = n_rows // 2 if steps == "decisions" else n_rows
        sets.append(_read_one(item, i, n_rows, n_tokens, coding, scheme, type_))
    return Targets(sets, coding, steps)


def stacked_phrases(
    sets: Sequence[PhraseSet], offsets: Ints, types: Sequence[str | None]
) -> StackedPhrases:
    """Phrases of all sequences as arrays; types that are not known get the code -1."""
    code_of = {type_: code for code, type_ in enumerate(types)}
    flat = [
        (begin + phrase.start, begin + phrase.stop, code_of.get(phrase.type, -1))
        for begin, phrases in zip(offsets.tolist(), sets, strict=False)
        for phrase in phrases
    ]
    columns = np.array(flat, dtype=np.int64).reshape(-1, 3)
    return StackedPhrases(columns[:, 0], columns[:, 1], columns[:, 2])


def decision_codes(phrases: StackedPhrases, n_steps: int, n_types: int) -> tuple[Ints, Ints]:
    """Open and close decision of every token: the type, or ``n_types`` inside, one more outside."""
    outside = np.full(n_steps, n_types + 1, dtype=np.int64)
    change = np.zeros(n_steps + 1, dtype=np.int64)
    change[phrases.start] += 1
    np.subtract.at(change, phrases.stop, 1)
    opened = np.where(np.cumsum(change[:-1]) > 0, n_types, outside)
    closed = opened.copy()
    opened[phrases.start] = phrases.type
    closed[phrases.stop - 1] = phrases.type
    return opened, closed


def decision_names(marks: Sequence[str], types: Sequence[str | None]) -> NDArray[Any]:
    """Names of the decisions, one per type and then the two others: ``O-NP, O-VP, nOi, nOo``."""
    positive, *others = marks
    if len(types) == 1:
        return np.array([positive, *others])
    typed = [positive if type_ is None else f"{positive}-{type_}" for type_ in types]
    return np.array([*typed, *others])


def to_sets(phrases: StackedPhrases, offsets: Ints, types: Sequence[str | None]) -> list[PhraseSet]:
    """Arrays of phrases as one `PhraseSet` per sequence."""
    bounds = np.searchsorted(phrases.start, offsets).tolist()
    columns = [part.tolist() for part in phrases]
    sets = []
    for (first, last), (begin, end) in zip(
        pairwise(bounds), pairwise(offsets.tolist()), strict=True
    ):
        found = [
            Phrase(start - begin, stop - begin, types[code])
            for start, stop, code in zip(*(part[first:last] for part in columns), strict=True)
        ]
        sets.append(PhraseSet(found, end - begin))
    return sets


def write_sets(sets: Sequence[PhraseSet], output: str, dtype: Any, layout: Layout) -> Any:
    """Phrase sets in the coding that is wanted, in the form in which X came."""
    if output == "phrases":
        return list(sets)
    arrays = [np.zeros(0, dtype)]
    for i, phrases in enumerate(sets):
        try:
            coded = phrases.to_open_close() if output == "open_close" else phrases.to_tags(output)
        except InputError as error:  # touching phrases, which IO cannot write
            raise InputError(f"the phrases of sequence {i}: {error}") from None
        arrays.append(np.array(coded, dtype))
    return arrays[1:] if layout.is_list else np.concatenate(arrays)


def _as_list(item: Any, name: str) -> list[Any]:
    if isinstance(item, PhraseSet):
        return list(item)
    if isinstance(item, np.ndarray) or (hasattr(item, "__array__") and not isinstance(item, list)):
        return np.asarray(item).tolist()
    if isinstance(item, Iterator):
        return list(item)
    if isinstance(item, str) or not hasattr(item, "__len__") or isinstance(item, dict | set):
        raise InputError(
            f"{name} must be a list of phrases, tags or open/close decisions, got {item!r:.60}"
        )
    return list(item)


def _nested(items: list[Any]) -> bool:
    return bool(items) and not isinstance(items[0], str)


def _coding(items: list[Any], stacked: bool) -> str:
    """What y is written in, by its first entry; close decisions occur in no other coding."""
    if stacked and items and isinstance(items[0], str):
        return "open_close" if len(items) > 1 and items[1] in CLOSE_DECISIONS else "tags"
    for i, item in enumerate(items):
        if isinstance(item, PhraseSet):
            return "phrases"
        listed = _as_list(item, f"y[{i}]")
        if not listed:
            continue
        if not isinstance(listed[0], str):
            return "phrases"
        return "open_close" if len(listed) > 1 and listed[1] in CLOSE_DECISIONS else "tags"
    return "phrases"  # nothing but empty lists


def _labels_per_row(coding: str, steps: str) -> float:
    """Labels of a sequence over its rows of X."""
    return {
        ("tags", "tokens"): 1.0,
        ("tags", "decisions"): 0.5,
        ("open_close", "tokens"): 2.0,
        ("open_close", "decisions"): 1.0,
    }[coding, steps]


def _guess_steps(items: list[Any], rows: Ints, coding: str) -> str:
    """What a row of X is: whichever fits the number of labels, one row per token in doubt."""
    for item, n_rows in zip(items, rows.tolist(), strict=True):
        if coding == "phrases" and not isinstance(item, PhraseSet):
            return "tokens"
        n_labels = item.length if isinstance(item, PhraseSet) else len(item)
        n_decisions = n_labels if coding == "open_close" else 2 * n_labels
        if n_labels:
            return "decisions" if n_rows == n_decisions else "tokens"
    return "tokens"


def _cut(flat: list[str], rows: Ints, coding: str, steps: str) -> tuple[list[list[str]], str]:
    """Labels of a stacked X, one list per sequence."""
    total = int(rows.sum())
    possible = ("tokens", "decisions") if steps == "auto" else (steps,)
    for name in possible:
        ratio = _labels_per_row(coding, name)
        if len(flat) == ratio * total:
            if ratio < 1 and (rows % 2).any():
                continue
            ends = np.concatenate([[0], np.cumsum(rows * ratio)]).astype(np.int64).tolist()
            return [flat[a:b] for a, b in pairwise(ends)], name
    raise InputError(f"X has {total} steps but y has {len(flat)} labels")


def _read_one(
    item: Any, i: int, n_rows: int, n_tokens: int, coding: str, scheme: str, type_: str | None
) -> PhraseSet:
    if isinstance(item, PhraseSet) and item.length != n_tokens:
        raise InputError(
            f"X[{i}] has {n_rows} rows for {n_tokens} tokens but y[{i}] is a set of {item.length}"
        )
    listed = _as_list(item, f"y[{i}]")
    if coding != "phrases":
        expected = n_tokens * (2 if coding == "open_close" else 1)
        if len(listed) != expected:
            raise InputError(f"X[{i}] has {n_rows} steps but y[{i}] has {len(listed)} labels")
    elif any(isinstance(phrase, str) for phrase in listed):
        raise InputError(f"y[{i}] holds labels, but other entries of y are lists of phrases")
    try:
        if isinstance(item, PhraseSet):
            return item
        if coding == "phrases":
            return PhraseSet(listed, n_tokens)
        if coding == "open_close":
            unknown = [d for d in listed if d not in DECISIONS]
            if unknown:
                raise InputError(f"{unknown[0]!r} is no open/close decision")
            return PhraseSet.from_open_close(listed, type_)
        return PhraseSet.from_tags(listed, scheme)
    except InputError as error:
        raise InputError(f"y[{i}]: {error}") from None
