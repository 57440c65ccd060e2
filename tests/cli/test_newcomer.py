"""Problems that new users had."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = "the DT B-NP\ndog NN I-NP\nran VB B-VP\n\nit PRP B-NP\n"
CONLLU = (
    "# sent_id = 1\n"
    "1\tdogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n"
    "2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_\n\n"
)
NOTE = "seqlab: note: probabilities of a StructuredPerceptron are not calibrated\n"
PAGE = Path(__file__).parents[2] / "docs" / "guide" / "command-line.md"


def ok(result):
    assert result.exit_code == 0, result.stderr
    return result.stdout


def assert_fails(result, *parts, code=2):
    assert result.exit_code == code, (result.stdout, result.stderr)
    (line,) = result.stderr.splitlines()
    for part in parts:
        assert part in line


@pytest.fixture
def trained(run, tmp_path):
    """Train on a text and return the model file."""

    def run_train(content, *options, name="in.txt"):
        (tmp_path / name).write_text(content)
        ok(run("train", tmp_path / name, "-o", tmp_path / "m.seqlab", "-q", *options))
        return tmp_path / "m.seqlab"

    return run_train


def test_probabilities_are_not_scored_as_labels(run, model, files):
    tagged = ok(run("tag", model, files / "test.conll", "--proba"))
    advice = "tagged with --proba? use --gold-column -3 --pred-column -2"
    result = run("evaluate", "--pred", "-", stdin=tagged)
    assert_fails(
        result, "<stdin>: column -1 seems to contain probabilities (0.", "), not labels; ", advice
    )
    ok(run("evaluate", "--pred", "-", "--gold-column", "-3", "--pred-column", "-2", stdin=tagged))
    bare = ok(run("tag", model, files / "new.txt", "--proba"))
    result = run("evaluate", "--pred", "-", stdin=bare)
    assert_fails(result, "seems to contain probabilities")


@pytest.mark.parametrize(
    "content", ["a 0 1\n\nb 0 1\n", "a x 0.5\n\nb x x\n", "a 0.5 0.5\n\nb 1.0 0.5\n"]
)
def test_labels_that_are_numbers_are_scored(run, content):
    ok(run("evaluate", "--pred", "-", stdin=content))


def test_a_perceptron_has_no_calibrated_probabilities(run, trained):
    model = trained(GOOD * 5, "-m", "perceptron")
    for option in ("--proba", "--pretty"):
        result = run("tag", model, option, stdin="the DT\n")
        ok(result)
        assert result.stderr == NOTE
    assert run("tag", model, "--nbest", "2", stdin="the DT\n").stderr == ""


def test_a_model_without_probabilities_has_strips_without_them(run, trained):
    model = trained(GOOD * 5, "-m", "M3N")
    result = run("tag", model, "--pretty", stdin="the DT\n")
    assert "%" not in ok(result)
    assert "the" in result.stdout
    assert_fails(run("tag", model, "--proba", stdin="the DT\n"), "--proba", "no predict_proba")


def test_file_in_another_format_than_the_training_file(run, trained, tmp_path):
    model = trained(CONLLU * 3, name="in.conllu")
    other = tmp_path / "new.txt"
    other.write_text("dogs NOUN\n")
    hint = "(read as conllu, like the training file; try --format columns)"
    assert_fails(run("evaluate", model, other), "new.txt:1: ", hint)
    assert_fails(run("tag", model, other), "new.txt:1: ", hint)
    result = run("tag", model, other, "-f", "conllu")
    assert_fails(result, "new.txt:1: ")
    assert "read as" not in result.stderr
    assert "format of the training file" in " ".join(
        ok(run("evaluate", "--help")).replace("│", " ").split()
    )
    columns = trained(GOOD * 3)
    hint = "(read as columns, like the training file; try --format conllu)"
    assert_fails(run("tag", columns, tmp_path / "in.conllu"), hint)


def test_pred_does_not_accept_conllu(run):
    message = (
        "<stdin> looks like CoNLL-U, but --pred needs a column file; use seqlab evaluate MODEL"
    )
    assert_fails(run("evaluate", "--pred", "-", stdin=CONLLU), message)
    assert_fails(run("evaluate", "--pred", "-", stdin=CONLLU.split("\n", 1)[1]), message)
    assert_fails(run("evaluate", "--pred", "-", "--comment", "#", stdin=CONLLU), message)
    ok(run("evaluate", "--pred", "-", stdin="# # O O\n\na b O O\n"))


def test_no_features(run, tmp_path):
    file, template, out = tmp_path / "in.txt", tmp_path / "bad.tpl", tmp_path / "m"
    file.write_text(GOOD)
    template.write_text("# nothing\nB\n")
    assert_fails(
        run("train", file, "-o", out, "-t", template, "-q"),
        "bad.tpl: no features, because there is no U line",
    )
    result = run("train", file, "-o", out, "--min-count", "100000", "-q")
    assert_fails(result, "seqlab: --min-count 100000: no feature occurs that often")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_folder_that_does_not_accept_files(run, files, model):
    result = run("train", files / "train.conll", "-o", "/proc/x.seqlab")
    assert_fails(result, "seqlab: /proc/x.seqlab: cannot be written")
    result = run("tag", model, files / "new.txt", "-o", "/proc/x.txt")
    assert_fails(result, "seqlab: /proc/x.txt: cannot be written")


def test_write_errors_name_the_file(run, files, model, tmp_path, monkeypatch):
    monkeypatch.setattr("seqlab.cli.tag.check_output", lambda path: None)
    result = run("tag", model, files / "new.txt", "-o", tmp_path / "no" / "x.txt")
    assert_fails(result, f"seqlab: {tmp_path / 'no' / 'x.txt'}: no such file or directory")
    assert_fails(
        run("tag", model, tmp_path / "no", "-o", tmp_path / "x"), f"{tmp_path / 'no'}: no such"
    )


@pytest.mark.skipif(os.name != "posix", reason="POSIX pipes")
@pytest.mark.parametrize("args", [["--help"], ["train", "--help"], []])
def test_broken_pipe_while_printing_help(args):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "seqlab.cli", *args],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_quiet_training_prints_the_score_on_dev(run, files, tmp_path):
    out = ok(
        run(
            *("train", files / "train.conll", "-o", tmp_path / "m", "-q", "-p", "tol=0.1"),
            *("--dev", files / "test.conll"),
        )
    )
    (line,) = out.splitlines()
    assert line.split()[:2] == ["dev", "F1"]


def test_inspect_accepts_a_phrase_type(run, model):
    text = ok(run("inspect", model, "--label", "Street", "--top", "1"))
    assert "B-Street" in text
    assert "I-Street" in text
    assert "B-City" not in text
    assert_fails(run("inspect", model, "--label", "Stret"), "no label 'Stret'")


def test_message_about_a_damaged_file(run, model, tmp_path):
    broken = tmp_path / "broken.seqlab"
    broken.write_bytes(model.read_bytes()[:-200])
    assert run("inspect", broken).stderr == f"seqlab: {broken}: the model file is damaged\n"
    assert (
        "it has no directory at its end"
        in run("inspect", broken, "--debug").stderr.splitlines()[-1]
    )


@pytest.mark.skipif(os.name != "posix", reason="POSIX shell")
def test_here_document_in_the_guide(run, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(
        r"```sh\n(cat <<.*?\nEND\n)(seqlab train .*?)\n```", PAGE.read_text(), re.S
    )
    subprocess.run(["sh", "-c", block[0]], check=True)
    command = block[1].split()[1:]
    command[1] = files / "train.conll"
    assert "small.seqlab" in ok(run(*command, "-p", "tol=0.1"))


def test_evaluate_one_sequence(run, model, files, tmp_path):
    one = tmp_path / "one.conll"
    one.write_text((files / "test.conll").read_text().split("\n\n")[0] + "\n\n")
    result = run("evaluate", model, one)
    ok(result)
    assert "only one sequence" in result.stderr
    assert '"sequences": 1' in ok(run("evaluate", model, one, "--json"))
