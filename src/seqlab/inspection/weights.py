"""Weights of linear models with names: the strongest features and transitions of each label.

In a chain model the score of a labeling is the sum of ``coef_[label, feature]`` over the features of each
step, ``transitions_[from, to]`` over pairs of neighbouring steps, ``start_`` of the first label and ``end_``
of the last. A weight of 0.7 doubles the odds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import InputError

START, END = "<start>", "<end>"
_LETTER_ORDER = "BIMELSUO"


class FeatureWeight(NamedTuple):
    """Weight of a feature for a label.

    Attributes
    ----------
    feature : str
    weight : float
    """

    feature: str
    weight: float


class LabelFeatures(NamedTuple):
    """The features with the largest positive and negative weights for a label, strongest first.

    Attributes
    ----------
    label : label
    positive, negative : list of FeatureWeight
    n_weights : int
        Number of features with a weight other than 0.
    """

    label: Any
    positive: list[FeatureWeight]
    negative: list[FeatureWeight]
    n_weights: int


class FeatureImportance(NamedTuple):
    """Proportion of the gain of all splits that is due to a feature.

    Attributes
    ----------
    feature : str
    importance : float
    """

    feature: str
    importance: float


class TransitionWeight(NamedTuple):
    """Weight of a transition between labels; ``<start>`` and ``<end>`` mean the ends of a sequence.

    Attributes
    ----------
    source, target : label
    weight : float
    """

    source: Any
    target: Any
    weight: float


def top_features(
    model: Any, n: int = 10, *, labels: Iterable[Any] | None = None
) -> list[LabelFeatures]:
    """Find the strongest features of each label.

    Parameters
    ----------
    model : fitted Tagger or labeler with linear weights
        `LinearChainCRF`, `StructuredPerceptron`, `IndependentLabeler` with a linear classifier.
    n : int, default=10
        Number of positive and of negative features.
    labels : iterable of labels, optional
        Only these labels, in this order; by default all, grouped by phrase type, ``O`` last.

    Returns
    -------
    list of LabelFeatures

    Examples
    --------
    >>> from seqlab import LinearChainCRF
    >>> from seqlab.inspection import top_features
    >>> X = [[{"word": "the"}, {"word": "dog"}], [{"word": "a"}, {"word": "dog"}]]
    >>> crf = LinearChainCRF(c2=0.1).fit(X, [["DET", "NOUN"], ["DET", "NOUN"]])
    >>> [best.feature for best in top_features(crf, 1)[1].positive]
    ['word=dog']
    """
    if n < 0:
        raise InputError(f"n must not be negative, got {n}")
    classes = _classes(model)
    coef = _coefficients(model)
    names = feature_names(model)
    found = []
    for label in label_order(classes) if labels is None else labels:
        row = _row(coef, _position(classes, label))
        order = np.argsort(row, kind="stable")
        positive = [int(k) for k in order[::-1][:n] if row[k] > 0]
        negative = [int(k) for k in order[:n] if row[k] < 0]
        found.append(
            LabelFeatures(
                label,
                [FeatureWeight(_name(names, k), float(row[k])) for k in positive],
                [FeatureWeight(_name(names, k), float(row[k])) for k in negative],
                int(np.count_nonzero(row)),
            )
        )
    return found


def top_transitions(
    model: Any, n: int | None = None, *, boundary: bool = True
) -> list[TransitionWeight]:
    """Sort transitions from the largest to the smallest weight; those without a weight are left out.

    Parameters
    ----------
    model : fitted Tagger or chain labeler
    n : int, optional
        Only the ``n`` largest positive and the ``n`` largest negative weights.
    boundary : bool, default=True
        Include the weights of the first and last label.

    Returns
    -------
    list of TransitionWeight
        Empty for a model without transitions.
    """
    classes = _classes(model)
    names = [*classes, START, END]
    matrix = transition_matrix(model, boundary=boundary)
    if matrix is None:
        return []
    sources, targets = np.nonzero(matrix)
    weights = matrix[sources, targets]
    order = np.argsort(-weights, kind="stable")
    if n is not None and order.size > 2 * n:
        high, low = order[:n], order[order.size - n :]
        order = np.concatenate([high[weights[high] > 0], low[weights[low] < 0]])
    # With boundary, row n_labels is <start> and column n_labels is <end>.
    last = len(classes)
    return [
        TransitionWeight(
            names[sources[k]],
            END if targets[k] == last else names[targets[k]],
            float(weights[k]),
        )
        for k in order
    ]


def top_importances(model: Any, n: int = 10) -> list[FeatureImportance]:
    """Return the features with the largest importances of a model of trees, largest first.

    Parameters
    ----------
    model : BoostedCRF, RelationalBoostedCRF, or a Tagger with one of them
    n : int, default=10
        Number of features. The importance of the previous label comes after them.

    Examples
    --------
    >>> from seqlab import BoostedCRF
    >>> from seqlab.inspection import top_importances
    >>> X = [[{"word": "the"}, {"word": "dog"}], [{"word": "a"}, {"word": "dog"}]]
    >>> model = BoostedCRF(max_iter=2, order=0).fit(X, [["D", "N"], ["D", "N"]])
    >>> [(one.feature, round(one.importance, 2)) for one in top_importances(model, 1)]
    [('word=dog', 1.0), ('previous label', 0.0)]
    """
    labeler = _labeler(model)
    importances = getattr(labeler, "feature_importances_", None)
    if importances is None:
        raise InputError(f"{type(labeler).__name__} has no importances of features")
    tests = getattr(labeler, "get_test_names", None)
    names = feature_names(model) if tests is None else np.asarray(tests(), dtype=object)
    best = np.argsort(-importances, kind="stable")[:n]
    found = [
        FeatureImportance(_name(names, column), float(importances[column]))
        for column in best.tolist()
        if importances[column] > 0.0
    ]
    return [*found, FeatureImportance("previous label", float(labeler.previous_label_importance_))]


def transition_matrix(model: Any, *, boundary: bool = False) -> NDArray[np.float64] | None:
    """Transition weights from one label (row) to the next (column).

    Parameters
    ----------
    model : fitted Tagger or labeler
    boundary : bool, default=False
        Add a last row for the start and a last column for the end of a sequence.

    Returns
    -------
    array of shape (n_labels, n_labels), or (n_labels + 1, n_labels + 1) with `boundary`, or None
        None if the model has no transitions.
    """
    labeler = _labeler(model)
    if getattr(labeler, "transitions_", None) is None:
        return None
    inner = np.asarray(labeler.transitions_, dtype=np.float64)
    if not boundary:
        return inner
    n_labels = inner.shape[0]
    matrix = np.zeros((n_labels + 1, n_labels + 1))
    matrix[:-1, :-1] = inner
    for name, part in (("start_", matrix[-1, :-1]), ("end_", matrix[:-1, -1])):
        values = getattr(labeler, name, None)
        if values is not None:
            part[:] = np.asarray(values)
    return matrix


def feature_names(model: Any) -> NDArray[np.object_] | None:
    """Names of the features of a fitted model; None if they have only numbers."""
    labeler, inner = _labeler(model), getattr(model, "labeler_", None)
    stacked = next((one for one in (model, inner) if hasattr(one, "n_opinions_")), None)
    for holder in (getattr(model, "features_", None), getattr(labeler, "vectorizer_", None)):
        if holder is not None and hasattr(holder, "get_feature_names_out"):
            names = holder.get_feature_names_out()
            if stacked is not None and holder is not getattr(labeler, "vectorizer_", None):
                # Add the predictions of the first stage.
                names = stacked.get_feature_names_out(names)
            return np.asarray(names, dtype=object)
    if stacked is not None:
        return stacked.get_feature_names_out()
    names = getattr(labeler, "feature_names_in_", None)
    return None if names is None else np.asarray(names, dtype=object)


def label_order(labels: Iterable[Any]) -> list[Any]:
    """Sort labels for reading: grouped by phrase type, ``B`` before ``I``, ``O`` last.

    Examples
    --------
    >>> label_order(["B-NP", "B-VP", "I-NP", "O"])
    ['B-NP', 'I-NP', 'B-VP', 'O']
    """

    def key(label: Any) -> tuple[Any, ...]:
        if not isinstance(label, str):
            return (0, "", 0)
        letter, hyphen, kind = label.partition("-")
        if hyphen and len(letter) == 1 and letter in _LETTER_ORDER:
            return (0, kind, _LETTER_ORDER.index(letter))
        return (1 if label == "O" else 0, label, 0)

    return sorted(labels, key=key)


def to_frame(rows: Sequence[Any]) -> Any:
    """Data frame of the result of `top_features` or `top_transitions`, one weight per row.

    Needs pandas: ``pip install 'seqlab[frame]'``.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("to_frame needs pandas: pip install 'seqlab[frame]'") from error
    if rows and isinstance(rows[0], LabelFeatures):
        flat = [(one.label, *pair) for one in rows for pair in (*one.positive, *one.negative[::-1])]
        return pd.DataFrame(flat, columns=["label", "feature", "weight"])
    return pd.DataFrame(rows, columns=["source", "target", "weight"])


