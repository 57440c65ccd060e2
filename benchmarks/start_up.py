"""Start-up time on a new machine (with compilation) and in a new process (with cached kernels).

A small CRF, but large enough for the kernels of large data, is fitted twice in a process with an empty
kernel cache (first use on a machine), then in a second process that finds the compiled kernels in the
cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

from _common import keep, table

PROBE = """
import json, time
began = time.perf_counter()
from seqlab import LinearChainCRF
from seqlab.datasets import make_addresses
imported = time.perf_counter()
X, y = make_addresses(600, random_state=0, return_X_y=True)
X = [[["word=" + word, "length=" + str(len(word))] for word in map(str, tokens)] for tokens in X]
ready = time.perf_counter()
LinearChainCRF().fit(X, y)
first = time.perf_counter()
model = LinearChainCRF().fit(X, y)
second = time.perf_counter()
model.predict(X)
tagged = time.perf_counter()
print(json.dumps({"import": imported - began, "first fit": first - ready, "second fit": second - first,
                  "first predict": tagged - second}))
"""


def probe(cache):
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROBE],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    record = json.loads(done.stdout)
    record["process"] = time.perf_counter() - began
    record["added by start-up"] = record["import"] + record["first fit"] - record["second fit"]
    return record


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        results = {"new machine": probe(cache), "later process": probe(cache)}
    table(
        results,
        ["import", "first fit", "second fit", "first predict", "added by start-up", "process"],
    )
    keep("start_up", results)
