"""The package as a whole: lazy imports, import time, one version number."""

from __future__ import annotations

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
