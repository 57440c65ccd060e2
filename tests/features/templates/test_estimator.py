"""Templates as an estimator: forms of input, copies and files, threads, bad input."""

import copy
import pickle
import re
import threading
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from seqlab import load, save
from seqlab.data import InputError, Sequences
from seqlab.features import Templates

SENTENCES = [
    [("He", "PRP"), ("reckons", "VBZ"), ("the", "DT"), ("deficit", "NN")],
    [("Go", "VB")],
    [],
    [("the", "DT"), ("the", "DT")],
]


# Input.


def test_forms_of_input_give_the_same_matrix():
    pandas = pytest.importorskip("pandas")
    model = Templates.chunking("crfpp").fit(SENTENCES)
    expected = model.transform(SENTENCES[:2]).matrix
    token = namedtuple("token", "form tag")
    forms = {
        "lists": [[list(t) for t in s] for s in SENTENCES[:2]],
        "named": [[token(*t) for t in s] for s in SENTENCES[:2]],
        "arrays": [np.array(s) for s in SENTENCES[:2]],
        "frames": [pandas.DataFrame(s, columns=["word", "pos"]) for s in SENTENCES[:2]],
        "generator": (s for s in SENTENCES[:2]),
        "object array": np.array([*SENTENCES[:2], []], dtype=object)[:2],
        "wider": [[(*t, "B-NP") for t in s] for s in SENTENCES[:2]],
    }
    for name, data in forms.items():
        assert (model.transform(data).matrix != expected).nnz == 0, name


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    token = namedtuple("token", "form tag")
    template = [(0, 1)]
    frame = pandas.DataFrame(SENTENCES[0], columns=["surface", "upos"])
    assert Templates(template).fit([frame]).column_names_ == ("surface", "upos")
    assert Templates(template).fit([[token("a", "b")]]).column_names_ == ("form", "tag")
    named = Templates(template, columns=["w", "p"]).fit(SENTENCES)
    assert named.get_feature_names_out()[0] == "p[0]=PRP"


TOKEN_BLOCKS = "seqlab.features._token_columns.token_blocks.__kwdefaults__"


@pytest.mark.parametrize("block_tokens", [1, 2, 3, 1000])
def test_block_size_does_not_change_the_result(monkeypatch, block_tokens):
    whole = Templates.default().fit(SENTENCES)
    expected = whole.transform(SENTENCES)
    monkeypatch.setattr(TOKEN_BLOCKS, {"block_tokens": block_tokens})
    split = Templates.default()
    fitted = split.fit_transform(iter(SENTENCES))
    assert split.get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()
    for got in (fitted, split.transform(iter(SENTENCES)), whole.transform(SENTENCES)):
        assert (got.matrix != expected.matrix).nnz == 0
        assert got.offsets.tolist() == expected.offsets.tolist()


def test_number_of_remembered_values_is_bounded(monkeypatch):
    monkeypatch.setattr("seqlab.features.templates.templates._MAX_REMEMBERED_VALUES", 3)
    model = Templates.chunking("crfpp").fit(SENTENCES)
    expected = model.transform(SENTENCES).matrix
    for k in range(5):
        model.transform([[(f"w{k}", "NN")]])
    assert model._lookup.reader.n_values <= 7
    assert (model.transform(SENTENCES).matrix != expected).nnz == 0


def test_empty_input_to_transform():
    model = Templates.default().fit(SENTENCES)
    assert model.transform([]).shape == (0, model.n_features_out_)
    assert model.transform([[], []]).lengths.tolist() == [0, 0]


# Copies, files and threads.


def test_pickle_and_clone():
    model = Templates.default(min_count=2).fit(SENTENCES)
    expected = model.transform(SENTENCES)
    restored = pickle.loads(pickle.dumps(model))
    assert (restored.transform(SENTENCES).matrix != expected.matrix).nnz == 0
    assert restored.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()
    unfitted = clone(model)
    assert unfitted.min_count == 2
    assert not hasattr(unfitted, "vocabularies_")


def test_skops_round_trip():
    skops_io = pytest.importorskip("skops.io")
    lines = ["U:%x[0,0]", "U1:%x[0,0]/%x[0,1]", "B1:%x[0,0]"]
    for model in (
        Templates(lines),
        Templates.chunking(),
        Templates([(0, 0, "shape"), [(0, 0), (0, 1)]]),
    ):
        model.fit(SENTENCES)
        data = skops_io.dumps(model)
        restored = skops_io.loads(data, trusted=skops_io.get_untrusted_types(data=data))
        assert (restored.transform(SENTENCES).matrix != model.transform(SENTENCES).matrix).nnz == 0


def test_set_params_does_not_change_a_fitted_model():
    model = Templates(["U:%x[-1,0]"]).fit(SENTENCES)
    expected = model.transform(SENTENCES).matrix
    model.set_params(templates=["U:%x[1,0]"], boundary="skip")
    restored = pickle.loads(pickle.dumps(model))
    assert (restored.transform(SENTENCES).matrix != expected).nnz == 0


def test_pipeline_and_unfitted():
    pipeline = make_pipeline(Templates.chunking("crfpp"))
    assert isinstance(pipeline.fit_transform(SENTENCES), Sequences)
    assert len(pipeline.get_feature_names_out()) == pipeline[-1].n_features_out_
    with pytest.raises(ValueError, match="not fitted"):
        Templates().transform(SENTENCES)


