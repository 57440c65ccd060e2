"""Window, Gazetteer, Conjunctions, SequenceUnion and the word forms."""

import pickle
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from seqlab import LinearChainCRF, Tagger
from seqlab.data import InputError, Sequences
from seqlab.features import Conjunctions, Gazetteer, SequenceUnion, Templates, Window
from seqlab.features.word_forms import case, digits, form_function, punctuation, shape, short_shape
from seqlab.inspection import top_features

lengths = st.lists(st.integers(0, 4), min_size=1, max_size=4)
numbers = st.sampled_from([0.0, 0.0, 1.0, -2.0])


@st.composite
def matrices(draw, n_features=3):
    sizes = draw(lengths)
    matrix = draw(arrays(np.float64, (sum(sizes), n_features), elements=numbers))
    return Sequences(matrix, np.concatenate([[0], np.cumsum(sizes)]))


def dense(sequences):
    matrix = sequences.matrix
    return matrix.toarray() if sp.issparse(matrix) else matrix


def as_sparse(sequences):
    return Sequences(sp.csr_matrix(sequences.matrix), sequences.offsets)


# Window.


@settings(max_examples=60, deadline=None)
@given(matrices(), st.integers(0, 2), st.integers(0, 2), st.booleans())
def test_window_agrees_with_loops(sequences, before, after, boundary):
    window = Window(before=before, after=after, boundary=boundary)
    got = dense(window.fit_transform(sequences))
    distances = [*range(-before, 0), *range(1, after + 1)]
    rows = []
    for part in sequences:
        for t in range(len(part)):
            inside = [0 <= t + d < len(part) for d in distances]
            near = [
                part[t + d] if ok else np.zeros(3) for d, ok in zip(distances, inside, strict=True)
            ]
            flags = [not ok for ok in inside] if boundary else []
            rows.append(np.concatenate([part[t], *near, flags]))
    width = 3 * (1 + len(distances)) + boundary * len(distances)
    np.testing.assert_array_equal(got, np.array(rows).reshape(-1, width))
    assert len(window.get_feature_names_out()) == width
    sparse = window.transform(as_sparse(sequences))
    assert sparse.is_sparse
    np.testing.assert_array_equal(dense(sparse), got)


def test_window_names_and_errors():
    named = Sequences(np.eye(2), [0, 2], feature_names=["a", "b"])
    window = Window(before=1, after=1).fit(named)
    assert window.get_feature_names_out().tolist() == (
        ["a", "b", "a[-1]", "b[-1]", "a[+1]", "b[+1]", "__BOS__[-1]", "__EOS__[+1]"]
    )
    assert window.get_feature_names_out(["c", "d"])[2] == "c[-1]"
    with pytest.raises(InputError, match="expecting 2 features"):
        window.transform([np.ones((1, 3))])
    with pytest.raises(ValueError, match="before"):
        Window(before=-1).fit(named)


# Gazetteer.


def test_gazetteer_finds_the_longest_entry_without_overlap():
    lists = {"city": ["New York", "York", ("New", "York", "City")], "word": ["City"]}
    model = Gazetteer(lists).fit()
    got = model.transform([[("New", "X"), ("York", "X"), ("City", "X")], [("New", "X")], []])
    assert got[0].toarray().tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0]]
    assert got[1].nnz == 0
    assert got.lengths.tolist() == [3, 1, 0]
    assert model.get_feature_names_out().tolist() == ["city:B", "city:I", "word:B", "word:I"]


def test_gazetteer_does_not_read_the_next_sequence():
    assert Gazetteer({"city": ["New York"]}).fit_transform([["New"], ["York"]]).matrix.nnz == 0


def test_gazetteer_column_case_and_errors():
    model = Gazetteer({"tag": ["nn"]}, column=1, lower=True).fit()
    assert model.transform([[("a", "NN"), ("b", "DT")]])[0].toarray().tolist() == [[1, 0], [0, 0]]
    with pytest.raises(InputError, match="has 1 column, but column 1 is needed"):
        model.transform([["a"]])
    with pytest.raises(InputError, match="must be a list of entries"):
        Gazetteer({"city": "Paris"}).fit()
    with pytest.raises(InputError, match="has the entry ''"):
        Gazetteer({"city": [""]}).fit()


