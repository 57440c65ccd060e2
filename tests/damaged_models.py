"""Damaged model files whose zip and JSON are valid: wrong types, shapes, indices and references.

`damage_structure` changes one place of the description, or of the arrays, of a model file, and writes a sound
archive around it, so that the checksums do not find the change. `check_damaged` is what must hold for every
file: a `ModelFileError`, or a model that predicts without an error of another kind.
"""

from __future__ import annotations

import copy
import gzip
import io
import json
import zipfile
from pathlib import Path

import numpy as np
from sklearn.exceptions import NotFittedError

from saved_models import members_of, zip_of
from seqlab import ModelFileError, load
from seqlab.data import SeqlabError

FIXTURES = Path(__file__).parent / "fixtures"
FOLDERS = ("models_v1", "models_v2")
INPUT_FORMS = {
    "plain": lambda X: X,
    "tuples": lambda X: [[tuple(step) for step in steps] for steps in X],
    "arrays": lambda X: [np.array(steps, dtype=float) for steps in X],
    "rows": lambda X: np.array(X, dtype=float),
}
SCALARS = (None, True, -1, 0, 1, 3, 10**6, 2**63, 2**70, 0.5, float("nan"), 1e300, "", "x", "IOB2")
TYPES = (
    "<i4",
    "<i8",
    "<f8",
    "<f4",
    "|b1",
    "<U1",
    "<U4",
    "|u1",
    "<c16",
    "<M8[s]",
    "|S1",
    "|O",
    ">i4",
)
NUMBERS = (-1, 1, 127, -128, 10**6, 2**31 - 1, -(2**31))


def old_files():
    """(name, content, input, method) of the stored files of format versions 1 and 2."""
    for folder in FOLDERS:
        path = FIXTURES / folder / "expected.json"
        for name, expected in json.loads(path.read_text(encoding="utf-8")).items():
            content = gzip.decompress((FIXTURES / folder / f"{name}.seqlab.gz").read_bytes())
            X = INPUT_FORMS[expected["form"]](expected["X"])
            yield f"{folder}-{name}", content, X


def damage_structure(content, rng):
    """Change one to three places of a model file; return the new content."""
    members = dict(members_of(content))
    for _ in range(int(rng.integers(1, 4))):
        kind = rng.random()
        if "foreign.skops" in members and kind < 0.2:
            members["foreign.skops"] = damage_structure(members["foreign.skops"], rng)
        elif kind < 0.45:
            _change_numbers(members, rng)
        else:
            name = "schema.json" if "schema.json" in members else "seqlab.json"
            tree = json.loads(members[name])
            _change_tree(tree, rng)
            members[name] = json.dumps(tree).encode()
    return zip_of(members.items())


def damage_bytes(content, rng):
    """Change, remove or insert bytes anywhere, or inside a member, which then gets a new checksum."""
    copied = bytearray(content)
    kind = rng.random()
    if kind < 0.1:
        return bytes(copied[: int(rng.integers(len(copied)))])
    if kind < 0.2:
        place = int(rng.integers(len(copied)))
        return bytes(copied[:place] + rng.bytes(int(rng.integers(1, 9))) + copied[place:])
    if kind < 0.6:  # inside a member, with a new checksum
        members = members_of(content)
        which = int(rng.integers(len(members)))
        name, inner = members[which]
        inner = bytearray(inner)
        for place in rng.integers(0, max(len(inner), 1), int(rng.integers(1, 5))).tolist():
            if inner:
                inner[place] ^= int(rng.integers(1, 256))
        members[which] = (name, bytes(inner))
        return zip_of(members)
    start = copied.index(b"PK\x01\x02") if kind < 0.8 else 0
    for place in rng.integers(start, len(copied), int(rng.integers(1, 5))).tolist():
        copied[place] ^= int(rng.integers(1, 256))
    return bytes(copied)


def _change_numbers(members, rng):
    """Put numbers out of range into an array, or permute it."""
    names = [name for name in members if name.endswith(".npy")]
    if not names:
        return
    name = names[int(rng.integers(len(names)))]
    array = np.load(io.BytesIO(members[name]), allow_pickle=False).copy()
    if not array.size or array.dtype.kind not in "biufU":
        return
    flat = array.reshape(-1)
    place = int(rng.integers(flat.size))
    kind = rng.random()
    if kind < 0.2:
        flat[:] = rng.permutation(flat)
    elif array.dtype.kind == "f":
        flat[place] = rng.choice([np.nan, np.inf, -np.inf, -1.0, 1e300, 1e-300])
    elif array.dtype.kind == "U":
        flat[place] = "?"
    else:
        with np.errstate(over="ignore"):
            flat[place] = np.array(NUMBERS[int(rng.integers(len(NUMBERS)))]).astype(array.dtype)
    buffer = io.BytesIO()
    np.save(buffer, array)
    members[name] = buffer.getvalue()


def _change_tree(tree, rng):
    """Change one place of a JSON tree."""
    places = list(_places(tree))
    parent, key = places[int(rng.integers(len(places)))]
    value = parent[key]
    kind = rng.random()
    if isinstance(value, str) and value.startswith(("<", "|", ">")) and kind < 0.5:
        parent[key] = TYPES[int(rng.integers(len(TYPES)))]
    elif isinstance(value, list) and value and all(type(n) is int for n in value) and kind < 0.6:
        parent[key] = _other_shape(value, rng)
    elif kind < 0.35:
        parent[key] = SCALARS[int(rng.integers(len(SCALARS)))]
    elif kind < 0.5:
        if isinstance(parent, dict) and rng.random() < 0.5:
            parent[f"{key}_"] = parent.pop(key)
        else:
            del parent[key]
    elif kind < 0.75:  # another part of the tree
        other, name = places[int(rng.integers(len(places)))]
        parent[key] = copy.deepcopy(other[name])
    elif kind < 0.85:
        parent[key] = {"ref": int(rng.integers(-1, 4))}
    elif isinstance(value, dict):
        value["id" if rng.random() < 0.5 else "__id__"] = int(rng.integers(4))
    elif type(value) is int:
        parent[key] = value + int(rng.choice([-1, 1, 7]))
    else:
        parent[key] = [value, value]


def _other_shape(shape, rng):
    kind = rng.integers(5)
    if kind == 0:
        return shape[::-1]
    if kind == 1:
        return [*shape, 1]
    if kind == 2:
        return [int(np.prod(shape))]
    changed = list(shape)
    changed[int(rng.integers(len(changed)))] += int(rng.choice([-1, 1]))
    return changed


def _places(node):
    """(container, key) of every value in a JSON tree."""
    keys = list(node) if isinstance(node, dict) else range(len(node))
    for key in keys:
        yield node, key
        if isinstance(node[key], dict | list):
            yield from _places(node[key])


def check_damaged(path, X):
    """Load a damaged file and predict with it; return what happened."""
    model = load_damaged(path)
    return "refused" if model is None else check_prediction(model, X)


def load_damaged(path):
    """Return the model of a damaged file, None if it is refused; raise any other error."""
    try:
        return load(path)
    except ModelFileError:
        return None


def check_prediction(model, X):
    """Predict with a model from a damaged file; return what happened.

    Raises any error that is neither a `SeqlabError` nor the `NotFittedError` of a model without its fitted
    attributes.
    """
    if not hasattr(model, "predict"):
        return "loaded"
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            try:
                getattr(model, method)(X)
            except (SeqlabError, NotFittedError):
                return "typed error"
    return "predicted"


def is_sound_zip(content):
    """Whether the archive and its checksums are valid."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.testzip() is None
