"""The default solver on fifteen data sets and four pairs of penalties, compared with python-crfsuite.

Same attributes, parameters (only observed pairs, no boundary weights) and penalties. For each problem:

- CRFsuite runs 100 iterations of its L-BFGS or OWL-QN with its own stopping rule switched off, and if these
  do not reach the objective of seqlab, up to 1,500, as long as they take less than 30 seconds;
- seqlab runs with default parameters on one thread;
- a tight solution is the lowest objective of both and of a seqlab run with ``tol=1e-5``.

Reported are the iterations and the excess over the tight solution of seqlab, the CPU time of seqlab
compared with that of CRFsuite's 100 iterations, and with that of the iterations that CRFsuite needs to reach
the same objective (if 1,500 or 30 seconds are not enough, the ratio is a lower bound).

``python benchmarks/datasets.py [word ...]`` runs the problems whose name contains a word. Results of single
problems are kept, so that a run can be continued.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
import warnings
from contextlib import nullcontext

from _common import RESULTS
from _problems import PROBLEMS

# If 100 iterations of CRFsuite are not enough.
MORE_ITERATIONS, MORE_SECONDS = 1500, 30
PENALTIES = [(0.0, 1.0), (0.0, 0.1), (0.1, 0.1), (0.1, 0.01)]
# Constants of the solvers were chosen on these; the others were only measured.
CHOSEN_ON = (
    "chunks, 2000 sentences",
    "chunks, 150 sentences",
    "addresses, 300",
    "names, 4000 sentences",
    "noun phrases, 1500 sentences",
    "parts of speech, 1500 sentences",
    "mails, 600",
    "letters, 1200 words",
    "stress, 3000 words",
    "activities, 28 days",
)


def crfsuite(X, y, c1, c2, n_iterations=100):
    """Return the CPU seconds of a number of iterations and the objective after each."""
    import pycrfsuite

    options = {"c1": c1, "c2": c2, "max_iterations": n_iterations, "epsilon": 1e-12, "delta": 1e-12}
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=options, verbose=False)
    for steps, labels in zip(X, y, strict=True):
        trainer.append(steps, labels)
    with tempfile.NamedTemporaryFile() as file:
        began = time.process_time()
        trainer.train(file.name)
        seconds = time.process_time() - began
    return seconds, [iteration["loss"] for iteration in trainer.logparser.iterations]


def seqlab(X, y, c1, c2, **options):
    from seqlab import LinearChainCRF

    began = time.process_time()
    model = LinearChainCRF(c1=c1, c2=c2, boundary=False, **options).fit(X, y)
    return time.process_time() - began, model


def measure(X, y, c1, c2, constants=None):
    """Return the row of a problem; ``constants`` is a context in which seqlab has other constants."""
    from seqlab import SequenceVectorizer

    sequences = SequenceVectorizer().fit_transform(X)
    seqlab(sequences[:250], y[:250], c1, c2, max_iter=20)  # load the kernels
    with constants or nullcontext():
        seconds, model = seqlab(sequences, y, c1, c2)
    _, tight = seqlab(sequences, y, c1, c2, tol=1e-5, max_iter=3000)
    peer_seconds, losses = crfsuite(X, y, c1, c2)
    best = min(model.objective_, tight.objective_, *losses)
    hundred = peer_seconds / len(losses) * 100, losses[-1]
    if min(losses) > model.objective_ and len(losses) >= 100:
        n_more = min(MORE_ITERATIONS, int(100 * MORE_SECONDS / peer_seconds))
        if n_more > 150:
            peer_seconds, losses = crfsuite(X, y, c1, c2, n_more)
            best = min(best, *losses)
    reached = [i for i, loss in enumerate(losses, 1) if loss <= model.objective_]
    n_needed = reached[0] if reached else len(losses)
    return {
        "iterations": model.n_iter_,
        "converged": bool(model.converged_),
        "excess %": 100 * (model.objective_ / best - 1),
        "seconds": seconds,
        "CRFsuite seconds": hundred[0],
        "CRFsuite excess %": 100 * (hundred[1] / best - 1),
        "CRFsuite iterations": n_needed,
        "faster than 100 iterations": hundred[0] / seconds,
        "faster to the objective": peer_seconds * n_needed / len(losses) / seconds,
        "CRFsuite reached it": bool(reached),
    }


def write(results):
    """Write the table as Markdown, with the medians."""
    lines = [
        "# Default solver on fifteen data sets", "",
        "Obtained with `benchmarks/datasets.py` (its opening docstring says how): CPU seconds on one thread,",
        "python-crfsuite and seqlab one after the other in one process. 'faster' is the ratio of CPU times:",
        "to CRFsuite's 100 iterations, and to the iterations that CRFsuite takes to the objective of seqlab",
        "(`>`: 1,500, or as many as take 30 seconds, are not enough). Excess and seconds of CRFsuite are",
        "those of 100 iterations.", "",
        "Other work ran on the second core.", "",
        "The size and the sample of the dense block in the preconditioner, the first step and the",
        "iterations at which it is renewed were chosen on the data sets marked *, with c1 = 0 for most",
        "of them. The number of pairs that L-BFGS keeps was chosen with c1 = 0 on all text, so also on sets",
        "without *. The factors of the stopping rule were chosen on all data sets. `leave_out.md` has the",
        "same table with these constants chosen on other data sets. When each label has its own block with",
        "c1 > 0 was chosen on generated data and on the letters. The constants of the block of nonzero",
        "weights were chosen on all data sets and on generated data.", "",
        *table(results, CHOSEN_ON),
    ]  # fmt: skip
    (RESULTS / "datasets.md").write_text("\n".join(lines) + "\n")


def table(results, starred=()):
    """Return the lines of the table and the medians; the data sets ``starred`` get a *."""
    lines = [
        "| data set | c1 | c2 | iterations | excess % | seconds | CRFsuite excess % | CRFsuite seconds |"
        " faster than 100 it. | CRFsuite it. to the objective | faster to the objective |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for key, row in results.items():
        name, c1, c2 = key.split("|")
        star = "*" if name in starred else ""
        more = "" if row["CRFsuite reached it"] else "> "
        failed = "" if row["converged"] else " (not converged)"
        lines.append(
            f"| {name}{star} | {c1} | {c2} | {row['iterations']}{failed} | {row['excess %']:.3f} |"
            f" {row['seconds']:.2f} | {row['CRFsuite excess %']:.2f} | {row['CRFsuite seconds']:.1f} |"
            f" {row['faster than 100 iterations']:.1f} | {more}{row['CRFsuite iterations']} |"
            f" {more}{row['faster to the objective']:.1f} |"
        )
    for title, excluded in (("all data sets", ()), ("data sets without *", starred)):
        rows = [r for k, r in results.items() if k.split("|")[0] not in excluded]
        if rows and (excluded or title.startswith("all")):
            ratios = [r["faster to the objective"] for r in rows]
            lines += ["", f"{title}: median {statistics.median(ratios):.1f} times faster to the same "
                      f"objective; largest excess {max(r['excess %'] for r in rows):.3f} %; least ratio to "
                      f"100 iterations {min(r['faster than 100 iterations'] for r in rows):.1f}; most "
                      f"iterations {max(r['iterations'] for r in rows)}."]  # fmt: skip
    return lines


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    RESULTS.mkdir(exist_ok=True)
    place, words = RESULTS / "datasets.json", sys.argv[1:]
    results = json.loads(place.read_text()) if place.exists() else {}
    for name, load in PROBLEMS.items():
        if words and not any(word in name for word in words):
            continue
        X, y = load()
        for c1, c2 in PENALTIES:
            key = f"{name}|{c1:g}|{c2:g}"
            results[key] = measure(X, y, c1, c2)
            print(f"# {key}: {results[key]}", file=sys.stderr, flush=True)
            place.write_text(json.dumps(results, indent=1))
    write(results)
