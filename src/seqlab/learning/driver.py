"""The driver of every iterative fit: history, progress, interrupts, early stop and convergence warning.

A learner is a generator that yields a `seqlab.optim.FitState` per full iteration; `run_fit` runs it. After an
interrupt the model stores the last full iteration, then `FitResult.conclude` raises the interrupt again.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from seqlab.learning.monitor import Monitor
from seqlab.optim import FitState


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if the block raises."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


@dataclass(slots=True)
class FitResult:
    """The last full iteration of a fit.

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
        Whether `conclude` warns if the fit did not converge.
    interrupt : KeyboardInterrupt or None
        Raised again by `conclude`, after the model has stored the state.
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
    interrupt: KeyboardInterrupt | None = None
    hint: str = ""

    def report_to(self, estimator: Any) -> None:
        """Set ``n_iter_``, ``converged_`` and ``history_``."""
        estimator.n_iter_ = self.n_iter
        estimator.converged_ = self.state.converged
        estimator.history_ = self.history

    def conclude(self) -> None:
        """Raise a pending interrupt again; otherwise warn if the fit did not converge."""
        if self.interrupt is not None:
            raise self.interrupt
        if self.state.converged or not self.can_warn:
            return
        norm = self.state.info.get("gradient_norm")
        detail = "" if norm is None else f" (gradient norm {norm:.3g})"
        if self.state.message:
            reason = f"stopped after {self.n_iter} {self.unit}: {self.state.message}{detail}"
        else:
            reason = (
                f"stopped after max_iter={self.max_iter} {self.unit} before reaching tol{detail}; "
                "raise max_iter or tol"
            )
        message = f"{self.title} {reason}{self.hint}"
        warnings.warn(message, ConvergenceWarning, stacklevel=_stack_level_of_caller())


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
) -> FitResult:
    """Run a learner until it converges, ends, reaches ``max_iter`` or is interrupted.

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
        Whether `FitResult.conclude` warns if the fit did not converge.

    Raises
    ------
    KeyboardInterrupt
        If interrupted before the first full iteration; a later interrupt is stored in the result.
    """
    result: FitResult | None = None
    monitor = Monitor(title, max_iter, verbose, tol=tol)
    try:
        with monitor:
            for n_iter, state in enumerate(states, first_iteration):
                result = FitResult(state, n_iter, monitor.history, title, max_iter, unit, can_warn)
                values = state.info if state.gap is None else {**state.info, "gap": state.gap}
                monitor.record(n_iter, state.objective, **values)
                if state.converged or n_iter >= max_iter:
                    break
    except KeyboardInterrupt as interrupt:
        if result is None or result.n_iter == 0:  # the starting point is not an iteration
            raise
        result.interrupt = interrupt
        result.state.converged = False
    assert result is not None, "a learner yields at least one state"
    return result


def _stack_level_of_caller() -> int:
    """Return the stack level, for `warnings.warn`, of the first caller outside seqlab and scikit-learn."""
    level, frame = 2, sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "seqlab",
        "sklearn",
    ):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    return level
