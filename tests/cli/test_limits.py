"""``--limit``: limits of a model file, on the command line."""

from __future__ import annotations

from functools import partial

import pytest

from seqlab.persistence import Limits


@pytest.mark.parametrize("command", ["tag", "evaluate", "inspect"])
def test_limits_can_be_lowered_and_raised(run, model, files, command):
    args = [command, model, *([] if command == "inspect" else [files / "test.conll"])]
    refused = run(*args, "--limit", "n_nodes=10")
    assert refused.exit_code == 2
    assert refused.stderr.count("\n") == 1
    assert refused.stderr.endswith("use --limit n_nodes=...\n")
    assert run(*args, "--limit", "n_nodes=1000000", "--limit", "depth=200").exit_code == 0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("n_node=7", "seqlab: --limit: 'n_node=7' does not name a limit: n_bytes, "),
        ("n_nodes", "seqlab: --limit: 'n_nodes' needs a whole number, for example n_nodes=1000000"),
        ("n_nodes=-1", "seqlab: --limit: 'n_nodes=-1' needs a whole number"),
        (f"n_nodes={'9' * 5000}", "seqlab: --limit: 'n_nodes=9999"),
    ],
)
def test_bad_limits(run, model, setting, message):
    result = run("inspect", model, "--limit", setting)
    assert result.exit_code == 2
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1


@pytest.mark.filterwarnings("always:this Tagger is beyond")
def test_training_warns_of_a_model_that_needs_the_option(run, files, tmp_path, monkeypatch):
    monkeypatch.setattr("seqlab.persistence._writer.Limits", partial(Limits, n_nodes=10))
    out = tmp_path / "m.seqlab"
    result = run("train", files / "train.conll", "-o", out, "-p", "tol=0.3", "-q")
    assert result.exit_code == 0
    assert result.stderr.startswith("seqlab: warning: this Tagger is beyond the default limits")
    assert "to load it, use --limit n_nodes=" in result.stderr
    assert out.exists()
