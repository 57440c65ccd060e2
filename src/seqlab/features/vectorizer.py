"""SequenceVectorizer: symbolic steps to columns of numbers.

A step is a dict of named values or a bag of attribute strings, as in CRFsuite; each attribute that
the training data shows gets a column, in the order of first sight. Data are read in chunks of
sequences and each chunk becomes one flat run of column numbers: the loops over attributes are
`map` over a dict lookup, so that a pass costs about a tenth of a microsecond per attribute.
"""

from __future__ import annotations

import math
import numbers
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from itertools import chain, compress, islice, pairwise, repeat
from operator import getitem
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Integral, Interval
from sklearn.utils.validation import check_is_fitted

from seqlab.data.convert import describe, frame_records, is_frame, refuse_step
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.data.vocabulary import Vocabulary

_CHUNK = 256  # sequences converted at a time: enough to amortise the calls, little to hold
_WORD, _SWITCH, _NUMBER, _NESTED, _FOREIGN = range(5)  # classes of values in a dict


class SequenceVectorizer(  # type: ignore[call-arg]  # scikit-learn's __init_subclass__
    TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    """Turn sequences of dicts or of bags of strings into `Sequences`.

    In a dict, a string value gives the feature ``name=value`` with weight 1; True gives ``name``
    with weight 1; a number gives ``name`` with that weight; False, 0 and None give nothing; a list,
    tuple or set of strings gives one feature ``name=item`` for each; a dict gives the features of
    its entries, named ``name:entry``. In a bag (list or set of strings) every string is a feature
    with weight 1. A feature that occurs more than once in a step gets the sum. A data frame counts
    as the dicts of its rows, missing text as None.

    Parameters
    ----------
    separator : str, default="="
        Stands between name and value.
    min_count : int, default=1
        Features that fewer than this many steps of the training data have are dropped.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        The features, in the order of first sight: the same data in the same order give the same
        columns. (A set has no order of its own: give lists where columns must be reproducible
        between processes.)

    See Also
    --------
    seqlab.LinearChainCRF : Labels the result; it also takes dicts and bags as they are.

    Notes
    -----
    Time and memory are linear in the number of attributes. Iterators are consumed in chunks, so
    that a file larger than memory can be vectorized as it is read. Unseen features are ignored by
    `transform`.

    Examples
    --------
    >>> from seqlab import SequenceVectorizer
    >>> X = [[{"word": "Mr", "title": True}, {"word": "Fog", "length": 3}]]
    >>> vectorizer = SequenceVectorizer()
    >>> vectorizer.fit_transform(X)[0].toarray()
    array([[1., 1., 0., 0.],
           [0., 0., 1., 3.]])
    >>> vectorizer.get_feature_names_out().tolist()
    ['word=Mr', 'title', 'word=Fog', 'length']
    >>> vectorizer.transform([[["title", "word=Aouda"]]])[0].toarray()
    array([[0., 1., 0., 0.]])
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "separator": [str],
        "min_count": [Interval(Integral, 1, None, closed="left")],
    }

    vocabulary_: Vocabulary

    def __init__(self, *, separator: str = "=", min_count: int = 1) -> None:
        self.separator = separator
        self.min_count = min_count

    def fit(self, X: Iterable[Any], y: Any = None) -> SequenceVectorizer:
        """Learn the features of X.

        Parameters
        ----------
        X : list or iterator of sequences
            Each a list of dicts, a list of bags of strings, or a data frame.
        y : ignored

        Returns
        -------
        self
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Iterable[Any], y: Any = None) -> Sequences:
        """Learn the features of X and vectorize it in one pass.

        Parameters
        ----------
        X : list or iterator of sequences
        y : ignored

        Returns
        -------
        Sequences
            CSR float64 with one column per feature.
        """
        self._validate_params()
        columns: defaultdict[str, int] = defaultdict()
        columns.default_factory = columns.__len__
        matrix, offsets = _read(X, columns.__getitem__, columns, self.separator)
        if self.min_count == 1:
            self.vocabulary_ = Vocabulary.from_index(dict(columns))
        else:
            counts = np.bincount(matrix.indices, minlength=len(columns))
            frequent = counts >= self.min_count
            matrix = _select(matrix, np.flatnonzero(frequent))
            self.vocabulary_ = Vocabulary(compress(columns, frequent.tolist()))
        return Sequences(matrix, offsets, feature_names=self.vocabulary_.names)

    def transform(self, X: Iterable[Any]) -> Sequences:
        """Vectorize X with the features known from `fit`.

        Parameters
        ----------
        X : list or iterator of sequences

        Returns
        -------
        Sequences
            CSR float64 with one column per feature of `vocabulary_`.
        """
        check_is_fitted(self)
        known = self.vocabulary_.index
        matrix, offsets = _read(X, lambda name: known.get(name, -1), known, self.separator)
        return Sequences(matrix, offsets, feature_names=self.vocabulary_.names)

    def inverse_transform(self, X: Any) -> list[list[dict[str, float]]]:
        """Give the features of each step back as a dict of names and weights.

        Parameters
        ----------
        X : Sequences, or list of matrices, with the columns of `vocabulary_`

        Returns
        -------
        list of lists of dicts
        """
        check_is_fitted(self)
        result = []
        for index, item in enumerate(X):
            csr = sp.csr_matrix(item)
            if csr.shape[1] != len(self.vocabulary_):
                raise InputError(
                    f"X[{index}] has {csr.shape[1]} columns but the vocabulary has "
                    f"{len(self.vocabulary_)} names"
                )
            names = self.vocabulary_.names[csr.indices]
            bounds = csr.indptr.tolist()
            pairs = list(zip(names, csr.data.tolist(), strict=True))
            result.append([dict(pairs[a:b]) for a, b in pairwise(bounds)])
        return result

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str objects
        """
        check_is_fitted(self)
        return self.vocabulary_.names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.dict = True
        return tags


class _Run(NamedTuple):
    """A chunk as one flat run of attributes."""

    columns: NDArray[np.int32]  # (n_attributes,); −1: the attribute has no column
    weights: NDArray[np.float64] | None  # (n_attributes,); None: all 1
    sizes: NDArray[np.int32]  # (n_steps,): attributes of each step


def _read(
    X: Any, column_of: Callable[[str], int], known: dict[str, int], separator: str
) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
    """CSR matrix and offsets of X; `column_of` says, or decides, the column of a name."""
    tables = _Tables(column_of, separator)
    runs: list[_Run] = []
    lengths: list[int] = []
    reader = _Reader(X)
    for chunk in reader.chunks():
        lengths.extend(map(len, chunk))
        steps = list(chain.from_iterable(chunk))
        try:
            if reader.kind is Mapping:
                run = _run_of_dicts(steps, tables)
            else:
                run = _run_of_bags(steps, known)
        except (_UnfitError, TypeError):
            _explain(chunk, len(lengths) - len(chunk))
            raise
        runs.append(run)
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return _assemble(runs, len(known)), offsets


def _run_of_bags(steps: list[Any], known: dict[str, int]) -> _Run:
    sizes = np.fromiter(map(len, steps), np.int32, len(steps))
    attributes = chain.from_iterable(steps)
    before = len(known)
    if isinstance(known, defaultdict):  # learning: what is new gets the next column
        found: Iterator[int] = map(known.__getitem__, attributes)
    else:
        found = map(known.get, attributes, repeat(-1))
    columns = np.fromiter(found, np.int32, int(sizes.sum()))
    # What is known is a string; only what was not known needs a look.
    unknown: Iterable[Any] = islice(reversed(known), len(known) - before)
    if columns.size and columns.min() < 0:
        unknown = compress(chain.from_iterable(steps), (columns < 0).tolist())
    if not all(issubclass(kind, str) for kind in set(map(type, unknown))):
        raise _UnfitError
    return _Run(columns, None, sizes)


def _run_of_dicts(steps: list[Any], tables: _Tables) -> _Run:
    names: Iterable[Any] = chain.from_iterable(steps)
    values = list(chain.from_iterable(step.values() for step in steps))
    sizes = np.fromiter(map(len, steps), np.int32, len(steps))
    classes = _classes(values)
    if (classes >= _NESTED).any():
        flat = [list(_flatten(step)) for step in steps]
        sizes = np.fromiter(map(len, flat), np.int32, len(flat))
        names = [name for pairs in flat for name, _ in pairs]
        values = [value for pairs in flat for _, value in pairs]
        classes = _classes(values)
    found = map(getitem, map(tables.__getitem__, names), values)
    columns = np.fromiter(found, np.int32, len(values))
    places = np.flatnonzero(classes == _NUMBER)
    if not places.size:
        return _Run(columns, None, sizes)
    weights = np.ones(len(values))
    weights[places] = [values[place] for place in places.tolist()]
    return _Run(columns, weights, sizes)


def _assemble(runs: list[_Run], n_features: int) -> sp.csr_matrix:
    """Put the runs together, dropping what has no column and summing what is repeated."""
    columns = _join([run.columns for run in runs], np.int32)
    sizes = _join([run.sizes for run in runs], np.int32)
    indptr = np.zeros(sizes.size + 1, dtype=np.int64)
    np.cumsum(sizes, out=indptr[1:])
    weights = np.ones(columns.size)
    if any(run.weights is not None for run in runs):
        end = 0
        for run in runs:
            start, end = end, end + run.columns.size
            if run.weights is not None:
                weights[start:end] = run.weights
    stored = columns >= 0
    if not stored.all():
        before = np.zeros(columns.size + 1, dtype=np.int64)
        np.cumsum(stored, out=before[1:])
        columns, weights, indptr = columns[stored], weights[stored], before[indptr]
    if indptr[-1] > np.iinfo(np.int32).max:
        raise InputError(f"X has {indptr[-1]} attributes, too many for CSR int32")
    matrix = sp.csr_matrix(
        (weights, columns, indptr.astype(np.int32)), shape=(sizes.size, n_features)
    )
    matrix.sum_duplicates()
    return matrix


def _join(parts: list[Any], dtype: Any) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)


def _select(matrix: sp.csr_matrix, kept: NDArray[np.int64]) -> sp.csr_matrix:
    """Keep some columns, renumbered in their order."""
    renumbered = np.full(matrix.shape[1], -1, dtype=np.int32)
    renumbered[kept] = np.arange(kept.size, dtype=np.int32)
    columns = renumbered[matrix.indices]
    stored = columns >= 0
    before = np.zeros(columns.size + 1, dtype=np.int32)
    np.cumsum(stored, out=before[1:])
    return sp.csr_matrix(
        (matrix.data[stored], columns[stored], before[matrix.indptr]),
        shape=(matrix.shape[0], kept.size),
    )


class _UnfitError(Exception):
    """A value that cannot be a feature; `_explain` says which and where."""


class _Tables(dict[str, "_Table"]):
    """Table of each name met so far."""

    def __init__(self, column_of: Callable[[str], int], separator: str) -> None:
        super().__init__()
        self.column_of = column_of
        self.separator = separator

    def __missing__(self, name: str) -> _Table:
        if not isinstance(name, str):
            raise _UnfitError
        self[name] = table = _Table(self, name)
        return table


class _Table(dict[Any, int]):
    """Column of each value of one name; −1 for what has no column.

    Numbers are not kept, as there may be a different one in each step. A kept True equals 1 as a
    key, and both mean the column of the name itself; likewise False and 0, which have none.
    """

    def __init__(self, tables: _Tables, name: str) -> None:
        super().__init__()
        self.tables = tables
        self.name = name

    def __missing__(self, value: Any) -> int:
        if isinstance(value, str):
            text = f"{self.name}{self.tables.separator}{value}"
            self[value] = column = self.tables.column_of(text)
        elif value is None:
            self[value] = column = -1
        elif not value:
            column = -1
        elif isinstance(value, bool | np.bool_):
            self[value] = column = self.tables.column_of(self.name)
        elif math.isfinite(value):
            column = self.tables.column_of(self.name)
        else:
            raise _UnfitError
        return column


class _ClassOfType(dict[type, int]):
    """Class of value by Python type, decided once per type."""

    def __missing__(self, kind: type) -> int:
        if issubclass(kind, str):
            found = _WORD
        elif issubclass(kind, bool | np.bool_ | type(None)):
            found = _SWITCH
        elif issubclass(kind, numbers.Real):
            found = _NUMBER
        elif issubclass(kind, Mapping | Set | list | tuple):
            found = _NESTED
        else:
            found = _FOREIGN
        self[kind] = found
        return found


def _classes(values: list[Any]) -> NDArray[np.int8]:
    return np.fromiter(map(_ClassOfType().__getitem__, map(type, values)), np.int8, len(values))


def _flatten(step: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Pairs of a step without nesting."""
    for name, value in step.items():
        if not isinstance(name, str):
            raise _UnfitError
        full = prefix + name
        if isinstance(value, Mapping):
            yield from _flatten(value, full + ":")
        elif isinstance(value, list | tuple | Set):
            for item in value:
                if not isinstance(item, str):
                    raise _UnfitError
                yield full, item
        elif value is None or isinstance(value, str | numbers.Real | np.bool_):
            yield full, value
        else:
            raise _UnfitError


