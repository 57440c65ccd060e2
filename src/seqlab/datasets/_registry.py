"""What is known about each data set: files, checksums of their content, homes, terms.

A checksum is of the decompressed content, so that a file may be kept as it is, or as .gz, .xz or
.bz2. A `Source` with ``tried=False`` is an address taken from the data set's description that
could not be tried when this table was written; the checksum still guards what arrives.
"""

from __future__ import annotations

from typing import NamedTuple

_RAW = "https://raw.githubusercontent.com"


class Source(NamedTuple):
    """Where a file can be had: an address, the member if it is a zip archive, and if it was tried."""

    url: str
    member: str | None = None
    tried: bool = False


class DataFile(NamedTuple):
    """One file of a data set: path inside its folder, checksum of the content, public home."""

    path: str
    sha256: str
    source: Source | None = None


class DataSet(NamedTuple):
    """A named data set.

    ``folder`` is its place in ``$SEQLAB_DATA`` and in the cache; ``sizes`` are (sequences, tokens,
    labels) as text.
    """

    name: str
    folder: str
    task: str
    sequences: str
    tokens: str
    labels: str
    terms: str
    home: str
    files: tuple[DataFile, ...]

    def file(self, path: str) -> DataFile:
        """Return the file at `path`."""
        return next(entry for entry in self.files if entry.path == path)


_NLTK = f"{_RAW}/nltk/nltk_data/5db857e6f7df11eabb5e5665836db9ec8df07e28/packages/corpora"
_EWT = f"{_RAW}/UniversalDependencies/UD_English-EWT/15d613d8447b3478787d4c278730a1e48a945efb"
_NETTALK = f"{_RAW}/umqadir/nettalk/179af8503ab63a8b263d9e92f198e12415c07a08/data/raw"
_KASTEREN = f"{_RAW}/tcsvn/pyadlml/58fae5fd739334b1087e018c6bfdefdde21a9781/datasets/kasteren"
_WEBKB = f"{_RAW}/hazdzz/ChebyNet/c8564bdb86c144df7f7238f480b52d751830ccb9/data"
_EMAIL = "https://github.com/digideskio/email-segmentation"
_EMAIL_COMMIT = "5fbd1a0974d04da335919c678db8193577dc694b"

CONLL2000 = DataSet(
    name="conll2000",
    folder="conll2000",
    task="phrase chunking of newspaper text",
    sequences="8,936 train + 2,012 test",
    tokens="211,727 + 47,377",
    labels="23 IOB2 tags",
    terms="none stated; text of the Penn Treebank (LDC): research use",
    home="https://github.com/nltk/nltk_data",
    files=(
        DataFile(
            "train.txt",
            "82033cd7a72b209923a98007793e8f9de3abc1c8b79d646c50648eb949b87cea",
            Source(f"{_NLTK}/conll2000.zip", "conll2000/train.txt"),
        ),
        DataFile(
            "test.txt",
            "73b7b1e565fa75a1e22fe52ecdf41b6624d6f59dacb591d44252bf4d692b1628",
            Source(f"{_NLTK}/conll2000.zip", "conll2000/test.txt"),
        ),
    ),
)

UD_ENGLISH_EWT = DataSet(
    name="ud_english_ewt",
    folder="ud_english_ewt",
    task="part-of-speech tagging of web text",
    sequences="12,544 train + 2,001 dev + 2,077 test",
    tokens="204,577 + 25,147 + 25,094",
    labels="17 UPOS (49 XPOS)",
    terms="CC BY-SA 4.0",
    home="https://github.com/UniversalDependencies/UD_English-EWT",
    files=tuple(
        DataFile(f"en_ewt-ud-{part}.conllu", sha, Source(f"{_EWT}/en_ewt-ud-{part}.conllu"))
        for part, sha in (
            ("train", "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b"),
            ("dev", "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6"),
            ("test", "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd"),
        )
    ),
)
