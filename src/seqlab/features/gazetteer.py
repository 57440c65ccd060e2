"""Gazetteer: features of tokens and phrases that are entries of given lists.

Entries may have several tokens. For each list the sequence is searched from left to right for the longest
entry at each step, without overlap; the first token of a match has the feature ``list:B``, the others
``list:I``. With ``loose=True`` every token that occurs in some entry also has ``list:in``, whether or not
the whole entry matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.features._base import FixedTokenTransformer
from seqlab.features._token_columns import ColumnCoder, encode_column, token_blocks

Phrase = tuple[int, ...]


class Gazetteer(FixedTokenTransformer):
    """Membership of tokens and phrases in given lists.

    Parameters
    ----------
    lists : dict of str to iterable of (str or sequence of str)
        The entries of each list. A string is split into tokens at blanks; a tuple is a sequence of
        tokens.
    column : int
        Column of the tokens to compare.
    lower : bool
        Whether to ignore case.
    loose : bool
        Whether to add a feature for tokens that occur anywhere in an entry.

    Attributes
    ----------
    feature_names_ : list of str
        Names of the columns: ``list:B``, ``list:I`` and, if loose, ``list:in``.

    Examples
    --------
    >>> from seqlab.features import Gazetteer
    >>> places = Gazetteer({"city": ["New York", "York", "Paris"]}, lower=True, loose=True)
    >>> places.fit_transform([["new", "york", "or", "York"]])[0].toarray()
    array([[1., 0., 1.],
           [0., 1., 1.],
           [0., 0., 0.],
           [1., 0., 1.]])
    >>> places.get_feature_names_out().tolist()
    ['city:B', 'city:I', 'city:in']
    """

    def __init__(
        self,
        lists: Mapping[str, Iterable[Any]],
        *,
        column: int = 0,
        lower: bool = False,
        loose: bool = False,
    ) -> None:
        self.lists = lists
        self.column = column
        self.lower = lower
        self.loose = loose

    def fit(self, X: Any = None, y: Any = None) -> Gazetteer:
        """Check the lists; nothing is learned from X.

        Parameters
        ----------
        X, y : ignored
        """
        for name, entries in self.lists.items():
            if isinstance(entries, str) or not isinstance(entries, Iterable):
                raise InputError(f"list {name!r} of a gazetteer must be a list of entries")
            for entry in entries:
                if not _split(entry) or not all(isinstance(part, str) for part in _split(entry)):
                    raise InputError(f"list {name!r} of a gazetteer has the entry {entry!r}")
        kinds = ["B", "I", "in"] if self.loose else ["B", "I"]
        self.feature_names_ = [f"{name}:{kind}" for name in self.lists for kind in kinds]
        return self

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        state_checks.check_int(self.column, "column", 0)
        for name in ("lower", "loose"):
            state_checks.check_type(getattr(self, name), name, bool)
        state_checks.check_type(self.lists, "lists", Mapping)
        if state_checks.has_fitted_attributes(self):
            sound = Gazetteer(self.lists, loose=self.loose).fit().feature_names_
            state_checks.require(self.feature_names_ == sound, "feature_names_")

    def transform(self, X: Any) -> Sequences:
        """Return the membership features, CSR of shape (n_steps, n_features)."""
        check_is_fitted(self)
        coder = ColumnCoder(["lower" if self.lower else ""], [{}])
        lists = [_encode_entries(entries, coder) for entries in self.lists.values()]
        lengths: list[int] = []
        rows: list[NDArray[np.int64]] = []
        columns: list[NDArray[np.int64]] = []
        n_steps = 0
        for block in token_blocks(X):
            words = coder.codes(0, encode_column(coder, block, self.column))
            ends = np.repeat(np.cumsum(block.lengths), block.lengths)
            for number, entries in enumerate(lists):
                for kind, steps in enumerate(_find_entries(words, ends, entries, loose=self.loose)):
                    rows.append(steps + n_steps)
                    columns.append(np.full(steps.size, number * (2 + self.loose) + kind))
            n_steps += block.n_tokens
            lengths += block.lengths
        row = np.concatenate([np.empty(0, np.int64), *rows])
        column = np.concatenate([np.empty(0, np.int64), *columns])
        shape = (n_steps, len(self.feature_names_))
        matrix = sp.csr_matrix((np.ones(row.size), (row, column)), shape=shape)
        return Sequences(matrix, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))


def _encode_entries(entries: Iterable[Any], coder: ColumnCoder) -> dict[int, list[Phrase]]:
    """Return the entries as tuples of codes, by their first code, the longest first."""
    by_first: dict[int, set[Phrase]] = {}
    for entry in entries:
        tokens = _split(entry)
        codes = coder.codes(0, coder.encode(tokens, len(tokens))).tolist()
        by_first.setdefault(codes[0], set()).add(tuple(codes))
    return {first: sorted(found, key=len, reverse=True) for first, found in by_first.items()}


def _split(entry: Any) -> list[Any]:
    return entry.split() if isinstance(entry, str) else list(entry)


def _find_entries(
    words: NDArray[np.int32],
    ends: NDArray[np.int64],
    entries: dict[int, list[Phrase]],
    *,
    loose: bool,
) -> list[NDArray[np.int64]]:
    """Steps that begin an entry, that continue one, and (if loose) whose token occurs in one."""
    begins: list[int] = []
    inner: list[int] = []
    free = 0  # the first step that is not part of an earlier match
    # Only steps whose word begins some entry need the Python loop.
    for step in np.flatnonzero(np.isin(words, list(entries))).tolist():
        if step < free:
            continue
        for phrase in entries[int(words[step])]:
            stop = step + len(phrase)
            if stop <= ends[step] and tuple(words[step:stop].tolist()) == phrase:
                begins.append(step)
                inner.extend(range(step + 1, stop))
                free = stop
                break
    found = [np.array(begins, np.int64), np.array(inner, np.int64)]
    if loose:
        parts = {code for phrases in entries.values() for phrase in phrases for code in phrase}
        found.append(np.flatnonzero(np.isin(words, list(parts))))
    return found
