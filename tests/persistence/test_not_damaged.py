"""What is not damage is not called damage, and what is not needed is not imported."""

import subprocess
import sys

import pytest

from saved_models import small_crf
from seqlab import IndependentLabeler, ModelFileError, SequenceVectorizer, load, save
from seqlab.persistence import _reader


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.seqlab"


@pytest.mark.parametrize("error", [RuntimeError("no locator available"), ImportError("a package")])
def test_modules_that_cannot_be_imported(path, monkeypatch, error):
    def fail(_):
        raise error

    save(small_crf(), path)
    monkeypatch.setattr(_reader, "import_module", fail)
    with pytest.raises(type(error), match=str(error)):
        load(path)


@pytest.mark.parametrize("error", [MemoryError(), OSError(5, "Input/output error")])
def test_other_failures(path, monkeypatch, error):
    def fail(*_):
        raise error

    save(SequenceVectorizer(), path)
    monkeypatch.setattr(_reader._archive, "read_arrays", fail)
    with pytest.raises(type(error)) as caught:
        load(path)
    assert not isinstance(caught.value, ModelFileError)


def imported(code, *arguments):
    code += "\nimport sys; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_models_of_seqlab_do_not_import_skops(path):
    save(small_crf(), path)
    code = "import sys, seqlab\nmodel = seqlab.load(sys.argv[1])\nseqlab.save(model, sys.argv[1])"
    modules = imported(code, path)
    assert "seqlab.models.crf" in modules
    assert not {"skops", "sklearn.linear_model", "sklearn.ensemble", "pytest"} & modules


def test_skops_is_imported_for_classifiers_of_scikit_learn(path):
    save(IndependentLabeler(), path)
    assert "skops" not in imported("import sys, seqlab\nseqlab.load(sys.argv[1])", path)
    save(IndependentLabeler().fit([[["a"], ["b"]]], [["x", "y"]]), path)
    assert "skops" in imported("import sys, seqlab\nseqlab.load(sys.argv[1])", path)
