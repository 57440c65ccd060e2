"""Token columns as integers: the only place with Python work for every single token.

A token is a tuple of strings ``(word, pos, ...)``, as the readers return it, or a plain string. The input
is split into blocks of whole sequences; each column in use becomes one array of codes, with one dict
look-up per token. Everything derived from a value (lower case, a suffix, a regular expression) is computed
once per distinct value.
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
from seqlab.data.token_table import CodedColumn, TokenTable, order_of_use
from seqlab.features.word_forms import applies_to_marks, form_function
from seqlab.utils.signals import check_signals

Codes = NDArray[np.int32]

# Tokens per block. Larger blocks need more memory, smaller ones more calls per token.
TOKENS_PER_BLOCK = 1 << 16
_INTEGER = re.compile(r"\s*+([+-]?)0*+(\d*+)(?<=\d)")
_WRAP_HINT = "X is a list of sequences; wrap a single sequence in a list: [X]"


class TokenBlock(NamedTuple):
    """Some complete sequences of the input.

    Attributes
    ----------
    tokens : list
        Their tokens, all tuples (or lists) or all strings; empty if ``coded`` has them.
    lengths : list of int
    first : int
        Index of the first sequence in the input, for error messages.
    width : int
        Number of columns; 0 if the block holds no tokens.
    names : tuple of str or None
        Names of the columns, if the input has them (data frames, named tuples).
    coded : tuple of CodedColumn
        The columns, if the input is a `TokenTable`.
    """

    tokens: list[Any]
    lengths: list[int]
    first: int
    width: int
    names: tuple[str, ...] | None
    coded: tuple[CodedColumn, ...] = ()

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return sum(self.lengths)

    def column(self, number: int) -> Iterable[Any]:
        """Return the values of one column, token by token."""
        if self.n_tokens and number >= self.width:
            has = "1 column" if self.width == 1 else f"{self.width} columns"
            raise InputError(f"{self.locate(0)} has {has}, but column {number} is needed")
        if self.coded:
            return self.coded[number].texts()
        if self.tokens and isinstance(self.tokens[0], str):
            return self.tokens
        return map(itemgetter(number), self.tokens)

    def positions(self) -> Codes:
        """Return the number of steps before each step in its sequence."""
        sizes = np.array(self.lengths, np.int64)
        starts = np.cumsum(sizes) - sizes
        return (np.arange(sizes.sum()) - np.repeat(starts, sizes)).astype(np.int32)

    def locate(self, step: int) -> str:
        """Return the place of a token in the input, as ``X[i][t]``."""
        return _locate(self.lengths, self.first, step)


def token_blocks(X: Any, *, block_tokens: int = TOKENS_PER_BLOCK) -> Iterator[TokenBlock]:
    """Split the input into blocks of whole sequences and check the type of every token.

    Parameters
    ----------
    X : iterable of sequences
        A sequence is a list of tuples, of lists or of strings, a 1-D or 2-D array of strings, or
        a data frame. Generators are consumed block by block.
    block_tokens : int
        Smallest number of tokens in a block, except the last; a block ends at the end of a sequence.

    Examples
    --------
    >>> [block] = token_blocks([[("He", "PRP"), ("runs", "VBZ")], [("Go", "VB")]])
    >>> block.lengths, block.width, list(block.column(1))
    ([2, 1], 2, ['PRP', 'VBZ', 'VB'])
    """
    if isinstance(X, str | bytes | dict | Sequences) or not isinstance(X, Iterable):
        raise InputError(
            f"X is {describe(X)}; expected a list of sequences of tokens, "
            "each token a tuple of strings such as (word, pos) or a plain string"
        )
    if isinstance(X, TokenTable):
        yield from _table_blocks(X, block_tokens)
        return
    sequences: list[list[Any]] = []
    n_tokens, first, names = 0, 0, None
    for i, item in enumerate(X):
        tokens = item
        if type(item) is not list:
            tokens, own_names = _as_tokens(item, i)
            names = names or own_names
        sequences.append(tokens)
        n_tokens += len(tokens)
        if n_tokens >= block_tokens:
            check_signals()
            yield _make_block(sequences, first, names)
            sequences, n_tokens, first = [], 0, i + 1
    if sequences:
        yield _make_block(sequences, first, names)


def _table_blocks(table: TokenTable, block_tokens: int) -> Iterator[TokenBlock]:
    """Split a table at the same places as a list of its sequences."""
    first = 0
    while first < len(table):
        check_signals()
        enough = np.searchsorted(table.offsets, table.offsets[first] + block_tokens)
        last = min(max(int(enough), first + 1), len(table))
        part = table.part(first, last)
        lengths = np.diff(part.offsets).tolist()
        width = len(part.columns) if part.n_tokens else 0
        yield TokenBlock([], lengths, first, width, None, part.columns if width else ())
        first = last


def _as_tokens(item: Any, i: int) -> tuple[list[Any], tuple[str, ...] | None]:
    """Return one sequence as a list of tokens, and the names of its columns if it has any."""
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
        raise InputError(f"X[{i}] is a string; {_WRAP_HINT}, and split text into tokens first")
    if isinstance(item, tuple) and item and isinstance(item[0], str):
        raise InputError(f"X[{i}] is a tuple of strings, which is one token; {_WRAP_HINT}")
    if not isinstance(item, dict) and isinstance(item, Iterable):
        return list(item), None
    raise InputError(f"X[{i}] is {describe(item)}, not a sequence of tokens")


def _make_block(
    sequences: list[list[Any]], first: int, names: tuple[str, ...] | None
) -> TokenBlock:
    lengths = list(map(len, sequences))
    tokens = list(chain.from_iterable(sequences))
    types = set(map(type, tokens))
    if all(issubclass(type_, str) for type_ in types):
        return TokenBlock(tokens, lengths, first, 1 if tokens else 0, names)
    for type_ in types:
        if not issubclass(type_, tuple | list):
            step = next(step for step, token in enumerate(tokens) if type(token) is type_)
            _refuse_token(tokens[step], _locate(lengths, first, step), is_mixed=len(types) > 1)
    if names is None and types != {tuple}:  # there may be named tuples
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


def _refuse_token(token: Any, place: str, *, is_mixed: bool) -> NoReturn:
    if isinstance(token, dict):
        raise InputError(
            f"{place} is a dict, but a token is a tuple of strings such as (word, pos) or a string; "
            "give dicts of features to a labeler directly or to SequenceVectorizer"
        )
    if is_mixed and isinstance(token, str):
        raise InputError(f"{place} is a string but other tokens are tuples")
    raise InputError(f"{place} is {describe(token)}; a token is a tuple of strings or a string")


def _locate(lengths: list[int], first: int, step: int) -> str:
    for i, length in enumerate(lengths):
        if step < length:
            return f"X[{first + i}][{step}]"
        step -= length
    raise AssertionError("no such step")


class _NotTextError(Exception):
    """A value is not a string."""


class ColumnCoder:
    """Codes of one column and of its word forms.

    The first codes of a form are those of `known`; other values get the next ones, so a value not seen
    in `fit` has a code that no fitted feature uses.

    Parameters
    ----------
    forms : sequence of str
        Word forms to encode, ``""`` for the value itself.
    known : sequence of dict of str to int
        The codes of each form that exist already.

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
        """Return a dict that numbers the values, and new ones when they are looked up."""
        numbered = zip(self.values, range(len(self.values)), strict=True)
        return defaultdict(count(len(self.values)).__next__, numbered)

    def encode(self, values: Iterable[Any], n_values: int) -> Codes:
        """Number the values of a block, token by token, and compute the forms of new ones."""
        rows = np.fromiter(map(self._rows.__getitem__, values), np.int32, n_values)
        n_new = len(self._rows) - len(self.values)
        if n_new == 0:
            return rows
        new = list(islice(reversed(self._rows), n_new))[::-1]
        if not all(isinstance(value, str) for value in new):
            self._rows = self._numbering()
            raise _NotTextError
        self.values += map(str, new)
        for f, form in enumerate(self.forms):
            texts = map(form, self.values[self._codes[f].size :])
            new_codes = np.fromiter(map(self._coder(f), texts), np.int32)
            self._codes[f] = np.append(self._codes[f], new_codes)
        return rows

    def encode_coded(self, column: CodedColumn) -> Codes:
        """Number the values of a block that are given by codes; the numbers are those of `encode`."""
        values, codes = column
        used = order_of_use(codes, len(values))
        rows = np.empty(len(values), np.int32)
        rows[used] = self.encode(map(values.__getitem__, used.tolist()), used.size)
        return rows[codes]

    def codes(self, form: int, rows: Codes) -> Codes:
        """Codes of a form of numbered values; -1 if the form is None."""
        return self._codes[form][rows]

    def mark_codes(self, form: int, marks: Sequence[str]) -> Codes:
        """Codes of the marks of positions outside a sequence."""
        convert = self.forms[form] if applies_to_marks(self.form_names[form]) else str
        return np.fromiter(map(self._coder(form), map(convert, marks)), np.int32, len(marks))

    def integers(self, rows: Codes) -> NDArray[np.int32]:
        """Read numbered values as integers, like C's ``atoi``: 0 for a value that is not a number."""
        return np.array([_leading_integer(value) for value in self.values], np.int32)[rows]

    def _coder(self, form: int) -> Callable[[str | None], int]:
        """Return a function from a text of a form to its code, which gives new texts the next code."""
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


def _leading_integer(text: str) -> int:
    """Return the integer at the beginning of a text, at most 2**30 in size; 0 if there is none."""
    found = _INTEGER.match(text)
    if found is None:
        return 0
    sign, digits = found.groups()
    size = min(int(digits or 0), 2**30) if len(digits) < 11 else 2**30
    return -size if sign == "-" else size


def encode_column(coder: ColumnCoder, block: TokenBlock, number: int) -> Codes:
    """Number the values of one column of a block; the error for a value that is not a string names it."""
    if block.coded and number < block.width:
        return coder.encode_coded(block.coded[number])
    try:
        return coder.encode(block.column(number), block.n_tokens)
    except _NotTextError:
        for step, value in enumerate(block.column(number)):
            if not isinstance(value, str):
                raise InputError(
                    f"column {number} of {block.locate(step)} is {value!r} "
                    f"({type(value).__name__}), not a string"
                ) from None
        raise
