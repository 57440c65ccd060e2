"""Kernels: the minimum of the separable part of the quadratic model, in tiles of weights.

A minimum takes three or four evaluations, and only some of the weights are active. So their rows of the
matrix Q of the model are copied once, as tiles of `TILE` weights in which a column of Q is contiguous: sums
over many weights at a time are several times as fast as sums over the columns of one weight.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.optim.state import Vector
from seqlab.utils.linalg import axpy, dot

# Weights of a tile: with 20 columns it fills 20 kB, less than an L1 cache.
TILE = 128
# Sign of a weight that has not been computed yet.
UNKNOWN = 2


@njit(nogil=True, cache=True)
def find_active(
    w: Vector,
    gradient: Vector,
    c1: Vector,
    in_block: NDArray[np.bool_],
    active: NDArray[np.int64],
) -> int:
    """Set the first entries of ``active`` to the weights that are not optimal at zero; return their number.

    Weights of the block are left out.
    """
    n_active = 0
    for j in range(w.size):
        if (w[j] != 0.0 or abs(gradient[j]) > c1[j]) and not in_block[j]:
            active[n_active] = j
            n_active += 1
    return n_active


@njit(nogil=True, cache=True)
def fill_tiles(
    w: Vector,
    gradient: Vector,
    c1: Vector,
    active: NDArray[np.int64],
    diagonal: Vector,
    scale: float,
    pairs: Vector,
    places: NDArray[np.int64],
    begin: int,
    stop: int,
    tiles: Vector,
    terms: Vector,
) -> None:
    """Copy the active weights ``begin:stop`` to tiles; ``begin`` is a multiple of `TILE`.

    ``tiles`` (n_tiles, n_columns, TILE) receives their rows of Q, steps before changes, for the pairs at
    ``places``; ``terms`` (n_tiles, 4, TILE) curvature, weight, slope and penalty. The rest of the last tile
    is filled with weights that stay zero.
    """
    n_pairs, memory = places.size, pairs.shape[1] // 2
    for first in range(begin, stop, TILE):
        tile, term = tiles[first // TILE], terms[first // TILE]
        for i in range(TILE):
            if first + i >= stop:
                tile[:, i] = 0.0
                term[:, i] = 0.0
                term[0, i] = 1.0
                continue
            j = active[first + i]
            base, row = scale * diagonal[j], pairs[j]
            term[0, i], term[1, i], term[2, i], term[3, i] = base, w[j], gradient[j], c1[j]
            for k in range(n_pairs):
                tile[k, i] = base * row[places[k]]
                tile[n_pairs + k, i] = row[memory + places[k]]


@njit(nogil=True, cache=True)
def minimise_tiles(
    tiles: Vector,
    terms: Vector,
    shift: Vector,
    first: int,
    last: int,
    signs: NDArray[np.int8],
    changes: Vector,
    products: Vector,
    gram: Vector,
) -> int:
    """Minimise ``(g - Q u)'d + s d'Dd / 2 + sum c1 |w + d|`` over the weights of the tiles ``first:last``.

    Sets their ``changes`` d and ``signs`` of ``w + d``, and adds their part of ``Q'd`` to ``products``. The
    lower half of ``gram`` is their part of ``Q'(s D)^-1 Q`` over the weights that are not zero: weights that
    have become zero, or are no longer zero, are subtracted or added. Returns how many signs have changed.
    ``shift`` is u.
    """
    size = shift.size
    slope = np.empty(TILE)
    # Rows of Q to be added to the Gram matrix.
    rows, signed_rows, n_waiting = np.empty((size, TILE)), np.empty((size, TILE)), 0
    n_changed = 0
    for t in range(first, last):
        tile, sign, change = tiles[t], signs[t], changes[t]
        base, weight, penalty = terms[t, 0], terms[t, 1], terms[t, 3]
        slope[:] = terms[t, 2]
        for k in range(size):
            axpy(-shift[k], tile[k], slope)
        for i in range(TILE):
            after = weight[i] - slope[i] / base[i]
            threshold = penalty[i] / base[i]
            now = 0
            if after > threshold:
                after -= threshold
                now = 1
            elif after < -threshold:
                after += threshold
                now = -1
            else:
                after = 0.0
            change[i] = after - weight[i]
            before = sign[i]
            if now == before:
                continue
            sign[i] = now
            n_changed += 1
            is_in, was_in = now != 0, before != 0 and before != UNKNOWN
            if is_in != was_in:
                root = 1.0 / np.sqrt(base[i])
                factor = root if is_in else -root
                for k in range(size):
                    rows[k, n_waiting] = root * tile[k, i]
                    signed_rows[k, n_waiting] = factor * tile[k, i]
                n_waiting += 1
                if n_waiting == TILE:
                    add_gram(rows, signed_rows, n_waiting, gram)
                    n_waiting = 0
        for k in range(size):
            products[k] += dot(tile[k], change)
    add_gram(rows, signed_rows, n_waiting, gram)
    return n_changed


@njit(nogil=True, cache=True)
def add_gram(rows: Vector, others: Vector, n: int, gram: Vector) -> None:
    """Add the products of the first ``n`` entries of rows to the lower half of a matrix."""
    if n > 0:
        for k in range(rows.shape[0]):
            for other in range(k + 1):
                gram[k, other] += dot(rows[k, :n], others[other, :n])


@njit(nogil=True, cache=True)
def store_direction(active: NDArray[np.int64], changes: Vector, direction: Vector) -> None:
    """Set the entries ``active`` of a direction to the changes of the tiles."""
    for i in range(active.size):
        direction[active[i]] = changes[i // TILE, i % TILE]
