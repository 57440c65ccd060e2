"""StripDisplay: positions, colours, underlined errors."""

from __future__ import annotations

import numpy as np
import pytest

from seqlab import LinearChainCRF
from seqlab.data.errors import InputError
from seqlab.inspection import StripDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")

GOLD = [["t"] * 8 + ["s"] * 4, np.array(["t", "s"])]
FOUND = [["t"] * 9 + ["s"] * 3, np.array(["t", "s"])]


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


def spans(collection):
    return [
        (path.vertices[:, 0].min(), path.vertices[:, 0].max()) for path in collection.get_paths()
    ]


def test_bars_match_the_runs():
    display = StripDisplay.from_predictions(GOLD, FOUND)
    assert display.figure_ is display.ax_.figure
    drawn = [spans(bars) for bars in display.bars_]
    assert drawn == [
        [(0, 8)], [(8, 12)], [(0, 9)], [(9, 12)], [(0, 1)], [(1, 2)], [(0, 1)], [(1, 2)]
    ]  # fmt: skip
    red = [c for c in display.ax_.collections if c not in display.bars_]
    assert [spans(c) for c in red] == [[(8, 9)]]
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["gold", "predicted"] * 2
    assert [t.get_text() for t in display.ax_.get_legend().get_texts()] == ["t", "s"]
    assert display.ax_.get_xlim() == (0, 12)
    display.figure_.canvas.draw()


def test_a_label_has_the_same_colour_in_all_rows():
    display = StripDisplay.from_predictions(GOLD, {"a": FOUND, "b": GOLD}, errors=False)
    by_label = [tuple(bars.get_facecolor()[0]) for bars in display.bars_]
    assert len(set(by_label)) == 2
    assert by_label[::2] == [by_label[0]] * 6
    assert len(display.ax_.collections) == len(display.bars_)


def test_hatches_if_there_are_more_labels_than_colours():
    many = [[f"label {k}" for k in range(25)]]
    display = StripDisplay.from_predictions(many, many)
    looks = [(tuple(bars.get_facecolor()[0]), bars.get_hatch()) for bars in display.bars_]
    assert looks[:25] == looks[25:]  # gold and predicted
    assert len(set(looks)) == 25
    legend = display.ax_.get_legend()
    by_label = {
        text.get_text(): (tuple(patch.get_facecolor()), patch.get_hatch())
        for text, patch in zip(legend.get_texts(), legend.get_patches(), strict=True)
    }
    assert [by_label[label] for label in many[0]] == looks[:25]


def test_single_error_is_visible_in_a_long_sequence():
    """One wrong step in 100,000 is much thinner than a pixel, but still red in the picture."""
    gold = ["t"] * 100_000
    found = [*gold[:50_000], "s", *gold[50_001:]]
    display = StripDisplay.from_predictions([gold], [found])
    display.figure_.canvas.draw()
    red, green, blue = np.asarray(display.figure_.canvas.buffer_rgba(), dtype=int)[..., :3].T
    assert ((red - green > 60) & (red - blue > 60)).any()


def test_ticks_are_integers():
    display = StripDisplay.from_predictions([["t", "s", "t"]], [["t", "t", "t"]])
    assert all(tick == int(tick) for tick in display.ax_.get_xticks())


def test_from_estimator_on_given_axes():
    X = [[["a"], ["b"]], [["a"]]]
    y = [["t", "s"], ["t"]]
    crf = LinearChainCRF(c2=0.1).fit(X, y)
    _, ax = pyplot.subplots()
    display = StripDisplay.from_estimator(
        crf, X, y, ax=ax, names=["one", "two"], labels=["s", "t"], max_sequences=1
    )
    assert display.ax_ is ax
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["s", "t"]
    assert "one" in [t.get_text() for t in ax.texts]
    assert "two" not in [t.get_text() for t in ax.texts]


def test_invalid_input():
    with pytest.raises(InputError, match="gold has 2 sequences but predicted has 1"):
        StripDisplay.from_predictions(GOLD, FOUND[:1])
    with pytest.raises(InputError, match="gold has 2 sequences but predicted has 1"):
        StripDisplay.from_predictions(GOLD, FOUND[:1], max_sequences=1)
    with pytest.raises(InputError, match=r"gold\[0\] is 'text', not a sequence of labels"):
        StripDisplay.from_predictions(["text", "sig"], ["text", "text"])
    with pytest.raises(InputError, match=r"gold\[0\] has 12 labels but predicted\[0\] has 11"):
        StripDisplay.from_predictions(GOLD, [FOUND[0][:-1], FOUND[1]])
    with pytest.raises(InputError, match="no sequence to draw"):
        StripDisplay.from_predictions([], [])
    with pytest.raises(InputError, match="does not contain the label 's'"):
        StripDisplay.from_predictions(GOLD, FOUND, labels=["t"])
    with pytest.raises(InputError, match="2 sequences but 1 names"):
        StripDisplay.from_predictions(GOLD, FOUND, names=["one"])
