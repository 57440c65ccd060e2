"""BracketFeatures: windows, conjunctions and the two kinds of decisions."""

from __future__ import annotations

import pickle
from itertools import combinations

import numpy as np
import pytest

from seqlab import load, save
from seqlab.data import InputError, Sequences
from seqlab.features import BracketFeatures

X = [
    [("the", "DT"), ("cat", "NN"), ("sat", "VBD"), ("on", "IN"), ("mats", "NNS")],
    [("dogs", "NNS"), ("bark", "VBP")],
]


def rows_of(transformer, result, sequence):
    """Names of the features of each step of a sequence."""
    names = transformer.get_feature_names_out()
    return [sorted(names[row.indices]) for row in result[sequence]]


def padded(tokens, place, column):
    """Value at a position, or the mark if it is outside the sequence."""
    if place < 0:
        return f"_B-{-place}"
    if place >= len(tokens):
        return f"_B+{place - len(tokens) + 1}"
    return tokens[place][column]


def expected(tokens, t, kind, scheme, size, window, columns):
    """The same features, built by loops over strings."""
    first = -(window // 2) + (kind == "close")
    places = range(first, first + window)
    out = []
    for n in range(1, size + 1):
        for chosen in combinations(places, n):
            if scheme == "runs" and chosen[-1] - chosen[0] != n - 1:
                continue
            for number, name in columns:
                head = "|".join(f"{name}[{place}]" for place in chosen)
                values = "|".join(padded(tokens, t + place, number) for place in chosen)
                out.append(f"{kind}:{head}={values}")
    return sorted(out)


@pytest.mark.parametrize("scheme", ["runs", "subsets"])
@pytest.mark.parametrize(("size", "window"), [(3, 6), (2, 4), (1, 2), (9, 4)])
def test_features_by_name(scheme, size, window):
    brackets = BracketFeatures(scheme=scheme, size=size, window=window)
    result = brackets.fit_transform(X)
    assert result.lengths.tolist() == [10, 4]
    columns = [(0, "word"), (1, "pos")]
    for i, tokens in enumerate(X):
        rows = rows_of(brackets, result, i)
        for t in range(len(tokens)):
            for step, kind in ((2 * t, "open"), (2 * t + 1, "close")):
                assert rows[step] == expected(tokens, t, kind, scheme, size, window, columns)
    assert set(result.matrix.data) == {1.0}


@pytest.mark.parametrize(("scheme", "count"), [("runs", 15), ("subsets", 41)])
def test_counts_of_the_paper(scheme, count):
    """6 + 5 + 4 = 15 adjacent runs, 6 + 15 + 20 = 41 subsets, per column and decision."""
    for columns, n_columns in ((["pos"], 1), ([0, 1], 2), (None, 2)):
        result = BracketFeatures(scheme=scheme, columns=columns).fit_transform(X)
        assert np.all(np.diff(result.matrix.indptr) == n_columns * count)


def test_the_window_is_centred_on_the_gap():
    """Open decisions of t read t-3 ... t+2, close decisions t-2 ... t+3."""
    tokens = [[str(n) for n in range(7)]]
    brackets = BracketFeatures(size=1)
    rows = rows_of(brackets, brackets.fit_transform(tokens), 0)
    assert rows[6] == sorted(f"open:word[{d}]={3 + d}" for d in (-3, -2, -1, 0, 1, 2))
    assert rows[7] == sorted(f"close:word[{d}]={3 + d}" for d in (-2, -1, 0, 1, 2, 3))


def test_mixed_columns():
    brackets = BracketFeatures(mixed=True, size=2, window=2)
    result = brackets.fit_transform(X)
    # Two positions with two columns each, and four ways to combine both.
    assert np.all(np.diff(result.matrix.indptr) == 2 * 2 + 4)
    assert "open:word[-1]|pos[0]=the|NN" in rows_of(brackets, result, 0)[2]
    subsets = BracketFeatures(mixed=True, scheme="subsets", size=2, window=4).fit_transform(X)
    assert np.all(np.diff(subsets.matrix.indptr) == 4 * 2 + 6 * 4)


def test_kinds_have_no_common_columns_and_can_be_used_alone():
    both = BracketFeatures().fit(X)
    result = both.transform(X)
    opens, closes = result.matrix[0::2], result.matrix[1::2]
    assert not set(opens.indices) & set(closes.indices)
    for kind, part in (("open", opens), ("close", closes)):
        alone = BracketFeatures(decisions=kind).fit(X)
        one = alone.transform(X)
        assert one.lengths.tolist() == [5, 2]
        own = [name.startswith(f"{kind}:") for name in both.get_feature_names_out()]
        assert np.array_equal(part[:, own].toarray(), one.matrix.toarray())
        assert alone.get_feature_names_out().tolist() == both.get_feature_names_out()[own].tolist()


def test_fit_transform_equals_fit_and_transform():
    brackets = BracketFeatures(scheme="subsets", min_count=2)
    result = brackets.fit_transform(X)
    again = BracketFeatures(scheme="subsets", min_count=2).fit(X).transform(X)
    assert np.array_equal(result.matrix.toarray(), again.matrix.toarray())
    assert result.n_features == brackets.n_features_out_ == len(brackets.get_feature_names_out())
    assert result.matrix.sum(axis=0).min() >= 2


def test_unseen_tokens_and_forms_of_input():
    brackets = BracketFeatures().fit(X)
    new = brackets.transform([[("zebra", "NN")]])
    names = brackets.get_feature_names_out()[new[0].indices]
    assert not [name for name in names if "zebra" in name]
    reference = brackets.transform(X).matrix
    assert (brackets.transform(iter(X)).matrix != reference).nnz == 0
    assert (brackets.transform(np.array(s) for s in X).matrix != reference).nnz == 0
    from_generator = BracketFeatures().fit_transform(s for s in X)
    assert (from_generator.matrix != reference).nnz == 0
    empty = brackets.transform([[], X[1]])
    assert empty.lengths.tolist() == [0, 4]
    assert BracketFeatures().fit_transform([[], X[1]]).lengths.tolist() == [0, 4]


def test_one_column_of_plain_strings():
    result = BracketFeatures().fit_transform([["a", "b"], ["c"]])
    assert np.all(np.diff(result.matrix.indptr) == 15)


def test_files_and_pickles(tmp_path):
    brackets = BracketFeatures(columns=["pos"]).fit(X)
    save(brackets, tmp_path / "brackets.seqlab")
    for other in (pickle.loads(pickle.dumps(brackets)), load(tmp_path / "brackets.seqlab")):
        assert (other.transform(X).matrix != brackets.transform(X).matrix).nnz == 0
        assert other.get_feature_names_out().tolist() == brackets.get_feature_names_out().tolist()


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        ({"window": 5}, X, "must be even"),
        ({"columns": "pos"}, X, r"columns must be a list, such as \['pos'\]"),
        ({"columns": ["tag"]}, X, "reads column 'tag'"),
        ({"columns": [2]}, X, "reads column 2"),
        ({"scheme": "all"}, X, "scheme"),
        ({"size": 0}, X, "size"),
        ({}, [], "no tokens"),
        ({}, [[]], "no tokens"),
        ({}, [[("a", "b"), ("c",)]], r"X\[0\]\[1\] has 1 columns"),
        ({}, [[{"word": "a"}]], "is a dict"),
        ({}, "text", "X is"),
        ({}, 3, "X is"),
        ({}, Sequences(np.eye(2), [0, 2]), "X is"),
    ],
)
def test_bad_input(options, given, message):
    with pytest.raises(ValueError, match=message) as caught:
        BracketFeatures(**options).fit(given)
    if "scheme" not in options and "size" not in options:
        assert isinstance(caught.value, InputError)


def test_failed_fit_does_not_change_the_transformer():
    brackets = BracketFeatures().fit(X)
    before = dict(brackets.__dict__)
    with pytest.raises(InputError):
        brackets.fit([[("a", "b"), ("c",)]])
    assert brackets.__dict__ == before
