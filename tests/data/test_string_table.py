"""String tables: agreement with a dict, growth, equal hashes, threads."""

import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqlab.data import InputError
from seqlab.data import _kernels as kernels
from seqlab.data import string_table as module
from seqlab.data.string_table import StringTable, pack

any_text = st.text(st.characters(exclude_categories=()), max_size=20)  # lone surrogates included
few_texts = st.text(st.sampled_from("ab\0é"), max_size=10)
bags = st.lists(st.lists(st.one_of(any_text, few_texts), min_size=1, max_size=6), max_size=8)


def count(some):
    return sum(map(len, some))


def slow_add(index, some):
    return [index.setdefault(name, len(index)) for bag in some for name in bag]


def slow_find(index, some):
    return [index.get(name, -1) for bag in some for name in bag]


def contents(table):
    data, bounds = bytes(table.blob), table.offsets.tolist()
    pieces = [data[a:b] for a, b in pairwise(bounds)]
    return [piece.decode("utf-8", "surrogatepass") for piece in pieces]


@settings(deadline=None)  # the first call compiles
@given(st.lists(bags, max_size=4), bags)
def test_agrees_with_a_dict(batches, others):
    table, index = StringTable(), {}
    for batch in batches:
        assert table.add(batch, count(batch)).tolist() == slow_add(index, batch)
    assert len(table) == len(index)
    assert contents(table) == list(index)
    for known in (table, StringTable.from_blob(table.blob, table.offsets)):
        for batch in [*batches, others]:
            assert known.find(batch, count(batch)).tolist() == slow_find(index, batch)


@settings(deadline=None)
@given(bags.filter(len))
def test_both_ways_of_splitting_give_the_same_hashes(some):
    some = [[name.replace("\0", "0") for name in bag] for bag in some]
    names = [name for bag in some for name in bag]
    batch = pack(some, len(names))
    sizes = [len(name.encode("utf-8", "surrogatepass")) for name in names]
    assert np.diff(batch.ends, prepend=-1).tolist() == [size + 1 for size in sizes]
    hashes = np.empty_like(batch.hashes)
    kernels.hash_strings(batch.data, batch.ends, 1, hashes)
    assert hashes.tolist() == batch.hashes.tolist()
    blob = "".join(names).encode("utf-8", "surrogatepass")
    data = module.padded(np.frombuffer(blob, np.uint8))
    kernels.hash_strings(data, np.cumsum(sizes), 0, hashes)
    assert hashes.tolist() == batch.hashes.tolist()
    assert hashes.min() >= 0
    assert hashes.max() < 2**31


def test_strings_of_every_length_that_differ_in_one_byte():
    names = ["x" * n for n in range(40)]
    names += ["x" * i + "y" + "x" * (n - i - 1) for n in range(1, 40) for i in range(n)]
    names += ["x" * n + "\0" * m for n in range(18) for m in range(1, 10)]
    table = StringTable()
    assert table.add([names], len(names)).tolist() == list(range(len(names)))
    assert table.find([names[::-1]], len(names)).tolist() == list(range(len(names)))[::-1]
    for first in range(0, len(names), 7):  # a prefix or suffix is a different string
        alone = StringTable()
        alone.add([[names[first]]], 1)
        found = alone.find([names], len(names))
        assert np.flatnonzero(found == 0).tolist() == [first]


def test_strings_with_equal_hashes():
    names = [f"w[{i % 5}]={i}" for i in range(300_000)]
    hashes = pack([names], len(names)).hashes
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(np.diff(hashes[order]) == 0)
    assert same.size >= 5  # 300,000 ** 2 / 2 / 2 ** 31 = 21 pairs are expected by chance
    for at in same.tolist():
        one, other = names[order[at]], names[order[at + 1]]
        table = StringTable()
        assert table.add([[one]], 1).tolist() == [0]
        assert table.find([[other, one]], 2).tolist() == [-1, 0]
        assert table.add([[other, one]], 2).tolist() == [1, 0]


def test_growth_in_many_batches():
    names = [f"{i}:{'é' * (i % 3)}" for i in range(20_000)]
    table = StringTable()
    for first in range(0, len(names), 150):
        part = names[max(first - 50, 0) : first + 150]
        start = max(first - 50, 0)
        assert table.add([part], len(part)).tolist() == list(range(start, start + len(part)))
    table.trim()
    assert contents(table) == names
    assert table.find([names], len(names)).tolist() == list(range(len(names)))
    more = [*names[-2:], "new"]
    assert table.add([more], 3).tolist() == [19_998, 19_999, 20_000]


def test_slots_stay_at_most_half_full():
    table = StringTable()
    for n in (1, 400, 511, 512, 513, 5000):
        table.add([[str(i) for i in range(n)]], n)
        assert 2 * len(table) <= table._slots.size


@pytest.mark.parametrize("bag", [["a", 3], [None], [b"a"], [["a"]]])
def test_nothing_is_added_if_an_entry_is_not_a_string(bag):
    table = StringTable()
    table.add([["a"]], 1)
    with pytest.raises(TypeError):
        table.add([["b"], bag], 1 + len(bag))
    with pytest.raises(TypeError):
        table.find([bag], len(bag))
    assert contents(table) == ["a"]


def test_no_strings():
    assert StringTable().add([], 0).tolist() == []
    empty = StringTable.from_blob(np.zeros(0, np.uint8), np.zeros(1, np.int64))
    assert empty.find([["", "a"]], 2).tolist() == [-1, -1]


def test_repeated_strings_of_a_blob_are_an_error():
    with pytest.raises(InputError, match="name 2 of a vocabulary occurs twice"):
        StringTable.from_blob(np.frombuffer(b"aba", np.uint8), np.array([0, 1, 2, 3]))


def test_threads_may_look_up_concurrently():
    names = [f"name {i}" for i in range(5_000)]
    table = StringTable()
    table.add([names], len(names))
    expected = [*range(5_000), -1]
    results = {}

    def read(k):
        results[k] = [table.find([[*names, "?"]], 5_001).tolist() for _ in range(5)]

    threads = [threading.Thread(target=read, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found == expected for k in range(4) for found in results[k])