def _labeler(model: Any) -> Any:
    """The estimator that makes the final prediction: a Tagger's labeler, a stack's second stage."""
    while hasattr(model, "labeler_"):
        model = model.labeler_
    return model


def _classes(model: Any) -> list[Any]:
    classes = getattr(_labeler(model), "classes_", None)
    if classes is None:
        raise InputError(f"this {type(model).__name__} has no classes_; call fit first")
    return np.asarray(classes).tolist()


def _coefficients(model: Any) -> Any:
    """Weights (n_labels, n_features), dense or CSR."""
    labeler = _labeler(model)
    holder = labeler if hasattr(labeler, "coef_") else getattr(labeler, "estimator_", labeler)
    coef = getattr(holder, "coef_", None)
    if coef is None:
        raise InputError(
            f"{type(labeler).__name__} has no linear weights"
            + ("" if holder is labeler else f" (its estimator is a {type(holder).__name__})")
        )
    coef = sp.csr_matrix(coef) if sp.issparse(coef) else np.asarray(coef, dtype=np.float64)
    if coef.shape[0] == 1 and len(_classes(model)) == 2:
        # scikit-learn stores one row for two classes.
        return (np if isinstance(coef, np.ndarray) else sp).vstack([-coef, coef])
    return coef


def _row(coef: Any, position: int) -> NDArray[np.float64]:
    row = coef[[position]]
    return (row.toarray() if sp.issparse(row) else row).ravel()


def _position(classes: list[Any], label: Any) -> int:
    try:
        return classes.index(label)
    except ValueError:
        known = ", ".join(map(str, label_order(classes)))
        raise InputError(f"the model has no label {label!r}; its labels are {known}") from None


def _name(names: NDArray[np.object_] | None, column: int) -> str:
    return f"feature {column}" if names is None else str(names[column])
