"""TokenTable: the tokens of many sequences, with one array of codes per column.

A list of tuples of strings takes some hundred bytes per token, and everything that reads it runs in Python.
Here a column is its distinct values and, for each token, the position of its value: compiled code can make
features of it, without the interpreter lock. It is also a sequence of lists of tuples, which are made on
request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

Token = tuple[str, ...]


class CodedColumn(NamedTuple):
    """One column of tokens.

    Attributes
    ----------
    values : list of str
        The distinct values, in the order in which they occur.
    codes : int32 array of shape (n_tokens,)
        Position of the value of each token.
    """

    values: list[str]
    codes: NDArray[np.int32]

    def texts(self) -> list[str]:
        """Return the value of each token."""
        return list(map(self.values.__getitem__, self.codes.tolist()))


def order_of_use(codes: NDArray[np.int32], n_codes: int) -> NDArray[np.int64]:
    """Return the codes that occur, each once, in the order in which they occur first.

    Examples
    --------
    >>> order_of_use(np.array([3, 1, 3, 0]), 5).tolist()
    [3, 1, 0]
    """
    first = np.full(n_codes, codes.size)
    first[codes[::-1]] = np.arange(codes.size)[::-1]  # the last assignment is the first place
    used = np.flatnonzero(first < codes.size)
    return used[np.argsort(first[used])]


class TokenTable(Sequence[list[Token]]):
    """Tokens of many sequences, stored by column.

    Parameters
    ----------
    columns : sequence of CodedColumn
    offsets : int64 array of shape (n_sequences + 1,)
        First token of each sequence, then the number of tokens.

    Examples
    --------
    >>> import numpy as np
    >>> words = CodedColumn(["the", "dog"], np.array([0, 1, 1], np.int32))
    >>> table = TokenTable([words], np.array([0, 2, 3]))
    >>> len(table), table.n_tokens, table[0], list(table)
    (2, 3, [('the',), ('dog',)], [[('the',), ('dog',)], [('dog',)]])
    """

    def __init__(self, columns: Sequence[CodedColumn], offsets: NDArray[np.int64]) -> None:
        self.columns = tuple(columns)
        self.offsets = offsets

    @property
    def n_tokens(self) -> int:
        """Number of tokens of all sequences."""
        return int(self.offsets[-1])

    def part(self, first: int, last: int) -> TokenTable:
        """Return the sequences ``first`` to ``last - 1``; the arrays are views."""
        begin, end = self.offsets[first], self.offsets[last]
        columns = [CodedColumn(values, codes[begin:end]) for values, codes in self.columns]
        return TokenTable(columns, self.offsets[first : last + 1] - begin)

    def __len__(self) -> int:
        return self.offsets.size - 1

    @overload
    def __getitem__(self, index: int) -> list[Token]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[Token]]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        columns = self.part(number, number + 1).columns
        return list(zip(*(column.texts() for column in columns), strict=True))

    def __iter__(self) -> Iterator[list[Token]]:
        return (self[i] for i in range(len(self)))
