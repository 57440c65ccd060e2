"""Damaged text files: every reader gives a typed error or data; ``make fuzz`` tries many more."""

from __future__ import annotations

import io
import random

import pytest

from hostile_text import FRAGMENTS, TARGETS, check_case
from seqlab.data.errors import SeqlabError
from seqlab.data.io import read_conll
from seqlab.data.io.streams import iter_line_blocks


@pytest.mark.parametrize("name", TARGETS)
def test_random_damage_gives_typed_errors(name):
    found = [check_case(name, seed) for seed in range(200)]
    assert {"read", "typed error"} == set(found)


@pytest.mark.parametrize("name", TARGETS)
def test_each_fragment_at_each_place(name):
    n_typed = 0
    for text in TARGETS[name].texts:
        for number, fragment in enumerate(FRAGMENTS):
            draw = random.Random(number)
            for at in {0, len(text), draw.randrange(len(text))}:
                content = (text[:at] + fragment + text[at:]).encode("utf-8", "surrogatepass")
                try:
                    TARGETS[name].read(content, draw)
                except SeqlabError:
                    n_typed += 1
    assert n_typed


def test_a_line_of_many_blocks_is_joined_once():
    class Pieces(io.TextIOBase):
        """Text that arrives in small pieces, as from a pipe."""

        def __init__(self):
            self.left = 200_000

        def read(self, size=-1):
            self.left -= 1
            return "a" * 20 if self.left > 0 else " X\r\nb Y" if self.left == 0 else ""

    # Joining at every piece would copy 400 GB.
    (first, second) = [line for lines in iter_line_blocks(Pieces()) for line in lines]
    assert first == "a" * 20 * 199_999 + " X"
    assert second == "b Y"
    X, y = read_conll(Pieces())
    assert [len(word) for (word,) in X[0]] == [20 * 199_999, 1]
    assert y == [["X", "Y"]]


@pytest.mark.parametrize("cut", range(1, 8))
def test_line_ends_may_be_split_between_blocks(cut):
    text = "a X\r\nb Y\r\n\r\nc Z"
    pieces = [text[:cut], text[cut : cut + 1], text[cut + 1 :], ""]

    class Pieces(io.TextIOBase):
        def read(self, size=-1):
            return pieces.pop(0)

    lines = [line for block in iter_line_blocks(Pieces()) for line in block]
    assert lines == ["a X", "b Y", "", "c Z"]
