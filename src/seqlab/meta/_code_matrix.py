"""Code matrices: one code word of bits per label (Dietterich & Bakiri 1995).

A code is an array of shape (n_labels, code_length) of zeros and ones. Every column splits the labels into
two sets and becomes a binary problem. A code is usable if no column is constant (nothing to learn) and no two
rows are equal (their labels could not be told apart). Random codes also have no two columns that are equal or
complementary: they would be the same binary problem. So L labels have at most ``2 ** (L - 1) - 1`` columns,
and need at least ``log2(L)`` of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError

Bits = NDArray[np.int8]
# Default number of columns of a random code: Hao & Fern (2007) found little improvement with more.
DEFAULT_LENGTH = 200
# An exhaustive code has 2 ** (L - 1) - 1 columns: 1,023 for this number of labels.
MAX_EXHAUSTIVE_LABELS = 11
# Number of random codes among which "dense" chooses: the distance of the best grows slowly beyond.
N_DENSE_DRAWS = 100
# Draws of a column after which the search for one that is still missing enumerates all columns instead.
MAX_REJECTED = 1000
# Draws of a whole code by columns before it is drawn by rows. Short codes for many labels nearly always have
# equal rows: 8 random columns for 121 labels in all but 1 of 10 ** 16 draws.
MAX_DRAWS = 10


def make_code(
    code: Any, code_length: int | None, n_labels: int, random: np.random.RandomState
) -> Bits:
    """Return the code matrix that the parameters of `SequentialOutputCode` specify.

    Parameters
    ----------
    code : {"random", "dense", "exhaustive"} or array of shape (n_labels, n_columns)
    code_length : int or None
    n_labels : int
    random : RandomState

    Returns
    -------
    array of shape (n_labels, n_columns)
    """
    if not isinstance(code, str):
        return check_code(code, code_length, n_labels)
    if n_labels == 1:
        return np.zeros((1, 0), dtype=np.int8)
    if code == "exhaustive":
        return exhaustive_code(n_labels, code_length)
    most = 2 ** (n_labels - 1) - 1
    least = (n_labels - 1).bit_length()
    if code_length is None:
        wanted = DEFAULT_LENGTH if code == "random" else math.ceil(10 * math.log2(n_labels))
        code_length = min(wanted, most)
    if not least <= code_length <= most:
        raise InputError(
            f"code_length={code_length} is not possible for {n_labels} labels: between {least} and {most} "
            "columns are possible: code words must differ, and columns must not be equal or complementary"
        )
    if code == "random":
        return random_code(n_labels, code_length, random)
    drawn = [random_code(n_labels, code_length, random) for _ in range(N_DENSE_DRAWS)]
    return max(drawn, key=lambda one: row_distances(one).min())


def random_code(n_labels: int, code_length: int, random: np.random.RandomState) -> Bits:
    """Draw a code without constant, equal or complementary columns and without equal rows."""
    draw = 0
    while True:
        if draw < MAX_DRAWS:
            columns = _draw_columns(n_labels, code_length, random)
            # A column and its complement are the same problem: draw which of the two is used.
            flipped = random.randint(2, size=code_length)
            code = np.bitwise_xor(columns, flipped).astype(np.int8)
        else:
            code = _draw_rows(n_labels, code_length, random)
        if _has_different_rows(code) and _has_different_columns(code):
            return code
        draw += 1


def _draw_rows(n_labels: int, code_length: int, random: np.random.RandomState) -> Bits:
    """Draw different rows, shape (n_labels, code_length)."""
    if 2**code_length <= 16 * n_labels:
        words = random.permutation(2**code_length)[:n_labels]
        return ((words[:, None] >> np.arange(code_length)) & 1).astype(np.int8)
    rows: dict[bytes, Bits] = {}
    while len(rows) < n_labels:  # at most one draw in 16 is rejected
        row = random.randint(2, size=code_length).astype(np.int8)
        rows.setdefault(row.tobytes(), row)
    return np.stack(list(rows.values()))


def _has_different_rows(code: Bits) -> bool:
    return np.unique(code, axis=0).shape[0] == code.shape[0]


def _has_different_columns(code: Bits) -> bool:
    """Return whether no column is constant, and no two are equal or complementary."""
    columns = np.unique(code ^ code[:1], axis=1)
    return columns.shape[1] == code.shape[1] and bool(columns.any(axis=0).all())


def _draw_columns(
    n_labels: int, code_length: int, random: np.random.RandomState
) -> NDArray[np.int64]:
    """Draw different columns that are not constant and begin with 0, shape (n_labels, code_length)."""
    seen: set[bytes] = set()
    columns: list[NDArray[np.int64]] = []
    n_rejected = 0
    while len(columns) < code_length:
        column = random.randint(2, size=n_labels)
        column ^= column[0]
        key = column.tobytes()
        if key in seen or not column.any():
            n_rejected += 1
            if n_rejected > MAX_REJECTED and n_labels <= MAX_EXHAUSTIVE_LABELS:
                # Nearly all columns are wanted, so few draws are new.
                every = exhaustive_code(n_labels, None).astype(np.int64)
                return every[:, random.permutation(every.shape[1])[:code_length]]
            continue
        seen.add(key)
        columns.append(column)
    return np.stack(columns, axis=1)


def exhaustive_code(n_labels: int, code_length: int | None) -> Bits:
    """Return every column that is not constant, up to complements."""
    if n_labels > MAX_EXHAUSTIVE_LABELS:
        raise InputError(
            f"code='exhaustive' has 2 ** (n_labels - 1) - 1 columns: too many for {n_labels} labels "
            f"(at most {MAX_EXHAUSTIVE_LABELS}); use 'random' or 'dense'"
        )
    n_columns = 2 ** (n_labels - 1) - 1
    if code_length not in (None, n_columns):
        raise InputError(
            f"code='exhaustive' has {n_columns} columns for {n_labels} labels, not code_length={code_length}"
        )
    numbers = np.arange(1, n_columns + 1)
    places = np.arange(n_labels - 2, -1, -1)
    rest = (numbers[None, :] >> places[:, None]) & 1
    return np.vstack([np.zeros_like(numbers), rest]).astype(np.int8)


def check_code(code: Any, code_length: int | None, n_labels: int) -> Bits:
    """Check a code matrix given by the user; -1 and 1 may stand for 0 and 1."""
    try:
        matrix = np.asarray(code, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"code must be 'random', 'dense', 'exhaustive' or a matrix of zeros and ones, got {code!r}"
        ) from None
    if matrix.ndim != 2 or matrix.shape[0] != n_labels:
        raise InputError(
            f"code has shape {matrix.shape}, but there are {n_labels} labels: it needs one row for each, in "
            "the order of classes_"
        )
    if code_length is not None and code_length != matrix.shape[1]:
        raise InputError(f"code has {matrix.shape[1]} columns, but code_length={code_length}")
    values = np.unique(matrix).tolist()
    if not (set(values) <= {0.0, 1.0} or set(values) <= {-1.0, 1.0}):
        raise InputError(f"code must have the values 0 and 1 (or -1 and 1) only, got {values[:5]}")
    bits = (matrix > 0).astype(np.int8)
    constant = np.flatnonzero(bits.min(axis=0, initial=1) == bits.max(axis=0, initial=0))
    if constant.size and n_labels > 1:
        raise InputError(
            f"column {constant[0]} of code is constant: it does not separate any labels"
        )
    _, first, copies = np.unique(bits, axis=0, return_index=True, return_inverse=True)
    if first.size < n_labels:
        same = first[copies.ravel()]
        later = int(np.argmax(same != np.arange(n_labels)))
        raise InputError(
            f"rows {same[later]} and {later} of code are equal: their labels cannot be told apart"
        )
    return bits


def row_distances(code: Bits) -> NDArray[np.int64]:
    """Return the Hamming distances between all pairs of code words, shape (n_pairs,)."""
    signs = 2 * code.astype(np.int64) - 1
    agree = signs @ signs.T
    upper = np.triu_indices(code.shape[0], 1)
    return (code.shape[1] - agree[upper]) // 2
