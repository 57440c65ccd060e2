import errno
import os
import stat

import pytest

from seqlab import SequenceVectorizer, load, save


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.seqlab"


class TestWriting:
    def test_failure_leaves_the_old_file_and_nothing_else(self, path, monkeypatch):
        save(SequenceVectorizer(min_count=7), path)

        def fail(*_):
            raise OSError("disk full")

        for name in ("fsync", "replace"):
            with monkeypatch.context() as patch:
                patch.setattr(os, name, fail)
                with pytest.raises(OSError, match="disk full"):
                    save(SequenceVectorizer(), path)
            assert os.listdir(path.parent) == [path.name]
            assert load(path).min_count == 7

    @pytest.mark.parametrize(
        ("number", "kind"),
        [
            (errno.EACCES, PermissionError),
            (errno.EROFS, OSError),
            (errno.ENOSPC, OSError),
        ],
    )
    def test_errors_do_not_name_the_temporary_file(self, path, monkeypatch, number, kind):
        def fail(name, *_):
            raise OSError(number, os.strerror(number), str(name))

        monkeypatch.setattr(os, "open", fail)
        with pytest.raises(kind) as caught:
            save(SequenceVectorizer(), path)
        assert caught.value.errno == number
        assert repr(str(path)) in str(caught.value)
        assert caught.value.filename == os.path.realpath(path.parent)
        assert ".tmp" not in str(caught.value)

    def test_missing_folder_is_named(self, path):
        with pytest.raises(FileNotFoundError) as caught:
            save(SequenceVectorizer(), path.parent / "missing" / "model.seqlab")
        assert caught.value.filename == os.path.realpath(path.parent / "missing")
        assert ".tmp" not in str(caught.value)

    def test_a_folder_cannot_be_the_target(self, path):
        path.mkdir()
        with pytest.raises(IsADirectoryError, match="cannot save to a folder"):
            save(SequenceVectorizer(), path)
        assert os.listdir(path.parent) == [path.name]

    @pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
    def test_permissions(self, path):
        plain = path.with_name("plain")
        plain.touch()
        save(SequenceVectorizer(), path)
        assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
        path.chmod(0o640)
        save(SequenceVectorizer(), path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    @pytest.mark.skipif(os.name != "posix", reason="symbolic links")
    def test_links_stay_links(self, path):
        real = path.with_name("real")
        save(SequenceVectorizer(), real)
        path.symlink_to(real)
        save(SequenceVectorizer(min_count=4), path)
        assert path.is_symlink()
        assert load(real).min_count == 4


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="needs /dev/fd")
def test_a_link_to_a_pipe_without_a_name_is_written(path):
    save(SequenceVectorizer(min_count=7), path)
    read, write = os.pipe()
    save(SequenceVectorizer(min_count=7), f"/dev/fd/{write}")  # /dev/stdout is such a link, too
    os.close(write)
    with open(read, "rb") as pipe:
        assert pipe.read() == path.read_bytes()
