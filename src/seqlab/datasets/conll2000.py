"""CoNLL-2000: phrase chunking of Wall Street Journal text."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

from seqlab.data.io import read_conll
from seqlab.datasets._helpers import check_choice, join_parts, make_result
from seqlab.datasets._registry import CONLL2000
from seqlab.datasets._store import load

if TYPE_CHECKING:
    from sklearn.utils import Bunch

_DESCR = """\
CoNLL-2000 text chunking
------------------------
Sentences of the Wall Street Journal divided into phrases; the data of the shared task.

train (WSJ 15-18)  8,936 sentences, 211,727 tokens, 106,978 chunks
test  (WSJ 20)     2,012 sentences,  47,377 tokens,  23,852 chunks

A token is (word, pos), the part of speech by the Brill tagger; labels are 23 IOB2 tags. Usual
metric: F1 over chunks. In the task "pos-np" a token is (word,), and a label is a part of speech and B,
I or O for noun phrases: 121 pairs. Terms: none stated; text and annotation derive from the Penn
Treebank (LDC).

Tjong Kim Sang, E. & Buchholz, S. (2000). Introduction to the CoNLL-2000 shared task: chunking.
"""


def fetch_conll2000(
    *,
    subset: str = "train",
    task: str = "chunks",
    return_X_y: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Bunch | tuple[list[list[tuple[str, ...]]], list[list[str]]]:
    """Load CoNLL-2000: sentences of (word, pos) with IOB2 chunk tags.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The part to load; "all" is train followed by test.
    task : {"chunks", "pos-np"}, default="chunks"
        "chunks": tokens (word, pos) with IOB2 tags of all chunks. "pos-np": tokens (word,), labelled with
        the part of speech and with B, I or O for noun phrases, such as "NN/I": a task with many labels.
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
        (array: "train" or "test" per sentence), ``feature_names``, ``target_names``, ``DESCR``.

    Raises
    ------
    DatasetError
        If the data are missing or invalid and cannot be downloaded.

    Examples
    --------
    >>> from seqlab.datasets import fetch_conll2000
    >>> X, y = fetch_conll2000(subset="test", return_X_y=True)  # doctest: +SKIP
    >>> X[0][:2], y[0][:2]  # doctest: +SKIP
    ([('Rockwell', 'NNP'), ('International', 'NNP')], ['B-NP', 'I-NP'])
    """
    check_choice(subset, "subset", ("train", "test", "all"))
    check_choice(task, "task", ("chunks", "pos-np"))

    def read(part: str) -> tuple[Any, Any]:
        content = load(CONLL2000, f"{part}.txt", data_home, download_if_missing)
        return read_conll(io.BytesIO(content), sep=" ")

    data, target, split = join_parts(read, ("train", "test") if subset == "all" else (subset,))
    names = ["word", "pos"]
    if task == "pos-np":
        target = [
            [f"{pos}/{_np_tag(tag)}" for (_, pos), tag in zip(tokens, tags, strict=True)]
            for tokens, tags in zip(data, target, strict=True)
        ]
        data = [[(word,) for word, _ in tokens] for tokens in data]
        names = ["word"]
    return make_result(return_X_y, data, target, split=split, feature_names=names, DESCR=_DESCR)


def _np_tag(tag: str) -> str:
    return tag[0] if tag.endswith("-NP") else "O"
