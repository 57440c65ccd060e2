"""NumPy versions of the intrinsics in `seqlab.simd`, one for each, with the same name and arguments.

Functions that write into an argument do so here too. Sizes that NumPy reads off the arrays are kept, so
that a test can call both versions alike.
"""

from __future__ import annotations

import struct

import numpy as np


def bits_to_float(bits):
    return struct.unpack("<d", struct.pack("<q", bits))[0]


def float_to_bits(value):
    return struct.unpack("<q", struct.pack("<d", value))[0]


def count_trailing_zeros(word):
    return len(bin(word)) - len(bin(word).rstrip("0"))


def count_ones(word):
    return bin(word).count("1")


def load_word(data, index):
    return int.from_bytes(data[index : index + 8].tobytes(), "little")


def exp_nonpositive(x):
    return 0.0 if x < -700 else float(np.exp(np.longdouble(x)))


def matrix_times_lanes(matrix, x, out, n):
    out[:n] = matrix @ x[:n]


def weight_lanes(x, weights, total, n):
    x[:n] *= weights[:n]
    total[0] = x[:n].sum(axis=0)


def dot_lanes(x, y, total, n):
    total[0] = (x[:n] * y[:n]).sum(axis=0)


def sum_lanes(x, out, n):
    out[:n] = x[:n].sum(axis=1)


def scale_lanes(x, factor, n):
    x[:n] *= factor[0]


def multiply_lanes(x, y, out, n):
    out[:n] = x[:n] * y[:n]


def add_outer_lanes(left, right, out, n, i, j):
    width = left.shape[1]
    sums = np.einsum("tpc,tqc->pqc", left[:n, i : i + 4], right[1 : n + 1, j : j + 4])
    out.reshape(width, width, -1)[i : i + 4, j : j + 4] += sums


def transpose_to_lanes(unary, out, bounds, lengths, t, width):
    rows = [begin + t if t < length else -1 for begin, length in zip(bounds, lengths, strict=True)]
    out[:] = unary[rows].T


def transpose_from_lanes(x, out, bounds, lengths, t, width):
    for c, (begin, length) in enumerate(zip(bounds, lengths, strict=True)):
        out[begin + t if t < length else -1] = x[:width, c]


def bound_lanes(x, out, n):
    out[0] = x[:n].max(axis=0)
    out[1] = np.where(np.isneginf(x[:n]), np.inf, x[:n]).min(axis=0)


def exp_lanes(x, shift, out, n):
    out[:n] = np.vectorize(exp_nonpositive)(x[:n] - shift[0])


def max_plus_step(vector, source, matrix, out, target, extras, extra, width, n):
    sums = vector.ravel()[source : source + n, None] + matrix[:n, :n]
    out.ravel()[target : target + n] = extras.ravel()[extra : extra + n] + sums.max(axis=0)


def max_plus_step_two(table, target_a, target_b, matrix, extras, extra_a, extra_b, width, n):
    for target, extra in ((target_a, extra_a), (target_b, extra_b)):
        max_plus_step(table, target + width, matrix, table, target, extras, extra, width, n)


def argmax_of_sum(arcs, arc, vector, place, n):
    return int(np.argmax(arcs.ravel()[arc : arc + n] + vector.ravel()[place : place + n]))


def sum_rows(rows, index, values, other, first, last, place):
    factors = values[first:last, None] if values.size else 1.0
    other[place] = (factors * rows[index[first:last]]).sum(axis=0)


def add_to_scaled_rows(rows, index, factors, other, first, last, place):
    for row in index[first:last]:
        rows[row] += (factors[row] if factors.size else 1.0) * other[place]


def add_to_rows(rows, index, values, other, first, last, place):
    for k in range(first, last):
        rows[index[k]] += (values[k] if values.size else 1.0) * other[place]


def add_product(x, index, n_rows, table, out):
    out[:n_rows] += x[index[:n_rows]] @ table[: x.shape[1]]


def add_transposed_product(x, index, n_rows, other, factors, table):
    product = x[index[:n_rows]].T @ other[:n_rows]
    table[: x.shape[1]] += factors[: x.shape[1], np.newaxis] * product


def sum_of_products(x, y, first, n):
    last = first + 32 * n
    return float(np.sum(x[first:last] * y[first:last]))
