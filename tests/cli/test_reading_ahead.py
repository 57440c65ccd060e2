"""Reading ahead: the same models and errors as without it; the thread imports nothing and always ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from seqlab import load
from seqlab.cli import _reading_ahead
from seqlab.cli._read_options import ReadOptions
from seqlab.cli._reading_ahead import reading_ahead

# Runs `seqlab train`; fails if a thread imports a module, or loads or compiles a kernel.
PROGRAM = """
import sys, threading
from seqlab.cli import main
import seqlab.cli._reading_ahead as module
wrong, results = [], []
def check(what):
    if threading.current_thread() is not threading.main_thread():
        wrong.append(what)
class Finder:
    def find_spec(self, name, path=None, target=None):
        check(f"import of {name}")
sys.meta_path.insert(0, Finder())
read = module._read_and_extract
def read_and_extract(*args):
    from numba.core.dispatcher import Dispatcher
    compile = Dispatcher.compile
    Dispatcher.compile = lambda self, types: (check(f"kernel {self}"), compile(self, types))[1]
    assert "sklearn" not in sys.modules or "sklearn.base" not in sys.modules
    results.append((threading.current_thread().name, read(*args)))
    Dispatcher.compile = compile
    return results[0][1]
module._read_and_extract = read_and_extract
try:
    main()
finally:
    [(name, result)] = results
    assert name == "seqlab-reading" and result is not None
    assert not wrong, wrong
"""


def train(run, file, out, *options):
    result = run("train", file, "-o", out, "-p", "tol=0.1", "-q", *options)
    assert result.exit_code == 0, result.output
    return load(out)


def test_the_thread_imports_nothing_and_loads_no_kernel(files, tmp_path):
    args = ["train", files / "train.conll", "-o", tmp_path / "m.seqlab", "-q", "-p", "tol=0.1"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert load(tmp_path / "m.seqlab").features_ is not None


def test_models_are_the_same_as_without_reading_ahead(run, files, tmp_path, monkeypatch):
    results = []
    read = _reading_ahead._read_and_extract

    def record(*args):
        results.append((threading.current_thread().name, read(*args)))
        return results[-1][1]

    monkeypatch.setattr(_reading_ahead, "_read_and_extract", record)
    template = tmp_path / "template"
    template.write_text("U0:%x[0,0]\nU1:%x[-1,0]\nB\n")
    usual = tmp_path / "usual.conll"
    usual.write_text((files / "train.conll").read_text().replace("\n", "\r\n"))
    for options in ([], ["-t", template], ["--min-count", "2"]):
        models = [
            train(run, files / "train.conll", tmp_path / "a", *options),
            train(run, files / "train.conll", tmp_path / "b", "-j", "1", *options),
            train(run, usual, tmp_path / "c", *options),
        ]
        assert [name for name, _ in results] == ["seqlab-reading", "MainThread", "seqlab-reading"]
        assert [found is None for _, found in results] == [False, False, True]
        results.clear()
        for model in models[1:]:
            assert model.source_ == models[0].source_
            assert model.features_.get_params() == models[0].features_.get_params()
            assert model.features_.vocabularies_ == models[0].features_.vocabularies_
            assert (model.labeler_.coef_ != models[0].labeler_.coef_).nnz == 0


@pytest.mark.parametrize(
    "options",
    [
        ReadOptions("conllu", "upos", ("form",)),
        ReadOptions(columns=(0,)),
        ReadOptions(comment="#"),
        ReadOptions(encoding="latin-1"),
    ],
    ids=["format", "columns", "comment", "encoding"],
)
def test_options_that_need_the_usual_reader(files, options):
    with reading_ahead(str(files / "train.conll"), options, None, 1, -1) as ahead:
        assert ahead is None


def test_standard_input_and_wrong_templates_are_left_to_the_command(files, tmp_path):
    with reading_ahead("-", ReadOptions(), None, 1, -1) as ahead:
        assert ahead is None
    wrong = tmp_path / "wrong"
    wrong.write_text("U0:%x[0\n")
    for template in (wrong, tmp_path / "none"):
        file = str(files / "train.conll")
        with reading_ahead(file, ReadOptions(), template, 1, -1) as ahead:
            assert ahead is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_are_read_once(files, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # opening it would wait for a writer
    for file, template in ((pipe, None), (files / "train.conll", pipe)):
        with reading_ahead(str(file), ReadOptions(), template, 1, -1) as ahead:
            assert ahead is None


@pytest.mark.parametrize("error", [KeyboardInterrupt, ImportError])
def test_the_thread_ends_with_the_block(files, monkeypatch, error):
    threads = []

    def wait(file, options, params, is_stopped):
        threads.append(threading.current_thread())
        while not is_stopped():
            pass
        raise InterruptedError

    monkeypatch.setattr(_reading_ahead, "_read_and_extract", wait)
    file = str(files / "train.conll")
    with pytest.raises(error), reading_ahead(file, ReadOptions(), None, 1, -1) as ahead:
        raise error
    assert ahead.result is None
    assert not any(thread.is_alive() for thread in threads)