# Conjunctions.


def reference_products(matrix, size, columns):
    rows = []
    for row in matrix:
        active = [c for c in columns if row[c] != 0]
        rows.append(
            {
                pick: np.prod(row[list(pick)])
                for k in range(2, size + 1)
                for pick in combinations(active, k)
            }
        )
    return rows


@settings(max_examples=60, deadline=None)
@given(matrices(5), matrices(5), st.integers(2, 4), st.sampled_from([None, [0, 2, 4], [1]]))
def test_conjunctions_agree_with_loops(train, test, size, columns):
    model = Conjunctions(size=size, columns=columns, keep=False).fit(train)
    chosen = range(5) if columns is None else columns
    known = {pick for row in reference_products(train.matrix, size, chosen) for pick in row}
    names = model.get_feature_names_out().tolist()
    assert set(names) == {"&".join(f"x{c}" for c in pick) for pick in known}
    for data in (train, as_sparse(train), test):
        rows = reference_products(dense(data), size, chosen)
        expected = np.zeros((len(rows), len(names)))
        for t, row in enumerate(rows):
            for pick, value in row.items():
                if pick in known:
                    expected[t, names.index("&".join(f"x{c}" for c in pick))] = value
        np.testing.assert_array_equal(dense(model.transform(data)), expected)


def test_conjunctions_keep_names_and_min_count():
    matrix = np.array([[1.0, 1, 0], [1, 1, 1]])
    named = Sequences(matrix, [0, 2], feature_names=["a", "b", "c"])
    model = Conjunctions(min_count=2)
    assert dense(model.fit_transform(named)).tolist() == [[1, 1, 0, 1], [1, 1, 1, 1]]
    assert model.get_feature_names_out().tolist() == ["a", "b", "c", "a&b"]
    chosen = Conjunctions(columns=["a", "c"]).fit(named)
    assert chosen.get_feature_names_out().tolist()[3:] == ["a&c"]
    with pytest.raises(
        InputError, match="columns contains 'z', but X has 3 features, none with that name"
    ):
        Conjunctions(columns=["z"]).fit(named)
    with pytest.raises(InputError, match="expecting 3 features"):
        model.transform([np.ones((1, 2))])


# Combinations.


def test_pipeline_and_union():
    X = [[("in", "IN"), ("New", "NNP"), ("York", "NNP")], [("York", "NNP")]]
    union = SequenceUnion(
        [
            ("words", Templates([(0, "word"), (0, "pos")])),
            ("city", Gazetteer({"city": ["New York"]})),
        ]
    )
    pipeline = make_pipeline(union, Window(before=1, after=0), Conjunctions(columns=[0]))
    got = pipeline.fit_transform(X)
    names = pipeline.get_feature_names_out()
    assert got.shape == (2, len(names))
    row = set(names[got[0][2].indices].tolist())
    assert {"words__word[0]=York", "words__word[0]=New[-1]", "city__city:B[-1]"} <= row
    again = pickle.loads(pickle.dumps(pipeline)).transform(X)
    assert (again.matrix != got.matrix).nnz == 0
    assert (clone(pipeline).fit_transform(X).matrix != got.matrix).nnz == 0


def test_union_rejects_different_numbers_of_steps():
    class Short:
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return Sequences(np.ones((1, 1)), [0, 1])

    union = SequenceUnion([("a", Templates([(0, 0)])), ("b", Short())])
    with pytest.raises(InputError, match="return different numbers of steps"):
        union.fit_transform([["a", "b"]])


def test_dense_union():
    sequences = Sequences(np.eye(2), [0, 2])
    union = SequenceUnion([("a", Window(before=0, after=0)), ("b", Window(before=1, after=0))])
    assert not union.fit_transform(sequences).is_sparse


