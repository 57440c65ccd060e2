import io
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

import pytest

from seqlab.utils import files
from seqlab.utils.files import open_atomic


def test_replaces_the_target_when_the_block_ends(tmp_path):
    target = tmp_path / "file"
    target.write_bytes(b"old")
    with open_atomic(target) as file:
        file.write(b"new")
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("existing", [True, False])
def test_an_error_leaves_the_target_unchanged(tmp_path, error, existing):
    target = tmp_path / "file"
    if existing:
        target.write_bytes(b"old")

    def write_half():
        with open_atomic(target) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        write_half()
    assert os.listdir(tmp_path) == (["file"] if existing else [])
    assert not existing or target.read_bytes() == b"old"


def test_a_wrapper_may_close_the_file(tmp_path):
    target = tmp_path / "file"
    with open_atomic(target) as file, io.TextIOWrapper(file, encoding="utf-8") as text:
        text.write("é" * 100_000)
    assert target.read_text(encoding="utf-8") == "é" * 100_000


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_keeps_permissions(tmp_path):
    target = tmp_path / "file"
    target.touch()
    target.chmod(0o640)
    with open_atomic(target) as file:
        file.write(b"new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


posix = pytest.mark.skipif(os.name != "posix", reason="POSIX files")


@posix
def test_the_temporary_file_is_not_more_readable_than_the_target(tmp_path):
    target = tmp_path / "file"
    target.touch()
    target.chmod(0o600)
    with open_atomic(target) as file:
        file.write(b"new")
        (temporary,) = [path for path in tmp_path.iterdir() if path != target]
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@posix
@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs the super-user")
def test_keeps_the_owner(tmp_path):
    target = tmp_path / "file"
    target.touch()
    os.chown(target, 12345, 23456)
    with open_atomic(target) as file:
        file.write(b"new")
    assert (target.stat().st_uid, target.stat().st_gid) == (12345, 23456)


@posix
def test_an_owner_that_cannot_be_kept_does_not_open_the_file_to_another_group(
    tmp_path, monkeypatch
):
    def refuse(*_):
        raise PermissionError

    target = tmp_path / "file"
    target.touch()
    target.chmod(0o660)
    old = os.stat_result((target.stat().st_mode, 0, 0, 1, 12345, 23456, 0, 0, 0, 0))
    monkeypatch.setattr(files, "_find_target", lambda _: old)
    monkeypatch.setattr(os, "fchown", refuse)
    with open_atomic(target) as file:
        file.write(b"new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@posix
def test_a_pipe_is_written_and_not_replaced(tmp_path):
    target = tmp_path / "pipe"
    os.mkfifo(target)
    received = []
    reader = threading.Thread(target=lambda: received.append(target.read_bytes()))
    reader.start()
    with open_atomic(target) as file:
        file.write(b"new")
    reader.join(10)
    assert received == [b"new"]
    assert stat.S_ISFIFO(target.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


@posix
def test_a_signal_does_not_truncate_what_a_pipe_gets(tmp_path):
    target = tmp_path / "pipe"
    os.mkfifo(target)
    data = os.urandom(1 << 20)  # more than a pipe holds, so that the writer waits
    received, handled = [], []
    writer = threading.main_thread().ident

    def read():
        with open(target, "rb") as file:
            for _ in range(3):
                time.sleep(0.05)  # the writer is inside a system call
                signal.pthread_kill(writer, signal.SIGUSR1)
                received.append(file.read(1 << 17))
            received.append(file.read())

    before = signal.signal(signal.SIGUSR1, lambda number, _: handled.append(number))
    reader = threading.Thread(target=read)
    reader.start()
    try:
        with open_atomic(target) as file:
            assert file.write(data) == len(data)
    finally:
        reader.join(10)  # it sends the signal
        signal.signal(signal.SIGUSR1, before)
    assert len(handled) == 3
    assert b"".join(received) == data


@posix
def test_a_socket_is_refused(tmp_path):
    target = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(target))
        with pytest.raises(OSError, match="socket"), open_atomic(target):
            pass
        assert stat.S_ISSOCK(target.stat().st_mode)


@posix
def test_a_device_is_not_replaced(tmp_path):
    target = tmp_path / "null"
    try:
        os.mknod(target, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        target.write_bytes(b"")
    except OSError:
        pytest.skip("devices can be made by the super-user only")
    with open_atomic(target) as file:
        file.write(b"new")
    assert stat.S_ISCHR(target.stat().st_mode)


@posix
def test_files_of_killed_processes_are_removed(tmp_path):
    target = tmp_path / "file"
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom seqlab.utils.files import open_atomic\n"
        "with open_atomic(Path(sys.argv[1])) as file:\n"
        "    file.write(b'half')\n    file.flush()\n    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(target)], check=False)
    (left,) = os.listdir(tmp_path)
    other = tmp_path / f".other.{'0' * 16}.tmp"
    other.touch()
    with open_atomic(target) as file:
        assert left not in os.listdir(tmp_path)
        with open_atomic(target) as second:  # the file of the first writer is in use
            second.write(b"second")
        file.write(b"first")
    assert target.read_bytes() == b"first"
    assert set(os.listdir(tmp_path)) == {"file", other.name}
