"""Small fitted models for the tests of model files, their answers, and files to change."""

from __future__ import annotations

import io
import json
import warnings
import zipfile

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


def zip_of(members, compression=zipfile.ZIP_STORED):
    """A zip archive of (name, content) pairs."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of repeated names
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def members_of(content):
    """(name, content) pairs of a zip archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def write_version_3(model, path):
    """Write a model as format version 3 did, with skops."""
    import skops.io

    from seqlab.persistence._skops_schema import rename_types
    from seqlab.persistence.type_names import stable_name

    members = dict(members_of(skops.io.dumps(model)))
    members["schema.json"] = rename_types(members["schema.json"], stable_name)
    members["seqlab.json"] = json.dumps({"format": "seqlab-model", "version": 3}).encode()
    path.write_bytes(zip_of(members.items()))
