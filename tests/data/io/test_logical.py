"""The text format of logical sequences."""

from __future__ import annotations

import io

import pytest

from seqlab.data import Atom, SymbolicSequences
from seqlab.data.io import ReadError, WriteError, iter_logical, read_logical, write_logical

TEXT = "% day 1\ntea\tuse(kettle), use('tea bag')\nidle\ttrue\n\n\ntea\tat(me,kitchen) hot\n"


def test_reading_and_writing_are_inverse(tmp_path):
    X, y = read_logical(io.StringIO(TEXT))
    assert X == [[["use(kettle)", "use('tea bag')"], []], [["at(me, kitchen)", "hot"]]]
    assert y == [["tea", "idle"], ["tea"]]
    for labels, name in ((y, "labeled.txt"), (None, "plain.txt.gz")):
        path = tmp_path / name
        write_logical(SymbolicSequences.from_steps(X), labels, path)
        assert read_logical(path, labeled=labels is not None) == (X, labels)
    assert len(list(iter_logical(io.StringIO(TEXT)))) == 2


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("tea\tuse(kettle)\ntea\tuse(kettle\n", 2, "no closing parenthesis"),
        ("\ntea\tuse(kettle)\n\tuse(cup)\n", 3, "the label is missing"),
        ("tea\tuse(cup)\ntea use(kettle)\n", 2, "no tab between label and atoms"),
        ("% only a comment\n", None, "no sequences"),
        ("", None, "no sequences"),
    ],
)
def test_errors_name_the_line(text, line, message):
    with pytest.raises(ReadError, match=message) as error:
        read_logical(io.StringIO(text))
    assert error.value.line == line


def test_what_the_format_cannot_contain():
    for X, y in (
        ([[]], [[]]),
        ([[["a"]]], [["x\ty"]]),
        ([[[("a", "\n")]]], None),
        ([[["a"]]], [[""]]),
        ([[["a"]]], [[" x"]]),
        ([[[Atom("true")]]], [["x"]]),
    ):
        with pytest.raises(WriteError):
            write_logical(X, y, io.StringIO())
