"""Columns with large values: their rotation, and fits that need it."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from scaled_data import tight_optimum
from seqlab import LinearChainCRF
from seqlab.data import Sequences
from seqlab.structures.chain import ChainFeatures


def stamps(offset, n_sequences=60, seed=0):
    """Start, end and one more column of events whose label depends on how long they take."""
    random = np.random.default_rng(seed)
    X, y, now = [], [], offset
    for _ in range(n_sequences):
        rows, labels = [], []
        for _ in range(random.integers(3, 12)):
            label = int(random.integers(3))
            now += round(random.exponential(100.0))
            lasts = round(np.exp(0.5 * random.normal() + 1.5 * label + 2.0))
            rows.append([now, now + lasts, random.normal() + label])
            labels.append(label)
            now += lasts
        X.append(np.array(rows, dtype=float))
        y.append(labels)
    return X, y


def differences(X):
    """The same columns, rotated by 45 degrees: an L2 penalty does not change."""
    root = np.sqrt(0.5)
    rotated = [[x[:, 0] + x[:, 1], x[:, 1] - x[:, 0]] for x in X]
    return [
        np.column_stack([root * a, root * b, x[:, 2]]) for x, (a, b) in zip(X, rotated, strict=True)
    ]


def fit_silently(model, X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(X, y)
    return model, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("options", [{}, {"edge_features": True}, {"all_states": True}])
def test_restored_weights_give_the_same_scores(is_sparse, options):
    X, y = stamps(1e5)
    X = [sp.csr_matrix(x) for x in X] if is_sparse else X
    model = LinearChainCRF(**options)
    bound = model._bind(model._read_training(X, y, None, None))
    rotated, weights = bound.rotated()
    random = np.random.default_rng(0)
    w = 1e-3 * random.normal(size=bound.n_params)
    restored = weights.restore(w)
    assert restored @ restored == pytest.approx(w @ w)
    assert np.abs(restored - w).max() > 1e-4
    one, other = (
        chain.scores(chain.source(v), chain.block(0, 60))
        for chain, v in ((rotated, w), (bound, restored))
    )
    np.testing.assert_allclose(one.unary, other.unary, atol=1e-9)
    np.testing.assert_allclose(one.pairwise, other.pairwise, atol=1e-9)


def test_which_columns_are_rotated():
    random = np.random.default_rng(0)
    small, large = random.normal(size=(2, 100))
    year, stamp = 2000.0 + 10.0 * small, 1e9 + large
    sparse = np.where(random.random(100) < 0.5, 1e5, 0.0)

    def columns(*matrix, convert=np.asarray):
        X = Sequences(convert(np.column_stack(matrix)), [0, 100])
        found = ChainFeatures(X).rotation
        return None if found is None else found.columns.tolist()

    assert columns(small, year, stamp) == [1, 2]
    assert columns(small, large, year) is None
    assert columns(np.ones(100), year, np.full(100, 0.37)) is None
    assert columns(year, sparse, stamp) == [0, 1, 2]
    assert columns(year, sparse, stamp, convert=sp.csr_matrix) == [0, 2]
    outlier = np.where(np.arange(100) == 5, 1e6, small)
    assert columns(year, outlier, stamp) == [0, 2]
    assert columns(*(stamp + k for k in range(65))) is None


@pytest.mark.parametrize("offset", [0, 1_700_000_000, 1_700_000_000_000])
@pytest.mark.parametrize("c2", [1.0, 1e-2])
def test_differences_of_time_stamps_are_learned(offset, c2):
    """Regression test: 4.6 times the optimum, reported as converged after ten iterations."""
    X, y = stamps(offset)
    model, messages = fit_silently(LinearChainCRF(c2=c2), X, y)
    assert model.converged_
    assert messages == []
    assert model.objective_ <= 1.001 * tight_optimum(differences(X), y, c2)
    assert model.score(X, y) > 0.85


def test_time_stamps_among_words():
    X, y = stamps(1_700_000_000)
    dicts = [[{"start": a, "end": b, f"w{int(c)}": 1.0} for a, b, c in x] for x in X]
    model, messages = fit_silently(LinearChainCRF(class_weight="balanced"), dicts, y)
    assert model.converged_
    assert messages == []
    assert model.score(dicts, y) > 0.85


@pytest.mark.parametrize("offset", [1_700_000_000, 1_700_000_000_000])
def test_with_an_l1_penalty_a_warning_names_them(offset):
    """An L1 penalty is not that of rotated columns."""
    X, y = stamps(offset)
    model, messages = fit_silently(LinearChainCRF(c1=0.1, c2=0.1, max_iter=100), X, y)
    assert not model.converged_
    assert "subtract their means, or use differences" in messages[0]
