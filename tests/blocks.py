"""Helpers for tests of threads: small blocks, and a count of the tasks that threads share.

With the usual block size the data of a test fit into one block, which one thread computes alone. A test
that compares threads with a serial run then compares the serial run with itself.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import joblib

from seqlab.utils import threads


def use_small_blocks(monkeypatch, block_work=20):
    """Cut data into blocks of about ``block_work`` operations instead of millions."""
    monkeypatch.setitem(threads.block_bounds.__kwdefaults__, "block_work", block_work)


def count_parallel_tasks(monkeypatch):
    """Return a list that receives the number of tasks of each parallel run, in threads or in joblib."""
    counts = []

    class CountingPool(ThreadPoolExecutor):
        n_tasks = 0

        def submit(self, *args, **options):
            self.n_tasks += 1
            return super().submit(*args, **options)

        def shutdown(self, *args, **options):
            counts.append(self.n_tasks)
            super().shutdown(*args, **options)

    run_in_joblib = joblib.Parallel.__call__

    def count_and_run(self, iterable):
        tasks = list(iterable)
        if self.n_jobs not in (None, 1):
            counts.append(len(tasks))
        return run_in_joblib(self, tasks)

    monkeypatch.setattr(threads, "ThreadPoolExecutor", CountingPool)
    monkeypatch.setattr(joblib.Parallel, "__call__", count_and_run)
    return counts
