"""Small files and a trained model for the tests of the commands."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from seqlab.cli import app
from seqlab.data.io import write_conll
from seqlab.datasets import make_addresses


@pytest.fixture(scope="session")
def run():
    """Run a command; return its exit code, stdout and stderr."""

    def invoke(*args, stdin=None):
        return CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)

    return invoke


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with train.conll and test.conll (labelled) and new.txt (not labelled)."""
    folder = tmp_path_factory.mktemp("addresses")
    for name, n, seed in (("train", 200, 0), ("test", 60, 1)):
        X, y = make_addresses(n, random_state=seed, return_X_y=True)
        write_conll(X, y, folder / f"{name}.conll")
    write_conll(X, None, folder / "new.txt")
    return folder


@pytest.fixture(scope="session")
def model(files, run):
    """A model file written by the train command."""
    path = files / "model.seqlab"
    result = run("train", files / "train.conll", "-o", path, "-p", "tol=0.001", "-q")
    assert result.exit_code == 0, result.stderr
    assert result.output == ""
    return path
