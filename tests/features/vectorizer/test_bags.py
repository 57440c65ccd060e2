"""SequenceVectorizer on bags of strings: compared with a plain Python dict."""

import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seqlab import load, save
from seqlab.data.errors import InputError
from seqlab.features import SequenceVectorizer
from seqlab.features.vectorizer import _step_reader, _step_rows

any_text = st.text(st.characters(exclude_categories=()), max_size=9)  # lone surrogates included
few_texts = st.text(st.sampled_from("ab\0é"), max_size=3)
some_bag = st.lists(st.one_of(any_text, few_texts), max_size=6)
data = st.lists(st.lists(some_bag, max_size=4), max_size=5)


class Text(str):
    """A subclass of str."""


def matrix_by_dict(X, index, learn):
    """Matrix of X, built with a Python dict and SciPy."""
    steps = [step for sequence in X for step in sequence]
    if learn:
        for step in steps:
            for name in step:
                index.setdefault(name, len(index))
    found = [[index[name] for name in step if name in index] for step in steps]
    indices = [column for columns in found for column in columns]
    indptr = np.cumsum([0, *map(len, found)])
    matrix = sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(steps), len(index)))
    matrix.sum_duplicates()
    return matrix


def assert_same(sequences, X, expected):
    assert sequences.matrix.shape == expected.shape
    assert sequences.matrix.indptr.tolist() == expected.indptr.tolist()
    assert sequences.matrix.indices.tolist() == expected.indices.tolist()
    assert sequences.matrix.data.tolist() == expected.data.tolist()
    assert sequences.lengths.tolist() == [len(sequence) for sequence in X]


@settings(deadline=None)  # the first call compiles
@given(data, data, st.sampled_from([1, 3, 256]), st.sampled_from([1, 2, 1024]))
@example([[["a\0b"], ["a", "b"]], [[""], [], ["\0", ""]]], [[["a", "b"], ["a\0b"]]], 256, 1024)
@example([[["\ud800", "\udc00"], ["\ud800\udc00", "\U00010000"]]], [[["\udc00"]]], 256, 1024)
def test_agrees_with_a_dict(X, new, n_sequences, n_steps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_step_reader, "_SEQUENCES_PER_CHUNK", n_sequences)
        patch.setattr(_step_rows, "_STEPS_PER_LOOKUP", n_steps)
        index = {}
        vectorizer = SequenceVectorizer()
        assert_same(vectorizer.fit_transform(iter(X)), X, matrix_by_dict(X, index, learn=True))
        again = pickle.loads(pickle.dumps(vectorizer))
        for fitted in (vectorizer, again):
            assert_same(fitted.transform(new), new, matrix_by_dict(new, index, learn=False))
            assert_same(fitted.transform(iter(X)), X, matrix_by_dict(X, index, learn=False))
            assert fitted.get_feature_names_out().tolist() == list(index)


@settings(deadline=None)
@given(data, st.integers(2, 3))
def test_min_count_agrees_with_a_dict(X, min_count):
    index = {}
    matrix = matrix_by_dict(X, index, learn=True)
    kept = np.flatnonzero(np.bincount(matrix.indices, minlength=len(index)) >= min_count)
    vectorizer = SequenceVectorizer(min_count=min_count)
    assert_same(vectorizer.fit_transform(X), X, matrix[:, kept])
    assert_same(vectorizer.transform(X), X, matrix[:, kept])
    assert vectorizer.get_feature_names_out().tolist() == [list(index)[k] for k in kept]


def test_bags_of_other_types():
    vectorizer = SequenceVectorizer().fit([[["a", "b\0c", "é"]]])
    for bag in (
        [Text("a"), Text("b\0c"), np.str_("é")],
        {"a", "b\0c", "é"},
        frozenset({"a", "b\0c", "é"}),
        dict.fromkeys(["a", "b\0c", "é"]).keys(),
        np.array(["a", "b\0c", "é"], dtype=object),
    ):
        assert vectorizer.transform([[bag]]).matrix.toarray().tolist() == [[1, 1, 1]], bag
        assert sorted(SequenceVectorizer().fit([[bag]]).vocabulary_) == ["a", "b\0c", "é"]


def test_dicts_and_bags_share_one_vocabulary():
    by_bags = SequenceVectorizer().fit([[["w=a", "t"]]])
    by_dicts = SequenceVectorizer().fit([[{"w": "a", "t": True}]])
    assert by_bags.vocabulary_ == by_dicts.vocabulary_
    for vectorizer in (by_bags, by_dicts):
        for X in ([[{"w": "a", "t": 2, "v": 1}]], [[["t", "t", "w=a", "w=b"]]]):
            assert vectorizer.transform(X).matrix.toarray().tolist() == [[1, 2]]


def test_names_are_built_only_on_request(tmp_path):
    X = [[["a", "b"], ["c"]], [["é"]]]
    vectorizer = SequenceVectorizer()
    sequences = vectorizer.fit_transform(X)
    save(vectorizer, tmp_path / "model")
    loaded = load(tmp_path / "model")
    new = loaded.transform(X)[[0]]
    for vocabulary in (vectorizer.vocabulary_, loaded.vocabulary_):
        assert vocabulary._names is None
        assert "index" not in vars(vocabulary)
    assert new.feature_names.tolist() == sequences.feature_names.tolist() == ["a", "b", "c", "é"]
    assert pickle.loads(pickle.dumps(sequences)).feature_names.tolist() == ["a", "b", "c", "é"]


def test_the_pickled_state_does_not_contain_the_hash_table():
    vectorizer = SequenceVectorizer().fit([[[f"name {i}" for i in range(10_000)]]])
    vectorizer.transform([[["name 3"]]])
    text = sum(len(f"name {i}") for i in range(10_000))
    assert len(pickle.dumps(vectorizer)) < text + 8 * 10_001 + 2_000


def test_threads_can_share_a_vectorizer():
    X = [[[f"w={i % 700}", f"p={i % 13}", "bias"] for i in range(200)] for _ in range(20)]
    expected = SequenceVectorizer().fit_transform(X).matrix
    fresh = pickle.loads(pickle.dumps(SequenceVectorizer().fit(X)))  # has no hash table yet
    results = []
    barrier = threading.Barrier(4)

    def work():
        barrier.wait()
        results.append(fresh.transform(X).matrix)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all((found != expected).nnz == 0 for found in results)


def test_a_bag_of_100_000_strings():
    names = [f"w={i}" for i in range(100_000)]
    vectorizer = SequenceVectorizer()
    fitted = vectorizer.fit_transform([[names], [names[::-1] + names]])
    assert fitted.matrix.data.tolist() == [1.0] * 100_000 + [2.0] * 100_000
    assert fitted.matrix.has_canonical_format


def test_threads_number_strings_in_the_same_order():
    random = np.random.default_rng(0)
    # More batches than may wait for the second thread.
    X = [[[f"w={k}" for k in random.zipf(1.3, 5)] for _ in range(40)] for _ in range(700)]
    one, two = SequenceVectorizer(), SequenceVectorizer(n_jobs=2)
    expected, found = one.fit_transform(X), two.fit_transform(X)
    assert two.get_feature_names_out().tolist() == one.get_feature_names_out().tolist()
    assert (expected.matrix != found.matrix).nnz == 0


def test_threads_report_an_entry_that_is_not_a_string():
    X = [[["a", "b"]]] * 300 + [[["c", 7]]]
    with pytest.raises(InputError, match=r"X\[300\]\[0\] holds a number"):
        SequenceVectorizer(n_jobs=2).fit(X)
