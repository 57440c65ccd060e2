"""Data, systems and cached runs of the experiments with relational features."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from statistics import stdev
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from seqlab.datasets import fetch_kasteren
from seqlab.kernels import SubsequenceKernel, merge_equal_rows
from seqlab.kernels.subsequence_patterns import count_subsequences, list_subsequences
from seqlab.metrics import macro_recall
from seqlab.models.crf import LinearChainCRF
from seqlab.models.hmm import HMM
from seqlab.models.structured_svm import StructuredSVM
from seqlab.relational.hkl import StructHKL
from seqlab.relational.pattern_hkl import PatternHKL
from seqlab.relational.trees.boosted_crf import RelationalBoostedCRF

Floats = NDArray[np.float64]
N_PARTS = 4
N_SLICES_COMPILED = 50
N_COMPOSITE = 20  # windows whose composite features are listed
TOL = 0.01  # relative duality gap of every margin model, at most
# At a gap of 1 %, two solvers found models whose accuracies on the same days differed by up to 7 points.
SVM_TOL = 0.001


class Setting(NamedTuple):
    """What training days choose: parameters of the learner, and a coding of the slices.

    Attributes
    ----------
    params : dict
    has_constant : bool
        Whether every slice has a feature that is always on.
    """

    params: dict[str, Any]
    has_constant: bool = False


class System(NamedTuple):
    """A learner under test.

    Attributes
    ----------
    make : function
        Returns the unfitted labeler.
    settings : list of Setting
        The choice, from the strongest regularisation to the weakest.
    takes_best : bool
        Take the setting with the best accuracy on left-out training days, instead of the first one whose
        accuracy is at most one standard error below it.
    """

    make: Callable[[], Any]
    settings: list[Setting]
    takes_best: bool = False


def _svm(**options: Any) -> Any:
    return StructuredSVM(solver="1-slack", tol=SVM_TOL, **options)


def _kernel(anchor: str) -> SubsequenceKernel:
    return SubsequenceKernel(max_length=3, decay=0.75, window=(5, 5), anchor=anchor)


def _rescaled_svm(rescaling: str, **options: Any) -> Any:
    """Return a learner for a comparison of the two forms of the loss, with the same solver for both."""
    return StructuredSVM(
        rescaling=rescaling, solver="cutting_plane", tol=TOL, random_state=0, **options
    )


def _tilde_crf(**options: Any) -> Any:
    """Trees that test single sensors, and queries with one or more variables for sensors."""
    modes = ["on(#sensor)", "on(+-sensor)"]
    small: dict[str, Any] = {"max_leaf_nodes": 8, "learning_rate": 0.2}
    return RelationalBoostedCRF(window=(5, 5), modes=modes, **small, **options)


VALUES_OF_C = (0.001, 0.01, 0.1, 1.0)
_MARGIN = [Setting({"C": C}) for C in VALUES_OF_C]
# With a constant feature, slices without an active sensor are compared by their neighbours.
_KERNEL = [Setting({"C": C}, has_constant) for C in VALUES_OF_C for has_constant in (False, True)]
# Slack rescaling takes too long for a search: both forms have this C.
RESCALING_C = 0.1
_ROUNDS = [Setting({"max_iter": n}) for n in (5, 10, 20, 50)]
_NOTHING = [Setting({})]

SYSTEMS: dict[str, System] = {
    "tildecrf": System(_tilde_crf, _ROUNDS),
    "hmm": System(partial(HMM, emissions="bernoulli"), _NOTHING),
    "crf": System(LinearChainCRF, _NOTHING),
    "structsvm": System(_svm, _MARGIN),
    "subseqsvm": System(partial(_svm, kernel=_kernel("pivot")), _KERNEL),
    "subseqsvm-plain": System(partial(_svm, kernel=_kernel("plain")), _KERNEL),
    **{
        f"{name}{form}-rescaling": System(
            partial(_rescaled_svm, form, kernel=kernel), [Setting({"C": RESCALING_C})]
        )
        for form in ("margin", "slack")
        for name, kernel in (("", "linear"), ("subseqsvm-", _kernel("pivot")))
    },
    "structhkl": System(partial(StructHKL, tol=TOL), _MARGIN),
    "patternhkl": System(partial(PatternHKL, tol=TOL), _MARGIN),
}
FIVE_SYSTEMS = ("tildecrf", "structsvm", "structhkl", "patternhkl", "subseqsvm")
SYSTEMS |= {f"{name}-best": SYSTEMS[name]._replace(takes_best=True) for name in FIVE_SYSTEMS}
"""The systems of the tables, by name. Further ones are one line each."""


class Run(NamedTuple):
    """Result of training and testing once.

    Attributes
    ----------
    micro, macro : float
        Slices with the right label, and the mean over the activities in the test part of their recalls, in
        percent.
    cpu_seconds : float
        Processor time of training with the chosen setting, on one thread.
    gap : float
        Relative duality gap in percent; NaN if the model has none.
    setting : Setting
        What the training days chose.
    gold, predicted : list of arrays
        Labels of the test days.
    """

    micro: float
    macro: float
    cpu_seconds: float
    gap: float
    setting: Setting
    gold: list[Any]
    predicted: list[Any]


@cache
def load_home(coding: str, has_constant: bool) -> tuple[list[Any], list[Any]]:
    """Load the days; ``coding`` is "raw" or "change+last"."""
    X, y = fetch_kasteren(features=coding.split("+"), return_X_y=True)
    if has_constant:
        X = [np.hstack([x, np.ones((x.shape[0], 1))]) for x in X]
    return X, y


def training_days(protocol: str, n_days: int) -> list[list[int]]:
    """Return the training days of every fold.

    "contiguous": each quarter of the days in turn; "shifted": the same, beginning half a quarter later, with
    the first days after the last ones; "interleaved": every fourth day; "day": all days but one.
    """
    days = np.arange(n_days)
    if protocol == "contiguous":
        return [part.tolist() for part in np.array_split(days, N_PARTS)]
    if protocol == "shifted":
        shifted = np.roll(days, -(n_days // (2 * N_PARTS)))
        return [part.tolist() for part in np.array_split(shifted, N_PARTS)]
    if protocol == "interleaved":
        return [days[first::N_PARTS].tolist() for first in range(N_PARTS)]
    return [np.delete(days, day).tolist() for day in days]


@cache
def run(protocol: str, coding: str, name: str, fold: int) -> Run:
    """Train a system on the training days of a fold, and test it on the other days."""
    setting = choose_setting(protocol, coding, name, fold)
    X, y = load_home(coding, setting.has_constant)
    train = training_days(protocol, len(X))[fold]
    test = [day for day in range(len(X)) if day not in train]
    model = SYSTEMS[name].make().set_params(**setting.params)
    little = [x[:N_SLICES_COMPILED] for x in X], [one[:N_SLICES_COMPILED] for one in y]
    _fit(clone(model), *little, train)  # compiles what is not part of the measured time
    began = time.process_time()
    _fit(model, X, y, train)
    seconds = time.process_time() - began
    gold = [y[day] for day in test]
    predicted = model.predict([X[day] for day in test])
    return Run(*score(gold, predicted), seconds, _relative_gap(model), setting, gold, predicted)


def _relative_gap(model: Any) -> float:
    """Return the duality gap of a trained model in percent of its objective; NaN if it has none."""
    history = getattr(model, "history_", {})
    return 100.0 * history["gap"][-1] / history["objective"][-1] if "gap" in history else math.nan


def _fit(model: Any, X: list[Any], y: list[Any], days: list[int]) -> Any:
    """Train; a margin model that does not reach its gap is an error."""
    with warnings.catch_warnings():
        if not isinstance(model, RelationalBoostedCRF):  # which has a fixed number of rounds
            warnings.simplefilter("error", ConvergenceWarning)
        return model.fit([X[day] for day in days], [y[day] for day in days])


@cache
def search(protocol: str, coding: str, name: str, fold: int) -> Floats:
    """Return the accuracies of the settings (rows) on left-out training days (columns)."""
    system = SYSTEMS[name]
    found = []
    for setting in system.settings:
        X, y = load_home(coding, setting.has_constant)
        train = training_days(protocol, len(X))[fold]
        model = system.make().set_params(**setting.params)
        scores = []
        for left_out in train:
            _fit(model, X, y, [day for day in train if day != left_out])
            scores.append(model.score([X[left_out]], [y[left_out]]))
        found.append(scores)
    return np.array(found, dtype=np.float64)


def choose_setting(protocol: str, coding: str, name: str, fold: int) -> Setting:
    """Return the setting chosen on the training days, by the rule of the system."""
    system = SYSTEMS[name]
    if len(system.settings) == 1:
        return system.settings[0]
    scores = search(protocol, coding, name.removesuffix("-best"), fold)
    means = scores.mean(axis=1)
    best = int(means.argmax())
    if not system.takes_best:
        error = scores[best].std(ddof=1) / np.sqrt(scores.shape[1])
        best = int(np.argmax(means >= means[best] - error))
    return system.settings[best]


def score(gold: list[Any], predicted: list[Any]) -> tuple[float, float]:
    """Return micro and macro accuracy, in percent."""
    right: NDArray[np.bool_] = np.concatenate(gold) == np.concatenate(predicted)
    return 100.0 * float(right.mean()), 100.0 * macro_recall(gold, predicted)


def measure_folds(value: str, protocol: str, coding: str, name: str) -> list[float]:
    """Return one value of every fold of a protocol with four folds."""
    return [getattr(run(protocol, coding, name, fold), value) for fold in range(N_PARTS)]


def measure_days(value: str, coding: str, name: str) -> float:
    """Return micro or macro accuracy over all days, each predicted by a model trained on the others."""
    X, _ = load_home(coding, False)
    runs = [run("day", coding, name, fold) for fold in range(len(X))]
    gold = [one.gold[0] for one in runs]
    predicted = [one.predicted[0] for one in runs]
    return score(gold, predicted)[0 if value == "micro" else 1]


def measure_majority(value: str, protocol: str) -> list[float]:
    """Return the accuracy of always predicting the most frequent activity of the training days."""
    _, y = load_home("raw", False)
    out = []
    for train in training_days(protocol, len(y)):
        labels, counts = np.unique(np.concatenate([y[day] for day in train]), return_counts=True)
        gold = [y[day] for day in range(len(y)) if day not in train]
        found = score(gold, [np.full(one.size, labels[counts.argmax()]) for one in gold])
        out.append(found[0 if value == "micro" else 1])
    return out


@cache
def _train_on_all_slices() -> dict[str, float]:
    X, y = load_home("raw", True)
    model = SYSTEMS["subseqsvm"].make().set_params(C=0.1)
    began = time.process_time()
    _fit(model, X, y, list(range(len(X))))
    seconds = time.process_time() - began
    return {"cpu": seconds, "gap": _relative_gap(model)}


def measure_all_slices(value: str) -> float:
    """Return what training SubseqSVM on all days takes, or how well it converges.

    "cpu": processor time; "gb": largest memory of the process so far; "gap": relative duality gap in percent.
    """
    values = _train_on_all_slices()
    return _peak_gigabytes() if value == "gb" else values[value]


def _peak_gigabytes() -> float:
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e9 * (1 if sys.platform == "darwin" else 1024)  # bytes there, else kilobytes


def measure_spread(protocol: str, coding: str, name: str) -> float:
    """Return the standard deviation of the micro accuracy over the folds."""
    return stdev(measure_folds("micro", protocol, coding, name))


def measure_composite_features(conjunctions: bool) -> float:
    """Return the largest difference of the kernel from the inner product of all composite features.

    Composite features are ordered conjunctions of sensors in the window of a slice, of several sensors at
    the same slice too. They are listed for windows with two or three active sensors in a slice; the
    kernel is not normalised.
    """
    X, _ = load_home("raw", False)
    options: dict[str, Any] = {"decay": 0.75, "window": (2, 2), "normalize": False}
    every = SubsequenceKernel(max_length=3, conjunctions=True, **options)
    windows = merge_equal_rows(every.windows(X)).rows
    n_active = (
        windows.reshape(windows.shape[0], every.step_order().size, -1).sum(axis=2).max(axis=1)
    )
    windows = windows[(n_active == 2) | (n_active == 3)][:N_COMPOSITE]
    found = {one: None for window in windows for one in list_subsequences(every, window)}
    features = count_subsequences(every, windows, list(found))
    kernel = SubsequenceKernel(max_length=3, conjunctions=conjunctions, **options)
    values = kernel(windows)
    return float(np.abs(values - features @ features.T).max() / np.abs(features @ features.T).max())
