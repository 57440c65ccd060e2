"""Fixed blocks of sequences and the threads that run them.

The partition of the sequences into blocks depends only on the data, not on the number of threads;
each block writes its own results and the caller reduces them in block order. So results are bitwise
identical for any ``n_jobs``. Kernels release the interpreter lock, so a thread pool is sufficient.
Each call has its own pool, or, inside `keep_threads`, one of an earlier call that has ended: concurrent
callers never share one, and forked processes inherit none.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import reduce
from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.utils.signals import check_signals

Result = TypeVar("Result")

# About a millisecond of forward-backward, much longer than it takes to start a block in a thread.
BLOCK_WORK = 2_000_000
# Limits the memory for the results of the blocks; enough to balance the load of the usual numbers of cores.
MAX_BLOCKS = 64
# Entries of a vector that a thread processes at a time.
CHUNK = 1 << 16


def effective_n_jobs(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` means.

    ``None`` means 1, ``-1`` all cores, ``-2`` all but one, and so on.
    """
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise InputError("n_jobs must not be 0: use None or 1 for one thread, -1 for all cores")
    if n_jobs > 0:
        return int(n_jobs)
    from joblib import cpu_count  # here, to keep the import of the package fast

    return max(1, cpu_count() + 1 + int(n_jobs))


class _IdlePools(threading.local):
    """Pools that the calls of this thread have used inside `keep_threads`, by number of threads."""

    depth = 0
    process = 0

    def __init__(self) -> None:
        self.pools: dict[int, list[ThreadPoolExecutor]] = {}


_idle = _IdlePools()


@contextmanager
def keep_threads() -> Iterator[None]:
    """Let calls inside the block use the same threads, one after the other.

    Starting a thread takes up to a millisecond, and a fit runs blocks hundreds of times.
    """
    if _idle.process != os.getpid():  # threads do not survive a fork
        _idle.pools, _idle.depth, _idle.process = {}, 0, os.getpid()
    _idle.depth += 1
    try:
        yield
    finally:
        _idle.depth -= 1
        if _idle.depth == 0:
            pools, _idle.pools = _idle.pools, {}
            for pool in chain.from_iterable(pools.values()):
                pool.shutdown()


@contextmanager
def _borrow_pool(n_threads: int) -> Iterator[ThreadPoolExecutor]:
    """Provide a pool that nobody else uses; keep it for the next call inside `keep_threads`."""
    can_keep = _idle.depth > 0 and _idle.process == os.getpid()
    idle = _idle.pools.setdefault(n_threads, []) if can_keep else []
    pool = idle.pop() if idle else ThreadPoolExecutor(n_threads, thread_name_prefix="seqlab")
    try:
        yield pool
    except BaseException:
        pool.shutdown()  # waits for blocks that are still running
        raise
    if can_keep:
        idle.append(pool)
    else:
        pool.shutdown()


def block_bounds(
    offsets: NDArray[np.int64],
    work_per_step: int = 1,
    *,
    block_work: int = BLOCK_WORK,
    max_blocks: int = MAX_BLOCKS,
) -> NDArray[np.int64]:
    """Split sequences into blocks of about equal work.

    Parameters
    ----------
    offsets : array of shape (n_sequences + 1,)
        First row of each sequence, and the end of the last.
    work_per_step : int
        Operations per step, e.g. ``n_labels ** 2`` for forward-backward.
    block_work : int
        Minimum number of operations per block.
    max_blocks : int
        Maximum number of blocks.

    Returns
    -------
    bounds : array of shape (n_blocks + 1,)
        Block ``b`` holds sequences ``bounds[b]:bounds[b + 1]``; no block is empty. Without
        sequences there are no blocks.
    """
    n_sequences = offsets.size - 1
    if n_sequences == 0:
        return np.zeros(1, dtype=np.int64)
    n_steps = int(offsets[-1] - offsets[0])
    n_blocks = min(max(n_steps * work_per_step // block_work, 1), max_blocks, n_sequences)
    # Block ends at equal shares of the steps; np.unique drops blocks that a long sequence leaves empty.
    shares = offsets[0] + np.arange(1, n_blocks, dtype=np.int64) * n_steps // n_blocks
    cuts = np.searchsorted(offsets, shares, side="left").astype(np.int64)
    return np.unique(np.concatenate([[0], cuts, [n_sequences]])).astype(np.int64)


def run_blocks(
    function: Callable[[int], Result], n_blocks: int, n_jobs: int | None = None
) -> list[Result]:
    """Return ``[function(0), ..., function(n_blocks - 1)]``, computed by up to ``n_jobs`` threads.

    Parameters
    ----------
    function : callable
        Takes the index of a block. Threads make it faster only if it releases the interpreter lock.
    n_blocks : int
        Number of blocks.
    n_jobs : int, optional
        Number of threads, as in joblib. Serial by default, and if there is only one block.

    Returns
    -------
    results : list of length n_blocks
        In block order, whatever the order of execution.
    """
    n_threads = min(effective_n_jobs(n_jobs), n_blocks)
    if n_threads <= 1:
        return [_run_safely(function, block) for block in range(n_blocks)]
    results = []
    with _borrow_pool(n_threads) as pool:
        for result in pool.map(function, range(n_blocks)):
            results.append(result)
            check_signals()
    return results


def reduce_blocks(
    function: Callable[[int], Result],
    combine: Callable[[Result, Result], Result],
    n_blocks: int,
    n_jobs: int | None = None,
) -> Result:
    """Return ``combine(... combine(function(0), function(1)) ..., function(n_blocks - 1))``.

    The same as ``functools.reduce(combine, run_blocks(function, n_blocks, n_jobs))``, but with only a few
    results more than threads in memory, which matters if a result is a large table.

    Parameters
    ----------
    function : callable
        Takes the index of a block.
    combine : callable
        Takes two results.
    n_blocks : int
        Number of blocks, at least 1.
    n_jobs : int, optional
        Number of threads, as in joblib.
    """
    n_threads = min(effective_n_jobs(n_jobs), n_blocks)
    if n_threads <= 1:
        return reduce(combine, (_run_safely(function, block) for block in range(n_blocks)))

    def results() -> Iterator[Result]:
        with _borrow_pool(n_threads) as pool:
            waiting = deque(pool.submit(function, block) for block in range(n_threads))
            try:
                for block in range(n_threads, n_blocks + n_threads):
                    result = waiting.popleft().result()
                    if block < n_blocks:
                        waiting.append(pool.submit(function, block))
                    check_signals()
                    yield result
            finally:
                for future in waiting:
                    future.cancel()

    return reduce(combine, results())


def _run_safely(function: Callable[[int], Result], block: int) -> Result:
    """Run one block, after an interrupt that may have come in the last one."""
    check_signals()
    return function(block)


def run_chunks(
    function: Callable[[int, int], Result], size: int, n_jobs: int | None = None
) -> list[Result]:
    """Return ``function(begin, stop)`` for fixed chunks of a long vector, in order, by ``n_jobs`` threads."""

    def run(chunk: int) -> Result:
        return function(chunk * CHUNK, min((chunk + 1) * CHUNK, size))

    return run_blocks(run, max(1, -(-size // CHUNK)), n_jobs)
