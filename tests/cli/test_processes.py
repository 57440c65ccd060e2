"""Real processes: pipes, memory, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

import seqlab

SEQLAB = [sys.executable, "-m", "seqlab.cli"]
posix = pytest.mark.skipif(os.name != "posix", reason="POSIX signals and pipes")


def start(*args, **options):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*SEQLAB, *map(str, args)], **(pipes | options))


@posix
def test_broken_pipe_is_quiet(model, files):
    child = start("tag", model)

    def feed():
        with suppress(OSError):
            for _ in range(300):
                child.stdin.write((files / "new.txt").read_bytes())
            child.stdin.close()

    thread = threading.Thread(target=feed)
    thread.start()
    assert child.stdout.readline()
    child.stdout.close()
    error = child.stderr.read()
    code = child.wait(60)
    thread.join()
    with suppress(BrokenPipeError):
        child.stdin.close()
    child.stderr.close()
    assert (code, error) == (141, b"")


@posix
def test_broken_pipe_of_a_table(model):
    child = start("inspect", model, "--top", "500", stdin=subprocess.DEVNULL)
    child.stdout.close()
    error = child.stderr.read()
    child.stderr.close()
    assert (child.wait(60), error) == (141, b"")


def test_answers_as_soon_as_a_sequence_has_come(model):
    with start("tag", model) as child:
        child.stdin.write(b"12\nMain\nSt\n\n")
        child.stdin.flush()
        lines = [child.stdout.readline() for _ in range(4)]
        assert lines[0].startswith(b"12 ")
        assert lines[3] == b"\n"
        child.stdin.close()
        assert child.wait(60) == 0


def peak_memory(model, text, times):
    """Peak memory of a child that tags a text many times over, through pipes, in kB."""
    code = (
        "import resource, sys\nfrom seqlab.cli import app\n"
        f"code = app(['tag', {str(model)!r}, '--jobs', '1'], standalone_mode=False)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
        "sys.exit(code)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    n_lines = 0

    def drain():
        nonlocal n_lines
        n_lines = sum(1 for _ in child.stdout)

    thread = threading.Thread(target=drain)
    thread.start()
    with child:
        for _ in range(times):
            child.stdin.write(text)
        child.stdin.close()
        thread.join()
        error = child.stderr.read()
    assert child.returncode == 0, error
    return int(error), n_lines


@posix
def test_memory_does_not_grow_with_the_file(model, files):
    pytest.importorskip("resource")
    text = (files / "new.txt").read_bytes()
    small, large = 40, 240
    n = text.count(b"\n")
    few, n_few = peak_memory(model, text, small)
    many, n_many = peak_memory(model, text, large)
    assert (n_few, n_many) == (small * n, large * n)
    assert large * n > 130_000
    assert many < few + 8_000  # kB; the tokens alone, if they were kept, would take 20,000 more


def interrupted_training(files, out, when):
    """Train for ever; interrupt when a condition on standard error holds."""
    code = (
        "import sys, seqlab.optim.monitor as m\n"
        "old = m.Monitor.record\n"
        "def record(self, iteration, *args, **more):\n"
        "    old(self, iteration, *args, **more)\n"
        "    print('ITERATION', iteration, file=sys.stderr, flush=True)\n"
        "m.Monitor.record = record\n"
        "import seqlab.cli._files as f\n"
        "read = f.read_training\n"
        "def read_training(*args):\n"
        "    print('READING', file=sys.stderr, flush=True)\n"
        "    return read(*args)\n"
        "f.read_training = read_training\n"
        "from seqlab.cli import main\n"
        f"sys.argv = ['seqlab', 'train', {str(files / 'train.conll')!r}, '-o', {str(out)!r},"
        " '-p', 'max_iter=1000000', '-p', 'tol=0', '-p', 'c2=1e-6', '-q']\n"
        "main()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        for line in child.stderr:
            if line.strip() == when:
                child.send_signal(signal.SIGINT)
                break
        rest = [line for line in child.stderr if not line.startswith("ITERATION")]
        child.wait(60)
    return child.returncode, "".join(rest)


@posix
def test_interrupted_training_keeps_the_model_beside_the_target(files, tmp_path):
    out = tmp_path / "m.seqlab"
    out.write_text("old")
    code, error = interrupted_training(files, out, "ITERATION 5")
    assert code == 130
    assert error.count("\n") == 1
    assert error.startswith("seqlab: interrupted after iteration ")
    assert out.read_text() == "old"
    kept = tmp_path / "m.seqlab.interrupted"
    assert {path.name for path in tmp_path.iterdir()} == {out.name, kept.name}
    tagger = seqlab.load(kept)
    assert tagger.labeler_.n_iter_ >= 5
    assert not tagger.labeler_.converged_
    assert len(tagger.predict([[("12",), ("Main",)]])[0]) == 2


@posix
def test_interrupted_before_the_first_iteration_leaves_nothing(files, tmp_path):
    code, error = interrupted_training(files, tmp_path / "m.seqlab", "READING")
    assert code == 130
    assert error.startswith("seqlab: interrupted")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
