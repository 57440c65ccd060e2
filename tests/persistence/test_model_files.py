import io
import json
import os
import pickle
import re
import subprocess
import sys
import threading
import warnings
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from saved_models import (
    X,
    answer_of_crf,
    answer_of_pipeline,
    members_of,
    small_crf,
    small_pipeline,
    write_version_3,
    zip_of,
)
from seqlab import ModelFileError, SequenceVectorizer, load, save
from seqlab.data import SeqlabError
from seqlab.persistence import _skops_schema


class Custom(BaseEstimator):
    """A class of the user."""

    def __init__(self, value=None):
        self.value = value


def a_function(X):
    return X


MODELS = {"pipeline": (small_pipeline, answer_of_pipeline), "crf": (small_crf, answer_of_crf)}


@pytest.fixture(scope="module", params=list(MODELS))
def case(request):
    """A model, and the function that gives all it can answer, to the last bit."""
    make, answer = MODELS[request.param]
    return make(), answer


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.seqlab"


def test_round_trip(case, path):
    model, answer = case
    save(model, path)
    restored = load(path)
    assert type(restored) is type(model)
    assert answer(restored) == answer(model)
    save(restored, str(path))
    assert answer(load(str(path))) == answer(model)


def test_parameters_and_unfitted_estimators(path):
    save(SequenceVectorizer(separator="\ud800:\0", min_count=3), path)
    restored = load(path)
    assert restored.get_params() == {
        "separator": "\ud800:\0",
        "min_count": 3,
        "keep_zeros": False,
        "n_jobs": None,
    }
    assert not hasattr(restored, "vocabulary_")
    weights = {0: 0.1, 1: float("inf")}
    save(LogisticRegression(class_weight=weights, random_state=np.random.RandomState(3)), path)
    restored = load(path)
    assert restored.class_weight == weights
    assert restored.random_state.rand() == np.random.RandomState(3).rand()


def test_many_features(path):
    vectorizer = SequenceVectorizer().fit([[[f"w={i}é" for i in range(300_000)]]])
    save(vectorizer, path)
    assert load(path).vocabulary_ == vectorizer.vocabulary_


def test_load_in_a_new_process(path):
    save(SequenceVectorizer().fit(X), path)
    code = "import sys, seqlab; print(seqlab.load(sys.argv[1]).get_feature_names_out().tolist())"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert "'w=to', 'first'" in done.stdout


@pytest.mark.parametrize("seed", range(2))
def test_damage_is_an_error_or_harmless(case, seed, path):
    model, answer = case
    save(model, path)
    sound = path.read_bytes()
    rng = np.random.default_rng(seed)
    places = rng.integers(0, len(sound), 2000)
    # Half of the changes are in the directory at the end, which has no checksum.
    places[::2] = rng.integers(sound.index(b"PK\x01\x02"), len(sound), 1000)
    damaged = []
    for place, change in zip(places.tolist(), rng.integers(1, 256, 2000).tolist(), strict=True):
        copy = bytearray(sound)
        copy[place] ^= change
        damaged.append(bytes(copy))
    damaged += [sound[:size] for size in rng.integers(0, len(sound), 400).tolist()]
    damaged += [sound[:-size] for size in range(1, 101)]
    expected = answer(model)
    messages = []
    for content in damaged:
        path.write_bytes(content)
        try:
            restored = load(path)
        except ModelFileError as error:
            messages.append(str(error))
        else:
            assert answer(restored) == expected
    assert len(messages) > len(damaged) / 2
    assert all(str(path) in message for message in messages)


def test_every_byte_of_the_directory(path):
    model = SequenceVectorizer().fit([[["a"]]])
    save(model, path)
    sound = path.read_bytes()
    for place in range(sound.index(b"PK\x01\x02"), len(sound)):
        for change in (0x01, 0x20, 0x80, 0xFF):
            copy = bytearray(sound)
            copy[place] ^= change
            path.write_bytes(copy)
            try:
                restored = load(path)
            except ModelFileError:
                continue
            assert restored.vocabulary_ == model.vocabulary_


