"""Display classes like those of scikit-learn, with ``from_estimator``, ``from_predictions`` and ``plot``.

`TransitionDisplay`
    heat map of the transition weights between labels;
`HistoryDisplay`
    objective over iterations or seconds, with the estimated gap to the optimum below;
`ConfusionDisplay`
    heat map of gold and predicted labels.

They need matplotlib (``pip install 'seqlab[report]'``), which is imported when something is plotted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.inspection._plotting import BLUE, GREY, INK, ORANGE, HeatMap, get_axes, pyplot
from seqlab.inspection.weights import END, START, label_order, transition_matrix


class TransitionDisplay(HeatMap):
    """Heat map of the transition weights between labels.

    Parameters
    ----------
    weights : array of shape (n_rows, n_columns)
        ``weights[i, j]`` is from ``sources[i]`` to ``targets[j]``; NaN if there is no weight.
    sources, targets : sequences of labels
        Names of rows and columns.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    image_ : matplotlib AxesImage

    Examples
    --------
    >>> from seqlab import LinearChainCRF
    >>> from seqlab.inspection import TransitionDisplay
    >>> X = [[{"word": "the"}, {"word": "dog"}], [{"word": "a"}, {"word": "dog"}]]
    >>> crf = LinearChainCRF(c2=0.1).fit(X, [["DET", "NOUN"], ["DET", "NOUN"]])
    >>> display = TransitionDisplay.from_estimator(crf)  # doctest: +SKIP
    """

    def __init__(
        self, weights: NDArray[np.float64], sources: Sequence[Any], targets: Sequence[Any]
    ) -> None:
        self.weights = weights
        self.sources = list(sources)
        self.targets = list(targets)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        labels: Sequence[Any] | None = None,
        boundary: bool = True,
        ax: Any = None,
        **options: Any,
    ) -> TransitionDisplay:
        """Plot the transitions of a fitted chain model or Tagger.

        Parameters
        ----------
        estimator : fitted estimator
        labels : sequence of labels, optional
            Only these labels, in this order; by default all, grouped by phrase type, ``O`` last.
        boundary : bool, default=True
            Also show the weights of the first and last label.
        ax : matplotlib Axes, optional
        **options
            See `plot`.
        """
        matrix = transition_matrix(estimator, boundary=True)
        if matrix is None:
            raise InputError(f"{type(estimator).__name__} has no transitions to plot")
        classes = np.asarray(estimator.classes_).tolist()
        shown = label_order(classes) if labels is None else list(labels)
        unknown = [label for label in shown if label not in classes]
        if unknown:
            raise InputError(f"the model has no label {unknown[0]!r}")
        places = [classes.index(label) for label in shown]
        weights = np.where(matrix == 0.0, np.nan, matrix)
        if boundary:
            sources, targets = [START, *shown], [*shown, END]
            last = len(classes)
            weights = weights[np.ix_([last, *places], [*places, last])]
        else:
            sources, targets = shown, shown
            weights = weights[np.ix_(places, places)]
        return cls(weights, sources, targets).plot(ax=ax, **options)

    def plot(
        self, ax: Any = None, *, cmap: str = "RdBu", values: bool = True, colorbar: bool = True
    ) -> TransitionDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default, new axes are created.
        cmap : str, default="RdBu"
            Diverging colour map; its centre is 0.
        values : bool, default=True
            Write the weights into the cells, unless there are too many.
        colorbar : bool, default=True
        """
        bound = float(np.nanmax(np.abs(self.weights))) if np.isfinite(self.weights).any() else 1.0
        texts = [
            [f"{w:.1f}".replace("-0.0", "0.0") if np.isfinite(w) else "" for w in row]
            for row in self.weights
        ]
        self._draw(
            ax,
            self.weights,
            (self.sources, self.targets),
            axis_names=("from", "to"),
            bar_name="weight" if colorbar else None,
            texts=texts if values else None,
            cmap=cmap,
            vmin=-bound,
            vmax=bound,
        )
        return self


