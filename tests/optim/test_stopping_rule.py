"""The stopping rule on sequences of values whose distance from the optimum is known."""

import numpy as np
import pytest

from seqlab.optim.state import StoppingRule

TOL, MU = 1e-3, 2.0


def run(distances, bounds, *, decrement=0.0, slow=None, **options):
    """Return the index of the first converged state; the optimum is 1."""
    rule = StoppingRule(TOL, MU, **options)
    for i, (distance, bound) in enumerate(zip(distances, bounds, strict=True)):
        state = rule.state(
            np.zeros(1), 1.0 + distance, 1e6, decrement, slow, 1.0 + distance - bound
        )
        if state.converged:
            return i
    return None


def test_bound_divided_by_its_ratio_stops_a_linearly_converging_run():
    distances = 0.01 * 0.8 ** np.arange(30.0)
    bounds = 5.0 * distances
    stopped = run(distances, bounds, slow=np.inf, divide_bound=True)
    assert bounds[stopped] / StoppingRule.BOUND_RATIO <= TOL * (1.0 + distances[stopped])
    assert distances[stopped] <= TOL
    assert stopped < run(distances, bounds, slow=np.inf)  # the certain bound alone


def test_divided_bound_does_not_count_on_a_plateau():
    """The objective is flat except for the penalty: the bound falls as slowly as the objective."""
    distances = 1.5e-3 * 0.999 ** np.arange(200.0)
    bounds = 1.2 * distances
    assert run(distances, bounds, slow=np.inf, divide_bound=True) is None


def test_divided_bound_is_at_least_the_decrement():
    distances = 0.5 ** np.arange(20.0)
    options = {"slow": np.inf, "divide_bound": True}
    assert run(distances, 5.0 * distances, decrement=1.0, **options) == run(
        distances, 5.0 * distances, slow=np.inf
    )


def test_decrease_in_the_last_quarter_counts_in_a_long_tail():
    """The distance falls like a power of the number of iterations: three of them say little."""
    distances = 40.0 / np.arange(1.0, 2000.0) ** 2
    stopped = run(distances, np.full(distances.size, 10.0), slow=0.0)
    assert distances[stopped] <= TOL
    assert 2.5 * (distances[stopped - 10] - distances[stopped - 7]) <= TOL  # would have stopped


@pytest.mark.parametrize("confirm", [False, True])
def test_a_single_small_estimate_is_confirmed(confirm):
    rule = StoppingRule(TOL, MU, confirm=confirm)
    slow = [1.0, 1.0, 1.0, 1.0, 1.0, 1e-5, 1.0, 1e-5, 1e-5]
    stopped = [rule.state(np.zeros(1), 1.0, 1e6, 0.0, value).converged for value in slow].index(
        True
    )
    assert stopped == (8 if confirm else 5)


def test_only_the_bound_counts_if_the_curvature_is_not_reliable():
    distances = 0.5 ** np.arange(30.0)
    rule = StoppingRule(TOL, MU, only_bound=True, divide_bound=True)
    for distance in distances:
        state = rule.state(np.zeros(1), 1.0 + distance, 1e6, 0.0, 0.0, -5.0)
        assert not state.converged
    assert not rule.stuck(state).converged
    assert rule.state(np.zeros(1), 1.0, 1e6, 0.0, 0.0, 1.0 - 1e-5).converged


@pytest.mark.parametrize(("gap", "expected"), [(1e-7, True), (2e-3, False)])
def test_a_flat_objective_counts_as_converged_only_if_no_decrease_is_predicted(gap, expected):
    rule = StoppingRule(1e-9, 0.0)
    for _ in range(5):
        state = rule.state(np.zeros(2), 1.0, 1.0, gap)
    state.gap = gap
    assert rule.stuck(state).converged is expected


@pytest.mark.parametrize(("slow", "expected"), [(1e-10, True), (1e-8, False), (None, False)])
def test_if_no_step_is_possible_slow_directions_decide(slow, expected):
    rule = StoppingRule(1e-9, 0.0)
    for objective in (3.0, 2.0, 1.5, 1.2, 1.1, 1.0):
        state = rule.state(np.zeros(2), objective, 1.0, 1e-12, slow)
    assert not state.converged
    assert rule.stuck(state).converged is expected
