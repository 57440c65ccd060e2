"""The rules of models of conjunctions, with feature names."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any

from seqlab.data.errors import InputError
from seqlab.inspection.weights import feature_names


def top_rules(
    model: Any, n: int = 10, *, labels: Iterable[Any] | None = None
) -> dict[Any, list[Any]]:
    """Return the rules with the largest weights of each label.

    Parameters
    ----------
    model : fitted StructHKL, PatternHKL, or Tagger with one of them
    n : int, default=10
        Number of rules of a label.
    labels : iterable of labels, optional
        All by default.

    Returns
    -------
    dict of label to list of Rule
        Rules have a label, conditions and a weight.

    Examples
    --------
    >>> from seqlab import StructHKL
    >>> from seqlab.inspection import top_rules
    >>> X = [[["door", "day"], ["cup", "day"]], [["door"], ["cup"]]] * 5
    >>> model = StructHKL().fit(X, [["out", "eat"]] * 10)
    >>> top_rules(model, 1, labels=["out"])["out"][0].conditions
    ('door',)
    """
    labeler = getattr(model, "labeler_", model)
    if not hasattr(labeler, "rules_"):
        raise InputError(f"{type(labeler).__name__} has no rules")
    names = feature_names(model)
    # The names of a Tagger's features are not stored in its labeler. Patterns have names of their own.
    if names is not None and labeler.vectorizer_ is None and not hasattr(labeler, "patterns_"):
        labeler = copy(labeler)
        labeler.column_names_ = [str(name) for name in names]
    every = labeler.rules_
    chosen = labeler.classes_.tolist() if labels is None else labels
    return {label: [rule for rule in every if rule.label == label][:n] for label in chosen}
