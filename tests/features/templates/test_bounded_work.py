"""Templates of unknown origin: time and memory are bounded, whatever a line contains."""

from __future__ import annotations

import random

import numpy as np
import pytest

from seqlab.data.errors import InputError
from seqlab.features import Templates
from seqlab.features._wapiti_regex import WapitiRegex
from seqlab.features.templates import _collisions
from seqlab.features.templates._collisions import cluster_templates

TOKENS = [["a", "b"]]


def backtrack(regex, text):
    """The matched part of a text, by trying all possibilities in order of preference."""

    def match(element, at):
        if element == len(regex._elements):
            return at if not regex._at_end or at == len(text) else None
        accepts, repeat = regex._elements[element]
        fits = at < len(text) and accepts(text[at])
        if repeat == "*":  # as few as possible
            end = match(element + 1, at)
            return match(element, at + 1) if end is None and fits else end
        end = match(element + 1, at + 1) if fits else None
        return match(element + 1, at) if end is None and repeat == "?" else end

    for start in range(1 if regex._at_start else len(text) + 1):
        end = match(0, start)
        if end is not None:
            return text[start:end]
    return None


def test_regular_expressions_match_what_backtracking_matches():
    draw = random.Random(0)
    n_matches = 0
    for _ in range(3000):
        atoms = draw.choices(["a", "b", ".", r"\d", r"\u", r"\W"], k=draw.randrange(6))
        pattern = "".join(atom + draw.choice(["", "*", "?"]) for atom in atoms)
        pattern = draw.choice(["", "", "^"]) + pattern + draw.choice(["", "", "$"])
        text = "".join(draw.choices("ab1A-", k=draw.randrange(8)))
        regex = WapitiRegex(pattern)
        found = regex.search(text)
        assert found == backtrack(regex, text), (pattern, text)
        n_matches += found is not None
    assert 1000 < n_matches < 2900


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a?" * 40 + "a" * 40, "a" * 40, "a" * 40),  # 2 ** 40 ways to match
        ("a*" * 40 + "b", "a" * 200, None),
        (".?" * 5000 + "$", "a" * 5000, "a" * 5000),  # deeper than the stack of Python
    ],
    ids=["optional", "repeated", "long"],
)
def test_regular_expressions_need_linear_time(pattern, text, found):
    assert WapitiRegex(pattern).search(text) == found


@pytest.mark.parametrize(
    "line",
    [
        "U:%x[100000000,0]",
        "U:%x[-1001,0]",
        "u:%x[@4611686018427387904,0]",
        "u:%x[*4611686018427387904,0]",
        f"U:%x[{'9' * 5000},0]",
        f"U:%x[0,{'9' * 5000}]",
        (10**8, 0),
        (0, 2**70),
    ],
)
def test_numbers_out_of_range_are_input_errors(line):
    with pytest.raises(InputError, match=r"at most|reads column"):
        Templates([line]).fit(TOKENS)


def test_largest_distance_and_positions():
    names = Templates(["U:%x[1000,0]"]).fit(TOKENS).get_feature_names_out()
    assert names.tolist() == ["U:_B+999", "U:_B+1000"]
    far = Templates(["u:%x[@1000000000,0]/%x[@-1000000000,0]"]).fit(TOKENS)
    assert far.get_feature_names_out().tolist() == ["u:_x+#/_x-#"]


def test_distance_in_a_column_may_have_thousands_of_digits():
    tokens = [[("a", "9" * 5000), ("b", "-" + "0" * 5000 + "1"), ("c", "+")]]
    names = Templates(["u:%x[*1,0]"]).fit(tokens).get_feature_names_out()
    assert sorted(names.tolist()) == ["u:_x+#", "u:a", "u:c"]


@pytest.mark.parametrize("line", ["U:%x[" + " " * 200_000 + "0,0]", "U:%x[" + " " * 200_000 + "x"])
def test_blanks_in_a_placeholder(line):
    if line.endswith("x"):
        with pytest.raises(InputError, match="cannot read"):
            Templates([line]).fit(TOKENS)
    else:
        assert Templates([line]).fit(TOKENS).n_features_out_ == 2


def can_collide(a, b):
    """Whether two templates could produce the same text, pair by pair."""
    if a[1] is None and b[1] is None:
        return a[0] == b[0]
    if a[1] is None or b[1] is None:
        (text, _), (begin, end) = (a, b) if a[1] is None else (b, a)
        return text.startswith(begin) and text.endswith(end)
    begins, ends = (sorted(pair, key=len) for pair in zip(a, b, strict=True))
    return begins[1].startswith(begins[0]) and ends[1].endswith(ends[0])


def random_templates(n_cases):
    """Lists of short templates, and which pairs of them can collide."""
    draw = random.Random(0)

    def text():
        return "".join(draw.choices("ab", k=draw.randrange(5)))

    for _ in range(n_cases):
        templates = [
            (text(), None if draw.random() < 0.2 else text()) for _ in range(draw.randrange(1, 9))
        ]
        yield templates, np.array([[can_collide(a, b) for b in templates] for a in templates])


def test_clusters_are_the_connected_components_of_collisions():
    for templates, related in random_templates(1000):
        n = len(templates)
        reachable = np.linalg.matrix_power(related.astype(int) + np.eye(n, dtype=int), n) > 0
        assert cluster_templates(templates) == reachable.argmax(axis=1).tolist(), templates


def test_clusters_of_deeply_nested_beginnings_hold_all_collisions(monkeypatch):
    monkeypatch.setattr(_collisions, "MAX_NESTED", 2)
    n_coarser = 0
    for templates, related in random_templates(500):
        found = np.array(cluster_templates(templates))
        is_together = found[:, None] == found[None, :]
        assert not (related & ~is_together).any(), templates
        n_coarser += int(is_together.sum() > related.sum())
    assert n_coarser > 50


@pytest.mark.parametrize(
    "line", ["U<%x[0,0]", "U%x[0,0]>", "U<%x[0,0]>", "U<:%x[0,0]/%x[0,0]>", "U<%x[0,0]%x[1,0]"]
)
def test_thousands_of_nested_templates(line):
    lines = [line.replace("<", "a" * k).replace(">", "b" * k) for k in range(2000)]
    names = Templates(lines).fit([["x"]]).get_feature_names_out()
    expected = [text.replace("%x[0,0]", "x").replace("%x[1,0]", "_B+1") for text in lines]
    assert sorted(names) == sorted(expected)


@pytest.mark.parametrize("line", ["U{}:%x[0,0]", "U:%x[0,0]{}", "U{}:%x[0,0]{}"])
def test_thousands_of_templates(line):
    lines = [line.replace("{}", str(number)) for number in range(10_000)]
    assert Templates(lines).fit(TOKENS).n_features_out_ >= 2 * len(lines) - 1000
