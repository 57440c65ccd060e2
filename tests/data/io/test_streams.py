"""Streams: compression, encodings, standard input and output, atomic writing."""

import bz2
import contextlib
import encodings.aliases
import gzip
import io
import lzma
import os
import pickle
import stat
import subprocess
import sys
import threading

import pytest

from seqlab.data import InputError
from seqlab.data.io import ReadError, iter_conll, read_conll, write_conll
from seqlab.data.io.streams import iter_line_blocks, iter_lines, open_writer

X = [[("naïve", "JJ"), ("日本", "NN")], [("go", "VB")]]
Y = [["A", "B"], ["A"]]
PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


@pytest.mark.parametrize("suffix", PACK)
def test_paths_are_compressed_by_their_extension(tmp_path, suffix):
    path = tmp_path / f"a.conll{suffix}"
    write_conll(X, Y, path)
    raw = path.read_bytes()
    assert raw == b"" or raw[:2] == PACK[suffix](b"na")[:2]
    assert read_conll(path) == (X, Y)
    assert read_conll(str(path)) == (X, Y)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", PACK)
def test_compression_is_detected_by_the_first_bytes(suffix):
    text = io.StringIO()
    write_conll(X, Y, text)
    packed = PACK[suffix](text.getvalue().encode())
    assert read_conll(io.BytesIO(packed)) == (X, Y)

    class OnlyRead:
        """Not a file: only a read method."""

        def __init__(self):
            self.inner = io.BytesIO(packed)

        def read(self, n=-1):
            return self.inner.read(min(n, 3))

    assert read_conll(OnlyRead()) == (X, Y)


