"""Label strips."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.style import Style

from seqlab.inspection import LabelStrip
from seqlab.inspection.terminal import PALETTE, assign_colours, confidence_style, phrase_type


def shown(strip, width=60, color=None):
    out = io.StringIO()
    Console(file=out, width=width, color_system=color, force_terminal=color is not None).print(
        strip
    )
    return out.getvalue()


def test_phrases_and_confidence():
    strip = LabelStrip(
        ["12", "Main", "St", ",", "Rome"],
        ["B-No", "B-Street", "I-Street", "O", "B-City"],
        [0.99, 0.95, 0.7, 1.0, 0.3],
    )
    assert shown(strip).splitlines() == [
        "12    Main St  ,  Rome",
        "━━    ━━━━ ╍╍     ┈┈┈┈",
        "No    Street      City",
        "99%   70%         30%",
    ]


def test_plain_labels_without_confidence():
    text = shown(LabelStrip(["the", "dog"], ["DET", "NOUN"]))
    assert text.splitlines() == ["the   dog", "━━━   ━━━", "DET   NOUN"]


def test_adjacent_phrases_of_one_type_are_separate():
    lines = shown(LabelStrip(["a", "b"], ["B-NP", "B-NP"])).splitlines()
    assert lines[2].split() == ["NP", "NP"]
    joined = shown(LabelStrip(["a", "b"], ["B-NP", "I-NP"])).splitlines()
    assert joined[2].split() == ["NP"]
    apart = shown(LabelStrip(["a", "b"], ["B-NP", "I-VP"])).splitlines()
    assert apart[2].split() == ["NP", "VP"]


def test_long_sequences_continue_below():
    words = [f"word{k}" for k in range(30)]
    text = shown(LabelStrip(words, ["B-X"] * 30), width=40)
    assert all(len(line) <= 40 for line in text.splitlines())
    assert text.count("\n\n") >= 5
    assert all(word in text for word in words)


def test_wide_characters_are_aligned():
    lines = shown(LabelStrip(["東京", "x"], ["B-City", "O"])).splitlines()
    assert lines[1].startswith("━━━━")


def test_empty_sequence():
    assert shown(LabelStrip([], [])).strip() == ""


def test_markup_in_words_is_not_interpreted():
    assert "[bold]" in shown(LabelStrip(["[bold]"], ["O"]))


def test_colours_are_deterministic_and_valid():
    assert assign_colours(["I-B", "B-A", "O", "B-B"]) == {"A": PALETTE[0], "B": PALETTE[1]}
    for name in (*PALETTE, confidence_style(0.95), confidence_style(0.7), confidence_style(0.1)):
        assert Style.parse(name).color is not None
    assert "\x1b[" in shown(LabelStrip(["a"], ["B-A"], [0.4]), color="256")


@pytest.mark.parametrize(
    ("label", "kind"),
    [("B-NP", "NP"), ("I-NP-SBJ", "NP-SBJ"), ("O", ""), ("NOUN", "NOUN"), ("X-Y", "X-Y")],
)
def test_phrase_type(label, kind):
    assert phrase_type(label) == kind
