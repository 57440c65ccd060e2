"""PhraseInference: the forms of X, y and predictions, and invalid input."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from phrase_data import quick_model
from seqlab.data import (
    SCHEMES,
    InputError,
    Phrase,
    PhraseSet,
    Sequences,
    phrases_to_open_close,
    phrases_to_tags,
    tags_to_phrases,
)


def two_rows_per_token(X):
    """Return open and close rows with separate columns."""
    out = []
    for x in X:
        rows = np.zeros((2 * len(x), 2 * x.shape[1]))
        rows[0::2, : x.shape[1]] = x
        rows[1::2, x.shape[1] :] = x
        out.append(rows)
    return out


def test_every_form_of_y_gives_the_same_model(single):
    X, y = single
    plain = [[tuple(phrase) for phrase in phrases] for phrases in y]
    shuffled = [phrases[::-1] for phrases in plain]
    reference = quick_model(output="phrases").fit(X, y)
    sets = reference.predict(X)
    forms = {
        "tuples": plain,
        "unsorted": shuffled,
        "arrays of tags": [np.array(p.to_tags()) for p in y],
        **{scheme: [p.to_tags(scheme) for p in y] for scheme in SCHEMES if scheme != "IO"},
    }
    for name, encoded in forms.items():
        scheme = name if name in SCHEMES else "IOB2"
        model = quick_model(scheme=scheme, output="phrases").fit(X, encoded)
        assert model.predict(X) == sets, name
        assert model.score(X, encoded) == reference.score(X, y)
    decisions = quick_model(output="phrases").fit(X, [p.to_open_close() for p in y])
    untyped = [PhraseSet([(a, b) for a, b, _ in p], p.length) for p in sets]
    assert decisions.types_ == [None]
    assert decisions.predict(X) == untyped
    assert decisions.score(X, [p.to_open_close() for p in y]) == reference.score(X, y)
    # A model of one type can also score decisions, which have no type.
    assert reference.score(X, [p.to_open_close() for p in y]) == reference.score(X, y)


def test_every_form_of_output(single):
    X, y = single
    tags = [p.to_tags() for p in y]
    sets = quick_model().fit(X, y).predict(X)
    assert isinstance(sets[0], PhraseSet)
    for output in ("auto", *SCHEMES):
        try:
            expected = [p.to_tags("IOB2" if output == "auto" else output) for p in sets]
        except InputError:  # adjacent phrases of one type, which IO cannot express
            assert output == "IO"
            continue
        model = quick_model(output=output).fit(X, tags)
        predicted = model.predict(X)
        assert [p.tolist() for p in predicted] == expected
        assert {label for p in expected for label in p} <= set(model.classes_.tolist())
    adjacent = next(i for i, p in enumerate(sets) if any(a.stop == b.start for a, b in pairwise(p)))
    with pytest.raises(InputError, match=f"sequence {adjacent}: .* IO would merge them"):
        quick_model(output="IO").fit(X, tags).predict(X)
    decided = quick_model(output="open_close").fit(X, tags).predict(X)
    assert [p.tolist() for p in decided] == [p.to_open_close() for p in sets]
    same = quick_model().fit(X, [p.to_open_close() for p in y]).predict(X)
    assert [p.tolist() for p in same] == [p.tolist() for p in decided]


def test_rows_may_be_tokens_or_decisions(single):
    X, y = single
    double = two_rows_per_token(X)
    reference = quick_model().fit(X, y)
    tags, decisions = [p.to_tags() for p in y], [p.to_open_close() for p in y]
    for encoded in (y, tags, decisions):
        model = quick_model(output="phrases").fit(double, encoded)
        assert model.steps_ == "decisions"
        assert [len(c) for c in model.columns_] == [5, 5]
        borders = [[p[:2] for p in phrases] for phrases in model.predict(double)]
        assert borders == [[p[:2] for p in phrases] for phrases in reference.predict(X)]
        model = quick_model(output="phrases").fit([sp.csr_matrix(x) for x in double], encoded)
        assert model.score(double, encoded) == pytest.approx(reference.score(X, y), abs=0.02)
    plain = [list(phrases) for phrases in y]
    assert quick_model(steps="decisions").fit(double, plain).predict(double) == reference.predict(X)
    with pytest.raises(InputError, match=r"X\[1\] has 5 rows, but .* two decisions per token"):
        quick_model().fit(double, tags).predict([double[0], double[1][:5]])
    # Lists of phrases have no length, so rows are tokens by default.
    assert quick_model().fit(double, plain).steps_ == "tokens"


def test_stacked_input_gives_stacked_output(single):
    X, y = single
    lengths = [len(x) for x in X]
    tags = [p.to_tags() for p in y]
    flat, matrix = [tag for one in tags for tag in one], np.concatenate(X)
    a = quick_model().fit(X, tags)
    b = quick_model().fit(matrix, flat, lengths=lengths)
    together = b.predict(matrix, lengths=lengths)
    assert isinstance(together, np.ndarray)
    assert together.tolist() == [tag for p in a.predict(X) for tag in p.tolist()]
    assert b.score(matrix, np.array(flat), lengths=lengths) == a.score(X, tags)
    one = a.predict(X[0])
    assert one.tolist() == a.predict(X[:1])[0].tolist()
    decisions = [decision for p in y for decision in p.to_open_close()]
    c = quick_model().fit(matrix, decisions, lengths=lengths)
    assert c.predict(matrix, lengths=lengths).size == 2 * len(matrix)
    assert [p.tolist() for p in a.predict(Sequences.from_list(X))] == [
        p.tolist() for p in a.predict(X)
    ]
    with pytest.raises(InputError, match=r"X has .* steps but y has 7 labels"):
        quick_model().fit(matrix, flat[:7], lengths=lengths)


def test_dicts_and_empty_sequences(single):
    X, y = single
    dicts = [[{f"f{j}": v for j, v in enumerate(row)} for row in x.tolist()] for x in X]
    a, b = quick_model().fit(X, y), quick_model().fit(dicts, y)
    assert a.predict(X) == b.predict(dicts)
    assert a.predict([X[0], np.zeros((0, 5)), X[1]])[1] == PhraseSet([], 0)
    assert a.predict([[], []]) == [PhraseSet([], 0)] * 2


def test_errors_name_invalid_input(single):
    X, y = single
    tags = [p.to_tags() for p in y]
    overlapping = [*y[:3], [(0, 2, "NP"), (1, 3, "NP")], *y[4:]]
    for bad, words in [
        (overlapping, r"y\[3\]: phrase 1 .* overlaps phrase 0 .* at step 1"),
        ([*y[:3], [(0, 99, "NP")], *y[4:]], r"y\[3\]: phrase 0 .* ends after the last of"),
        ([*y[:3], [(0, "x")], *y[4:]], r"y\[3\]: phrase 0 is"),
        ([*y[:3], tags[3], *y[4:]], r"y\[3\] has labels"),
        ([*tags[:3], tags[3][:-1], *tags[4:]], r"X\[3\] has .* steps but y\[3\] has .* labels"),
        ([*tags[:3], ["X-NP"] * len(X[3]), *tags[4:]], r"y\[3\]: tag 'X-NP'"),
        (y[:-1], "X has 40 sequences but y has 39"),
        ([[] for _ in X], "no sequence of y has a phrase"),
        ([PhraseSet([], 2)] * 40, r"y\[0\] has length 2"),
        (None, "y is None"),
        ("NP", "y must be a list"),
        ([7] * 40, r"y\[0\] must be a list"),
        ([["nOo", "nCi"] * len(x) for x in X], r"y\[0\]: decision 'nCi' at step 0"),
        (
            [["nOo", "nCo"] * (len(x) - 1) + ["nOo", "?"] for x in X],
            r"y\[0\]: '\?' is not an open/close",
        ),
    ]:
        with pytest.raises(InputError, match=words):
            quick_model().fit(X, bad)
    with pytest.raises(InputError, match="unknown tag scheme 'BIO'; did you mean 'IOB2'"):
        quick_model(scheme="BIO").fit(X, tags)
    with pytest.raises(InputError, match="unknown tag scheme 'iob2'"):
        quick_model(output="iob2").fit(X, tags)
    with pytest.raises(InputError, match=r"X\[2\]"):
        quick_model().fit([*X[:2], np.full_like(X[2], np.nan), *X[3:]], y)
    with pytest.raises(InputError, match="tuning needs at least two training sequences"):
        quick_model(cost="weighted").fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="'cost' parameter"):
        quick_model(cost="cheap").fit(X, y)
    with pytest.raises(NotFittedError):
        quick_model().predict(X)
    with pytest.raises(ValueError, match="features"):
        quick_model().fit(X, y).predict([x[:, :3] for x in X])


def test_decisions_express_a_single_type(typed):
    X, y = typed
    with pytest.raises(InputError, match="one phrase type, but there are 'LOC', 'PER'"):
        quick_model(output="open_close").fit(X, y)


def test_unseen_types_count_as_errors(single):
    X, y = single
    model = quick_model().fit(X, y)
    renamed = [PhraseSet([(a, b, "VP") for a, b, _ in p], p.length) for p in y]
    assert model.score(X, renamed) == 0.0


def test_phrase_sets_compare_by_value():
    a = PhraseSet([(2, 3, "VP"), (0, 1, "NP")], 4)
    assert a == PhraseSet([(0, 1, "NP"), (2, 3, "VP")], np.int64(4))
    assert a != PhraseSet([(0, 1, "NP")], 4)
    assert a != [(0, 1, "NP"), (2, 3, "VP")]
    assert len({a, PhraseSet([(0, 1, "NP"), (2, 3, "VP")], 4)}) == 1
    assert pickle.loads(pickle.dumps(a)) == a
    assert eval(repr(a)) == a
    assert a[-1] == Phrase(2, 3, "VP")
    assert a[:1] == (Phrase(0, 1, "NP"),)
    assert (0, 1, "NP") in a
    for scheme in SCHEMES:
        assert PhraseSet.from_tags(a.to_tags(scheme), scheme) == a
        assert phrases_to_tags(a, 4, scheme) == a.to_tags(scheme)
    assert list(a) == tags_to_phrases(a.to_tags())
    one = PhraseSet([(0, 2, "NP")], 3)
    assert PhraseSet.from_open_close(phrases_to_open_close(one, 3), "NP") == one
    for bad in (([(0, 2), (1, 3)], 4), ([(0, 5)], 4), ([], -1), ([], 1.5)):
        with pytest.raises(InputError):
            PhraseSet(*bad)
