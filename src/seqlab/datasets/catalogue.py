"""The list of real data sets, and whether they are on this machine."""

from __future__ import annotations

import os
from typing import NamedTuple

from seqlab.datasets._registry import DATASETS, DataSet
from seqlab.datasets._store import is_present


class DatasetInfo(NamedTuple):
    """Description of one data set, as returned by `list_datasets`.

    Attributes
    ----------
    name : str
        ``fetch_<name>`` loads it.
    task, sequences, tokens, labels : str
        Its task and size, as text.
    terms : str
        Summary of the terms of use.
    home : str
        Address of its public page.
    urls : tuple of str
        Addresses of the files to download.
    urls_tried : bool
        Whether these addresses were tried when this version of seqlab was released.
    present : bool
        Whether it is in ``$SEQLAB_DATA`` or the cache, so that no download is needed.
    """

    name: str
    task: str
    sequences: str
    tokens: str
    labels: str
    terms: str
    home: str
    urls: tuple[str, ...]
    urls_tried: bool
    present: bool


_SHARED = set(DatasetInfo._fields) & set(DataSet._fields)


def list_datasets(data_home: str | os.PathLike[str] | None = None) -> list[DatasetInfo]:
    """Describe every data set that seqlab can fetch.

    Parameters
    ----------
    data_home : path, optional
        Cache to search; by default ``$SEQLAB_HOME`` or the platform's cache folder.

    Returns
    -------
    list of DatasetInfo

    Examples
    --------
    >>> from seqlab.datasets import list_datasets
    >>> [info.name for info in list_datasets()][:3]
    ['conll2000', 'ud_english_ewt', 'ocr_letters']
    """
    table = []
    for entry in DATASETS:
        sources = [file.source for file in entry.files if file.source is not None]
        urls = tuple(dict.fromkeys(source.url for source in sources))
        tried = all(source.tried for source in sources)
        shared = {key: value for key, value in entry._asdict().items() if key in _SHARED}
        present = is_present(entry, data_home)
        table.append(DatasetInfo(**shared, urls=urls, urls_tried=tried, present=present))
    return table
