"""Commands in a process of their own: pipes, memory, signals, garbage collection."""

from __future__ import annotations

import gc
import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import seqlab
from seqlab.cli._gc import gc_frozen

SEQLAB = [sys.executable, "-m", "seqlab.cli"]
SCRIPT = "import sys; from seqlab.cli import main; sys.exit(main())"
posix = pytest.mark.skipif(os.name != "posix", reason="POSIX signals and pipes")


def start(*args, **options):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*SEQLAB, *map(str, args)], **(pipes | options))


@posix
def test_broken_pipe_prints_nothing(model, files):
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
def test_broken_pipe_while_printing_a_table(model):
    child = start("inspect", model, "--top", "500", stdin=subprocess.DEVNULL)
    child.stdout.close()
    error = child.stderr.read()
    child.stderr.close()
    assert (child.wait(60), error) == (141, b"")


def test_output_follows_each_sequence_at_once(model):
    with start("tag", model) as child:
        child.stdin.write(b"12\nMain\nSt\n\n")
        child.stdin.flush()
        lines = [child.stdout.readline() for _ in range(4)]
        assert lines[0].startswith(b"12 ")
        assert lines[3] == b"\n"
        child.stdin.close()
        assert child.wait(60) == 0


@posix
def test_output_to_a_named_pipe_follows_each_sequence_at_once(model, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with start("tag", model, "-o", pipe) as child:
        child.stdin.write(b"12\nMain\nSt\n\n")
        child.stdin.flush()
        with open(pipe, "rb", buffering=0) as output:
            ready, _, _ = select.select([output], [], [], 60)
            assert ready, "nothing was written"
            assert output.read(3) == b"12 "
            child.stdin.close()
            assert output.readall().count(b"\n") == 4
        assert child.wait(60) == 0


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout")
def test_a_file_that_is_standard_output_is_continued(model, files, tmp_path):
    link = tmp_path / "link"
    link.symlink_to("/dev/stdout")
    output = tmp_path / "labelled.txt"
    with open(output, "wb") as file:
        file.write(b"before\n")
        file.flush()
        with start("tag", model, files / "new.txt", "-o", link, stdout=file) as child:
            _, error = child.communicate(timeout=60)
            assert (child.returncode, error) == (0, b"")
        file.write(b"after\n")
    lines = output.read_text().splitlines()
    n_lines = len((files / "new.txt").read_text().splitlines())
    assert (lines[0], lines[-1], len(lines)) == ("before", "after", n_lines + 2)
    assert {path.name for path in tmp_path.iterdir()} == {"link", "labelled.txt"}


def peak_memory(model, text, times):
    """Peak memory in kB of a process that tags a text several times through pipes, and its lines."""
    code = (
        "import re, sys\nfrom pathlib import Path\nfrom seqlab.cli import app\n"
        f"code = app(['tag', {str(model)!r}, '--jobs', '1'], standalone_mode=False)\n"
        # Not ru_maxrss: a child inherits it, so that it would be the peak of the process running the tests.
        "peak = re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]\n"
        "print(peak, file=sys.stderr)\n"
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


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_memory_does_not_grow_with_the_file(model, files):
    text = (files / "new.txt").read_bytes()
    small, large = 40, 240
    n = text.count(b"\n")
    few, n_few = peak_memory(model, text, small)
    many, n_many = peak_memory(model, text, large)
    assert (n_few, n_many) == (small * n, large * n)
    assert large * n > 130_000
    assert many < few + 8_000  # kB; keeping the tokens alone would need 20,000 more


def interrupted_training(files, out, when):
    """Start training without an end and interrupt it when a line appears on standard error."""
    code = (
        "import sys, seqlab.learning.monitor as m\n"
        "old = m.Monitor.record\n"
        "def record(self, iteration, *args, **more):\n"
        "    old(self, iteration, *args, **more)\n"
        "    print('ITERATION', iteration, file=sys.stderr, flush=True)\n"
        "m.Monitor.record = record\n"
        "import seqlab.cli.train as t\n"
        "fit = t._fit\n"
        "def _fit(*args):\n"
        "    print('FITTING', file=sys.stderr, flush=True)\n"
        "    return fit(*args)\n"
        "t._fit = _fit\n"
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
def test_interrupted_training_saves_the_model_beside_the_output(files, tmp_path):
    out = tmp_path / "m.seqlab"
    out.write_text("old")
    code, error = interrupted_training(files, out, "ITERATION 5")
    assert code == 130
    assert error.count("\n") == 1
    assert error.startswith("seqlab: interrupted after iteration ")
    assert out.read_text() == "old"
    partial = tmp_path / "m.seqlab.interrupted"
    assert {path.name for path in tmp_path.iterdir()} == {out.name, partial.name}
    tagger = seqlab.load(partial)
    assert tagger.labeler_.n_iter_ >= 5
    assert not tagger.labeler_.converged_
    assert len(tagger.predict([[("12",), ("Main",)]])[0]) == 2


@posix
def test_interrupt_before_the_first_iteration_writes_no_file(files, tmp_path):
    code, error = interrupted_training(files, tmp_path / "m.seqlab", "FITTING")
    assert code == 130
    assert error.startswith("seqlab: interrupted")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@posix
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_while_the_command_line_is_parsed(number, code):
    """Code of other libraries that ignores all errors has swallowed it."""
    program = f"""
import signal, sys
from seqlab.cli import main
from typer.core import TyperCommand
parse = TyperCommand.parse_args
def parse_args(self, ctx, args):
    try:
        signal.raise_signal({int(number)})
    except KeyboardInterrupt:
        pass
    return parse(self, ctx, args)
TyperCommand.parse_args = parse_args
sys.argv = ["seqlab", "datasets", "show", "conll2000"]
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr == "seqlab: interrupted\n"


@posix
@pytest.mark.parametrize(
    ("program", "module", "number", "code"),
    [
        (["-m", "seqlab.cli"], "typer", signal.SIGINT, 130),
        (["-c", SCRIPT], "typer", signal.SIGTERM, 143),
        (["-m", "seqlab.cli"], "sklearn", signal.SIGTERM, 143),
        (["-c", SCRIPT], "seqlab.meta.tagger", signal.SIGINT, 130),
    ],
    ids=["program", "script", "program, later", "script, later"],
)
def test_signal_during_an_import_ends_the_program_at_once(
    files, tmp_path, program, module, number, code
):
    (tmp_path / "sitecustomize.py").write_text(f"""
import os, signal, sys, time
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            try:
                os.kill(os.getpid(), {int(number)})
                time.sleep(0.001)
            except BaseException:
                pass  # as some modules do
            time.sleep(120)
sys.meta_path.insert(0, Interrupt())
""")
    out = tmp_path / "out" / "m.seqlab"
    out.parent.mkdir()
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *program, "train", files / "train.conll", "-o", out],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "seqlab: interrupted\n")
    assert list(out.parent.iterdir()) == []


def test_a_program_that_imports_the_commands_keeps_its_signals():
    code = (
        "import signal, sys\nimport seqlab.cli\nassert 'typer' not in sys.modules\n"
        "from seqlab.cli import app\nassert type(app).__name__ == 'Typer'\n"
        "app(['datasets', 'show', 'conll2000'], standalone_mode=False)\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
        "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True)


def test_failed_import_is_reported_once(files, tmp_path):
    (tmp_path / "joblib").mkdir()
    (tmp_path / "joblib" / "__init__.py").write_text("raise ImportError('no such joblib')")
    out = tmp_path / "m.seqlab"
    args = ["train", files / "train.conll", "-o", out, "-p", "tol=0.1", "-q"]
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with start(*args, env=os.environ | {"PYTHONPATH": path}) as child:
        output, error = child.communicate(timeout=60)
    assert (child.returncode, output) == (1, b"")
    assert error.splitlines() == [b"seqlab: no such joblib"]
    assert not out.exists()


def test_gc_frozen_enables_the_collector_again():
    before = gc.get_freeze_count()
    with suppress(KeyError), gc_frozen():
        assert not gc.isenabled()
        kept = [[k] for k in range(1000)]
        raise KeyError
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(kept)


def test_command_restores_the_collector(files, tmp_path):
    out = tmp_path / "m.seqlab"
    code = (
        "import gc\n"
        "from seqlab.cli import app\n"
        f"app(['train', {str(files / 'train.conll')!r}, '-o', {str(out)!r}, '-p', 'tol=0.1', '-q'],"
        " standalone_mode=False)\n"
        "assert gc.isenabled() and gc.get_freeze_count() == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert out.exists()


def test_training_without_pandas(files, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'pandas':\n"
        "            raise ModuleNotFoundError('No module named pandas', name='pandas')\n"
        "sys.meta_path.insert(0, Hide())\n"
    )
    out = tmp_path / "m.seqlab"
    args = ["train", files / "train.conll", "-o", out, "-p", "tol=0.1", "-q"]
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with start(*args, env=os.environ | {"PYTHONPATH": path}) as child:
        _, error = child.communicate(timeout=120)
    assert (child.returncode, error) == (0, b"")
    assert out.exists()
