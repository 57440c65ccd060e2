"""Monitor: what a long fit tells while it runs and keeps afterwards.

One object collects the history of a fit (a dict of equal-length lists) and, when asked to be
verbose, shows a progress line on standard error. Learners call `record` once per iteration.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any


class Monitor:
    """Collects the history of a fit; shows it when ``verbose``.

    Parameters
    ----------
    title : str
        What is being fitted.
    total : int
        Iterations at most (the bar's length).
    verbose : bool or int
        Show a progress bar on standard error.

    Attributes
    ----------
    history : dict of str to list
        ``iteration``, ``objective``, ``seconds`` and what else was recorded; equal lengths.
    """

    def __init__(self, title: str, total: int, verbose: bool | int = False) -> None:
        self.title = title
        self.total = total
        self.verbose = bool(verbose)
        self.history: dict[str, list[Any]] = {"iteration": [], "objective": [], "seconds": []}
        self._began = time.perf_counter()
        self._progress: Any = None
        self._task: Any = None

    def __enter__(self) -> Monitor:
        self._began = time.perf_counter()
        if self.verbose:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.completed}/{task.total}"),
                TextColumn("{task.fields[note]}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
            )
            self._progress.start()
            self._task = self._progress.add_task(self.title, total=self.total, note="")
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def record(self, iteration: int, objective: float, **values: float) -> None:
        """Add one iteration to the history and move the bar."""
        self.history["iteration"].append(iteration)
        self.history["objective"].append(float(objective))
        self.history["seconds"].append(time.perf_counter() - self._began)
        for name, value in values.items():
            self.history.setdefault(name, []).append(float(value))
        if self._progress is not None:
            note = f"objective {objective:,.6g}"
            self._progress.update(self._task, completed=iteration, note=note)
