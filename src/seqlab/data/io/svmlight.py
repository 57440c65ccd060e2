"""SVM-light's format with ``qid``: a numeric label, the number of the sequence, sparse features.

``label qid:7 1:0.5 12:1 # comment``; consecutive lines with one qid are a sequence. The format of
SVM-light, LIBSVM's ranking data and SVM-hmm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.io.streams import (
    ReadError,
    Source,
    WriteError,
    iter_lines,
    open_writer,
    pair_up,
    source_name,
)

_MAX_FEATURES = int(np.iinfo(np.int32).max)


def iter_svmlight(
    source: Source,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    encoding: str = "utf-8",
) -> Iterator[tuple[sp.csr_matrix, NDArray[Any]]]:
    r"""Iterate over the sequences of an SVM-light file; parameters are those of `read_svmlight`.

    Without `n_features`, the largest feature number of each sequence gives the width of its matrix.

    Examples
    --------
    >>> import io
    >>> from seqlab.data.io import iter_svmlight
    >>> X, y = next(iter_svmlight(io.StringIO("2 qid:1 1:0.5\n1 qid:1 3:1\n"), n_features=4))
    >>> X.toarray().tolist(), y.tolist()
    ([[0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]], [2, 1])
    """
    name, seen = source_name(source), set[str]()
    steps = _iter_steps(iter_lines(source, encoding), name, n_features, 0 if zero_based else 1)
    for qid, group in groupby(steps, key=attrgetter("qid")):
        sequence = list(group)
        if qid in seen:
            raise ReadError(name, sequence[0].number, f"qid {qid} occurs again after another qid")
        seen.add(qid)
        yield _to_arrays(sequence, n_features)
    if not seen:
        raise ReadError(name, None, "no sequences: the file is empty")


def read_svmlight(
    source: Source,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    encoding: str = "utf-8",
) -> tuple[list[sp.csr_matrix], list[NDArray[Any]]]:
    r"""Read SVM-light's format with ``qid`` as sequences.

    Parameters
    ----------
    source : path, "-" or file object
        A path (also .gz, .xz, .bz2), standard input, or an open text or binary file.
    n_features : int, optional
        Number of columns; by default given by the largest feature number.
    zero_based : bool, default=False
        Whether feature numbers begin with 0 instead of 1.
    encoding : str, default="utf-8"
        Encoding of bytes.

    Returns
    -------
    X : list of csr_matrix
        One matrix per sequence, all of the same width.
    y : list of arrays
        Integer labels if all labels of the sequence are written as integers, else floats.

    Raises
    ------
    ReadError
        For a missing label or qid, a qid that occurs again after another one, a feature that is not
        ``number:value``, is repeated or out of range, a wrong encoding, or a file without sequences;
        the message gives file and line.

    Examples
    --------
    >>> import io
    >>> from seqlab.data.io import read_svmlight
    >>> X, y = read_svmlight(io.StringIO("2 qid:1 1:0.5\n1 qid:2 3:1 # end\n"))
    >>> [matrix.shape for matrix in X], [labels.tolist() for labels in y]
    ([(1, 3), (1, 3)], [[2], [1]])
    """
    X, y = [], []
    for matrix, labels in iter_svmlight(
        source, n_features=n_features, zero_based=zero_based, encoding=encoding
    ):
        X.append(matrix)
        y.append(labels)
    width = max(matrix.shape[1] for matrix in X)
    for matrix in X:
        matrix.resize(matrix.shape[0], width)
    return X, y


def write_svmlight(
    X: Iterable[Any],
    y: Iterable[Sequence[Any]],
    dest: Source,
    *,
    zero_based: bool = False,
    encoding: str = "utf-8",
) -> None:
    """Write SVM-light's format; sequences are numbered from 1 as ``qid``.

    Parameters
    ----------
    X : iterable of 2-D arrays or sparse matrices
        One per sequence; zeros are not written.
    y : iterable of sequences of numbers
        Labels.
    dest : path, "-" or file object
        A path is written through a temporary file and a rename, compressed by its extension.
    zero_based : bool, default=False
        Whether feature numbers begin with 0 instead of 1.
    encoding : str, default="utf-8"
        Encoding of bytes.

    Raises
    ------
    WriteError
        For a label that is not a number, a value that is not finite, or an empty sequence.

    Examples
    --------
    >>> import sys
    >>> from seqlab.data.io import write_svmlight
    >>> write_svmlight([[[0.5, 0.0], [0.0, 1.0]]], [[2, 1]], sys.stdout)
    2 qid:1 1:0.5
    1 qid:1 2:1.0
    """
    base = 0 if zero_based else 1
    with open_writer(dest, encoding) as write:
        matrices = (
            matrix if sp.issparse(matrix) else np.atleast_2d(np.asarray(matrix)) for matrix in X
        )
        for index, matrix, labels in pair_up(matrices, y):
            csr = sp.csr_matrix(matrix, dtype=np.float64, copy=True)
            csr.sum_duplicates()
            if csr.shape[0] == 0:
                raise WriteError(f"X[{index}] is empty: SVM-light's format cannot contain it")
            if not np.isfinite(csr.data).all():
                raise WriteError(f"X[{index}] has a value that is not finite")
            for t in range(csr.shape[0]):
                row = slice(*csr.indptr[t : t + 2])
                pairs = zip(csr.indices[row].tolist(), csr.data[row].tolist(), strict=True)
                features = [f"{column + base}:{value!r}" for column, value in pairs if value != 0]
                fields = [_format_label(labels[t], index, t), f"qid:{index + 1}", *features]
                write(" ".join(fields) + "\n")


def _format_label(label: Any, index: int, t: int) -> str:
    if isinstance(label, bool | np.bool_ | int | np.integer):
        return str(int(label))
    if isinstance(label, float | np.floating) and math.isfinite(label):
        return repr(float(label))
    raise WriteError(f"y[{index}][{t}]: labels in SVM-light are finite numbers, not {label!r}")


class _Step(NamedTuple):
    """One line of the file, with its features in order."""

    number: int
    qid: str
    label: str
    features: list[tuple[int, float]]


def _iter_steps(
    lines: Iterable[tuple[int, str]], name: str, n_features: int | None, base: int
) -> Iterator[_Step]:
    for number, line in lines:
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        if len(fields) < 2 or not fields[1].startswith("qid:"):
            missing = f"the {'label' if fields[0].startswith('qid:') else 'qid'} is missing"
            raise ReadError(name, number, f"{missing}: expected 'label qid:n feature:value'")
        if not _is_number(fields[0]):
            raise ReadError(name, number, f"the label {fields[0]!r} is not a number")
        row: dict[int, float] = {}
        for field in fields[2:]:
            index, _, text = field.partition(":")
            if not (index.isascii() and index.isdigit() and _is_number(text)):
                raise ReadError(name, number, f"{field!r} is not of the form 'feature:value'")
            column = (int(index) if len(index) < 20 else _MAX_FEATURES + 1) - base
            if column < 0:
                raise ReadError(name, number, "feature 0, but feature numbers start at 1")
            if column >= (n_features or _MAX_FEATURES):
                limit = f"n_features={n_features}" if n_features else f"at most {_MAX_FEATURES}"
                raise ReadError(name, number, f"feature {index[:20]} but {limit}")
            row[column] = float(text)
        if len(row) != len(fields) - 2:
            raise ReadError(name, number, "a feature is repeated")
        yield _Step(number, fields[1].removeprefix("qid:"), fields[0], sorted(row.items()))


def _to_arrays(steps: list[_Step], n_features: int | None) -> tuple[sp.csr_matrix, NDArray[Any]]:
    """The features and labels of one sequence."""
    columns = [column for step in steps for column, _ in step.features]
    values = np.array([value for step in steps for _, value in step.features])
    ends = np.cumsum([0, *(len(step.features) for step in steps)], dtype=np.int32)
    shape = (len(steps), n_features or max(columns, default=-1) + 1)
    matrix = sp.csr_matrix((values, np.array(columns, dtype=np.int32), ends), shape=shape)
    integers = all(_is_integer(step.label) for step in steps)
    return matrix, np.array([int(x.label) if integers else float(x.label) for x in steps])


def _is_integer(text: str) -> bool:
    """Whether a number is written as an integer of at most 18 digits, which fits into 64 bits."""
    digits = text.lstrip("+-")
    return digits.isdigit() and len(digits) <= 18


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