FOREIGN = [
    (b"", "the file is empty"),
    (b"once upon a time", "not a model file"),
    (b"PK\x03\x04", "damaged"),
    (pickle.dumps([1, 2]), "looks like a pickle"),
    (zip_of([("a.txt", b"text")]), "a zip archive, but not a model file"),
    (zip_of([("seqlab.json", b"{}")]), "not a model file of seqlab"),
    (zip_of([("seqlab.json", b"[1]")]), "not a model file of seqlab"),
    (zip_of([("seqlab.json", b"\xff")]), "damaged"),
    (zip_of([("seqlab.json", b'{"format": "seqlab-model"}')]), "version None is unknown"),
    (zip_of([("seqlab.json", b'{"format": "seqlab-model", "version": 1}')]), "damaged"),
    (
        zip_of([("seqlab.json", b'{"format": "seqlab-model", "version": 5, "seqlab": "9.0"}')]),
        r"format version 5 \(seqlab 9.0\), newer",
    ),
    (zip_of([("a", b"1"), ("a", b"2")]), "two members with the same name"),
    (
        zip_of(
            [("seqlab.json", b'{"format": "seqlab-model", "version": 3}')], zipfile.ZIP_DEFLATED
        ),
        "not stored as seqlab stores it",
    ),
]


@pytest.mark.parametrize(("content", "message"), FOREIGN)
def test_foreign_files(content, message, path):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, SeqlabError | ValueError)


def test_missing_file_and_folder(path):
    with pytest.raises(FileNotFoundError):
        load(path)
    with pytest.raises(FileNotFoundError):
        save(SequenceVectorizer(), path / "in" / "no" / "folder")
    with pytest.raises(OSError, match=r"."):
        load(path.parent)


def schema_of(kind, **more):
    return json.dumps({"__loader__": kind, "protocol": 2, "__id__": 1, **more})


MARKER = ("seqlab.json", b'{"format": "seqlab-model", "version": 1}')


@pytest.mark.parametrize(
    "schema",
    [
        schema_of("FunctionNode", __module__="os", __class__="system", content="os.system"),
        schema_of("TypeNode", __module__="subprocess", __class__="Popen"),
        schema_of("ObjectNode", __module__="antigravity", __class__="fly"),
        schema_of("NoNode", __module__="builtins", __class__="str"),
        schema_of("JsonNode", __module__="builtins", __class__="str", content="{"),
        schema_of("CachedNode", __module__="builtins", __class__="str"),
        "[" * 100_000,
        "{",
        "3",
    ],
)
def test_hostile_schemas(schema, path, monkeypatch):
    monkeypatch.setattr("os.system", lambda *_: pytest.fail("executed"))
    path.write_bytes(zip_of([MARKER, ("schema.json", schema.encode())]))
    with pytest.raises(ModelFileError):
        load(path)
    assert "antigravity" not in sys.modules


def test_arrays_smaller_than_their_header_says(path):
    promise = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        promise, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    )
    model = BernoulliNB().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    for write in (save, write_version_3):
        write(small_crf() if write is save else model, path)
        members = members_of(path.read_bytes())
        path.write_bytes(
            zip_of([(n, promise.getvalue() if n.endswith(".npy") else c) for n, c in members])
        )
        with pytest.raises(ModelFileError, match="is not the one in its header"):
            load(path)


def test_sparse_matrices_with_too_large_content(path, monkeypatch):
    model = Custom(sp.csr_matrix(np.ones((1000, 1000))))
    save(model, path, trusted=[Custom])
    assert load(path, trusted=[Custom]).value.nnz == 10**6
    monkeypatch.setattr(_skops_schema, "_MIN_UNPACKED", 10**6)
    with pytest.raises(ModelFileError, match="unpack to far more"):
        load(path, trusted=[Custom])


def test_sparse_matrices_with_indices_out_of_range(path):
    matrix = sp.csr_matrix(np.eye(3))
    matrix.indices[1] = 10**6
    outside = io.BytesIO()
    sp.save_npz(outside, matrix)
    write_version_3(Custom(sp.csr_matrix(np.eye(3))), path)
    members = members_of(path.read_bytes())
    path.write_bytes(
        zip_of([(n, outside.getvalue() if n.endswith(".npz") else c) for n, c in members])
    )
    with pytest.raises(ModelFileError, match="indices"):
        load(path, trusted=[Custom])


