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
from fitted_models import NEW_MODELS
from seqlab import load, save

pytestmark = pytest.mark.filterwarnings("ignore")

OLD_FILES = {name: (content, X) for name, content, X in old_files()}


@pytest.fixture(scope="module", params=[*OLD_FILES, *NEW_MODELS])
def files(request, tmp_path_factory):
    """The content of the files of a model, in the current format and, if it has one, in its old format."""
    path = tmp_path_factory.mktemp("sound") / "model.seqlab"
    if request.param in NEW_MODELS:
        model, X = NEW_MODELS[request.param]()
        save(model, path)
        return [path.read_bytes()], X
    content, X = OLD_FILES[request.param]
    path.write_bytes(content)
    save(load(path), path)
    return [path.read_bytes(), content], X


@pytest.mark.parametrize(
    ("damage", "n_cases"), [(damage_structure, 24), (damage_bytes, 12)], ids=["structure", "bytes"]
)
def test_damage(files, damage, n_cases, tmp_path):
    contents, X = files
    path = tmp_path / "model.seqlab"
    found = []
    for case in range(n_cases):
        damaged = damage(contents[case % len(contents)], np.random.default_rng(case))
        if damage is damage_structure:
            assert is_sound_zip(damaged)
        path.write_bytes(damaged)
        found.append(check_damaged(path, X))
    assert found.count("refused") > n_cases / 4


def test_sound_files_are_not_refused(files, tmp_path):
    contents, X = files
    for content in contents:
        (tmp_path / "model.seqlab").write_bytes(content)
        assert check_damaged(tmp_path / "model.seqlab", X) == "predicted"
