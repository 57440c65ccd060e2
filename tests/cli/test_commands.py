"""What each command does with valid input."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from seqeval.metrics import f1_score

import seqlab
from seqlab.data.io import read_conll


def ok(result):
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_help_names_every_command(run):
    text = ok(run("--help"))
    for command in ("train", "tag", "evaluate", "inspect", "datasets", "demo", "reproduce"):
        assert f"seqlab {command}" in text or f" {command} " in text
        assert f"seqlab {command}" in ok(run(command, "--help"))
    assert ok(run()).strip() == text.strip()


def test_version(run):
    assert ok(run("--version")) == f"seqlab {seqlab.__version__}\n"


@pytest.mark.parametrize("args", [["--help"], ["train", "--help"], ["--version"]])
def test_help_does_not_import_large_packages(args):
    code = (
        "import sys\nfrom seqlab.cli import app\n"
        f"app({args!r}, standalone_mode=False)\n"
        "large = {'numpy', 'scipy', 'sklearn', 'numba', 'pandas', 'matplotlib', 'skops'}\n"
        "sys.exit(', '.join(large & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_module_runs_like_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "seqlab.cli", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("seqlab ")


class TestTrain:
    def test_summary_progress_and_dev(self, run, files, tmp_path):
        out = tmp_path / "m.seqlab"
        result = run(
            "train", files / "train.conll", "-o", out, "--dev", files / "test.conll",
            "-p", "c2=0.1", "-p", "tol=0.01", "--min-count", "2",
        )  # fmt: skip
        text = ok(result)
        for part in ("200 sequences", "tokens", "labels", "features", "iterations", "objective"):
            assert part in text
        assert "F1 " in text
        assert "token accuracy" in text
        assert "LinearChainCRF" in result.stderr
        assert "objective" in result.stderr
        tagger = seqlab.load(out)
        assert tagger.labeler_.c2 == 0.1
        assert tagger.features_.min_count == 2
        assert tagger.labeler_.verbose is False

    def test_dev_stops_early(self, run, files, tmp_path):
        text = ok(
            run(
                *("train", files / "train.conll", "-o", tmp_path / "m", "-m", "perceptron"),
                *("-p", "max_iter=200", "--dev", files / "test.conll"),
            )
        )
        labeler = seqlab.load(tmp_path / "m").labeler_
        assert labeler.best_iteration_ <= labeler.n_iter_ < 200
        assert f"(the best is {labeler.best_iteration_})" in text
        assert f"token accuracy {100 * labeler.best_validation_score_:.2f}" in text
        shown = ok(run("inspect", tmp_path / "m"))
        assert f"(the best is {labeler.best_iteration_})" in shown
        assert "not converged" not in shown
        narrow = tmp_path / "narrow.conll"
        narrow.write_text("a b c X\n")
        command = ("train", files / "train.conll", "-o", tmp_path / "m", "--dev", narrow)
        result = run(*command)
        assert result.exit_code != 0
        assert "4 columns" in result.stderr

    def test_same_command_same_model(self, run, files, tmp_path):
        models = []
        for name in ("a", "b"):
            ok(
                run(
                    *("train", files / "train.conll", "-o", tmp_path / name),
                    *("-m", "perceptron", "-p", "max_iter=2"),
                )
            )
            models.append(seqlab.load(tmp_path / name).labeler_)
        assert (models[0].coef_ != models[1].coef_).nnz == 0
        assert (models[0].transitions_ == models[1].transitions_).all()

    @pytest.mark.parametrize("name", ["perceptron", "independent", "structuredperceptron"])
    def test_other_labelers(self, run, files, tmp_path, name):
        out = tmp_path / "m.seqlab"
        text = ok(run("train", files / "test.conll", "-o", out, "-m", name))
        assert type(seqlab.load(out).labeler_).__name__ in text
        assert "micro avg" in ok(run("evaluate", out, files / "test.conll"))
        assert "B-City" in ok(run("inspect", out, "--top", "2"))

    @pytest.mark.filterwarnings("default:the template:UserWarning")
    def test_notes_about_templates(self, run, files, tmp_path):
        template = tmp_path / "t.tpl"
        template.write_text("# words\nU00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\n")
        out = tmp_path / "m.seqlab"
        result = run("train", files / "test.conll", "-o", out, "-t", template, "-p", "tol=0.01")
        ok(result)
        assert "there is no B line" in result.stderr
        names = seqlab.load(out).features_.get_feature_names_out()
        assert all(name.startswith(("U00:", "U01:")) for name in names)
        template.write_text("U00:%x[0,0]\nB01:%x[0,0]\n")
        result = run("train", files / "test.conll", "-o", out, "-t", template, "-p", "tol=0.01")
        ok(result)
        assert "'B01:%x[0,0]' asks for label pairs with observations" in result.stderr

    def test_parameters_get_the_right_type(self, run, files, tmp_path):
        out = tmp_path / "m.seqlab"
        params = ["c1=0.1", "solver=owlqn", "all_transitions=true", "tol=1e-2", "class_weight=none"]
        flags = [part for param in params for part in ("-p", param)]
        ok(run("train", files / "test.conll", "-o", out, *flags))
        labeler = seqlab.load(out).labeler_
        assert (labeler.c1, labeler.solver, labeler.all_transitions) == (0.1, "owlqn", True)
        assert labeler.class_weight is None

    def test_old_model_is_kept_if_training_fails(self, run, files, tmp_path):
        out = tmp_path / "m.seqlab"
        out.write_text("old")
        bad = tmp_path / "bad.conll"
        bad.write_text("a X\nb\n")
        assert run("train", bad, "-o", out).exit_code == 2
        assert out.read_text() == "old"
        assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.conll", "m.seqlab"]


class TestTag:
    def test_with_and_without_gold_column(self, run, model, files):
        labelled = ok(run("tag", model, files / "test.conll")).splitlines()
        bare = ok(run("tag", model, files / "new.txt")).splitlines()
        lines = (files / "test.conll").read_text().splitlines()
        assert [line.rpartition(" ")[0] for line in labelled] == lines
        assert [line.split(" ")[-1] for line in bare] == [line.split(" ")[-1] for line in labelled]

    def test_same_labels_as_the_library(self, run, model, files):
        X, _ = read_conll(files / "new.txt", label=None)
        expected = seqlab.load(model).predict(X)
        _, found = read_conll_text(ok(run("tag", model, files / "new.txt")))
        assert [labels.tolist() for labels in expected] == found

    def test_standard_input_and_output_file(self, run, model, files, tmp_path):
        text = (files / "new.txt").read_text()
        out = tmp_path / "out.txt.gz"
        assert ok(run("tag", model, "-o", out, stdin=text)) == ""
        X, y = read_conll(out)
        assert len(X) == 60
        assert [labels.tolist() for labels in seqlab.load(model).predict(X)] == y

    def test_comments_blank_lines_and_docstart_are_kept(self, run, model):
        text = "# note\n-DOCSTART- x\n\n12\nMain\n\n\n# end\n7\n# last\n"
        out = ok(run("tag", model, "--comment", "#", stdin=text))
        kept = [line.split(" ")[0] if line[:1].isdigit() else line for line in out.splitlines()]
        kept = ["Main" if line.startswith("Main ") else line for line in kept]
        assert kept == text.splitlines()

    def test_probabilities(self, run, model, files):
        lines = ok(run("tag", model, files / "new.txt", "--proba")).splitlines()
        X, _ = read_conll(files / "new.txt", label=None)
        marginals = np.concatenate([p.max(axis=1) for p in seqlab.load(model).predict_proba(X)])
        shown = [float(line.split(" ")[2]) for line in lines if line]
        assert len(shown) == marginals.size
        assert np.max(np.array(shown)) <= 1
        assert np.mean(np.abs(np.array(shown) - marginals) < 1e-5) > 0.95

    def test_nbest(self, run, model):
        text = ok(run("tag", model, "--nbest", "3", "--proba", stdin="12\nMain\nSt\n"))
        heads = [line for line in text.splitlines() if line.startswith("#")]
        assert [head.split()[1] for head in heads] == ["0", "1", "2"]
        scores = [float(head.split()[2]) for head in heads]
        assert scores == sorted(scores, reverse=True)
        assert sum(scores) <= 1
        assert text.count("Main ") == 3

    def test_constraints(self, run, model):
        text = ok(run("tag", model, "--constraints", "IOB2", stdin="12\nMain\nSt\n"))
        assert text.split()[1].startswith(("B-", "O"))

    def test_pretty_text(self, run, model):
        out = ok(run("tag", model, "-f", "text", "--pretty", stdin="12 Main St, Boston\n"))
        assert "%" in out
        assert "━" in out or "╍" in out or "┈" in out
        columns = ok(run("tag", model, "-f", "text", stdin="12 Main St, Boston\n\n9 Elm\n"))
        words = [line.split(" ")[0] for line in columns.splitlines()]
        assert words == ["12", "Main", "St", ",", "Boston", "", "9", "Elm", ""]


class TestEvaluate:
    def test_same_scores_as_seqeval_with_and_without_pred(self, run, model, files, tmp_path):
        direct = json.loads(ok(run("evaluate", model, files / "test.conll", "--json")))
        out = tmp_path / "out.txt"
        ok(run("tag", model, files / "test.conll", "-o", out))
        piped = json.loads(ok(run("evaluate", "--pred", out, "--json")))
        assert direct == piped
        X, predicted = read_conll(out)
        gold = [[token[1] for token in tokens] for tokens in X]
        f1 = direct["report"]["micro avg"]["f1"]
        assert f1 == pytest.approx(f1_score(gold, predicted), abs=1e-12)
        low, high = direct["report"]["micro avg"]["f1_interval"]
        assert low <= f1 <= high
        assert direct["scheme"] == "IOB2"

    def test_report_shows_places(self, run, model, files):
        text = ok(run("evaluate", model, files / "test.conll"))
        assert "95 % interval" in text
        assert "Most frequent confusions" in text
        assert "sequence accuracy" in text
        assert "test.conll:" in "".join(text.split())  # a long path is folded

    def test_labels_that_are_not_tags(self, run, tmp_path):
        file = tmp_path / "p.txt"
        file.write_text("a N N\nb V N\n\nc D D\n")
        report = json.loads(ok(run("evaluate", "--pred", file, "--json")))
        assert report["scheme"] is None
        assert report["token_accuracy"] == pytest.approx(2 / 3)
        assert report["confusions"] == [{"gold": "V", "predicted": "N", "count": 1}]
        assert "scored by token;" in ok(run("evaluate", "--pred", file))
        assert json.loads(ok(run("evaluate", "--pred", file, "--json", "--scheme", "none")))


class TestInspect:
    def test_report(self, run, model):
        text = ok(run("inspect", model, "--top", "3"))
        assert "LinearChainCRF" in text
        assert "tol=0.001" in text
        assert "positive transitions" in text
        assert "B-Street → I-Street" in text

    def test_one_label_and_json(self, run, model):
        text = ok(run("inspect", model, "--label", "B-City"))
        assert "B-City" in text
        assert "B-Street" not in text
        found = json.loads(ok(run("inspect", model, "--json", "--top", "2")))
        assert found["model"]["labeler"] == "LinearChainCRF"
        assert len(found["features"]["B-City"]["for"]) == 2
        assert {"from", "to", "weight"} == set(found["transitions"][0])

    def test_trees_have_importances(self, run, tmp_path):
        file, out = tmp_path / "xor.txt", tmp_path / "trees.seqlab"
        file.write_text("".join(f"{a} {b} {int(a != b)}\n" for a in "xy" for b in "xy") + "\n")
        ok(run("train", file, "-o", out, "-m", "BoostedCRF", "-p", "max_iter=3"))
        text = ok(run("inspect", out, "--top", "2"))
        assert "previous label" in text
        assert "no transitions" not in text
        assert "not converged" not in text
        found = json.loads(ok(run("inspect", out, "--json")))["importances"]
        assert sum(found.values()) == pytest.approx(1.0, abs=0.1)

    def test_rules_are_shown(self, run, tmp_path):
        file, out = tmp_path / "days.txt", tmp_path / "rules.seqlab"
        file.write_text("door out\nfridge eat\ncup eat\n\ndoor out\ncup eat\n\n" * 5)
        ok(run("train", file, "-o", out, "-m", "StructHKL"))
        text = ok(run("inspect", out))
        assert "door" in text
        assert "no linear weights" not in text
        assert "door" not in ok(run("inspect", out, "--label", "eat", "--top", "1"))
        rules = json.loads(ok(run("inspect", out, "--json")))["rules"]
        assert any("door" in name for one in rules["out"] for name in one["if"])


class TestDatasets:
    def test_list_and_show(self, run):
        names = [one["name"] for one in json.loads(ok(run("datasets", "--json")))]
        assert "conll2000" in names
        assert "conll2000" in ok(run("datasets"))
        assert "CC BY-SA 4.0" in ok(run("datasets", "show", "ud_english_ewt"))
        assert json.loads(ok(run("datasets", "show", "conll2000", "--json")))["tokens"]
        assert "make_addresses" in ok(run("datasets", "show", "addresses"))

    def test_export_generated(self, run, tmp_path):
        ok(run("datasets", "export", "addresses", tmp_path))
        X, y = read_conll(tmp_path / "addresses-test.conll")
        assert len(X) == len(y) == 500
        assert (tmp_path / "addresses-train.conll").exists()


def test_demo(run, tmp_path):
    model, picture = tmp_path / "address.seqlab", tmp_path / "demo.svg"
    text = ok(run("demo", "--save", model, "--svg", picture))
    for part in ("Pennsylvania", "HouseNumber", "F1 ", "→", "What to try next"):
        assert part in text
    assert "<svg" in picture.read_text(encoding="utf-8")
    assert ok(run("tag", model, "-f", "text", stdin="10 Downing St, London\n"))


def read_conll_text(text):
    import io

    return read_conll(io.StringIO(text))


def test_reproduce(run):
    listed = ok(run("reproduce", "classifiers", "--list", "--only", "sv/snow"))
    assert listed.split() == [
        part for end in ("hmm", "pmm", "cscl") for part in ("classifiers", f"sv/snow/{end}")
    ]
    result = run("reproduce", "clasifiers")
    assert result.exit_code == 2
    assert "did you mean 'classifiers'?" in result.stderr
    result = run("reproduce", "classifiers", "--only", "nonsense")
    assert result.exit_code == 2
    assert "no experiment has the part 'nonsense'" in result.stderr
