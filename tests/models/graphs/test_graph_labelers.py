"""What all models of graphs share: input, errors, storage, scikit-learn's tools."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from tests.models.graphs.problems import as_sparse, make_graphs

import seqlab
from seqlab import GraphCRF, GraphM3N
from seqlab.data import Graph, InputError

MODELS = [GraphCRF(c2=0.3), GraphM3N(C=0.5), GraphCRF(objective="pseudo_likelihood")]
each_model = pytest.mark.parametrize("model", MODELS, ids=["crf", "m3n", "pseudo"])


@each_model
def test_sparse_dense_named_and_stacked_graphs_agree(model):
    X, y = make_graphs()
    expected = clone(model).fit(X, y)
    for other in (as_sparse(X), [Graph(*graph) for graph in X], [list(graph) for graph in X]):
        found = clone(model).fit(other, y)
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-6)
        for a, b in zip(found.predict(other), expected.predict(X), strict=True):
            np.testing.assert_array_equal(a, b)


@each_model
def test_threads_do_not_change_a_bit(model):
    X, y = make_graphs(n_graphs=9)
    one, two = (clone(model).set_params(n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.edge_coef_, two.edge_coef_)


@each_model
def test_limits_of_training(model):
    X, y = make_graphs(n_graphs=9)
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        limited = clone(model).set_params(max_seconds=1e-9).fit(X, y)
    assert limited.n_iter_ == 1
    assert not limited.converged_
    seen = []
    stopped = clone(model).set_params(callback=lambda p: seen.append(p) or p.iteration == 2)
    assert stopped.fit(X, y).n_iter_ == seen[-1].iteration == 2


@each_model
def test_save_load_pickle_and_clone(model, tmp_path):
    X, y = make_graphs(kinds=["a", "b"])
    fitted = clone(model).fit(X, y)
    seqlab.save(fitted, tmp_path / "model.seqlab")
    for copy in (seqlab.load(tmp_path / "model.seqlab"), pickle.loads(pickle.dumps(fitted))):
        for a, b in zip(copy.decision_function(X), fitted.decision_function(X), strict=True):
            np.testing.assert_array_equal(a, b)
    assert clone(fitted).get_params() == fitted.get_params()


@each_model
def test_model_selection(model):
    X, y = make_graphs(n_graphs=9)
    assert cross_val_score(clone(model), X, y, cv=3).shape == (3,)
    name = "C" if isinstance(model, GraphM3N) else "c2"
    search = GridSearchCV(clone(model), {name: [0.1, 1.0]}, cv=3).fit(X, y)
    assert search.best_params_[name] in (0.1, 1.0)


@each_model
def test_weights_of_graphs_equal_repetition(model):
    X, y = make_graphs(n_graphs=3)
    weighted = clone(model).set_params(tol=1e-9).fit(X, y, sample_weight=[2, 1, 1])
    repeated = clone(model).set_params(tol=1e-9).fit([X[0], *X], [y[0], *y])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)


def test_dicts_as_node_features():
    X = [([{"word": "home"}, {"word": "syllabus"}], [[0, 1]])]
    model = GraphCRF(c2=0.1).fit(X, [["student", "course"]])
    assert model.predict([([{"word": "syllabus"}], [])])[0].tolist() == ["course"]
    with pytest.raises(InputError, match="fitted on dicts or strings"):
        model.predict([(np.zeros((1, 2)), [])])


def test_empty_graphs_are_predicted_and_disconnected_ones_learned():
    X, y = make_graphs()
    X, y = [*X, (np.zeros((0, 4)), [])], [*y, []]
    model = GraphCRF().fit(X, y)
    assert [len(labels) for labels in model.predict(X)] == [len(labels) for labels in y]
    assert model.predict([(np.zeros((0, 4)), [])])[0].size == 0


@each_model
@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (
            (np.zeros((2, 4)), [[0, 2]]),
            r"X\[1\]: edges\[0\] = \[0, 2\] names a node that does not exist",
        ),
        ((np.zeros((2, 4)),), r"X\[1\] is not a graph"),
        (np.zeros((2, 4)), r"X\[1\] is not a graph"),
        ((np.zeros((2, 3)), []), "4 features|has 3 features"),
        ((np.full((2, 4), np.nan), []), "NaN"),
        ((np.zeros((2, 4)), [[0, 1]], ["kind"]), r"has (no )?edge_features, but"),
        (
            (np.zeros((2, 4)), [[0, 1]], ["a", "b"]),
            r"X\[1\] has 1 edges but edge_features of shape",
        ),
    ],
)
def test_bad_graphs_are_named(model, graph, message):
    X, y = make_graphs(n_graphs=2)
    bad, labels = [X[0], graph], [y[0], ["a", "b"]]
    with pytest.raises(InputError, match=message):
        clone(model).fit(bad, labels)
    fitted = clone(model).fit(X, y)
    with pytest.raises((InputError, ValueError), match=message):
        fitted.predict(bad)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([[1.0, np.nan]], "NaN or infinity"),
        ([["a", "b"]], "must be numbers"),
        ([[1.0], [2.0]], "1 edges"),
        (None, "no edge_features, but"),
    ],
)
def test_bad_edge_features_are_named(features, message):
    good = (np.zeros((2, 1)), [[0, 1]], [[1.0, 2.0]])
    with pytest.raises(InputError, match=message):
        GraphCRF().fit([good, (np.zeros((2, 1)), [[0, 1]], features)], [["a", "b"]] * 2)


def test_bad_arguments():
    X, y = make_graphs(n_graphs=2)
    for bad, match in (
        (None, "list of graphs"),
        ([], "at least one graph"),
        (X[0][0][0], "not a graph"),
    ):
        with pytest.raises(InputError, match=match):
            GraphCRF().fit(bad, y)
    with pytest.raises(InputError, match="requires y"):
        GraphCRF().fit(X, None)
    with pytest.raises(InputError, match=r"X\[1\] has 9 steps but y\[1\] has 8"):
        GraphCRF().fit(X, [y[0], y[1][:-1]])
    with pytest.raises(InputError, match="no nodes"):
        GraphCRF().fit([(np.zeros((0, 2)), [])], [[]])
    with pytest.raises(ValueError, match="'C' parameter"):
        GraphM3N(C=0).fit(X, y)
