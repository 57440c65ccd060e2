"""Kernels of `Templates`: reading codes at a distance, and writing feature numbers as CSR rows."""

from __future__ import annotations

from numba import njit

from seqlab.features._kernels import Floats, Ints


@njit(cache=True, nogil=True)
def read_codes(
    codes: Ints, position: Ints, remaining: Ints, target: Ints, before: Ints, after: Ints, out: Ints
) -> None:
    """Read ``codes`` at position ``target`` of each step's own sequence.

    Parameters
    ----------
    codes : int32 array of shape (n_steps,)
    position, remaining : int32 arrays of shape (n_steps,)
        Number of steps before and after each step in its sequence.
    target : int32 array of shape (n_steps,)
        Position to read, counted from the first step of the sequence; may lie outside.
    before, after : int32 arrays
        Codes of the positions 1, 2, ... outside the sequence; the last one also stands for all positions
        beyond.
    out : int32 array of shape (n_steps,)
    """
    for t in range(codes.size):
        p = target[t]
        last = position[t] + remaining[t]
        if p < 0:
            out[t] = before[min(-p, before.size) - 1]
        elif p > last:
            out[t] = after[min(p - last, after.size) - 1]
        else:
            out[t] = codes[t - position[t] + p]


@njit(cache=True, nogil=True)
def fill_plain_csr(numbers: Ints, begins: Ints, end: int, indptr: Ints, indices: Ints) -> int:
    """`fill_csr` for a plain column map: number ``n`` of template ``i`` is column ``begins[i] + n``.

    Templates are in the order of their columns, so the rows need no sorting.
    """
    for t in range(numbers.shape[1]):
        for i in range(numbers.shape[0]):
            number = numbers[i, t]
            indices[end] = begins[i] + number  # overwritten by the next one if number is -1
            end += number >= 0
        indptr[t] = end
    return end


@njit(cache=True, nogil=True)
def fill_csr(
    numbers: Ints,
    columns: Ints,
    begins: Ints,
    text_begins: Ints,
    end: int,
    indptr: Ints,
    indices: Ints,
    data: Floats,
) -> int:
    """Write feature numbers as sorted CSR rows; a feature found twice at a step has the value 2.

    Parameters
    ----------
    numbers : int32 array of shape (n_templates, n_steps)
        Feature numbers of each template's table.
    columns : int32 array
        Column of each feature number, table after table, -1 for none.
    begins, text_begins : int64 arrays of shape (n_templates,)
        Where the numbers 0, 1, ... and -2, -3, ... of a template's table begin in `columns`.
    end : int
        Number of entries written so far.
    indptr : int32 array of shape (n_steps,)
        Set to the end of each row.
    indices, data : int32 and float64 arrays with room for every number

    Returns
    -------
    The new number of entries.
    """
    for t in range(numbers.shape[1]):
        begin = end
        for i in range(numbers.shape[0]):
            number = numbers[i, t]
            if number == -1:
                continue
            column = columns[begins[i] + number if number >= 0 else text_begins[i] - 2 - number]
            if column < 0:
                continue
            # Insertion sort: columns mostly arrive in order, so this is usually one comparison.
            at = end
            while at > begin and indices[at - 1] > column:
                at -= 1
            if at > begin and indices[at - 1] == column:
                data[at - 1] += 1.0
                continue
            for k in range(end, at, -1):
                indices[k] = indices[k - 1]
                data[k] = data[k - 1]
            indices[at] = column
            data[at] = 1.0
            end += 1
        indptr[t] = end
    return end
