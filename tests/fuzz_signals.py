"""Signals at random moments of training: ``python tests/fuzz_signals.py [N_INT [N_TERM [N_KILL [SEED]]]]``.

Half of the interrupts go to ``seqlab train``, half to a program that calls `fit`. Each must end with exit
code 130 (SIGTERM: 143) or with a finished model, with at most one line of message, without a traceback, a
crash or a hang, and leave no other file. After SIGKILL the target is the old or the new model, and the next
run removes what was left. ``make fuzz`` runs this script.
"""

from __future__ import annotations

import collections
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from seqlab import load
from seqlab.data.io import write_conll
from seqlab.datasets import make_addresses

OLD = b"the old model"
HANG = 120.0  # seconds
PROGRAM = """
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


class Signals:
    """Runs of training that are interrupted, and what they ended with."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.train = folder / "train.conll"
        X, y = make_addresses(150, random_state=0, return_X_y=True)
        write_conll(X, y, self.train)
        self.found: collections.Counter[str] = collections.Counter()
        self.failures: list[str] = []

    def command(self, out: Path) -> list[str]:
        """Return the command line of a training."""
        options = ["-q", "-p", "tol=0.001", "--jobs", "2"]
        return [
            sys.executable,
            "-m",
            "seqlab.cli",
            "train",
            str(self.train),
            "-o",
            str(out),
            *options,
        ]

    def measure(self, command: list[str]) -> float:
        """Return the seconds of an uninterrupted run; the second one has compiled kernels."""
        for _ in range(2):
            begin = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - begin

    def interrupt(self, command: list[str], number: int, delay: float) -> tuple[int, str]:
        """Start a command, send a signal after a delay, and return the exit code and the messages."""
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            if command[1] == "-c":  # the interpreter starts without our code
                child.stdout.readline()
            time.sleep(delay)
            child.send_signal(number)
            try:
                _, error = child.communicate(timeout=HANG)
            except subprocess.TimeoutExpired:
                child.kill()
                _, error = child.communicate()
                return 999, f"hang\n{error}"
        return child.returncode, error

    def run_commands(self, number: int, n_runs: int) -> None:
        """Send a signal to ``seqlab train``."""
        out = self.folder / "work" / "m.seqlab"
        out.parent.mkdir(exist_ok=True)
        total = self.measure(self.command(out))
        code = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[signal.Signals(number)]
        for _ in range(n_runs):
            shutil.rmtree(out.parent)
            out.parent.mkdir()
            out.write_bytes(OLD)
            delay = self.random.uniform(0.0, 1.1 * total)
            found, error = self.interrupt(self.command(out), number, delay)
            # Before the interpreter has installed its handlers, the signal simply ends the process.
            is_expected = found in (0, code) or (found == -number and not error)
            problem = self.check(out, error, is_expected, is_killed=number == signal.SIGKILL)
            name = signal.Signals(number).name
            self.record(f"train, {name}: exit {found}", problem, delay / total, error)

    def check(self, out: Path, error: str, is_expected: bool, *, is_killed: bool) -> str:
        """Return what is wrong after a run; '' if nothing is."""
        if not is_expected:
            return "exit code"
        if error.count("\n") > 1 or (error and not error.startswith("seqlab: ")):
            return "messages"
        if out.read_bytes() != OLD:
            load(out)
        if is_killed:
            subprocess.run(self.command(out), check=True, capture_output=True)
        names = {path.name for path in out.parent.iterdir()} - {out.name}
        if names - {f"{out.name}.interrupted"}:
            return f"files left: {names}"
        for name in names:
            load(out.with_name(name))
        return ""

    def run_programs(self, n_runs: int) -> None:
        """Send SIGINT to a program that calls `fit`."""
        command = [sys.executable, "-c", PROGRAM, str(self.train)]
        total = self.measure(command)
        for _ in range(n_runs):
            delay = self.random.uniform(0.0, 0.7 * total)  # without the imports
            found, error = self.interrupt(command, signal.SIGINT, delay)
            problem = "exit code" if found not in (0, 130) else "messages" if error else ""
            self.record(f"fit, SIGINT: exit {found}", problem, delay / total, error)

    def record(self, outcome: str, problem: str, at: float, error: str) -> None:
        """Count an outcome, and keep a failure."""
        self.found[outcome] += 1
        if problem:
            self.failures.append(f"{outcome} at {at:.0%} of the run: {problem}\n{error[-2000:]}")
            print(self.failures[-1], flush=True)


def main(n_int: int = 200, n_term: int = 40, n_kill: int = 40, seed: int = 0) -> None:
    """Run everything and print the outcome; exit with 1 if one run failed."""
    # A job in the background ignores SIGINT, and its children would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        signals = Signals(Path(folder), seed)
        signals.run_commands(signal.SIGINT, n_int // 2)
        signals.run_programs(n_int - n_int // 2)
        signals.run_commands(signal.SIGTERM, n_term)
        signals.run_commands(signal.SIGKILL, n_kill)
    for outcome, count in sorted(signals.found.items()):
        print(f"{count:5,}  {outcome}")
    print(f"{len(signals.failures)} failures")
    sys.exit(bool(signals.failures))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