def test_threads_can_share_a_model():
    model = Templates.default().fit(SENTENCES)
    expected = model.transform(SENTENCES).matrix
    restored = pickle.loads(pickle.dumps(model))
    data = [[*SENTENCES, [(f"new{k}", "X")]] for k in range(20)]
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(restored.transform, data):
            assert (result.matrix[: expected.shape[0]] != expected).nnz == 0


def through_file(model, folder):
    save(model, folder / "model.seqlab")
    return load(folder / "model.seqlab")


COPIES = {
    "another object": lambda model, folder: Templates.default().fit(SENTENCES),
    "clone": lambda model, folder: clone(model).fit(SENTENCES),
    "copy": lambda model, folder: copy.copy(model),
    "deep copy": lambda model, folder: copy.deepcopy(model),
    "pickle": lambda model, folder: pickle.loads(pickle.dumps(model)),
    "file": through_file,
}


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_models_do_not_wait_for_each_other(make, tmp_path):
    model = Templates.default().fit(SENTENCES)
    expected = model.transform(SENTENCES).matrix
    is_reading, may_continue = threading.Event(), threading.Event()
    read = model._lookup.reader.read

    def read_later(block):
        is_reading.set()
        assert may_continue.wait(60)
        return read(block)

    model._lookup.reader.read = read_later
    with ThreadPoolExecutor(2) as pool:
        try:
            blocked = pool.submit(model.transform, SENTENCES)
            assert is_reading.wait(60)
            other = make(model, tmp_path)
            result = pool.submit(other.transform, SENTENCES).result(timeout=60)
            assert not blocked.done()
        finally:
            may_continue.set()
        assert (result.matrix != expected).nnz == 0
        assert (blocked.result().matrix != expected).nnz == 0


# Bad input.


def test_missing_column():
    message = (
        'template "U03:%x[0,4]" (templates[1]) reads column 4 but tokens have 2 columns: '
        "word(0), pos(1)"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        Templates(["U:%x[0,0]", "U03:%x[0,4]"]).fit(SENTENCES)
    with pytest.raises(InputError, match="reads column 'tag' but tokens have 2 columns"):
        Templates([(0, "tag")]).fit(SENTENCES)
    model = Templates(["U:%x[0,0]", "U03:%x[0,1]"]).fit(SENTENCES)
    with pytest.raises(InputError, match=r"X\[1\]\[0\] has 1 column, but .*reads column 1 \(pos\)"):
        model.transform([[], ["a"]][:2])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[("a", "b"), ("c",)]], r"X\[0\]\[1\] has 1 columns but X\[0\]\[0\] has 2"),
        ([[("a", "b")], [("a", "b"), "c"]], r"X\[1\]\[1\] is a string but other tokens"),
        ([[("a", 1.5)]], r"column 1 of X\[0\]\[0\] is 1.5 \(float\), not a string"),
        ([[{"word": "a"}]], r"X\[0\]\[0\] is a dict, but a token is .*SequenceVectorizer"),
        ([[3]], r"X\[0\]\[0\] is a number; a token is"),
        ([("a", "b")], r"X\[0\] is a tuple of strings, which is one token; .*wrap"),
        (["a sentence"], r"X\[0\] is a string"),
        ("a sentence", "X is a string"),
        ([[], []], "holds no tokens"),
        ([], "holds no tokens"),
        ([7], r"X\[0\] is a number"),
    ],
)
def test_bad_tokens(data, message):
    with pytest.raises(InputError, match=message):
        Templates(["U:%x[0,0]/%x[0,1]"] if "column 1" in message else ["U:%x[0,0]"]).fit(data)


def test_widths_that_differ_between_blocks(monkeypatch):
    monkeypatch.setattr(TOKEN_BLOCKS, {"block_tokens": 1})
    with pytest.raises(InputError, match=r"X\[1\]\[0\] has 1 columns but X\[0\]\[0\] has 2"):
        Templates(["U:%x[0,0]"]).fit([[("a", "b")], ["c"]])


def test_missing_values_of_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"word": ["a", None]})
    with pytest.raises(InputError, match=r"X\[0\] has missing values in column 'word'"):
        Templates([(0, "word")]).fit([frame])


@pytest.mark.parametrize(
    "params",
    [{"min_count": 0}, {"boundary": "none"}, {"templates": "chunk.tpl"}, {"templates": []}],
)
def test_bad_parameters(params):
    with pytest.raises(ValueError):
        Templates(**params).fit(SENTENCES)


def test_wrong_number_of_names():
    with pytest.raises(InputError, match="columns has 3 names but tokens have 2"):
        Templates([(0, 0)], columns=["a", "b", "c"]).fit(SENTENCES)


@pytest.mark.parametrize("value", [-1, 10**6])
def test_damaged_tables_are_rejected(value):
    templates = Templates(["U1:%x[0,0]/%x[1,0]", "U2:%x[0,0]"]).fit(SENTENCES)
    templates.tables_[0][0, 1] = value
    with pytest.raises(InputError, match="damaged"):
        templates.transform(SENTENCES)
