"""The package as a whole: lazy imports, import time, one version number."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import seqlab

ROOT = Path(__file__).parent.parent


def run(code):
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return result.stdout.strip()


def test_import_seqlab_does_not_load_heavy_packages():
    heavy = run(
        "import seqlab, sys; print(sorted({'sklearn', 'numba', 'scipy', 'pandas'} & set(sys.modules)))"
    )
    assert heavy == "[]"


def test_data_and_metrics_do_not_load_numba():
    assert run("import seqlab.data, seqlab.metrics, sys; print('numba' in sys.modules)") == "False"


def test_import_of_a_labeler_does_not_load_numba():
    names = "HMM, IndependentLabeler, LinearChainCRF, MEMM, StructuredPerceptron, Tagger"
    assert run(f"import sys; from seqlab import {names}; print('numba' in sys.modules)") == "False"


def test_names_that_are_imported_on_first_use_are_listed():
    code = (
        "from seqlab import inference, learning, optim, structures\n"
        "for package in (inference, learning, optim, structures):\n"
        "    assert set(package.__all__) <= set(dir(package)), package\n"
        "    assert not set(package.__all__) <= set(vars(package)), package"
    )
    assert run(code) == ""


def test_interrupt_during_an_import_waits_for_the_end_of_the_module(tmp_path, monkeypatch):
    package = tmp_path / "halves"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from seqlab.utils.lazy import import_on_use\n"
        "__getattr__, __dir__ = import_on_use(__name__, {'part': ('value',)})\n"
    )
    (package / "part.py").write_text(
        "import signal\nsignal.raise_signal(signal.SIGINT)\nvalue = 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    halves = importlib.import_module("halves")
    with pytest.raises(KeyboardInterrupt):
        _ = halves.value
    assert sys.modules["halves.part"].value == halves.value == 1


@pytest.mark.parametrize("name", seqlab.__all__)
def test_every_public_name_loads(name):
    found = getattr(seqlab, name)
    assert name in dir(seqlab)
    assert name == "__version__" or found.__name__ == name


def test_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = seqlab.Nonsense


def test_subpackages_are_attributes():
    code = "import seqlab; print(seqlab.metrics.__name__, seqlab.data.Sequences.__name__)"
    assert run(code) == "seqlab.metrics Sequences"


def test_versions_agree():
    assert metadata.version("seqlab") == seqlab.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## .*{re.escape(seqlab.__version__)}", changelog, re.MULTILINE)
