"""Conversion of every accepted form of X, and the errors for what is not accepted."""

import gc
import weakref

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from seqlab.data import InputError, Sequences
from seqlab.data.convert import Layout, as_sequences, frame_records
from seqlab.features import SequenceVectorizer

A = np.arange(6.0).reshape(3, 2)
B = np.array([[7.0, 8.0]])


class OnlyAnArray:
    def __init__(self, data):
        self.data = data

    def __array__(self, dtype=None, copy=None):
        return np.array(self.data, dtype=dtype)


def frame(values, columns=("a", "b")):
    return pd.DataFrame(values, columns=list(columns))


LIST_FORMS = {
    "arrays": [A, B],
    "tuple": (A, B),
    "lists": [A.tolist(), B.tolist()],
    "rows of arrays": [list(A), list(B)],
    "integers": [A.astype(int), B.astype(np.uint8)],
    "float32": [A.astype(np.float32), B.astype(np.float32)],
    "objects": [A.astype(object), B.astype(object)],
    "fortran": [np.asfortranarray(A), B],
    "csr": [sp.csr_matrix(A), sp.csr_matrix(B)],
    "sparse arrays": [sp.coo_array(A), sp.csc_array(B)],
    "dense and sparse": [A, sp.csr_matrix(B)],
    "frames": [frame(A), frame(B)],
    "Sequences": Sequences(np.vstack([A, B]), [0, 3, 4]),
}


def object_array(items):
    array = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):
        array[i] = item
    return array


def dense(sequences):
    matrix = sequences.matrix
    return matrix.toarray() if sp.issparse(matrix) else matrix


@pytest.mark.parametrize("name", LIST_FORMS)
def test_list_forms_agree(name):
    sequences, layout = as_sequences(LIST_FORMS[name])
    assert np.array_equal(dense(sequences), np.vstack([A, B]))
    assert sequences.offsets.tolist() == [0, 3, 4]
    assert layout == Layout(is_list=True)


def test_object_array_and_iterators():
    for X in (object_array([A, B]), iter([A, B]), (x for x in [A.tolist(), B])):
        sequences, layout = as_sequences(X)
        assert np.array_equal(sequences.matrix, np.vstack([A, B]))
        assert layout.is_list


def test_a_3d_array_holds_sequences_of_equal_length():
    sequences, layout = as_sequences(np.arange(24).reshape(2, 3, 4))
    assert sequences.offsets.tolist() == [0, 3, 6]
    assert sequences.n_features == 4
    assert layout.is_list


@pytest.mark.parametrize(
    "X", [A, A.tolist(), list(A), sp.csc_matrix(A), frame(A), OnlyAnArray(A), A.astype(object)]
)
def test_one_matrix_is_one_sequence(X):
    sequences, layout = as_sequences(X)
    assert np.array_equal(dense(sequences), A)
    assert sequences.offsets.tolist() == [0, 3]
    assert not layout.is_list
    sequences, layout = as_sequences(X, lengths=[2, 0, 1])
    assert sequences.offsets.tolist() == [0, 2, 2, 3]
    assert not layout.is_list


def test_canonical_input_is_not_copied():
    assert np.shares_memory(as_sequences(A)[0].matrix, A)
    given_ = Sequences(A, [0, 3])
    assert as_sequences(given_)[0] is given_


def test_inputs_are_not_modified():
    matrix = sp.csr_matrix((np.ones(3), [1, 0, 0], [0, 3]), shape=(1, 2))
    before = matrix.indices.copy()
    as_sequences([matrix])
    assert np.array_equal(matrix.indices, before)


def test_feature_names_of_frames():
    names = as_sequences([frame(A), frame(B)])[0].feature_names
    assert names.tolist() == ["a", "b"]
    assert as_sequences(frame(A))[0].feature_names.tolist() == ["a", "b"]
    assert as_sequences(frame(A, [0, 1]))[0].feature_names is None


def test_nullable_and_object_columns_are_numbers():
    mixed = pd.DataFrame(
        {
            "a": pd.array([1, 2], dtype="Int64"),
            "b": [True, False],
            "c": np.array([0.5, 2], dtype=object),
        }
    )
    assert as_sequences(mixed)[0].matrix.tolist() == [[1, 1, 0.5], [2, 0, 2]]
    with pytest.raises(InputError, match="NaN"):
        as_sequences(pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}))


