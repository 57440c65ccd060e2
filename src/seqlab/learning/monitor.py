"""Monitor: history and progress bar of a fit. ProgressBar: that of a number of fits.

A monitor collects the history of a fit (a dict of equal-length lists) and, if ``verbose``, shows a progress
bar on standard error with the objective and the time left. `record` is called once per iteration.

The progress is the larger of two fractions: the iterations done divided by the maximum and, if the solver
reports its relative gap r, ``log(r_0 / r) / log(r_0 / tol)``. With a solver that converges linearly, the
latter grows at a constant rate.
"""

from __future__ import annotations

import math
import sys
from types import TracebackType
from typing import IO, Any, cast

from seqlab.utils.streams import UnfailingStream
from seqlab.utils.training_clock import training_time


class Monitor:
    """Collects the history of a fit, and shows a progress bar if ``verbose``.

    Parameters
    ----------
    title : str
        Text before the progress bar.
    total : int
        Maximum number of iterations.
    verbose : bool or int
        Show a progress bar on standard error.
    tol : float, default=1e-4
        Relative gap at which the fit will stop. Only the estimated progress depends on it.
    began : float, optional
        When the fit began, by `training_time`, if it has done something before its first iteration.

    Attributes
    ----------
    history : dict of str to list
        ``iteration``, ``objective``, ``seconds`` and other recorded values; lists of equal length.
    progress : float
        Estimated fraction of the work that is done, from 0 to 1; never decreases.

    Examples
    --------
    >>> from seqlab.learning import Monitor
    >>> with Monitor("a fit", 10) as monitor:
    ...     monitor.record(1, 250.0)
    >>> monitor.history["objective"], monitor.progress
    ([250.0], 0.1)
    """

    def __init__(
        self,
        title: str,
        total: int,
        verbose: bool | int = False,
        *,
        tol: float = 1e-4,
        began: float | None = None,
    ) -> None:
        self.title = title
        self.total = total
        self.verbose = bool(verbose)
        self.tol = tol
        self.history: dict[str, list[Any]] = {"iteration": [], "objective": [], "seconds": []}
        self.progress = 0.0
        self._first_gap = 0.0
        self._given_start = began
        self._began = training_time() if began is None else began
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Monitor:
        if self._given_start is None:
            self._began = training_time()
        if self.verbose:
            self._bar = _make_bar()
            self._bar.start()
            self._task = self._bar.add_task(self.title, total=1.0, note="", left="")
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            done = exc_type is None
            self._bar.update(self._task, left="", **({"completed": 1.0} if done else {}))
            self._bar.stop()
            self._bar = None

    def record(self, iteration: int, objective: float, **values: float) -> None:
        """Add one iteration to the history and update the progress bar."""
        self.history["iteration"].append(iteration)
        self.history["objective"].append(float(objective))
        self.history["seconds"].append(training_time() - self._began)
        for name, value in values.items():
            self.history.setdefault(name, []).append(float(value))
        self._advance(iteration, objective, values.get("gap", math.inf))
        if self._bar is not None:
            self._bar.update(
                self._task,
                completed=self.progress,
                note=f"iteration {iteration}, objective {objective:,.6g}",
                left=self._time_left(),
            )

    def _advance(self, iteration: int, objective: float, gap: float) -> None:
        share = iteration / max(self.total, 1)
        scale = abs(objective)
        if self.tol > 0.0 and scale > 0.0 and math.isfinite(gap):
            relative = max(gap / scale, self.tol)
            if self._first_gap == 0.0:
                self._first_gap = relative
            if self._first_gap > self.tol:
                total = math.log(self._first_gap / self.tol)
                share = max(share, math.log(self._first_gap / relative) / total)
        self.progress = min(1.0, max(self.progress, share))

    def _time_left(self) -> str:
        seconds = self.history["seconds"][-1]
        # Too early to estimate the time left.
        if self.progress < 0.02 or seconds < 0.5:
            return ""
        left = round(seconds * (1.0 - self.progress) / self.progress)
        return f"{left // 60}:{left % 60:02d} left"


class ProgressBar:
    """Shows how many of several equal tasks are done, if ``verbose``.

    Parameters
    ----------
    title : str
        Text before the progress bar.
    total : int
        Number of tasks.
    verbose : bool or int
        Show a progress bar on standard error.

    Examples
    --------
    >>> from seqlab.learning import ProgressBar
    >>> with ProgressBar("columns", 2, verbose=False) as bar:
    ...     bar.advance()
    >>> bar.n_done
    1
    """

    def __init__(self, title: str, total: int, verbose: bool | int = False) -> None:
        self.title, self.total, self.n_done = title, total, 0
        self._bar = _make_bar() if verbose else None
        self._task: Any = None

    def __enter__(self) -> ProgressBar:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(self.title, total=self.total, note="", left="")
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, n_tasks: int = 1) -> None:
        """Count finished tasks."""
        self.n_done += n_tasks
        if self._bar is not None:
            note = f"{self.n_done} of {self.total}"
            self._bar.update(self._task, completed=self.n_done, note=note)


def _make_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[note]}", style="progress.percentage"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", style="progress.remaining"),
        # Standard error may be full or closed: training goes on.
        console=Console(file=cast(IO[str], UnfailingStream(sys.stderr))),
    )
