"""The schema of a skops file: names of types, and what is accepted before skops reads it.

A schema is a tree of JSON objects ("nodes"), each with the name of its loader and its class. skops follows
every loader that it knows, and references between nodes, without limits. Here only the loaders that `save`
uses are accepted, each with the classes that belong to it, and references are removed: what is left is a
tree whose size is that of the file.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any
from zipfile import ZipFile

from seqlab.persistence._archive import check_array_header
from seqlab.persistence.errors import ModelFileError
from seqlab.persistence.limits import Limits
from seqlab.persistence.type_names import SAVED_TYPES

Node = dict[str, Any]
Rename = Callable[[str, str], tuple[str, str]]

# Sparse matrices are compressed, and a member may be used more than once. Together this may take this many
# times the size of the file, and at least `_MIN_UNPACKED` bytes.
_UNPACKED_RATIO = 20
_MIN_UNPACKED = 1 << 27
_MAX_POOL_SIZE = 64  # words of entropy of a random generator; NumPy uses 4

# Loaders and the classes that they may build; None if `_is_allowed` decides.
_LOADERS: dict[str, tuple[str, ...] | None] = {
    "BytearrayNode": ("builtins.bytearray",),
    "BytesNode": ("builtins.bytes",),
    "DTypeNode": ("numpy.dtype",),
    "DefaultDictNode": ("collections.defaultdict",),
    "DictNode": ("builtins.dict", "collections.OrderedDict"),
    "FunctionNode": None,
    "JsonNode": ("builtins.str",),
    "ListNode": ("builtins.list",),
    "LossNode": None,
    "MaskedArrayNode": ("numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"),
    "NdArrayNode": None,
    "ObjectNode": None,
    "RandomGeneratorNode": ("numpy.random._generator.Generator",),
    "RandomStateNode": ("numpy.random.mtrand.RandomState",),
    "SetNode": ("builtins.set",),
    "SliceNode": ("builtins.slice",),
    "SparseMatrixNode": tuple(
        f"scipy.sparse._{kind}.{kind}_{form}"
        for kind in ("csr", "csc", "coo", "bsr", "dia")
        for form in ("matrix", "array")
    ),
    "TreeNode": ("sklearn.tree._tree.Tree",),  # skops does not trust it unless the caller does
    "TupleNode": ("builtins.tuple",),
    "TypeNode": None,
}
# Prefixes of the classes of a loader; skops then compares the full name with its own list.
_PREFIXES = {
    "FunctionNode": ("numpy.", "scipy.special."),
    "LossNode": ("sklearn.", "_loss.", "sklearn._loss."),
    "NdArrayNode": ("numpy.",),
    "ObjectNode": ("sklearn.",),
    "TypeNode": ("builtins.", "numpy."),
}
_PARTS = {  # loaders whose content is a JSON object with these nodes
    "DefaultDictNode": ("main", "default_factory"),
    "MaskedArrayNode": ("data", "mask"),
    "RandomGeneratorNode": ("bit_generator", "seed_seq"),
    "PartialNode": ("func", "args", "kwds", "namespace"),
    "MethodNode": ("obj",),
}
_SUFFIXES = {
    "NdArrayNode": ".npy",
    "SparseMatrixNode": ".npz",
    "BytesNode": ".bin",
    "BytearrayNode": ".bin",
}


def rename_types(schema: bytes, rename: Rename) -> bytes:
    """Apply a function to the (module, class) pair of every node."""
    root = json.loads(schema)
    for node in _walk(root, depth=10_000):
        node["__module__"], node["__class__"] = rename(node["__module__"], node["__class__"])
    return json.dumps(root).encode()


def check_schema(
    schema: bytes, rename: Rename, archive: ZipFile, size: int, trusted: set[str], limits: Limits
) -> tuple[bytes, set[str]]:
    """Return a schema without references and with current type names, and these names.

    Parameters
    ----------
    schema : bytes
    rename : callable
        Gives the current module and class of a type.
    archive : ZipFile
        The skops file.
    size : int
        Number of bytes of the skops file.
    trusted : set of str
        Types that the caller trusts, which may use any loader.
    limits : Limits

    Raises
    ------
    ModelFileError
        If something is not as `save` writes it, or beyond a limit.
    """
    root = json.loads(schema)
    unpacked, names = 0, set()
    for node in _walk(root, depth=limits.depth):
        node.pop("__id__", None)
        if not (isinstance(node.get("__module__"), str) and isinstance(node.get("__class__"), str)):
            raise ModelFileError("its schema has an object without a type")
        node["__module__"], node["__class__"] = rename(node["__module__"], node["__class__"])
        name = f"{node['__module__']}.{node['__class__']}"
        names.add(name)
        if name not in trusted and not _is_allowed(node["__loader__"], name):
            raise ModelFileError(
                f"it holds types that are not trusted: {name!s:.100} (as {node['__loader__']!s:.40}); pass "
                f"trusted=[{name!r:.100}] if you know where the file comes from"
            )
        if node["__loader__"] == "RandomGeneratorNode":
            _check_generator(node)
        if "file" in node:
            unpacked += _member_size(node, archive)
            if unpacked > max(_UNPACKED_RATIO * size, _MIN_UNPACKED):
                raise ModelFileError("its arrays would unpack to far more than the file")
    limits.check("n_bytes", unpacked)
    return json.dumps(root).encode(), names


def _walk(root: Any, depth: int) -> Iterator[Node]:
    """Yield every node of a schema, parents first."""
    stack = [(root, 1)]
    while stack:
        node, level = stack.pop()
        if not isinstance(node, dict) or not isinstance(node.get("__loader__"), str):
            raise ModelFileError("its schema has something that is not an object")
        if level > depth:
            raise ModelFileError(f"its schema is nested more than {depth} levels deep")
        yield node
        stack.extend((child, level + 1) for child in _children(node))


def _children(node: Node) -> Iterator[Any]:
    loader, content = node["__loader__"], node.get("content")
    if loader in ("ListNode", "TupleNode", "SetNode"):
        yield from _expect(content, list)
    elif loader == "DictNode":
        yield node["key_types"]
        yield from _expect(content, dict).values()
    elif loader == "NdArrayNode":
        if node.get("type") == "json":
            yield from _expect(content, list)
            yield node["shape"]
    elif loader in _PARTS:
        for part in _PARTS[loader]:
            yield _expect(content, dict)[part]
    elif loader == "OperatorFuncNode":
        yield node["attrs"]
    elif (
        loader not in ("JsonNode", "SliceNode", "TypeNode", "FunctionNode") and content is not None
    ):
        yield content
    if "__reduce__" in node:
        yield node["__reduce__"]["args"]


def _is_allowed(loader: str, name: str) -> bool:
    if loader not in _LOADERS:
        return False
    classes = _LOADERS[loader]
    if classes is not None:
        return name in classes
    if loader == "ObjectNode" and name in _OURS:
        return True
    return name.startswith(_PREFIXES[loader])


def _check_generator(node: Node) -> None:
    """Reject a random generator whose construction takes long: the pool size is an argument."""
    seed = node["content"]["seed_seq"]
    size = json.loads(seed["content"]["pool_size"]["content"])
    if type(size) is not int or not 0 < size <= _MAX_POOL_SIZE:
        raise ModelFileError("it holds a random generator with an unusual pool size")


def _member_size(node: Node, archive: ZipFile) -> int:
    """Return the bytes of a member after decompression; reject it if its headers do not agree with them."""
    loader, name = node["__loader__"], node["file"]
    if not isinstance(name, str) or not name.endswith(_SUFFIXES.get(loader, "\0")):
        raise ModelFileError("its schema names a member that does not belong to its type")
    size = archive.getinfo(name).file_size
    if loader == "NdArrayNode":
        with archive.open(name) as stream:
            check_array_header(stream, size, name)
    elif loader == "SparseMatrixNode":
        with ZipFile(io.BytesIO(archive.read(name))) as inner:
            size = 0
            for member in inner.infolist():
                with inner.open(member) as stream:
                    check_array_header(stream, member.file_size, name)
                size += member.file_size
    return size


def _expect(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ModelFileError("its schema is malformed")
    return value


_OURS = frozenset(SAVED_TYPES.values())