def test_zero_length_sequences():
    sequences, _ = as_sequences([[], A, np.zeros((0, 2)), sp.csr_matrix((0, 2))])
    assert sequences.lengths.tolist() == [0, 3, 0, 0]
    assert sequences.n_features == 2
    assert as_sequences([[], []])[0].lengths.tolist() == [0, 0]
    assert as_sequences(np.zeros((0, 3)))[0].n_features == 3


SYMBOLIC = [
    [[{"w": "a"}, {"w": "b", "n": 2}], [{"w": "a"}]],
    [[["w=a"], ["w=b", "n"]], [["w=a"]]],
    [[{"w=a"}, {"w=b"}], [frozenset({"w=a"})]],
    [[[], ["w=a"]], [["w=b"]]],
    [[], [["w=a"], ["w=b"], []]],
    [pd.DataFrame({"w": ["a", "b"]}), pd.DataFrame({"w": ["a"]})],
    [pd.DataFrame({"w": pd.Categorical(["a", "b"])}), pd.DataFrame({"w": ["a"]})],
]


@pytest.mark.parametrize("X", SYMBOLIC)
def test_symbolic_goes_through_the_vectorizer(X):
    vectorizer = SequenceVectorizer()
    for source in (X, iter(X), object_array(X)):
        sequences, layout = as_sequences(source, vectorizer=vectorizer, fit_vectorizer=True)
        assert layout == Layout(is_list=True, symbolic=True)
        assert sequences.n_steps == 3
        again, _ = as_sequences(X, vectorizer=vectorizer)
        assert (again.matrix != sequences.matrix).nnz == 0
    with pytest.raises(InputError, match="SequenceVectorizer"):
        as_sequences(X)


def test_stacked_symbolic_with_lengths():
    flat = [{"w": "a"}, {"w": "b"}, {"w": "a"}]
    for X in (flat, pd.DataFrame(flat)):
        vectorizer = SequenceVectorizer()
        sequences, layout = as_sequences(X, [1, 2], vectorizer=vectorizer, fit_vectorizer=True)
        assert sequences.lengths.tolist() == [1, 2]
        assert layout == Layout(is_list=False, symbolic=True)
        assert dense(sequences).tolist() == [[1, 0], [0, 1], [1, 0]]
    one, layout = as_sequences(pd.DataFrame(flat), vectorizer=vectorizer)
    assert one.lengths.tolist() == [3]
    assert not layout.is_list


@pytest.mark.parametrize("kind", [list, set, frozenset, np.array])
def test_stacked_bags_with_lengths(kind):
    flat = [kind(bag) for bag in (["w=a"], ["w=b", "n"], ["w=a"])]
    nested = [flat[:1], flat[1:]]
    expected = SequenceVectorizer().fit_transform(nested)
    for X in (flat, iter(flat), object_array(flat)):
        vectorizer = SequenceVectorizer()
        sequences, layout = as_sequences(X, [1, 2], vectorizer=vectorizer, fit_vectorizer=True)
        assert layout == Layout(is_list=False, symbolic=True)
        assert sequences.lengths.tolist() == [1, 2]
        assert sequences.matrix.sum() == expected.matrix.sum()
    with pytest.raises(InputError, match="SequenceVectorizer"):
        as_sequences(flat, [1, 2])


def test_stacked_steps_that_are_empty_or_not_bags():
    vectorizer = SequenceVectorizer().fit([[["a"]]])
    sequences, _ = as_sequences([[], ["a"], []], [2, 1], vectorizer=vectorizer)
    assert dense(sequences).tolist() == [[0], [1], [0]]
    sequences, layout = as_sequences([[], []], [1, 1], vectorizer=vectorizer)
    assert (sequences.n_steps, layout.is_list) == (2, False)
    for X, message in [
        ([("to", "TO")], r"X\[0\] is a tuple.*Templates"),
        (["to"], r"X\[0\] is a string"),
        ([[["a"]]], "lengths= is for one stacked matrix"),
        ([[], [["a"]]], "lengths= is for one stacked matrix"),
    ]:
        with pytest.raises(InputError, match=message):
            as_sequences(X, [1], vectorizer=vectorizer)


