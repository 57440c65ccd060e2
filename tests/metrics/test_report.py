"""Reports: agreement with seqeval and scikit-learn, output forms, intervals."""

import builtins

import numpy as np
import pytest
from seqeval.metrics import classification_report as seqeval_report
from sklearn.metrics import classification_report as sklearn_report

from seqlab.data import InputError
from seqlab.metrics import bootstrap_interval, span_f1, span_report, token_report

AVERAGES = ["micro avg", "macro avg", "weighted avg"]


@pytest.fixture
def tags():
    rng = np.random.default_rng(0)
    names = ["O", "B-X", "I-X", "B-Y", "I-Y"]
    gold = [rng.choice(names, size=6).tolist() for _ in range(30)]
    pred = [[g if rng.random() < 0.7 else rng.choice(names).item() for g in y] for y in gold]
    return gold, pred


def test_span_rows_equal_seqeval(tags):
    rows = span_report(*tags).to_dict()
    peer = seqeval_report(*tags, output_dict=True)
    assert list(rows) == ["X", "Y", *AVERAGES]
    for name, row in rows.items():
        theirs = [peer[name][key] for key in ("precision", "recall", "f1-score", "support")]
        assert list(row.values()) == pytest.approx(theirs)


def test_token_rows_equal_scikit_learn(tags):
    flat = [sum(y, []) for y in map(list, tags)]  # noqa: RUF017
    rows = token_report(*tags).to_dict()
    peer = sklearn_report(*flat, output_dict=True)
    for name, row in rows.items():
        if name == "micro avg":
            assert row["f1"] == row["precision"] == row["recall"] == pytest.approx(peer["accuracy"])
            continue
        theirs = [peer[name][key] for key in ("precision", "recall", "f1-score", "support")]
        assert list(row.values()) == pytest.approx(theirs)


def test_text():
    report = span_report([["B-NP", "O", "B-VP"]], [["B-NP", "O", "O"]])
    assert str(report) == repr(report) == report.to_text()
    lines = str(report).splitlines()
    assert lines[0].split() == ["precision", "recall", "f1", "support"]
    assert lines[1].split() == ["NP", "1.0000", "1.0000", "1.0000", "1"]
    assert [line.rsplit(maxsplit=4)[0] for line in lines[4:]] == AVERAGES
    assert len({len(line) for line in lines if line}) == 1
    assert "0.67" in report.to_text(digits=2)


def test_text_with_intervals_is_aligned(tags):
    report = span_report(*tags, confidence=0.9, n_resamples=50, random_state=0)
    for digits in (2, 4, 6):
        lines = report.to_text(digits).splitlines()
        assert "f1 0.9 interval" in lines[0]
        assert len({len(line) for line in lines if line}) == 1


def test_frame(tags):
    report = span_report(*tags, confidence=0.9, n_resamples=50, random_state=0)
    frame = report.to_frame()
    assert frame.index.tolist() == ["X", "Y", *AVERAGES]
    assert frame.loc["micro avg", "f1"] == span_f1(*tags)
    assert (frame["f1_low"] <= frame["f1"]).all()
    assert (frame["f1"] <= frame["f1_high"]).all()
    assert list(span_report(*tags).to_frame()) == ["precision", "recall", "f1", "support"]


def test_frame_without_pandas(tags, monkeypatch):
    import_ = builtins.__import__

    def no_pandas(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return import_(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_pandas)
    with pytest.raises(ImportError, match=r"pip install 'seqlab\[frame\]'"):
        span_report(*tags).to_frame()


def test_intervals_equal_those_of_the_single_metric(tags):
    report = span_report(*tags, confidence=0.95, n_resamples=200, random_state=3)
    interval = bootstrap_interval(*tags, "span_f1", n_resamples=200, random_state=3)
    row = report.to_dict()["micro avg"]
    assert row["f1"] == pytest.approx(interval.score)
    assert row["f1_interval"] == pytest.approx((interval.low, interval.high))
    assert report.intervals.shape == (2, 5, 3)


@pytest.mark.parametrize("report", [span_report, token_report])
def test_a_class_seen_once_and_always_right_has_the_interval_one(report):
    labels = [["B-X", "B-Y"], *[["B-X"]] * 9]
    rows = report(labels, labels, confidence=0.95, random_state=0).to_dict()
    assert all(row["f1_interval"] == (1.0, 1.0) for row in rows.values())
    missed = report(labels, [["B-X", "B-X"], *[["B-X"]] * 9], confidence=0.95, random_state=0)
    rare = "Y" if report is span_report else "B-Y"
    assert missed.to_dict()[rare]["recall_interval"] == (0.0, 0.0)


def test_an_interval_of_a_report_without_phrases_is_zero():
    rows = span_report([["O"]] * 3, [["O"]] * 3, confidence=0.9, n_resamples=20).to_dict()
    assert rows["micro avg"]["f1_interval"] == (0.0, 0.0)


def test_equal_seeds_give_equal_intervals(tags):
    kwargs = {"confidence": 0.9, "n_resamples": 20}
    one, two = (token_report(*tags, random_state=7, **kwargs).intervals for _ in range(2))
    np.testing.assert_array_equal(one, two)
    from_state = token_report(*tags, random_state=np.random.RandomState(0), **kwargs)
    assert from_state.intervals.shape == one.shape


def test_nothing_to_report():
    report = span_report([["O"]], [["O"]])
    assert report.classes == []
    assert report.to_dict()["micro avg"] == {"precision": 0, "recall": 0, "f1": 0, "support": 0}
    assert "micro avg" in str(report)
    assert len(report.to_frame()) == 3


def test_invalid_confidence(tags):
    with pytest.raises(InputError, match="confidence must be between 0 and 1, got 95"):
        span_report(*tags, confidence=95)
    with pytest.raises(InputError, match="needs at least two, got 1"):
        span_report([["O"]], [["O"]], confidence=0.9)
