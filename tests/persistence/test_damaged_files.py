"""Damaged model files: a `ModelFileError`, or a model that predicts without another kind of error."""

import numpy as np
import pytest

from damaged_models import (
    check_damaged,
    damage_bytes,
    damage_structure,
    is_sound_zip,
    old_files,
)
from seqlab import load, save

pytestmark = pytest.mark.filterwarnings("ignore")

FILES = list(old_files())


@pytest.fixture(scope="module", params=FILES, ids=lambda file: file[0])
def files(request, tmp_path_factory):
    """The content of a file in its old format and in the current one, and input for its model."""
    _, content, X = request.param
    path = tmp_path_factory.mktemp("sound") / "model.seqlab"
    path.write_bytes(content)
    save(load(path), path)
    return content, path.read_bytes(), X


@pytest.mark.parametrize(
    ("damage", "n_cases"), [(damage_structure, 24), (damage_bytes, 12)], ids=["structure", "bytes"]
)
def test_damage(files, damage, n_cases, tmp_path):
    *contents, X = files
    path = tmp_path / "model.seqlab"
    found = []
    for case in range(n_cases):
        damaged = damage(contents[case % 2], np.random.default_rng(case))
        if damage is damage_structure:
            assert is_sound_zip(damaged)
        path.write_bytes(damaged)
        found.append(check_damaged(path, X))
    assert found.count("refused") > n_cases / 4


def test_sound_files_are_not_refused(files, tmp_path):
    *contents, X = files
    for content in contents:
        (tmp_path / "model.seqlab").write_bytes(content)
        assert check_damaged(tmp_path / "model.seqlab", X) == "predicted"
