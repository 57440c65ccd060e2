"""OCR letters: handwritten words as sequences of 16 x 8 pixel letters."""

from __future__ import annotations

import gzip
import hashlib
import os
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.datasets._helpers import make_result
from seqlab.datasets._registry import OCR_LETTERS
from seqlab.datasets._store import load

if TYPE_CHECKING:
    from sklearn.utils import Bunch

_N_PIXELS = 128
_N_FOLDS = 10
_DESCR = """\
OCR letters
-----------
Handwritten words of Rob Kassel, divided into letters of 16 x 8 binary pixels by Ben Taskar. The first
letter of each word, a capital, is missing.

6,877 words, 52,152 letters, 26 classes, 10 folds of 626 to 739 words, 3 to 14 letters per word.

Usual splits: train on one fold and test on the other nine ("small"), or the reverse ("large"),
averaged over the ten folds. There are only 55 different words, all in every fold: a model of high
order memorises them. Terms: none stated for the data; offered for research.

Taskar, B., Guestrin, C. & Koller, D. (2003). Max-margin Markov networks. NIPS.
"""


class _Words(NamedTuple):
    """The file as arrays."""

    pixels: NDArray[np.uint8]  # (n_letters, 128)
    letters: NDArray[np.str_]  # (n_letters,)
    offsets: NDArray[np.int64]  # (n_words + 1,)
    folds: NDArray[np.int64]  # (n_words,)


def fetch_ocr_letters(
    *,
    fold: int | None = None,
    return_X_y: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Bunch | tuple[list[NDArray[np.float64]], list[NDArray[np.str_]]]:
    """Load handwritten words with 128 binary pixels per letter.

    Parameters
    ----------
    fold : int, optional
        Only the words of this fold, 0 to 9; all words by default.
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
        ``data`` (list of (n_letters, 128) arrays, pixels in row-major order), ``target`` (list of
        arrays of letters), ``folds`` (fold of each word), ``feature_names``, ``target_names``,
        ``DESCR``.

    Raises
    ------
    DatasetError
        If the data are missing or invalid and cannot be downloaded.

    Examples
    --------
    >>> from seqlab.datasets import fetch_ocr_letters
    >>> words = fetch_ocr_letters(fold=0)  # doctest: +SKIP
    >>> len(words.data), "".join(words.target[0])  # doctest: +SKIP
    (626, 'ommanding')
    """
    if fold is not None and fold not in range(_N_FOLDS):
        raise InputError(f"fold must be 0 to {_N_FOLDS - 1} or None, got {fold!r}")
    content = load(
        OCR_LETTERS,
        "letter.data",
        data_home,
        download_if_missing,
        extract=gzip.decompress,
        digest=lambda data: _digest(_parse(data)),
    )
    words = _parse(content)
    pixels = words.pixels.astype(np.float64)
    chosen = range(len(words.folds)) if fold is None else np.flatnonzero(words.folds == fold)
    spans = [slice(*words.offsets[k : k + 2]) for k in chosen]
    return make_result(
        return_X_y,
        [pixels[span] for span in spans],
        [words.letters[span] for span in spans],
        folds=words.folds[np.asarray(chosen)],
        feature_names=[f"p_{row}_{column}" for row in range(16) for column in range(8)],
        target_names=[chr(code) for code in range(ord("a"), ord("z") + 1)],
        DESCR=_DESCR,
    )


def _parse(content: bytes) -> _Words:
    """Read ``id letter next_id word_id position fold p_0_0 ... p_15_7``, tab-separated.

    The last letter of a word has the ``next_id`` -1. The numbers of letters and words are not used,
    because they differ between copies of the data.
    """
    letters, folds, ends, pixels = [], [], [], []
    for number, line in enumerate(content.splitlines(), 1):
        head = line.split(b"\t", 6)
        tail = head[-1].rstrip(b"\t")
        if len(head) != 7 or len(tail) != 2 * _N_PIXELS - 1:
            raise ValueError(f"line {number} is not a letter with {_N_PIXELS} pixels")
        letters.append(head[1])
        pixels.append(tail)
        if head[2] == b"-1":
            ends.append(number)
            folds.append(int(head[5]))
    flat = np.frombuffer(b"\t".join(pixels) + b"\t", dtype=np.uint8)
    return _Words(
        flat[::2].reshape(-1, _N_PIXELS) - ord("0"),
        np.array(letters, dtype="S1").astype("U1"),
        np.array([0, *ends], dtype=np.int64),
        np.array(folds, dtype=np.int64),
    )


def _digest(words: _Words) -> str:
    """SHA-256 over the words in sorted order: fold, letters, packed pixels of each."""
    packed = np.packbits(words.pixels, axis=1)
    records = sorted(
        bytes([fold]) + "".join(words.letters[a:b]).encode() + packed[a:b].tobytes()
        for fold, a, b in zip(
            words.folds.tolist(), words.offsets[:-1], words.offsets[1:], strict=True
        )
    )
    return hashlib.sha256(b"".join(records)).hexdigest()
