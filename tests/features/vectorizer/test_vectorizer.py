"""SequenceVectorizer on dicts, bags and data frames: results, streams, error messages."""

import pickle
from collections import Counter, OrderedDict
from itertools import groupby

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from seqlab.data import InputError, Sequences
from seqlab.features import SequenceVectorizer
from seqlab.features.vectorizer import _step_reader

words = st.sampled_from(["a", "b", "c", "d=e", "é"])
values = st.one_of(
    words,
    st.booleans(),
    st.none(),
    st.integers(-3, 3),
    st.floats(-2, 2),
    st.lists(words, max_size=3),
    st.dictionaries(words, st.one_of(words, st.booleans(), st.integers(-3, 3)), max_size=2),
)
dicts = st.lists(st.lists(st.dictionaries(words, values, max_size=4), max_size=4), max_size=5)
bags = st.lists(st.lists(st.lists(words, max_size=5), max_size=4), max_size=5)


def plain_features(step, prefix=""):
    """Features of one step, in plain Python."""
    found = Counter()
    if not isinstance(step, dict):
        return Counter(step)
    for name, value in step.items():
        name = prefix + name
        if isinstance(value, str):
            found[f"{name}={value}"] += 1
        elif isinstance(value, dict):
            for inner, weight in plain_features(value, name + ":").items():
                found[inner] += weight
        elif isinstance(value, list | tuple | set):
            for item in value:
                found[f"{name}={item}"] += 1
        elif value:
            found[name] += value
    return found


def as_dicts(vectorizer, sequences):
    return [
        [{name: weight for name, weight in step.items() if weight} for step in sequence]
        for sequence in vectorizer.inverse_transform(sequences)
    ]


@settings(deadline=None)  # the first call compiles
@given(st.one_of(dicts, bags))
def test_agrees_with_plain_python(X):
    vectorizer = SequenceVectorizer()
    sequences = vectorizer.fit_transform(X)
    expected = [[plain_features(step) for step in sequence] for sequence in X]
    assert as_dicts(vectorizer, sequences) == [
        [{k: v for k, v in step.items() if v} for step in sequence] for sequence in expected
    ]
    order = list(dict.fromkeys(k for seq in expected for step in seq for k in step))
    assert vectorizer.get_feature_names_out().tolist() == order
    again = vectorizer.transform(iter(X))
    assert (again.matrix != sequences.matrix).nnz == 0
    assert np.array_equal(again.offsets, sequences.offsets)
    assert sequences.lengths.tolist() == [len(sequence) for sequence in X]


def test_type_and_layout_of_the_result():
    sequences = SequenceVectorizer().fit_transform([[["b", "a", "b"], []], [], [["a"]]])
    assert isinstance(sequences, Sequences)
    assert sequences.matrix.dtype == np.float64
    assert sequences.matrix.indices.dtype == np.int32
    assert sequences.matrix.has_canonical_format
    assert sequences.matrix.toarray().tolist() == [[2, 1], [0, 0], [0, 1]]
    assert sequences.offsets.tolist() == [0, 2, 2, 3]
    assert sequences.feature_names.tolist() == ["b", "a"]


def test_values_of_dicts():
    step = {
        "word": "to",
        "title": True,
        "digit": np.False_,
        "bias": 1,
        "length": np.float32(2.5),
        "zero": 0.0,
        "none": None,
        "tags": ["x", "y", "x"],
        "kinds": ("k",),
        "prev": {"word": "be", "n": 2, "in": {"deep": True}},
    }
    vectorizer = SequenceVectorizer()
    result = vectorizer.inverse_transform(vectorizer.fit_transform([[step]]))
    assert result == [
        [
            {
                "word=to": 1,
                "title": 1,
                "bias": 1,
                "length": 2.5,
                "tags=x": 2,
                "tags=y": 1,
                "kinds=k": 1,
                "prev:word=be": 1,
                "prev:n": 2,
                "prev:in:deep": 1,
            }
        ]
    ]


def test_true_and_numbers_share_the_column_of_the_name():
    X = [[{"a": True}, {"a": 1}, {"a": 1.0}, {"a": 3}, {"a": False}, {"a": 0}, {"a": "1"}]]
    for order in (X, [X[0][::-1]]):
        vectorizer = SequenceVectorizer()
        result = vectorizer.inverse_transform(vectorizer.fit_transform(order))[0]
        expected = [{"a": 1}, {"a": 1}, {"a": 1}, {"a": 3}, {}, {}, {"a=1": 1}]
        assert result in (expected, expected[::-1])


