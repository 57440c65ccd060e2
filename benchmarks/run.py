"""All benchmarks, one after the other: `make bench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPTS = [
    "training.py",
    "perceptron.py",
    "hmm.py",
    "tagging.py",
    "scaling.py",
    "many_labels.py",
    "templates_vs_python.py",
    "snow.py",
    "boosting.py",
    "output_code.py",
    "phrases.py",
    "combinators.py",
    "stacking.py",
    "start_up.py",
    "command_line.py",
    "long_sequence.py",
    "dense.py",
    "binary_chains.py",
    "robustness.py",
    "datasets.py",
    "class_weight.py",
    "margin.py",
    "plots.py",
]

if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    failed = []
    for script in SCRIPTS:
        print(f"\n== {script}", flush=True)
        if subprocess.run([sys.executable, str(folder / script)], check=False).returncode:
            failed.append(script)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)
