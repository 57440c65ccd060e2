"""What a model with a subsequence kernel saw at a step: the subsequences with the highest weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.inspection.weights import _classes, _position, feature_names
from seqlab.kernels import SubsequenceKernel
from seqlab.kernels.subsequence_patterns import explain_score


class SubsequenceReason(NamedTuple):
    """A subsequence around a step that speaks for (or against) a label.

    Attributes
    ----------
    subsequence : str
        The step itself is in brackets: ``hall door ... [toilet flush]``.
    contribution : float
        Its part of the score of the label at the step, ``value * weight``.
    value : float
        Weighted number of occurrences in the window of the step.
    weight : float
        Its weight in the kernel model.
    """

    subsequence: str
    contribution: float
    value: float
    weight: float


def explain_subsequences(
    model: Any,
    x: Any,
    step: int,
    label: Any = None,
    *,
    versus: Any = None,
    n: int = 10,
    names: Sequence[str] | None = None,
) -> list[SubsequenceReason]:
    """Return the subsequences around a step that contribute most to the score of a label.

    The kernel expansion of a model is turned back into weights of subsequences. The contributions of all
    subsequences of the window sum to the score of the label at the step, without transitions.

    Parameters
    ----------
    model : M3N or StructuredSVM
        Fitted with a `SubsequenceKernel`.
    x : one sequence, as in ``model.predict([x])``
    step : int
        Position in the sequence; negative numbers count from the end.
    label : label, optional
        The predicted label by default.
    versus : label, optional
        Explain the difference between the scores of two labels. By default, the score is relative to the
        mean over all labels.
    n : int, default=10
        Number of subsequences.
    names : sequence of str, optional
        Names of the features, if the model does not know them; ``x0``, ``x1``, ... by default.

    Returns
    -------
    list of SubsequenceReason
        In decreasing order of the absolute contribution.

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab import StructuredSVM, SubsequenceKernel
    >>> from seqlab.inspection import explain_subsequences
    >>> X = [np.array([[1.0, 0, 0], [0, 0, 1]]), np.array([[0.0, 1, 0], [0, 0, 1]])]
    >>> y = [["-", "after 0"], ["-", "after 1"]]
    >>> kernel = SubsequenceKernel(2, window=(1, 0))
    >>> svm = StructuredSVM(C=10, kernel=kernel, solver="1-slack").fit(X, y)
    >>> explain_subsequences(svm, X[0], 1, versus="after 1")[0].subsequence
    'x0 ... [x2]'
    """
    kernel = getattr(model, "kernel", None)
    if not isinstance(kernel, SubsequenceKernel):
        raise InputError(f"the kernel of the model must be a SubsequenceKernel, got {kernel!r}")
    sequences, _ = model._read([x])
    if not -sequences.n_steps <= step < sequences.n_steps:
        raise InputError(f"step is {step}, but the sequence has {sequences.n_steps} steps")
    step %= sequences.n_steps
    if label is None:
        label = model.predict(sequences)[0][step]
    classes = _classes(model)
    coefs = model.dual_coef_[:, _position(classes, label)]
    if versus is not None:
        coefs = coefs - model.dual_coef_[:, _position(classes, versus)]
    window = _window(kernel, sequences, step)
    parts = explain_score(kernel, window, model.support_steps_, coefs)
    texts = feature_names(model) if names is None else names
    if texts is not None and len(texts) != sequences.n_features:
        raise InputError(f"there are {len(texts)} names but {sequences.n_features} features")
    return [
        SubsequenceReason(
            part.subsequence.to_text(texts), part.contribution, part.value, part.weight
        )
        for part in parts[:n]
    ]


def _window(kernel: SubsequenceKernel, sequences: Sequences, step: int) -> Any:
    return kernel.windows(sequences)[step : step + 1]
