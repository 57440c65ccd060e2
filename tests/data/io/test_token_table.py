"""Regular column files as tables: the same tokens and labels as `read_conll`, or None."""

from __future__ import annotations

import gzip
import os
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqlab.data.io import ReadError, read_conll
from seqlab.data.io.token_table import read_token_table

REGULAR = {
    "spaces": "the DT B-NP\ndog NN I-NP\n\n\nbarks VBZ B-VP\n\nthe DT B-NP\n",
    "tabs": "the\tDT\tB-NP\ndog\tNN\tI-NP\n\nbarks\tVBZ\tB-VP\n",
    "no line end": "a X\nb Y",
    "blank lines around": "\n\na X\n\n\n",
    "other white space": "a\u00a0b\u3000c X\n\x0b\x0c Y\n\u2028 Z\n",
    "not ASCII": "Straße 日本 X\n\U0001f600 é Y\n",
    "NUL": "a\0b X\n\0 Y\n",
    "same value in several columns": "X X X\nY X Y\n",
    "long values": f"{'ab' * 50} X\n{'ab' * 49}c X\n",
}
IRREGULAR = {
    "empty": "",
    "blank lines only": "\n\n",
    "one column": "a\nb\n",
    "missing label": "a b X\nc d\n",
    "more columns": "a X\nb c Y\n",
    "runs of spaces": "a  X\n",
    "space at the beginning": "a X\n b Y\n",
    "space at the end": "a X\nb Y \n",
    "line of spaces": "a X\n \nb Y\n",
    "tab after spaces": "a X\nb\tY\n",
    "space after tabs": "a\tX\nb c\tY\n",
    "empty column": "a\t\tX\n",
    "carriage return": "a X\r\nb Y\r\n",
    "document": "-DOCSTART- X\n\na X\n",
    "byte order mark": "\ufeffa X\n",
    "latin-1": "é X\n".encode("latin-1"),
    "compressed": gzip.compress(b"a X\n" * 9),
}


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture(params=[3, 1 << 18])
def _blocks(request, monkeypatch):
    monkeypatch.setattr("seqlab.data.io.token_table._BLOCK", request.param)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("name", REGULAR)
def test_equals_read_conll(name, tmp_path):
    path = write(tmp_path / "a.txt", REGULAR[name])
    tokens, labels = read_token_table(path)
    X, y = read_conll(path)
    assert list(tokens) == X
    assert labels == y
    assert tokens.n_tokens == sum(map(len, X))
    assert tokens[-1] == X[-1]
    assert tokens[1:] == X[1:]
    for values, codes in tokens.columns:
        assert values == list(dict.fromkeys(values[code] for code in codes))


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("name", IRREGULAR)
def test_other_files_are_not_read(name, tmp_path):
    assert read_token_table(write(tmp_path / "a.txt", IRREGULAR[name])) is None


def test_label_and_separator(tmp_path):
    path = write(tmp_path / "a.txt", "a b X\nc d Y\n")
    for label in (0, 1, -2):
        tokens, labels = read_token_table(path, label=label, sep=" ")
        assert (list(tokens), labels) == read_conll(path, label=label)
    for options in ({"label": 3}, {"label": -4}, {"sep": "\t"}, {"sep": "whitespace"}):
        assert read_token_table(path, **options) is None


def test_files_that_are_not_regular(tmp_path):
    assert read_token_table(write(tmp_path / "a.gz", "a X\n")) is None
    with pytest.raises(FileNotFoundError):
        read_token_table(tmp_path / "none.txt")
    if os.path.exists("/dev/null"):
        assert read_token_table("/dev/null") is None


def test_reading_can_be_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr("seqlab.data.io.token_table._BLOCK", 4)
    path = write(tmp_path / "a.txt", "a X\n" * 10)
    answers = iter([False] * 5 + [True])
    assert read_token_table(path, is_stopped=lambda: next(answers)) is None
    assert list(answers) == []
    assert len(read_token_table(path)[0][0]) == 10


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "é", " ", "\t", "\n", "\n", "a b\n", "c\td\n", "\r"])))
def test_never_contradicts_read_conll(tmp_path_factory, pieces):
    text = "".join(pieces)
    path = write(tmp_path_factory.getbasetemp() / "fuzzed.txt", text)
    found = read_token_table(path)
    if found is not None:
        assert (list(found[0]), found[1]) == read_conll(path)
        return
    with suppress(ReadError):
        read_conll(path)
        # The file is valid, but not regular.
        assert set(text) & {"\t", "\r"} or any(
            line.strip(" ") != line or "  " in line for line in text.split("\n")
        )
