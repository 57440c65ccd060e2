"""Lines of newsgroup messages: signature, quoted reply, or other."""

from __future__ import annotations

import io
import os
import zipfile
from typing import TYPE_CHECKING

from seqlab.datasets._helpers import make_result
from seqlab.datasets._registry import EMAIL_SIGNATURES
from seqlab.datasets._store import load

if TYPE_CHECKING:
    from sklearn.utils import Bunch

_MARKS = (("#sig#", "sig"), ("#reply#", "reply"))
_DESCR = """\
Signature and reply lines
-------------------------
617 newsgroup messages of 1993 with 33,013 lines: 3,321 signature, 5,587 quoted reply, 24,105 other
(including the header lines of messages). Labels form long runs: 3,400 runs of 9.7 lines on average.

Usual protocol: 5-fold cross-validation over messages. Published: above 98 % of lines correct.
Terms: none stated. These are real messages with names, addresses and telephone numbers: do not
publish them.

Carvalho, V. & Cohen, W. (2004). Learning to extract signature and reply lines from email. CEAS.
"""


def fetch_email_signatures(
    *,
    return_X_y: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Bunch | tuple[list[list[tuple[str]]], list[list[str]]]:
    """Load messages as sequences of lines, labelled "sig", "reply" or "other".

    Parameters
    ----------
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
        ``data`` (list of messages of (line,)), ``target`` (list of label lists), ``message_ids``,
        ``feature_names``, ``target_names``, ``DESCR``.

    Raises
    ------
    DatasetError
        If the data are missing or invalid and cannot be downloaded.

    Examples
    --------
    >>> from seqlab.datasets import fetch_email_signatures
    >>> mail = fetch_email_signatures()  # doctest: +SKIP
    >>> len(mail.data), mail.target[0][-1]  # doctest: +SKIP
    (617, 'sig')
    """
    path, extract = "lines.tsv", _lines_of_archive
    content = load(EMAIL_SIGNATURES, path, data_home, download_if_missing, extract=extract)
    messages: dict[str, tuple[list[tuple[str]], list[str]]] = {}
    for row in content.decode("utf-8").split("\n")[:-1]:
        message, label, line = row.split("\t", 2)
        tokens, labels = messages.setdefault(message, ([], []))
        tokens.append((line,))
        labels.append(label)
    return make_result(
        return_X_y,
        [tokens for tokens, _ in messages.values()],
        [labels for _, labels in messages.values()],
        message_ids=list(messages),
        feature_names=["line"],
        target_names=["other", "reply", "sig"],
        DESCR=_DESCR,
    )


def _lines_of_archive(raw: bytes) -> bytes:
    """Extract the lines of all messages from the archive of the repository."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        folder = "/datasets/sigPlusReply/"
        names = [name for name in archive.namelist() if folder in name and name[-1] != "/"]
        return label_lines({name.rpartition("/")[2]: archive.read(name) for name in names})


def label_lines(messages: dict[str, bytes]) -> bytes:
    """Convert messages with marked lines to lines ``message TAB label TAB line``.

    A mark at the beginning of a line gives its label and is removed, together with the space after the
    mark of a signature, which would reveal the label.
    """
    rows = []
    for name in sorted(messages):
        for line in messages[name].decode("latin-1").removesuffix("\n").split("\n"):
            text, label = line.rstrip("\r"), "other"
            for mark, kind in _MARKS:
                if text.startswith(mark):
                    text, label = text.removeprefix(mark), kind
                    break
            if label == "sig":
                text = text.removeprefix(" ")
            rows.append(f"{name}\t{label}\t{text}\n")
    return "".join(rows).encode("utf-8")
