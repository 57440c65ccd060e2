"""Code that the displays share: import matplotlib on demand, create axes, draw heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

INK, GREY, BLUE, ORANGE = "#22303c", "#8a97a3", "#1f77b4", "#d9792b"
_MAX_TEXT_LABELS = 24  # with more labels, the cells are too small for numbers


def pyplot() -> Any:
    """Import `matplotlib.pyplot`; the error names the extra to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'seqlab[report]'") from error
    return plt


def get_axes(ax: Any, size: tuple[float, float]) -> tuple[Any, Any]:
    """Return the given axes and their figure, or new ones with a size in inches."""
    if ax is not None:
        return ax, ax.figure
    figure, ax = pyplot().subplots(figsize=size, layout="constrained")
    return ax, figure


def heat_map(
    ax: Any,
    values: NDArray[np.float64],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    texts: Sequence[Sequence[str]] | None,
    **image: Any,
) -> Any:
    """Draw a matrix with its labels, and texts in its cells if they fit."""
    ax.set_facecolor("#f4f5f6")  # colour of missing values
    drawn = ax.imshow(values, aspect="equal", **image)
    small = 9 if len(columns) <= 14 else 8.5
    ax.set_xticks(range(len(columns)), columns, rotation=45, ha="left", rotation_mode="anchor")
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(
        length=0, labelsize=small, colors=INK, top=False, labeltop=True, labelbottom=False
    )
    ax.xaxis.set_label_position("top")
    ax.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.2)
    ax.tick_params(which="minor", length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    if texts is not None and max(len(rows), len(columns)) <= _MAX_TEXT_LABELS:
        for i, line in enumerate(texts):
            for j, text in enumerate(line):
                if text:
                    red, green, blue, _ = drawn.cmap(drawn.norm(values[i, j]))
                    dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
                    ax.text(
                        j,
                        i,
                        text,
                        ha="center",
                        va="center",
                        fontsize=small - 1.5,
                        color="white" if dark else INK,
                    )
    return drawn


class HeatMap:
    """Base of the displays that are one heat map."""

    def _draw(
        self,
        ax: Any,
        values: NDArray[np.float64],
        labels: tuple[Sequence[Any], Sequence[Any]],
        *,
        axis_names: tuple[str, str],
        bar_name: str | None,
        **options: Any,
    ) -> None:
        """Draw the rows and columns of `labels`, and a colour bar if it has a name."""
        rows, columns = ([str(label) for label in axis] for axis in labels)
        side = float(np.clip(0.42 * len(rows) + 2.2, 4.2, 14.0))
        self.ax_, self.figure_ = get_axes(ax, (side + 0.8, side))
        self.image_ = heat_map(self.ax_, values, rows, columns, **options)
        self.ax_.set_ylabel(axis_names[0], color=GREY)
        self.ax_.set_xlabel(axis_names[1], color=GREY)
        if bar_name is not None:
            bar = self.figure_.colorbar(self.image_, ax=self.ax_, shrink=0.6, pad=0.02)
            bar.outline.set_visible(False)
            bar.ax.tick_params(length=0, labelsize=8, colors=INK)
            bar.set_label(bar_name, color=GREY)
