import errno
import io
import os
import signal
import threading

import pytest

from blocks import use_small_blocks
from seqlab import LinearChainCRF
from seqlab.utils.signals import check_signals, hold_interrupts, signals_at_safe_points
from seqlab.utils.streams import UnfailingStream


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_the_block_ends(number):
    done = []
    before = signal.signal(number, lambda *_: done.append("handled"))
    try:
        with hold_interrupts() as held:
            signal.raise_signal(number)
            done.append("work")
        assert done == ["work", "handled"]
        assert held.number == number
    finally:
        signal.signal(number, before)


def test_an_interrupt_is_raised_after_the_block():
    done = []

    def work():
        with hold_interrupts():
            signal.raise_signal(signal.SIGINT)
            done.append("work")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["work"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_do_not_change_handlers():
    found = []

    def work():
        with hold_interrupts():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


def test_signals_are_raised_at_safe_points():
    done = []

    def work(step):
        with signals_at_safe_points():
            with signals_at_safe_points():
                signal.raise_signal(signal.SIGINT)
            done.append(1)
            check_signals() if step == 2 else None
            done.append(2)

    for step in (2, 3):
        with pytest.raises(KeyboardInterrupt):
            work(step)
        assert done == [1, 2][: step - 1]
        done.clear()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    check_signals()  # nothing waits any more


def test_second_signal_is_raised_at_once():
    done = []

    def work():
        with signals_at_safe_points():
            signal.raise_signal(signal.SIGINT)
            done.append(1)
            signal.raise_signal(signal.SIGINT)
            done.append(2)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [1]


def test_interrupt_between_two_iterations_keeps_the_model():
    X, y = [[[0.0], [1.0]], [[2.0]]], [["a", "b"], ["b"]]

    def interrupt(progress):
        if progress.iteration == 3:
            signal.raise_signal(signal.SIGINT)

    crf = LinearChainCRF(callback=interrupt, tol=0.0)
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X, y)
    assert crf.n_iter_ == 3
    assert not crf.converged_
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupt_before_the_first_iteration_leaves_no_model(monkeypatch, n_jobs):
    use_small_blocks(monkeypatch, 1)
    X, y = [[[float(k)], [1.0]] for k in range(20)], [["a", "b"]] * 20
    bind = LinearChainCRF._bind

    def interrupt_and_bind(self, data):
        signal.raise_signal(signal.SIGINT)
        return bind(self, data)

    monkeypatch.setattr(LinearChainCRF, "_bind", interrupt_and_bind)
    crf = LinearChainCRF(n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        crf.fit(X, y)
    assert not hasattr(crf, "coef_")
    assert not hasattr(crf, "classes_")


class FullStream:
    """A stream on a full disk."""

    def write(self, *_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    flush = isatty = write


@pytest.mark.parametrize("stream", [None, "closed", FullStream()])
def test_a_stream_that_cannot_fail(stream):
    if stream == "closed":
        stream = io.StringIO()
        stream.close()
    safe = UnfailingStream(stream)
    assert safe.write("text\n") == 5
    safe.writelines(["text\n"])
    safe.flush()
    assert not safe.isatty()
