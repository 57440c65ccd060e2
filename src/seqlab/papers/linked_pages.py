"""Web pages with links: the hypertext experiment of Taskar, Guestrin and Koller (2004).

Pages of four computer-science departments (LINQS version of WebKB: 877 pages, 1,608 links, 5 classes, 1,703
words); a model is trained on three schools and labels the pages of the fourth. The number is the percentage
of wrong pages: of one school, or the mean of the four. Penalties are chosen within the training schools
only: train on two, validate on the third, by turns.

The pages are not those of the paper, which had a class "other" and the words of links, so only the order of
the methods can be compared.

References
----------
Taskar, Guestrin and Koller, "Max-margin Markov networks", NIPS 2003. Taskar, Abbeel and Koller,
"Discriminative probabilistic models for relational data", UAI 2002.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from seqlab.datasets import fetch_webkb
from seqlab.metrics import mcnemar_test
from seqlab.models.graphs import GraphCRF, GraphM3N
from seqlab.papers.experiment import Claim, Experiment

SCHOOLS = ("cornell", "texas", "washington", "wisconsin")

# Every model takes a penalty, from strong to weak.
MODELS: dict[str, tuple[Callable[[float], Any], tuple[float, ...]]] = {
    "svm": (lambda C: LinearSVC(C=C, max_iter=10_000), (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)),
    "lr": (lambda C: LogisticRegression(C=C, max_iter=1000), (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)),
    "crf": (lambda C: GraphCRF(c2=0.5 / C, tol=1e-3), (0.03, 0.1, 0.3, 1.0)),
    "crf-loopy": (
        lambda C: GraphCRF(c2=0.5 / C, inference="loopy", tol=1e-3),
        (0.03, 0.1, 0.3, 1.0),
    ),
    "crf-pseudo": (
        lambda C: GraphCRF(c2=0.5 / C, objective="pseudo_likelihood", tol=1e-3),
        (0.01, 0.03, 0.1, 0.3, 1.0),
    ),
    "m3n": (lambda C: GraphM3N(C=C, tol=0.01), (0.003, 0.01, 0.03, 0.1)),
    "m3n-lp": (lambda C: GraphM3N(C=C, inference="lp", tol=0.01), (0.003, 0.01, 0.03, 0.1)),
}
FLAT = ("svm", "lr")


@cache
def load_pages() -> Any:
    """Load the pages of all schools."""
    return fetch_webkb()


@cache
def fit(name: str, penalty: float, train: tuple[int, ...]) -> Any:
    """Train on some schools. A model of two schools is validated on each of the other two."""
    web = load_pages()
    model = MODELS[name][0](penalty)
    if name in FLAT:
        X = sp.vstack([web.data[k] for k in train], format="csr")
        return model.fit(X, np.concatenate([web.target[k] for k in train]))
    graphs = [(web.data[k], web.edges[k]) for k in train]
    return model.fit(graphs, [web.target[k] for k in train])


def fit_predict(name: str, penalty: float, train: tuple[int, ...], test: int) -> NDArray[Any]:
    """Train on some schools and label the pages of another."""
    web, model = load_pages(), fit(name, penalty, train)
    if name in FLAT:
        predicted: NDArray[Any] = model.predict(web.data[test])
        return predicted
    labels: NDArray[Any] = model.predict([(web.data[test], web.edges[test])])[0]
    return labels


@cache
def label_school(name: str, school: int) -> NDArray[Any]:
    """Label the pages of a school with a model trained on the other three; the penalty is chosen on them."""
    web = load_pages()
    others = tuple(k for k in range(len(SCHOOLS)) if k != school)
    errors = []
    for penalty in MODELS[name][1]:
        wrong = 0
        for held_out in others:
            train = tuple(k for k in others if k != held_out)
            predicted = fit_predict(name, penalty, train, held_out)
            wrong += int((predicted != web.target[held_out]).sum())
        errors.append(wrong)
    return fit_predict(name, MODELS[name][1][int(np.argmin(errors))], others, school)


def measure(name: str, school: int | None = None) -> float:
    """Percentage of wrong pages of a school, or the mean over the schools."""
    if school is None:
        return float(np.mean([measure(name, k) for k in range(len(SCHOOLS))]))
    return 100.0 * float(np.mean(label_school(name, school) != load_pages().target[school]))


def compare(name: str, other: str) -> float:
    """P-value of McNemar's test over all pages: is the first model's number of wrong pages another?"""
    gold = list(load_pages().target)
    a, b = ([label_school(one, k) for k in range(len(SCHOOLS))] for one in (name, other))
    return float(mcnemar_test(gold, a, b).p_value)


EXPERIMENTS = [
    *(
        Experiment(f"webkb/{name}/{school}", partial(measure, name, k), less_is_better=True)
        for name in MODELS
        for k, school in enumerate(SCHOOLS)
    ),
    *(
        Experiment(f"webkb/{name}/mean", partial(measure, name), less_is_better=True)
        for name in MODELS
    ),
    *(
        Experiment(f"webkb/{name}/p-against-{other}", partial(compare, name, other))
        for name, other in (("crf", "lr"), ("m3n", "svm"), ("m3n", "crf"))
    ),
]


def _means(*names: str) -> tuple[str, ...]:
    return tuple(f"webkb/{name}/mean" for name in names)


CLAIMS = [
    Claim(
        "hypertext: links do not hurt on average (CRF below LR, M3N below SVM)",
        _means("crf", "lr", "m3n", "svm"),
        lambda crf, lr, m3n, svm: crf <= lr and m3n <= svm,
    ),
    Claim(
        "hypertext: on average the order is M3N < RMN < SVM in error",
        _means("m3n", "crf", "svm"),
        lambda m3n, crf, svm: m3n < crf < svm,
        is_required=False,
    ),
    Claim(
        "hypertext: the order M3N < RMN < SVM holds in every school",
        tuple(f"webkb/{name}/{school}" for school in SCHOOLS for name in ("m3n", "crf", "svm")),
        lambda *errors: all(a < b < c for a, b, c in zip(*[iter(errors)] * 3, strict=True)),
        is_required=False,
    ),
    Claim(
        "hypertext: M3N is 40 % below RMN and 51 % below SVM",
        _means("m3n", "crf", "svm"),
        lambda m3n, crf, svm: m3n <= 0.6 * crf and m3n <= 0.49 * svm,
        is_required=False,
    ),
    Claim(
        "hypertext: the relaxation (LP) works in practice: within two points of exact training",
        _means("m3n-lp", "m3n"),
        lambda relaxed, exact: abs(relaxed - exact) <= 2.0,
    ),
]
