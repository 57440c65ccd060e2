"""With ``crfsuite_features=True`` and ``boundary=False``, model and optimum are those of CRFsuite."""

import random

import numpy as np
import pytest

from seqlab import LinearChainCRF, SequenceVectorizer, Tagger

pycrfsuite = pytest.importorskip("pycrfsuite")


def make_token(rng):
    token = {
        "w": rng.choice("abcdefgh"),
        "flag": rng.random() < 0.5,
        "n": rng.choice([0, 0.0, 1, -1, -2.5, 3]),
        "numpy": rng.choice([np.float64(0.5), np.int64(0), np.bool_(False)]),
        "text": rng.choice(["", "x"]),
        "list": rng.choice([[], ["p"], ["p", "q"], ["p", "p"]]),
        "dict": {"z": rng.choice([0, 1, False]), "s": "", "inner": {"k": rng.random() < 0.5}},
        "negative": -rng.random(),
        "w:a": rng.random() < 0.5,  # the same attribute as {"w": "a"}
    }
    if rng.random() < 0.3:
        token["zero"] = 0
    return token


@pytest.fixture(scope="module")
def data():
    rng = random.Random(0)
    X = [[make_token(rng) for _ in range(rng.randint(1, 8))] for _ in range(80)]
    y = [[rng.choice("ABC") if rng.random() < 0.3 else "AB"[step["flag"]] for step in x] for x in X]
    return X, y


def train_crfsuite(data, path, c1, c2, min_freq, all_pairs=False):
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({
        "feature.possible_states": all_pairs, "feature.possible_transitions": all_pairs,
        "c1": c1, "c2": c2, "feature.minfreq": min_freq,
        "max_iterations": 3000, "epsilon": 1e-12, "delta": 1e-14, "period": 50,
    })  # fmt: skip
    for x, labels in zip(*data, strict=True):
        trainer.append(x, labels)
    trainer.train(str(path))
    return trainer.logparser


@pytest.mark.parametrize(("c1", "c2"), [(0.0, 1.0), (0.1, 0.1)])
@pytest.mark.parametrize("min_freq", [0, 5])
def test_number_of_weights_and_optimum(data, tmp_path, c1, c2, min_freq):
    log = train_crfsuite(data, tmp_path / "m", c1, c2, min_freq)
    options = {"c1": c1, "c2": c2, "min_freq": min_freq, "tol": 1e-10, "boundary": False}
    crf = LinearChainCRF(crfsuite_features=True, **options).fit(*data)
    n_weights = crf.coef_.nnz + np.count_nonzero(crf.transition_counts_ >= max(min_freq, 1))
    assert n_weights == log.featgen_num_features
    assert crf.objective_ == pytest.approx(log.last_iteration["loss"], rel=1e-7)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "m"))
    for x, labels in zip(data[0], crf.predict(data[0]), strict=True):
        assert tagger.tag(x) == labels.tolist()
    plain = LinearChainCRF(**options).fit(*data)
    assert plain.objective_ != pytest.approx(crf.objective_, rel=1e-4)


@pytest.mark.parametrize("min_freq", [0, 2, 20])
@pytest.mark.parametrize(("c1", "c2"), [(0.0, 1.0), (0.1, 0.1)])
def test_all_states_and_all_transitions(data, tmp_path, c1, c2, min_freq):
    log = train_crfsuite(data, tmp_path / "m", c1, c2, min_freq, all_pairs=True)
    options = {"c1": c1, "c2": c2, "min_freq": min_freq, "tol": 1e-10, "boundary": False}
    options |= {"all_states": True, "all_transitions": True}
    crf = LinearChainCRF(crfsuite_features=True, **options).fit(*data)
    n_weights = crf.coef_.nnz + np.count_nonzero(crf.transition_counts_ >= min_freq)
    assert n_weights == log.featgen_num_features
    assert crf.objective_ == pytest.approx(log.last_iteration["loss"], rel=1e-7)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "m"))
    for x, proba in zip(data[0], crf.predict_proba(data[0]), strict=True):
        tagger.set(x)
        expected = [[tagger.marginal(k, t) for k in crf.classes_] for t in range(len(x))]
        assert np.allclose(proba, expected, atol=1e-5)


def test_features_are_those_of_crfsuite(data):
    vectorizer = SequenceVectorizer(separator=":", keep_zeros=True)
    X = data[0][:10]
    steps = vectorizer.inverse_transform(vectorizer.fit_transform(X))
    for x, found in zip(X, steps, strict=True):
        for step, features in zip(x, found, strict=True):
            (expected,) = pycrfsuite.ItemSequence([step]).items()
            assert features.keys() == expected.keys()


def test_vectorizer_in_a_tagger_gives_the_same_model(data):
    options = {"crfsuite_features": True, "boundary": False}
    direct = LinearChainCRF(**options).fit(*data)
    vectorizer = SequenceVectorizer(separator=":", keep_zeros=True)
    tagger = Tagger(vectorizer, LinearChainCRF(**options)).fit(*data)
    assert tagger.labeler_.objective_ == direct.objective_


def test_zeros_are_dropped_by_default_and_stored_on_request():
    X = [[{"a": False, "b": 0, "c": None, "d": 0.0}, {"a": True, "b": 2}]]
    plain = SequenceVectorizer().fit_transform(X)
    assert plain.matrix.toarray().tolist() == [[0, 0], [1, 2]]
    assert plain.matrix.nnz == 2
    kept = SequenceVectorizer(keep_zeros=True).fit(X)
    assert kept.get_feature_names_out().tolist() == ["a", "b", "d"]
    matrix = kept.transform(X).matrix
    assert matrix.toarray().tolist() == [[0, 0, 0], [1, 2, 0]]
    assert matrix.nnz == 5
