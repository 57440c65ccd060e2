"""Logs of object use as logical sequences."""

from __future__ import annotations

import io

import pytest

from seqlab.data import InputError
from seqlab.data.io import ReadError
from seqlab.datasets import load_object_use


def test_steps_days_and_overlapping_activities():
    events = io.StringIO(
        "# a comment\n2008-02-25T23:58:30\t2008-02-25T23:59:00\tcup\n"
        "2008-02-25 23:59:10\t2008-02-26 00:00:30\ttea bag\n2008-02-26T00:02:00\t2008-02-26T00:02:00\tcup\n"
    )
    activities = io.StringIO(
        "2008-02-25T23:58:00\t2008-02-26T00:01:00\ttea\n2008-02-26T00:00:00\t2008-02-26T00:01:00\trest\n"
    )
    log = load_object_use(events, activities)
    assert log.data == [[["use(cup)"], ["use('tea bag')"]], [["use('tea bag')"], [], ["use(cup)"]]]
    assert log.target == [["tea", "tea"], ["rest", "idle", "idle"]]
    assert log.starts[1] % 86_400 == 0
    assert log.objects == ["cup", "tea bag"]


def test_one_sequence_of_numbers():
    def log(text):
        return load_object_use(
            io.StringIO(text), io.StringIO(""), step=10, split_days=False, sep=",", return_X_y=True
        )

    assert log("5,20,a\n30,31,b\n")[0] == [[["use(a)"], ["use(a)"], [], ["use(b)"]]]
    for text, line, message in (
        ("1,2,a\n1,2\n", 2, "three columns"),
        ("x,2,a\n", 1, "seconds or ISO dates"),
        ("1,inf,a\n", 1, "seconds or ISO dates"),
        ("3,2,a\n", 1, "ends before it begins"),
        ("", None, "no intervals"),
    ):
        with pytest.raises(ReadError, match=message) as error:
            log(text)
        assert error.value.line == line
    with pytest.raises(InputError, match="check the times"):
        log("0,1,a\n1e12,1e12,b\n")
    with pytest.raises(InputError, match="positive number"):
        load_object_use(io.StringIO(""), io.StringIO(""), step=0)