def test_if_all_sequences_are_empty_the_number_of_features_is_unknown():
    for X in ([[]], [[], []], iter([[]]), [np.zeros((0, 0)), []]):
        sequences, layout = as_sequences(X)
        assert layout == Layout(is_list=True, empty=True)
        assert sequences.n_steps == 0
    for X in ([np.zeros((0, 2))], [[], A], [[], np.zeros((0, 2))], np.zeros((0, 3)), A):
        assert not as_sequences(X)[1].empty
    vectorizer = SequenceVectorizer().fit([[["a"]]])
    sequences, layout = as_sequences([[]], vectorizer=vectorizer)
    assert layout == Layout(is_list=True, symbolic=True)
    assert sequences.n_features == 1


def test_frames_with_text_and_two_columns_of_one_name():
    text = pd.DataFrame([["x", "y"]], columns=["a", "b"])
    twice = pd.DataFrame([["x", "y"]], columns=["a", "a"])
    with pytest.raises(InputError, match=r"X\[1\] has two columns named 'a'"):
        as_sequences([text, twice], vectorizer=SequenceVectorizer(), fit_vectorizer=True)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_matrix])
def test_sparse_indices_out_of_range_are_named(form):
    invalid = form(np.eye(2))
    invalid.indices[1] = 99
    with pytest.raises(
        InputError, match=r"X\[1\].* has the (row|column) index 99, but there are 2"
    ):
        as_sequences([sp.csr_matrix(np.eye(2)), invalid])
    with pytest.raises(InputError, match=r"X.* has the (row|column) index 99"):
        as_sequences(invalid, lengths=[1, 1])


def test_repeated_sparse_entries_are_summed():
    twice = sp.csr_matrix((np.ones(3), [1, 0, 1], [0, 3]), shape=(1, 2))
    for X in ([twice], twice):
        matrix = as_sequences(X)[0].matrix
        assert matrix.nnz == 2
        assert matrix.toarray().tolist() == [[1, 2]]
    assert twice.nnz == 3


def test_an_empty_bag_is_symbolic_if_there_is_a_vectorizer():
    vectorizer = SequenceVectorizer().fit([[["a"]]])
    sequences, _ = as_sequences([[[]], []], vectorizer=vectorizer)
    assert sequences.lengths.tolist() == [1, 0]
    assert sequences.n_features == 1


def test_frame_records():
    data = pd.DataFrame({"w": ["a", None], "n": [1, 2], "t": [True, False]})
    assert frame_records(data) == [
        {"w": "a", "n": 1.0, "t": True},
        {"w": None, "n": 2.0, "t": False},
    ]
    assert frame_records(pd.DataFrame(index=[0, 1])) == [{}, {}]
    with pytest.raises(InputError, match="different names"):
        frame_records(pd.DataFrame([["a", "b"]], columns=["w", "w"]))


