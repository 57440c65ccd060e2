"""The driver of every iterative fit: history, progress, interrupts, limits and convergence warning.

A learner is a generator that yields a `seqlab.optim.FitState` per full iteration; `run_fit` runs it, and
stops at the iteration or time limit, if held-out data do not improve any more, or if the user's callback
returns True. After an interrupt the model stores the last full iteration, then `FitResult.conclude` raises
the interrupt again. Messages also go to the logger ``seqlab.learning``: iterations at level DEBUG, the end of
a fit at INFO, interrupts and warnings at WARNING.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from seqlab.learning.early_stopping import EarlyStopping
from seqlab.learning.monitor import Monitor
from seqlab.learning.progress import FitProgress
from seqlab.optim import FitState
from seqlab.utils.signals import check_signals, signals_at_safe_points
from seqlab.utils.stack import stack_level_of_caller
from seqlab.utils.threads import keep_threads

logger = logging.getLogger("seqlab.learning")
logging.getLogger("seqlab").addHandler(logging.NullHandler())


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if the block raises.

    An interrupt takes effect at safe points. One that comes after the last of them is raised at the end, and
    the estimator stays fitted.
    """
    before = dict(estimator.__dict__)
    with signals_at_safe_points():
        try:
            yield
        except BaseException:
            estimator.__dict__.clear()
            estimator.__dict__.update(before)
            raise


@dataclass(slots=True)
class FitResult:
    """The last full iteration of a fit, or the best one with early stopping.

    Parameters
    ----------
    state : FitState
    n_iter : int
        Number of full iterations.
    history : dict of str to list
        Equal-length lists: iteration, objective, seconds and the values that the learner recorded.
    title : str
        Name of the model in messages.
    max_iter : int
    unit : str
        Plural name of an iteration in messages.
    can_warn : bool
        Whether `conclude` warns if the fit reached ``max_iter`` without converging.
    early_stopping : EarlyStopping or None
        The best iteration on held-out data.
    stop_reason : str
        Why the driver stopped the fit, if it did: "max_seconds", "callback" or "early stopping".
    interrupt : KeyboardInterrupt or None
        Raised again by `conclude`, after the model has stored the state.
    advice : str
        The likely cause and what to do about it, for the warning; '' if it is not known.
    hint : str
        Text appended to the warning.
    """

    state: FitState
    n_iter: int
    history: dict[str, list[float]]
    title: str
    max_iter: int
    unit: str
    can_warn: bool
    early_stopping: EarlyStopping | None = None
    stop_reason: str = ""
    interrupt: KeyboardInterrupt | None = None
    advice: str = ""
    hint: str = ""

    def report_to(self, estimator: Any) -> None:
        """Set ``n_iter_``, ``converged_`` and ``history_``, and what early stopping found."""
        estimator.n_iter_ = self.n_iter
        estimator.converged_ = self.state.converged
        estimator.history_ = self.history
        if self.early_stopping is not None:
            self.early_stopping.report_to(estimator)

    def conclude(self) -> None:
        """Raise a pending interrupt again; otherwise warn if the fit should have gone on."""
        if self.interrupt is not None:
            logger.warning("%s was interrupted after %s", self.title, self._count())
            raise self.interrupt
        message = self._warning()
        if message:
            logger.warning("%s", message)
            warnings.warn(message, ConvergenceWarning, stacklevel=stack_level_of_caller())
        else:
            ended = self.stop_reason or ("converged" if self.state.converged else "ended")
            logger.info(
                "%s: %s after %s, objective %.6g",
                self.title, ended, self._count(), self.state.objective,
            )  # fmt: skip

    def _count(self) -> str:
        """Return the number of iterations with its unit, for messages."""
        singular = {"passes": "pass"}.get(self.unit, self.unit.removesuffix("s"))
        return f"{self.n_iter} {singular if self.n_iter == 1 else self.unit}"

    def _warning(self) -> str:
        """Return the text of the warning; '' if there is nothing to warn of."""
        # A state with a message is the last one: more time would not help.
        if self.stop_reason == "max_seconds" and not self.state.message:
            seconds = self.history["seconds"][-1]
            return (
                f"{self.title} stopped after {self._count()} and {seconds:.3g} seconds, because "
                f"max_seconds was reached; {self._advise('raise max_seconds or tol')}{self.hint}"
            )
        wanted = self.stop_reason != "" or self.early_stopping is not None
        if self.state.converged or not self.can_warn or (wanted and not self.state.message):
            return ""
        norm = self.state.info.get("gradient_norm")
        detail = "" if norm is None else f" (gradient norm {norm:.3g})"
        if self.state.message:
            reason = f"stopped after {self._count()}: {self.state.message}{detail}"
            advice = f"; {self.advice}" if self.advice else ""
        else:
            reason = (
                f"stopped after max_iter={self.max_iter} {self.unit} before reaching tol{detail}"
            )
            advice = f"; {self._advise('raise max_iter or tol')}"
        return f"{self.title} {reason}{advice}{self.hint}"

    def _advise(self, otherwise: str) -> str:
        """Return what to do, with the best advice first."""
        return f"{self.advice}, or {otherwise}" if self.advice else otherwise


