"""Finding and downloading data files, against an HTTP server on this machine."""

import bz2
import gzip
import hashlib
import io
import lzma
import subprocess
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from seqlab import datasets
from seqlab.data import InputError
from seqlab.datasets import (
    DatasetError,
    _registry,
    fetch_conll2000,
    fetch_email_signatures,
    fetch_ptb_sample,
    get_data_home,
    list_datasets,
)
from seqlab.datasets._registry import DATASETS, DataFile, DataSet, Source
from seqlab.datasets._store import load
from seqlab.datasets._treebank import base_noun_phrases, parse_trees, subject_verb_phrases, tokens

CONTENT = b"a DT B-NP\ndog NN I-NP\n\n" * 5000


@pytest.fixture
def server():
    """Serves `server.files`; of the path `server.cut` only the first half is sent."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            instance.requests.append(self.path)
            body = instance.files.get(self.path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if self.path == instance.cut else body)
            self.close_connection = True

        def log_message(self, *args):
            pass

    instance = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    instance.files, instance.cut, instance.requests = {}, None, []
    instance.url = f"http://127.0.0.1:{instance.server_address[1]}"
    thread = threading.Thread(target=instance.serve_forever, daemon=True)
    thread.start()
    yield instance
    instance.shutdown()
    instance.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def isolated_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("SEQLAB_DATA", raising=False)
    monkeypatch.setenv("SEQLAB_HOME", str(tmp_path / "cache"))
    for name in (
        "http_proxy",
        "https_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)


def make_set(url, content=CONTENT, member=None):
    digest = hashlib.sha256(content).hexdigest()
    file = DataFile("train.txt", digest, Source(url, member) if url else None)
    return DataSet("toy", "toy", "task", "1", "2", "3", "none", "https://example.org", (file,))


def everything_under(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_valid_file_is_cached_and_not_downloaded_again(server, tmp_path):
    server.files["/train.txt"] = CONTENT
    toy = make_set(f"{server.url}/train.txt")
    assert load(toy, "train.txt") == CONTENT
    assert everything_under(tmp_path) == ["train.txt"]
    server.files.clear()
    assert load(toy, "train.txt") == CONTENT
    assert load(toy, "train.txt", download_if_missing=False) == CONTENT
    assert server.requests == ["/train.txt"]


def test_wrong_checksum_leaves_nothing(server, tmp_path):
    server.files["/train.txt"] = CONTENT[:-1] + b"!"
    with pytest.raises(DatasetError, match="SHA-256"):
        load(make_set(f"{server.url}/train.txt"), "train.txt")
    assert everything_under(tmp_path) == []


def test_broken_connection_leaves_nothing(server, tmp_path):
    server.files["/train.txt"] = CONTENT
    server.cut = "/train.txt"
    with pytest.raises(DatasetError, match=r"download failed.*SEQLAB_DATA"):
        load(make_set(f"{server.url}/train.txt"), "train.txt")
    assert everything_under(tmp_path) == []


def test_missing_page_and_unreachable_server(server, tmp_path):
    with pytest.raises(DatasetError, match="404"):
        load(make_set(f"{server.url}/nowhere"), "train.txt")
    with pytest.raises(DatasetError, match=r"download failed.*SEQLAB_DATA"):
        load(make_set("http://127.0.0.1:9/train.txt"), "train.txt")
    assert everything_under(tmp_path) == []


def test_all_files_of_an_archive_are_cached(server, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("toy/train.txt", CONTENT)
        archive.writestr("toy/test.txt", b"other")
    server.files["/toy.zip"] = packed.getvalue()
    toy = make_set(f"{server.url}/toy.zip", member="toy/train.txt")
    other = DataFile(
        "test.txt",
        hashlib.sha256(b"other").hexdigest(),
        Source(f"{server.url}/toy.zip", "toy/test.txt"),
    )
    toy = toy._replace(files=(*toy.files, other))
    assert load(toy, "test.txt") == b"other"
    assert load(toy, "train.txt") == CONTENT
    assert server.requests == ["/toy.zip"]
    assert everything_under(tmp_path) == ["test.txt", "train.txt"]


def test_content_that_is_not_an_archive(server, tmp_path):
    server.files["/toy.zip"] = b"<html>moved</html>"
    with pytest.raises(DatasetError, match="not the expected file"):
        load(make_set(f"{server.url}/toy.zip", member="toy/train.txt"), "train.txt")
    assert everything_under(tmp_path) == []


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)],
)
def test_seqlab_data_comes_first_in_any_compression(monkeypatch, tmp_path, suffix, pack):
    folder = tmp_path / "named" / "toy"
    folder.mkdir(parents=True)
    (folder / f"train.txt{suffix}").write_bytes(pack(CONTENT))
    monkeypatch.setenv("SEQLAB_DATA", str(tmp_path / "named"))
    assert load(make_set("http://127.0.0.1:9/"), "train.txt") == CONTENT
    assert not (tmp_path / "cache").exists()


def test_damage_in_seqlab_data_is_reported(monkeypatch, tmp_path):
    folder = tmp_path / "named" / "toy"
    folder.mkdir(parents=True)
    monkeypatch.setenv("SEQLAB_DATA", str(tmp_path / "named"))
    for damaged in (gzip.compress(CONTENT)[:50], b"no gzip", gzip.compress(b"else")):
        (folder / "train.txt.gz").write_bytes(damaged)
        with pytest.raises(DatasetError, match=r"train\.txt\.gz"):
            load(make_set("http://127.0.0.1:9/"), "train.txt")


def test_damage_in_the_cache_is_repaired_by_a_download(server, tmp_path):
    server.files["/train.txt"] = CONTENT
    toy = make_set(f"{server.url}/train.txt")
    place = tmp_path / "cache" / "toy" / "train.txt"
    place.parent.mkdir(parents=True)
    place.write_bytes(CONTENT[:100])
    with pytest.raises(DatasetError, match="SHA-256"):
        load(toy, "train.txt", download_if_missing=False)
    assert load(toy, "train.txt") == CONTENT
    assert place.read_bytes() == CONTENT


def test_the_error_for_missing_data_says_where_to_get_it(tmp_path):
    for toy, options in (
        (make_set(None), {}),
        (make_set("http://127.0.0.1:9/"), {"download_if_missing": False}),
    ):
        with pytest.raises(DatasetError, match=r"https://example\.org.*SEQLAB_DATA"):
            load(toy, "train.txt", **options)
    with pytest.raises(OSError, match="conll2000"):
        fetch_conll2000(download_if_missing=False)


def test_cache_folder(monkeypatch, tmp_path):
    assert get_data_home() == tmp_path / "cache"
    assert get_data_home(tmp_path / "own") == tmp_path / "own"
    monkeypatch.delenv("SEQLAB_HOME")
    assert get_data_home().name == "seqlab"


def test_cache_that_cannot_be_written(server, tmp_path):
    server.files["/train.txt"] = CONTENT
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(DatasetError, match="cannot be written"):
        load(make_set(f"{server.url}/train.txt"), "train.txt")


def zip_of(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def redirect(monkeypatch, module, name, url, expected):
    """Make the data set of a fetcher come from `url`, with the checksum of `expected`."""
    entry = getattr(module, name)
    file = entry.files[0]
    source = file.source._replace(url=url)
    changed = file._replace(sha256=hashlib.sha256(expected).hexdigest(), source=source)
    monkeypatch.setattr(module, name, entry._replace(files=(changed,)))


def test_messages_are_extracted_from_the_archive(server, monkeypatch):
    from seqlab.datasets import email_signatures

    server.files["/mail.zip"] = zip_of(
        {
            "repo-1/datasets/sigPlusReply/": b"",
            "repo-1/datasets/sigPlusReply/9_R_S": b"Hi\n#reply#> q\xe9\n#sig# -- \n#sig#me\n",
            "repo-1/datasets/other/3_R_S": b"not this",
        }
    )
    lines = "9_R_S\tother\tHi\n9_R_S\treply\t> q\u00e9\n9_R_S\tsig\t-- \n9_R_S\tsig\tme\n".encode()
    redirect(monkeypatch, email_signatures, "EMAIL_SIGNATURES", f"{server.url}/mail.zip", lines)
    data = fetch_email_signatures()
    assert data.data == [[("Hi",), ("> q\u00e9",), ("-- ",), ("me",)]]
    assert data.target == [["other", "reply", "sig", "sig"]]


TREES = """
( (S (NP-SBJ-1 (NP (DT The) (NN firm) (POS 's)) (NN owner)) (VP (MD will) (VP (VB sell)
  (NP (-NONE- *-1)) (NP (NNS shares)))) (. .)) )
"""


def test_phrases_are_derived_from_trees(server, monkeypatch):
    from seqlab.datasets import ptb_sample

    (tree,) = parse_trees(TREES)
    assert tokens(tree)[3:] == [
        ("owner", "NN"), ("will", "MD"), ("sell", "VB"), ("shares", "NNS"), (".", "."),
    ]  # fmt: skip
    assert base_noun_phrases(tree) == [(0, 2), (2, 4), (6, 7)]
    assert subject_verb_phrases(tree) == [(0, 6)]
    with pytest.raises(ValueError, match="unbalanced"):
        parse_trees("(S (NP (DT a))")
    files = {f"treebank/combined/wsj_{n}.mrg": TREES for n in ("0001", "0100")}
    server.files["/treebank.zip"] = zip_of({**files, "treebank/raw/wsj_0001": "no tree"})
    sentence = (
        "The DT B-NP B-SV\nfirm NN I-NP I-SV\n's POS B-NP I-SV\nowner NN I-NP I-SV\n"
        "will MD O I-SV\nsell VB O I-SV\nshares NNS B-NP O\n. . O O\n\n"
    )
    columns = "".join(f"-DOCSTART- wsj_{n}\n\n{sentence}" for n in ("0001", "0100")).encode()
    redirect(monkeypatch, ptb_sample, "PTB_SAMPLE", f"{server.url}/treebank.zip", columns)
    data = fetch_ptb_sample(section="01")
    assert len(data.data) == 1
    assert data.target[0] == ["B-NP", "I-NP", "B-NP", "I-NP", "O", "O", "B-NP", "O"]


def test_the_checksum_of_letters_does_not_depend_on_their_numbers(server, monkeypatch, tmp_path):
    from seqlab.datasets import fetch_ocr_letters, ocr_letters

    def rows(first_id):
        pixels = "\t".join("01" * 64) + "\t"
        return "".join(
            f"{first_id + k}\t{letter}\t{after}\t{first_id}\t{k}\t{fold}\t{pixels}\n"
            for k, (letter, after, fold) in enumerate([("a", 2, 0), ("b", -1, 0), ("c", -1, 3)])
        ).encode()

    digest = ocr_letters._digest(ocr_letters._parse(rows(1)))
    entry = ocr_letters.OCR_LETTERS
    source = Source(f"{server.url}/letter.data.gz")
    file = entry.files[0]._replace(sha256=digest, source=source)
    monkeypatch.setattr(ocr_letters, "OCR_LETTERS", entry._replace(files=(file,)))
    server.files["/letter.data.gz"] = gzip.compress(rows(77))
    data = fetch_ocr_letters()
    assert ["".join(word) for word in data.target] == ["ab", "c"]
    assert data.folds.tolist() == [0, 3]
    assert data.data[0][0, :4].tolist() == [0, 1, 0, 1]
    for wrong in (gzip.compress(rows(1)[:-300]), gzip.compress(b"x\ty\n"), b"no gzip"):
        server.files["/letter.data.gz"] = wrong
        with pytest.raises(DatasetError):
            fetch_ocr_letters(data_home=tmp_path / "fresh")
    assert not (tmp_path / "fresh").exists()


def test_registry_is_complete():
    infos = list_datasets()
    assert [info.name for info in infos] == [entry.name for entry in DATASETS]
    for entry, info in zip(DATASETS, infos, strict=True):
        assert not info.present
        assert hasattr(sys.modules["seqlab.datasets"], f"fetch_{entry.name}")
        for file in entry.files:
            assert len(file.sha256) == 64
            assert file.source.url.startswith("https://")
            assert file.source.tried is False
    assert len({file.sha256 for entry in _registry.DATASETS for file in entry.files}) == sum(
        len(entry.files) for entry in DATASETS
    )


def test_import_loads_no_large_packages():
    code = (
        "import sys, seqlab.datasets, seqlab.data.io;"
        "heavy = {'numba', 'sklearn', 'pooch', 'requests', 'pandas'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("conll2000", {"subset": "dev"}),
        ("ud_english_ewt", {"subset": "valid"}),
        ("ud_english_ewt", {"tagset": "pos"}),
        ("ocr_letters", {"fold": 10}),
        ("nettalk", {"task": "sound"}),
        ("nettalk", {"subset": "rare"}),
        ("kasteren", {"features": "next"}),
        ("ptb_sample", {"section": "02"}),
        ("ptb_sample", {"task": "vp"}),
        ("webkb", {"school": "mit"}),
    ],
)
def test_invalid_options_are_an_error_before_any_data_are_searched_for(name, options):
    with pytest.raises(InputError):
        getattr(datasets, f"fetch_{name}")(**options)
