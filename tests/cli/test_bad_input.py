"""User errors: one line with the place, the right exit code, no partial output."""

from __future__ import annotations

import os
import stat

import pytest

import seqlab
from seqlab.cli._errors import check_output
from seqlab.features.vectorizer import SequenceVectorizer


def assert_fails(result, *parts, code=2):
    assert result.exit_code == code, (result.stdout, result.stderr)
    lines = result.stderr.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("seqlab: ")
    assert "Traceback" not in result.output
    for part in parts:
        assert part in lines[0]


@pytest.fixture
def train(run, tmp_path):
    """Train on a text and return the result, after checking that no file was created."""

    def run_train(content, *options, output="m.seqlab"):
        file = tmp_path / "in.txt"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        before = set(tmp_path.iterdir())
        result = run("train", file, "-o", tmp_path / output, *options)
        assert set(tmp_path.iterdir()) == before
        return result

    return run_train


GOOD = "the DT O\ndog NN O\n\nit PRP O\n"


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("the DT O\ndog NN\n", ["in.txt:2: 2 columns, but earlier lines have 3"]),
        ("the DT O\ndog\tNN\tO\n", ["in.txt:2: a tab, but", "--separator whitespace"]),
        ("the\tDT\tO\ndog NN O\n", ["in.txt:2: separated by spaces", "--separator whitespace"]),
        (b"the O\n\ncaf\xe9 O\n", ["in.txt:3: not utf-8", "0xe9", "--encoding latin-1"]),
        ("", ["in.txt: no sequences: the file is empty"]),
        ("\n\n\n", ["in.txt: no sequences"]),
        ("word\n", ["in.txt:1: only one column"]),
    ],
    ids=["short", "mixed-tab", "mixed-space", "encoding", "empty", "blank", "one-column"],
)
def test_invalid_training_file(train, content, parts):
    assert_fails(train(content), *parts)


def test_options_that_messages_suggest_work(run, tmp_path):
    file = tmp_path / "in.txt"
    file.write_bytes(b"the\tDT\tO\ncaf\xe9 NN B\n")
    result = run(
        "train", file, "-o", tmp_path / "m", "--separator", "whitespace", "--encoding", "latin-1"
    )
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["-p", "max_itr=3"], ["no parameter 'max_itr'", "did you mean 'max_iter'?"]),
        (["-p", "c2=-1"], ["'c2'", "Got -1"]),
        (["-p", "c2=small"], ["'c2'", "'small'"]),
        (["-p", "c2"], ["'c2' does not have the form name=value"]),
        (["-m", "perceptrn"], ["no labeler is named 'perceptrn'", "did you mean 'perceptron'?"]),
        (["-m", "tagger"], ["no labeler is named 'tagger'"]),
        (["--format", "colums"], ["did you mean 'columns'?"]),
        (["--separator", "komma"], ["--separator", "choose from auto, space, tab, whitespace"]),
        (["-l", "7"], ["in.txt:1: no column 7"]),
        (["-l", "last"], ["--label-column", "'last' is not a column number"]),
        (["-c", "0,9"], ["in.txt: no column 9 (--columns)"]),
        (["-c", "0,2"], ["column 2 (--columns) is the label"]),
        (["--jobs", "0"], ["--jobs"]),
        (["--min-count", "0"], ["--min-count", "see seqlab train --help"]),
        (["--nonsense"], ["--nonsense", "see seqlab train --help"]),
        (["--c1", "0.1"], ["No such option: --c1", "with -p c1=VALUE", "see seqlab train --help"]),
        (["--beam-width=3"], ["No such option: --beam-width", "-p beam_width=VALUE"]),
        (["-t", "missing.tpl"], ["missing.tpl: no such file"]),
        (["--encoding", "klingon"], ["klingon"]),
    ],
    ids=lambda value: value[0] + value[1][:8] if len(value) > 1 and value[0][0] == "-" else None,
)
def test_invalid_options_of_train(train, options, parts):
    assert_fails(train(GOOD, *options), *parts)


def test_invalid_templates(train, tmp_path):
    template = tmp_path / "chunk.tpl"
    template.write_text("U00:%x[0,0]\n\nU01:%x[0,2]\nB\n")
    assert_fails(train(GOOD, "-t", template), "chunk.tpl:3: ", "%x[0,2]", "column 2", "2 columns")
    template.write_text("U00:%x[0,0]\nX:%x[0,1]\n")
    assert_fails(train(GOOD, "-t", template), "chunk.tpl:2: ", "must begin with U")
    template.write_bytes(b"U00:caf\xe9%x[0,0]\n")
    assert_fails(train(GOOD, "-t", template), "chunk.tpl", "UTF-8")
    template.write_text("# nothing\n")
    assert_fails(train(GOOD, "-t", template), "no templates in", "chunk.tpl")


def test_invalid_paths(run, tmp_path, model):
    assert_fails(
        run("train", tmp_path / "none.txt", "-o", tmp_path / "m"), "none.txt: no such file"
    )
    assert_fails(run("train", tmp_path, "-o", tmp_path / "m"), "is a directory")
    assert_fails(run("tag", tmp_path / "none.seqlab"), "none.seqlab: no such model file")
    assert_fails(run("tag", model, tmp_path / "none.txt"), "none.txt: no such file")
    assert_fails(run("train", tmp_path / "none.txt"), "--output")
    assert_fails(run("trian"), "trian", "'train'")