class HistoryDisplay:
    """Objective of a fit over its iterations, with the estimated gap to the optimum if it is known.

    Parameters
    ----------
    history : dict of str to list
        ``iteration``, ``objective``, ``seconds`` and optionally ``gap``, as in ``history_``.
    name : str, optional
        Name of the curve.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the objective.
    gap_ax_ : matplotlib Axes or None
        Axes of the gap, below; None if no gap was recorded or `ax` was given.
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
    """

    def __init__(self, history: dict[str, list[float]], name: str | None = None) -> None:
        self.history = history
        self.name = name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **options: Any) -> HistoryDisplay:
        """Plot the training history of a fitted model or Tagger.

        Parameters
        ----------
        estimator : fitted estimator with ``history_``
        ax : matplotlib Axes, optional
        **options
            See `plot`.
        """
        labeler = getattr(estimator, "labeler_", estimator)
        history = getattr(labeler, "history_", None)
        if not history or not history.get("objective"):
            raise InputError(f"{type(labeler).__name__} has no training history to plot")
        return cls(history, type(labeler).__name__).plot(ax=ax, **options)

    def plot(
        self, ax: Any = None, *, x: str = "iteration", log: bool | None = None, **line: Any
    ) -> HistoryDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes for the objective only. By default new axes, with the gap below if it is known.
        x : {"iteration", "seconds"}, default="iteration"
        log : bool, optional
            Logarithmic axis for the objective; by default if it falls by a factor of more than 20.
        **line
            Passed to ``Axes.plot``.
        """
        if x not in ("iteration", "seconds"):
            raise InputError(f"x must be 'iteration' or 'seconds', not {x!r}")
        xs, objective = self.history[x], np.asarray(self.history["objective"])
        gap = np.asarray(self.history.get("gap", []), dtype=np.float64)
        has_gap = ax is None and gap.size > 0 and bool(np.isfinite(gap).all())
        self.gap_ax_: Any = None
        if has_gap:
            self.figure_, (self.ax_, self.gap_ax_) = pyplot().subplots(
                2,
                1,
                figsize=(6.4, 4.6),
                sharex=True,
                layout="constrained",
                gridspec_kw={"height_ratios": [3, 2]},
            )
        else:
            self.ax_, self.figure_ = get_axes(ax, (6.4, 3.4))
        style = {"color": BLUE, "linewidth": 1.8, **line}
        (self.line_,) = self.ax_.plot(xs, objective, label=self.name, **style)
        positive = bool((objective > 0).all())
        if log or (log is None and positive and objective[0] > 20 * objective.min()):
            self.ax_.set_yscale("log")
        self.ax_.set_ylabel("objective", color=INK)
        self.ax_.annotate(
            f"{objective[-1]:,.6g}",
            (xs[-1], objective[-1]),
            xytext=(0, 6),
            textcoords="offset points",
            ha="right",
            fontsize=8.5,
            color=INK,
        )
        if has_gap:
            relative = gap / np.maximum(np.abs(objective), np.finfo(float).tiny)
            self.gap_ax_.semilogy(xs, relative, color=ORANGE, linewidth=1.5)
            self.gap_ax_.set_ylabel("relative gap", color=INK)
        lowest = self.gap_ax_ if has_gap else self.ax_
        lowest.set_xlabel(x, color=INK)
        for axes in (self.ax_, self.gap_ax_):
            if axes is not None:
                _simplify(axes)
        if self.name and ax is None:
            self.ax_.set_title(self.name, loc="left", fontsize=11, color=INK)
        return self


class ConfusionDisplay(HeatMap):
    """Heat map of gold and predicted labels.

    Parameters
    ----------
    matrix : array of shape (n_labels, n_labels)
        Number of steps with gold label i (row) and predicted label j (column).
    labels : sequence of labels

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    image_ : matplotlib AxesImage
    """

    def __init__(self, matrix: NDArray[np.int64], labels: Sequence[Any]) -> None:
        self.matrix = matrix
        self.labels = list(labels)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, **options: Any
    ) -> ConfusionDisplay:
        """Plot the confusions of a fitted model on labelled data.

        Parameters
        ----------
        estimator : fitted labeler or Tagger
        X, y : sequences and their labels
        ax : matplotlib Axes, optional
        **options
            See `from_predictions`.
        """
        return cls.from_predictions(y, estimator.predict(X), ax=ax, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        labels: Sequence[Any] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> ConfusionDisplay:
        """Plot the confusions of predicted labels.

        Parameters
        ----------
        y_true, y_pred : lists of label sequences
        labels : sequence of labels, optional
            Only these labels, in this order; by default all, grouped by phrase type, ``O`` last.
        ax : matplotlib Axes, optional
        **options
            See `plot`.
        """
        from seqlab.metrics import confusion

        table = confusion(y_true, y_pred)
        shown = label_order(table.labels) if labels is None else list(labels)
        table = confusion(y_true, y_pred, labels=shown)
        return cls(table.matrix, table.labels).plot(ax=ax, **options)

    def plot(
        self,
        ax: Any = None,
        *,
        normalize: bool = True,
        cmap: str = "Blues",
        values: bool = True,
        colorbar: bool = True,
    ) -> ConfusionDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        normalize : bool, default=True
            Colour by the share of the gold label; the numbers in the cells are always counts.
        cmap : str, default="Blues"
        values : bool, default=True
            Write the counts into the cells, unless there are too many.
        colorbar : bool, default=True
        """
        counts = np.asarray(self.matrix, dtype=np.float64)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        shown = shares if normalize else counts
        bar_name = "share of the gold label" if normalize else "tokens"
        texts = [[f"{int(n):,}" if n else "" for n in row] for row in counts]
        self._draw(
            ax,
            np.where(counts > 0, shown, np.nan),
            (self.labels, self.labels),
            axis_names=("gold", "predicted"),
            bar_name=bar_name if colorbar else None,
            texts=texts if values else None,
            cmap=cmap,
            # The square root makes rare errors visible beside the diagonal.
            norm=_root_norm(1.0 if normalize else max(float(counts.max()), 1.0)),
        )
        return self


def _root_norm(top: float) -> Any:
    pyplot()
    from matplotlib.colors import PowerNorm

    return PowerNorm(0.5, vmin=0.0, vmax=top)


def _simplify(ax: Any) -> None:
    """Remove the box around the axes and add a light grid."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)
    ax.grid(axis="y", color="#e6e9ec", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(which="both", colors=INK, labelsize=8.5)
