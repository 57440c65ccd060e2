"""SymbolVectorizer: steps that are symbols, as columns of codes.

`SequenceVectorizer` makes a column of every (name, value) pair; this makes one column of every name and
numbers its values in order of first occurrence, which is the form of categorical emissions. Unlike one-hot
columns, the codes distinguish an unseen symbol from a missing value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data import state_checks
from seqlab.data.categories import UNNAMED, list_steps, read_categories
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.data.symbolic import SymbolicSequences
from seqlab.data.vocabulary import Vocabulary
from seqlab.features.vectorizer import SequenceVectorizer

UNSEEN = -1.0  # code of a symbol that training does not show; NaN is a missing one


class Token(list[str]):
    """A step given as a plain string, as a bag of one string, which every reader accepts."""


def wrap_strings(X: Any, *, stacked: bool) -> Any:
    """Wrap every step that is a string as a `Token`; raise an error for tuples of strings.

    Parameters
    ----------
    X : any X
    stacked : bool
        Whether X is one flat list of steps (with ``lengths``) instead of a list of sequences.
    """
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "OU":
        X = list(X)
    if not isinstance(X, list | tuple | Iterator):
        return X
    stream = iter(X)
    head = list(islice(stream, 1)) if stacked else _take_until_nonempty(stream)
    if not head:
        return X if not isinstance(X, Iterator) else head
    last = head[-1]
    if stacked:
        _check_no_tuples([last], "X")
        found = isinstance(last, str)
    else:
        steps = last if _is_plain_sequence(last) else ()
        _check_no_tuples(steps, f"X[{len(head) - 1}]")
        found = any(step is None or isinstance(step, str) for step in steps)
    if not found:
        return chain(head, stream) if isinstance(X, Iterator) else X
    if stacked:
        return [_as_token(item) for item in chain(head, stream)]
    return (
        [_as_token(step) for step in item] if _is_plain_sequence(item) else item
        for item in chain(head, stream)
    )


def _check_no_tuples(steps: Iterable[Any], place: str) -> None:
    """Raise an error for a step that is a tuple of strings, such as the tokens of data sets."""
    for position, step in enumerate(steps):
        if isinstance(step, tuple) and step and all(isinstance(one, str) for one in step):
            raise InputError(
                f"{place}[{position}] is a tuple of {len(step)} strings: name them in a dict "
                "({'word': ..., 'pos': ...}), or give one of them as a plain string; for overlapping "
                "features use seqlab.Templates"
            )


def _is_plain_sequence(item: Any) -> bool:
    return isinstance(item, list | tuple) or (isinstance(item, np.ndarray) and item.ndim == 1)


def _take_until_nonempty(stream: Iterator[Any]) -> list[Any]:
    """Return the items up to the first that is not an empty list."""
    head = []
    for item in stream:
        head.append(item)
        if not isinstance(item, list | tuple) or item:
            break
    return head


def _as_token(step: Any) -> Any:
    if step is None:  # a missing symbol
        return Token()
    return Token([str(step)]) if isinstance(step, str) else step


class SymbolVectorizer:
    """Turn sequences of symbols into `Sequences` of codes.

    Parameters
    ----------
    fallback : bool, default=False
        Whether to use a `SequenceVectorizer` (``inner_``) if some steps are not symbols (numbers, several
        strings in a bag). Otherwise they raise an error.

    Attributes
    ----------
    fields_ : list of str
        Names of the columns.
    vocabularies_ : list of Vocabulary
        Symbols of each column, ordered by code.
    style_ : {"string", "bag", "dict"}
        The form of a step.
    inner_ : SequenceVectorizer or None

    Examples
    --------
    >>> codes = SymbolVectorizer().fit_transform([[{"word": "to"}, {"word": "be"}], [{"word": "to"}]])
    >>> codes.matrix.ravel().tolist()
    [0.0, 1.0, 0.0]
    """

    fields_: list[str]
    vocabularies_: list[Vocabulary]
    style_: str
    inner_: SequenceVectorizer | None

    def __init__(self, *, fallback: bool = False) -> None:
        self.fallback = fallback

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        state_checks.check_type(self.fallback, "fallback", bool)
        fields = state_checks.check_list(self.fields_, "fields_", str)
        state_checks.check_list(self.vocabularies_, "vocabularies_", Vocabulary, len(fields))
        state_checks.require(self.style_ in ("string", "bag", "dict"), "style_")
        state_checks.require(self.inner_ is None, "inner_")

    def fit_transform(self, X: Iterable[Any]) -> Sequences:
        """Learn the symbols of X and return their codes."""
        items = [list_steps(item, f"X[{i}]") for i, item in enumerate(X)]
        self.inner_ = None
        if self.fallback and not all(_is_symbolic(step) for steps in items for step in steps):
            self.inner_ = SequenceVectorizer()
            return self.inner_.fit_transform(items)
        symbols = read_categories(items)
        self.fields_ = _column_names(symbols)
        self.vocabularies_ = [
            Vocabulary(symbols.categories(field).values) for field in self.fields_
        ]
        self.style_ = _step_style(items)
        return self._codes(symbols)

    def transform(self, X: Iterable[Any]) -> Sequences:
        """Return the codes of the symbols of X; columns that training does not have are ignored."""
        items = [list_steps(item, f"X[{i}]") for i, item in enumerate(X)]
        symbols = read_categories(items)
        given = set(_column_names(symbols))
        # A column without symbols is missing, but named and unnamed symbols must not be mixed.
        if given and not given & set(self.fields_) and UNNAMED in given | set(self.fields_):
            here, fitted = _describe_columns(given), _describe_columns(self.fields_)
            raise InputError(f"X has {here}, but the model was fitted on {fitted}")
        return self._codes(symbols)

    def _codes(self, symbols: SymbolicSequences) -> Sequences:
        codes = np.full((symbols.n_steps, len(self.fields_)), np.nan)
        for column, (name, vocabulary) in enumerate(
            zip(self.fields_, self.vocabularies_, strict=True)
        ):
            found = symbols.categories(name)
            index = vocabulary.index
            known = np.array([index.get(value, UNSEEN) for value in found.values] or [UNSEEN])
            is_given = found.codes >= 0
            codes[is_given, column] = known[found.codes[is_given]]
        return Sequences(codes, symbols.offsets, feature_names=self.fields_)

    def steps(self, codes: NDArray[np.float64]) -> list[Any]:
        """Return the steps of one sequence in their original form, given their codes."""
        found: list[Any] = []
        for row in codes.astype(np.int64).tolist():
            symbols = [self.vocabularies_[k][code] for k, code in enumerate(row)]
            if self.style_ == "dict":
                found.append(dict(zip(self.fields_, symbols, strict=True)))
            else:
                found.append(symbols[0] if self.style_ == "string" else symbols)
        return found

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns."""
        return np.array(self.fields_, dtype=object)


def _is_symbolic(step: Any) -> bool:
    """Return whether a step consists of symbols."""
    if isinstance(step, Mapping):
        return all(value is None or isinstance(value, str) for value in step.values())
    return isinstance(step, Collection) and not isinstance(step, tuple) and len(step) <= 1


def _step_style(items: list[list[Any]]) -> str:
    for step in chain.from_iterable(items):
        return "dict" if isinstance(step, Mapping) else "string" if type(step) is Token else "bag"
    return "bag"


def _column_names(symbols: SymbolicSequences) -> list[str]:
    """Return the names of the columns, in order of first occurrence."""
    return [signature.rpartition("/")[0] for signature in symbols.table.signatures]


def _describe_columns(fields: Iterable[str]) -> str:
    """Describe columns of symbols for an error message."""
    names = sorted(fields)
    return (
        "plain symbols" if names == [UNNAMED] else "the columns " + ", ".join(map(repr, names[:5]))
    )
