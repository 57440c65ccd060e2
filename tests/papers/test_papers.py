"""Running experiments, and the cheapest ones on real data."""

from __future__ import annotations

import json
import os

import pytest

from seqlab import papers
from seqlab.cli import app
from seqlab.data import InputError
from seqlab.data.open_close import open_close_to_phrases
from seqlab.papers import classifiers_in_inference, experiment, few_labels, report
from seqlab.papers.experiment import (
    Claim,
    Experiment,
    check_claims,
    find_paper,
    judge_claims,
    run,
    select,
)
from seqlab.papers.report import make_table, to_dict

TOY = [
    Experiment("a/x", lambda: 92.004, published=91.0, target=92.0),
    Experiment("a/y", lambda: 80.0, target=80.5),
    Experiment("b/x", lambda: 1.0),
]
CLAIMS = [
    Claim("x above y", ("a/x", "a/y"), lambda x, y: x > y),
    Claim("y above x", ("a/x", "a/y"), lambda x, y: y > x),
    Claim("about an experiment that was not run", ("a/x", "c/x"), lambda x, y: True),
]


@pytest.fixture
def toy(monkeypatch):
    """A paper with three instant experiments."""

    class Module:
        TITLE, EXPERIMENTS = "toy", TOY

    Module.CLAIMS = CLAIMS[:1]
    monkeypatch.setitem(papers.PAPERS, "toy", "toy")
    real = experiment.import_module
    monkeypatch.setattr(
        experiment, "import_module", lambda name: Module if name == "toy" else real(name)
    )
    return Module


def test_run_and_report():
    results = list(run(TOY))
    assert [result.met for result in results] == [True, False, None]
    assert check_claims(CLAIMS, results) == [("x above y", True), ("y above x", False)]
    stored = json.loads(json.dumps(to_dict("toy", results, CLAIMS)))
    assert stored["experiments"][0]["measured"] == 92.004
    assert [one["holds"] for one in stored["claims"]] == [True, False]
    assert make_table("toy", results).row_count == 3


def test_verdicts_count_the_seeds_or_folds():
    experiments = [
        Experiment("a", lambda: [1.0, 2.0, 3.0], target=2.0),
        Experiment("b", lambda: (2.0, 1.0, 1.0)),
        Experiment("c", lambda: 0.0),
    ]
    results = list(run(experiments))
    assert [one.measured for one in results] == [2.0, pytest.approx(4 / 3), 0.0]
    assert results[0].met
    assert results[0].spread == pytest.approx(1.0)
    assert results[2].spread is None
    claims = [
        Claim("some", ("a", "b"), lambda a, b: a > b),
        Claim("none", ("a", "c"), lambda a, c: c > a, is_required=False),
        Claim("all", ("b", "c"), lambda b, c: b > c),
    ]
    verdicts = judge_claims(claims, results)
    assert [one.text for one in verdicts] == [
        "holds in part (2 of 3 seeds)",
        "does not hold here",
        "holds",
    ]
    assert judge_claims(claims, results, "folds")[0].text == "holds in part (2 of 3 folds)"
    assert verdicts[1].evidence == "a 2.00 +- 1.00, c 0.00"
    assert check_claims(claims, results) == [("some", False), ("none", False), ("all", True)]


def test_select():
    assert [one.name for one in select(TOY, ["x"])] == ["a/x", "b/x"]
    assert [one.name for one in select(TOY, ["x", "a"])] == ["a/x"]
    assert [one.name for one in select(TOY, ["a/x"])] == ["a/x"]
    assert select(TOY, []) == TOY
    with pytest.raises(InputError, match="no experiment has the part 'z'"):
        select(TOY, ["z"])
    with pytest.raises(InputError, match="all of the parts a, b"):
        select(TOY, ["a", "b"])
    with pytest.raises(InputError, match="no paper is named 'nonsense'"):
        find_paper("nonsense")


def test_command(toy, tmp_path, capsys):
    def reproduce(*args):
        return app(["reproduce", *args], standalone_mode=False)

    file = tmp_path / "toy.json"
    assert reproduce("toy", "--only", "a", "--json", str(file)) == 1  # a target is missed
    out = capsys.readouterr()
    assert "holds: x above y" in out.out
    assert "92.00" in out.out
    assert "missed" in out.out
    assert "a/x" in out.err
    assert [one["name"] for one in json.loads(file.read_text())["experiments"]] == ["a/x", "a/y"]
    assert reproduce("toy", "--only", "b") == 0
    assert reproduce("all", "--only", "b/x") == 0  # the other papers have no such experiment
    assert reproduce("toy", "--only", "q") == 2
    assert "no experiment has the part 'q'" in capsys.readouterr().err


