"""Plots: what is drawn on which axes; matplotlib is imported on demand."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from seqlab import IndependentLabeler, LinearChainCRF, StructuredPerceptron, Tagger
from seqlab.data.errors import InputError
from seqlab.inspection import ConfusionDisplay, HistoryDisplay, TransitionDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
pyplot = pytest.importorskip("matplotlib.pyplot")  # `use` does not import it

X = [[["w=a"], ["w=b"], ["w=c"]], [["w=a"], ["w=c"]]]
Y = [["B-X", "I-X", "O"], ["B-X", "O"]]


@pytest.fixture(autouse=True)
def _close():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def crf():
    return LinearChainCRF(c2=0.1).fit(X, Y)


def test_transitions(crf):
    display = TransitionDisplay.from_estimator(crf)
    assert display.figure_ is display.ax_.figure
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == [
        "<start>", "B-X", "I-X", "O"
    ]  # fmt: skip
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == [
        "B-X", "I-X", "O", "<end>"
    ]  # fmt: skip
    assert display.weights[0, 0] == crf.start_[0]
    assert display.weights[1, 1] == crf.transitions_[0, 1]
    assert np.isnan(display.weights[0, 3])
    assert display.image_.get_clim()[0] == -display.image_.get_clim()[1]


def test_transitions_of_selected_labels_on_given_axes(crf):
    _, ax = matplotlib.pyplot.subplots()
    tagger = Tagger(None, LinearChainCRF(c2=0.1)).fit(X, Y)
    display = TransitionDisplay.from_estimator(
        tagger, labels=["O", "B-X"], boundary=False, ax=ax, colorbar=False, values=False
    )
    assert display.ax_ is ax
    assert display.weights.shape == (2, 2)
    assert display.weights[1, 0] == tagger.labeler_.transitions_[0, 2]
    assert not ax.texts
    with pytest.raises(InputError, match="the model has no label 'Z'"):
        TransitionDisplay.from_estimator(crf, labels=["Z"])
    with pytest.raises(InputError, match="no transitions"):
        TransitionDisplay.from_estimator(IndependentLabeler().fit(X, Y))


def test_history_with_gap(crf):
    display = HistoryDisplay.from_estimator(crf)
    xs, objective = display.line_.get_data()
    assert list(xs) == crf.history_["iteration"]
    assert list(objective) == crf.history_["objective"]
    assert display.gap_ax_.get_yscale() == "log"
    assert display.gap_ax_.get_xlabel() == "iteration"


def test_history_over_seconds_without_gap():
    model = StructuredPerceptron(random_state=0, max_iter=3).fit(X, Y)
    display = HistoryDisplay.from_estimator(Tagger(None, model).fit(X, Y), x="seconds")
    assert display.gap_ax_ is None
    assert display.ax_.get_xlabel() == "seconds"
    with pytest.raises(InputError, match="'iteration' or 'seconds'"):
        HistoryDisplay.from_estimator(model, x="hours")
    with pytest.raises(InputError, match="no training history"):
        HistoryDisplay.from_estimator(IndependentLabeler().fit(X, Y))


@pytest.mark.parametrize("normalize", [True, False])
def test_confusions(crf, normalize):
    y_pred = [["B-X", "O", "O"], ["B-X", "O"]]
    display = ConfusionDisplay.from_predictions(Y, y_pred, normalize=normalize)
    assert display.labels == ["B-X", "I-X", "O"]
    assert display.matrix.tolist() == [[2, 0, 0], [0, 0, 1], [0, 0, 2]]
    assert sorted(text.get_text() for text in display.ax_.texts) == ["1", "2", "2"]
    assert display.ax_.get_ylabel() == "gold"
    same = ConfusionDisplay.from_estimator(crf, X, Y)
    assert same.matrix.trace() == 5


def test_no_numbers_in_cells_with_many_labels():
    names = [f"L{k:02d}" for k in range(30)]
    display = ConfusionDisplay.from_predictions([names], [names])
    assert not display.ax_.texts


def test_matplotlib_is_imported_on_demand_and_named_if_missing():
    code = (
        "import sys\nimport seqlab.inspection as i\n"
        "assert 'matplotlib' not in sys.modules\n"
        "sys.modules['matplotlib'] = None\n"
        "import numpy as np\n"
        "try:\n    i.ConfusionDisplay(np.eye(2), ['a', 'b']).plot()\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'seqlab[report]'" in done.stdout
