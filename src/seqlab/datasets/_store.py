"""Finding a data file: a folder the user names, the cache, or the file's public home.

The order is ``$SEQLAB_DATA`` (read only), then the cache (`data_home`, else ``$SEQLAB_HOME``, else
the platform's cache folder), then a download into the cache. Content is checked against its
checksum wherever it comes from, and reaches the cache by a rename: a file there is whole or absent.
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
_SECONDS = 60  # patience with a silent server


class DatasetError(SeqlabError, OSError):
    """A data set that cannot be had: absent, damaged, not downloadable; the message says which."""


def local_folder() -> Path | None:
    """Return the folder named by ``$SEQLAB_DATA``, or None."""
    named = os.environ.get("SEQLAB_DATA")
    return Path(named).expanduser() if named else None


def get_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Folder where downloaded data sets are kept.

    Parameters
    ----------
    data_home : path, optional
        The folder; by default ``$SEQLAB_HOME``, else the platform's cache folder.

    Returns
    -------
    Path
        The folder, which need not exist yet.

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


def load(
    dataset: DataSet,
    path: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
    extract: Callable[[bytes], bytes] | None = None,
    digest: Callable[[bytes], str] | None = None,
) -> bytes:
    """Content of one file of a data set, checked.

    Parameters
    ----------
    dataset : DataSet
        Entry of the registry.
    path : str
        The file's path inside the data set's folder, without a compression suffix.
    data_home : path, optional
        The cache.
    download_if_missing : bool, default=True
        Whether to go to the file's public home.
    extract : callable, optional
        Makes the content out of the downloaded bytes; by default the zip member that the registry
        names, or the bytes as they are.
    digest : callable, optional
        Checksum of the content, as hexadecimal text; by default SHA-256 of its bytes. It may raise
        ValueError if the content has not even the right form.
    """
    entry = dataset.file(path)
    digest = digest or _sha256
    may_download = download_if_missing and entry.source is not None
    found = _find(dataset, entry, data_home, digest, repair=may_download)
    if found is not None:
        return found
    if entry.source is None or not download_if_missing:
        raise DatasetError(_absent(dataset, entry, data_home))
    url = entry.source.url
    raw = download(url)
    home = get_data_home(data_home) / dataset.folder
    try:
        content = extract(raw) if extract else _member(raw, entry)
        _check(content, entry, url, digest)
        if entry.source.member is not None:  # its neighbours came with it: spare their download
            for other in dataset.files:
                if other is not entry and other.source and other.source.url == url:
                    neighbour = _member(raw, other)
                    _check(neighbour, other, url, digest)
                    _keep(neighbour, home / other.path)
    except (zipfile.BadZipFile, KeyError, *_DAMAGE, ValueError) as error:
        raise DatasetError(f"{url}: not the expected file ({error})") from error
    _keep(content, home / path)
    return content


def _find(
    dataset: DataSet,
    entry: DataFile,
    data_home: str | os.PathLike[str] | None,
    digest: Callable[[bytes], str],
    *,
    repair: bool,
) -> bytes | None:
    """Content from the named folder or the cache; with `repair`, a damaged cache is absent."""
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
    """Place of a file under `folder`, compressed or not."""
    if folder is None:
        return None
    plain = folder / dataset.folder / path
    places = (plain.with_name(plain.name + suffix) for suffix in _OPENERS)
    return next((place for place in places if place.is_file()), None)


def is_present(dataset: DataSet, data_home: str | os.PathLike[str] | None = None) -> bool:
    """Whether every file is in ``$SEQLAB_DATA`` or in the cache (content is not looked at)."""
    folders = (local_folder(), get_data_home(data_home))
    return all(
        any(locate(folder, dataset, entry.path) is not None for folder in folders)
        for entry in dataset.files
    )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _check(content: bytes, entry: DataFile, where: str, digest: Callable[[bytes], str]) -> None:
    """Raise unless the content has the registered checksum."""
    found = digest(content)
    if found != entry.sha256:
        raise DatasetError(
            f"{where}: the content of {entry.path} has SHA-256 {found}, expected {entry.sha256}"
        )


def download(url: str) -> bytes:
    """Fetch an address whole, or raise `DatasetError`; nothing is left behind."""
    import pooch
    import requests

    with tempfile.TemporaryDirectory(prefix="seqlab-") as folder:
        target = Path(folder) / "download"
        try:
            pooch.HTTPDownloader(timeout=_SECONDS)(url, str(target), None)
        except (requests.RequestException, OSError, ValueError) as error:
            raise DatasetError(f"{url}: download failed ({error})") from error
        return target.read_bytes()


def _member(raw: bytes, entry: DataFile) -> bytes:
    if entry.source is None or entry.source.member is None:
        return raw
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return archive.read(entry.source.member)


def _keep(content: bytes, place: Path) -> None:
    """Write to the cache."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with open_atomic(place) as file:
            file.write(content)
    except OSError as error:
        raise DatasetError(f"{place}: cannot be written ({error})") from error


def _absent(dataset: DataSet, entry: DataFile, data_home: str | os.PathLike[str] | None) -> str:
    advice = (
        f"get it from {dataset.home}, put it there as {dataset.folder}/{entry.path} "
        "(plain, .gz, .xz or .bz2) and set SEQLAB_DATA to the folder above"
    )
    named = local_folder()
    searched = ", ".join(str(folder) for folder in (named, get_data_home(data_home)) if folder)
    return f"{dataset.name}: {entry.path} is not in {searched}; {advice}"