class TestRefusals:
    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (FunctionTransformer(a_function), r"FunctionTransformer\.func is .*a_function, which"),
            (FunctionTransformer(lambda X: X), r"FunctionTransformer\.func is .*<lambda>, which"),
            (make_pipeline(StandardScaler(), Custom()), r"Pipeline\.steps\[1\]\[1\] is a .*Custom"),
            (Custom(), r"Custom is a .*\.Custom, which load\(\) would refuse; pass trusted="),
            (
                LogisticRegression(class_weight={True: 2, False: 1}),
                r"LogisticRegression\.class_weight is a dict with keys",
            ),
            (LogisticRegression(class_weight={1: 2, "1": 1}), "class_weight is a dict with keys"),
            (LogisticRegression(C=(i for i in [])), "LogisticRegression cannot be saved"),
            (LogisticRegression(C=threading.Lock()), "LogisticRegression"),
        ],
    )
    def test_message_names_the_part_and_nothing_is_written(self, model, message, path):
        path.write_bytes(b"as it was")
        with pytest.raises(ModelFileError, match=message):
            save(model, path)
        assert path.read_bytes() == b"as it was"
        assert os.listdir(path.parent) == [path.name]

    def test_trusted_types(self, path):
        save(Custom(value=[1, "a"]), path, trusted=[Custom])
        name = f"{Custom.__module__}.Custom"
        with pytest.raises(ModelFileError, match=f"not trusted: {name}"):
            load(path)
        assert load(path, trusted=[name]).value == [1, "a"]
        assert load(path, trusted=Custom).value == [1, "a"]

    @pytest.mark.parametrize("model", [None, {"a": 1}, [1], 3.5, "model", np.eye(2)])
    def test_only_estimators_can_be_saved(self, model, path):
        with pytest.raises(ModelFileError, match="only estimators and transformers can be saved"):
            save(model, path)
        assert os.listdir(path.parent) == []

    def test_a_class_cannot_be_saved(self, path):
        with pytest.raises(ModelFileError, match=r"is a class: save an estimator, .*\(\)"):
            save(SequenceVectorizer, path)

    @pytest.mark.parametrize(
        ("classifier", "name"),
        [
            (DecisionTreeClassifier(), "sklearn.tree._tree.Tree"),
            (RandomForestClassifier(2), "sklearn.tree._tree.Tree"),
            (GradientBoostingClassifier(n_estimators=2), "sklearn.tree._tree.Tree"),
            (
                HistGradientBoostingClassifier(max_iter=2),
                "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
            ),
        ],
    )
    def test_trees_must_be_named(self, classifier, name, path):
        from seqlab import IndependentLabeler

        rows = [np.arange(12.0).reshape(6, 2), np.ones((3, 2))]
        model = IndependentLabeler(classifier).fit(rows, [list("abcabc"), list("aab")])
        why = re.escape("a crafted file could crash the process")
        what = re.escape(f"trusted=['{name}']")
        with pytest.raises(ModelFileError, match=rf"{why}.*pass {what} to save\(\) and load\(\)"):
            save(model, path)
        save(model, path, trusted=[name])
        with pytest.raises(ModelFileError, match=rf"not trusted: {re.escape(name)}.*{why}.*{what}"):
            load(path)
        restored = load(path, trusted=[name])
        for a, b in zip(restored.predict(rows), model.predict(rows), strict=True):
            assert a.tolist() == b.tolist()

    @pytest.mark.parametrize(
        ("classifier", "name"),
        [
            (
                MLPClassifier(max_iter=1),
                "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
            ),
            (VotingClassifier([("nb", BernoulliNB())]), "sklearn.utils._bunch.Bunch"),
            (KNeighborsClassifier(2), "sklearn.neighbors._kd_tree.KDTree"),
            (
                CalibratedClassifierCV(BernoulliNB(), cv=KFold(2)),
                "sklearn.model_selection._split.KFold",
            ),
        ],
    )
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_some_types_of_scikit_learn_must_be_named(self, classifier, name, path):
        model = classifier.fit(np.arange(12.0).reshape(6, 2), list("ababab"))
        with pytest.raises(ModelFileError, match=re.escape(name)):
            save(model, path)

    def test_local_classes_cannot_be_saved(self, path):
        class Local(BaseEstimator):
            pass

        with pytest.raises(ModelFileError, match="Local cannot be saved"):
            save(Local(), path, trusted=[f"{__name__}.Local"])


@pytest.mark.parametrize("write", [save, write_version_3])
def test_another_scikit_learn_warns_and_loads(write, path):
    write(StandardScaler().fit([[0.0], [1.0]]), path)
    old, new = (f'\\"{version}\\"'.encode() for version in (sklearn.__version__, "0.99"))

    def change(content):
        return zip_of(
            (name, change(one) if name == "foreign.skops" else one.replace(old, new))
            for name, one in members_of(content)
        )

    path.write_bytes(change(path.read_bytes()))
    with pytest.warns(InconsistentVersionWarning):
        assert load(path).mean_.tolist() == [0.5]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InconsistentVersionWarning):
            load(path)
