"""Merialdo, "Tagging English text with a probabilistic model", Computational Linguistics 20, 1994.

The paper finds that a hidden Markov model for part-of-speech tagging, trained on tagged text and then by
expectation-maximisation on more text without tags, gets worse unless there is very little tagged text.
Its data are not public. Here, token accuracy in percent on two data sets:

EWT    universal parts of speech of UD English EWT; the symbols are the words. Of the first 6,000 training
       sentences the first n have labels; the test part is used as a whole. EM runs for a few passes, or for
       20 with a weight of 0.1 for unlabelled sentences.
drawn  sequences drawn from an HMM (10 labels, 40 symbols, 30 steps), so that the model is correct: 300 for
       training, of which n have labels, and 100 for testing; the mean of five draws.

No experiment has a target: the results show when unlabelled sequences help and when they harm.
"""

from __future__ import annotations

import warnings
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from seqlab.datasets import fetch_ud_english_ewt, make_hmm_sequences
from seqlab.models.hmm import HMM
from seqlab.papers.experiment import Claim, Experiment

TITLE = "Hidden Markov model with few labels: token accuracy"
N_DRAWN, N_DRAWS, N_SENTENCES = 300, 5, 6000
DRAWN_LABELLED, EWT_LABELLED = (2, 5, 20, 100), (50, 200, 1000)
# Passes over the data (the first one counts the labelled sentences), weight of an unlabelled sentence.
SCHEDULES = {
    "em-2": (2, 1.0),
    "em-4": (4, 1.0),
    "em-20": (20, 1.0),
    "em-20-tenth": (20, 0.1),
}


@cache
def drawn_data(seed: int) -> tuple[Any, Any]:
    """One draw of symbol sequences and their labels."""
    X, y = make_hmm_sequences(
        N_DRAWN + 100,
        30,
        preset="transition",
        n_labels=10,
        n_observations=40,
        random_state=seed,
        return_X_y=True,
    )
    return X, [labels.tolist() for labels in y]


@cache
def ewt_data() -> tuple[Any, Any, Any, Any]:
    """Words and parts of speech of the training sentences and of the test sentences."""
    (X, y), (X_test, y_test) = (
        fetch_ud_english_ewt(subset=part, return_X_y=True) for part in ("train", "test")
    )
    X, X_test = ([[token[0] for token in tokens] for tokens in part] for part in (X, X_test))
    return X[:N_SENTENCES], [list(tags) for tags in y[:N_SENTENCES]], X_test, y_test


def fit_with_unlabelled(
    X: Any, y: Any, n_labelled: int, *, max_iter: int = 100, weight: float = 1.0
) -> HMM:
    """Fit an HMM to sequences of which only the first ``n_labelled`` keep their labels."""
    hidden = [[None] * len(x) for x in X[n_labelled:]]
    weights = np.where(np.arange(len(X)) < n_labelled, 1.0, weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the experiment is to stop early
        return HMM(max_iter=max_iter).fit(X, y[:n_labelled] + hidden, sample_weight=weights)


def measure_drawn(n_labelled: int, unlabelled: bool) -> float:
    """Mean accuracy over the draws, with or without the unlabelled sequences."""
    scores = []
    for seed in range(N_DRAWS):
        X, y = drawn_data(seed)
        if unlabelled:
            model = fit_with_unlabelled(X[:N_DRAWN], y, n_labelled)
        else:
            model = HMM().fit(X[:n_labelled], y[:n_labelled])
        scores.append(model.score(X[N_DRAWN:], y[N_DRAWN:]))
    return 100.0 * float(np.mean(scores))


def measure_ewt(n_labelled: int, schedule: str | None) -> float:
    """Accuracy on the test part; without a schedule, only the labelled sentences are used."""
    X, y, X_test, y_test = ewt_data()
    if schedule is None:
        model = HMM().fit(X[:n_labelled], y[:n_labelled])
    else:
        max_iter, weight = SCHEDULES[schedule]
        model = fit_with_unlabelled(X, y, n_labelled, max_iter=max_iter, weight=weight)
    return 100.0 * model.score(X_test, y_test)


EXPERIMENTS = [
    *(
        Experiment(f"drawn/{n}/{how}", partial(measure_drawn, n, how == "em"))
        for n in DRAWN_LABELLED
        for how in ("labelled", "em")
    ),
    Experiment("drawn/all/labelled", partial(measure_drawn, N_DRAWN, False)),
    *(
        Experiment(f"ewt/{n}/{how or 'labelled'}", partial(measure_ewt, n, how))
        for n in EWT_LABELLED
        for how in (None, *SCHEDULES)
    ),
]
CLAIMS = [
    *(
        Claim(
            f"drawn: EM helps with {n} labelled sequences",
            (f"drawn/{n}/em", f"drawn/{n}/labelled"),
            lambda em, labelled: em > labelled,
        )
        for n in DRAWN_LABELLED
        if n < 100
    ),
    *(
        Claim(
            f"ewt: 20 passes of EM harm with {n} labelled sentences",
            (f"ewt/{n}/em-20", f"ewt/{n}/labelled"),
            lambda em, labelled: em < labelled,
        )
        for n in EWT_LABELLED
    ),
]
