"""Blocks of sequences and the threads that process them."""

import os
import signal
import threading

import numpy as np
import pytest

from seqlab.data.errors import InputError
from seqlab.utils import threads


def test_block_bounds_cover_every_sequence_once():
    rng = np.random.default_rng(13)
    for lengths in ([], [0], [0, 0, 0], [1000], [1, 1000, 1], rng.integers(0, 50, size=300)):
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        bounds = threads.block_bounds(offsets, 10, block_work=500)
        assert bounds[0] == 0
        assert bounds[-1] == len(lengths)
        assert np.all(np.diff(bounds) > 0)
        assert bounds.size - 1 <= threads.MAX_BLOCKS


def test_run_blocks_keeps_order_and_raises():
    assert threads.run_blocks(lambda b: b * b, 20, n_jobs=4) == [b * b for b in range(20)]
    assert threads.run_blocks(lambda b: b, 0, n_jobs=4) == []
    with pytest.raises(ZeroDivisionError):
        threads.run_blocks(lambda b: 1 // (b - 3), 8, n_jobs=2)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_reduce_blocks_keeps_order_and_few_results(n_jobs):
    alive, most = 0, 0
    lock = threading.Lock()

    class Table:
        def __init__(self, blocks):
            nonlocal alive, most
            self.blocks = blocks
            with lock:
                alive += 1
                most = max(most, alive)

        def __del__(self):
            nonlocal alive
            with lock:
                alive -= 1

    result = threads.reduce_blocks(
        lambda b: Table([b]), lambda a, b: Table(a.blocks + b.blocks), 50, n_jobs
    )
    assert result.blocks == list(range(50))
    assert most <= n_jobs + 5
    with pytest.raises(ZeroDivisionError):
        threads.reduce_blocks(lambda b: 1 // (b - 3), int.__add__, 8, n_jobs)


def test_effective_n_jobs():
    assert threads.effective_n_jobs(None) == 1
    assert threads.effective_n_jobs(3) == 3
    cores = threads.effective_n_jobs(-1)
    assert cores >= 1
    assert threads.effective_n_jobs(-cores - 5) == 1
    with pytest.raises(InputError, match="n_jobs"):
        threads.effective_n_jobs(0)


def test_keep_threads_uses_the_same_threads_and_ends_them():
    def names(n_jobs=2):
        barrier = threading.Barrier(n_jobs, timeout=10)  # both threads take part

        def run(block):
            barrier.wait()
            return threading.current_thread()

        return set(threads.run_blocks(run, n_jobs, n_jobs))

    assert names().isdisjoint(names())
    with threads.keep_threads():
        first = names()
        with threads.keep_threads():
            assert names() == first
        assert names() == first
        with pytest.raises(ZeroDivisionError):  # such a pool is not used again
            threads.run_blocks(lambda b: 1 // b, 2, 2)
        second = names()
        assert second.isdisjoint(first)
        # A call inside a block of another call never waits for the threads of that call.
        assert threads.run_blocks(lambda b: len(names()), 2, 2) == [2, 2]
    assert not any(thread.is_alive() for thread in first | second)
    assert names().isdisjoint(second)


def test_a_forked_process_does_not_use_the_threads_of_its_parent():
    with threads.keep_threads():
        threads.run_blocks(lambda b: b, 2, 2)
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            found = threads.run_blocks(lambda b: b, 2, 2)
            os._exit(0 if found == [0, 1] else 1)
        assert os.waitpid(child, 0)[1] == 0
