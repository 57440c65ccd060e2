"""The subsequence kernel: values by hand and by enumeration, and its use in learners."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import SVC
from tests.subsequence_oracle import kernel_by_length

from seqlab import M3N, StructuredSVM, SubsequenceKernel, load, save
from seqlab.data import InputError, Sequences

ANCHORS = ["plain", "pivot", "marked"]
N_FEATURES = 3


def plain(max_length, decay):
    return SubsequenceKernel(max_length, decay, anchor="plain", normalize=False)


def characters(text):
    return [[character] for character in text]


def tagged(text):
    words = [item.rsplit("/", 1) for item in text.split()]
    return [[f"word={word}", f"tag={tag}"] for word, tag in words]


@pytest.mark.parametrize(
    ("s", "t", "decay", "expected"),
    [
        (characters("cat"), characters("car"), 0.5, [0.5, 0.0625]),
        (characters("cat"), characters("cat"), 0.5, [0.75, 0.140625]),
        (characters("abc"), characters("ac"), 0.5, [0.5, 0.03125]),
        ([["p", "q"], ["q"]], [["q"], ["p", "q"]], 0.5, [1.25, 0.0625]),
        (
            tagged("Zori/NNP runs/VBZ after/IN every/DT rabbit/NN ./."),
            tagged("Zori/NNP walks/VBZ the/DT dog/NN every/DT morning/NN ./."),
            1.0,
            [10.0, 37.0],
        ),
    ],
)
def test_known_values_of_whole_sequences(s, t, decay, expected):
    for n in (1, 2):
        found = plain(n, decay).between([s], [t])
        np.testing.assert_allclose(found, [[sum(expected[:n])]], rtol=1e-14)


def test_known_values_at_a_pivot():
    # Two steps {p, q}, {q} with the pivot first, and {q}, {p, q} with the pivot last.
    X = [np.array([[1.0, 1], [0, 1]]), np.array([[0.0, 1], [1, 1]])]
    kernel = SubsequenceKernel(2, 0.5, window=(1, 1), normalize=False)
    windows = kernel.windows(X)
    assert kernel(windows)[0, 3] == 0.5

    kernel = SubsequenceKernel(3, 0.5, window=(1, 1), normalize=False)
    abc = kernel.windows([np.eye(3)])
    assert kernel(abc)[1, 1] == 0.390625


def random_windows(n, before, after, seed):
    """Windows as lists of sets, and their rows in the layout of the kernel."""
    random = np.random.default_rng(seed)
    steps = (random.random((n, before + 1 + after, N_FEATURES)) < 0.5).astype(float)
    sets = [[set(np.flatnonzero(step).tolist()) for step in window] for window in steps]
    order = [before, *range(before), *range(before + 1, before + 1 + after)]
    return sets, steps[:, order].reshape(n, -1)


@pytest.mark.parametrize("conjunctions", [False, True])
@pytest.mark.parametrize("anchor", ANCHORS)
@pytest.mark.parametrize(("before", "after"), [(3, 2), (0, 4), (2, 0), (0, 0)])
def test_kernel_equals_enumeration(anchor, before, after, conjunctions):
    sets, rows = random_windows(5, before, after, seed=before + 10 * after)
    options = {"window": (before, after), "anchor": anchor, "conjunctions": conjunctions}
    for max_length in (1, 3, 6):
        pivots = None if anchor == "plain" else (before, before)
        by_length = np.array(
            [
                [
                    kernel_by_length(
                        s,
                        t,
                        max_length,
                        0.6,
                        pivots=pivots,
                        mark=anchor == "marked",
                        conjunctions=conjunctions,
                    )
                    for t in sets
                ]
                for s in sets
            ]
        )
        total = by_length.sum(axis=2)
        kernel = SubsequenceKernel(max_length, 0.6, normalize=False, **options)
        np.testing.assert_allclose(kernel(rows), total, rtol=1e-12, atol=1e-14)
        scale = np.sqrt(np.where(np.diagonal(total) > 0, np.diagonal(total), 1.0))
        is_empty = np.diagonal(total) == 0
        expected = np.where(np.outer(is_empty, is_empty), 1.0, total / np.outer(scale, scale))
        kernel = SubsequenceKernel(max_length, 0.6, **options)
        np.testing.assert_allclose(kernel(rows), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("normalize", [False, True, "length"])
@pytest.mark.parametrize("anchor", ANCHORS)
def test_matrices_are_symmetric_positive_semidefinite_and_scaled(anchor, normalize):
    _, rows = random_windows(60, 3, 3, seed=1)
    rows[:3] = 0.0
    kernel = SubsequenceKernel(4, 0.7, window=(3, 3), anchor=anchor, normalize=normalize)
    gram = kernel(rows)
    assert np.array_equal(gram, gram.T)
    assert np.linalg.eigvalsh(gram).min() > -1e-10 * np.linalg.eigvalsh(gram).max()
    if normalize:
        np.testing.assert_allclose(np.diagonal(gram), 1.0, rtol=1e-12)
        assert gram.max() < 1 + 1e-12
    np.testing.assert_allclose(kernel(sp.csr_matrix(rows)), gram, rtol=1e-14)
    real = rows * np.random.default_rng(2).normal(size=rows.shape)
    eigenvalues = np.linalg.eigvalsh(kernel(real))
    assert eigenvalues.min() > -1e-10 * eigenvalues.max()


def test_normalisation_by_length_gives_each_length_the_same_weight():
    sets, rows = random_windows(4, 2, 2, seed=3)
    rows[:, :] = np.where(rows.sum(axis=1, keepdims=True) > 0, rows, 1.0)
    values = np.array([[kernel_by_length(s, t, 3, 0.5) for t in sets] for s in sets])
    own = np.einsum("iin->in", values)
    assert (own > 0).all()
    expected = (values / np.sqrt(own[:, None] * own[None, :])).mean(axis=2)
    kernel = SubsequenceKernel(3, 0.5, window=(2, 2), anchor="plain", normalize="length")
    np.testing.assert_allclose(kernel(rows), expected, rtol=1e-12)


def test_windows_are_cut_at_the_ends_of_sequences():
    X = [np.eye(3), np.eye(3)[:2]]
    kernel = SubsequenceKernel(window=(2, 1))
    rows = kernel.windows(X)
    assert rows.shape == (5, 12)
    np.testing.assert_array_equal(rows[3], [1, 0, 0] + [0] * 6 + [0, 1, 0])
    np.testing.assert_array_equal(rows[2], [0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0])


def test_long_tables_of_matches_are_computed_in_blocks(monkeypatch):
    _, rows = random_windows(40, 2, 2, seed=4)
    kernel = SubsequenceKernel(3, 0.5, window=(2, 2))
    whole = kernel(rows)
    monkeypatch.setattr("seqlab.kernels.subsequence.MAX_MATCHES", 64)
    assert np.array_equal(kernel(rows), whole)


def make_order_task(n, seed):
    """The label of an event depends on which of two other events came before it, at any distance."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        steps = np.zeros((8, 3))
        first = random.integers(2)
        steps[random.integers(0, 3), first] = 1.0
        event = random.integers(4, 8)
        steps[event, 2] = 1.0
        labels = np.full(8, "-", dtype="U1")
        labels[event] = "ab"[first]
        X.append(steps)
        y.append(labels)
    return X, y


