"""Signals at random moments of training.

``python tests/fuzz_signals.py [N_INT [N_TERM [N_KILL [SEED [HOW]]]]]``

Half of the interrupts go to ``seqlab train``, half to a program that calls `fit`. Each must end with exit
code 130 (SIGTERM: 143) or with a finished model, with at most one line of message, without a traceback, a
crash or a hang, and leave no other file. After SIGKILL the target is the old or the new model, and the next
run removes what was left. ``make fuzz`` runs this script.

HOW is "start" (each run is a new process, and the signal comes at any time of its life, most of which is the
import of libraries) or "fork" (each run is forked from a process that has imported everything, so that the
signals come while it reads, loads kernels, trains and saves; many more runs per minute).
"""

from __future__ import annotations

import collections
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from seqlab import load
from seqlab.data.io import write_conll
from seqlab.datasets import make_addresses
from signal_runs import TRAIN, ForkedRuns, Outcome, StartedRuns

OLD = b"the old model"
FIT = """
import signal, sys
from seqlab import LinearChainCRF, Tagger, Templates
from seqlab.data.io import read_conll
X, y = read_conll(sys.argv[1])
tagger = Tagger(Templates.default(), LinearChainCRF(tol=1e-3, n_jobs=2))
try:
    print("READY", flush=True)
    tagger.fit(X, y)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
except KeyboardInterrupt:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(tagger, "labeler_"):
        assert tagger.labeler_.n_iter_ >= 1
        tagger.predict(X[:2])
    sys.exit(130)
assert len(tagger.predict(X[:2])) == 2
"""
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}


class Signals:
    """Runs of training that are interrupted, and what they ended with."""

    def __init__(self, folder: Path, seed: int, how: str) -> None:
        self.random = random.Random(seed)
        self.how = how
        self.train = folder / "train.conll"
        self.out = folder / "work" / "m.seqlab"
        self.out.parent.mkdir()
        X, y = make_addresses(40, random_state=0, return_X_y=True)
        write_conll(X, y, self.train)
        command = ["train", str(self.train), "-o", str(self.out)]
        self.command = [*command, "-q", "-p", "tol=0.001", "--jobs", "2"]
        self.runs = ForkedRuns(folder, self.command) if how == "fork" else StartedRuns()
        self.found: collections.Counter[str] = collections.Counter()
        self.failures: list[str] = []

    def run_commands(self, number: signal.Signals, n_runs: int) -> None:
        """Send a signal to ``seqlab train``."""
        total = self.runs.measure(TRAIN, self.command)
        for _ in range(n_runs):
            shutil.rmtree(self.out.parent)
            self.out.parent.mkdir()
            self.out.write_bytes(OLD)
            delay = self.random.uniform(0.0, 1.1 * total)
            outcome = self.runs.run(TRAIN, self.command, number, delay)
            problem = self.check(outcome, number)
            self.record(f"train, {number.name}", outcome, problem, delay / total)

    def check(self, outcome: Outcome, number: signal.Signals) -> str:
        """Return what is wrong after a run; '' if nothing is."""
        code, error = outcome
        if not outcome.is_before_program(number):
            if code not in (0, CODES[number]):
                return "exit code"
            if error.count("\n") > 1 or (error and not error.startswith("seqlab: ")):
                return "messages"
        if self.out.read_bytes() != OLD:
            load(self.out)
        if number == signal.SIGKILL and self.runs.run(TRAIN, self.command) != (0, ""):
            return "the next run"
        names = {path.name for path in self.out.parent.iterdir()} - {self.out.name}
        if names - {f"{self.out.name}.interrupted"}:
            return f"files left: {names}"
        for name in names:
            load(self.out.with_name(name))
        return ""

    def run_programs(self, n_runs: int) -> None:
        """Send SIGINT to a program that calls `fit`."""
        arguments = [str(self.train)]
        total = self.runs.measure(FIT, arguments, wait_for="READY")
        for _ in range(n_runs):
            delay = self.random.uniform(0.0, 0.6 * total)  # the rest is mostly `predict`
            outcome = self.runs.run(FIT, arguments, signal.SIGINT, delay, wait_for="READY")
            code, error = outcome
            problem = "exit code" if code not in (0, 130) else "messages" if error else ""
            self.record("fit, SIGINT", outcome, problem, delay / total)

    def record(self, what: str, outcome: Outcome, problem: str, at: float) -> None:
        """Count an outcome, and keep a failure."""
        self.found[f"{what}: exit {outcome.code}"] += 1
        if problem:
            text = f"{what}: exit {outcome.code} at {at:.0%} of the run: {problem}"
            self.failures.append(f"{text}\n{outcome.error[-2000:]}")
            print(self.failures[-1], flush=True)


def main(
    n_int: str = "200", n_term: str = "40", n_kill: str = "40", seed: str = "0", how: str = "fork"
) -> None:
    """Run everything and print the outcome; exit with 1 if one run failed."""
    # A job in the background ignores SIGINT, and its children would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        signals = Signals(Path(folder), int(seed), how)
        n_commands = int(n_int) // 2
        for number, n_runs in (
            (signal.SIGINT, n_commands),
            (signal.SIGTERM, int(n_term)),
            (signal.SIGKILL, int(n_kill)),
        ):
            if n_runs:
                signals.run_commands(number, n_runs)
        if int(n_int) > n_commands:
            signals.run_programs(int(n_int) - n_commands)
        signals.runs.close()
    for outcome, count in sorted(signals.found.items()):
        print(f"{count:5,}  {how}, {outcome}")
    print(f"{len(signals.failures)} failures")
    sys.exit(bool(signals.failures))


if __name__ == "__main__":
    main(*sys.argv[1:])
