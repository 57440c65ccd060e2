"""Activities of daily living in house A of van Kasteren: binary sensors in steps of one minute.

Time is divided into slices of 60 s that begin with the first event, as in the authors' scripts: an
interval covers the slices from ``floor(start)`` to ``ceil(end)``, and a later interval overrides an
earlier one. Three codings of a sensor in a slice:

* raw: the sensor is on in the slice;
* change: it switches on or off in the slice;
* last: it changes in the slice, or was the last sensor to change before it. If several sensors
  change in one slice, the one with the highest number counts as the last.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.datasets._helpers import make_result
from seqlab.datasets._registry import KASTEREN
from seqlab.datasets._store import load

if TYPE_CHECKING:
    from sklearn.utils import Bunch

_SLICE = 60  # seconds
_DAY = 86_400
_CODINGS = ("raw", "change", "last")
_DESCR = """\
Activities of daily living, house A
-----------------------------------
14 binary sensors (doors, cupboards, flush) in the home of one man, 28 days of February and March
2008, with 245 annotated activities of 7 kinds; 40,006 time slices of one minute.

idle 4,627 slices, leave house 22,617, use toilet 379, take shower 265, go to bed 11,602,
prepare breakfast 109, prepare dinner 348, get drink 59

Usual protocol: leave one day out; accuracy over slices and mean recall over classes ("class
accuracy"). Published with change and last features: 95.6 % of slices (CRF), 79.4 % class accuracy
(HMM). Terms: none stated; cite

van Kasteren, T., Noulas, A., Englebienne, G. & Krose, B. (2008). Accurate activity recognition in
a home setting. UbiComp.
"""
_Interval = tuple[int, int, int]


def fetch_kasteren(
    *,
    features: str | Sequence[str] = ("change", "last"),
    return_X_y: bool = False,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Bunch | tuple[list[NDArray[np.float64]], list[NDArray[np.str_]]]:
    """Load days at home as sequences of minutes, with the activity of each minute.

    Parameters
    ----------
    features : str or sequence of str, default=("change", "last")
        One or more codings of the 14 sensors: "raw", "change", "last".
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
        ``data`` (list of 28 arrays (n_minutes, 14 x codings)), ``target`` (list of arrays of
        activity names), ``days`` (dates, ISO), ``feature_names``, ``target_names``, ``DESCR``.

    Raises
    ------
    DatasetError
        If the data are missing or invalid and cannot be downloaded.

    Examples
    --------
    >>> from seqlab.datasets import fetch_kasteren
    >>> home = fetch_kasteren(features="raw")  # doctest: +SKIP
    >>> len(home.data), home.data[1].shape  # doctest: +SKIP
    (28, (1440, 14))
    """
    codings = (features,) if isinstance(features, str) else tuple(features)
    if not codings or any(coding not in _CODINGS for coding in codings):
        raise InputError(f"features must be among {_CODINGS}, got {features!r}")

    def text(name: str) -> str:
        path = f"house_a_2008/{name}"
        content = load(KASTEREN, path, data_home, download_if_missing)
        return content.decode("utf-8")

    sensing, acting = text("kasterenSenseData.txt"), text("kasterenActData.txt")
    sensors, activities = _names(sensing), _names(acting)
    events, labels = _intervals(sensing), _intervals(acting)
    start = min(interval[0] for interval in events + labels)
    end = max(interval[1] for interval in events + labels)
    n_slices = -(-(end - start) // _SLICE) + 1
    tables = _encode(events, sorted(sensors), start, n_slices)
    matrix = np.hstack([tables[coding] for coding in codings])
    target = _label(labels, activities, start, n_slices)

    times = start + _SLICE * np.arange(n_slices)
    bounds = np.flatnonzero(np.diff(times // _DAY)) + 1
    days = [datetime.fromtimestamp(times[k], UTC).date().isoformat() for k in (0, *bounds)]
    return make_result(
        return_X_y,
        np.split(matrix, bounds),
        np.split(target, bounds),
        days=days,
        feature_names=[
            f"{coding}:{sensors[number]}" for coding in codings for number in sorted(sensors)
        ],
        target_names=["idle", *(activities[number] for number in sorted(activities))],
        DESCR=_DESCR,
    )


def _names(text: str) -> dict[int, str]:
    """Numbers and names of sensors or activities, from the header of a file."""
    head, _, _ = text.partition("Start time  ")
    found = re.findall(r"(\d+)\]?\s*:?\s*'([^']*)'", head)
    return {int(number): name.strip().lower() for number, name in found}


def _intervals(text: str) -> list[_Interval]:
    """Start, end (seconds, local time read as UTC) and number of each interval."""
    rows = []
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) >= 3 and fields[0][:2].isdigit():
            rows.append((_seconds(fields[0]), _seconds(fields[1]), int(fields[2])))
    return rows


_MONTHS = {"Feb": 2, "Mar": 3}  # English names in every locale


def _seconds(text: str) -> int:
    day, month, rest = text.strip().split("-")
    year, clock = rest.split(" ")
    hour, minute, second = map(int, clock.split(":"))
    moment = datetime(int(year), _MONTHS[month], int(day), hour, minute, second, tzinfo=UTC)
    return int(moment.timestamp())


def _slices(interval: _Interval, start: int) -> tuple[int, int]:
    """First and last slice of an interval."""
    return (interval[0] - start) // _SLICE, -(-(interval[1] - start) // _SLICE)


def _encode(
    events: list[_Interval], numbers: list[int], start: int, n_slices: int
) -> dict[str, NDArray[np.float64]]:
    """The three codings, each (n_slices, n_sensors)."""
    raw, change, last = np.zeros((3, n_slices, len(numbers)))
    column = {number: k for k, number in enumerate(numbers)}
    for event in events:
        first, final = _slices(event, start)
        raw[first : final + 1, column[event[2]]] = 1.0
        change[[first, final], column[event[2]]] = 1.0
    last[:] = change
    last_changed = None
    for t in range(n_slices):
        if last_changed is not None:
            last[t, last_changed] = 1.0
        changed = np.flatnonzero(change[t])
        if changed.size:
            last_changed = changed[-1]
    return {"raw": raw, "change": change, "last": last}


def _label(
    intervals: list[_Interval], names: dict[int, str], start: int, n_slices: int
) -> NDArray[np.str_]:
    longest = max(map(len, names.values()))
    labels = np.full(n_slices, "idle", dtype=f"U{longest}")
    for interval in intervals:
        first, final = _slices(interval, start)
        labels[first : final + 1] = names[interval[2]]
    return labels