@pytest.mark.parametrize("model", [M3N(random_state=0), StructuredSVM(solver="1-slack")])
def test_margin_models_learn_a_relation_at_any_distance(model):
    X, y = make_order_task(30, seed=0)
    X_new, y_new = make_order_task(30, seed=1)
    kernel = SubsequenceKernel(2, 0.9, window=(7, 0))
    model = clone(model).set_params(kernel=kernel, C=10.0).fit(X, y)
    assert model.score(X_new, y_new) == 1.0
    assert clone(model).set_params(kernel="linear").fit(X, y).score(X_new, y_new) < 0.97


def test_kernel_model_equals_a_precomputed_one():
    X, y = make_order_task(10, seed=2)
    kernel = SubsequenceKernel(2, 0.9, window=(4, 2))
    sequences = Sequences.from_list(X)
    gram = kernel(kernel.windows(sequences))
    options = {"C": 1.0, "tol": 1e-8, "solver": "1-slack"}
    ours = StructuredSVM(kernel=kernel, **options).fit(X, y)
    other = StructuredSVM(kernel="precomputed", **options).fit(sequences.split(gram), y)
    assert ours.objective_ == pytest.approx(other.objective_, rel=1e-6)
    ours_scores = np.concatenate(ours.decision_function(X))
    other_scores = np.concatenate(other.decision_function(sequences.split(gram)))
    np.testing.assert_allclose(ours_scores, other_scores, atol=1e-3)