class _Reader:
    """Chunks of sequences of X, all of one kind of step."""

    def __init__(self, X: Any) -> None:
        if isinstance(X, str | bytes | Mapping | Set | Sequences) or sp.issparse(X) or is_frame(X):
            raise InputError(
                f"X is {describe(X)}: a list of sequences of dicts or of bags expected"
            )
        self.items = enumerate(X)
        self.kind: type | None = None
        self.first = ""

    def chunks(self) -> Iterator[list[list[Any]]]:
        while chunk := [self._sequence(i, item) for i, item in islice(self.items, _CHUNK)]:
            yield chunk

    def _sequence(self, index: int, item: Any) -> list[Any]:
        """Steps of one sequence, checked to be all dicts or all bags."""
        place = f"X[{index}]"
        if is_frame(item):
            item = frame_records(item)
        elif isinstance(item, Mapping):
            raise InputError(f"{place} is a dict: X is a list of sequences; wrap it in a list: [X]")
        elif (
            isinstance(item, str | bytes | Set)
            or sp.issparse(item)
            or not isinstance(item, Iterable)
        ):
            raise InputError(f"{place} is {describe(item)}, but a sequence is a list of steps")
        steps = item if isinstance(item, list) else list(item)
        kinds = set(map(type, steps))
        if len(kinds) == 1 and self.kind is _FAMILY.get(next(iter(kinds)), type):
            return steps
        for position, step in enumerate(steps):
            self._check(step, f"{place}[{position}]")
        return steps

    def _check(self, step: Any, place: str) -> None:
        if isinstance(step, Mapping):
            kind: type = Mapping
        elif isinstance(step, tuple | str | bytes) or not isinstance(step, Collection):
            refuse_step(step, place)
        else:
            kind = Collection
        if self.kind is None:
            self.kind, self.first = kind, place
        if kind is not self.kind:
            there = "a dict" if self.kind is Mapping else "a bag of strings"
            raise InputError(
                f"{place} is {describe(step)} but {self.first} is {there}: give one kind"
            )


