"""Logs of object use as logical sequences: which objects are used in each step, and the activity.

Two tables of intervals, as loggers of sensors and RFID tags write them: events (start, end, object) and
activities (start, end, activity). Time is divided into steps of equal length; a step has the atom
``use(object)`` if the object is used in some part of it.
"""

from __future__ import annotations

import math
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from seqlab.data.atoms import Atom
from seqlab.data.errors import InputError
from seqlab.data.io.streams import ReadError, Source, is_blank, iter_lines, source_name
from seqlab.datasets._helpers import make_result

if TYPE_CHECKING:
    from sklearn.utils import Bunch

_DAY = 86_400.0
# A year in steps of a second: more is usually a date in a wrong unit.
MAX_STEPS = 40_000_000


class _Interval(NamedTuple):
    start: float
    end: float
    name: str


def load_object_use(
    events: Source,
    activities: Source,
    *,
    step: float = 60.0,
    predicate: str = "use",
    split_days: bool = True,
    idle: str = "idle",
    sep: str = "\t",
    return_X_y: bool = False,
) -> Bunch | tuple[list[list[list[Atom]]], list[list[str]]]:
    r"""Load logical activity data: the objects in use per step, and the activity of each step.

    Parameters
    ----------
    events : path or file object
        Lines ``start SEP end SEP object``. Times are numbers (seconds) or ISO dates
        (``2008-02-25T09:33:41``). Blank lines and lines that begin with ``#`` are skipped.
    activities : path or file object
        Lines ``start SEP end SEP activity``. If activities overlap, the later line counts.
    step : float, default=60.0
        Seconds per step. An interval covers every step that it touches.
    predicate : str, default="use"
    split_days : bool, default=True
        Whether each day (from midnight to midnight) is a sequence; otherwise there is one sequence.
    idle : str, default="idle"
        Label of steps without activity.
    sep : str, default="\t"
        What separates the columns.
    return_X_y : bool, default=False
        Whether to return only ``(data, target)``.

    Returns
    -------
    Bunch
        ``data`` (list of lists of lists of `Atom`), ``target`` (list of lists of labels), ``starts`` (time
        of the first step of each sequence, in seconds), ``target_names``, ``objects``.

    Raises
    ------
    ReadError
        For a line that is not an interval; the message gives file and line.

    Examples
    --------
    >>> import io
    >>> from seqlab.datasets import load_object_use
    >>> events = io.StringIO("0\t70\tkettle\n61\t65\tcup\n")
    >>> X, y = load_object_use(events, io.StringIO("60\t130\ttea\n"), return_X_y=True)
    >>> X, y
    ([[['use(kettle)'], ['use(kettle)', 'use(cup)'], []]], [['idle', 'tea', 'tea']])
    """
    if not step > 0 or not math.isfinite(step):
        raise InputError(f"step must be a positive number of seconds, got {step!r}")
    used, done = _read_intervals(events, sep), _read_intervals(activities, sep)
    every = used + done
    if not every:
        raise ReadError(source_name(events), None, "no intervals: the file is empty")
    first = min(math.floor(one.start / step) for one in every)
    last = max(_last_step(one, step) for one in every)
    if last - first >= MAX_STEPS:
        raise InputError(
            f"the log has {last - first + 1} steps of {step:g} seconds: check the times"
        )
    atoms: list[dict[Atom, None]] = [{} for _ in range(first, last + 1)]
    labels = [idle] * len(atoms)
    for one in used:
        atom = Atom(predicate, one.name)
        for at in range(math.floor(one.start / step), _last_step(one, step) + 1):
            atoms[at - first][atom] = None
    for one in done:
        begin, end = math.floor(one.start / step) - first, _last_step(one, step) - first
        labels[begin : end + 1] = [one.name] * (end + 1 - begin)
    bounds = [0, len(atoms)]
    if split_days:
        days = [math.floor(at * step / _DAY) for at in range(first, last + 1)]
        bounds[1:1] = [k for k in range(1, len(days)) if days[k] != days[k - 1]]
    parts = [slice(a, b) for a, b in pairwise(bounds)]
    return make_result(
        return_X_y,
        [[list(one) for one in atoms[part]] for part in parts],
        [labels[part] for part in parts],
        starts=[(first + part.start) * step for part in parts],
        objects=list(dict.fromkeys(one.name for one in used)),
    )


def _last_step(interval: _Interval, step: float) -> int:
    """Return the last step that an interval touches; its end is not part of it, unless it is the start."""
    begin = math.floor(interval.start / step)
    return max(begin, math.ceil(interval.end / step) - 1)


def _read_intervals(source: Source, sep: str) -> list[_Interval]:
    name, found = source_name(source), []
    for number, line in iter_lines(source):
        if is_blank(line) or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split(sep)]
        if len(fields) != 3 or not fields[2]:
            raise ReadError(name, number, "a line must have three columns: start, end and name")
        try:
            start, end = map(_seconds, fields[:2])
        except ValueError:
            reason = f"{fields[0]!r} and {fields[1]!r} must be numbers of seconds or ISO dates"
            raise ReadError(name, number, reason) from None
        if not end >= start:
            raise ReadError(name, number, "the interval ends before it begins")
        found.append(_Interval(start, end, fields[2]))
    return found


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        # Local time without a zone: midnight is then where the day changes in the log.
        moment = datetime.fromisoformat(text).replace(tzinfo=None)
        value = (moment - datetime(1970, 1, 1)).total_seconds()
    if not math.isfinite(value):
        raise ValueError(text)
    return value
