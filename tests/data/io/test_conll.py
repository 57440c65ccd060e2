"""Column files: what is read, and the errors for what cannot be read."""

import io
import itertools
import tracemalloc

import pytest

from seqlab.data import InputError
from seqlab.data.io import ReadError, WriteError, iter_conll, read_conll, write_conll


def read(text, **options):
    return read_conll(io.StringIO(text), **options)


def test_columns_and_labels():
    X, y = read("the DT B-NP\ndog NN I-NP\n\n\nbarks VBZ B-VP\n")
    assert X == [[("the", "DT"), ("dog", "NN")], [("barks", "VBZ")]]
    assert y == [["B-NP", "I-NP"], ["B-VP"]]


@pytest.mark.parametrize("label", [0, 1, 2, -1, -2, -3])
def test_any_label_column(label):
    X, y = read("a b c\nd e f\n", label=label)
    assert y == [["abc"[label], "def"[label]]]
    assert X[0][0] == tuple(c for c in "abc" if c != "abc"[label])


def test_without_labels():
    assert read("a b\nc d\n", label=None) == ([[("a", "b"), ("c", "d")]], None)
    assert read("a\n\nb\n", label=None) == ([[("a",)], [("b",)]], None)
    assert list(iter_conll(io.StringIO("a\n"), label=None)) == [([("a",)], None)]


def test_tabs_keep_spaces_and_empty_columns():
    X, y = read("New York\t\tB\nof\tx\tO\n")
    assert X == [[("New York", ""), ("of", "x")]]
    assert y == [["B", "O"]]


def test_runs_of_spaces_and_other_white_space():
    X, y = read("a   b  X\n c d Y \n \t \ne f Z\n")
    assert X == [[("a", "b"), ("c", "d")], [("e", "f")]]
    assert y == [["X", "Y"], ["Z"]]
    # Only the ASCII space separates: a no-break space is text.
    assert read("\u3000\n\n \t \n\x0b\n", label=None) == ([[("\u3000",)], [("\x0b",)]], None)
    assert read("a\u00a0b\u3000c X\n") == ([[("a\u00a0b\u3000c",)]], [["X"]])


def test_both_separators_on_request():
    X, y = read("a\tb X\nc d \t Y\n", sep="whitespace")
    assert X == [[("a", "b"), ("c", "d")]]
    assert y == [["X", "Y"]]
    assert read("a\tb X\n", sep=" ") == ([[("a\tb",)]], [["X"]])


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1000])
def test_sequences_across_blocks(monkeypatch, block):
    """Lines that end a sequence, and lines that begin like these, at any position in a block."""
    monkeypatch.setattr("seqlab.data.io.streams._BLOCK", block)
    text = " a X\n-DOC b\n-DOCSTART-s c\n-DOCSTART- Y\n \t\n# Z\nd e\n## f\n\n\ng h\n"
    X, y = read(text)
    assert X == [[("a",), ("-DOC",), ("-DOCSTART-s",)], [("#",), ("d",), ("##",)], [("g",)]]
    assert y == [["X", "b", "c"], ["Z", "e", "f"], ["h"]]
    X, y = read(text, comment="##", docstart=None)
    assert [len(tokens) for tokens in X] == [4, 2, 1]
    with pytest.raises(ReadError, match=r"^<stream>:12: 3 columns"):
        read(text + "i j k\n", comment="#")


def test_comments_only_on_request():
    text = "# # O\n# one\na b X\n"
    with pytest.raises(ReadError, match="2 columns, but earlier lines have 3"):
        read(text)
    X, y = read("# doc\na X\n# next\nb Y\n#\n", comment="#")
    assert (X, y) == ([[("a",)], [("b",)]], [["X"], ["Y"]])


