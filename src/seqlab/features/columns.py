"""Token columns as integers: the only place where tokens are touched one by one.

A token is a tuple of strings ``(word, pos, ...)``, as the readers give it, or a plain string.
Blocks of whole sequences are cut from the input; each needed column becomes one array of codes,
by one dict look-up per token. Everything derived from a value (lower case, a suffix, a regular
expression) is computed once per distinct value.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, islice
from operator import itemgetter
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from seqlab.data.convert import describe, is_frame
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.features.word_forms import form_function, reads_marks

Codes = NDArray[np.int32]

BLOCK_STEPS = 1 << 16
_INTEGER = re.compile(r"\s*([+-]?\d+)")
_WRAP_HINT = "X is a list of sequences; wrap a single sequence in a list: [X]"


class TokenBlock(NamedTuple):
    """Some whole sequences of the input.

    Attributes
    ----------
    tokens : list
        Their tokens, all tuples (or lists) or all strings.
    lengths : list of int
    first : int
        Number of the first sequence in the input, for error messages.
    width : int
        Number of columns; 0 if the block holds no token.
    names : tuple of str or None
        Names of the columns, where the input has them (data frames, named tuples).
    """

    tokens: list[Any]
    lengths: list[int]
    first: int
    width: int
    names: tuple[str, ...] | None

    def column(self, number: int) -> Iterable[Any]:
        """Return the values of one column, token by token."""
        if self.tokens and isinstance(self.tokens[0], str):
            return self.tokens
        return map(itemgetter(number), self.tokens)

    def locate(self, step: int) -> str:
        """Name a token of the block as ``X[i][t]``."""
        return _locate(self.lengths, self.first, step)


def token_blocks(X: Any, *, block_steps: int = BLOCK_STEPS) -> Iterator[TokenBlock]:
    """Cut the input into blocks of whole sequences, checking every token's form.

    Parameters
    ----------
    X : iterable of sequences
        A sequence is a list of tuples, of lists or of strings, a 1-D or 2-D array of strings, or
        a data frame. Generators are consumed block by block.
    block_steps : int
        Tokens per block, at least; a block ends with a sequence.

    Examples
    --------
    >>> [block] = token_blocks([[("He", "PRP"), ("runs", "VBZ")], [("Go", "VB")]])
    >>> block.lengths, block.width, list(block.column(1))
    ([2, 1], 2, ['PRP', 'VBZ', 'VB'])
    """
    if isinstance(X, str | bytes | dict | Sequences) or not isinstance(X, Iterable):
        raise InputError(
            f"X is {describe(X)}; templates take a list of sequences of tokens, "
            "each token a tuple of strings such as (word, pos) or a plain string"
        )
    pieces: list[list[Any]] = []
    steps, first, names = 0, 0, None
    for i, item in enumerate(X):
        piece = item
        if type(item) is not list:
            piece, own_names = _as_tokens(item, i)
            names = names or own_names
        pieces.append(piece)
        steps += len(piece)
        if steps >= block_steps:
            yield _make_block(pieces, first, names)
            pieces, steps, first = [], 0, i + 1
    if pieces:
        yield _make_block(pieces, first, names)


def _as_tokens(item: Any, i: int) -> tuple[list[Any], tuple[str, ...] | None]:
    """One sequence as a list of tokens, and the names of its columns if it has any."""
    if isinstance(item, list):
        return item, None
    if is_frame(item):
        names = tuple(map(str, item.columns))
        missing = item.isna().to_numpy().any(axis=0)
        if missing.any():
            raise InputError(f"X[{i}] has missing values in column {names[missing.argmax()]!r}")
        columns = [[str(v) for v in item.iloc[:, c].tolist()] for c in range(len(names))]
        return list(zip(*columns, strict=True)), names
    if isinstance(item, np.ndarray) and item.ndim in (1, 2):
        return item.tolist(), None
    if isinstance(item, str):
        raise InputError(f"X[{i}] is a string; {_WRAP_HINT}, and cut text into tokens first")
    if isinstance(item, tuple) and item and isinstance(item[0], str):
        raise InputError(f"X[{i}] is a tuple of strings, which is one token; {_WRAP_HINT}")
    if not isinstance(item, dict) and isinstance(item, Iterable):
        return list(item), None
    raise InputError(f"X[{i}] is {describe(item)}, not a sequence of tokens")


def _make_block(pieces: list[list[Any]], first: int, names: tuple[str, ...] | None) -> TokenBlock:
    lengths = list(map(len, pieces))
    tokens = list(chain.from_iterable(pieces))
    kinds = set(map(type, tokens))
    if all(issubclass(kind, str) for kind in kinds):
        return TokenBlock(tokens, lengths, first, 1 if tokens else 0, names)
    for kind in kinds:
        if not issubclass(kind, tuple | list):
            step = next(step for step, token in enumerate(tokens) if type(token) is kind)
            _refuse_token(tokens[step], _locate(lengths, first, step), mixed=len(kinds) > 1)
    if names is None and kinds != {tuple}:  # named ones, perhaps
        names = next((token._fields for token in tokens if hasattr(token, "_fields")), None)
    widths = set(map(len, tokens))
    if len(widths) > 1:
        width = len(tokens[0])
        step = next(step for step, token in enumerate(tokens) if len(token) != width)
        raise InputError(
            f"{_locate(lengths, first, step)} has {len(tokens[step])} columns but "
            f"{_locate(lengths, first, 0)} has {width}"
        )
    return TokenBlock(tokens, lengths, first, widths.pop(), names)


def _refuse_token(token: Any, place: str, *, mixed: bool) -> NoReturn:
    if isinstance(token, dict):
        raise InputError(
            f"{place} is a dict; dicts of features go straight to a labeler or through "
            "SequenceVectorizer, templates take tuples of strings such as (word, pos)"
        )
    if mixed and isinstance(token, str):
        raise InputError(f"{place} is a string but other tokens are tuples")
    raise InputError(f"{place} is {describe(token)}; a token is a tuple of strings or a string")


def _locate(lengths: list[int], first: int, step: int) -> str:
    for i, length in enumerate(lengths):
        if step < length:
            return f"X[{first + i}][{step}]"
        step -= length
    raise AssertionError("no such step")


class _NotTextError(Exception):
    """A value that is no string."""


class ColumnCoder:
    """Codes of one column and of its word forms.

    Codes of a form begin with those of `known`; values beyond get the codes that follow, so that a
    value not met in fit has a code that no fitted feature uses.

    Parameters
    ----------
    forms : sequence of str
        Word forms wanted, ``""`` for the value itself.
    known : sequence of dict of str to int
        Codes that exist already, per form.

    Examples
    --------
    >>> coder = ColumnCoder(["", "suffix2"], [{}, {}])
    >>> rows = coder.encode(["walking", "talking", "a"], 3)
    >>> coder.codes(0, rows).tolist(), coder.codes(1, rows).tolist()
    ([0, 1, 2], [0, 0, -1])
    """

    def __init__(self, forms: Sequence[str], known: Sequence[dict[str, int]]) -> None:
        self.forms = [form_function(form) for form in forms]
        self.form_names = list(forms)
        self.index = [dict(codes) for codes in known]
        self.texts = [list(codes) for codes in known]
        self.values: list[str] = []
        self._rows: dict[Any, int] = self._numbering()
        self._codes: list[Codes] = [np.empty(0, np.int32) for _ in forms]

    def _numbering(self) -> dict[Any, int]:
        """Return a dict that numbers the values, and new ones as they are asked for."""
        numbered = zip(self.values, range(len(self.values)), strict=True)
        return defaultdict(count(len(self.values)).__next__, numbered)

    def encode(self, values: Iterable[Any], n_values: int) -> Codes:
        """Number the values of a block, token by token, and derive the forms of new ones."""
        rows = np.fromiter(map(self._rows.__getitem__, values), np.int32, n_values)
        n_fresh = len(self._rows) - len(self.values)
        if n_fresh == 0:
            return rows
        fresh = list(islice(reversed(self._rows), n_fresh))[::-1]
        if not all(isinstance(value, str) for value in fresh):
            self._rows = self._numbering()
            raise _NotTextError
        self.values += map(str, fresh)
        for f, form in enumerate(self.forms):
            texts = map(form, self.values[self._codes[f].size :])
            new_codes = np.fromiter(map(self._coder(f), texts), np.int32)
            self._codes[f] = np.append(self._codes[f], new_codes)
        return rows

    def codes(self, form: int, rows: Codes) -> Codes:
        """Codes of a form at numbered values; -1 where the form says nothing."""
        return self._codes[form][rows]

    def mark_codes(self, form: int, marks: Sequence[str]) -> Codes:
        """Codes of the marks of positions outside a sequence."""
        read = self.forms[form] if reads_marks(self.form_names[form]) else str
        return np.fromiter(map(self._coder(form), map(read, marks)), np.int32, len(marks))

    def integers(self, rows: Codes) -> NDArray[np.int32]:
        """Read numbered values as integers, as C's ``atoi`` does: 0 where there is none."""
        found = (_INTEGER.match(value) for value in self.values)
        numbers = [min(max(int(m[1]), -(2**30)), 2**30) if m else 0 for m in found]
        return np.array(numbers, np.int32)[rows]

    def _coder(self, form: int) -> Callable[[str | None], int]:
        """Return the function from a text of a form to its code, new texts included."""
        index, texts = self.index[form], self.texts[form]

        def code_of(text: str | None) -> int:
            if text is None:
                return -1
            code = index.get(text)
            if code is None:
                code = index[text] = len(texts)
                texts.append(text)
            return code

        return code_of


def encode_column(coder: ColumnCoder, block: TokenBlock, number: int) -> Codes:
    """Number the values of one column of a block; name the token whose value is no text."""
    try:
        return coder.encode(block.column(number), len(block.tokens))
    except _NotTextError:
        for step, value in enumerate(block.column(number)):
            if not isinstance(value, str):
                raise InputError(
                    f"column {number} of {block.locate(step)} is {value!r} "
                    f"({type(value).__name__}), not a string"
                ) from None
        raise
