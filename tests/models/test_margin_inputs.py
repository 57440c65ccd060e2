"""Max-margin models on difficult input: kernels that are not kernels, scales, and a second fit."""

from __future__ import annotations

import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from margin_data import make_chains
from seqlab import M3N, GraphCRF, GraphM3N, StructuredSVM
from seqlab.data import InputError, NumericalError
from seqlab.inspection import top_features


@pytest.fixture
def data():
    X, y = make_chains(seed=4, n=20, longest=6)
    return X, [np.array(list("abc"))[labels] for labels in y]


def as_graphs(X):
    return [(x, [[t, t + 1] for t in range(len(x) - 1)]) for x in X]


@pytest.mark.parametrize(
    "kernel",
    [
        lambda A, B: np.abs(A[:, :1] - B[:, :1].T),  # a distance
        lambda A, B: np.tanh(A @ B.T - 1.0),
    ],
)
@pytest.mark.parametrize("make", [M3N, StructuredSVM])
def test_a_kernel_that_is_not_positive_semidefinite_is_refused(data, kernel, make):
    with pytest.raises(InputError, match="not positive semidefinite"):
        make(kernel=kernel, random_state=0).fit(*data)


def test_a_negative_constant_of_the_polynomial_kernel_is_refused(data):
    with pytest.raises(ValueError, match="'coef0' parameter of M3N"):
        M3N(kernel="poly", coef0=-1).fit(*data)


def test_an_indefinite_kernel_that_the_sample_does_not_show_is_an_error(data, monkeypatch):
    monkeypatch.setattr("seqlab.kernels.GramMatrix._check_eigenvalues", lambda *_: None)
    kernel = lambda A, B: (A @ B.T - 3.0) ** 3  # noqa: E731
    with pytest.raises(NumericalError, match="not positive semidefinite"):
        M3N(kernel=kernel, random_state=0).fit(*data)


def test_numbers_too_large_for_the_precision_are_an_error_and_not_a_gap_of_zero(data):
    X, y = data
    with pytest.raises(NumericalError, match=r"exceeds the primal one.*scale the features"):
        GraphM3N().fit(as_graphs([x * 1e10 for x in X]), y)


@pytest.mark.parametrize("make", [M3N, StructuredSVM])
def test_the_model_with_the_lowest_primal_is_returned(data, make):
    X, y = data
    options = {"random_state": 0, "max_iter": 30}
    options |= {"solver": "bcfw"} if make is StructuredSVM else {}
    with pytest.warns(ConvergenceWarning, match=r"lower C, or scale the features \(normalize=True"):
        model = make(**options).fit([x * 100 for x in X], y)
    assert model.objective_ == min(model.history_["objective"])
    assert (np.diff(model.history_["objective"]) <= 0.0).all()


def test_the_default_solver_converges_whatever_the_scale_of_the_features(data):
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scale in (1.0, 100.0, 1000.0):
            assert StructuredSVM(random_state=0).fit([x * scale for x in X], y).converged_


def test_a_second_fit_with_another_kernel_forgets_the_first_model(data):
    model = M3N(random_state=0, tol=0.1).fit(*data)
    model.set_params(kernel="rbf").fit(*data)
    assert not hasattr(model, "coef_")
    with pytest.raises(Exception, match=r"coef_|weights"):
        top_features(model)
    model.set_params(kernel="linear").fit(*data)
    for name in ("support_", "support_steps_", "dual_coef_", "edge_dual_coef_"):
        assert not hasattr(model, name)
    model.set_params(kernel="rbf")
    with pytest.raises(InputError, match="changed after fit"):
        model.predict(data[0])


def test_rbf_kernel_does_not_depend_on_the_origin(data):
    X, y = data
    near = M3N(kernel="rbf", random_state=0).fit(X, y)
    far = M3N(kernel="rbf", random_state=0).fit([x + 2.0**31 for x in X], y)
    assert far.gamma_ == pytest.approx(near.gamma_, rel=1e-5)
    assert far.objective_ == pytest.approx(near.objective_, rel=2e-3)


def test_normalization_is_refused_if_it_would_be_ignored(data):
    with pytest.raises(InputError, match="normalize=True needs one of the named kernels"):
        M3N(kernel=lambda A, B: A @ B.T, normalize=True).fit(*data)


def test_precomputed_kernel_with_other_columns_says_what_is_needed(data):
    X, y = data
    rows = np.concatenate(X)
    split = np.cumsum([len(x) for x in X])[:-1]
    model = M3N(kernel="precomputed", random_state=0, tol=0.1).fit(
        np.split(rows @ rows.T, split), y
    )
    with pytest.raises(InputError, match=r"all \d+ training steps, but X has 3 columns"):
        model.predict([np.ones((2, 3))])


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([0, 1], ["x"], r"X\[1\]: the types of its edges are strings, .* integers"),
        (["x", None], ["x"], r"X\[0\]: .* all strings or all integers, got NoneType, strings"),
        (["x", 1], ["x"], r"X\[0\]: .* got integers, strings"),
        ([0.5, 2.0], [1.0], r"X\[0\]: .* numbers need the shape \(n_edges, n_edge_features\)"),
    ],
)
def test_types_of_edges_are_all_of_one_kind(first, second, message):
    x, labels = np.eye(3), ["a", "b", "a"]
    X = [(x, [[0, 1], [1, 2]], first), (x, [[0, 1]], second)]
    with pytest.raises(InputError, match=message):
        GraphCRF().fit(X, [labels, labels])


def test_types_of_edges_at_predict_are_of_the_kind_of_fit():
    x, labels = np.eye(3), ["a", "b", "a"]
    model = GraphCRF().fit([(x, [[0, 1], [1, 2]], np.array([0, 1]))], [labels])
    with pytest.raises(InputError, match="are strings, but those of other graphs are integers"):
        model.predict([(x, [[0, 1]], ["0"])])


@pytest.mark.parametrize(
    ("edges", "given"), [(None, "None"), (sp.csr_matrix(np.eye(3)), "a sparse matrix")]
)
def test_edges_are_pairs_of_nodes(edges, given):
    message = rf"X\[0\]: edges is {given}: pass pairs of node numbers"
    with pytest.raises(InputError, match=message):
        GraphCRF().fit([(np.eye(3), edges)], [["a", "b", "a"]])


def test_an_interrupt_takes_effect_while_the_kernel_matrix_is_computed():
    n_calls = 0

    def kernel(A, B):
        nonlocal n_calls
        n_calls += 1
        signal.raise_signal(signal.SIGINT)
        return A @ B.T

    x = np.random.default_rng(0).normal(size=(1000, 3))
    with pytest.raises(KeyboardInterrupt):
        M3N(kernel=kernel).fit([x], [np.arange(1000) % 2])
    assert n_calls == 1  # of four blocks of rows