def test_document_markers_are_skipped():
    text = "-DOCSTART- -X- O\n\na b X\n-DOCSTART- wsj\nc d Y\n-DOCSTART-ish d Z\n"
    assert read(text)[1] == [["X"], ["Y", "Z"]]
    assert len(read("-DOCSTART- -X- O\n\na b X\n", docstart=None)[0]) == 2


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a b X\nc Y\n", 2, "2 columns, but earlier lines have 3"),
        ("a b X\n\nc d Y\ne f g Z\n", 4, "4 columns, but earlier lines have 3"),
        ("a  X\nb\n", 2, r"1 column, but earlier lines have 2 \(is the label missing\?\)"),
        ("a b X\nc  Y\n", 2, "2 columns, but earlier lines have 3"),
        ("a X\nb\tY\n", 2, "a tab, but earlier lines are separated by spaces"),
        ("a X\nb\tc Y\n", 2, "a tab, but earlier lines are separated by spaces"),
        ("a\tX\nb Y\n", 2, "separated by spaces, but earlier lines by tabs"),
        ("a\tX\nb\t\n", 2, "the label is missing"),
        ("a\tX\nb\tY\tZ\n", 2, "3 columns, but earlier lines have 2"),
        ("a\n", 1, "only one column, the label"),
        ("", None, "the file is empty"),
        ("\n\n \n", None, "the file is empty"),
        ("-DOCSTART- x\n", None, "the file is empty"),
    ],
)
def test_errors_name_the_line(text, line, reason):
    with pytest.raises(ReadError, match=reason) as caught:
        read(text)
    assert caught.value.line == line
    assert str(caught.value).startswith("<stream>" + (f":{line}: " if line else ": "))


def test_error_names_the_file(tmp_path):
    path = tmp_path / "train.conll"
    path.write_text("a b X\n" * 16 + "c Y\n")
    with pytest.raises(ReadError) as caught:
        read_conll(path)
    assert str(caught.value) == f"{path}:17: 2 columns, but earlier lines have 3"


@pytest.mark.parametrize("label", [2, -3])
def test_missing_label_column(label):
    with pytest.raises(ReadError, match=f"no column {label} for the label: the line has 2"):
        read("a X\n", label=label)


def test_bad_separator():
    with pytest.raises(InputError, match="sep"):
        read("a X\n", sep=",")
    with pytest.raises(InputError, match="sep"):
        write_conll([["a"]], [["X"]], io.StringIO(), sep="whitespace")


@pytest.mark.parametrize(
    ("token", "sep"),
    [
        (("a b",), " "), (("",), " "), (("a\tb",), " "), (("a\tb",), "\t"), (("a\nb",), "\t"),
        (("a", "b c"), " "),
    ],
)  # fmt: skip
def test_columns_that_cannot_be_written(token, sep):
    out = io.StringIO()
    with pytest.raises(WriteError, match=r"X\[1\]\[0\]"):
        write_conll([[("ok",)], [token]], [["X"], ["Y"]], out, sep=sep)
    with pytest.raises(WriteError, match="empty"):
        write_conll([[]], [[]], out, sep=sep)
    with pytest.raises(WriteError):
        write_conll([[("a",)]], [["\r"]], out, sep=sep)


@pytest.mark.parametrize("label", [0, 1, 2, -1, -2, -3])
def test_labels_are_read_from_the_column_they_are_written_to(label):
    out = io.StringIO()
    write_conll([[("a", "b")]], [["X"]], out, label=label)
    assert read(out.getvalue(), label=label) == ([[("a", "b")]], [["X"]])


def test_iterators_are_written_and_read_one_by_one(tmp_path):
    path = tmp_path / "long.conll"
    n = 1000
    write_conll((["w", "v"] for _ in range(n)), (["X", "Y"] for _ in range(n)), path)
    sequences = iter_conll(path)
    assert len(list(itertools.islice(sequences, 3))) == 3
    assert sum(1 for _ in sequences) == n - 3


def test_a_long_file_takes_constant_memory(tmp_path):
    path = tmp_path / "long.conll"
    sentence = "".join(f"word{k} tag X\n" for k in range(20)) + "\n"

    def peak(n_sentences, consume):
        path.write_text(sentence * n_sentences)
        tracemalloc.start()
        try:
            assert consume(iter_conll(path)) == n_sentences
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    def count(sequences):
        return sum(1 for _ in sequences)

    short, limit = peak(3_000, count), 100_000  # bytes
    assert peak(9_000, count) - short < limit  # 1.5 MB more text, six blocks
    assert peak(9_000, lambda sequences: len(list(sequences))) - short > 10 * limit
