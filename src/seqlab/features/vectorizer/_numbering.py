"""Numbers of the strings of bags, as columns: found in a table, or added to it.

With two threads, the strings of the next bags are collected, which needs the interpreter lock, while those of
the last ones are looked up, which does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data.string_table import Batch, StringTable, pack
from seqlab.features.vectorizer._step_rows import ColumnsOfBags
from seqlab.utils.threads import effective_n_jobs

# Batches that may wait for the second thread: more need more memory.
_MAX_WAITING = 8


@contextmanager
def numbering(table: StringTable, n_jobs: int | None) -> Iterator[ColumnsOfBags]:
    """Provide a function that adds strings to a table; its results are complete after the block.

    Strings are numbered in the same order for any number of threads.
    """

    def add(batch: Batch, out: NDArray[np.int32]) -> None:
        out[:] = table.add_batch(batch)

    if effective_n_jobs(n_jobs) == 1:
        yield lambda bags, n_strings, out: add(pack(bags, n_strings), out)
        return
    waiting: deque[Future[None]] = deque()

    def add_later(bags: list[Any], n_strings: int, out: NDArray[np.int32]) -> None:
        batch = pack(bags, n_strings)  # raises an error if an entry is not a string
        if len(waiting) >= _MAX_WAITING:
            waiting.popleft().result()
        waiting.append(pool.submit(add, batch, out))

    with ThreadPoolExecutor(1, thread_name_prefix="seqlab") as pool:
        yield add_later
        for future in waiting:
            future.result()
