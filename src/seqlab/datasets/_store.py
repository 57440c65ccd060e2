"""Find data files: in a folder of the user, in the cache, or by download.

The order is ``$SEQLAB_DATA`` (read only), then the cache (`data_home`, else ``$SEQLAB_HOME``, else
the platform's cache folder), then a download into the cache. The checksum of the content is always
verified. A file in the cache is complete, because it is renamed after it has been written.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from seqlab.data.errors import SeqlabError
from seqlab.datasets._registry import DataFile, DataSet
from seqlab.utils.files import open_atomic

_OPENERS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda content: content,
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
    ".bz2": bz2.decompress,
}
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
_TIMEOUT = 60  # seconds without data from a server


class DatasetError(SeqlabError, OSError):
    """A data set that is missing, damaged or cannot be downloaded; the message says which."""


def local_folder() -> Path | None:
    """Return the folder named by ``$SEQLAB_DATA``, or None."""
    named = os.environ.get("SEQLAB_DATA")
    return Path(named).expanduser() if named else None


def get_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of downloaded data sets.

    Parameters
    ----------
    data_home : path, optional
        The folder; by default ``$SEQLAB_HOME``, else the platform's cache folder.

    Returns
    -------
    Path
        The folder, which may not exist yet.

    Examples
    --------
    >>> from seqlab.datasets import get_data_home
    >>> get_data_home("cache").name
    'cache'
    """
    chosen = data_home or os.environ.get("SEQLAB_HOME")
    if chosen:
        return Path(chosen).expanduser()
    import pooch

    return Path(pooch.os_cache("seqlab"))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def load(
    dataset: DataSet,
    path: str,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    *,
    extract: Callable[[bytes], bytes] | None = None,
    digest: Callable[[bytes], str] = _sha256,
) -> bytes:
    """Return the content of one file of a data set, with a verified checksum.

    Parameters
    ----------
    dataset : DataSet
        Entry of the registry.
    path : str
        Path inside the folder of the data set, without a compression suffix.
    data_home : path, optional
        The cache.
    download_if_missing : bool, default=True
        Whether to download the file.
    extract : callable, optional
        Converts the downloaded bytes to the content; by default the zip member named in the
        registry, or the bytes themselves.
    digest : callable, optional
        Checksum of the content, as hexadecimal text; by default SHA-256 of its bytes. It may raise
        ValueError if the content does not have the expected form.
    """
    entry = dataset.file(path)
    may_download = download_if_missing and entry.source is not None
    found = _find(dataset, entry, data_home, digest, repair=may_download)
    if found is not None:
        return found
    if entry.source is None or not download_if_missing:
        raise DatasetError(_missing_message(dataset, entry, data_home))
    url = entry.source.url
    try:
        raw = download(url)
    except DatasetError as error:
        raise DatasetError(f"{error}; {_missing_message(dataset, entry, data_home)}") from None
    home = get_data_home(data_home) / dataset.folder
    try:
        content = extract(raw) if extract else _extract_member(raw, entry)
        _check(content, entry, url, digest)
        if entry.source.member is not None:
            # Store the other files of the archive too, which is read anyway.
            for other in dataset.files:
                if other is not entry and other.source and other.source.url == url:
                    member = _extract_member(raw, other)
                    _check(member, other, url, digest)
                    _store(member, home / other.path)
    except (zipfile.BadZipFile, KeyError, *_DAMAGE, ValueError) as error:
        raise DatasetError(f"{url}: not the expected file ({error})") from error
    _store(content, home / path)
    return content


def _find(
    dataset: DataSet,
    entry: DataFile,
    data_home: str | os.PathLike[str] | None,
    digest: Callable[[bytes], str],
    *,
    repair: bool,
) -> bytes | None:
    """Content from ``$SEQLAB_DATA`` or the cache; with `repair`, damaged files in the cache are ignored."""
    named = local_folder()
    for folder in (named, get_data_home(data_home)):
        place = locate(folder, dataset, entry.path)
        if place is None:
            continue
        try:
            content = _OPENERS[place.suffix if place.suffix in _OPENERS else ""](place.read_bytes())
            _check(content, entry, str(place), digest)
        except (DatasetError, OSError, *_DAMAGE, ValueError) as error:
            if repair and folder is not named:
                continue
            if isinstance(error, DatasetError):
                raise
            raise DatasetError(f"{place}: cannot be read ({error})") from error
        return content
    return None


def locate(folder: Path | None, dataset: DataSet, path: str) -> Path | None:
    """Path of a file in `folder`, compressed or not, or None."""
    if folder is None:
        return None
    plain = folder / dataset.folder / path
    places = (plain.with_name(plain.name + suffix) for suffix in _OPENERS)
    return next((place for place in places if place.is_file()), None)


def is_present(dataset: DataSet, data_home: str | os.PathLike[str] | None = None) -> bool:
    """Whether every file is in ``$SEQLAB_DATA`` or in the cache (contents are not checked)."""
    folders = (local_folder(), get_data_home(data_home))
    return all(
        any(locate(folder, dataset, entry.path) is not None for folder in folders)
        for entry in dataset.files
    )


def _check(content: bytes, entry: DataFile, where: str, digest: Callable[[bytes], str]) -> None:
    """Raise an error unless the content has the checksum of the registry."""
    found = digest(content)
    if found != entry.sha256:
        raise DatasetError(
            f"{where}: the content of {entry.path} has SHA-256 {found}, expected {entry.sha256}"
        )


def download(url: str) -> bytes:
    """Download an address completely, or raise `DatasetError`; no file is left."""
    import pooch
    import requests

    with tempfile.TemporaryDirectory(prefix="seqlab-") as folder:
        target = Path(folder) / "download"
        try:
            pooch.HTTPDownloader(timeout=_TIMEOUT)(url, str(target), None)
        except (requests.RequestException, OSError, ValueError) as error:
            # The tracebacks of four network libraries would hide the message.
            raise DatasetError(f"{url}: download failed ({error})") from None
        return target.read_bytes()


def _extract_member(raw: bytes, entry: DataFile) -> bytes:
    if entry.source is None or entry.source.member is None:
        return raw
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return archive.read(entry.source.member)


def _store(content: bytes, place: Path) -> None:
    """Write to the cache."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with open_atomic(place) as file:
            file.write(content)
    except OSError as error:
        raise DatasetError(f"{place}: cannot be written ({error})") from error


def _missing_message(
    dataset: DataSet, entry: DataFile, data_home: str | os.PathLike[str] | None
) -> str:
    folders = (local_folder(), get_data_home(data_home))
    searched = ", ".join(str(folder) for folder in folders if folder)
    return (
        f"{dataset.name}: {entry.path} is not in {searched}; get it from {dataset.home}, store it "
        f"as FOLDER/{dataset.folder}/{entry.path} (plain, .gz, .xz or .bz2) and set "
        "SEQLAB_DATA=FOLDER"
    )
