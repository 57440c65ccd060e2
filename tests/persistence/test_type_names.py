import gzip
import io
import json
import pickle
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.linear_model import LogisticRegression

from conformance import LABELERS
from seqlab import LinearChainCRF, ModelFileError, load, save
from seqlab.persistence import TRUSTED_TYPES
from seqlab.persistence.type_names import PLAIN_TYPES, SAVED_TYPES, current_path, stable_name
from seqlab.relational.trees.atom_vectorizer import AtomVectorizer

FIXTURES = Path(__file__).parent.parent / "fixtures"
# Files written by format versions 1 and 2, with inputs and the predictions of that time.
OLD_FILES = [
    pytest.param(folder, name, id=f"{folder}-{name}")
    for folder in ("models_v1", "models_v2")
    for name in json.loads((FIXTURES / folder / "expected.json").read_text(encoding="utf-8"))
]
INPUT_FORMS = {
    "plain": lambda X: X,
    "tuples": lambda X: [[tuple(step) for step in steps] for steps in X],
    "arrays": lambda X: [np.array(steps, dtype=float) for steps in X],
    "rows": lambda X: np.array(X, dtype=float),
}
# Paths of types that changed after version 2.
PATHS_OF_VERSION_2 = [
    "seqlab.features.templates.Templates",
    "seqlab.features.vectorizer.SequenceVectorizer",
    "seqlab.inference.phrase_constraints.CountLimit",
    "seqlab.inference.phrase_constraints.Covered",
    "seqlab.inference.phrase_constraints.LengthLimit",
    "seqlab.inference.phrase_constraints.Requires",
    "seqlab.inference.phrase_constraints.TypeOrder",
    "seqlab.models._discrete_emissions.BernoulliEmissions",
    "seqlab.models._discrete_emissions.CategoricalEmissions",
    "seqlab.models._discrete_emissions.MultinomialEmissions",
    "seqlab.models._gaussian_emissions.FullGaussianEmissions",
    "seqlab.models._gaussian_emissions.GaussianEmissions",
    "seqlab.models._history.HistoryColumns",
    "seqlab.models._history.LocalModel",
    "seqlab.models._posteriors.StepPosteriors",
    "seqlab.models._projections.Projections",
    "seqlab.models._symbols.SymbolVectorizer",
    "seqlab.models.classifier_hmm.ClassifierHMM",
    "seqlab.models.crf.LinearChainCRF",
    "seqlab.models.hmm.HMM",
    "seqlab.models.memm.MEMM",
    "seqlab.models.perceptron.StructuredPerceptron",
    "seqlab.models.phrase_inference.PhraseInference",
    "seqlab.models.pmm.ProjectionMarkovModel",
    "seqlab.models.snow.SNoW",
    "seqlab.models.tempered.TemperedClassifier",
    "seqlab.structures.chain.ChainStructure",
    "seqlab.structures.pattern.FeaturePattern",
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.seqlab"


def values_in(node):
    """All JSON objects in a description or a schema."""
    if isinstance(node, dict):
        yield node
    for child in (
        node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    ):
        yield from values_in(child)


def paths_in(data):
    """(module, class) pairs in the schema of a skops file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        nodes = values_in(json.loads(archive.read("schema.json")))
        return {
            (node["__module__"], node["__class__"])
            for node in nodes
            if isinstance(node.get("__module__"), str)
        }


def assert_only_stable_names(path):
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("seqlab.json"))
        names = {
            node["type"] for node in values_in(header["root"]) if {"type", "state"} <= set(node)
        }
        foreign = archive.read("foreign.skops") if "foreign.skops" in archive.namelist() else None
    assert header["version"] == 4
    assert names
    assert names <= PLAIN_TYPES.keys()
    ours = (
        [pair for pair in paths_in(foreign) if pair[0].split(".")[0] == "seqlab"] if foreign else []
    )
    assert {module for module, _ in ours} <= {"seqlab"}
    assert {name for _, name in ours} <= SAVED_TYPES.keys()


def assert_same_answers(model, expected):
    X = INPUT_FORMS[expected["form"]](expected["X"])
    predicted = model.predict(X)
    if expected["form"] == "rows":
        assert predicted.tolist() == expected["predict"]
    else:
        assert [list(map(str, labels)) for labels in predicted] == expected["predict"]
    if "method" in expected:
        values = getattr(model, expected["method"])(X)
        for now, then in zip(values, expected["values"], strict=True):
            np.testing.assert_allclose(now, then, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", TRUSTED_TYPES)
def test_trusted_names_are_types(name):
    module, _, kind = name.rpartition(".")
    found = getattr(import_module(module), kind)
    assert isinstance(found, type)
    assert f"{found.__module__}.{found.__qualname__}" == name


@pytest.mark.parametrize("entry", LABELERS, ids=lambda entry: entry.id)
def test_labelers_are_saved_without_module_paths(entry, path):
    X = [np.arange(12.0).reshape(6, 2) % 5, np.ones((3, 2)), np.arange(8.0).reshape(4, 2) % 3]
    y = [list("abcabc"), list("aab"), list("cabc")]
    model = clone(entry.estimator).fit(X, y)
    save(model, path)
    assert_only_stable_names(path)
    for a, b in zip(load(path).predict(X), model.predict(X), strict=True):
        assert a.tolist() == b.tolist()


@pytest.mark.filterwarnings(
    f"ignore::{InconsistentVersionWarning.__module__}.{InconsistentVersionWarning.__name__}"
)
@pytest.mark.parametrize(("folder", "name"), OLD_FILES)
def test_old_files_load_and_predict_the_same(folder, name, path):
    expected = json.loads((FIXTURES / folder / "expected.json").read_text(encoding="utf-8"))[name]
    path.write_bytes(gzip.decompress((FIXTURES / folder / f"{name}.seqlab.gz").read_bytes()))
    assert any(module.startswith("seqlab.") for module, _ in paths_in(path.read_bytes()))
    model = load(path)
    assert_same_answers(model, expected)
    save(model, path)
    assert_only_stable_names(path)
    assert_same_answers(load(path), expected)
    assert_same_answers(pickle.loads(pickle.dumps(model)), expected)


def node(module, name, **more):
    return {"__module__": module, "__class__": name, "__loader__": "ObjectNode", **more}


@pytest.mark.parametrize("old", PATHS_OF_VERSION_2)
@pytest.mark.parametrize("version", [1, 2])
def test_paths_of_old_versions_resolve(old, version):
    module, _, name = old.rpartition(".")
    assert ".".join(current_path(module, name, version)) == SAVED_TYPES[name]


def test_stable_names_and_back():
    for path in (*SAVED_TYPES.values(), "os.system", "a.b.HMM"):
        module, _, name = path.rpartition(".")
        stable = stable_name(module, name)
        assert (stable[0] == "seqlab") == (path in SAVED_TYPES.values())
        assert current_path(*stable, 3) == (module, name)


def write_file(path, schema, version):
    about = {"format": "seqlab-model", "version": version}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema | {"protocol": 2, "__id__": 1}))
        archive.writestr("seqlab.json", json.dumps(about))


@pytest.mark.parametrize(
    "name", ["NewEstimator", "save", "__version__", "models.crf.LinearChainCRF"]
)
def test_unknown_stable_names(name, path):
    write_file(path, node("seqlab", name), 3)
    with pytest.raises(ModelFileError, match=f"does not have: seqlab.{name}"):
        load(path)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("seqlab.persistence", "save"),
        ("seqlab.cli.program", "run"),
        ("seqlab.no_such_module", "Estimator"),
        ("seqlabs", "HMM"),
        ("antigravity", "HMM"),
    ],
)
def test_other_paths_are_not_trusted(module, name, version, path):
    write_file(path, node(module, name), version)
    with pytest.raises(ModelFileError, match=f"not trusted: {module}.{name}"):
        load(path)
    assert "antigravity" not in sys.modules


def test_keys_of_the_user_are_not_type_names(path):
    weights = {"__module__": 1.0, "__class__": 2.0}
    save(LogisticRegression(class_weight=weights), path)
    assert load(path).class_weight == weights


@pytest.mark.parametrize("estimator", [LinearChainCRF(), AtomVectorizer()], ids=repr)
def test_parameters_that_did_not_exist_get_their_defaults(estimator):
    fitted = estimator.fit([[["use(a)"], ["use(b)"]]], [["x", "y"]])
    state = dict(fitted.__getstate__())
    name = sorted(fitted.get_params(deep=False))[-1]
    del state[name]
    restored = type(fitted)()
    restored.__dict__.clear()
    restored.__setstate__(state)
    assert repr(restored.get_params()) == repr(fitted.get_params())
