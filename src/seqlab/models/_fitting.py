"""Driving a fit: history, progress, interrupts, failures, and the warning when it did not converge."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from seqlab.optim import Monitor, SolverState


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Around the work of a fit: where it fails, the estimator is again what it was before."""
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
    state : SolverState
    n_iter : int
        Full iterations done.
    history : dict of str to list
    interrupted : KeyboardInterrupt or None
        To be raised again once the model has stored the state.
    """

    state: SolverState
    n_iter: int
    history: dict[str, list[float]]
    interrupted: KeyboardInterrupt | None = None

    def conclude(self, name: str, max_iter: int, hint: str = "") -> None:
        """Raise a pending interrupt again; warn where the solver ended before its goal."""
        if self.interrupted is not None:
            raise self.interrupted
        if self.state.converged:
            return
        what = f"gradient norm {self.state.gradient_norm:.3g}"
        if self.state.message:
            reason = f"{name} stopped after {self.n_iter} iterations: {self.state.message} ({what})"
        else:
            reason = (
                f"{name} stopped after max_iter={max_iter} iterations before reaching tol ({what}); "
                "raise max_iter or tol"
            )
        # From here over `fit` and scikit-learn's wrapper around it to the caller.
        warnings.warn(reason + hint, ConvergenceWarning, stacklevel=4)


def drive(
    solver: Iterator[SolverState], *, title: str, max_iter: int, tol: float, verbose: bool | int
) -> FitResult:
    """Run a solver to its end, or to the last full iteration before an interrupt."""
    result: FitResult | None = None
    monitor = Monitor(title, max_iter, verbose, tol=tol)
    try:
        with monitor:
            for n_iter, state in enumerate(solver):
                result = FitResult(state, n_iter, monitor.history)
                monitor.record(
                    n_iter,
                    state.objective,
                    gradient_norm=state.gradient_norm,
                    gap=state.gap,
                    bound=state.bound,
                )
    except KeyboardInterrupt as interrupt:
        if result is None:
            raise
        result.interrupted = interrupt
        result.state.converged = False
    assert result is not None
    return result
