"""Label strips: a labelled sequence in the terminal, with coloured phrases and their probability.

::

    221B         Baker Street  ,  London
    ━━━━         ━━━━━━━━━━━━     ╍╍╍╍╍╍
    HouseNumber  Street           City
     99%          98%              71%

A solid line means a probability of at least 90 %, a dashed line 60 to 90 %, a dotted line below 60 %: the
strip is readable without colours too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from seqlab.utils.text import show_controls

HIGH_CONFIDENCE, LOW_CONFIDENCE = 0.9, 0.6
# Distinguishable on dark and on light backgrounds, and mostly for colour-blind readers too.
PALETTE = (
    "dodger_blue1",
    "dark_orange3",
    "chartreuse3",
    "hot_pink2",
    "dark_turquoise",
    "gold3",
    "medium_purple1",
    "indian_red",
    "spring_green3",
    "medium_orchid3",
    "steel_blue",
    "light_salmon3",
)
_GAP = 2
_LETTERS = "BIELSU"


class Cell(NamedTuple):
    """One phrase, or one step, of a strip.

    Attributes
    ----------
    words : list of str
    kind : str
        Phrase type, or label if it is not a tag; empty for ``O``.
    confidence : list of float or None
        Probability of the label of each word.
    """

    words: list[str]
    kind: str
    confidence: list[float] | None


class LabelStrip:
    """A labelled sequence to print with rich.

    Parameters
    ----------
    words : sequence of str
    labels : sequence of str
        Tags of a scheme (``B-Street``, ``I-Street``, ``O``) are joined to phrases; other labels are
        shown one by one.
    confidence : sequence of float, optional
        Probability of each label.
    colours : dict of str to str, optional
        Style of each phrase type; see `assign_colours`.
    wrap : bool, default=True
        Continue in a new strip at the end of the line.

    Examples
    --------
    >>> from rich.console import Console
    >>> from seqlab.inspection import LabelStrip
    >>> strip = LabelStrip(["12", "Main", "St"], ["B-No", "B-Street", "I-Street"], [0.99, 0.9, 0.5])
    >>> Console(width=40, color_system=None).print(strip)
    12    Main St
    ━━    ━━━━ ┈┈
    No    Street
    99%   50%
    """

    def __init__(
        self,
        words: Sequence[str],
        labels: Sequence[Any],
        confidence: Sequence[float] | None = None,
        *,
        colours: dict[str, str] | None = None,
        wrap: bool = True,
    ) -> None:
        names = [str(label) for label in labels]
        self.cells = list(_cells([show_controls(str(word)) for word in words], names, confidence))
        self.colours = assign_colours(names) if colours is None else colours
        self.wrap = wrap

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line: list[Cell] = []
        used = 0
        for cell in self.cells:
            width = _width(cell)
            if self.wrap and line and used + _GAP + width > options.max_width:
                yield from self._rows(line)
                yield Text("")
                line, used = [], 0
            used += width + (_GAP if line else 0)
            line.append(cell)
        if line:
            yield from self._rows(line)

    def _rows(self, cells: list[Cell]) -> Iterator[Text]:
        rows = [Text(no_wrap=True, overflow="ignore") for _ in range(4)]
        for number, cell in enumerate(cells):
            if number:
                for row in rows:
                    row.append(" " * _GAP)
            style = self.colours.get(cell.kind, "")
            width = _width(cell)
            words, strip, kind, confidence = rows
            words.append(_padded(" ".join(cell.words), width), "bold" if cell.kind else "dim")
            strip.append_text(_strip(cell, style, width))
            kind.append(_padded(show_controls(cell.kind), width), style)
            least = min(cell.confidence) if cell.confidence and cell.kind else None
            shown = "" if least is None else f"{least:.0%}"
            confidence.append(
                _padded(shown, width), "" if least is None else confidence_style(least)
            )
        last = 4 if any(cell.confidence for cell in cells) else 3
        for row in rows[:last]:
            row.rstrip()
            yield row


def assign_colours(labels: Iterable[str]) -> dict[str, str]:
    """Assign a colour to each phrase type or label; the same set of labels gets the same colours.

    Examples
    --------
    >>> assign_colours(["B-City", "I-City", "B-Street", "O"])
    {'City': 'dodger_blue1', 'Street': 'dark_orange3'}
    """
    kinds = sorted({kind for kind in map(phrase_type, labels) if kind})
    return {kind: PALETTE[number % len(PALETTE)] for number, kind in enumerate(kinds)}


def phrase_type(label: str) -> str:
    """Return the phrase type of a tag, or the label if it is not a tag; empty for ``O``."""
    letter, hyphen, kind = label.partition("-")
    if hyphen and kind and len(letter) == 1 and letter in _LETTERS:
        return kind
    return "" if label == "O" else label


def confidence_style(probability: float) -> str:
    """Style of a probability: green if it is high, yellow if medium, red if low."""
    if probability >= HIGH_CONFIDENCE:
        return "green3"
    return "gold3" if probability >= LOW_CONFIDENCE else "bold red1"


def _cells(
    words: Sequence[str], labels: list[str], confidence: Sequence[float] | None
) -> Iterator[Cell]:
    starts = [0, *(t for t in range(1, len(labels)) if _starts_cell(labels[t - 1], labels[t]))]
    if not labels:
        return
    for start, stop in pairwise([*starts, len(labels)]):
        part = None if confidence is None else [float(p) for p in confidence[start:stop]]
        yield Cell([str(word) for word in words[start:stop]], phrase_type(labels[start]), part)


def _starts_cell(before: str, label: str) -> bool:
    """Whether a label starts a new cell, that is, does not continue a phrase."""
    letter, hyphen, kind = label.partition("-")
    inside = hyphen and letter in ("I", "E", "L") and phrase_type(before) == kind
    return not inside


def _width(cell: Cell) -> int:
    return max(Text(" ".join(cell.words)).cell_len, Text(cell.kind).cell_len, 4 if cell.kind else 1)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - Text(text).cell_len)


def _strip(cell: Cell, style: str, width: int) -> Text:
    strip = Text(style=style)
    if cell.kind:
        for number, word in enumerate(cell.words):
            proba = 1.0 if cell.confidence is None else cell.confidence[number]
            line = "━" if proba >= HIGH_CONFIDENCE else "╍" if proba >= LOW_CONFIDENCE else "┈"
            space = " " if number else ""
            strip.append(space + line * Text(word).cell_len)
    strip.append(" " * (width - strip.cell_len))
    return strip
