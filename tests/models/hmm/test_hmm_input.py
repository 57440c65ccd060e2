"""HMM: all forms of observations, unseen and missing values, invalid input, model files."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import seqlab
from seqlab import HMM, SequenceVectorizer, Tagger, Templates
from seqlab.data import InputError, Sequences
from seqlab.inference import Mask

WORDS = [["walk", "shop", "clean"], ["clean", "clean", "shop"], ["walk", "walk"], ["shop"]]
y = [["sun", "rain", "rain"], ["rain", "rain", "rain"], ["sun", "sun"], ["rain"]]
CODE = {"walk": 0, "shop": 1, "clean": 2}


def forms():
    """Return the same symbols in every form, each with an unseen symbol."""
    pd = pytest.importorskip("pandas")
    eye = np.eye(3)
    codes = [[CODE[word] for word in steps] for steps in WORDS]
    return {
        "strings": (WORDS, ["never"]),
        "tuples of strings": ([tuple(steps) for steps in WORDS], ("never",)),
        "arrays of strings": ([np.array(steps) for steps in WORDS], np.array(["never"])),
        "bags": ([[[word] for word in steps] for steps in WORDS], [["never"]]),
        "dicts": ([[{"w": word} for word in steps] for steps in WORDS], [{"w": "never"}]),
        "frames": (
            [pd.DataFrame({"w": steps}) for steps in WORDS],
            pd.DataFrame({"w": ["never"]}),
        ),
        "column": ([np.array(c)[:, None] for c in codes], np.array([[7]])),
        "one-hot": ([eye[c] for c in codes], np.zeros((1, 3))),
        "CSR": ([sp.csr_matrix(eye[c]) for c in codes], sp.csr_matrix((1, 3))),
    }


def test_every_form_of_symbols_gives_the_same_model():
    reference = HMM().fit(WORDS, y)
    expected = np.concatenate(reference.predict_proba(WORDS))
    unseen = reference.predict_proba([["never"]])[0]
    for name, (X, never) in forms().items():
        hmm = HMM().fit(X, y)
        assert hmm.emission_kind_ == "categorical", name
        np.testing.assert_allclose(np.concatenate(hmm.predict_proba(X)), expected, err_msg=name)
        np.testing.assert_allclose(hmm.predict_proba([never])[0], unseen, err_msg=name)
        np.testing.assert_allclose(hmm.log_likelihood(X, y), reference.log_likelihood(WORDS, y))
    flat = [word for steps in WORDS for word in steps]
    lengths = [len(steps) for steps in WORDS]
    stacked = HMM().fit(flat, np.concatenate(y), lengths=lengths)
    np.testing.assert_allclose(stacked.predict_proba(flat, lengths=lengths), expected)
    np.testing.assert_allclose(
        stacked.log_likelihood(flat, np.concatenate(y), lengths=lengths),
        reference.log_likelihood(WORDS, y),
    )
    lazily = HMM().fit((steps for steps in WORDS), y)
    np.testing.assert_allclose(
        np.concatenate(lazily.predict_proba(steps for steps in WORDS)), expected
    )
    assert lazily.log_likelihood((steps for steps in WORDS), y).shape == (4,)
    pipeline = make_pipeline(SequenceVectorizer(), HMM())
    bags = forms()["bags"][0]
    assert pipeline.fit(bags, y).predict(bags)[0].tolist() == y[0]


def test_an_unseen_symbol_is_not_a_missing_one():
    hmm = HMM(smoothing=0.5).fit(WORDS, y)
    # e / (c(s) + e (V + 1)): training shows 6 symbols with rain and 3 with sun.
    start = hmm.start_ * np.array([0.5 / 8, 0.5 / 5])
    np.testing.assert_allclose(hmm.predict_proba([["never"]])[0][0], start / start.sum())
    np.testing.assert_allclose(hmm.predict_proba([[None]])[0][0], hmm.start_)
    assert hmm.log_likelihood([[None, None]])[0] == pytest.approx(0.0, abs=1e-12)
    dicts = [[{"w": word} for word in steps] for steps in WORDS]
    named = HMM(smoothing=0.5).fit(dicts, y)
    for step in ({}, {"w": None}, {"other": "x"}):
        np.testing.assert_allclose(named.predict_proba([[step]])[0][0], hmm.start_)
    # In training a missing symbol is not counted.
    holes = HMM(smoothing=0.5).fit([["walk", None], ["shop"]], [["sun", "sun"], ["rain"]])
    np.testing.assert_allclose(
        holes.emissions_.probabilities[0][1], np.array([1.5, 0.5, 0.5]) / 2.5
    )


def test_columns_of_symbols_are_independent():
    pairs = [[{"w": w, "n": str(len(w))} for w in steps] for steps in WORDS]
    hmm = HMM().fit(pairs, y)
    assert hmm.vectorizer_.get_feature_names_out().tolist() == ["w", "n"]
    word, size = HMM().fit(WORDS, y), HMM().fit([[str(len(w)) for w in s] for s in WORDS], y)
    both = hmm.predict_proba([[{"w": "walk", "n": "5"}]])[0][0]
    expected = (
        word.predict_proba([["walk"]])[0][0] * size.predict_proba([["5"]])[0][0] / word.start_
    )
    np.testing.assert_allclose(both, expected / expected.sum())
    columns = [np.array([[CODE[w], len(w)] for w in steps]) for steps in WORDS]
    numbers = HMM(emissions="categorical").fit(columns, y)
    np.testing.assert_allclose(
        np.concatenate(numbers.predict_proba(columns)), np.concatenate(hmm.predict_proba(pairs))
    )
    given = [[{"w": w, "n": len(w), "odd": len(w) % 2 == 1} for w in steps] for steps in WORDS]
    mixed = HMM(emissions="categorical").fit(given, y)
    assert [len(v) for v in mixed.vectorizer_.vocabularies_] == [3, 2, 2]
    assert mixed.predict([[{"w": "walk", "n": 4.0}]])[0].tolist() == ["sun"]


@pytest.mark.parametrize(
    ("X", "kind"),
    [
        ([[[1, 0], [0, 1]]], "categorical"),
        ([[[1, 1], [0, 1]]], "bernoulli"),
        ([[[1], [0]]], "bernoulli"),
        ([[[3], [0]]], "categorical"),
        ([[[3, 1], [0, 2]]], "multinomial"),
        ([[[3, -1], [0, 2]]], "gaussian"),
        ([[[0.5], [0.0]]], "gaussian"),
        ([sp.csr_matrix([[2.0, 0.0], [0.0, 1.0]])], "multinomial"),
        ([[["a", "b"], ["a"]]], "bernoulli"),
        ([[{"a": 0.5}, {"a": 1.5}]], "gaussian"),
        ([[{"a": True}, {"b": True, "c": True}]], "bernoulli"),
        ([[{"a": "x", "b": "z"}, {"a": None}]], "categorical"),
    ],
)
def test_auto(X, kind):
    hmm = HMM().fit(X, [["s", "t"]])
    assert hmm.emission_kind_ == kind
    assert len(hmm.predict(X)[0]) == 2


def test_bernoulli_features_of_probability_one():
    X = [np.array([[1.0, 0], [1, 1]]), np.array([[0.0, 1]])]
    hmm = HMM(emissions="bernoulli", smoothing=0.0).fit(X, [["a", "a"], ["b"]])
    assert hmm.emissions_.probabilities.tolist() == [[1.0, 0.5], [0.0, 1.0]]
    found = hmm.log_likelihood([[[1, 1]], [[1, 0]], [[0, 1]]])
    # a: 1 x 1/2; b needs its second feature and cannot have the first.
    np.testing.assert_allclose(np.exp(found), np.array([0.5, 0.5, 1.0]) * 0.5)
    assert hmm.predict([[[0, 1]]])[0].tolist() == ["b"]
    with pytest.raises(ValueError, match="no legal labeling"):
        hmm.predict([[[0, 0]]])


def test_the_factor_of_a_missing_number_is_left_out():
    random = np.random.default_rng(0)
    for kind in ("gaussian", "bernoulli", "categorical"):
        X = [random.integers(0, 2, (5, 3)).astype(float) for _ in range(6)]
        if kind == "gaussian":
            X = [x + random.normal(size=x.shape) for x in X]
        labels = [random.integers(0, 2, 5).tolist() for _ in X]
        hmm = HMM(emissions=kind, allow_missing=True).fit(X, labels)
        for gone in range(3):
            holed = X[0].copy()
            holed[:, gone] = np.nan
            kept = [k for k in range(3) if k != gone]
            fewer = HMM(emissions=kind).fit([x[:, kept] for x in X], labels)
            np.testing.assert_allclose(
                hmm.log_likelihood([holed]), fewer.log_likelihood([X[0][:, kept]]), rtol=1e-9
            )
            if kind != "categorical":
                np.testing.assert_allclose(
                    hmm.log_likelihood([sp.csr_matrix(holed)]),
                    hmm.log_likelihood([holed]),
                    rtol=1e-9,
                )
        everything = np.full((2, 3), np.nan)
        assert hmm.log_likelihood([everything])[0] == pytest.approx(0.0, abs=1e-9)
        # In training, a missing entry is not counted.
        holed = [x.copy() for x in X]
        holed[1][2, 1] = np.nan
        model = HMM(emissions=kind, allow_missing=True).fit(holed, labels)
        code = labels[1][2]
        rest = np.concatenate([x[:, 1] for x in holed])[np.concatenate(labels) == code]
        rest = rest[~np.isnan(rest)]
        found = model.emissions_
        if kind == "gaussian":
            assert found.means[code, 1] == pytest.approx(rest.mean())
            assert found.variances[code, 1] == pytest.approx(rest.var())
        elif kind == "bernoulli":
            expected = (rest.sum() + 0.1) / (rest.size + 0.2)
            assert found.probabilities[code, 1] == pytest.approx(expected)
        else:
            expected = (rest.sum() + 0.1) / (rest.size + 0.3)
            assert found.probabilities[1][code, 1] == pytest.approx(expected)
        sparse = HMM(emissions=kind, allow_missing=True)
        if kind != "categorical":
            sparse.fit([sp.csr_matrix(x) for x in holed], labels)
            np.testing.assert_allclose(
                sparse.log_likelihood(holed), model.log_likelihood(holed), rtol=1e-9
            )


def test_errors_name_invalid_numbers():
    X, labels = [np.ones((2, 2)), np.array([[0.0, 1], [2, 3]])], [["a", "b"], ["a", "b"]]

    def broken(value):
        other = [x.copy() for x in X]
        other[1][1, 0] = value
        return other

    with pytest.raises(InputError, match=r"X\[1\] position 1 feature 0"):
        HMM().fit(broken(np.nan), labels)
    for kind in ("gaussian", "bernoulli", "categorical", "multinomial"):
        with pytest.raises(InputError, match=r"X\[1\] position 1 feature 0 is inf"):
            HMM(emissions=kind, allow_missing=True).fit(broken(np.inf), labels)
    with pytest.raises(InputError, match=r"X\[1\] position 1 feature 0 is -1, but multinomial"):
        HMM(emissions="multinomial").fit(broken(-1), labels)
    with pytest.raises(InputError, match=r"X\[1\] position 1 feature 0 is nan, but multinomial"):
        HMM(emissions="multinomial", allow_missing=True).fit(broken(np.nan), labels)
    with pytest.raises(InputError, match=r"X\[1\] position 1 feature 0 is 0\.5, but categorical"):
        HMM(emissions="categorical").fit(broken(0.5), labels)
    auto = HMM(allow_missing=True).fit(broken(np.nan), labels)
    assert auto.emission_kind_ == "gaussian"  # whole numbers, but counts cannot be missing
    with pytest.raises(
        InputError, match=r"X\[1\] position 1 feature 0 is nan, but .* covariance='diag'"
    ):
        HMM(covariance="full", emissions="gaussian", allow_missing=True).fit(broken(np.nan), labels)
    fitted = HMM(emissions="multinomial").fit(X, labels)
    with pytest.raises(InputError, match=r"X\[1\] position 1 feature 0 is -3"):
        fitted.predict(broken(-3))
    csr = [sp.csr_matrix([[1.0, 1.0]])]
    with pytest.raises(InputError, match=r"X\[0\] position 0 has 2 indicators"):
        HMM(emissions="categorical").fit(csr, [["a"]])
    with pytest.raises(InputError, match=r"X\[0\] position 0 feature 1 is 2"):
        HMM(emissions="categorical").fit([sp.csr_matrix([[0.0, 2.0]])], [["a"]])


def test_errors_name_invalid_symbols():
    with pytest.raises(InputError, match=r"X\[0\]\[1\] has 2 strings.*bernoulli"):
        HMM(emissions="categorical").fit([[["a"], ["a", "b"]]], [["s", "t"]])
    with pytest.raises(InputError, match=r"X\[0\]\[1\]\['w'\] is 0.5"):
        HMM(emissions="categorical").fit([[{"w": "a"}, {"w": 0.5}]], [["s", "t"]])
    with pytest.raises(InputError, match="Templates"):
        HMM(emissions="categorical").fit([[["a"], ("a", "b")]], [["s", "t"]])
    for steps, place in [([("the", "DT"), ("dog", "NN")], 0), ([["a"], ("the", "DT")], 1)]:
        for emissions in ("auto", "bernoulli"):
            with pytest.raises(
                InputError, match=rf"X\[0\]\[{place}\] is a tuple of 2 strings: name them in a dict"
            ):
                HMM(emissions=emissions).fit([steps], [["s", "t"]])
    with pytest.raises(InputError, match="feature names must be strings"):
        HMM(emissions="categorical").fit([[{"w": "a"}, {3: "b"}]], [["s", "t"]])
    fitted = HMM().fit(WORDS, y)
    with pytest.raises(InputError, match="holds numbers"):
        fitted.predict([[[1.0]]])
    with pytest.raises(InputError, match=r"X\[0\]\[1\] has 2 strings"):
        fitted.predict([[["walk"], ["a", "b"]]])
    with pytest.raises(InputError, match="wrap a single sequence"):
        fitted.predict(["walk", "shop"])
    numbers = HMM().fit([[[0.5], [1.5]]], [["s", "t"]])
    with pytest.raises(InputError, match="only numbers are expected"):
        numbers.predict([["walk"]])


def test_constant_and_distant_features():
    random = np.random.default_rng(0)
    labels = [random.integers(0, 2, 20).tolist() for _ in range(5)]
    # A constant, and a signal of size 1 around a mean of a hundred million.
    X = [
        np.column_stack([np.full(20, 3.0), 1e8 + np.array(one) * 5 + random.normal(size=20)])
        for one in labels
    ]
    hmm = HMM().fit(X, labels)
    assert hmm.score(X, labels) > 0.95
    means = [np.concatenate(X)[np.concatenate(labels) == s, 1].mean() for s in (0, 1)]
    np.testing.assert_allclose(hmm.emissions_.means[:, 1], means, rtol=1e-14)
    variances = [np.concatenate(X)[np.concatenate(labels) == s, 1].var() for s in (0, 1)]
    np.testing.assert_allclose(hmm.emissions_.variances[:, 1], variances, rtol=1e-6)


def test_variances_have_a_lower_bound():
    X, labels = [np.array([[0.0, 1], [0, 3], [4, 1], [4, 2]])], [["a", "a", "b", "b"]]
    overall = X[0].var(axis=0)
    for floor in (0.01, 0.5):
        diag = HMM(emissions="gaussian", variance_floor=floor).fit(X, labels).emissions_
        raw = np.array([X[0][:2].var(axis=0), X[0][2:].var(axis=0)])
        np.testing.assert_allclose(diag.variances, np.maximum(raw, floor * overall))
        full = HMM(emissions="gaussian", variance_floor=floor, covariance="full").fit(X, labels)
        scaled = full.emissions_.covariances / np.sqrt(np.outer(overall, overall))
        assert np.linalg.eigvalsh(scaled).min() >= floor * (1 - 1e-9)


@pytest.mark.parametrize("name", ["strings", "dicts", "CSR", "column"])
def test_model_files(name, tmp_path):
    X, never = forms()[name]
    mask = Mask(transitions=[[True, True], [True, True]], start=[True, True])
    for options in ({}, {"constraints": mask, "model_end": True}, {"constraints": "seen"}):
        hmm = HMM(**options).fit(X, y)
        seqlab.save(hmm, tmp_path / "hmm.seqlab")
        for other in (
            seqlab.load(tmp_path / "hmm.seqlab"),
            pickle.loads(pickle.dumps(hmm)),
            clone(hmm).fit(X, y),
        ):
            assert np.array_equal(other.predict_proba([never])[0], hmm.predict_proba([never])[0])
            assert np.array_equal(other.log_likelihood(X), hmm.log_likelihood(X))
            assert repr(other.sample(2, 3, 0)) == repr(hmm.sample(2, 3, 0))


def test_in_a_tagger_and_from_sequences():
    tokens = [[(word,) for word in steps] for steps in WORDS]
    tagger = Tagger(Templates.default(), HMM()).fit(tokens, y)
    assert tagger.labeler_.emission_kind_ == "bernoulli"
    assert tagger.predict(tokens)[0].tolist() == y[0]
    hmm = HMM().fit(WORDS, y)
    codes = hmm.vectorizer_.transform([[[word] for word in steps] for steps in WORDS])
    assert isinstance(codes, Sequences)
    assert [p.tolist() for p in hmm.predict(codes)] == [p.tolist() for p in hmm.predict(WORDS)]


def test_parameters_are_checked():
    for bad in (
        {"smoothing": -1},
        {"emissions": "poisson"},
        {"covariance": "tied"},
        {"variance_floor": 0},
        {"max_iter": 0},
        {"constraints": 3},
    ):
        with pytest.raises(ValueError, match="parameter"):
            HMM(**bad).fit(WORDS, y)


@pytest.mark.parametrize(
    ("fitted_on", "given", "message"),
    [
        ("walk", {"w": "walk"}, "X has the columns 'w', but the model was fitted on plain symbols"),
        ({"w": "walk"}, "walk", "X has plain symbols, but the model was fitted on the columns 'w'"),
    ],
)
def test_named_and_unnamed_symbols_do_not_count_as_missing(fitted_on, given, message):
    hmm = HMM().fit([[fitted_on, fitted_on], [fitted_on]], [["sun", "rain"], ["rain"]])
    with pytest.raises(InputError, match=message):
        hmm.predict([[given]])


@pytest.mark.parametrize("step", [3, float("nan")])
def test_the_error_explains_what_a_symbol_is(step):
    hmm = HMM().fit([["walk", "shop"]], [["sun", "rain"]])
    with pytest.raises(InputError, match=r"X\[0\]\[1\] .* a string, None if it is missing"):
        hmm.predict([["walk", step]])