REJECTED = [
    ([], "X is empty"),
    (iter([]), "X is empty"),
    ("text", "X is a string, but X must be a list of sequences"),
    (3.0, "Expected 2D array|X is a number"),
    (None, "X is None"),
    ({"w": 1}, "X is a dict"),
    (["to be", "or not"], r"X\[0\] is a string, but a sequence is a list of steps"),
    ([{"w": "a"}, {"w": "b"}], r"X\[0\] is a dict.*wrap a single sequence in a list"),
    ([[("to", "TO"), ("be", "VB")]], r"X\[0\]\[0\] is a tuple.*\(word, pos\).*Templates"),
    ([[], [("to", "TO")]], r"X\[1\]\[0\] is a tuple"),
    ([[(1.0, 2.0)]], r"X\[0\]\[0\] is a tuple"),
    ([["to", "be"]], r"X\[0\]\[0\] is a string"),
    ([[None]], r"X\[0\]\[0\] is None"),
    ([[[None]]], r"X\[0\]\[0\] holds None"),
    ([1.0, 2.0], "Expected 2D array, got 1D array.*Reshape your data"),
    (np.arange(3.0), "Expected 2D array, got 1D array.*Reshape your data"),
    (np.array(3.0), "Expected 2D array, got 0D array"),
    (np.zeros((1, 1, 1, 1)), "got 4D array"),
    ([np.zeros((1, 1, 1))], r"X\[0\] is a 3-D array"),
    ([A, np.zeros((2, 3))], r"X\[1\] has 3 features but X\[0\] has 2"),
    ([[], A, sp.csr_matrix((2, 3))], r"X\[2\] has 3 features but X\[1\] has 2"),
    ([[[1, 2], [3]]], r"X\[0\]\[1\] has 1 features but X\[0\]\[0\] has 2"),
    ([[1, 2], [3]], r"X\[1\] has 1 features but X\[0\] has 2"),
    ([[[1, 2]], [{"a": 1}]], r"X\[1\]\[0\] is a dict, but earlier steps are rows of numbers"),
    ([A, [{"a": 1}]], r"X\[1\]\[0\] is a dict"),
    ([A, {"a": 1}], r"X\[1\] is a dict"),
    ([A, 3], r"X\[1\] is a number"),
    ([[[1, 2]], [["a", "b"]]], r"X\[1\]\[0\] holds a string as feature 0, but numbers are"),
    ([[[1, 2], [1, "b"]]], r"X\[0\]\[1\] holds a string as feature 1, but numbers are"),
    ([[1, "b"], [1, 2]], r"X\[0\] holds a string as feature 1"),
    ([[[1, [2, 3]]]], r"X\[0\]\[0\] holds a list as feature 1"),
    ([np.array([["a", "b"]])], r"X\[0\] is an array of dtype <U1"),
    ([np.array([[1.0, "b"]], dtype=object)], r"X\[0\]\[0\] feature 1 is a string"),
    ([A, [[1, 2], [10**400, 2]]], r"X\[1\]\[1\] feature 0 is a number too large for a float"),
    ([[1, 2], [3, 10**400]], r"X\[1\] feature 1 is a number too large"),
    (np.array([[[1, -(10**400)]]], dtype=object), r"X\[0\]\[0\] feature 1 is a number too large"),
    ([frame(A), frame([[1, 10**400]])], r"X\[1\]\[0\] feature 1 is a number too large"),
    ([[[1, {}]]], r"X\[0\]\[0\] feature 1 is not a number"),
    ([[[1, None]]], r"contains NaN: X\[0\] position 0 feature 1"),
    (frame(A, "aa"), "X has two columns named 'a'.*different names"),
    ([frame(A), frame(A, "bb")], r"X\[1\] has two columns named 'b'|X\[1\] has columns"),
    ([frame(A, "aa")], r"X\[0\] has two columns named 'a'"),
    (frame([["x", "y"]], "aa"), "X has two columns named 'a'"),
    ([pd.Series([1.0, 2.0]), pd.Series([3.0])], r"X\[0\] is a pandas Series, .* 2-D table.*wrap"),
    ([pd.Series(["to", "be"])], r"X\[0\] is a pandas Series, .* 2-D table"),
    ([A, pd.Series([1.0, 2.0])], r"X\[1\] is a pandas Series"),
    ([np.array(1.0)], r"X\[0\] is a number"),
    ([frame(A), A], r"X\[1\] is not a data frame but X\[0\] is one"),
    ([A, frame(A)], r"X\[1\] is a data frame but X\[0\] is not:"),
    ([frame(A), frame(B, "ba")], r"X\[1\] has columns \['b', 'a'\] but X\[0\] has \['a', 'b'\]"),
    ([frame(A), pd.DataFrame({"a": ["x"], "b": ["y"]})], r"X\[1\] is a data frame with text"),
    (np.zeros((2, 0)), r"0 feature\(s\) \(shape=\(2, 0\)\) while a minimum of 1 is required"),
    ([[[[1.0]]]], r"X\[0\]\[0\] holds a list"),
    (A.astype(complex), "Complex data not supported"),
    ([A, A.astype(complex)], r"Complex data not supported: X\[1\]"),
    ([[[1j]]], "Complex data not supported"),
    (sp.csr_matrix(A.astype(complex)), "Complex data not supported"),
    (pd.DataFrame({"a": [1j]}), "Complex data not supported"),
]