def test_file_that_is_not_a_model(run, files, tmp_path, model):
    assert_fails(
        run("tag", files / "new.txt", files / "new.txt"), "new.txt: this is not a model file"
    )
    broken = tmp_path / "broken.seqlab"
    broken.write_bytes(model.read_bytes()[:-200])
    assert_fails(run("inspect", broken), "broken.seqlab: the model file is damaged")
    other = tmp_path / "vectorizer.seqlab"
    seqlab.save(SequenceVectorizer().fit([[["a"]]]), other)
    assert_fails(run("tag", other), "contains a SequenceVectorizer, which cannot predict labels")


@pytest.fixture(scope="module")
def two_columns(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("chunks")
    (folder / "train.txt").write_text("the DT B-NP\ndog NN I-NP\nran VB B-VP\n\nit PRP B-NP\n" * 5)
    result = run("train", folder / "train.txt", "-o", folder / "m.seqlab", "-q")
    assert result.exit_code == 0, result.stderr
    return folder / "m.seqlab"


def test_wrong_number_of_columns(run, two_columns, tmp_path):
    file = tmp_path / "narrow.txt"
    file.write_text("\nthe\ndog\n")
    out = tmp_path / "out.txt"
    result = run("tag", two_columns, file, "-o", out)
    assert_fails(result, "narrow.txt:2: 1 column, but the model needs 2 (word, pos)")
    assert not out.exists()
    assert_fails(run("tag", two_columns, stdin="the\n"), "<stdin>:1: 1 column")
    wide = "a b c d e\n"
    assert_fails(run("tag", two_columns, stdin=wide), "<stdin>:1: 5 columns", "training file had 3")
    assert_fails(
        run("tag", two_columns, "-f", "text", stdin="the dog\n"), "the model needs word, pos"
    )


def test_evaluate_without_labels(run, two_columns, model, files, tmp_path):
    assert_fails(
        run("evaluate", model, files / "new.txt"), "new.txt:1: 1 column", "label is missing"
    )
    file = tmp_path / "one.txt"
    file.write_text("a\n")
    assert_fails(run("evaluate", "--pred", file), "one.txt:1: 1 column, but --gold-column is -2")
    assert_fails(run("evaluate", model), "MODEL and FILE")
    assert_fails(run("evaluate", model, files / "test.conll", "--pred", file), "either --pred")
    assert_fails(run("evaluate", "--pred", file, "--scheme", "IOB3"), "did you mean 'IOB")


def test_invalid_line_late_in_a_stream(run, model, files, tmp_path):
    text = (files / "new.txt").read_text() * 20
    number = text.count("\n") + 1
    out = tmp_path / "out.txt"
    out.write_text("old")
    result = run("tag", model, "-", "-o", out, stdin=text + "two columns\n")
    assert_fails(result, f"<stdin>:{number}: 2 columns, but earlier lines have 1")
    assert out.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_unknown_names_get_suggestions(run, files, model, tmp_path):
    assert_fails(run("inspect", model, "--label", "B-Cty"), "did you mean 'B-City'?")
    assert_fails(run("tag", model, "--constraints", "IOB5", stdin="a\n"), "IOB5")
    assert_fails(run("datasets", "show", "conl2000"), "did you mean 'conll2000'?")
    assert_fails(run("datasets", "export", "kasteren", tmp_path), "to export")


def test_read_only_output(run, files, model, tmp_path):
    out = tmp_path / "kept.seqlab"
    out.write_text("kept")
    out.chmod(0o444)
    assert_fails(run("train", files / "train.conll", "-o", out), "kept.seqlab: is read-only")
    assert_fails(run("tag", model, files / "new.txt", "-o", out), "kept.seqlab: is read-only")
    assert out.read_text() == "kept"
    assert stat.S_IMODE(out.stat().st_mode) == 0o444
    assert_fails(run("train", files / "train.conll", "-o", tmp_path), "is a folder")
    assert_fails(run("train", files / "train.conll", "-o", tmp_path / "no" / "m"), "does not exist")


def test_read_only_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root can write anywhere
    with pytest.raises(Exception, match=r"the folder .* is read-only"):
        check_output(tmp_path / "m.seqlab")


def test_no_space_left(run, files, model):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    assert_fails(run("tag", model, files / "new.txt", "-o", "/dev/full"), "no space left", code=1)


def test_traceback_only_with_debug(run, tmp_path, monkeypatch):
    quiet = run("train", tmp_path / "none.txt", "-o", tmp_path / "m")
    assert "Traceback" not in quiet.output
    loud = run("train", tmp_path / "none.txt", "-o", tmp_path / "m", "--debug")
    assert loud.exit_code == 2
    assert "Traceback" in loud.stderr
    monkeypatch.setenv("SEQLAB_DEBUG", "1")
    assert "Traceback" in run("train", tmp_path / "none.txt", "-o", tmp_path / "m").stderr
    monkeypatch.setenv("SEQLAB_DEBUG", "0")
    assert "Traceback" not in run("train", tmp_path / "none.txt", "-o", tmp_path / "m").stderr


def test_a_bug_is_reported_in_one_line(run, monkeypatch):
    import seqlab.datasets

    def broken():
        raise RuntimeError("out of order")

    monkeypatch.setattr(seqlab.datasets, "list_datasets", broken)
    assert_fails(run("datasets"), "RuntimeError: out of order", "SEQLAB_DEBUG=1", code=1)
