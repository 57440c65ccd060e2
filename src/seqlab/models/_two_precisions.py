"""A solver that begins in single precision and ends in double.

A pass in single precision errs by about `FastChainLikelihood.noise`: nothing on the way to the optimum, too
much where an iteration gains no more than that, since a line search then looks for a decrease that it cannot
see. So from there on, and at the last point in any case, the objective is in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from seqlab.models._fast_likelihood import FastChainLikelihood, Floats
from seqlab.optim import SolverState

# What the last `PERIOD` iterations must have gained for single precision to go on, in units of its error.
PERIOD = 3
MIN_GAIN = 16.0

# Of a starting point, iterations at most, a preconditioner and the values of earlier iterations.
Solver = Callable[[Floats, int, Floats | None, Sequence[float]], Iterator[SolverState]]


def single_then_double(
    objective: FastChainLikelihood,
    solve: Solver,
    w: Floats,
    max_iter: int,
    preconditioner: Floats | None,
) -> Iterator[SolverState]:
    """Yield the states of ``solve(w, max_iter, preconditioner, ())``; the last one is exact.

    ``objective``, which ``solve`` minimises, is left in double precision.
    """
    past: list[float] = []
    for state in solve(w, max_iter, preconditioner, ()):
        recent = [*past[-PERIOD:], state.objective]
        blind = len(recent) > PERIOD and recent[0] - recent[-1] < MIN_GAIN * objective.noise
        if blind or state.converged or state.message or len(past) == max_iter:
            break
        yield state
        past.append(state.objective)
    objective.use_doubles()
    yield from solve(state.w, max_iter - len(past), preconditioner, past)