@pytest.mark.parametrize(("X", "message"), REJECTED)
def test_rejected(X, message):
    with pytest.raises(InputError, match=message):
        as_sequences(X)


def test_a_value_that_cannot_be_a_number_is_a_type_error():
    X = A.astype(object)
    X[0, 0] = {"foo": "bar"}
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        as_sequences(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_nan_and_infinity_are_named_by_position(bad, form):
    what = "NaN" if np.isnan(bad) else "infinity"
    invalid = A.copy()
    invalid[2, 1] = bad
    with pytest.raises(InputError, match=rf"contains {what}: X\[1\] position 2 feature 1"):
        as_sequences([form(A), form(invalid)])
    with pytest.raises(InputError, match=rf"contains {what}: row 2 feature 1"):
        as_sequences(form(invalid))
    assert as_sequences(form(invalid), check_finite=False)[0].n_steps == 3


def test_large_finite_numbers_are_accepted():
    X = np.full((3, 2), np.finfo(float).max)
    assert np.array_equal(as_sequences(X)[0].matrix, X)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (
            [60, 60],
            "lengths sum to 120 but X has 100 rows; under cross-validation give X",
        ),
        ([101, -1], r"lengths\[1\] is negative"),
        ([50.0, 50.0], "lengths must be a list of integers"),
        ([[50, 50]], "lengths must be a list of integers"),
        ([], "lengths sum to 0 but X has 100 rows"),
        (8, "lengths must be a list of integers, one per sequence, got 8"),
        ("64", "lengths must be a list of integers, one per sequence, got '64'"),
        ({100}, "lengths must be a list of integers"),
        (np.array(100), "lengths must be a list of integers"),
        ([50, 50.5], r"lengths\[1\] is 50.5"),
        (np.array([50.0, 49.5]), r"lengths\[1\] is 49.5"),
        ([50, "50"], r"lengths\[1\] is '50'"),
        ([100, None], r"lengths\[1\] is None"),
        ([True] * 100, r"lengths\[0\] is True"),
        ([[50], [25, 25]], "lengths must be a list of integers"),
        ([2**62] * 4 + [100], "lengths sum to 18446744073709551716"),
    ],
)
def test_lengths_are_checked(lengths, message):
    with pytest.raises(InputError, match=message):
        as_sequences(np.zeros((100, 2)), lengths)


@pytest.mark.parametrize("X", [[A, B], Sequences(A, [0, 3]), np.zeros((2, 3, 4)), [[{"a": 1}]]])
def test_lengths_are_for_stacked_input(X):
    with pytest.raises(InputError, match="lengths= is for one stacked matrix"):
        as_sequences(X, lengths=[1])


def test_sequences_of_an_iterator_are_not_kept():
    class Row(list):
        pass  # unlike a list, it supports weak references

    alive = []

    def stream():
        for _ in range(50):
            row = Row([1.0, 2.0])
            alive.append(weakref.ref(row))
            yield [row]
            del row
            gc.collect()
            assert sum(ref() is not None for ref in alive) <= 3

    gc.freeze()  # collect only what this test creates: the objects of all other tests take long
    try:
        assert as_sequences(stream())[0].n_steps == 50
    finally:
        gc.unfreeze()


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=6).flatmap(
        lambda sizes: st.tuples(
            st.just(sizes), arrays(float, (sum(sizes), 3), elements=st.floats(-9, 9))
        )
    )
)
def test_list_equals_stacked_and_restores(case):
    sizes, matrix = case
    cuts = np.cumsum(sizes)[:-1]
    from_list, as_list = as_sequences(np.split(matrix, cuts))
    stacked, as_stacked = as_sequences(matrix, sizes)
    assert np.array_equal(from_list.matrix, stacked.matrix)
    assert np.array_equal(from_list.offsets, stacked.offsets)
    result = matrix[:, 0]
    assert as_stacked.restore(result, stacked.offsets) is result
    pieces = as_list.restore(result, from_list.offsets)
    assert [len(piece) for piece in pieces] == sizes
    assert np.array_equal(np.concatenate(pieces), result)
