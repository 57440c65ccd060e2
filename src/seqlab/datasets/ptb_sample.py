"""Penn Treebank sample: base noun phrases and subject-verb phrases."""

from __future__ import annotations

import io
import os
import zipfile
from typing import TYPE_CHECKING, Any

from seqlab.data.io import read_conll
from seqlab.datasets._helpers import check_choice, join_parts, make_result
from seqlab.datasets._registry import PTB_SAMPLE
from seqlab.datasets._store import load
from seqlab.datasets._treebank import column_text

if TYPE_CHECKING:
    from sklearn.utils import Bunch

_LABEL_COLUMN = {"np": 2, "sv": 3}
_DESCR = """\
Penn Treebank sample, sections 00 and 01
----------------------------------------
WSJ files 0001 to 0199 as distributed with NLTK, with two phrase annotations derived from the trees.

section 00  1,921 sentences, 46,451 tokens, 11,728 base NPs, 3,213 SV phrases
section 01  1,993 sentences, 47,633 tokens, 11,812 base NPs, 3,226 SV phrases

A token is (word, pos); labels are IOB2. A base NP is an NP without an overt NP inside; an SV phrase
begins with the subject and ends with the first verb that is not a modal. The rules are seqlab's own:
results are not comparable with papers on the full treebank. Usual split: train on 01, test on 00.

(C) LDC 1995. Non-commercial use only; do not redistribute.
"""


def fetch_ptb_sample(
    *,
    section: str = "all",
    task: str = "np",
    return_X_y: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Bunch | tuple[list[list[tuple[str, ...]]], list[list[str]]]:
    """Load sentences of (word, pos) with base noun phrases or subject-verb phrases.

    Parameters
    ----------
    section : {"00", "01", "all"}, default="all"
        Section of the treebank.
    task : {"np", "sv"}, default="np"
        The phrases to use as labels.
    return_X_y : bool, default=False
        Whether to return only ``(data, target)``.
    data_home : path, optional
        Cache of downloads; by default ``$SEQLAB_HOME`` or the platform's cache folder.
        ``$SEQLAB_DATA`` is searched first.
    download_if_missing : bool, default=True
        Whether to download data that are not on this machine.

    Returns
    -------
    Bunch
        ``data`` (list of sentences of (word, pos)), ``target`` (list of label lists), ``split``
        (array: section of each sentence), ``feature_names``, ``target_names``, ``DESCR``.

    Raises
    ------
    DatasetError
        If the data are missing or invalid and cannot be downloaded.

    Examples
    --------
    >>> from seqlab.datasets import fetch_ptb_sample
    >>> X, y = fetch_ptb_sample(section="01", task="sv", return_X_y=True)  # doctest: +SKIP
    """
    check_choice(section, "section", ("00", "01", "all"))
    check_choice(task, "task", _LABEL_COLUMN)
    path = "wsj_sample_np_sv.txt"
    content = load(PTB_SAMPLE, path, data_home, download_if_missing, extract=_columns_of_archive)
    # Files are sorted by name: section 01 begins with the first file wsj_01xx.
    text = content.decode("ascii")
    border = text.index("-DOCSTART- wsj_01")

    def read(name: str) -> tuple[Any, Any]:
        part = text[:border] if name == "00" else text[border:]
        X, y = read_conll(io.StringIO(part), sep=" ", label=_LABEL_COLUMN[task])
        return [[token[:2] for token in tokens] for tokens in X], y

    data, target, split = join_parts(read, ("00", "01") if section == "all" else (section,))
    names = ["word", "pos"]
    return make_result(return_X_y, data, target, split=split, feature_names=names, DESCR=_DESCR)


def _columns_of_archive(raw: bytes) -> bytes:
    """Extract word, pos and the two label columns from the bracketed files of the archive."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        documents = {
            name.rpartition("/")[2].removesuffix(".mrg"): archive.read(name).decode("ascii")
            for name in archive.namelist()
            if "/combined/" in name and name.endswith(".mrg")
        }
    return column_text(documents)