def test_unseen_features_are_ignored():
    vectorizer = SequenceVectorizer().fit([[{"w": "a", "n": 2}]])
    new = vectorizer.transform([[{"w": "b", "n": 5, "m": 3, "t": True}], [{}]])
    assert new.matrix.toarray().tolist() == [[0, 5], [0, 0]]
    assert vectorizer.transform([[["w=a", "w=b"]]]).matrix.toarray().tolist() == [[1, 0]]
    assert vectorizer.transform([]).matrix.shape == (0, 2)


def test_separator():
    vectorizer = SequenceVectorizer(separator="::").fit([[{"w": "a", "t": ["b"]}]])
    assert vectorizer.get_feature_names_out().tolist() == ["w::a", "t::b"]


def test_min_count_counts_steps():
    X = [[["a", "a", "b"], ["c"]], [["c", "b"], ["d"]]]
    vectorizer = SequenceVectorizer(min_count=2)
    sequences = vectorizer.fit_transform(X)
    assert vectorizer.get_feature_names_out().tolist() == ["b", "c"]
    assert sequences.matrix.toarray().tolist() == [[1, 0], [0, 1], [1, 1], [0, 0]]
    assert (vectorizer.transform(X).matrix != sequences.matrix).nnz == 0


def test_data_frames():
    frames = [
        pd.DataFrame({"w": ["a", None], "n": [2, 0], "up": [True, False]}),
        pd.DataFrame({"w": pd.Categorical(["b"]), "n": [0.5]}),
    ]
    vectorizer = SequenceVectorizer()
    result = vectorizer.inverse_transform(vectorizer.fit_transform(frames))
    assert result == [[{"w=a": 1, "n": 2, "up": 1}, {}], [{"w=b": 1, "n": 0.5}]]
    with pytest.raises(InputError, match=r"X\[0\]\[1\]\['n'\] is NaN"):
        vectorizer.fit([pd.DataFrame({"w": ["a", "b"], "n": [1, np.nan]})])


def test_other_containers():
    class Text(str):
        pass

    X = [
        (OrderedDict(w="a"), {"w": Text("b")}),
        np.array([{"w": np.str_("a")}], dtype=object),
        (step for step in [{"w": "b"}]),
    ]
    sequences = SequenceVectorizer().fit_transform(X)
    assert sequences.matrix.toarray().tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]
    bags_ = [[{"a"}, frozenset({"b"})], [["a"], np.array(["b"])]]
    sequences = SequenceVectorizer().fit_transform(bags_)
    assert sequences.matrix.toarray().tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]


def test_chunk_size_does_not_change_the_result(monkeypatch):
    X = [[{"w": str(i % 7), "n": i}, {"w": str(i % 3)}] for i in range(20)]
    whole = SequenceVectorizer().fit_transform(X)
    monkeypatch.setattr(_step_reader, "_SEQUENCES_PER_CHUNK", 3)
    pieces = SequenceVectorizer().fit_transform(iter(X))
    assert (whole.matrix != pieces.matrix).nnz == 0
    assert whole.feature_names.tolist() == pieces.feature_names.tolist()


def test_iterators_are_consumed_in_chunks(monkeypatch):
    monkeypatch.setattr(_step_reader, "_SEQUENCES_PER_CHUNK", 4)
    taken = []

    def stream():
        for i in range(10):
            taken.append(i)
            yield [[str(i)]]
            if i == 8:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SequenceVectorizer().fit(stream())
    assert taken == list(range(9))


REJECTED = [
    ([{"a": "b"}], r"X\[0\] is a dict.*wrap it in a list"),
    (["ab"], r"X\[0\] is a string"),
    ("ab", "X is a string"),
    ([3], r"X\[0\] is a number"),
    ([[{"a": "b"}], ["a"]], r"X\[1\]\[0\] is a string"),
    ([[["a"], ("a", "b")]], r"X\[0\]\[1\] is a tuple.*Templates"),
    ([[["a"]], [["b"], {"a": 1}]], r"X\[1\]\[1\] is a dict but X\[0\]\[0\] is a bag of strings"),
    ([[{"a": 1}], [["b"]]], r"X\[1\]\[0\] is a list but X\[0\]\[0\] is a dict"),
    ([[["a"], ["b", 3]]], r"X\[0\]\[1\] holds a number"),
    ([[["a"], [["b"]]]], r"X\[0\]\[1\] holds a list"),
    ([[["a"]], [[None]]], r"X\[1\]\[0\] holds None"),
    ([[["a"]], np.zeros((1, 2))], r"X\[1\]\[0\] holds a number"),
    ([[{"a": np.nan}]], r"X\[0\]\[0\]\['a'\] is NaN"),
    ([[{"a": 1}, {"b": "c", "a": -np.inf}]], r"X\[0\]\[1\]\['a'\] is infinity"),
    ([[{"a": {"b": np.nan}}]], r"X\[0\]\[0\]\['a'\]\['b'\] is NaN"),
    ([[{"a": [1]}]], r"X\[0\]\[0\]\['a'\] holds a number"),
    ([[{"a": 1j}]], r"X\[0\]\[0\]\['a'\] is a complex number"),
    ([[{"a": object()}]], r"X\[0\]\[0\]\['a'\] is an object"),
    ([[{"a": b"x"}]], r"X\[0\]\[0\]\['a'\] is a bytes object"),
    ([[{1: "x"}]], r"X\[0\]\[0\] has the name 1"),
    ([[{"a": {1: "x"}}]], r"has the name 1"),
]


