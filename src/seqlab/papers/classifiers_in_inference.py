"""Punyakanok and Roth, "The use of classifiers in sequential inference", NIPS 2000.

Three ways to combine the predictions of a classifier into a consistent sequence (HMM, PMM, CSCL), with three
classifiers, on two phrase tasks. The input is words and parts of speech, the score F1 of phrases in percent.

NP  base noun phrases. The paper uses Wall Street Journal sections 15-18 and 20, in files that are not public.
    Here: the CoNLL-2000 files of the same sections, only the noun phrase chunks.
SV  subject-verb phrases. The paper uses sections 1-9 and 0. Here: sections 01 and 00 of the public sample
    of the treebank, a tenth of the training data, with phrases extracted by our own rules.

Features are n-grams of up to three adjacent tokens in a window of six tokens around the bracket. Logistic
regression is not in the paper. All settings below were chosen on held-out parts of the training data.

References
----------
Punyakanok and Roth, "The use of classifiers in sequential inference", NIPS 2000, table 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB

from seqlab.data import (
    Phrase,
    Sequences,
    open_close_to_phrases,
    phrases_to_open_close,
    phrases_to_tags,
    tags_to_phrases,
)
from seqlab.datasets import fetch_conll2000, fetch_ptb_sample
from seqlab.features import BracketFeatures
from seqlab.metrics import span_f1
from seqlab.models.classifiers import SNoW, TemperedClassifier
from seqlab.models.combinators import ClassifierHMM, ProjectionMarkovModel
from seqlab.models.phrases import PhraseInference
from seqlab.papers.experiment import Claim, Experiment

TITLE = "Classifiers in sequential inference: F1 of phrases from words and parts of speech"


class Part(NamedTuple):
    """Sentences of a task and their phrases."""

    tokens: list[Any]
    phrases: list[list[Phrase]]


class Setting(NamedTuple):
    """A classifier, and the minimum count of the features that it uses."""

    make: Callable[[], Any]
    min_count: int


def _logistic_regression() -> Any:
    # One binary problem per decision: for these, liblinear's Newton method converges fastest.
    return OneVsRestClassifier(LogisticRegression(C=10.0, solver="liblinear", tol=0.01))


def _snow() -> Any:
    return SNoW(margin=1.0, max_iter=10, random_state=0)


def _naive_bayes() -> Any:
    return TemperedClassifier(MultinomialNB(alpha=0.001))


LEARNERS = ("lr", "snow", "nb")
SETTINGS = {
    "np/lr": Setting(_logistic_regression, min_count=2),
    "np/snow": Setting(_snow, min_count=1),
    "np/nb": Setting(_naive_bayes, min_count=1),
    "sv/lr": Setting(_logistic_regression, min_count=2),
    "sv/snow": Setting(_snow, min_count=2),
    "sv/nb": Setting(_naive_bayes, min_count=2),
}
COMBINATORS: dict[str, Callable[[Any], Any]] = {
    "hmm": ClassifierHMM,
    "pmm": ProjectionMarkovModel,
    "cscl": partial(PhraseInference, random_state=0),
}
PUBLISHED = {
    "np/snow/hmm": 92.89, "np/snow/pmm": 92.98, "np/snow/cscl": 92.88,
    "np/nb/hmm": 92.26, "np/nb/pmm": 91.98, "np/nb/cscl": 91.95,
    "sv/snow/hmm": 77.54, "sv/snow/pmm": 86.07, "sv/snow/cscl": 90.09,
    "sv/nb/hmm": 78.43, "sv/nb/pmm": 84.80, "sv/nb/cscl": 88.28,
}  # fmt: skip
TARGETS = {
    "np/lr/hmm": 93.4, "np/lr/pmm": 93.4, "np/lr/cscl": 93.4,
    "np/snow/pmm": 93.2, "np/snow/cscl": 93.2, "np/nb/cscl": 91.8,
    "sv/lr/pmm": 90.0, "sv/lr/cscl": 88.5, "sv/snow/pmm": 90.0, "sv/snow/cscl": 88.5,
    "sv/nb/cscl": 83.5,
}  # fmt: skip


@cache
def load_task(task: str) -> tuple[Part, Part]:
    """Training and test part of the task "np" or "sv"."""
    if task == "np":
        raw = [fetch_conll2000(subset=part, return_X_y=True) for part in ("train", "test")]
    else:
        raw = [
            fetch_ptb_sample(section=section, task="sv", return_X_y=True)
            for section in ("01", "00")
        ]
    train, test = (_part(X, y, task.upper()) for X, y in raw)
    return train, test


def _part(X: list[Any], y: list[Any], kind: str) -> Part:
    phrases = [[phrase for phrase in tags_to_phrases(tags) if phrase.type == kind] for tags in y]
    return Part(X, phrases)


def decisions(part: Part) -> list[list[str]]:
    """Open and close decisions of each sentence."""
    return [
        phrases_to_open_close(phrases, len(tokens))
        for tokens, phrases in zip(part.tokens, part.phrases, strict=True)
    ]


def phrase_f1(part: Part, predicted: list[Any]) -> float:
    """F1, in percent, of the phrases that the predicted decisions encode."""
    gold, found = [], []
    for tokens, phrases, labels in zip(part.tokens, part.phrases, predicted, strict=True):
        gold.append(phrases_to_tags([phrase._replace(type="X") for phrase in phrases], len(tokens)))
        found.append(phrases_to_tags(open_close_to_phrases(list(labels), "X"), len(tokens)))
    return 100.0 * float(span_f1(gold, found))


@cache
def features(task: str, min_count: int) -> tuple[Sequences, Sequences]:
    """Bracket features of the training and the test part."""
    train, test = load_task(task)
    brackets = BracketFeatures(min_count=min_count)
    return brackets.fit_transform(train.tokens), brackets.transform(test.tokens)


def measure(task: str, learner: str, combinator: str) -> float:
    """Train on the training part and score on the test part."""
    train, test = load_task(task)
    make, min_count = SETTINGS[f"{task}/{learner}"]
    X_train, X_test = features(task, min_count)
    model = COMBINATORS[combinator](make())
    model.fit(X_train, decisions(train))
    return phrase_f1(test, model.predict(X_test))


EXPERIMENTS = [
    Experiment(
        name, partial(measure, task, learner, combinator), PUBLISHED.get(name), TARGETS.get(name)
    )
    for task in ("np", "sv")
    for learner in LEARNERS
    for combinator in COMBINATORS
    for name in [f"{task}/{learner}/{combinator}"]
]
CLAIMS = [
    Claim(
        f"sv: with {learner}, cscl is at least 4 points above hmm",
        (f"sv/{learner}/cscl", f"sv/{learner}/hmm"),
        lambda cscl, hmm: np.round(cscl - hmm, 2) >= 4.0,
    )
    for learner in LEARNERS
]
