"""Every intrinsic against its NumPy version in `simd_oracle`."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal

import simd_oracle
from seqlab.simd import (
    dense_products,
    exponential,
    lane_loading,
    lanes,
    max_plus,
    row_sums,
    scalars,
    vectors,
)
from seqlab.simd.lanes import LANES

MODULES = (
    scalars,
    exponential,
    lanes,
    lane_loading,
    max_plus,
    row_sums,
    dense_products,
    vectors,
)
ALL = {
    name: getattr(module, name)
    for module in MODULES
    for name in vars(simd_oracle)
    if hasattr(module, name) and not name.startswith("_") and name not in ("np", "annotations")
}
EXACT = 0.0  # relative tolerance of results that round nothing
ROUNDED = 1e-13

COMPILED = {}


def compiled(name):
    """A function that numba compiles and that calls the intrinsic of that name."""
    if name not in COMPILED:
        function = ALL[name]
        n_arguments = getattr(simd_oracle, name).__code__.co_argcount
        arguments = ", ".join(f"a{k}" for k in range(n_arguments))
        scope = {"function": function}
        exec(f"def call({arguments}):\n    return function({arguments})", scope)
        COMPILED[name] = njit(scope["call"])
    return COMPILED[name]


def assert_equals_oracle(name, *arguments, rtol=EXACT):
    """Both versions return the same and leave the same in their arguments."""
    mine, expected = ([np.copy(a) if np.ndim(a) else a for a in arguments] for _ in range(2))
    found = compiled(name)(*mine)
    right = getattr(simd_oracle, name)(*expected)
    for a, b in zip([found, *mine], [right, *expected], strict=True):
        if a is not None or b is not None:
            assert_allclose(a, b, rtol=rtol)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).random(shape)


def test_every_intrinsic_has_a_numpy_version():
    for module in MODULES:
        for name, function in vars(module).items():
            is_own = getattr(function, "__module__", None) == module.__name__
            if is_own and callable(function) and not name.startswith("_"):
                assert name in ALL or name in ("prefetch", "exp_vector"), name


@pytest.mark.parametrize("value", [0.0, 1.0, -2.5, 1e300, 5e-324])
def test_bit_patterns(value):
    bits = simd_oracle.float_to_bits(value)
    assert_equals_oracle("float_to_bits", value)
    assert_equals_oracle("bits_to_float", bits)


@pytest.mark.parametrize("word", [1, 6, 1 << 40, (1 << 64) - 1])
def test_count_trailing_zeros(word):
    found = compiled("count_trailing_zeros")(np.uint64(word))
    assert found == simd_oracle.count_trailing_zeros(word)


@pytest.mark.parametrize("word", [0, 1, 6, 1 << 40, (1 << 64) - 1])
def test_count_ones(word):
    assert compiled("count_ones")(np.uint64(word)) == simd_oracle.count_ones(word)


@pytest.mark.parametrize("index", [0, 1, 5, 8])
def test_load_word(index):
    data = np.arange(200, 216).astype(np.uint8)
    assert int(compiled("load_word")(data, index)) == simd_oracle.load_word(data, index)


def test_prefetch_changes_nothing():
    @njit
    def fetch(array):
        for k in range(array.size):
            scalars.prefetch(array, k)

    array = np.arange(10)
    fetch(array)
    assert_array_equal(array, np.arange(10))


def test_exponential_is_exact_to_the_last_place():
    x = np.concatenate([-np.logspace(-20, 2.84, 2000), [0.0, -np.inf, -701.0]])
    found = np.array([compiled("exp_nonpositive")(value) for value in x])
    expected = np.array([simd_oracle.exp_nonpositive(value) for value in x])
    assert_allclose(found, expected, rtol=2.3e-16)
    assert np.isnan(compiled("exp_nonpositive")(np.nan))


def test_exponentials_of_lanes_have_the_bits_of_the_scalar_function():
    x = np.concatenate([-np.logspace(-20, 2.9, 998), [0.0, -np.inf]]).reshape(-1, LANES)
    assert_equals_oracle(
        "exp_lanes", x, np.zeros((1, LANES)), np.empty_like(x), len(x), rtol=2.3e-16
    )
    out = np.empty_like(x)
    compiled("exp_lanes")(x, np.zeros((1, LANES)), out, len(x))
    assert out.ravel().tolist() == [compiled("exp_nonpositive")(value) for value in x.ravel()]


@pytest.mark.parametrize("n", [4, 8, 12, 24])
def test_arithmetic_on_lanes(n):
    x, y, out = draw(n, LANES), draw(n, LANES, seed=1), np.empty((n, LANES))
    total = np.empty((2, LANES))
    assert_equals_oracle("matrix_times_lanes", draw(n, n), x, out, n, rtol=ROUNDED)
    assert_equals_oracle("weight_lanes", x, y, total, n, rtol=ROUNDED)
    assert_equals_oracle("dot_lanes", x, y, total, n, rtol=ROUNDED)
    assert_equals_oracle("scale_lanes", x, y[:1], n)
    assert_equals_oracle("multiply_lanes", x, y, out, n)


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize(("i", "j"), [(0, 0), (4, 8)])
def test_add_outer_lanes(n, i, j):
    left, right = draw(6, 12, LANES), draw(6, 12, LANES, seed=1)
    out = draw(144, LANES, seed=2)
    assert_equals_oracle("add_outer_lanes", left, right, out, n, i, j, rtol=ROUNDED)


@pytest.mark.parametrize("width", [4, 8, 12, 100])
def test_transpose_to_lanes(width):
    bounds, lengths = np.arange(0, 32, 4), np.array([4, 2, 3, 0, 1, 9, 3, 2])
    out = np.empty((width, LANES))
    for t in (0, 2):
        assert_equals_oracle("transpose_to_lanes", draw(40, width), out, bounds, lengths, t, width)


@pytest.mark.parametrize("width", [4, 8, 12, 100])
def test_transpose_from_lanes(width):
    bounds, lengths = np.arange(0, 32, 4), np.array([4, 2, 3, 0, 1, 9, 3, 2])
    for t in (0, 2):
        out = draw(40, width)
        assert_equals_oracle(
            "transpose_from_lanes", draw(width, LANES), out, bounds, lengths, t, width
        )


@pytest.mark.parametrize("n", [8, 16, 24])
def test_sum_lanes(n):
    assert_equals_oracle("sum_lanes", draw(n, LANES), np.empty(n), n, rtol=ROUNDED)


def test_bounds_do_not_see_the_padding():
    x = draw(12, LANES)
    x[10:] = -np.inf
    x[3, 2] = -np.inf
    assert_equals_oracle("bound_lanes", x, np.empty((2, LANES)), 12)


# One to four registers, full or not; several strips.
COLUMNS = [*range(4, 27), 31, 32, 33, 47, 48, 49, 70]


@pytest.mark.parametrize("n", COLUMNS)
@pytest.mark.parametrize("tied", [False, True])
def test_max_plus(n, tied):
    width = n + -n % 4

    def scores(*shape, seed):
        values = draw(*shape, seed=seed)
        return np.floor(3 * values) if tied else values

    table, matrix = scores(6, width, seed=n), scores(width, width, seed=n + 1)
    matrix[0, :2] = -np.inf
    extras, out = scores(4, n, seed=n + 2), np.zeros((3, width))
    assert_equals_oracle(
        "max_plus_step", table, 2 * width, matrix, out, width, extras, 3 * n, width, n
    )
    assert_equals_oracle(
        "max_plus_step_two", table, width, 4 * width, matrix, extras, 0, 2 * n, width, n
    )
    for place in (0, width):
        assert_equals_oracle("argmax_of_sum", extras, n, table, place, n)


@pytest.mark.parametrize("width", [4, 8, 12, 20, 24, 28, 32, 36, 60, 64])
@pytest.mark.parametrize("has_values", [False, True])
@pytest.mark.parametrize("name", ["sum_rows", "add_to_rows", "add_to_scaled_rows"])
def test_rows_of_a_table(name, has_values, width):
    rows, other = draw(9, width), draw(3, width, seed=1)
    index = np.array([8, 0, 3, 3, 5, 1], dtype=np.uint32)
    # One per position in the index, or one per row.
    values = draw(9 if name == "add_to_scaled_rows" else 6, seed=2) if has_values else np.empty(0)
    for first, last in ((0, 6), (1, 4), (2, 2)):
        assert_equals_oracle(name, rows, index, values, other, first, last, 2, rtol=ROUNDED)


@pytest.mark.parametrize("width", [4, 8, 28, 60])
@pytest.mark.parametrize(("n_rows", "n_columns"), [(1, 1), (7, 9), (16, 8), (21, 30)])
def test_dense_products(width, n_rows, n_columns):
    x, table = draw(30, n_columns), draw(n_columns + 1, width, seed=1)
    index = np.random.default_rng(2).permutation(30)
    other = draw(25, width, seed=3)
    assert_equals_oracle("add_product", x, index, n_rows, table, other, rtol=ROUNDED)
    factors = draw(n_columns, seed=4)
    arguments = x, index, n_rows, other, factors, table
    assert_equals_oracle("add_transposed_product", *arguments, rtol=ROUNDED)


def test_dense_product_does_not_depend_on_the_split_of_the_rows():
    x, table, index = draw(30, 50), draw(50, 28, seed=1), np.arange(30)
    whole, parts = np.zeros((30, 28)), np.zeros((30, 28))
    dense_products.add_product(x, index, 30, table, whole)
    for first, last in ((0, 1), (1, 12), (12, 30)):
        dense_products.add_product(x, index[first:last], last - first, table, parts[first:last])
    assert_array_equal(whole, parts)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_sum_of_products(n):
    x, y = draw(3 + n * vectors.N_SUMS, seed=1), draw(3 + n * vectors.N_SUMS, seed=2)
    assert_equals_oracle("sum_of_products", x, y, 3, n, rtol=ROUNDED)