@pytest.mark.parametrize(("X", "message"), REJECTED)
@pytest.mark.parametrize("fitted", [False, True])
def test_rejected_input(X, message, fitted):
    vectorizer = SequenceVectorizer().fit([[["a", "b"]]])
    with pytest.raises(InputError, match=message):
        vectorizer.transform(X) if fitted else vectorizer.fit(X)


def test_error_places_count_all_chunks(monkeypatch):
    monkeypatch.setattr(_step_reader, "_SEQUENCES_PER_CHUNK", 2)
    with pytest.raises(InputError, match=r"X\[4\]\[0\] holds a number"):
        SequenceVectorizer().fit([[["a"]]] * 4 + [[[1]]])


def test_a_failed_fit_keeps_the_earlier_one():
    vectorizer = SequenceVectorizer().fit([[["a"]]])
    with pytest.raises(InputError):
        vectorizer.fit([[["b", 1]]])
    assert vectorizer.get_feature_names_out().tolist() == ["a"]


def test_scikit_learn_api():
    vectorizer = SequenceVectorizer(separator=":", min_count=2)
    params = {"separator": ":", "min_count": 2, "keep_zeros": False, "n_jobs": None}
    assert clone(vectorizer).get_params() == params
    with pytest.raises(NotFittedError):
        vectorizer.transform([[["a"]]])
    for bad in ({"min_count": 0}, {"separator": 3}, {"keep_zeros": 2}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            SequenceVectorizer(**bad).fit([[["a"]]])
    pipe = make_pipeline(SequenceVectorizer())
    assert pipe.fit_transform([[["a"]]]).shape == (1, 1)
    restored = pickle.loads(pickle.dumps(pipe[0]))
    assert restored.vocabulary_ == pipe[0].vocabulary_
    assert restored.transform([[["a"]]]).matrix.toarray().tolist() == [[1]]


def test_inverse_transform_takes_matrices():
    vectorizer = SequenceVectorizer().fit([[["a", "b"]]])
    assert vectorizer.inverse_transform([np.array([[0, 2.0]])]) == [[{"b": 2}]]
    with pytest.raises(InputError, match=r"X\[1\] has 3 columns but the vocabulary has 2 names"):
        vectorizer.inverse_transform([sp.csr_matrix((0, 2)), sp.csr_matrix((1, 3))])


def test_sequences_may_share_one_iterator():
    rows = [("a", ["x"]), ("a", ["y"]), ("b", ["x"]), ("c", ["z"])]
    groups = ((row for _, row in group) for _, group in groupby(rows, key=lambda row: row[0]))
    sequences = SequenceVectorizer().fit_transform(groups)
    assert sequences.lengths.tolist() == [2, 1, 1]
    assert sequences.matrix.toarray().tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]


def test_the_first_step_of_all_sequences_decides_the_kind(monkeypatch):
    monkeypatch.setattr(_step_reader, "_SEQUENCES_PER_CHUNK", 2)
    X = [[], [], [], [["a"], {"b"}], [["a"]], [{"a": 1}]]
    with pytest.raises(InputError, match=r"X\[5\]\[0\] is a dict but X\[3\]\[0\] is a bag"):
        SequenceVectorizer().fit(X)
    assert SequenceVectorizer().fit_transform(X[:5]).lengths.tolist() == [0, 0, 0, 2, 1]


def test_sets_are_read_in_sorted_order():
    names = [f"f{number}" for number in range(50)]
    for X in ([[set(names)]], [[frozenset(names)]], [[{"a": set(names)}]]):
        found = SequenceVectorizer().fit(X).get_feature_names_out().tolist()
        prefix = "a=" if isinstance(X[0][0], dict) else ""
        assert found == [prefix + name for name in sorted(names)]


def test_sets_that_hold_other_things_than_strings():
    with pytest.raises(InputError, match="a bag may hold only strings"):
        SequenceVectorizer().fit([[{"a", 1}]])
    with pytest.raises(InputError, match="a list may hold only strings"):
        SequenceVectorizer().fit([[{"a": {"b", 1}}]])


def test_integers_beyond_the_range_of_doubles():
    with pytest.raises(InputError, match="infinity"):
        SequenceVectorizer().fit([[{"a": 10**400}]])
