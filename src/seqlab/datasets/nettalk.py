"""NETtalk: English words with the phoneme and stress of each letter."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.datasets._helpers import check_choice, check_count, check_random_state, make_result
from seqlab.datasets._registry import NETTALK
from seqlab.datasets._store import load

if TYPE_CHECKING:
    from sklearn.utils import Bunch

_DESCR = """\
NETtalk corpus
--------------
English words aligned letter by letter with their pronunciation: 20,007 entries (without one
malformed entry of the file), 146,934 letters, 51 phonemes including "-" (silent), 5 stress marks
(0 1 2 < >), 163 pairs of both. 205 words have more than one entry.

No official split: words are drawn at random (often 1,000 to train and 1,000 to test: n_train and
n_test), and the seed is reported. "common" are the 1,000 most common words as reconstructed by Scott Fahlman.

Copyright (C) 1988 by Terrence J. Sejnowski. Non-commercial research only.

Sejnowski, T. & Rosenberg, C. (1987). Parallel networks that learn to pronounce English text.
"""


def fetch_nettalk(
    *,
    task: str = "both",
    subset: str = "all",
    first_entry_only: bool = False,
    n_train: int | None = None,
    n_test: int | None = None,
    random_state: Any = None,
    return_X_y: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Bunch | tuple[list[list[tuple[str]]], list[list[str]]]:
    """Load words as sequences of letters, labelled with phoneme and stress.

    Parameters
    ----------
    task : {"both", "phoneme", "stress"}, default="both"
        The label of a letter; "both" is the phoneme followed by the stress mark.
    subset : {"all", "common"}, default="all"
        All entries, or those of the 1,000 most common words.
    first_entry_only : bool, default=False
        Whether to keep only the first entry of a word, as Sejnowski and Rosenberg did.
    n_train, n_test : int, optional
        Draw this many words at random, without replacement: first those for training, then those for
        testing. If only one of them is given, the other part has the remaining words. All words, in the
        order of the file, if both are None.
    random_state : int, RandomState or None
        Draws the words.
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
        ``data`` (list of words of (letter,)), ``target`` (list of label lists), ``words``,
        ``flags`` (0 regular, 1 irregular, 2 foreign), ``split`` (array: "train" or "test" per
        word; None if all words are loaded), ``feature_names``, ``target_names``, ``DESCR``.

    Raises
    ------
    DatasetError
        If the data are missing or invalid and cannot be downloaded.

    Examples
    --------
    >>> from seqlab.datasets import fetch_nettalk
    >>> X, y = fetch_nettalk(task="phoneme", return_X_y=True)  # doctest: +SKIP
    >>> X[1], y[1]  # doctest: +SKIP
    ([('a',), ('b',), ('a',), ('c',), ('k',)], ['x', 'b', '@', 'k', '-'])
    """
    check_choice(task, "task", ("phoneme", "stress", "both"))
    check_choice(subset, "subset", ("all", "common"))

    def text(path: str) -> str:
        content = load(NETTALK, path, data_home, download_if_missing)
        return content.decode("ascii")

    entries = _parse(text("nettalk.data"))
    if subset == "common":
        common = _parse_list(text("nettalk.list"))
        entries = [entry for entry in entries if entry[0] in common]
    if first_entry_only:
        first: dict[str, tuple[str, str, str, int]] = {}
        for entry in entries:
            first.setdefault(entry[0], entry)
        entries = list(first.values())
    split = None
    if n_train is not None or n_test is not None:
        chosen, split = _draw(len(entries), n_train, n_test, random_state)
        entries = [entries[i] for i in chosen]
    return make_result(
        return_X_y,
        [[(letter,) for letter in word] for word, _, _, _ in entries],
        [_labels(phonemes, stress, task) for _, phonemes, stress, _ in entries],
        words=[entry[0] for entry in entries],
        flags=np.array([entry[3] for entry in entries]),
        split=split,
        feature_names=["letter"],
        DESCR=_DESCR,
    )


def _draw(
    n_words: int, n_train: int | None, n_test: int | None, random_state: Any
) -> tuple[list[int], NDArray[np.str_]]:
    """Draw the words for training and testing; return their indices and the part of each."""
    for name, count in (("n_train", n_train), ("n_test", n_test)):
        if count is not None:
            check_count(count, name)
    first = n_train if n_train is not None else n_words - (n_test or 0)
    second = n_test if n_test is not None else n_words - first
    if first < 0 or second < 0 or first + second > n_words:
        raise InputError(
            f"n_train={n_train} and n_test={n_test} are too many: there are {n_words} words"
        )
    order = check_random_state(random_state).permutation(n_words)[: first + second]
    return order.tolist(), np.array(["train"] * first + ["test"] * second)


def _labels(phonemes: str, stress: str, task: str) -> list[str]:
    if task == "both":
        return [phoneme + mark for phoneme, mark in zip(phonemes, stress, strict=True)]
    return list(phonemes if task == "phoneme" else stress)


def _parse(text: str) -> list[tuple[str, str, str, int]]:
    """Word, phonemes, stress and flag of each well-formed entry after the header."""
    entries = []
    for line in text.split("\n")[10:]:
        fields = line.strip().split("\t")
        if len(fields) != 4:
            continue
        word, phonemes, stress, flag = (field.strip() for field in fields)
        if len(word) == len(phonemes) == len(stress):
            entries.append((word, phonemes, stress, int(flag)))
    return entries


def _parse_list(text: str) -> set[str]:
    """Words after the line of asterisks."""
    _, _, words = text.partition("****\n")
    return {word.lower() for word in re.findall(r"[A-Z']+", words)}
