"""Shared by the benchmarks: data, separate processes, and tables.

Every measurement ("role") runs in its own process, so that it has its own peak memory and no warm
caches. Roles that are compared run one after the other in the same session: only their ratios are
meaningful.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
sys.path.insert(0, str(ROOT / "tests"))


def conll2000(subset):
    """Sentences as bags of the attributes of CRFsuite's chunking tutorial, and their labels."""
    from chunking import chunking_attributes
    from seqlab.datasets import fetch_conll2000

    X, y = fetch_conll2000(subset=subset, return_X_y=True)
    return [chunking_attributes(sentence) for sentence in X], [list(labels) for labels in y]


@contextmanager
def clock(record, name):
    """Store the wall-clock seconds of a ``with`` block in ``record[name]``."""
    began = time.perf_counter()
    yield
    record[name] = time.perf_counter() - began


def peak_memory():
    """Peak resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(roles):
    """Run one role in this process (``--role``), or each role in its own process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--role", choices=sorted(roles))
    chosen = parser.parse_args().role
    if chosen:
        print(json.dumps(roles[chosen]()))
        return None
    if "SEQLAB_DATA" not in os.environ:
        sys.exit("set SEQLAB_DATA to the folder of the data sets")
    results = {}
    for role in roles:
        try:
            results[role] = run_role(role)
        except subprocess.CalledProcessError as error:
            print(f"{role}: failed\n{error.stderr[-2000:]}", file=sys.stderr)
            continue
        print(f"# {role}: {results[role]}", file=sys.stderr, flush=True)
    return results


def run_role(role, source=None):
    """Run a role of this script in its own process; with another version of seqlab if its folder is given."""
    environment = dict(os.environ)
    if source is not None:
        environment["PYTHONPATH"] = source
    command = [sys.executable, "-W", "ignore", str(Path(sys.argv[0]).resolve()), "--role", role]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout.strip().splitlines()[-1])


def other_version():
    """Return the folder after ``--before``, the ``src`` of another version of seqlab; None if not given."""
    return sys.argv[sys.argv.index("--before") + 1] if "--before" in sys.argv else None


def table(rows, columns):
    """Print a dict of dicts as a table, one row per entry."""
    from rich.console import Console
    from rich.table import Table

    out = Table()
    out.add_column("")
    for column in columns:
        out.add_column(column, justify="right")
    for name, row in rows.items():
        cells = [row.get(column, "") for column in columns]
        out.add_row(name, *[f"{c:,.4g}" if isinstance(c, float) else str(c) for c in cells])
    Console(width=140).print(out)


def keep(name, results):
    """Write results as JSON, for ``plots.py`` and for comparisons."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(results, indent=1))