_FAMILY: dict[type, type] = {dict: Mapping, list: Collection, set: Collection}


def _explain(chunk: list[list[Any]], first: int) -> None:
    """Raise the error that names the first unfit value of a chunk."""
    for index, steps in enumerate(chunk, first):
        for position, step in enumerate(steps):
            place = f"X[{index}][{position}]"
            if isinstance(step, Mapping):
                _explain_dict(step, place)
                continue
            for attribute in step:
                if not isinstance(attribute, str):
                    raise InputError(
                        f"{place} holds {describe(attribute)}, but a bag holds strings only"
                    )


def _explain_dict(step: Mapping[Any, Any], place: str) -> None:
    for name, value in step.items():
        where = f"{place}[{name!r}]"
        if not isinstance(name, str):
            raise InputError(f"{place} has the name {name!r}, but names of features are strings")
        if isinstance(value, Mapping):
            _explain_dict(value, where)
        elif isinstance(value, list | tuple | Set):
            for item in value:
                if not isinstance(item, str):
                    raise InputError(
                        f"{where} holds {describe(item)}, but only strings can be listed"
                    )
        elif isinstance(value, numbers.Real) and not math.isfinite(value):
            what = "NaN" if math.isnan(value) else "infinity"
            raise InputError(f"{where} is {what}: a feature needs a finite number")
        elif not (value is None or isinstance(value, str | numbers.Real | np.bool_)):
            raise InputError(
                f"{where} is {describe(value)}: a feature is a string, a number, a bool, a list of "
                "strings or a dict"
            )