def test_the_same_data_gives_the_same_gzip_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_conll(X, Y, tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_damaged_compression_and_wrong_extensions(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(PACK[suffix](b"a B\n" * 10000)[:-20])
    with pytest.raises(ReadError, match="damaged compressed data"):
        read_conll(path)
    path.write_bytes(b"a B\n")
    with pytest.raises(ReadError, match=f"ends in {suffix}"):
        read_conll(path)


def test_standard_input_and_output():
    code = "from seqlab.data.io import *;write_conll(*read_conll('-'), '-', sep='\\t')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="häm X\n\nspam Y\n".encode(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.decode() == "häm\tX\n\nspam\tY\n\n"


def test_errors_name_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("a B\nc\n"))
    with pytest.raises(ReadError, match=r"^<stdin>:2: 1 column, but earlier lines have 2"):
        read_conll("-")


def test_a_pipe_is_read_without_waiting_for_its_end():
    reader, writer = os.pipe()
    got_first = threading.Event()

    def write():
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(b"a X\n\nb")
            pipe.flush()
            assert got_first.wait(10)
            pipe.write(b" Y\n")

    thread = threading.Thread(target=write)
    thread.start()
    with os.fdopen(reader, "rb") as pipe:
        sequences = iter_conll(pipe)
        assert next(sequences) == ([("a",)], ["X"])
        got_first.set()
        assert list(sequences) == [([("b",)], ["Y"])]
    thread.join()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_encodings_round_trip(tmp_path, encoding):
    path = tmp_path / "a.conll"
    write_conll(X, Y, path, encoding=encoding)
    assert read_conll(path, encoding=encoding) == (X, Y)


def test_byte_order_mark_and_line_ends():
    content = b"\xef\xbb\xbfa X\r\nb Y\r\n\r\nc Z"
    expected = [[("a",), ("b",)], [("c",)]], [["X", "Y"], ["Z"]]
    assert read_conll(io.BytesIO(content)) == expected
    assert read_conll(io.StringIO(content.decode(), newline="")) == expected


def test_no_other_line_break_ends_a_line():
    text = "a\x0b\x0c\x1c\x85\u2028b X\n"
    assert read_conll(io.StringIO(text)) == ([[(text[:-3],)]], [["X"]])


@pytest.mark.parametrize("n_before", [0, 5, 70_000])
def test_wrong_encoding_names_line_and_byte(tmp_path, n_before):
    path = tmp_path / "latin.conll"
    path.write_bytes(b"abcdef X\n" * n_before + "né Y\n".encode("latin-1"))
    with pytest.raises(ReadError, match=rf"byte 0xe9 at offset {9 * n_before + 1};") as caught:
        read_conll(path)
    assert caught.value.line == n_before + 1
    assert caught.value.file == str(path)
    X, _ = read_conll(path, encoding="latin-1")
    assert X[0][-1] == ("né",)


def test_an_incomplete_character_at_the_end():
    with pytest.raises(ReadError, match="not utf-8") as caught:
        read_conll(io.BytesIO("a X\nb é".encode()[:-1]))
    assert caught.value.line == 2


def test_unknown_encoding_and_missing_file(tmp_path):
    with pytest.raises(InputError, match="unknown encoding"):
        read_conll(io.BytesIO(b"a X\n"), encoding="klingon")
    with pytest.raises(FileNotFoundError):
        read_conll(tmp_path / "none")


@pytest.mark.parametrize("encoding", sorted({*encodings.aliases.aliases.values(), "undefined"}))
def test_any_encoding_of_python_gives_text_or_a_typed_error(encoding):
    for content in (b"a X\n\nb Y\n", b"\xff\xfe\x00 \x80\n", b"xn--a\n" * 20, bytes(range(256))):
        with contextlib.suppress(InputError):
            list(iter_lines(io.BytesIO(content), encoding))


@pytest.mark.parametrize("encoding", ["idna", "punycode", "undefined"])
def test_codecs_of_host_names_are_not_encodings_of_text(tmp_path, encoding):
    with pytest.raises(InputError, match=f"'{encoding}' is not an encoding of text"):
        list(iter_lines(io.BytesIO(b"a X\n"), encoding))
    with pytest.raises(InputError, match=f"'{encoding}' is not an encoding of text"):
        write_conll(X, Y, tmp_path / "a.conll", encoding=encoding)


@pytest.mark.parametrize("block", [1, 2, 3, 7])
def test_blocks_of_any_size_give_the_same_lines(monkeypatch, block):
    monkeypatch.setattr("seqlab.data.io.streams._BLOCK", block)
    text = "é\r\n\nabc\r\n\r\n日本\rx\nend"
    lines = ["é", "", "abc", "", "日本\rx", "end"]
    assert [line for _, line in iter_lines(io.BytesIO(text.encode()))] == lines
    assert [line for _, line in iter_lines(io.StringIO(text, newline=""))] == lines
    assert sum(map(len, iter_line_blocks(io.BytesIO(b"")))) == 0


def test_a_failed_write_does_not_change_the_old_file(tmp_path):
    path = tmp_path / "a.conll"
    write_conll(X, Y, path)
    before = path.read_bytes()

    def failing():
        yield X[0]
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_conll(failing(), Y, path)
    with pytest.raises(InputError):
        write_conll(X, [["A"], ["A"]], path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.conll"]


def test_a_written_file_has_default_permissions_and_links_are_followed(tmp_path):
    plain, link = tmp_path / "plain", tmp_path / "link"
    plain.write_text("")
    link.symlink_to(plain)
    write_conll(X, Y, link)
    assert link.is_symlink()
    assert read_conll(plain) == (X, Y)
    (tmp_path / "other").write_text("")
    wanted = stat.S_IMODE((tmp_path / "other").stat().st_mode)
    assert stat.S_IMODE(plain.stat().st_mode) == wanted


def test_special_files_are_written_directly():
    write_conll(X, Y, os.devnull)
    assert not os.path.isfile(os.devnull)


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="needs /dev/fd")
def test_a_link_to_a_pipe_without_a_name_is_written():
    read, write = os.pipe()
    write_conll([["a"]], [["X"]], f"/dev/fd/{write}")  # /dev/stdout is such a link, too
    os.close(write)
    with open(read) as pipe:
        assert pipe.read() == "a X\n\n"


def test_one_byte_order_mark_for_all_blocks():
    stream = io.BytesIO()
    with open_writer(stream, "utf-16") as write:
        write("a X\n\n")
        write("b Y\n\n")
    assert stream.getvalue() == "a X\n\nb Y\n\n".encode("utf-16")


def test_streams_are_not_closed():
    binary, text = io.BytesIO(), io.StringIO()
    write_conll(X, Y, binary)
    write_conll(X, Y, text)
    assert binary.getvalue().decode() == text.getvalue()
    binary.seek(0)
    assert read_conll(binary) == (X, Y)
    assert not binary.closed


def test_sequences_and_labels_must_match(tmp_path):
    path = tmp_path / "a"
    for x, y, message in (
        (X, Y[:1], "X has more sequences than y, which has 1"),
        (X[:1], Y, "y has more sequences than X, which has 1"),
        (X, [["A", "B"], ["A", "A"]], r"X\[1\] has 1 steps but y\[1\] has 2 labels"),
    ):
        with pytest.raises(InputError, match=message):
            write_conll(x, y, path)
    assert not path.exists()


def test_the_error_is_an_input_error_and_can_be_pickled():
    error = ReadError("a.conll", 3, "short")
    assert isinstance(error, ValueError)
    again = pickle.loads(pickle.dumps(error))
    assert (again.file, again.line, again.reason, str(again)) == (
        "a.conll", 3, "short", "a.conll:3: short",
    )  # fmt: skip
