"""StripDisplay: gold and predicted labels of long sequences as bars.

If labels come in runs (the parts of a mail, the activities of a day), bars for each sequence, gold above
predicted, show which runs start early or late, which are missed, and where labels change too often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from seqlab.data.errors import InputError
from seqlab.inspection._plotting import GREY, INK, get_axes, pyplot
from seqlab.inspection.weights import label_order
from seqlab.metrics import label_runs

# Distinguishable for colour-blind readers too (Okabe & Ito 2008); light grey is for the background label.
COLOURS = (
    "#cfd6dc", "#0072b2", "#d55e00", "#009e73", "#cc79a7",
    "#e69f00", "#56b4e9", "#b0a800", "#7a5195", "#5a6772",
)  # fmt: skip
# From the eleventh label on, the colours repeat with a hatch.
HATCHES = (None, "////", "....", "xxxx")
_WRONG = "#c1121f"
_MIN_ERROR_WIDTH = 0.5  # points; otherwise one wrong step in 100,000 would be invisible
_BAR, _GAP, _BETWEEN = 0.34, 0.11, 0.34  # heights in a row; errors are drawn in the gap


class StripDisplay:
    """Bars of labels, one row per sequence: gold above, predictions below, errors underlined.

    Parameters
    ----------
    strips : dict of str to list of label sequences
        The labelings, from top to bottom; if there are several, the first is the gold one.
    names : list of str, optional
        Names of the sequences; by default their numbers.
    labels : sequence of labels, optional
        Order of the legend, the first label in light grey; by default the most frequent label comes
        first. From the eleventh label on, the colours repeat with a hatch.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : list of matplotlib collections
        One for each label of each labeling of each sequence.

    Examples
    --------
    >>> from seqlab.inspection import StripDisplay
    >>> gold = [["text"] * 30 + ["sig"] * 6]
    >>> found = [["text"] * 28 + ["sig"] * 8]
    >>> display = StripDisplay.from_predictions(gold, found)  # doctest: +SKIP
    """

    def __init__(
        self,
        strips: dict[str, list[Any]],
        names: Sequence[str] | None = None,
        labels: Sequence[Any] | None = None,
    ) -> None:
        self.strips = strips
        self.names = names
        self.labels = labels

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, *, ax: Any = None, **options: Any
    ) -> StripDisplay:
        """Plot gold and predicted labels.

        Parameters
        ----------
        y_true : list of label sequences
        y_pred : list of label sequences, or dict of name to such lists
            One labeling, or several with their names.
        ax : matplotlib Axes, optional
        **options
            ``names`` and ``labels`` of the display, and the parameters of `plot`.
        """
        found = dict(y_pred) if isinstance(y_pred, dict) else {"predicted": y_pred}
        names, labels = options.pop("names", None), options.pop("labels", None)
        return cls({"gold": y_true, **found}, names, labels).plot(ax=ax, **options)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, **options: Any
    ) -> StripDisplay:
        """Plot gold labels and the labels predicted by a fitted model.

        Parameters
        ----------
        estimator : fitted labeler or Tagger
        X, y : lists of sequences and of their labels
        ax : matplotlib Axes, optional
        **options
            See `from_predictions`.
        """
        return cls.from_predictions(y, estimator.predict(X), ax=ax, **options)

    def plot(self, ax: Any = None, *, max_sequences: int = 12, errors: bool = True) -> StripDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, new axes are created.
        max_sequences : int, default=12
            Draw only this many sequences, from the first.
        errors : bool, default=True
            Underline wrong steps in red; each one is visible, even in a long sequence.
        """
        kinds = list(self.strips)
        shown = self._select(max_sequences)
        n_sequences = len(shown[kinds[0]])
        names = list(self.names or [f"sequence {i}" for i in range(n_sequences)])[:n_sequences]
        if len(names) != n_sequences:
            raise InputError(f"there are {n_sequences} sequences but {len(names)} names")
        styles = self._styles(shown)
        row_height = len(kinds) * (_BAR + _GAP) + _BETWEEN
        height = 0.9 + 0.62 * n_sequences * row_height
        self.ax_, self.figure_ = get_axes(ax, (8.4, min(height, 16.0)))
        self.bars_: list[Any] = []
        middles, ticks = [], []
        for i in range(n_sequences):
            top = i * row_height
            for k, kind in enumerate(kinds):
                y = top + k * (_BAR + _GAP)
                self._draw_strip(shown[kind][i], y, styles)
                ticks.append((y + _BAR / 2, kind))
                if errors and k:
                    self._underline(shown[kinds[0]][i], shown[kind][i], y + _BAR)
            middles.append(top + len(kinds) * (_BAR + _GAP) / 2)
        self._finish(names, middles, ticks, n_sequences * row_height - _BETWEEN, styles, shown)
        return self

    def _select(self, max_sequences: int) -> dict[str, list[Any]]:
        """The labels to draw; the numbers of sequences must agree, including those not drawn."""
        first, *others = self.strips
        for kind in others:
            if len(self.strips[kind]) != len(self.strips[first]):
                raise InputError(
                    f"{first} has {len(self.strips[first])} sequences but {kind} has "
                    f"{len(self.strips[kind])}"
                )
        shown = {kind: list(labelings)[:max_sequences] for kind, labelings in self.strips.items()}
        if not shown[first]:
            raise InputError("there is no sequence to draw")
        for kind, labelings in shown.items():
            for i, labels in enumerate(labelings):
                if isinstance(labels, str) or not hasattr(labels, "__len__"):
                    raise InputError(f"{kind}[{i}] is {labels!r}, not a sequence of labels")
                n_steps = len(shown[first][i])
                if len(labels) != n_steps:
                    raise InputError(
                        f"{first}[{i}] has {n_steps} labels but {kind}[{i}] has {len(labels)}"
                    )
        return shown

    def _styles(self, shown: dict[str, list[Any]]) -> dict[Any, dict[str, Any]]:
        """Colour and hatch of each label."""
        gold, *others = shown.values()
        counts = Counter(label for labels in gold for label in _to_list(labels))
        for labels in chain.from_iterable(others):
            counts.update(dict.fromkeys(_to_list(labels), 0))
        order = list(self.labels) if self.labels is not None else label_order(counts)
        missing = [label for label in counts if label not in order]
        if missing:
            raise InputError(f"labels= does not contain the label {missing[0]!r}")
        if self.labels is None:
            background = max(order, key=lambda label: counts[label])
            order = [background, *[label for label in order if label != background]]
        styles = {}
        for k, label in enumerate(order):
            cycle, colour = divmod(k, len(COLOURS))
            styles[label] = {"facecolor": COLOURS[colour], "linewidth": 0}
            if cycle:
                styles[label] |= {"hatch": HATCHES[cycle % len(HATCHES)], "edgecolor": "white"}
        return styles

    def _draw_strip(self, labels: Any, y: float, styles: dict[Any, dict[str, Any]]) -> None:
        spans: dict[Any, list[tuple[int, int]]] = {}
        for run in label_runs(_to_list(labels)):
            spans.setdefault(run.label, []).append((run.start, run.stop - run.start))
        for label, parts in spans.items():
            bars = self.ax_.broken_barh(parts, (y, _BAR), **styles[label])
            self.bars_.append(bars)

    def _underline(self, gold: Any, found: Any, y: float) -> None:
        wrong = np.array([a != b for a, b in zip(_to_list(gold), _to_list(found), strict=True)])
        parts = [(r.start, r.stop - r.start) for r in label_runs(wrong) if r.label]
        if parts:
            self.ax_.broken_barh(
                parts, (y, 0.07), facecolor=_WRONG, edgecolor=_WRONG, linewidth=_MIN_ERROR_WIDTH
            )

    def _finish(
        self,
        names: list[str],
        middles: list[float],
        ticks: list[tuple[float, str]],
        bottom: float,
        styles: dict[Any, dict[str, Any]],
        shown: dict[str, list[Any]],
    ) -> None:
        longest = max(len(labels) for labels in next(iter(shown.values())))
        ax = self.ax_
        ax.set_xlim(0, max(longest, 1))
        ax.set_ylim(bottom + 0.15, -0.1)
        ax.set_yticks([y for y, _ in ticks], [kind for _, kind in ticks], fontsize=7.5, color=GREY)
        ax.tick_params(axis="y", length=0)
        ax.tick_params(axis="x", colors=INK, labelsize=8.5)
        ax.xaxis.get_major_locator().set_params(integer=True)  # there is no step 0.5
        for y, name in zip(middles, names, strict=True):
            ax.annotate(
                name,
                (1.0, y),
                xycoords=("axes fraction", "data"),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8.5,
                color=INK,
                annotation_clip=False,
            )
        ax.set_xlabel("step", color=INK)
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
        ax.spines["bottom"].set_color(GREY)
        patch = pyplot().Rectangle
        handles = [patch((0, 0), 1, 1, **style) for style in styles.values()]
        ax.legend(
            handles,
            [str(label) for label in styles],
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=min(len(styles), 6),
            frameon=False,
            fontsize=8.5,
            handlelength=1.0,
            handleheight=0.9,
            columnspacing=1.2,
        )


def _to_list(labels: Any) -> list[Any]:
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
