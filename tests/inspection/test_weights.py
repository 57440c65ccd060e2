"""Weights with names."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from seqlab import IndependentLabeler, LinearChainCRF, StructuredPerceptron, Tagger, Templates
from seqlab.data.errors import InputError
from seqlab.inspection import (
    feature_names,
    label_order,
    to_frame,
    top_features,
    top_transitions,
    transition_matrix,
)

TOKENS = [[("the", "DT"), ("dog", "NN"), ("barks", "VB")], [("dogs", "NN"), ("bark", "VB")]]
BAGS = [[[f"w={word}", f"p={pos}"] for word, pos in tokens] for tokens in TOKENS]
LABELS = [["D", "N", "V"], ["N", "V"]]


MODELS = {
    "crf": LinearChainCRF(c2=0.1),
    "crf-dense": LinearChainCRF(c2=0.1, all_states=True),
    "perceptron": StructuredPerceptron(random_state=0),
    "independent": IndependentLabeler(),
    "templates": Tagger(Templates([(0, "pos"), (0, "word")]), LinearChainCRF(c2=0.1)),
    "tagger": Tagger(None, LinearChainCRF(c2=0.1)),
}


def fit_model(name):
    return clone(MODELS[name]).fit(TOKENS if name == "templates" else BAGS, LABELS)


@pytest.fixture(scope="module", params=sorted(MODELS))
def model(request):
    return fit_model(request.param)


def test_top_feature_of_each_label_is_its_part_of_speech(model):
    found = {one.label: one for one in top_features(model, 2)}
    for label, tag in (("N", "NN"), ("V", "VB")):
        assert any(feature.feature.endswith(f"={tag}") for feature in found[label].positive)
    for one in found.values():
        weights = [feature.weight for feature in one.positive]
        assert weights == sorted(weights, reverse=True)
        assert all(weight > 0 for weight in weights)
        assert all(feature.weight < 0 for feature in one.negative)
        assert len(one.positive) <= 2


def test_weights_equal_those_of_the_model():
    crf = fit_model("crf")
    names = feature_names(crf).tolist()
    coef = crf.coef_.toarray()
    for one in top_features(crf, 100):
        row = coef[crf.classes_.tolist().index(one.label)]
        assert one.n_weights == np.count_nonzero(row)
        assert len(one.positive) + len(one.negative) == one.n_weights
        for feature in (*one.positive, *one.negative):
            assert feature.weight == row[names.index(feature.feature)]


def test_transitions_with_boundary():
    crf = fit_model("crf")
    classes = crf.classes_.tolist()
    found = {(one.source, one.target): one.weight for one in top_transitions(crf)}
    for (source, target), weight in found.items():
        if source == "<start>":
            expected = crf.start_[classes.index(target)]
        elif target == "<end>":
            expected = crf.end_[classes.index(source)]
        else:
            expected = crf.transitions_[classes.index(source), classes.index(target)]
        assert weight == expected
    n_weights = sum(map(np.count_nonzero, (crf.transitions_, crf.start_, crf.end_)))
    assert len(found) == n_weights
    weights = [one.weight for one in top_transitions(crf)]
    assert weights == sorted(weights, reverse=True)
    inner = top_transitions(crf, boundary=False)
    assert len(inner) == np.count_nonzero(crf.transitions_)
    few = top_transitions(crf, 1)
    assert few[0] == top_transitions(crf)[0]
    assert len(few) <= 2


def test_models_without_transitions():
    independent = fit_model("independent")
    assert top_transitions(independent) == []
    assert transition_matrix(independent) is None


def test_two_classes_in_scikit_learn():
    labeler = IndependentLabeler(LogisticRegression()).fit(BAGS, [["N", "N", "V"], ["N", "V"]])
    noun, verb = top_features(labeler, 3)
    assert noun.negative[0].feature == verb.positive[0].feature
    assert noun.negative[0].weight == -verb.positive[0].weight


def test_selected_labels_and_errors():
    crf = fit_model("crf")
    assert [one.label for one in top_features(crf, labels=["V", "D"])] == ["V", "D"]
    with pytest.raises(InputError, match="the model has no label 'X'; its labels are D, N, V"):
        top_features(crf, labels=["X"])
    with pytest.raises(InputError, match="negative"):
        top_features(crf, -1)
    tree = IndependentLabeler(DecisionTreeClassifier()).fit(BAGS, LABELS)
    with pytest.raises(InputError, match="its estimator is a DecisionTreeClassifier"):
        top_features(tree)
    with pytest.raises(InputError, match="call fit first"):
        top_features(IndependentLabeler(LogisticRegression()))


def test_features_without_names():
    X = [np.array([[1.0, 0.0], [0.0, 1.0]])]
    crf = LinearChainCRF(c2=0.1).fit(X, [["A", "B"]])
    assert feature_names(crf) is None
    assert top_features(crf, 1)[0].positive[0].feature == "feature 0"


def test_frames():
    pytest.importorskip("pandas")
    crf = fit_model("crf")
    frame = to_frame(top_features(crf, 2))
    assert list(frame.columns) == ["label", "feature", "weight"]
    assert set(frame["label"]) == {"D", "N", "V"}
    moves = to_frame(top_transitions(crf))
    assert list(moves.columns) == ["source", "target", "weight"]
    assert len(moves) == len(top_transitions(crf))


def test_label_order():
    mixed = ["O", "I-NP", "B-VP", "B-NP", "X-Y"]
    assert label_order(mixed) == ["B-NP", "I-NP", "B-VP", "X-Y", "O"]
    assert label_order([3, 1, 2]) == [3, 1, 2]
