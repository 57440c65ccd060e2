"""Files made to crash, hang or exhaust the memory: each is refused before it costs much memory."""

import io
import json
import re
import tracemalloc
import zipfile
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from saved_models import members_of, small_crf, write_version_3, zip_of
from seqlab import LinearChainCRF, ModelFileError, load, save
from seqlab.persistence import Limits

MAX_BYTES = 200 * 2**20
MARKER = ("seqlab.json", b'{"format": "seqlab-model", "version": 3}')


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.seqlab"


def assert_refused(path, match=None, **options):
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=match):
            load(path, **options)
        assert tracemalloc.get_traced_memory()[1] < MAX_BYTES
    finally:
        tracemalloc.stop()


def node(loader, name, **more):
    module, _, kind = name.rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": kind, **more}


def text(value):
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def object_of(attribute):
    """A LinearChainCRF with one attribute."""
    state = node(
        "DictNode",
        "builtins.dict",
        content={"coef_": attribute},
        key_types=node("ListNode", "builtins.list", content=[node("TypeNode", "builtins.str")]),
    )
    return node("ObjectNode", "seqlab.LinearChainCRF", content=state, protocol=2)


def write_schema(path, attribute, *members):
    schema = json.dumps(object_of(attribute)).encode()
    path.write_bytes(zip_of([("schema.json", schema), MARKER, *members]))


def npz_of(matrix):
    buffer = io.BytesIO()
    sp.save_npz(buffer, matrix)
    return buffer.getvalue()


