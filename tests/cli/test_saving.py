"""A model that has been trained is not lost: full disks, interrupts, termination."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import seqlab
from seqlab.cli import _saving
from seqlab.cli._errors import CommandError, Interrupted
from seqlab.cli._read_options import ReadOptions
from seqlab.cli.train import _fit, _is_standard_output

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX signals")


def train(run, files, output, *more):
    return run("train", files / "train.conll", "-o", output, "-p", "tol=0.3", "-q", *more)


@pytest.fixture
def full_disk(monkeypatch, tmp_path):
    """A disk without space for files named m.seqlab in the test's folder."""
    real = os.fsync

    def fsync(handle):
        name = os.readlink(f"/proc/self/fd/{handle}") if Path("/proc/self/fd").exists() else ""
        if name.startswith(f"{tmp_path}/.m.seqlab."):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(handle)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's /proc")
def test_full_disk(run, files, tmp_path, full_disk, monkeypatch):
    other = tmp_path / "elsewhere"
    other.mkdir()
    monkeypatch.setattr(_saving, "_other_folders", lambda: [str(tmp_path / "missing"), str(other)])
    result = train(run, files, tmp_path / "m.seqlab")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "no space left on device; the model was saved as" in result.stderr
    (saved,) = other.glob("*/m.seqlab")
    assert str(saved) in result.stderr
    assert seqlab.load(saved).labeler_.converged_
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's /proc")
def test_no_folder_can_hold_the_model(run, files, tmp_path, full_disk, monkeypatch):
    monkeypatch.setattr(_saving, "_other_folders", lambda: [str(tmp_path / "missing")])
    result = train(run, files, tmp_path / "m.seqlab")
    assert result.exit_code == 1
    assert "no other folder can hold the model either" in result.stderr
    assert list(tmp_path.iterdir()) == []


def start(files, output, when, action, **options):
    """Train in another process that runs some code when the file is written."""
    code = (
        "import os, signal, sys\n"
        "import seqlab.utils.files as f\n"
        "old = os.fsync\n"
        f"def fsync(handle):\n    {action}\n    old(handle)\n"
        "os.fsync = fsync\n"
        "from seqlab.cli import main\n"
        f"sys.argv = ['seqlab', 'train', {str(files / 'train.conll')!r}, '-o', {str(output)!r},"
        " '-p', 'tol=0.3', '-q']\n"
        "main()\n"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, **options)


@posix
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_during_saving_does_not_lose_the_model(files, tmp_path, number, code):
    done = start(files, tmp_path / "m.seqlab", "fsync", f"os.kill(os.getpid(), {int(number)})")
    assert done.returncode == code
    assert (
        done.stderr == f"seqlab: interrupted after training; the model is in {tmp_path}/m.seqlab\n"
    )
    assert seqlab.load(tmp_path / "m.seqlab").labeler_.converged_
    assert os.listdir(tmp_path) == ["m.seqlab"]


@posix
def test_the_run_after_a_killed_one_cleans_up(run, files, tmp_path):
    done = start(files, tmp_path / "m.seqlab", "fsync", "os.kill(os.getpid(), 9)")
    assert done.returncode == -9
    assert len(os.listdir(tmp_path)) == 1
    assert train(run, files, tmp_path / "m.seqlab").exit_code == 0
    assert os.listdir(tmp_path) == ["m.seqlab"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_standard_error_does_not_stop_training(files, tmp_path):
    output = tmp_path / "m.seqlab"
    command = [sys.executable, "-m", "seqlab.cli", "train", files / "train.conll", "-o", output]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*command, "-p", "tol=0.3"], stderr=full, stdout=subprocess.DEVNULL, check=False
        )
    assert done.returncode == 0
    assert seqlab.load(output).labeler_.converged_


@posix
def test_devices_are_written_and_not_replaced(run, files, tmp_path):
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    assert train(run, files, link).exit_code == 0
    assert link.is_symlink()
    assert Path(os.devnull).is_char_device()


@posix
def test_mode_of_an_existing_file_is_kept(run, files, model, tmp_path):
    for command in ("train", "tag"):
        output = tmp_path / command
        output.touch()
        output.chmod(0o600)
        if command == "train":
            assert train(run, files, output).exit_code == 0
        else:
            assert run("tag", model, files / "new.txt", "-o", output).exit_code == 0
        assert output.stat().st_mode & 0o777 == 0o600
        assert output.stat().st_size


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs /dev/fd")
def test_an_open_file_that_cannot_be_written_is_refused_before_training(run, files):
    with open(files / "train.conll", "rb") as file:
        number = file.fileno()
        for output in (f"/dev/fd/{number}", "/dev/fd/987654"):
            result = train(run, files, output)
            assert result.exit_code == 2
            assert result.stderr == f"seqlab: {output}: is not open for writing\n"


@pytest.fixture
def other(tmp_path, monkeypatch):
    """The folder in which a model is saved that cannot be written to its target."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.setattr(_saving, "_other_folders", lambda: [str(folder)])
    return folder


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_model_for_a_full_device_is_not_named_after_it(model, other):
    with pytest.raises(CommandError, match="no space left on device; the model was saved") as info:
        _saving.save_model(seqlab.load(model), ReadOptions(), Path("/dev/full"))
    (saved,) = other.glob("*/*")
    assert saved.name == "model.seqlab"
    assert str(saved) in str(info.value)


@posix
def test_a_pipe_without_a_reader_can_be_interrupted(model, other, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ended = threading.Event()
    writer = threading.main_thread().ident

    def interrupt():
        time.sleep(0.1)
        signal.pthread_kill(writer, signal.SIGINT)
        if not ended.wait(5):  # otherwise the test would not end
            pipe.read_bytes()

    thread = threading.Thread(target=interrupt)
    tagger = seqlab.load(model)
    with pytest.raises(Interrupted, match="interrupted while writing to") as info:
        _saving.finish_training(tagger, ReadOptions(), pipe, thread.start)
    ended.set()
    thread.join(10)
    (saved,) = other.glob("*/*")
    assert str(info.value) == f"interrupted while writing to {pipe}; the model is in {saved}"
    assert info.value.code == 130
    assert saved.name == "model.seqlab"
    assert seqlab.load(saved).labeler_.converged_


@posix
def test_a_model_interrupted_in_training_is_not_saved_beside_a_device(model, other, monkeypatch):
    def fit(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(seqlab.Tagger, "fit", fit)
    data = SimpleNamespace(X=[], y=[], options=ReadOptions())
    with pytest.raises(Interrupted, match="/dev/null was not written, the model at") as info:
        _fit(seqlab.load(model), data, None, Path(os.devnull))
    (saved,) = other.glob("*/*")
    assert saved.name == "model.seqlab.interrupted"
    assert str(info.value).endswith(f"is in {saved}")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs /dev/fd")
def test_a_model_on_standard_output_is_not_mixed_with_the_summary(monkeypatch, tmp_path):
    read, write = os.pipe()
    with open(read, "rb"), open(write, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert _is_standard_output(Path(f"/dev/fd/{write}"))
        assert not _is_standard_output(tmp_path / "new")
        assert not _is_standard_output(Path(os.devnull))