class WordLengths:
    """The length of each word and a constant, as a list of arrays."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return [np.array([[len(word), 1.0] for word in x]).reshape(-1, 2) for x in X]


def test_union_of_strings_and_lists_of_arrays():
    X = [["in", "Paris"], [], ["York"]]
    found = SequenceUnion([("words", Templates([(0, 0)])), ("n", WordLengths())]).fit_transform(X)
    assert found.lengths.tolist() == [2, 0, 1]
    assert found.matrix[:, -2:].toarray().tolist() == [[2.0, 1.0], [5.0, 1.0], [4.0, 1.0]]
    dense = SequenceUnion([("a", WordLengths()), ("b", WordLengths())]).fit_transform(X)
    assert not dense.is_sparse
    assert dense.matrix.shape == (3, 4)


@pytest.mark.parametrize("verbose", [True, False])
def test_names_of_transformers_without_names(verbose):
    X = [["in", "Paris"], [], ["York"]]
    union = SequenceUnion(
        [("words", Templates([(0, 0)])), ("n", WordLengths())], verbose_feature_names_out=verbose
    )
    with pytest.raises(NotFittedError, match="call fit"):
        SequenceUnion([("n", WordLengths())]).get_feature_names_out()
    for fitted in (union.fit(X), clone(union), union.set_params(words="drop")):
        n_columns = fitted.fit_transform(X).n_features
        names = fitted.get_feature_names_out().tolist()
        assert len(names) == n_columns
        assert names[-2:] == ["n[0]", "n[1]"]
        assert "__" not in names[0] or verbose
    tagger = Tagger(union.set_params(words=Templates([(0, 0)])), LinearChainCRF())
    tagger.fit([["in", "Paris"], ["York"]], [["O", "B"], ["B"]])
    assert top_features(tagger)[0].positive[0].feature == "n[0]"


def test_weights_of_a_union():
    X = [["in", "Paris"], ["York"]]
    parts = [("words", Templates([(0, 0)])), ("n", WordLengths()), ("same", WordLengths())]
    plain = SequenceUnion(parts).fit_transform(X).matrix.toarray()
    union = SequenceUnion(parts, transformer_weights={"words": 2, "n": 0.5})
    factors = [2, 2, 2, 0.5, 0.5, 1, 1]
    assert np.array_equal(union.fit_transform(X).matrix.toarray(), plain * factors)
    assert np.array_equal(union.transform(X).matrix.toarray(), plain * factors)
    union.set_params(words="drop")
    assert np.array_equal(union.fit_transform(X).matrix, plain[:, 3:] * factors[3:])
    with pytest.raises(ValueError, match="nowhere"):
        SequenceUnion(parts, transformer_weights={"nowhere": 1}).fit(X)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (np.ones((2, 2)), "'b' returned a 2-D array"),
        ([np.ones((2, 2)), np.ones((1, 3))], r"features of 'b': X\[1\] has 3 features"),
        ([np.ones((2, 2)), np.ones((3, 2))], "different numbers of steps"),
    ],
)
def test_union_names_the_transformer_of_bad_features(returned, message):
    class Given:
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return returned

    union = SequenceUnion([("a", WordLengths()), ("b", Given())])
    with pytest.raises(InputError, match=message):
        union.fit_transform([["a", "b"], ["c"]])


# Word forms.


def test_word_forms():
    assert shape("McDonald's-3é") == "XxXxxxxx'x-dx"
    assert short_shape("McDonald's") == "XxXx'x"
    assert [case(w) for w in ("", "a", "A", "Ab", "aB", "ABc", "3D")] == (
        ["none", "lower", "upper", "title", "mixed", "mixed", "upper"]
    )
    assert [digits(w) for w in ("", "7", "1,000", "$5", "a1", "-")] == (
        ["none", "all", "number", "number", "some", "none"]
    )
    assert [punctuation(w) for w in ("", "...", "a.", "a")] == ["none", "all", "some", "none"]
    assert form_function("suffix12")("short") is None
    with pytest.raises(InputError, match="unknown word form 'prefix0'"):
        form_function("prefix0")