def npy_of(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


class TestSparseMatrices:
    """Index arrays that would make a kernel write outside its buffer."""

    @pytest.fixture
    def matrix(self):
        matrix = sp.csc_matrix(np.eye(3))
        matrix.indices[1] = 10**8
        return matrix

    def test_member_without_suffix(self, path, matrix):
        outside = node(
            "SparseMatrixNode", "scipy.sparse._csc.csc_matrix", type="scipy", file="coef"
        )
        write_schema(path, outside, ("coef", npz_of(matrix)))
        assert_refused(path, "member that does not belong to its type")

    @pytest.mark.parametrize("loader", ["ObjectNode", "ConstructorFromReduceNode", "LossNode"])
    def test_other_loaders(self, path, matrix, loader):
        parts = [
            node("NdArrayNode", "numpy.ndarray", type="numpy", file=f"{name}.npy")
            for name in ("data", "indices", "indptr")
        ]
        content = node("TupleNode", "builtins.tuple", content=parts)
        more = {"__reduce__": {"args": content}} if loader == "LossNode" else {}
        crafted = node(loader, "scipy.sparse._csc.csc_matrix", content=content, **more)
        members = [(f"{n}.npy", npy_of(getattr(matrix, n))) for n in ("data", "indices", "indptr")]
        write_schema(path, crafted, *members)
        assert_refused(path, "not trusted: scipy.sparse._csc.csc_matrix")

    def test_indices_of_the_current_format(self, path, matrix):
        crf = small_crf()
        crf.coef_ = sp.csc_matrix(crf.coef_)
        crf.coef_.indices[0] = 10**6
        with pytest.raises(ModelFileError, match="indices"):
            save(crf, path)

    @pytest.mark.parametrize("attribute", ["transitions_", "start_", "coef_"])
    def test_shapes(self, path, attribute):
        crf = small_crf()
        setattr(crf, attribute, getattr(crf, attribute)[:-1])
        write_version_3(crf, path)
        assert_refused(path, "not consistent")
        with pytest.raises(ModelFileError, match=attribute):
            save(crf, path)


class TestOldFormat:
    def test_shared_nodes(self, path):
        inner = text(1) | {"__id__": 1}
        for level in range(2, 47):
            pair = [inner, {"__id__": level - 1}]
            inner = node("ListNode", "builtins.list", content=pair, __id__=level)
        write_schema(path, inner)
        assert path.stat().st_size < 10_000
        assert_refused(path)

    def test_cached_nodes(self, path):
        cached = [text(1) | {"__id__": 7}, node("CachedNode", "builtins.str", __id__=7)]
        write_schema(path, node("ListNode", "builtins.list", content=cached))
        assert_refused(path, "CachedNode")

    def test_large_pool_of_a_random_generator(self, path):
        def as_dict(content):
            keys = [node("TypeNode", "builtins.str")] * len(content)
            names = node("ListNode", "builtins.list", content=keys)
            parts = {key: text(value) for key, value in content.items()}
            return node("DictNode", "builtins.dict", content=parts, key_types=names)

        seed = {"entropy": 1, "spawn_key": [], "pool_size": 300_000, "n_children_spawned": 0}
        content = {"seed_seq": as_dict(seed), "bit_generator": as_dict({"bit_generator": "PCG64"})}
        write_schema(
            path, node("RandomGeneratorNode", "numpy.random._generator.Generator", content=content)
        )
        assert_refused(path, "pool size")

    def test_object_array_over_one_node(self, path):
        items = [text(0) | {"__id__": 1}, *[{"__id__": 1}] * 700_000]
        shape = node("TupleNode", "builtins.tuple", content=[text(len(items))])
        crafted = node("NdArrayNode", "numpy.ndarray", type="json", content=items, shape=shape)
        write_schema(path, crafted)
        assert_refused(path, "number of values in the description")

    def test_one_member_used_many_times(self, path):
        array = node("NdArrayNode", "numpy.ndarray", type="numpy", file="0.npy")
        crafted = node("ListNode", "builtins.list", content=[array] * 300)
        write_schema(path, crafted, ("0.npy", npy_of(np.zeros(2**20))))
        assert_refused(path, "unpack to far more")

    def test_compressed_zeros(self, path):
        zeros = sp.csr_matrix((np.zeros(3 * 10**7), np.zeros(3 * 10**7, np.int32), [0, 3 * 10**7]))
        matrix = node(
            "SparseMatrixNode", "scipy.sparse._csr.csr_matrix", type="scipy", file="0.npz"
        )
        write_schema(path, matrix, ("0.npz", npz_of(zeros)))
        assert_refused(path, "unpack to far more")


class TestBothFormats:
    def test_many_members(self, path):
        path.write_bytes(zip_of((str(n), b"") for n in range(50_000)))
        assert_refused(path, "number of members")

    @pytest.mark.parametrize("start", [b"text", b"PK\x03\x04"])
    def test_large_file_with_holes(self, path, start):
        with open(path, "wb") as file:
            file.write(start)
            file.truncate(6 * 2**30)
        assert_refused(path)


class TestCurrentFormat:
    def header(self, root):
        return {"format": "seqlab-model", "version": 4, "model": "Tagger", "root": root}

    def write(self, path, root, *members, compression=zipfile.ZIP_STORED):
        content = json.dumps(self.header(root)).encode()
        path.write_bytes(zip_of([("seqlab.json", content), *members], compression))

    def test_deep_description(self, path):
        root = 1
        for _ in range(200):
            root = {"list": [root]}
        self.write(path, root)
        assert_refused(path, "nesting depth")
        root = "[" * 100_000 + "]" * 100_000
        path.write_bytes(zip_of([("seqlab.json", root.encode())]))
        assert_refused(path, "damaged")

    def test_many_values(self, path):
        self.write(path, {"list": [[]] * 600_000})
        assert_refused(path, "number of values")

    def test_description_of_zeros(self, path):
        content = b" " * (100 * 2**20)
        path.write_bytes(zip_of([("seqlab.json", content)], zipfile.ZIP_DEFLATED))
        assert_refused(path, "number of bytes in the description")

    def test_compressed_arrays(self, path):
        array = npy_of(np.zeros(9 * 2**20))
        root = {"array": ["<f8", "float64", [9 * 2**20]]}
        self.write(path, root, ("float64.npy", array), compression=zipfile.ZIP_DEFLATED)
        assert_refused(path, "would unpack to 75,")
        assert_refused(path, "number of bytes", limits=Limits(n_bytes=2**20))
        self.write(path, root, ("float64.npy", array), compression=zipfile.ZIP_BZIP2)
        assert_refused(path, "not stored as seqlab stores it")

    @pytest.mark.parametrize(
        "root",
        [
            {"array": ["<f8", "float64", [10**12]]},
            {"array": ["<f8", "float64", [-1]]},
            {"array": ["<f8", "float64", [2.0]]},
            {"array": ["|O", "float64", [2]]},
            {"array": ["<f8", "uint8", [2]]},
            {"array": ["<f8", "float64", [1]]},
            {"array": ["<U1", "float64", [2]]},
            {"list": [{"array": ["<f8", "float64", [2]]}] * 2},
            {"ref": 0},
            {"list": [{"list": [], "id": 0}, {"list": [], "id": 0}]},
            {"type": "os.system", "state": {}},
            {"type": "HMM", "state": {"predict": 1}},
            {"type": "HMM", "state": []},
            {"type": "Vocabulary", "state": {"blob": 1, "offsets": 2}},
            {"foreign": 0},
            {"foreign": -1},
            {"sparse": "dok_matrix", "shape": [1, 1]},
            {"objects": {"list": []}, "shape": [10**9]},
            {"strings": [], "of": "list"},
            {"unknown": 1},
            [1],
        ],
    )
    def test_wrong_descriptions(self, path, root):
        self.write(path, root, ("float64.npy", npy_of(np.zeros(2))))
        assert_refused(path)

    def test_unknown_members(self, path):
        save(LinearChainCRF(), path)
        path.write_bytes(zip_of([*members_of(path.read_bytes()), ("more.txt", b"1")]))
        assert_refused(path, "unknown member 'more.txt'")


def test_saving_warns_of_a_model_beyond_the_limits(path, monkeypatch):
    model = LinearChainCRF(class_weight={f"label {n}": 1.0 for n in range(300)})
    small = partial(Limits, n_nodes=100, n_header_bytes=1000)
    monkeypatch.setattr("seqlab.persistence._writer.Limits", small)
    with pytest.warns(
        UserWarning, match=r"pass limits=Limits\(n_header_bytes=\d+, n_nod"
    ) as caught:
        save(model, path)
    named = re.search(r"Limits\(n_header_bytes=(\d+), n_nodes=(\d+)\)", str(caught[0].message))
    n_bytes, n_nodes = map(int, named.groups())
    assert_refused(path, "number of values", limits=Limits(n_nodes=n_nodes - 1))
    assert_refused(path, "bytes in the description", limits=Limits(n_header_bytes=n_bytes - 1))
    limits = Limits(n_nodes=n_nodes, n_header_bytes=n_bytes)
    assert load(path, limits=limits).class_weight == model.class_weight


def test_limits_can_be_raised(path):
    model = LinearChainCRF(class_weight={f"label {n}": 1.0 for n in range(3000)})
    save(model, path)
    assert_refused(path, r"limits=Limits\(n_nodes=...\)", limits=Limits(n_nodes=1000))
    assert load(path, limits=Limits(n_nodes=20_000)).class_weight == model.class_weight
