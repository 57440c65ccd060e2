"""WebKB: linked web pages of four computer-science departments."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.datasets._helpers import check_choice, make_result
from seqlab.datasets._registry import WEBKB
from seqlab.datasets._store import load

if TYPE_CHECKING:
    from sklearn.utils import Bunch

_SCHOOLS = ("cornell", "texas", "washington", "wisconsin")
_DESCR = """\
WebKB with links (LINQS version)
--------------------------------
877 web pages of four departments, 1,608 links, 5 classes (course, faculty, project, staff,
student), 1,703 binary word indicators without names.

cornell 195 pages, 304 links; texas 187, 328; washington 230, 446; wisconsin 265, 530

One entry per school: ``list(zip(data, edges))`` are the graphs that the graph models take.
Usual split: train on three schools, test on the fourth. An edge is a pair of pages in the order of
the file (the cited page first, by LINQS's convention); some pages link to themselves.
Terms: none stated; cite

Craven, M. et al. (1998). Learning to extract symbolic knowledge from the World Wide Web. AAAI.
"""


def fetch_webkb(
    *,
    school: str | None = None,
    return_X_y: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Bunch | tuple[list[sp.csr_matrix], list[NDArray[np.str_]]]:
    """Load graphs of web pages, one per school.

    Parameters
    ----------
    school : {"cornell", "texas", "washington", "wisconsin"}, optional
        The school to load; all four by default.
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
        One entry per school in each of ``data`` (CSR matrices, (n_pages, 1703)), ``edges`` (int
        arrays, (n_links, 2)), ``target`` (arrays of classes), ``pages`` (lists of addresses) and
        ``schools``; further ``feature_names``, ``target_names``, ``DESCR``.

    Raises
    ------
    DatasetError
        If the data are missing or invalid and cannot be downloaded.

    Examples
    --------
    >>> from seqlab.datasets import fetch_webkb
    >>> web = fetch_webkb(school="cornell")  # doctest: +SKIP
    >>> web.data[0].shape, web.edges[0].shape  # doctest: +SKIP
    ((195, 1703), (304, 2))
    """
    check_choice(school, "school", (*_SCHOOLS, None))
    schools = _SCHOOLS if school is None else (school,)

    def rows(path: str, separator: str) -> list[list[str]]:
        content = load(WEBKB, path, data_home, download_if_missing)
        return [line.split(separator) for line in content.decode("utf-8").splitlines() if line]

    data, edges, target, pages = [], [], [], []
    for name in schools:
        content = rows(f"{name}.content", "\t")
        words = np.array([row[1:-1] for row in content], dtype="U1") == "1"
        number = {row[0]: k for k, row in enumerate(content)}
        links = [[number[page] for page in pair[:2]] for pair in rows(f"{name}.cites", " ")]
        data.append(sp.csr_matrix(words.astype(np.float64)))
        edges.append(np.array(links, dtype=np.int64))
        target.append(np.array([row[-1] for row in content]))
        pages.append(list(number))
    return make_result(
        return_X_y,
        data,
        target,
        edges=edges,
        pages=pages,
        schools=list(schools),
        feature_names=[f"w{k}" for k in range(data[0].shape[1])],
        target_names=["course", "faculty", "project", "staff", "student"],
        DESCR=_DESCR,
    )
