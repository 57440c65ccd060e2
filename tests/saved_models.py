"""Small fitted models for the tests of model files, and their answers."""

from __future__ import annotations

from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import Pipeline

from seqlab import SequenceVectorizer

X = [
    [{"w": "to", "first": True}, {"w": "be"}, {"w": "or", "n": 0.1}],
    [{"w": "not", "first": True}, {"w": "to"}],
]
Y = [["A", "B", "C"], ["B", "A"]]


def small_pipeline():
    vectorizer = SequenceVectorizer().fit(X)
    labels = [label for sequence in Y for label in sequence]
    classifier = BernoulliNB().fit(vectorizer.transform(X).matrix, labels)
    return Pipeline([("features", vectorizer), ("classifier", classifier)])


def answer_of_pipeline(model):
    features, classifier = model["features"], model["classifier"]
    marginals = classifier.predict_proba(features.transform(X).matrix)
    return list(features.vocabulary_), marginals.tobytes()


def small_crf():
    from seqlab import LinearChainCRF

    return LinearChainCRF().fit(X, Y)


def answer_of_crf(model):
    return [marginals.tobytes() for marginals in model.predict_proba(X)]
