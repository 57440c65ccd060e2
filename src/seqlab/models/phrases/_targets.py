"""Conversion between phrase sets and the forms of y: tags, open/close decisions, lists of phrases."""

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
    """The content of y.

    Attributes
    ----------
    sets : list of PhraseSet
        One per sequence; their lengths are in tokens.
    coding : str
        "phrases", "open_close" or "tags".
    steps : str
        "tokens" if X has one row per token, "decisions" if it has two.
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
    """Read the phrase sets of all sequences.

    Parameters
    ----------
    y : list of phrase lists, of tag lists or of decision lists; may be flat if ``stacked``
    rows : int array of shape (n_sequences,)
        Rows of X per sequence.
    stacked : bool
        Whether X is one matrix; tags and decisions may then be one flat list.
    scheme : str
        Tag scheme.
    steps : {"auto", "tokens", "decisions"}
        What a row of X is; "auto" compares lengths.
    type_ : str, optional
        Type of the phrases if y consists of decisions, which have no type.
    """
    get_scheme(scheme)
    items = _as_list(y, "y")
    coding = _detect_coding(items, stacked)
    if stacked and coding != "phrases" and not _is_nested(items):
        items, steps = _split_flat_labels(items, rows, coding, steps)
    if len(items) != rows.size:
        raise InputError(f"X has {rows.size} sequences but y has {len(items)}")
    if steps == "auto":
        steps = _guess_steps(items, rows, coding)
    sets = []
    for i, (item, n_rows) in enumerate(zip(items, rows.tolist(), strict=True)):
        if steps == "decisions" and n_rows % 2:
            raise InputError(
                f"X[{i}] has {n_rows} rows, but two decisions per token need an even number"
            )
        n_tokens = n_rows // 2 if steps == "decisions" else n_rows
        sets.append(_read_sequence(item, i, n_rows, n_tokens, coding, scheme, type_))
    return Targets(sets, coding, steps)


def stack_phrases(
    sets: Sequence[PhraseSet], offsets: Ints, types: Sequence[str | None]
) -> StackedPhrases:
    """Return the phrases of all sequences as arrays; unknown types have the code -1."""
    code_of = {type_: code for code, type_ in enumerate(types)}
    flat = [
        (begin + phrase.start, begin + phrase.stop, code_of.get(phrase.type, -1))
        for begin, phrases in zip(offsets.tolist(), sets, strict=False)
        for phrase in phrases
    ]
    columns = np.array(flat, dtype=np.int64).reshape(-1, 3)
    return StackedPhrases(columns[:, 0], columns[:, 1], columns[:, 2])


def decision_codes(phrases: StackedPhrases, n_steps: int, n_types: int) -> tuple[Ints, Ints]:
    """Return the open and close decision of every token: type, ``n_types`` inside, one more outside."""
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
    """Return the names of the decisions, first one per type: ``O-NP, O-VP, nOi, nOo``."""
    positive, *others = marks
    if len(types) == 1:
        return np.array([positive, *others])
    typed = [positive if type_ is None else f"{positive}-{type_}" for type_ in types]
    return np.array([*typed, *others])


def unstack_phrases(
    phrases: StackedPhrases, offsets: Ints, types: Sequence[str | None]
) -> list[PhraseSet]:
    """Convert arrays of phrases to one `PhraseSet` per sequence."""
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


def output_classes(output: str, types: Sequence[str | None]) -> NDArray[Any]:
    """Return the elements of predictions; raise an error if the form cannot express the types."""
    if output == "phrases":
        return np.array([str(type_) for type_ in types])
    if output == "open_close":
        if len(types) > 1:
            raise InputError(
                "open/close decisions can express one phrase type, but there are "
                f"{', '.join(map(repr, types))}: choose another output"
            )
        return np.array(DECISIONS)
    letters = get_scheme(output).letters[1:]
    suffixes = ["" if type_ is None else f"-{type_}" for type_ in types]
    return np.array(sorted(["O", *(letter + suffix for suffix in suffixes for letter in letters)]))


def encode_phrases(sets: Sequence[PhraseSet], output: str, dtype: Any, layout: Layout) -> Any:
    """Encode phrase sets as ``output`` asks, as a list or stacked like X."""
    if output == "phrases":
        return list(sets)
    arrays = [np.zeros(0, dtype)]
    for i, phrases in enumerate(sets):
        try:
            coded = phrases.to_open_close() if output == "open_close" else phrases.to_tags(output)
        except InputError as error:  # adjacent phrases, which IO cannot express
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


def _is_nested(items: list[Any]) -> bool:
    return bool(items) and not isinstance(items[0], str)


def _detect_coding(items: list[Any], stacked: bool) -> str:
    """Detect the form of y from its first entry; close decisions occur in no other form."""
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
    return "phrases"  # all lists are empty


def _labels_per_row(coding: str, steps: str) -> float:
    """Return the number of labels per row of X."""
    labels_per_token = 2 if coding == "open_close" else 1
    return labels_per_token / (2 if steps == "decisions" else 1)


def _guess_steps(items: list[Any], rows: Ints, coding: str) -> str:
    """Guess what a row of X is from the number of labels; if in doubt, a token."""
    for item, n_rows in zip(items, rows.tolist(), strict=True):
        if coding == "phrases" and not isinstance(item, PhraseSet):
            return "tokens"
        n_labels = item.length if isinstance(item, PhraseSet) else len(item)
        n_decisions = n_labels if coding == "open_close" else 2 * n_labels
        if n_labels:
            return "decisions" if n_rows == n_decisions else "tokens"
    return "tokens"


def _split_flat_labels(
    flat: list[str], rows: Ints, coding: str, steps: str
) -> tuple[list[list[str]], str]:
    """Split the labels of a stacked X into one list per sequence."""
    total = int(rows.sum())
    candidates = ("tokens", "decisions") if steps == "auto" else (steps,)
    for name in candidates:
        ratio = _labels_per_row(coding, name)
        if len(flat) == ratio * total:
            if ratio < 1 and (rows % 2).any():
                continue
            ends = np.concatenate([[0], np.cumsum(rows * ratio)]).astype(np.int64).tolist()
            return [flat[a:b] for a, b in pairwise(ends)], name
    raise InputError(f"X has {total} steps but y has {len(flat)} labels")


def _read_sequence(
    item: Any, i: int, n_rows: int, n_tokens: int, coding: str, scheme: str, type_: str | None
) -> PhraseSet:
    if isinstance(item, PhraseSet) and item.length != n_tokens:
        raise InputError(
            f"X[{i}] has {n_rows} rows for {n_tokens} tokens but y[{i}] has length {item.length}"
        )
    listed = _as_list(item, f"y[{i}]")
    if coding != "phrases":
        expected = n_tokens * (2 if coding == "open_close" else 1)
        if len(listed) != expected:
            raise InputError(f"X[{i}] has {n_rows} steps but y[{i}] has {len(listed)} labels")
    elif any(isinstance(phrase, str) for phrase in listed):
        raise InputError(f"y[{i}] has labels, but other entries of y are lists of phrases")
    try:
        if isinstance(item, PhraseSet):
            return item
        if coding == "phrases":
            return PhraseSet(listed, n_tokens)
        if coding == "open_close":
            unknown = [d for d in listed if d not in DECISIONS]
            if unknown:
                raise InputError(f"{unknown[0]!r} is not an open/close decision")
            return PhraseSet.from_open_close(listed, type_)
        return PhraseSet.from_tags(listed, scheme)
    except InputError as error:
        raise InputError(f"y[{i}]: {error}") from None
