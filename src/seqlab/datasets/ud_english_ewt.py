"""Universal Dependencies English Web Treebank: part-of-speech tagging of web text."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

from seqlab.data.io import read_conllu
from seqlab.datasets._helpers import check_choice, join_parts, make_result
from seqlab.datasets._registry import UD_ENGLISH_EWT
from seqlab.datasets._store import load

if TYPE_CHECKING:
    from sklearn.utils import Bunch

_PARTS = ("train", "dev", "test")
_DESCR = """\
Universal Dependencies English Web Treebank (v2.15)
---------------------------------------------------
Blogs, mails, reviews, newsgroups and answers with parts of speech.

train  12,544 sentences, 204,577 words
dev     2,001 sentences,  25,147 words
test    2,077 sentences,  25,094 words

A token is (word,); labels are 17 universal tags (upos) or about 50 Penn tags (xpos). Usual metric:
token accuracy. Annotations: CC BY-SA 4.0; texts: LDC2012T13.

Silveira, N. et al. (2014). A gold standard dependency corpus for English. LREC.
"""


def fetch_ud_english_ewt(
    *,
    subset: str = "train",
    tagset: str = "upos",
    return_X_y: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Bunch | tuple[list[list[tuple[str, ...]]], list[list[str]]]:
    """Load English web text with parts of speech.

    Parameters
    ----------
    subset : {"train", "dev", "test", "all"}, default="train"
        The part to load; "all" is the three in this order.
    tagset : {"upos", "xpos"}, default="upos"
        Universal or Penn Treebank tags.
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
        ``data`` (list of sentences of (word,)), ``target`` (list of label lists), ``split`` (array:
        part per sentence), ``feature_names``, ``target_names``, ``DESCR``.

    Raises
    ------
    DatasetError
        If the data are missing or invalid and cannot be downloaded.

    Examples
    --------
    >>> from seqlab.datasets import fetch_ud_english_ewt
    >>> X, y = fetch_ud_english_ewt(subset="dev", return_X_y=True)  # doctest: +SKIP
    """
    check_choice(subset, "subset", (*_PARTS, "all"))
    check_choice(tagset, "tagset", ("upos", "xpos"))

    def read(part: str) -> tuple[Any, Any]:
        path = f"en_ewt-ud-{part}.conllu"
        content = load(UD_ENGLISH_EWT, path, data_home, download_if_missing)
        return read_conllu(io.BytesIO(content), label=tagset)

    data, target, split = join_parts(read, _PARTS if subset == "all" else (subset,))
    names = ["word"]
    return make_result(return_X_y, data, target, split=split, feature_names=names, DESCR=_DESCR)
