"""Significance tests: sign test, McNemar's test, paired bootstrap.

- `sign_test` over tasks or folds: under the null hypothesis each task that is not a tie is won by
  either system with probability 1/2, so that wins are Binomial(n, 1/2).
- `mcnemar_test` over steps: of the ``b + c`` steps that only one system labels correctly, the number
  of the first system is Binomial(b + c, 1/2). It assumes independent steps, but adjacent steps of a
  sequence are not independent.
- `paired_bootstrap` over sequences does not assume this, and works for any metric.

References
----------
Dietterich, "Approximate statistical tests for comparing supervised classification learning
algorithms", Neural Computation 1998. Berg-Kirkpatrick, Burkett and Klein, "An empirical
investigation of statistical significance in NLP", EMNLP 2012.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from seqlab.data.errors import InputError
from seqlab.metrics._align import Floats, align
from seqlab.metrics._bootstrap import draw, generator, percentile_interval, resampled_totals
from seqlab.metrics._counts import Counts
from seqlab.metrics.runs import border_f1, border_f1_counts, run_f1, run_f1_counts
from seqlab.metrics.spans import span_f1, span_precision, span_recall, span_score_counts
from seqlab.metrics.token import (
    macro_recall,
    macro_recall_counts,
    sequence_accuracy,
    sequence_accuracy_counts,
    token_accuracy,
    token_accuracy_counts,
)

Metric = str | Callable[..., float]

_COUNTS: dict[Callable[..., float], Callable[..., Counts]] = {
    border_f1: border_f1_counts,
    macro_recall: macro_recall_counts,
    run_f1: run_f1_counts,
    sequence_accuracy: sequence_accuracy_counts,
    span_f1: span_score_counts,
    span_precision: partial(span_score_counts, measure="precision"),
    span_recall: partial(span_score_counts, measure="recall"),
    token_accuracy: token_accuracy_counts,
}
_BY_NAME = {metric.__name__: metric for metric in _COUNTS}


class SignTest(NamedTuple):
    """Result of `sign_test`: p-value, wins of each system, and ties, which are ignored."""

    p_value: float
    wins_a: int
    wins_b: int
    ties: int


class McNemarTest(NamedTuple):
    """Result of `mcnemar_test`.

    Attributes
    ----------
    p_value : float
        Two-sided.
    statistic : float
        The smaller of the two counts (exact) or chi squared.
    only_a, only_b : int
        Steps that only the first system, and only the second system, labels correctly.
    """

    p_value: float
    statistic: float
    only_a: int
    only_b: int


class PairedBootstrap(NamedTuple):
    """Result of `paired_bootstrap`.

    Attributes
    ----------
    p_value : float
    difference : float
        Score of the first system minus that of the second.
    low, high : float
        Percentile interval of the difference.
    score_a, score_b : float
    """

    p_value: float
    difference: float
    low: float
    high: float
    score_a: float
    score_b: float


class Interval(NamedTuple):
    """A score with its confidence interval."""

    score: float
    low: float
    high: float


def sign_test(a: Any, b: Any, *, alternative: str = "greater") -> SignTest:
    """Exact sign test; ties are ignored.

    Parameters
    ----------
    a, b : int, or arrays of shape (n_tasks,)
        Wins of the two systems, or their scores on the same tasks (higher is better).
    alternative : {"greater", "less", "two-sided"}
        By default one-tailed: test whether ``a`` is better than ``b``.

    Returns
    -------
    SignTest
        ``p_value`` is 1 if every task is a tie.

    Examples
    --------
    >>> from seqlab.metrics import sign_test
    >>> sign_test(9, 1).p_value
    0.0107421875
    >>> sign_test([0.9, 0.8, 0.7, 0.9], [0.8, 0.7, 0.7, 0.6])
    SignTest(p_value=0.125, wins_a=3, wins_b=0, ties=1)
    """
    _check_alternative(alternative)
    scores_a, scores_b = np.asarray(a), np.asarray(b)
    if scores_a.shape != scores_b.shape or scores_a.ndim > 1:
        raise InputError(
            f"a and b must be two counts or two score lists of equal length, got shapes "
            f"{scores_a.shape} and {scores_b.shape}"
        )
    if scores_a.ndim == 0:
        wins = []
        for value in (scores_a, scores_b):
            if value.dtype.kind not in "iu" or value < 0:
                raise InputError(f"wins must be non-negative whole numbers, got {value.item()!r}")
            wins.append(int(value))
        return SignTest(_binomial(wins[0], wins[1], alternative), wins[0], wins[1], 0)
    if np.isnan(scores_a.astype(np.float64)).any() or np.isnan(scores_b.astype(np.float64)).any():
        raise InputError("scores must not be NaN")
    wins_a = int(np.count_nonzero(scores_a > scores_b))
    wins_b = int(np.count_nonzero(scores_a < scores_b))
    ties = scores_a.size - wins_a - wins_b
    return SignTest(_binomial(wins_a, wins_b, alternative), wins_a, wins_b, ties)


def mcnemar_test(
    y_true: Any, y_a: Any, y_b: Any, *, method: str = "exact", lengths: ArrayLike | None = None
) -> McNemarTest:
    """McNemar's test on the steps that only one of two systems labels correctly.

    Parameters
    ----------
    y_true, y_a, y_b : lists of label sequences, or flat (stacked) sequences of labels
        Gold labels and those of the two systems.
    method : {"exact", "chi2"}
        Binomial, or chi squared with continuity correction, ``max(|b - c| - 1, 0)^2 / (b + c)``.
    lengths : array of shape (n_sequences,), optional
        Steps per sequence, for stacked labels.

    Returns
    -------
    McNemarTest
        ``p_value`` is 1 if both systems are right on the same steps.

    Examples
    --------
    >>> from seqlab.metrics import mcnemar_test
    >>> mcnemar_test([["N"] * 8], [["N"] * 8], [["N"] * 2 + ["V"] * 6])
    McNemarTest(p_value=0.03125, statistic=0.0, only_a=6, only_b=0)
    """
    if method not in ("exact", "chi2"):
        raise InputError(f"method must be 'exact' or 'chi2', got {method!r}")
    right = []
    for name, labels in (("y_a", y_a), ("y_b", y_b)):
        aligned = align(y_true, labels, lengths=lengths, names=("y_true", name))
        right.append(aligned.true == aligned.pred)
    only_a = int(np.count_nonzero(right[0] & ~right[1]))
    only_b = int(np.count_nonzero(right[1] & ~right[0]))
    if method == "exact":
        p_value = _binomial(only_a, only_b, "two-sided")
        return McNemarTest(p_value, float(min(only_a, only_b)), only_a, only_b)
    if only_a + only_b == 0:
        return McNemarTest(1.0, 0.0, only_a, only_b)
    from scipy.stats import chi2  # takes half a second to import

    statistic = max(abs(only_a - only_b) - 1, 0) ** 2 / (only_a + only_b)
    return McNemarTest(float(chi2.sf(statistic, df=1)), statistic, only_a, only_b)


def paired_bootstrap(
    y_true: Any,
    y_a: Any,
    y_b: Any,
    metric: Metric = "span_f1",
    *,
    n_resamples: int = 10_000,
    alternative: str = "two-sided",
    confidence: float = 0.95,
    random_state: Any = None,
) -> PairedBootstrap:
    """Test whether two systems differ in a metric, by resampling sequences.

    With ``d`` the observed difference and ``d*`` that of a resample, the null distribution is
    ``d* - d``, and the p-value is the share of resamples that reach ``d``; the data themselves
    count as one resample::

        p = (1 + #{d* - d >= d}) / (1 + n_resamples)        (two-sided: |d* - d| >= |d|)

    Resamples with nothing to score, such as no phrase in either labeling, are ignored.

    Parameters
    ----------
    y_true, y_a, y_b : lists of label sequences
        Gold labels and those of the two systems.
    metric : str or callable
        ``"span_f1"``, ``"span_precision"``, ``"span_recall"``, ``"token_accuracy"``,
        ``"macro_recall"``, ``"sequence_accuracy"``, ``"run_f1"``, ``"border_f1"``; or
        ``metric(y_true, y_pred) -> float``. For parameters use
        ``functools.partial(span_f1, scheme="IOBES")``. For metrics of this package only counts are
        resampled, which is fast; others are called once per resample and system.
    n_resamples : int
    alternative : {"two-sided", "greater", "less"}
        "greater": test whether the first system is better.
    confidence : float
        Level of the interval of the difference.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    PairedBootstrap

    Examples
    --------
    >>> from seqlab.metrics import paired_bootstrap
    >>> y_true = [["B-NP", "I-NP"], ["O", "B-NP"], ["B-NP", "O"], ["O", "O"]] * 5
    >>> y_b = [["B-NP", "O"], ["O", "B-NP"], ["B-NP", "O"], ["O", "B-NP"]] * 5
    >>> result = paired_bootstrap(y_true, y_true, y_b, n_resamples=500, random_state=0)
    >>> round(result.difference, 3), result.p_value < 0.01
    (0.429, True)
    """
    _check_alternative(alternative)
    observed, (samples_a, samples_b) = _resample(
        metric, y_true, {"y_a": y_a, "y_b": y_b}, n_resamples, random_state
    )
    difference = observed[0] - observed[1]
    samples = samples_a - samples_b
    low, high = percentile_interval(samples, confidence).tolist()
    null = samples - difference
    # Equal differences may have different rounding errors, and still count as equal.
    slack = 1e-12
    if alternative == "two-sided":
        reached = np.abs(null) >= abs(difference) - slack
    elif alternative == "greater":
        reached = null >= difference - slack
    else:
        reached = null <= difference + slack
    n_defined = int(np.count_nonzero(~np.isnan(null)))
    p_value = (1 + int(np.count_nonzero(reached))) / (1 + n_defined)
    return PairedBootstrap(p_value, difference, low, high, observed[0], observed[1])


def bootstrap_interval(
    y_true: Any,
    y_pred: Any,
    metric: Metric = "span_f1",
    *,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    random_state: Any = None,
) -> Interval:
    """Percentile interval of a metric, by resampling sequences.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences
    metric, n_resamples, confidence, random_state
        As in `paired_bootstrap`.

    Returns
    -------
    Interval
        Named tuple (score, low, high).

    Examples
    --------
    >>> from seqlab.metrics import bootstrap_interval
    >>> y_true, y_pred = [["N", "V"], ["D", "N"]] * 20, [["N", "V"], ["D", "V"]] * 20
    >>> score, low, high = bootstrap_interval(y_true, y_pred, "token_accuracy", random_state=0)
    >>> score, 0.6 < low < 0.75 < high < 0.9
    (0.75, True)
    """
    observed, (samples,) = _resample(metric, y_true, {"y_pred": y_pred}, n_resamples, random_state)
    low, high = percentile_interval(samples, confidence).tolist()
    return Interval(observed[0], low, high)


def _resample(
    metric: Metric, y_true: Any, systems: dict[str, Any], n_resamples: int, random_state: Any
) -> tuple[list[float], list[Floats]]:
    """Score each system on the data, and on resamples that all systems share."""
    function = _as_function(metric)
    inner, fixed, params = function, (), {}
    if isinstance(function, partial):
        inner, fixed, params = function.func, function.args, function.keywords
    for name, labels in systems.items():  # so that errors name the system
        align(y_true, labels, lengths=params.get("lengths"), names=("y_true", name))
    rng = generator(random_state)
    if inner in _COUNTS:
        if fixed or "sample_weight" in params:
            raise InputError("a partial metric may only fix keywords other than sample_weight")
        counts = [_COUNTS[inner](y_true, labels, **params) for labels in systems.values()]
        totals = resampled_totals([c.matrix for c in counts], n_resamples, rng)
        samples = [c.score(total) for c, total in zip(counts, totals, strict=True)]
        for sample, total in zip(samples, totals, strict=True):
            # Nothing to score: 0 is only the convention for 0 / 0 (border_f1 defines 1).
            sample[(sample == 0) & ~total.any(axis=-1)] = np.nan
        return [c.evaluate() for c in counts], samples
    observed = [float(function(y_true, labels)) for labels in systems.values()]
    scores = []
    for block in draw(len(y_true), n_resamples, rng):
        for chosen in block.tolist():
            gold = [y_true[i] for i in chosen]
            scores.append([function(gold, [y[i] for i in chosen]) for y in systems.values()])
    return observed, list(np.array(scores, dtype=np.float64).T)


def _as_function(metric: Metric) -> Any:
    if callable(metric):
        return metric
    if metric in _BY_NAME:
        return _BY_NAME[metric]
    raise InputError(f"unknown metric {metric!r} (metrics: {', '.join(_BY_NAME)}, or a function)")


def _binomial(wins_a: int, wins_b: int, alternative: str) -> float:
    if wins_a + wins_b == 0:
        return 1.0
    from scipy.stats import binomtest  # takes half a second to import

    return float(binomtest(wins_a, wins_a + wins_b, 0.5, alternative=alternative).pvalue)


def _check_alternative(alternative: str) -> None:
    if alternative not in ("two-sided", "greater", "less"):
        raise InputError(
            f"alternative must be 'two-sided', 'greater' or 'less', got {alternative!r}"
        )