def run_fit(
    states: Iterable[FitState],
    *,
    title: str,
    max_iter: int,
    tol: float = 0.0,
    verbose: bool | int = False,
    first_iteration: int = 1,
    unit: str = "iterations",
    can_warn: bool = True,
    max_seconds: float | None = None,
    callback: Callable[[FitProgress], Any] | None = None,
    early_stopping: EarlyStopping | None = None,
    began: float | None = None,
) -> FitResult:
    """Run a learner until it converges, ends, reaches a limit or is interrupted.

    Parameters
    ----------
    states : iterable of FitState
        One per full iteration.
    title : str
        Name of the model in the progress bar and in messages.
    max_iter : int
    tol : float, default=0.0
        Relative gap at which the learner stops; the progress bar uses it to estimate the time left.
    verbose : bool or int, default=False
        Show a progress bar on standard error.
    first_iteration : int, default=1
        Number of the first state: 0 if that is the starting point.
    unit : str, default="iterations"
        Plural name of an iteration in messages.
    can_warn : bool, default=True
        Whether `FitResult.conclude` warns if the fit reached ``max_iter`` without converging.
    max_seconds : float, optional
        Stop after the iteration in which this time is exceeded.
    callback : callable, optional
        Called with a `FitProgress` after every iteration; training stops if it returns True.
    early_stopping : EarlyStopping, optional
        Scores every iteration on held-out data; the best iteration is the result.
    began : float, optional
        When the fit began, by `training_time`; by default now. The time limit counts from there.

    Raises
    ------
    KeyboardInterrupt
        If interrupted before the first full iteration; a later interrupt is stored in the result.
    """
    result: FitResult | None = None
    monitor = Monitor(title, max_iter, verbose, tol=tol, began=began)
    history = monitor.history
    try:
        with monitor, keep_threads():
            for n_iter, state in enumerate(states, first_iteration):
                result = FitResult(
                    state, n_iter, history, title, max_iter, unit, can_warn, early_stopping
                )
                values = state.info if state.gap is None else {**state.info, "gap": state.gap}
                if early_stopping is not None:
                    # The starting point is not an iteration, unless it is the optimum.
                    is_scored = n_iter > 0 or state.converged
                    score = early_stopping.evaluate(n_iter, state) if is_scored else math.nan
                    values = {**values, "validation_score": score}
                monitor.record(n_iter, state.objective, **values)
                seconds = history["seconds"][-1]
                logger.debug(
                    "%s: iteration %d, objective %.6g, %.3f seconds",
                    title, n_iter, state.objective, seconds,
                )  # fmt: skip
                has_ended = state.converged or n_iter >= max_iter
                if callback is not None:
                    progress = FitProgress(n_iter, state.objective, seconds, values)
                    if callback(progress) and not has_ended and n_iter > 0:
                        result.stop_reason = "callback"
                if has_ended or result.stop_reason:
                    break
                if n_iter > 0 and max_seconds is not None and seconds >= max_seconds:
                    result.stop_reason = "max_seconds"
                    break
                if early_stopping is not None and early_stopping.is_exhausted(n_iter):
                    result.stop_reason = "early stopping"
                    break
                check_signals()
    except KeyboardInterrupt as interrupt:
        if result is None or result.n_iter == 0:  # the starting point is not an iteration
            raise
        result.interrupt = interrupt
        result.state.converged = False
    assert result is not None, "a learner yields at least one state"
    if early_stopping is not None and early_stopping.best is not None:
        result.state = early_stopping.best
    return result
