"""Arrays that shrink are compressed, but never so much that `load` would take the file for an attack."""

import zipfile

import numpy as np
import pytest

from seqlab import HMM, load, save
from seqlab.persistence import _archive


def fitted(extra):
    rng = np.random.default_rng(0)
    model = HMM().fit([rng.integers(0, 5, (20, 2)).astype(float)], [rng.integers(0, 3, 20)])
    model.extra_ = extra
    return model


def sizes(path):
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("float64.npy")
        return info.compress_type, info.file_size, info.compress_size


@pytest.mark.parametrize("is_random", [False, True])
def test_arrays_are_compressed_if_that_helps(is_random, tmp_path):
    numbers = np.random.default_rng(0).normal(size=50_000)
    model, path = fitted(numbers if is_random else numbers.round(1)), tmp_path / "model.seqlab"
    save(model, path)
    kind, before, after = sizes(path)
    assert kind == (zipfile.ZIP_STORED if is_random else zipfile.ZIP_DEFLATED)
    assert (after < 0.5 * before) is not is_random
    np.testing.assert_array_equal(load(path).extra_, model.extra_)


def test_arrays_that_shrink_too_much_are_stored_as_they_are(tmp_path, monkeypatch):
    model, path = fitted(np.zeros(50_000)), tmp_path / "model.seqlab"
    save(model, path)
    assert sizes(path)[0] == zipfile.ZIP_DEFLATED
    monkeypatch.setattr(_archive, "_MAX_UNPACKED", 1000)
    with pytest.raises(Exception, match="would unpack to"):
        load(path)
    save(model, path)
    assert sizes(path)[0] == zipfile.ZIP_STORED
    np.testing.assert_array_equal(load(path).extra_, model.extra_)
