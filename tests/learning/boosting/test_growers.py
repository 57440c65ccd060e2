"""Regression trees: against scikit-learn, against enumeration, merged rows, categories."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.tree import DecisionTreeRegressor

from seqlab.data import InputError, Sequences
from seqlab.learning.boosting import BinnedRows, FeatureTreeGrower, TreeEnsemble

SCALE = 2.0**40


def fixed(values):
    return np.rint(np.asarray(values) * SCALE).astype(np.int64)


def rows_of(matrix, categorical=(), *, merge=True):
    return BinnedRows.from_sequences(
        Sequences(matrix, [0, matrix.shape[0]]), categorical, merge=merge
    )


def cell_values(tree, n_rows, n_columns):
    """Return the value of every cell (row, column), from the leaves of a grown tree."""
    node, pair = np.zeros((1, n_rows)), np.zeros((1, n_rows, n_columns))
    tree.add_to(1.0, node, pair)
    return node[0, :, None] + pair[0]


def grow_fixed(rows, gradient, curvature, **options):
    """Return one tree; growing adds it to the scores, as `cell_values` does."""
    n_rows, n_columns = gradient.shape
    node, pair = np.zeros((1, n_rows)), np.zeros((1, n_rows, n_columns))
    grower = FeatureTreeGrower(rows, **options)
    tree = grower.grow(gradient[None], curvature[None], SCALE, 1.0, node, pair)
    np.testing.assert_array_equal(node[0, :, None] + pair[0], cell_values(tree, n_rows, n_columns))
    return tree


def grow(rows, gradient, curvature, max_leaf_nodes, **options):
    options["max_leaf_nodes"] = max_leaf_nodes
    return grow_fixed(rows, fixed(gradient), fixed(curvature), **options)


@pytest.mark.parametrize("kind", ["dense", "sparse", "binary"])
@pytest.mark.parametrize("max_leaf_nodes", [2, 5, 12])
def test_trees_equal_those_of_scikit_learn(kind, max_leaf_nodes):
    random = np.random.default_rng(max_leaf_nodes)
    X = random.normal(size=(80, 5))
    if kind == "sparse":
        X = X * (random.random(X.shape) < 0.4)
    if kind == "binary":
        X = (X > 0.3).astype(float)
    target, weight = random.normal(size=80), random.random(80) + 0.5
    rows = rows_of(sp.csr_matrix(X), merge=False)
    tree = grow(rows, (target * weight)[:, None], weight[:, None], max_leaf_nodes)
    peer = DecisionTreeRegressor(max_leaf_nodes=max_leaf_nodes, random_state=0)
    peer.fit(X, target, sample_weight=weight)
    np.testing.assert_allclose(cell_values(tree, 80, 1)[:, 0], peer.predict(X), atol=1e-9)
    assert tree.feature.size == peer.tree_.node_count


def test_trees_over_previous_labels_equal_those_over_indicators():
    """With two previous labels and none, sets of one label are all splits: a peer sees three columns."""
    random = np.random.default_rng(0)
    n = 40
    X = random.normal(size=(n, 3))
    target, weight = random.normal(size=(n, 3)), random.random((n, 3)) + 0.5
    tree = grow(rows_of(sp.csr_matrix(X), merge=False), target * weight, weight, 9)
    every = np.hstack([np.repeat(X, 3, axis=0), np.tile(np.eye(3), (n, 1))])
    peer = DecisionTreeRegressor(max_leaf_nodes=9, random_state=0)
    peer.fit(every, target.ravel(), sample_weight=weight.ravel())
    expected = peer.predict(every).reshape(n, 3)
    np.testing.assert_allclose(cell_values(tree, n, 3), expected, atol=1e-9)
    assert (tree.feature == -2).any()


@pytest.mark.parametrize("l2", [0.0, 0.7])
def test_the_first_split_has_the_largest_gain(l2):
    """All thresholds of all features and all sets of previous labels are tried."""
    random = np.random.default_rng(1)
    n, n_columns = 15, 5
    X = np.round(random.normal(size=(n, 2)), 1)
    g, h = random.normal(size=(n, n_columns)), random.random((n, n_columns)) + 0.1
    # Effects of the previous label, so that the best split is on it.
    g += 2.0 * random.normal(size=n_columns)
    tree = grow(rows_of(sp.csr_matrix(X), merge=False), g, h, 2, l2=l2)
    cells = np.ones((n, n_columns), dtype=bool)
    sides = [np.where((X[:, [f]] <= v), cells, False) for f in range(2) for v in X[:, f]]
    for size in range(1, n_columns):
        for chosen in itertools.combinations(range(n_columns), size):
            sides.append(cells & np.isin(np.arange(n_columns), chosen))

    def score(side):
        return g[side].sum() ** 2 / (h[side].sum() + l2)

    gains = [
        score(side) + score(~side) - score(cells) for side in sides if 0 < side.sum() < side.size
    ]
    assert tree.feature[0] == -2
    if l2 == 0.0:  # ordering by the mean is exact for squared errors
        assert tree.gain[0] == pytest.approx(max(gains))
    assert tree.gain[0] <= max(gains) + 1e-9
    values = np.unique(cell_values(tree, n, n_columns))
    side = cell_values(tree, n, n_columns) == values[0]
    np.testing.assert_allclose(values[0], g[side].sum() / (h[side].sum() + l2))


def test_a_split_on_a_categorical_feature_separates_any_set_of_categories():
    codes = np.array([0, 1, 2, 3, 4, 0, 1, 2, 3, 4])
    target = np.where(np.isin(codes, [1, 3]), 2.0, -1.0)
    matrix = sp.csr_matrix(np.column_stack([codes, np.ones(10)]).astype(float))
    rows = rows_of(matrix, [0])
    assert rows.n_rows == 5
    gradient = np.array([target[codes == c].sum() for c in range(5)])[:, None]
    tree = grow(rows, gradient, np.full((5, 1), 2.0), 2)
    np.testing.assert_allclose(cell_values(tree, 5, 1)[:, 0], [-1, 2, -1, 2, -1])
    ensemble = TreeEnsemble.from_rounds([(1.0, [tree])], rows.bins, 1, has_pairs=False)
    node = np.zeros((1, 10))
    ensemble.add_scores(matrix.indptr, matrix.indices, matrix.data, node, np.zeros((1, 10, 0)))
    np.testing.assert_allclose(node[0], target)


def test_invalid_categories_are_located():
    matrix = sp.csr_matrix(np.array([[0.0, 1.0], [2.0, 1.0], [1.5, 1.0]]))
    with pytest.raises(
        InputError, match=r"X\[0\]\[2\] has the value 1.5 in the categorical feature 0"
    ):
        rows_of(matrix, [0])


@pytest.mark.parametrize("kind", ["binary", "dense"])
def test_merged_rows_give_the_same_tree(kind):
    random = np.random.default_rng(0)
    X = random.integers(0, 2 if kind == "binary" else 4, size=(60, 4)).astype(float)
    matrix = sp.csr_matrix(X)
    merged, plain = rows_of(matrix), rows_of(matrix, merge=False)
    assert merged.n_rows < plain.n_rows == 60
    g, h = fixed(random.normal(size=(60, 3))), fixed(random.random((60, 3)) + 0.1)
    sums = [np.zeros((merged.n_rows, 3), dtype=np.int64) for _ in range(2)]
    for total, part in zip(sums, (g, h), strict=True):
        np.add.at(total, merged.row_of_step, part)
    options = {"max_leaf_nodes": 8, "l2": 0.5}
    a = grow_fixed(merged, *sums, **options)
    b = grow_fixed(plain, g, h, **options)
    for name in ("feature", "place", "child", "member", "value", "gain"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    expected = cell_values(b, 60, 3)
    np.testing.assert_array_equal(cell_values(a, merged.n_rows, 3)[merged.row_of_step], expected)


def test_many_values_are_divided_into_bins():
    random = np.random.default_rng(0)
    values = random.normal(size=2000)
    rows = rows_of(sp.csr_matrix(values[:, None]))
    assert rows.bins.begin.tolist() == [0, 255]
    counts = np.bincount(rows.row_of_step)
    assert counts.max() <= 2 * 2000 / 255
    target = np.where(values > 0.5, 1.0, 0.0)
    gradient = np.bincount(rows.row_of_step, target)[:, None]
    tree = grow(rows, gradient, np.bincount(rows.row_of_step).astype(float)[:, None], 2)
    assert rows.bins.threshold(0, int(tree.place[0])) == pytest.approx(0.5, abs=0.02)


def test_a_leaf_value_is_limited():
    rows = rows_of(sp.csr_matrix(np.array([[1.0], [0.0]])))
    tree = grow(rows, [[5.0], [-5.0]], [[0.1], [0.1]], 2, max_value=3.0)
    assert sorted(tree.value[tree.feature == -1]) == [-3.0, 3.0]