def test_saved_models_keep_the_kernel(tmp_path):
    X, y = make_order_task(10, seed=3)
    model = StructuredSVM(kernel=SubsequenceKernel(2, 0.9, window=(4, 2)), solver="1-slack").fit(
        X, y
    )
    save(model, tmp_path / "model.seqlab")
    again = load(tmp_path / "model.seqlab")
    assert again.kernel.get_params() == model.kernel.get_params()
    assert all(map(np.array_equal, again.predict(X), model.predict(X)))


def test_parameters_of_the_kernel_can_be_searched():
    X, y = make_order_task(24, seed=4)
    search = GridSearchCV(
        StructuredSVM(C=10, kernel=SubsequenceKernel(2, 0.9), solver="1-slack"),
        {"kernel__window": [(0, 0), (7, 0)]},
        cv=KFold(3),
    ).fit(X, y)
    assert search.best_params_ == {"kernel__window": (7, 0)}


@pytest.mark.parametrize("as_matrix", [np.asarray, sp.csr_matrix])
def test_kernel_works_in_scikit_learn(as_matrix):
    X, y = make_order_task(20, seed=5)
    kernel = SubsequenceKernel(2, 0.9, window=(7, 0))
    rows = as_matrix(kernel.windows(X))
    labels = np.concatenate(y)
    assert SVC(kernel=kernel, C=10).fit(rows, labels).score(rows, labels) == 1.0


def test_wrong_parameters_and_rows_are_refused():
    rows = np.ones((2, 6))
    for window in [(1,), (1, -1), (1.5, 0), (1, 2, 3)]:
        with pytest.raises(InputError, match="window must be two whole numbers of steps"):
            SubsequenceKernel(window=window)(rows)
    for wrong in [{"decay": 0.0}, {"decay": 1.5}, {"max_length": 0}, {"anchor": "end"}]:
        with pytest.raises(ValueError, match=next(iter(wrong))):
            SubsequenceKernel(window=(1, 1), **wrong)(rows)
    with pytest.raises(InputError, match="not a multiple of the 4 steps"):
        SubsequenceKernel(window=(1, 2))(rows)
    with pytest.raises(InputError, match="the same features"):
        SubsequenceKernel(window=(1, 1))(rows, np.ones((2, 9)))
    with pytest.raises(InputError, match=r"features that are 0 or 1, found 0\.5"):
        SubsequenceKernel(window=(1, 1), conjunctions=True)(rows / 2)
    with pytest.raises(InputError, match="anchor='plain'"):
        SubsequenceKernel().between([[["a"]]])
    kernel, damaged = SubsequenceKernel(window=(1, 1)), rows.copy()
    damaged[1, 2] = np.nan
    for form in (np.asarray, sp.csr_matrix):
        with pytest.raises(InputError, match="row 1 of the windows contains NaN"):
            kernel(form(damaged))
        with pytest.raises(InputError, match="row 1"):
            kernel(rows, form(damaged))
    with pytest.raises(InputError, match="of 1 dimensions"):
        kernel(np.ones(6))
    with pytest.raises(InputError, match="exceeds the range of numbers"):
        kernel(rows * 1e200)
    with pytest.raises(InputError, match="exceeds the range of numbers"):
        SubsequenceKernel(window=(0, 0), conjunctions=True)(np.ones((2, 1100)))
    with pytest.raises(InputError, match="decay=1e-200 is too small"):
        SubsequenceKernel(decay=1e-200, window=(1, 1))(rows)


def test_conjunctions_span_all_sets_of_features():
    """With 2^c - 1 matches the kernel is an inner product of weighted counts of composite features."""
    sets, rows = random_windows(4, 1, 1, seed=6)
    subsets = [set(s) for n in (1, 2, 3) for s in itertools.combinations(range(N_FEATURES), n)]
    patterns = [p for n in (1, 2, 3) for p in itertools.product(subsets, repeat=n)]

    def count(pattern, window):
        places = itertools.combinations(range(3), len(pattern))
        found = [i for i in places if all(p <= window[k] for p, k in zip(pattern, i, strict=True))]
        return sum(0.5 ** (i[-1] - i[0] + 1) for i in found)

    features = np.array([[count(pattern, window) for pattern in patterns] for window in sets])
    options = {"window": (1, 1), "anchor": "plain", "normalize": False}
    kernel = SubsequenceKernel(3, 0.5, conjunctions=True, **options)
    np.testing.assert_allclose(kernel(rows), features @ features.T, rtol=1e-12)
    without = np.array([all(len(s) == 1 for s in pattern) for pattern in patterns])
    single = features[:, without]
    kernel = SubsequenceKernel(3, 0.5, **options)
    np.testing.assert_allclose(kernel(rows), single @ single.T, rtol=1e-12)
