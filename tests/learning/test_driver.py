"""The driver of iterative fits: limits, callbacks, early stopping, log messages."""

import logging
import math
import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning

from seqlab.learning import EarlyStopping, FitProgress, run_fit
from seqlab.optim import FitState


def count_down(n=100, converged_at=None):
    """States whose points are the numbers 1, 2, ..."""
    for k in range(1, n + 1):
        yield FitState(k, 100.0 - k, gap=1.0, converged=k == converged_at, info={"extra": k})


def test_time_limit_stops_after_the_current_iteration(monkeypatch):
    times = iter(range(1000))
    monkeypatch.setattr("seqlab.learning.monitor.training_time", lambda: float(next(times)))
    result = run_fit(count_down(), title="Model", max_iter=50, max_seconds=3.0, can_warn=False)
    assert result.stop_reason == "max_seconds"
    assert result.history["seconds"] == [1.0, 2.0, 3.0]
    assert result.state.point == result.n_iter == 3
    assert not result.state.converged
    with pytest.warns(
        ConvergenceWarning, match=r"Model stopped after 3 iterations and 3 seconds.*max_seconds"
    ):
        result.conclude()


def test_time_limit_never_stops_at_the_starting_point(monkeypatch):
    times = iter(range(0, 100_000, 100))
    monkeypatch.setattr("seqlab.learning.monitor.training_time", lambda: float(next(times)))
    result = run_fit(count_down(), title="Model", max_iter=50, max_seconds=1.0, first_iteration=0)
    assert result.n_iter == 1
    with pytest.warns(ConvergenceWarning, match="after 1 iteration and"):
        result.conclude()


@pytest.mark.parametrize("options", [{"max_seconds": 1e-9}, {"callback": lambda progress: True}])
def test_a_fit_that_ends_by_itself_is_not_reported_as_stopped(options):
    converged = run_fit(count_down(converged_at=1), title="Model", max_iter=5, **options)
    assert converged.stop_reason == ""
    assert converged.state.converged
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        converged.conclude()


def test_callback_sees_every_iteration_and_can_stop():
    seen = []

    def callback(progress):
        seen.append(progress)
        return progress.iteration == 4

    result = run_fit(count_down(), title="Model", max_iter=50, callback=callback)
    assert result.n_iter == result.state.point == 4
    assert result.stop_reason == "callback"
    with warnings.catch_warnings():  # the user wanted it: nothing to warn of
        warnings.simplefilter("error")
        result.conclude()
    assert [p.iteration for p in seen] == [1, 2, 3, 4]
    assert [p.objective for p in seen] == result.history["objective"]
    assert [p.seconds for p in seen] == result.history["seconds"]
    assert dict(seen[1].info) == {"extra": 2, "gap": 1.0}


def test_what_a_callback_receives_is_read_only():
    info = {"gap": 1.0}
    progress = FitProgress(1, 2.0, 3.0, info)
    info["gap"] = 7.0
    assert progress.info["gap"] == 1.0
    with pytest.raises(AttributeError):
        progress.objective = 0.0
    with pytest.raises(TypeError):
        progress.info["gap"] = 0.0


SCORES = [0.1, 0.5, 0.4, 0.7, 0.7, 0.6, 0.65, 0.9]


def test_early_stopping_keeps_the_first_best_iteration():
    stopping = EarlyStopping(lambda point: SCORES[point - 1], 3)
    result = run_fit(count_down(), title="Model", max_iter=50, early_stopping=stopping)
    assert result.n_iter == 7
    assert result.stop_reason == "early stopping"
    assert result.state.point == stopping.best_iteration == 4
    assert stopping.best_score == 0.7
    assert result.history["validation_score"] == SCORES[:7]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result.conclude()


def test_early_stopping_copies_points_that_change():
    weights = [0]

    def states():
        for k in range(1, 20):
            weights[0] = k
            yield FitState(weights, 0.0)

    stopping = EarlyStopping(lambda point: -abs(point[0] - 3), 2, copy=list)
    result = run_fit(states(), title="Model", max_iter=50, early_stopping=stopping)
    assert result.state.point == [3]
    assert weights == [5]


def test_converged_means_that_the_result_is_the_optimum():
    best_is_last = EarlyStopping(lambda point: point, 3)
    result = run_fit(count_down(converged_at=5), title="M", max_iter=9, early_stopping=best_is_last)
    assert result.state.converged
    best_is_first = EarlyStopping(lambda point: -point, 9)
    result = run_fit(
        count_down(converged_at=5), title="M", max_iter=9, early_stopping=best_is_first
    )
    assert result.state.point == 1
    assert not result.state.converged


def test_starting_point_is_not_scored_unless_it_is_the_optimum():
    stopping = EarlyStopping(lambda point: -point, 2)
    result = run_fit(
        count_down(), title="M", max_iter=9, first_iteration=0, early_stopping=stopping
    )
    assert math.isnan(result.history["validation_score"][0])
    assert stopping.best_iteration == 1
    stopping = EarlyStopping(lambda point: -point, 2)
    run_fit(
        count_down(converged_at=1), title="M", max_iter=9, first_iteration=0, early_stopping=stopping
    )  # fmt: skip
    assert stopping.best_iteration == 0
    assert stopping.best.point == 1


def test_interrupt_keeps_the_best_iteration():
    def score(point):
        if point == 6:
            raise KeyboardInterrupt
        return SCORES[point - 1]

    stopping = EarlyStopping(score, 3)
    result = run_fit(count_down(), title="Model", max_iter=50, early_stopping=stopping)
    assert result.state.point == 4
    with pytest.raises(KeyboardInterrupt):
        result.conclude()


def test_messages_go_to_the_logger(caplog):
    with caplog.at_level(logging.DEBUG, logger="seqlab"):
        run_fit(count_down(converged_at=3), title="Model", max_iter=5).conclude()
    levels = [(r.name, r.levelname) for r in caplog.records]
    assert levels == [("seqlab.learning", "DEBUG")] * 3 + [("seqlab.learning", "INFO")]
    assert "Model: converged after 3 iterations, objective 97" in caplog.text
    caplog.clear()
    with pytest.warns(ConvergenceWarning) as caught:
        run_fit(count_down(), title="Model", max_iter=5).conclude()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == str(caught[0].message)


def test_library_logger_is_silent_by_default():
    handlers = logging.getLogger("seqlab").handlers
    assert any(isinstance(handler, logging.NullHandler) for handler in handlers)