def test_resume(toy, tmp_path, capsys, monkeypatch):
    def reproduce(*args):
        return app(["reproduce", "toy", *args], standalone_mode=False)

    n_runs = []
    seeds = Experiment("a/x", lambda: n_runs.append("a/x") or [92.004, 94.0], target=92.0)
    toy.EXPERIMENTS = [seeds, *TOY[1:]]
    file = tmp_path / "toy.json"
    assert reproduce("--only", "a/x", "--json", str(file), "--resume") == 0
    first = json.loads(file.read_text())["experiments"][0]
    assert reproduce("--only", "a", "--json", str(file), "--resume") == 1
    assert n_runs == ["a/x"]
    stored = json.loads(file.read_text())
    assert [one["name"] for one in stored["experiments"]] == ["a/x", "a/y"]
    assert stored["experiments"][0] == first
    assert stored["claims"][0]["holds"]
    assert "93.00" in capsys.readouterr().out  # stored results are in the table

    def interrupt():
        raise KeyboardInterrupt

    toy.EXPERIMENTS = [seeds, Experiment("a/y", interrupt)]
    fresh = tmp_path / "fresh.json"
    with pytest.raises(KeyboardInterrupt):
        report.run_paper("toy", output=fresh)
    assert [one["name"] for one in json.loads(fresh.read_text())["experiments"]] == ["a/x"]

    assert reproduce("--resume") == 2
    for content in ("nonsense", "[1]", json.dumps({**stored, "title": "other"})):
        file.write_text(content)
        assert reproduce("--json", str(file), "--resume") == 2
        assert str(file.name) in capsys.readouterr().err
        assert file.read_text() == content


def test_experiments_of_the_paper():
    names = [one.name for one in classifiers_in_inference.EXPERIMENTS]
    assert len(set(names)) == 18
    assert set(classifiers_in_inference.TARGETS) <= set(names)
    assert set(classifiers_in_inference.PUBLISHED) <= set(names)
    for claim in classifiers_in_inference.CLAIMS:
        assert set(claim.needs) <= set(names)


def test_score_is_the_f1_of_phrases():
    part = classifiers_in_inference.Part(
        [["a", "b", "c"], ["d"]],
        [open_close_to_phrases(["O", "nCi", "nOi", "C", "O", "C"], "NP"), []],
    )
    right = classifiers_in_inference.decisions(part)
    assert classifiers_in_inference.phrase_f1(part, right) == 100.0
    half = [["O", "nCi", "nOi", "C", "nOo", "nCo"], ["nOo", "nCo"]]
    assert classifiers_in_inference.phrase_f1(part, half) == pytest.approx(200 / 3)


@pytest.mark.data
@pytest.mark.skipif("SEQLAB_DATA" not in os.environ, reason="SEQLAB_DATA is not set")
@pytest.mark.parametrize(("name", "target"), [("sv/snow/pmm", 90.0), ("sv/nb/cscl", 83.5)])
def test_subject_verb_phrases(name, target):
    """The two cheapest experiments; `make reproduce` runs all of them."""
    [experiment] = [one for one in classifiers_in_inference.EXPERIMENTS if one.name == name]
    assert experiment.target == target
    [result] = run([experiment])
    assert result.met, result.measured


def test_few_labels_if_the_model_is_correct():
    """The numbers in the guide that need no data set; `make reproduce` measures the others."""
    names = [one.name for one in few_labels.EXPERIMENTS]
    assert len(set(names)) == len(names) == 24
    results = list(run(select(few_labels.EXPERIMENTS, ["drawn"])))
    claims = check_claims(few_labels.CLAIMS, results)
    assert len(claims) == 3
    assert all(holds for _, holds in claims)
    measured = {result.experiment.name: result.measured for result in results}
    assert measured["drawn/2/labelled"] == pytest.approx(52.2, abs=1.0)
    assert measured["drawn/2/em"] == pytest.approx(81.8, abs=1.0)
    assert measured["drawn/all/labelled"] == pytest.approx(90.1, abs=1.0)


@pytest.mark.data
@pytest.mark.skipif("SEQLAB_DATA" not in os.environ, reason="SEQLAB_DATA is not set")
def test_few_labels_in_english_text():
    results = list(run(select(few_labels.EXPERIMENTS, ["ewt", "200"])))
    assert check_claims(few_labels.CLAIMS, results) == [
        ("ewt: 20 passes of EM harm with 200 labelled sentences", True)
    ]
    measured = [result.measured for result in results]
    assert measured == pytest.approx([69.9, 70.0, 67.8, 59.9, 67.0], abs=0.5)


def test_a_derived_experiment_takes_results_that_are_known_or_measured():
    derived = Experiment("c", lambda a, b: a.measured - b.measured, derived_from=("a", "b"))
    a, b = Experiment("a", lambda: [3.0, 5.0]), Experiment("b", lambda: 1.0)
    assert [one.measured for one in run([a, b, derived])] == [4.0, 1.0, 3.0]
    [known] = run([a])
    assert [one.measured for one in run([b, derived], {"a": known})] == [1.0, 3.0]
    assert [one.experiment.name for one in run([a, derived])] == ["a"]


def test_selecting_nothing_is_an_error_and_empty_parts_do_not_count():
    every = [Experiment("np/snow", float), Experiment("sv/snow", float)]
    with pytest.raises(InputError, match="no experiment has all of the parts np, sv"):
        select(every, ["np", "sv"])
    assert [one.name for one in select(every, ["np/"])] == ["np/snow"]
