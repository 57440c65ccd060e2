"""Scorers: the metrics for the ``scoring=`` parameter of scikit-learn.

Each factory returns a scikit-learn scorer ``scorer(estimator, X, y)`` that calls
``estimator.predict`` and the metric of the same name. They work in `cross_val_score` and
`GridSearchCV` on lists of sequences, and with metadata routing: after
``scorer.set_score_request(sample_weight=True)`` the metric gets the weights of sequences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seqlab.data.tags import get_scheme
from seqlab.metrics._counts import check_average
from seqlab.metrics.spans import span_f1
from seqlab.metrics.token import macro_recall, sequence_accuracy, token_accuracy


def token_accuracy_scorer(*, ignore: Any = ()) -> Any:
    """Scorer of `token_accuracy`.

    Examples
    --------
    >>> from seqlab.metrics import token_accuracy_scorer
    >>> token_accuracy_scorer()
    make_scorer(token_accuracy, response_method='predict')
    """
    return _make_scorer(token_accuracy, **_ignore_param(ignore))


def macro_recall_scorer(*, ignore: Any = ()) -> Any:
    """Scorer of `macro_recall`.

    Examples
    --------
    >>> from seqlab.metrics import macro_recall_scorer
    >>> macro_recall_scorer(ignore="idle")
    make_scorer(macro_recall, response_method='predict', ignore=idle)
    """
    return _make_scorer(macro_recall, **_ignore_param(ignore))


def sequence_accuracy_scorer() -> Any:
    """Scorer of `sequence_accuracy`.

    Examples
    --------
    >>> from seqlab.metrics import sequence_accuracy_scorer
    >>> sequence_accuracy_scorer()
    make_scorer(sequence_accuracy, response_method='predict')
    """
    return _make_scorer(sequence_accuracy)


def span_f1_scorer(scheme: str = "IOB2", strict: bool = False, average: str = "micro") -> Any:
    """Scorer of `span_f1`.

    Parameters
    ----------
    scheme : {"IO", "IOB1", "IOB2", "IOBES", "BILOU"}
    strict : bool
    average : {"micro", "macro", "weighted"}

    Examples
    --------
    >>> from seqlab.metrics import span_f1_scorer
    >>> span_f1_scorer("IOBES")
    make_scorer(span_f1, response_method='predict', scheme=IOBES, strict=False, average=micro)
    """
    # Raise these errors here, because a search would turn them into NaN scores of every fold.
    get_scheme(scheme)
    check_average(average)
    return _make_scorer(span_f1, scheme=scheme, strict=strict, average=average)


def _make_scorer(metric: Callable[..., float], **params: Any) -> Any:
    from sklearn.metrics import make_scorer  # only scorers need scikit-learn

    return make_scorer(metric, **params)


def _ignore_param(ignore: Any) -> dict[str, Any]:
    return {} if isinstance(ignore, tuple) and not ignore else {"ignore": ignore}
