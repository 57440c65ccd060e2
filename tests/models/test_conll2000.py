"""The chain models on real text, compared with CRFsuite on the same attributes.

Targets: CRFsuite's L-BFGS reaches the objective 13,156.5 after 100 iterations, with span F1 93.63; its
averaged perceptron reaches 93.49.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.sparse as sp

from blocks import count_parallel_tasks
from chunking import chunking_attributes
from seqlab import LinearChainCRF, StructuredPerceptron
from seqlab.datasets import fetch_conll2000
from seqlab.features.vectorizer import SequenceVectorizer
from seqlab.metrics import span_f1, token_accuracy

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif("SEQLAB_DATA" not in os.environ, reason="SEQLAB_DATA is not set"),
]


@pytest.fixture(scope="module")
def conll():
    parts = {}
    for subset in ("train", "test"):
        X, y = fetch_conll2000(subset=subset, return_X_y=True)
        parts[subset] = [chunking_attributes(sentence) for sentence in X], [list(v) for v in y]
    return parts


@pytest.fixture(scope="module")
def crf(conll):
    return LinearChainCRF(c2=1.0, boundary=False, n_jobs=2).fit(*conll["train"])


def test_objective_and_f1_of_the_crf(crf, conll):
    X, y = conll["test"]
    assert crf.coef_.nnz == 452_610
    assert crf.converged_
    assert crf.objective_ <= 13_156
    assert span_f1(y, crf.predict(X)) >= 0.935
    assert span_f1(y, crf.predict(X, constraints="IOB2")) >= 0.935


def train_crfsuite(tmp_path, X, y, algorithm, **params):
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm=algorithm, params=params, verbose=False)
    for steps, labels in zip(X, y, strict=True):
        trainer.append(steps, labels)
    path = str(tmp_path / "peer.crfsuite")
    trainer.train(path)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    return tagger


def copy_weights(tagger, X, y):
    """Return a LinearChainCRF with the weights of CRFsuite, as its `info()` gives them (six decimals)."""
    info = tagger.info()
    model = LinearChainCRF(max_iter=1, boundary=False)
    with pytest.warns(match="max_iter"):
        model.fit(X, y)
    label_of = {label: i for i, label in enumerate(model.classes_)}
    column_of = model.vectorizer_.vocabulary_.index
    rows, columns, values = [], [], []
    for (attribute, label), weight in info.state_features.items():
        rows.append(label_of[label])
        columns.append(column_of[attribute])
        values.append(weight)
    model.coef_ = sp.csc_matrix((values, (rows, columns)), shape=model.coef_.shape)
    model.transitions_ = np.zeros_like(model.transitions_)
    for (before, after), weight in info.transitions.items():
        model.transitions_[label_of[before], label_of[after]] = weight
    return model


def objective(model, X, y, c1, c2):
    weights = np.concatenate([model.coef_.data, model.transitions_.ravel()])
    loss = -model.sequence_log_proba(X, y).sum()
    return loss + c1 * np.abs(weights).sum() + c2 * (weights**2).sum(), np.count_nonzero(weights)


def test_marginals_and_paths_with_the_weights_of_crfsuite(conll, tmp_path):
    X, y = conll["train"]
    tagger = train_crfsuite(tmp_path, X, y, "lbfgs", c2=1.0, max_iterations=30)
    model = copy_weights(tagger, X, y)
    X_test, _ = conll["test"]
    marginals = model.predict_proba(X_test)
    worst = 0.0
    for i, (steps, labels) in enumerate(zip(X_test, model.predict(X_test), strict=True)):
        assert tagger.tag(steps) == labels.tolist(), f"sentence {i}"
        if i % 10 == 0:
            peer = [
                [tagger.marginal(str(label), t) for label in model.classes_]
                for t in range(len(steps))
            ]
            worst = max(worst, np.abs(marginals[i] - peer).max())
    assert worst < 1e-5


def test_l1_reaches_the_objective_of_crfsuite(conll, tmp_path):
    X, y = conll["train"][0][:1500], conll["train"][1][:1500]
    tagger = train_crfsuite(
        tmp_path, X, y, "lbfgs", c1=0.1, c2=0.1, max_iterations=300, epsilon=1e-6, delta=1e-7
    )
    theirs, n_theirs = objective(copy_weights(tagger, X, y), X, y, 0.1, 0.1)
    ours = LinearChainCRF(c1=0.1, c2=0.1, boundary=False, n_jobs=2).fit(X, y)
    n_ours = np.count_nonzero(ours.coef_.data) + np.count_nonzero(ours.transitions_)
    assert ours.objective_ == pytest.approx(objective(ours, X, y, 0.1, 0.1)[0], rel=1e-9)
    assert ours.objective_ <= theirs * 1.001
    assert abs(n_ours - n_theirs) <= 0.1 * n_theirs


def test_f1_of_the_perceptron(conll):
    model = StructuredPerceptron(max_iter=20, random_state=0).fit(*conll["train"])
    X, y = conll["test"]
    assert span_f1(y, model.predict(X)) >= 0.933
    assert token_accuracy(y, model.predict(X)) >= 0.955


def test_results_are_bitwise_identical_for_any_number_of_threads(conll, monkeypatch):
    X, y = conll["train"][0][:2000], conll["train"][1][:2000]
    sequences = SequenceVectorizer().fit_transform(X)
    counts = count_parallel_tasks(monkeypatch)
    fits = []
    for n_jobs in (1, 2):
        with pytest.warns(match="max_iter"):
            fits.append(LinearChainCRF(max_iter=5, n_jobs=n_jobs).fit(sequences, y))
    assert max(counts) > 2  # more blocks than threads
    np.testing.assert_array_equal(fits[0].coef_.data, fits[1].coef_.data)
    np.testing.assert_array_equal(fits[0].transitions_, fits[1].transitions_)
