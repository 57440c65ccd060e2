"""Input that nobody means well with: escape sequences, huge numbers, odd encodings, closed streams."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from seqlab import LinearChainCRF, SequenceVectorizer, Tagger, save
from seqlab.utils.text import show_controls

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX shell")
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
ESCAPE = "\x1b]0;owned\x07\x1b[2J"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def escaping_model(folder, run):
    """A model whose tokens, features and labels contain escape sequences, and its training file."""
    file = folder / "escape.txt"
    file.write_text(f"red{ESCAPE} B-A{ESCAPE}\nfox O\n\nfox{ESCAPE} B-A{ESCAPE}\nx O\n")
    model = folder / "escape.seqlab"
    assert run("train", file, "-o", model, "-q").exit_code == 0
    return model, file


@pytest.fixture(scope="module")
def feature_models(folder):
    """Models of features: named ones, and a matrix."""
    X = [[{"a": 1}, {"b": 1}], [{"a": 1}]]
    y = [["X", "Y"], ["X"]]
    labeler = LinearChainCRF(max_iter=2, tol=1e9)
    save(Tagger(SequenceVectorizer(), labeler).fit(X, y), folder / "crfsuite.seqlab")
    save(labeler.fit([[[1.0, 0.0], [0.0, 1.0]]], [["X", "Y"]]), folder / "svmlight.seqlab")
    return folder


def shell(command):
    """Run a command line with SEQLAB as the program; return the exit code and standard error."""
    program = f"{sys.executable} -m seqlab.cli"
    done = subprocess.run(
        ["sh", "-c", command.replace("SEQLAB", program)], capture_output=True, text=True
    )
    return done.returncode, done.stderr


def test_show_controls():
    assert show_controls("plain téxt 日本") == "plain téxt 日本"
    assert show_controls("\x1b[1m\r\x9b\x7f\u202e\ud800") == r"\x1b[1m\r\x9b\x7f\u202e\ud800"


@pytest.mark.parametrize("command", ["tag --pretty", "evaluate", "inspect"])
def test_escape_sequences_do_not_reach_the_terminal(run, escaping_model, command):
    name, *options = command.split()
    model, file = escaping_model
    result = run(name, model, *([] if name == "inspect" else [file]), *options)
    assert result.exit_code == 0, result.stderr
    assert not {"\x1b", "\x07"} & set(result.output)
    assert r"\x1b]0" in result.output


def test_escape_sequences_in_messages(run, folder):
    file = folder / "message.txt"
    file.write_text(f"{ESCAPE}\n")
    result = run("train", file, "-o", folder / f"m{ESCAPE}", "-l", f"3{ESCAPE}")
    assert result.exit_code == 2
    assert "\x1b" not in result.stderr
    assert r"\x1b[2J" in result.stderr


def test_long_messages_are_cut(run, folder):
    result = run("train", "x" * 100_000, "-o", folder / "m")
    assert result.exit_code != 0
    assert len(result.stderr) < 5000


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ("utf-16", "not utf-16: UTF-16 stream does not start with BOM"),
        ("utf-32", "not utf-32"),
        ("hex", "'hex' is not an encoding of text"),
        ("rot13", "'rot13' is not an encoding of text"),
        ("idna", "'idna' is not an encoding of text"),
        ("nothing", "unknown encoding 'nothing'"),
    ],
)
def test_encodings(run, files, tmp_path, encoding, message):
    file = files / "train.conll"
    result = run("train", file, "-o", tmp_path / "m", "--encoding", encoding)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "bug" not in result.stderr


def test_label_that_the_encoding_of_the_output_does_not_have(run, tmp_path):
    train, new = tmp_path / "train.txt", tmp_path / "new.txt"
    train.write_text("a Straße\nb Ort\n", encoding="utf-8")
    new.write_text("a\n")
    assert run("train", train, "-o", tmp_path / "m", "-q").exit_code == 0
    result = run("tag", tmp_path / "m", new, "--encoding", "ascii")
    assert result.exit_code == 2
    assert "the encoding ascii does not have 'ß'" in result.stderr


@pytest.mark.parametrize("n_digits", [400, 5000])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{{"features": [[{0}]], "labels": ["X"]}}\n'),
        ("b.jsonl", '{{"features": [{{"a": {0}}}], "labels": ["X"]}}\n'),
        ("c.jsonl", '{{"features": [[1]], "labels": [{0}]}}\n'),
        ("a.svmlight", "1 qid:1 {0}:1\n"),
        ("b.svmlight", "1 qid:1 1:{0}\n"),
        ("c.svmlight", "{0} qid:1 1:1\n"),
    ],
)
def test_numbers_with_many_digits(run, tmp_path, name, content, n_digits):
    file = tmp_path / name
    file.write_text(content.format("9" * n_digits))
    result = run("train", file, "-o", tmp_path / "m", "-q")
    assert "bug" not in result.stderr
    if not (name == "c.jsonl" and n_digits == 400):  # a label may be any integer
        assert result.exit_code == 2, result.stderr


@pytest.mark.parametrize("value", ["c2=" + "9" * 400, "c2=" + "9" * 5000, "c2=" + "[" * 5000])
def test_parameters_with_many_digits(run, files, tmp_path, value):
    result = run("train", files / "train.conll", "-o", tmp_path / "m", "-p", value)
    assert result.exit_code == 2
    assert result.stderr.startswith("seqlab: --param: ")


def test_seed_out_of_range(run, files, tmp_path):
    result = run("train", files / "train.conll", "-o", tmp_path / "m", "--seed", "9" * 30)
    assert result.exit_code == 2
    assert "--seed" in result.stderr


@pytest.mark.parametrize("label", ['["X", "Y"]', "null"])
def test_evaluate_on_labels_that_are_not_known(run, tmp_path, label):
    train, test = tmp_path / "train.jsonl", tmp_path / "test.jsonl"
    train.write_text('{"tokens": ["a", "b"], "labels": ["X", "Y"]}\n')
    test.write_text('{"tokens": ["a", "b"], "labels": ["X", LABEL]}\n'.replace("LABEL", label))
    assert run("train", train, "-o", tmp_path / "m", "-q").exit_code == 0
    result = run("evaluate", tmp_path / "m", test)
    assert result.exit_code == 2
    assert "test.jsonl:1: the label of step 1 is not known" in result.stderr


@pytest.mark.parametrize("kind", ["crfsuite", "svmlight"])
@pytest.mark.parametrize("format", ["columns", "conllu", "text"])
def test_text_for_a_model_of_features(run, files, feature_models, kind, format):
    model = feature_models / f"{kind}.seqlab"
    result = run("tag", model, files / "new.txt", "-f", format)
    assert result.exit_code == 2
    assert f"--format {format}: this model has no templates" in result.stderr


@posix
@pytest.mark.parametrize(
    ("redirect", "code", "message"),
    [
        ("tag {model} - <&-", 2, "<stdin>: standard input is closed"),
        ("tag {model} {new} >&-", 1, "standard output is closed"),
        pytest.param("--help >/dev/full", 1, "no space left", marks=needs_full),
        pytest.param("tag {model} {new} >/dev/full", 1, "no space left", marks=needs_full),
    ],
)
def test_closed_and_full_streams(model, files, redirect, code, message):
    command = redirect.format(model=model, new=files / "new.txt")
    found, error = shell(f"SEQLAB {command}")
    assert found == code
    assert error.count("\n") == 1
    assert error.startswith(f"seqlab: {message}")
