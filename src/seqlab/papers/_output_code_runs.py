"""Data, learners and cached runs of the experiments with output codes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from seqlab.data.sequences import Sequences
from seqlab.datasets import fetch_conll2000, fetch_nettalk, make_hmm_sequences
from seqlab.features import SequenceVectorizer, Templates, Window
from seqlab.meta.output_code import SequentialOutputCode
from seqlab.models.boosted_crf import BoostedCRF
from seqlab.models.crf import LinearChainCRF
from seqlab.models.perceptron import StructuredPerceptron

N_WORDS = 1000
N_SENTENCES = 8936  # training part of CoNLL-2000
N_SYNTHETIC, SYNTHETIC_LENGTH = 100, 50
CODE_LENGTH = 200
# Passes of perceptrons: 20 for words and drawn sequences, fewer for the 211,727 tokens of "npc".
PASSES = {"npc": 5}
DEFAULT_PASSES = 20
# Columns of the codes for "npc", where a column takes more than a second.
CODE_LENGTHS = {"npc": 100}
# Divides the scores of the exact perceptron before forward-backward, for a data set and window; else 1.
# Chosen on other words; the scores of more features are larger.
VP_TEMPERATURES = {("nettalk", 3): 2.0}
GTB_ROUNDS, GTB_RATE = 20, 0.3
# Leaves of a tree: large trees overfit the 5,000 steps of the drawn sequences.
GTB_LEAVES = {"nettalk": 60}
DEFAULT_LEAVES = 20


class Split(NamedTuple):
    """Training and test part of a data set."""

    X_train: Sequences
    y_train: list[Any]
    X_test: Sequences
    y_test: list[Any]


class Run(NamedTuple):
    """Result of training and testing once.

    Attributes
    ----------
    accuracy : float
        Steps of the test part with the right label, in percent.
    cpu_seconds : float
        Processor time of training, on one thread.
    details : dict
        Further facts about the fitted model.
    """

    accuracy: float
    cpu_seconds: float
    details: dict[str, Any]


@cache
def load(data: str, window: int, seed: int) -> Split:
    """Load a data set with the features of the steps in a window (1: the step alone)."""
    if data == "nettalk":
        words, y = fetch_nettalk(
            n_train=N_WORDS, n_test=N_WORDS, random_state=seed, return_X_y=True
        )
        n_train, X = N_WORDS, _one_hot(words)
    elif data == "npc":
        sentences, y = fetch_conll2000(task="pos-np", subset="all", return_X_y=True)
        n_train, X = N_SENTENCES, _one_hot(sentences)
    else:
        drawn, y = make_hmm_sequences(
            2 * N_SYNTHETIC,
            SYNTHETIC_LENGTH,
            preset=data,
            encoding="sparse",
            random_state=seed,
            return_X_y=True,
        )
        n_train, X = N_SYNTHETIC, Sequences.from_list(drawn)
    if window > 1:
        X = Window(before=window // 2, after=window // 2).fit_transform(X)
    return Split(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def _one_hot(sequences: list[Any]) -> Sequences:
    return SequenceVectorizer().fit_transform([[list(token) for token in one] for one in sequences])


def _gtb(data: str, **options: Any) -> Any:
    return BoostedCRF(
        max_iter=GTB_ROUNDS,
        learning_rate=GTB_RATE,
        max_leaf_nodes=GTB_LEAVES.get(data, DEFAULT_LEAVES),
        tol=0.0,
        **options,
    )


def _vp(data: str, **options: Any) -> Any:
    return StructuredPerceptron(max_iter=PASSES.get(data, DEFAULT_PASSES), **options)


BASES: dict[str, Callable[..., Any]] = {"gtb": _gtb, "vp": _vp}


def make_learner(data: str, name: str, seed: int, window: int = 1) -> Any:
    """Return a learner by its name.

    ``gtb/iid``, ``gtb/i``, ``gtb/c5``, ``vp/call`` (all earlier columns), ``vp/call-160`` (of a code with 160
    columns), ``gtb/auto``: output codes;
    ``full/vp``, ``full/vp-beam-5``, ``full/crf``, ``full/gtb-beam-5``: all labels at once.
    """
    family, kind = name.split("/")
    if family == "full":
        base, *beam = kind.split("-beam-")
        options: dict[str, Any] = {"beam_width": int(beam[0])} if beam else {}
        if base == "crf":
            return LinearChainCRF(c2=0.06, all_states=True, all_transitions=True)
        if base == "vp":
            options |= {"all_states": True, "all_transitions": True}
            options["temperature"] = VP_TEMPERATURES.get((data, window), 1.0)
            return _vp(data, random_state=seed, **options)
        return _gtb(data, **options)
    make = BASES[family]
    kind, _, length = kind.partition("-")
    cascade: Any = 0
    if kind == "auto":
        cascade = "auto"
    elif kind.startswith("c"):
        cascade = "all" if kind == "call" else int(kind[1:])
    return SequentialOutputCode(
        make(data, order=0) if kind == "iid" else make(data),
        code_length=int(length) if length else CODE_LENGTHS.get(data, CODE_LENGTH),
        cascade=cascade,
        random_state=seed,
    )


@cache
def run(data: str, window: int, name: str, seed: int) -> Run:
    """Train on the training part and test on the test part; kernels are compiled before."""
    warm_up(data, name)
    split = load(data, window, seed)
    model = make_learner(data, name, seed, window)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fixed number of rounds or passes
        if isinstance(model, LinearChainCRF):
            # Small data do not need all its kernels: compile them with one iteration on these.
            clone(model).set_params(max_iter=1).fit(split.X_train, split.y_train)
        began = time.process_time()
        model.fit(split.X_train, split.y_train)
        cpu_seconds = time.process_time() - began
    accuracy = 100.0 * _score(model, split)
    details = {"cascade": getattr(model, "cascade_", None)}
    return Run(accuracy, cpu_seconds, details)


def _score(model: Any, split: Split) -> float:
    """Return the accuracy; exact models label each step by its marginals, as the paper does.

    Output codes do so anyway, and models with a beam predict the best labeling in the beam.
    """
    if isinstance(model, SequentialOutputCode) or getattr(model, "beam_width", None) is not None:
        return float(model.score(split.X_test, split.y_test))
    best = [model.classes_[p.argmax(axis=1)] for p in model.predict_proba(split.X_test)]
    gold = np.concatenate([np.asarray(labels) for labels in split.y_test])
    return float(np.mean(np.concatenate(best) == gold))


def accuracies(data: str, window: int, name: str, seeds: int) -> list[float]:
    """Accuracy of a learner for several seeds."""
    return [run(data, window, name, seed).accuracy for seed in range(seeds)]


def cpu_seconds(data: str, window: int, name: str, seeds: int) -> list[float]:
    """Processor time of training for several seeds."""
    return [run(data, window, name, seed).cpu_seconds for seed in range(seeds)]


@cache
def warm_up(data: str, name: str) -> None:
    """Compile the kernels of a learner."""
    X, y = make_hmm_sequences(
        4, 6, n_labels=5, encoding="sparse", ko=2, random_state=0, return_X_y=True
    )
    learner = make_learner(data, name, 0)
    if isinstance(learner, SequentialOutputCode):
        learner.set_params(code_length=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner.fit(X, y).predict(X)


def ceilings(preset: str, seeds: int, window: str) -> list[float]:
    """Best possible accuracy on the synthetic data of each seed, in percent."""
    found: list[Any] = [
        make_hmm_sequences(2 * N_SYNTHETIC, SYNTHETIC_LENGTH, preset=preset, random_state=seed)
        for seed in range(seeds)
    ]
    return [100.0 * getattr(one.bayes_ceilings, window) for one in found]


def measure_cycle(kind: str, seeds: int) -> list[float]:
    """Accuracy on labels 0, 1, 2, 0, 1, ... whose first label alone is observed (crf), or none (i)."""
    out = []
    for seed in range(seeds):
        random = np.random.RandomState(seed)
        y = [(random.randint(3) + np.arange(20)) % 3 for _ in range(200)]
        X = [np.ones((20, 4)) for _ in y]
        for x, labels in zip(X, y, strict=True):
            x[:, 1:] = 0.0
            x[0, 1 + labels[0]] = 1.0
        crf = LinearChainCRF(c2=0.01)
        model = (
            crf
            if kind == "crf"
            else SequentialOutputCode(crf, code="exhaustive", random_state=seed)
        )
        model.fit(X[:100], y[:100])
        # Only steps whose label has to come from the transitions: long after the observed one.
        late = slice(10, 20)
        predicted = model.predict(X[100:])
        hits = [a[late] == b[late] for a, b in zip(predicted, y[100:], strict=True)]
        out.append(100.0 * float(np.mean(hits)))
    return out


def measure_xor(name: str, seeds: int) -> list[float]:
    """Accuracy on labels that are the exclusive or of two bits of the observation."""
    out = []
    for seed in range(seeds):
        random = np.random.RandomState(seed)
        X = [random.randint(2, size=(10, 3)).astype(float) for _ in range(100)]
        y = [(x[:, 0] != x[:, 1]).astype(int) for x in X]
        model = _gtb("xor") if name == "gtb" else _vp("xor", random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[:50], y[:50])
        out.append(100.0 * model.score(X[50:], y[50:]))
    return out


def letter_templates(reach: int, longest: int) -> list[str]:
    """Return templates of the letter sequences around a letter, up to ``reach`` letters away.

    Sequences of two and more letters touch the letter or one of its neighbours.
    """
    out = []
    for length in range(1, longest + 1):
        for first in range(-reach, reach - length + 2):
            last = first + length - 1
            if length == 1 or (first <= 1 and last >= -1):
                places = range(first, last + 1)
                out.append(f"U{first}_{length}:" + "/".join(f"%x[{place},0]" for place in places))
    return out


def measure_letters(model: Any, n_train: int, reach: int, longest: int, seeds: int) -> list[float]:
    """Accuracy of a model whose features are the letter sequences around a letter, on 1,000 words."""
    out = []
    for seed in range(seeds):
        X, y = fetch_nettalk(n_train=n_train, n_test=N_WORDS, random_state=seed, return_X_y=True)
        features = Templates(letter_templates(reach, longest))
        X_train, X_test = features.fit_transform(X[:n_train]), features.transform(X[n_train:])
        out.append(100.0 * clone(model).fit(X_train, y[:n_train]).score(X_test, y[n_train:]))
    return out


def measure(function: Callable[..., list[float]], *arguments: Any) -> Callable[[], list[float]]:
    """Return a function without arguments for an `Experiment`."""
    return partial(function, *arguments)
