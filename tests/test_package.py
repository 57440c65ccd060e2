"""The package as a whole: lazy names, quick import, one version."""

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


def test_bare_import_brings_neither_scikit_learn_nor_numba():
    heavy = run(
        "import seqlab, sys; print(sorted({'sklearn', 'numba', 'scipy', 'pandas'} & set(sys.modules)))"
    )
    assert heavy == "[]"


def test_data_and_metrics_do_not_need_numba():
    assert run("import seqlab.data, seqlab.metrics, sys; print('numba' in sys.modules)") == "False"


@pytest.mark.parametrize("name", seqlab.__all__)
def test_every_public_name_loads(name):
    assert getattr(seqlab, name) is not None
    assert name in dir(seqlab)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = seqlab.Nonsense


def test_rooms_are_attributes():
    assert seqlab.metrics.span_f1 is not None
    assert seqlab.data.Sequences is not None


def test_one_version():
    assert metadata.version("seqlab") == seqlab.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## .*{re.escape(seqlab.__version__)}", changelog, re.MULTILINE)
