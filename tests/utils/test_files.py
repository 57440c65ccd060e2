import io
import os
import stat

import pytest

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
