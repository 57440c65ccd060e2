"""Programs that get a signal after a delay: new processes, or forks of one that has imported everything."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, NamedTuple

HANG = 120.0  # seconds
TRAIN = "import sys; from seqlab.cli import main; sys.exit(main())"  # as in the script `seqlab`
# The first line of its input is a list of modules. Each further line is a run in a forked child: program,
# arguments, file of standard error. A child that has ended keeps its number until the next line has come.
SERVER = """
import contextlib, importlib, json, os, signal, sys
for name in json.loads(sys.stdin.readline()):
    with contextlib.suppress(Exception):
        importlib.import_module(name)
for line in iter(sys.stdin.readline, ""):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    child = os.fork()
    if child == 0:
        break
    print(child, flush=True)
    sys.stdin.readline()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
program, arguments, errors = json.loads(line)
sys.argv = ["seqlab", *arguments]
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
os.dup2(os.open(errors + ".out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
code = compile(program, "<program>", "exec")
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT, signal.SIGTERM])
exec(code, {"__name__": "__main__"})
"""
# Prints the modules that a training imports.
LIST_MODULES = """
import json, sys
from seqlab.cli import app
app(sys.argv[1:], standalone_mode=False)
names = [n for n, m in sys.modules.items() if getattr(m, "__spec__", None) and n != "__main__"]
print("MODULES", json.dumps(names))
"""


class Outcome(NamedTuple):
    """Exit code (negative: the signal that ended the process; 999: a hang) and standard error."""

    code: int
    error: str

    def is_before_program(self, number: int) -> bool:
        """Whether the signal came before the first statement of the program.

        Before Python has installed its handlers, a signal ends the process; between that and the first
        statement, while Python imports its own modules, the traceback shows no frame of the program.
        """
        is_traceback = "KeyboardInterrupt" in self.error and "seqlab" not in self.error
        return (self.code == -number and not self.error) or is_traceback


class StartedRuns:
    """Each run is a new process."""

    def measure(self, program: str, arguments: list[str], wait_for: str = "") -> float:
        """Return the seconds of an uninterrupted run; the second one has compiled kernels."""
        for _ in range(2):
            command = [sys.executable, "-c", program, *arguments]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
                begin = time.perf_counter()
                _wait_for_line(child.stdout, wait_for)
                begin = time.perf_counter() if wait_for else begin
                child.communicate()
            assert child.returncode == 0
        return time.perf_counter() - begin

    def run(
        self, program: str, arguments: list[str], number: int = 0, delay: float = 0.0,
        wait_for: str = "",
    ) -> Outcome:  # fmt: skip
        """Start a program, send it a signal after a delay, and return how it ended.

        The delay begins when the program has printed the line ``wait_for``, if one is given.
        """
        command = [sys.executable, "-c", program, *arguments]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as child:
            _wait_for_line(child.stdout, wait_for)
            if number:
                time.sleep(delay)
                child.send_signal(number)
            try:
                _, error = child.communicate(timeout=HANG)
            except subprocess.TimeoutExpired:
                child.kill()
                return Outcome(999, f"hang\n{child.communicate()[1]}")
        return Outcome(child.returncode, error)

    def close(self) -> None:
        """Do nothing: no process is left."""


class ForkedRuns:
    """Each run is a fork of a process that has imported the modules of a training, and nothing else."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        self.errors = folder / "errors.txt"
        self.begin = 0.0  # when the last run began
        command = [sys.executable, "-c", LIST_MODULES, *arguments]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.server = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._send(lines.rpartition("MODULES ")[2].strip())

    def _send(self, line: str) -> None:
        assert self.server.stdin is not None
        self.server.stdin.write(line + "\n")
        self.server.stdin.flush()

    def measure(self, program: str, arguments: list[str], wait_for: str = "") -> float:
        """Return the seconds of an uninterrupted run; the second one has compiled kernels."""
        for _ in range(2):
            assert self.run(program, arguments, wait_for=wait_for) == (0, "")
        return time.perf_counter() - self.begin

    def run(
        self, program: str, arguments: list[str], number: int = 0, delay: float = 0.0,
        wait_for: str = "",
    ) -> Outcome:  # fmt: skip
        """Run a program in a fork, send it a signal after a delay, and return how it ended."""
        stdout = self.server.stdout
        assert stdout is not None
        output = Path(f"{self.errors}.out")
        output.unlink(missing_ok=True)
        self._send(json.dumps([program, arguments, str(self.errors)]))
        child = int(stdout.readline())
        while not output.exists() or wait_for not in output.read_text():  # until it begins
            time.sleep(0.0005)
        self.begin = time.perf_counter()
        if number:
            time.sleep(delay)
            os.kill(child, number)
        self._send("")  # the server may wait for the child now
        if not select.select([stdout], [], [], HANG)[0]:
            os.kill(child, signal.SIGKILL)
            stdout.readline()
            return Outcome(999, f"hang\n{self.errors.read_text()}")
        return Outcome(int(stdout.readline()), self.errors.read_text())

    def close(self) -> None:
        """End the process that forks."""
        assert self.server.stdin is not None
        self.server.stdin.close()
        self.server.wait()


def _wait_for_line(stream: IO[str] | None, line: str) -> None:
    assert stream is not None
    while line and stream.readline().strip() not in (line, ""):
        pass
