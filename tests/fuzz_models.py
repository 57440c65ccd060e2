"""Damage many model files and load them: ``python tests/fuzz_models.py [N_RANDOM [N_STRUCTURE [SEED]]]``.

The suite runs a small sample (tests/persistence/test_damaged_files.py); ``make fuzz`` runs this script.
Models of all estimators: the stored files of older versions, these files in the current version, and
`fitted_models`. Every case must end with a `ModelFileError`, or with a model that predicts without an error
of another kind; loading takes at most a second of processor time, and all cases together 200 MB of memory.
Predictions with unusual parameters may compile kernels. A case that takes ten minutes ends the script with a
traceback.
"""

from __future__ import annotations

import collections
import faulthandler
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from damaged_models import (
    check_damaged,
    check_prediction,
    damage_bytes,
    damage_structure,
    load_damaged,
    old_files,
)
from fitted_models import fitted_models
from seqlab import load, save

MAX_SECONDS, MAX_MEGABYTES = 1.0, 200.0


def sound_files(path: Path) -> list[tuple[str, bytes, Any]]:
    """Return the name, content and input of the models whose files are damaged."""
    files = []
    for name, content, X in old_files():
        path.write_bytes(content)
        save(load(path), path)
        files += [(name, content, X), (name, path.read_bytes(), X)]
    for name, model, X in fitted_models():
        save(model, path)
        files.append((name, path.read_bytes(), X))
    for name, content, X in files:
        path.write_bytes(content)
        assert check_damaged(path, X) == "predicted", name  # compiles the kernels, too
    return files


def main(n_random: int = 20_000, n_structure: int = 4_000, seed: int = 0) -> None:
    """Run all cases and print the outcome; exit with 1 if one failed."""
    warnings.simplefilter("ignore")
    path = Path(tempfile.mkdtemp()) / "model.seqlab"
    files = sound_files(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found: collections.Counter[str] = collections.Counter()
    slowest, n_failures = 0.0, 0
    for damage, n_cases in ((damage_bytes, n_random), (damage_structure, n_structure)):
        for case in range(n_cases):
            name, content, X = files[case % len(files)]
            path.write_bytes(damage(content, np.random.default_rng([seed, case])))
            faulthandler.dump_traceback_later(600, exit=True)
            begin, problem, used = time.process_time(), "", 0.0
            try:
                model = load_damaged(path)
                used = time.process_time() - begin
                outcome = "refused" if model is None else check_prediction(model, X)
                found[f"{damage.__name__}: {outcome}"] += 1
            except Exception as error:  # any other kind of error is a failure
                problem = f"{type(error).__name__}: {error}"
            slowest = max(slowest, used)
            if problem or used > MAX_SECONDS:
                n_failures += 1
                print(f"{damage.__name__} {case} {name}: {used:.2f} s {problem}", flush=True)
    faulthandler.cancel_dump_traceback_later()
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    for outcome, count in sorted(found.items()):
        print(f"{count:7,}  {outcome}")
    print(
        f"{len(files)} files, slowest load {slowest:.2f} s, {megabytes:.0f} MB more than before, "
        f"{n_failures} failures"
    )
    path.unlink()
    sys.exit(n_failures > 0 or megabytes > MAX_MEGABYTES)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
