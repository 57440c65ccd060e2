"""The description of a model: its objects as JSON values.

===============================================  ======================================================
JSON                                             Python
===============================================  ======================================================
null, true, 1, 1.5, "text"                       the same
``{"list": [...]}``, tuple, set, frozenset       containers
``{"dict": {...}}``, ``{"items": [[k, v]...]}``  dict with strings as keys, and with any keys
``{"strings": [blob, offsets], "of": "list"}``   list or tuple of many strings
``{"numbers": array, "of": "list"}``             list or tuple of many floats or ints
``{"slice": [a, b, c]}``                         slice
``{"array": [type, stored, shape, order]}``      array; `seqlab.persistence._array_store` holds the numbers
``{"scalar": [type, stored, []]}``               NumPy scalar
``{"objects": list, "shape": [...]}``            array of objects
``{"sparse": "csr_matrix", "shape", ...}``       CSR or CSC matrix
``{"type": "LinearChainCRF", "state": {...}}``   a type of `SAVED_TYPES`
``{"foreign": 0}``                               an object of another library, stored by skops
``{"ref": 3}``                                   the object whose description has ``"id": 3``
===============================================  ======================================================

An object that is used several times is described once, at its first place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp

from seqlab.data.packed_strings import check_packed_strings, pack_strings, unpack_strings
from seqlab.persistence._array_store import ArrayReader, ArrayWriter, can_store
from seqlab.persistence.errors import ModelFileError
from seqlab.persistence.limits import Limits
from seqlab.persistence.type_names import PLAIN_TYPES

Node = Any

_SPARSE = {
    f"{kind}_{form}": getattr(sp, f"{kind}_{form}")
    for kind in ("csr", "csc")
    for form in ("matrix", "array")
}
_SPARSE_NAMES = {kind: name for name, kind in _SPARSE.items()}
_CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}
_SCALARS = (type(None), bool, int, float, str)
# Lists of at least this many strings or numbers are stored as arrays.
_MANY = 16
_NAMES_BY_PATH = {path: name for name, path in PLAIN_TYPES.items()}


class Encoder:
    """Describes a model.

    Attributes
    ----------
    arrays : ArrayWriter
    foreign : list
        Objects of other libraries, in the order of their numbers.
    """

    def __init__(self) -> None:
        self.arrays = ArrayWriter()
        self.foreign: list[Any] = []
        # The object is kept, so that no other one can get its id.
        self._seen: dict[int, tuple[Any, dict[str, Node] | None]] = {}
        self._n_ids = 0

    def encode(self, value: Any) -> Node:
        """Return the description of a value."""
        if type(value) in _SCALARS:
            return value
        if id(value) in self._seen:
            node = self._seen[id(value)][1]
            if node is None:
                raise ModelFileError(f"a {type(value).__name__} contains itself")
            if "id" not in node:
                node["id"] = self._n_ids
                self._n_ids += 1
            return {"ref": node["id"]}
        self._seen[id(value)] = (value, None)
        node = self._describe(value)
        self._seen[id(value)] = (value, node)
        return node

    def _describe(self, value: Any) -> dict[str, Node]:
        kind = type(value)
        if kind is np.ndarray:
            if can_store(value.dtype):
                return {"array": self.arrays.add(value)}
            if value.dtype == object:
                return {
                    "objects": self.encode(value.ravel().tolist()),
                    "shape": list(value.shape),
                }
        elif kind in (list, tuple):
            return self._describe_list(value, kind.__name__)
        elif kind in (set, frozenset):
            return {kind.__name__: [self.encode(one) for one in _sorted(value)]}
        elif kind is dict:
            if all(type(key) is str for key in value):
                return {"dict": {key: self.encode(one) for key, one in value.items()}}
            return {"items": [[self.encode(key), self.encode(one)] for key, one in value.items()]}
        elif kind is slice:
            return {"slice": [self.encode(v) for v in (value.start, value.stop, value.step)]}
        elif isinstance(value, np.generic) and can_store(value.dtype):
            return {"scalar": self.arrays.add(np.asarray(value))}
        elif kind in _SPARSE_NAMES:
            return {
                "sparse": _SPARSE_NAMES[kind],
                "shape": list(map(int, value.shape)),
                "data": self.arrays.add(value.data),
                "indices": self.arrays.add(value.indices),
                "indptr": self.arrays.add(value.indptr),
            }
        name = _NAMES_BY_PATH.get(f"{kind.__module__}.{kind.__qualname__}")
        if name is not None:
            state = get_state(value)
            return {"type": name, "state": {key: self.encode(one) for key, one in state.items()}}
        self.foreign.append(value)
        return {"foreign": len(self.foreign) - 1}

    def _describe_list(self, value: list[Any] | tuple[Any, ...], of: str) -> dict[str, Node]:
        if len(value) >= _MANY:
            kinds = set(map(type, value))
            if kinds == {str}:
                blob, offsets = pack_strings(list(value))
                return {"strings": [self.arrays.add(blob), self.arrays.add(offsets)], "of": of}
            if kinds == {float}:
                return {"numbers": self.arrays.add(np.array(value)), "of": of}
            if kinds == {int} and min(value) >= -(2**63) and max(value) < 2**63:
                return {"numbers": self.arrays.add(np.array(value, dtype=np.int64)), "of": of}
        return {of: [self.encode(one) for one in value]}


def get_state(value: Any) -> dict[str, Any]:
    """Return the attributes of an object of a saved type that its file holds."""
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(kind)}
    if issubclass(kind, tuple):
        return value._asdict()
    state = value.__getstate__() or {}
    # What a cached property computed is computed again when it is needed.
    return {
        key: one
        for key, one in state.items()
        if not isinstance(getattr(kind, key, None), cached_property)
    }


class Decoder:
    """Builds a model from its description.

    Parameters
    ----------
    arrays : ArrayReader
    foreign : list
        Objects of other libraries.
    limits : Limits
    """

    def __init__(self, arrays: ArrayReader, foreign: list[Any], limits: Limits) -> None:
        self._arrays = arrays
        self._foreign = foreign
        self._limits = limits
        self._known: dict[
            int, tuple[Any, int]
        ] = {}  # objects by id, and the number of their values
        self._depth = 0
        self._n_values = 0  # a part that is used several times counts each time

    def decode(self, node: Node) -> Any:
        """Return the value that a node describes."""
        self._n_values += 1
        if type(node) in _SCALARS:
            return node
        if not isinstance(node, dict):
            raise ModelFileError("its description is malformed")
        if "ref" in node:
            if type(node["ref"]) is not int or node["ref"] not in self._known:
                raise ModelFileError("its description refers to an object that it does not have")
            value, size = self._known[node["ref"]]
            self._n_values += size
            # Objects that share parts in many levels take exponential time to compare, hash or print.
            self._limits.check("n_nodes", self._n_values)
            return value
        n_before = self._n_values
        self._depth += 1
        self._limits.check("depth", self._depth)
        value = self._build(node)
        self._depth -= 1
        if "id" in node:
            if type(node["id"]) is not int or node["id"] in self._known:
                raise ModelFileError("its description has two objects with the same id")
            self._known[node["id"]] = value, self._n_values - n_before
        return value

    def _build(self, node: dict[str, Node]) -> Any:
        for kind, make in _CONTAINERS.items():
            if kind in node:
                return make([self.decode(one) for one in _expect(node[kind], list)])
        if "dict" in node:
            return {key: self.decode(one) for key, one in _expect(node["dict"], dict).items()}
        if "type" in node:
            state = _expect(node["state"], dict)
            return build_object(node["type"], {key: self.decode(one) for key, one in state.items()})
        if "array" in node:
            return self._arrays.take(node["array"])
        if "scalar" in node:
            return self._arrays.take(node["scalar"])[()]
        if "strings" in node:
            blob, offsets = map(self._arrays.take, _expect(node["strings"], list))
            check_packed_strings(blob, offsets, "a list of strings")
            return _as_sequence(unpack_strings(blob, offsets), node["of"])
        if "numbers" in node:
            return _as_sequence(self._arrays.take(node["numbers"]).tolist(), node["of"])
        return self._build_rare(node)

    def _build_rare(self, node: dict[str, Node]) -> Any:
        if "sparse" in node:
            kind = _SPARSE[node["sparse"]]
            parts = tuple(self._arrays.take(node[name]) for name in ("data", "indices", "indptr"))
            if any(part.ndim != 1 for part in parts) or any(
                part.dtype.kind != "i" for part in parts[1:]
            ):
                raise ModelFileError("a sparse matrix is malformed")
            return kind(parts, shape=tuple(_expect(node["shape"], list)))
        if "items" in node:
            return {self.decode(key): self.decode(one) for key, one in _expect(node["items"], list)}
        if "slice" in node:
            return slice(*[self.decode(one) for one in _expect(node["slice"], list)])
        if "objects" in node:
            items = _expect(self.decode(node["objects"]), list)
            array = np.empty(len(items), dtype=object)
            array[:] = items
            return array.reshape(_expect(node["shape"], list))
        if "foreign" in node:
            return self._foreign[_expect(node["foreign"], int)]
        raise ModelFileError("its description has an unknown kind of value")


def build_object(name: str, state: dict[str, Any]) -> Any:
    """Return an object of a saved type with the given attributes."""
    kind = find_type(name)
    if dataclasses.is_dataclass(kind) or issubclass(kind, tuple):
        return kind(**state)
    value = kind.__new__(kind)
    if hasattr(value, "__setstate__"):
        value.__setstate__(state)
    else:
        vars(value).update(state)
    return value


def find_type(name: Any) -> Any:
    """Import the type of a stable name."""
    if not isinstance(name, str) or name not in PLAIN_TYPES:
        raise ModelFileError(f"it holds a type that this seqlab does not have: {name!s:.60}")
    module, _, kind = PLAIN_TYPES[name].rpartition(".")
    return getattr(import_module(module), kind)


def find_type_names(node: Node) -> set[Any]:
    """Return the names of all types in a description, without building anything."""
    found, stack = set(), [node]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            if "type" in one and "state" in one:
                found.add(one["type"] if isinstance(one["type"], str) else None)
            stack.extend(one.values())
        elif isinstance(one, list):
            stack.extend(one)
    return found


def _expect(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise ModelFileError("its description is malformed")
    return value


def _as_sequence(values: list[Any], of: Any) -> Any:
    if of not in ("list", "tuple"):
        raise ModelFileError("its description is malformed")
    return values if of == "list" else tuple(values)


def _sorted(values: Any) -> list[Any]:
    """Return the members of a set in an order that does not depend on the hash seed."""
    return sorted(values, key=lambda one: (type(one).__name__, repr(one)))
