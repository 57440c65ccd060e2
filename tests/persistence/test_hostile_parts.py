"""Small files whose parts are shared, compressed or spread so that reading them would take very long."""

import io
import json
import os
import time
import zipfile

import joblib
import pytest
from sklearn.ensemble import BaggingClassifier
from sklearn.naive_bayes import BernoulliNB

from saved_models import members_of, small_crf, write_version_3
from seqlab import IndependentLabeler, LinearChainCRF, ModelFileError, load, save


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.seqlab"


def shared(kind, n_levels=39):
    """A value that describes 2 ** n_levels others in a few lines."""
    node = {kind: [], "id": 0}
    for level in range(1, n_levels + 1):
        node = {kind: [node, {"ref": level - 1}], "id": level}
    return node


@pytest.mark.parametrize("place", ["c2", "class_weight", "key", "member of a set"])
def test_values_shared_in_many_levels_are_refused(path, place):
    """Regression test: printing or hashing such a value took longer than anyone waits."""
    save(LinearChainCRF(), path)
    members = dict(members_of(path.read_bytes()))
    header = json.loads(members["seqlab.json"])
    state = header["root"]["state"]
    if place == "key":
        state["class_weight"] = {"items": [[shared("tuple"), 1.0]]}
    elif place == "member of a set":
        state["extra"] = {"set": [shared("tuple")]}
    else:
        state[place] = shared("list" if place == "class_weight" else "tuple")
    members["seqlab.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ModelFileError, match="limit"):
        load(path)


def test_a_part_of_another_library_must_not_be_compressed(path):
    save(LinearChainCRF(), path)
    members = dict(members_of(path.read_bytes()))
    members["foreign.skops"] = bytes(2**24)
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ModelFileError, match="not stored as seqlab stores it"):
        load(path)


def test_an_old_file_with_gaps_is_not_read(path):
    """A file of 2 GB that takes 8 kB on the disk, because it consists of a gap."""
    write_version_3(small_crf(), path)
    content = path.read_bytes()
    gap = 2**31
    members = io.BytesIO(content)
    with zipfile.ZipFile(members) as archive:
        start = archive.start_dir
    directory = bytearray(content[start:])
    end = directory.rindex(b"PK\x05\x06")
    directory[end + 16 : end + 20] = (start + gap).to_bytes(4, "little")
    with path.open("wb") as file:
        file.write(content[:start])
        file.seek(gap, os.SEEK_CUR)
        file.write(directory)
    began = time.process_time()
    with pytest.raises(ModelFileError, match="larger than its members"):
        load(path)
    assert time.process_time() - began < 1.0


def test_loading_a_classifier_with_n_jobs_starts_no_processes(path, monkeypatch):
    X, y = [[{"a": 1.0}, {"b": 1.0}]] * 4, [["A", "B"]] * 4
    model = IndependentLabeler(BaggingClassifier(BernoulliNB(), n_estimators=4)).fit(X, y)
    model.estimator_.set_params(n_jobs=4)

    def refuse(*args, **kwargs):
        raise AssertionError("a worker process was started")

    monkeypatch.setattr(joblib._parallel_backends.LokyBackend, "configure", refuse)
    save(model, path)
    assert load(path).estimator_.n_jobs == 4
