"""The folder of compiled kernels in a read-only installation."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import seqlab
from seqlab.utils import numba_cache

SOURCE = Path(seqlab.__file__).parents[1]
_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE = 24, 1


class TestNumbaCache:
    @pytest.fixture(autouse=True)
    def environment(self, monkeypatch, tmp_path):
        monkeypatch.delenv(numba_cache.VARIABLE, raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        monkeypatch.setattr(os, "access", lambda path, _: str(path).startswith(str(tmp_path)))

    def test_a_private_folder_if_nothing_else_is_writable(self, tmp_path):
        numba_cache.ensure_numba_cache("/read-only")
        first = Path(os.environ[numba_cache.VARIABLE])
        assert first.parent == tmp_path
        assert first.stat().st_mode & 0o077 == 0
        del os.environ[numba_cache.VARIABLE]
        numba_cache.ensure_numba_cache("/read-only")
        assert os.environ[numba_cache.VARIABLE] == str(first)

    def test_a_folder_that_others_can_write_to_is_not_used(self, tmp_path):
        numba_cache.ensure_numba_cache("/read-only")
        first = Path(os.environ.pop(numba_cache.VARIABLE))
        first.chmod(0o777)
        numba_cache.ensure_numba_cache("/read-only")
        assert os.environ[numba_cache.VARIABLE] != str(first)

    def test_nothing_changes_if_numba_finds_a_folder(self, tmp_path, monkeypatch):
        numba_cache.ensure_numba_cache(str(tmp_path))
        assert numba_cache.VARIABLE not in os.environ
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not" / "there"))
        numba_cache.ensure_numba_cache("/read-only")
        assert numba_cache.VARIABLE not in os.environ


def drop_privilege():
    """Let the permissions of files hold for root, too."""
    ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, 0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="root gives up a capability of Linux")
def test_read_only_installation_without_a_home(tmp_path):
    """Nothing worked: numba found no folder for its cache."""
    source = tmp_path / "src"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {"PYTHONPATH": str(source), "HOME": os.devnull, "TMPDIR": str(tmp_path)}
    code = "import numpy as np, seqlab.utils.linalg as a; print(a.dot(np.ones(3), np.ones(3)))"
    for folder in [source, *(path for path in source.rglob("*") if path.is_dir())]:
        folder.chmod(0o555)
    try:
        probe = [sys.executable, "-c", f"import os; print(os.access({str(source)!r}, os.W_OK))"]
        run = {"capture_output": True, "text": True, "preexec_fn": drop_privilege}
        if "True" in subprocess.run(probe, check=False, **run).stdout:
            pytest.skip("this user may write everywhere")
        done = subprocess.run([sys.executable, "-c", code], env=environment, check=False, **run)
    finally:
        for folder in [source, *(path for path in source.rglob("*") if path.is_dir())]:
            folder.chmod(0o755)
    assert (done.stdout, done.stderr) == ("3.0\n", "")


def test_import_does_not_load_numba():
    # Nor modules that take long to import: Ctrl-C can only be held back afterwards.
    names = ["numba", "tempfile", "logging", "pathlib"]
    code = f"import sys, seqlab.utils.signals; print([n for n in {names} if n in sys.modules])"
    command = [sys.executable, "-S", "-c", code]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "[]\n"
