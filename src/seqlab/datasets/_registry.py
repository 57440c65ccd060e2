"""The files of each data set: checksums, sources and terms of use.

Checksums are of the decompressed content, so that a file may be stored plain or as .gz, .xz or .bz2. A
`Source` with ``tried=False`` is an address from the description of the data set that could not be tried
when this table was written; the checksum of the downloaded content is verified in any case.
"""

from __future__ import annotations

from typing import NamedTuple

_RAW = "https://raw.githubusercontent.com"


class Source(NamedTuple):
    """Source of a file: an address, the member of a zip file, and whether the address was tried."""

    url: str
    member: str | None = None
    tried: bool = False


class DataFile(NamedTuple):
    """One file of a data set: path inside its folder, checksum of the content, source."""

    path: str
    sha256: str
    source: Source | None = None


class DataSet(NamedTuple):
    """A named data set.

    ``folder`` is its folder in ``$SEQLAB_DATA`` and in the cache; ``sequences``, ``tokens`` and
    ``labels`` describe its size.
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
    files=tuple(
        DataFile(f"{part}.txt", sha, Source(f"{_NLTK}/conll2000.zip", f"conll2000/{part}.txt"))
        for part, sha in (
            ("train", "82033cd7a72b209923a98007793e8f9de3abc1c8b79d646c50648eb949b87cea"),
            ("test", "73b7b1e565fa75a1e22fe52ecdf41b6624d6f59dacb591d44252bf4d692b1628"),
        )
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

OCR_LETTERS = DataSet(
    name="ocr_letters",
    folder="ocr_letters",
    task="handwritten letters in words",
    sequences="6,877 in 10 folds",
    tokens="52,152",
    labels="26 letters",
    terms="none stated for the data; offered for research",
    home="https://ai.stanford.edu/~btaskar/ocr/",
    files=(
        # Copies number their rows differently, so the checksum is of the words (see ocr_letters).
        DataFile(
            "letter.data",
            "1a83ca129cbd4896d1357fa82645591d96dd2e3cc6ba2032bd3a10fbade47573",
            Source("https://ai.stanford.edu/~btaskar/ocr/letter.data.gz"),
        ),
    ),
)

NETTALK = DataSet(
    name="nettalk",
    folder="nettalk",
    task="letters to phonemes and stress",
    sequences="20,007 words",
    tokens="146,934",
    labels="51 phonemes x 5 stress marks (163 pairs)",
    terms="non-commercial research only",
    home="https://github.com/umqadir/nettalk",
    files=tuple(
        DataFile(path, sha, Source(f"{_NETTALK}/{path}"))
        for path, sha in (
            ("nettalk.data", "bf5628ee4368e5348e22189a9e2236bf86853363dd5832d07f6d7223b614f8ab"),
            ("nettalk.list", "07c47f92dba791e5525b757ee5797953bb42b50a7de5937dd3af5cb0e112b856"),
        )
    ),
)

KASTEREN = DataSet(
    name="kasteren",
    folder="kasteren_activities",
    task="activities at home from binary sensors",
    sequences="28 days",
    tokens="40,006 minutes",
    labels="7 activities + idle",
    terms="none stated; cite van Kasteren et al. (2008)",
    home="https://github.com/tcsvn/pyadlml",
    files=tuple(
        DataFile(f"house_a_2008/kasteren{part}.txt", sha, Source(f"{_KASTEREN}/kasteren{part}.txt"))
        for part, sha in (
            ("ActData", "36f600f1fa47b98b7ea332b9762a3d2a67e86beea61e315fbff763a985bfdbc2"),
            ("SenseData", "6c8f828a1f121eeea449e354e30964d34339de0723223619d3d2b8458fcbb24c"),
        )
    ),
)

EMAIL_SIGNATURES = DataSet(
    name="email_signatures",
    folder="email_signatures",
    task="signature and reply lines of messages",
    sequences="617 messages",
    tokens="33,013 lines",
    labels="sig, reply, other",
    terms="none stated; personal data: do not publish messages",
    home=_EMAIL,
    files=(
        DataFile(
            "lines.tsv",
            "919b5f243d7f4d731cc8b343fca46facec914ed43a3dea9332d22444e1027bf2",
            Source(f"{_EMAIL}/archive/{_EMAIL_COMMIT}.zip"),
        ),
    ),
)

PTB_SAMPLE = DataSet(
    name="ptb_sample",
    folder="ptb_sample",
    task="base noun phrases, or subject-verb phrases",
    sequences="1,921 (section 00) + 1,993 (section 01)",
    tokens="46,451 + 47,633",
    labels="3 IOB2 tags",
    terms="non-commercial, fair use: do not redistribute",
    home="https://github.com/nltk/nltk_data",
    files=(
        DataFile(
            "wsj_sample_np_sv.txt",
            "83c7ed0863956a61fef03990e8ee5b12c9ad6dd2563ec88de27d9dd402450857",
            Source(f"{_NLTK}/treebank.zip"),
        ),
    ),
)

WEBKB = DataSet(
    name="webkb",
    folder="webkb_linqs",
    task="classes of linked web pages (a graph per school)",
    sequences="4 schools",
    tokens="877 pages, 1,608 links",
    labels="5 page classes",
    terms="none stated; cite Craven et al. (1998) and LINQS",
    home="https://github.com/hazdzz/ChebyNet",
    files=tuple(
        DataFile(f"{school}.{kind}", sha, Source(f"{_WEBKB}/{school}/{school}.{kind}"))
        for school, checksums in {
            "cornell": (
                "28d1a6593981e47859965341735b2b9e1b42ea96502dad3c0857b3bf8967e960",
                "9b553733f8621bde1e149b2570da31701d6c41ac1263a4d1e94bc9fd08054a13",
            ),
            "texas": (
                "b56017ff6e0097218f238c6dafa5265e0bbe70c0cae39b3a5a4d862611d36b98",
                "c7b6cc42170870e4470dafd9ad9330422d42ae2a1f3a746aba93039dc8b41710",
            ),
            "washington": (
                "89a63171f394529849da1319b3d55426582c04dc9cdb196c29c5335931269e60",
                "7aa0e59b0dcba44f63fe2248671bb4c551e7322ecb512284732a08a968759223",
            ),
            "wisconsin": (
                "bca4574c8f77db5bda3ad9fc734f67ea87b06c43e239b9bb77725ea58d0315d6",
                "f5b60f45a277d93f4e883d8845b4e81fda632818ba0fe8ab8d118d9d2a9e9c73",
            ),
        }.items()
        for kind, sha in zip(("content", "cites"), checksums, strict=True)
    ),
)

DATASETS = (
    CONLL2000,
    UD_ENGLISH_EWT,
    OCR_LETTERS,
    NETTALK,
    KASTEREN,
    EMAIL_SIGNATURES,
    PTB_SAMPLE,
    WEBKB,
)
