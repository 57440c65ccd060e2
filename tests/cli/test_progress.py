"""The progress bar: completed share of a fit and remaining time."""

from __future__ import annotations

from contextlib import suppress

import pytest

from seqlab import LinearChainCRF
from seqlab.learning import Monitor


def test_progress_by_iterations():
    with Monitor("fit", 4) as monitor:
        for iteration in range(1, 5):
            monitor.record(iteration, 1.0)
            assert monitor.progress == iteration / 4


def test_progress_to_the_tolerance_never_decreases():
    monitor = Monitor("fit", 1000, tol=1e-4)
    seen = []
    for iteration, gap in enumerate([1e4, 1e2, 1e3, 1.0, 1e-2, 1e-4]):
        monitor.record(iteration, 1.0, gap=gap)
        seen.append(monitor.progress)
    assert seen == pytest.approx([0, 0.25, 0.25, 0.5, 0.75, 1.0])


@pytest.mark.parametrize("gap", [float("inf"), 0.0, float("nan")])
def test_gaps_that_are_not_positive_numbers(gap):
    monitor = Monitor("fit", 10)
    monitor.record(0, 0.0, gap=gap)
    monitor.record(1, 1.0, gap=gap)
    assert 0.1 <= monitor.progress <= 1


def test_bar_shows_objective_and_time_on_standard_error(capsys):
    monitor = Monitor("some fit", 10, verbose=True)
    with monitor:
        monitor._began -= 30
        monitor.record(5, 1234.5)
        assert monitor._time_left() == "0:30 left"
    out, err = capsys.readouterr()
    assert out == ""
    assert "some fit" in err
    assert "iteration 5, objective 1,234.5" in err


def test_an_error_stops_the_bar(capsys):
    monitor = Monitor("fit", 10, verbose=True)
    with suppress(KeyboardInterrupt), monitor:
        monitor.record(5, 1.0)
        raise KeyboardInterrupt
    assert monitor.progress == 0.5
    assert monitor._bar is None
    assert "fit" in capsys.readouterr().err


def test_history_is_the_same_with_and_without_a_bar(capsys):
    X, y = [[["a"], ["b"]], [["b"]]], [["A", "B"], ["B"]]
    histories = [LinearChainCRF(verbose=verbose).fit(X, y).history_ for verbose in (False, True)]
    assert histories[0]["objective"] == histories[1]["objective"]
    assert "LinearChainCRF" in capsys.readouterr().err
