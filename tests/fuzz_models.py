"""Damage many model files and load them: ``python tests/fuzz_models.py [N_RANDOM [N_STRUCTURE [SEED]]]``.

The suite runs a small sample (tests/persistence/test_damaged_files.py); ``make fuzz`` runs this script.
Every case must end with a `ModelFileError`, or with a model that predicts without an error of another kind,
in at most a second of processor time and 200 MB of memory.
"""

from __future__ import annotations

import collections
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from damaged_models import check_damaged, damage_bytes, damage_structure, old_files
from seqlab import load, save

MAX_SECONDS, MAX_MEGABYTES = 1.0, 200.0


def main(n_random: int = 20_000, n_structure: int = 4_000, seed: int = 0) -> None:
    """Run all cases and print the outcome; exit with 1 if one failed."""
    warnings.simplefilter("ignore")
    path = Path(tempfile.mkdtemp()) / "model.seqlab"
    base = []
    for name, content, X in old_files():
        path.write_bytes(content)
        model = load(path)
        save(model, path)
        base += [(name, content, X), (name, path.read_bytes(), X)]
        assert check_damaged(path, X) == "predicted"  # compiles the kernels, too
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found: collections.Counter[str] = collections.Counter()
    slowest, failures = 0.0, []
    for damage, n_cases in ((damage_bytes, n_random), (damage_structure, n_structure)):
        for case in range(n_cases):
            name, content, X = base[case % len(base)]
            path.write_bytes(damage(content, np.random.default_rng([seed, case])))
            begin = time.process_time()
            try:
                found[f"{damage.__name__}: {check_damaged(path, X)}"] += 1
            except Exception as error:  # any other kind of error is a failure
                failures.append(f"{damage.__name__} {case} {name}: {type(error).__name__}: {error}")
            slowest = max(slowest, time.process_time() - begin)
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    for outcome, count in sorted(found.items()):
        print(f"{count:7,}  {outcome}")
    print(f"slowest {slowest:.2f} s, {megabytes:.0f} MB more than before, {len(failures)} failures")
    print(*failures[:20], sep="\n")
    path.unlink()
    sys.exit(bool(failures) or slowest > MAX_SECONDS or megabytes > MAX_MEGABYTES)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
