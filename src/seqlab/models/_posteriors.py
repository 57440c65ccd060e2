"""Posteriors of any scikit-learn classifier, in the form that labelers need.

A labeler needs one thing from a classifier: ``P(label | step)`` for every step, with a column for each
label of the *labeler*. The functions here fit the classifier (calibrated if it has no probabilities of its
own), put its columns in order, and raise an error for values that are not probabilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import has_fit_parameter

from seqlab.data import state_checks
from seqlab.data.errors import InputError, NumericalError
from seqlab.learning import TrainingData

# Lower bound on posteriors. Without it, a single wrong zero would exclude a labeling, whatever the
# posteriors of all other steps.
MIN_POSTERIOR = 1e-12
# Folds of the calibration; the default of scikit-learn.
N_FOLDS = 5

CLASSIFIER_CONSTRAINTS: dict[str, list[Any]] = {
    "classifier": [HasMethods(["fit", "predict"]), None],
    "calibrate": [StrOptions({"auto", "sigmoid", "isotonic"}), None],
}


class StepPosteriors:
    """``P(label | step)`` of one fitted classifier, over all labels of a labeler.

    Parameters
    ----------
    classifier : fitted classifier or None
        None if training shows a single label.
    columns : int array of shape (n_known,)
        Label code of each column of the classifier's ``predict_proba``.
    n_labels : int
        Number of labels of the labeler; those without a column have probability 0.
    """

    def __init__(self, classifier: Any, columns: NDArray[np.int64], n_labels: int) -> None:
        self.classifier = classifier
        self.columns = columns
        self.n_labels = n_labels

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        n_labels = state_checks.check_int(self.n_labels, "n_labels", 1)
        columns = state_checks.check_array(
            self.columns, "columns", (None,), "i", low=0, high=n_labels, dtype=np.int64
        )
        state_checks.require(columns.size and np.unique(columns).size == columns.size, "columns")
        if self.classifier is None:
            state_checks.require(columns.size == 1, "columns")

    def check_classifier(self, n_features: int, n_labels: int) -> None:
        """Raise an error if the classifier does not predict these labels from this number of features."""
        state_checks.require(self.n_labels == n_labels, "n_labels")
        if self.classifier is not None:
            state_checks.require(hasattr(self.classifier, "predict_proba"), "classifier")
            state_checks.probe_classifier(self.classifier, n_features, self.columns.size)

    def proba(self, matrix: Any, steps: NDArray[np.int64], offsets: Any) -> NDArray[np.float64]:
        """Return the posteriors of the rows of ``matrix``.

        Every label that the classifier knows has at least `MIN_POSTERIOR`.

        Parameters
        ----------
        matrix : array or CSR matrix of shape (n_rows, n_features)
        steps : int array of shape (n_rows,)
            Step of each row, for error messages.
        offsets : int array of shape (n_sequences + 1,)
            First step of each sequence, and the number of steps.

        Returns
        -------
        array of shape (n_rows, n_labels)
            Rows sum to 1.
        """
        out = np.zeros((matrix.shape[0], self.n_labels))
        if self.classifier is None:
            out[:, self.columns] = 1.0
        elif matrix.shape[0]:
            out[:, self.columns] = self._known(matrix, steps, offsets)
        return out

    def _known(self, matrix: Any, steps: NDArray[np.int64], offsets: Any) -> NDArray[np.float64]:
        name = type(self.classifier).__name__
        found = np.asarray(self.classifier.predict_proba(matrix), dtype=np.float64)
        if found.shape != (matrix.shape[0], self.columns.size):
            raise InputError(
                f"{name}.predict_proba gave an array of shape {found.shape}; expected "
                f"{matrix.shape[0]} rows and one column for each of its {self.columns.size} classes"
            )
        bad = ~(np.isfinite(found).all(axis=1) & (found >= 0).all(axis=1))
        if bad.any():
            row = int(np.argmax(bad))
            step = int(steps[row])
            sequence = int(np.searchsorted(offsets, step, side="right") - 1)
            position = step - int(offsets[sequence])
            raise NumericalError(
                f"{name} gave values that are not probabilities for sequence {{sequence}} "
                f"at position {position}: "
                f"{', '.join(f'{value:g}' for value in found[row][:4])}",
                sequence,
            )
        return apply_floor(found)


def apply_floor(proba: NDArray[np.float64]) -> NDArray[np.float64]:
    """Raise entries below `MIN_POSTERIOR` to it and normalise rows; a row of zeros becomes uniform."""
    proba = np.maximum(proba, MIN_POSTERIOR)
    return proba / proba.sum(axis=1, keepdims=True)


def prepare_classifier(classifier: Any, calibrate: str | None) -> Any:
    """Return the classifier to clone and fit, wrapped for calibration if needed or asked for.

    None stands for multinomial logistic regression. Raises `InputError` for a regressor and for a
    classifier without usable probabilities.
    """
    if classifier is None:
        classifier = LogisticRegression(max_iter=1000)
    name = type(classifier).__name__
    if is_regressor(classifier):
        raise InputError(f"{name} is a regressor; labels need a classifier")
    has_proba = hasattr(classifier, "predict_proba")
    has_decision = hasattr(classifier, "decision_function")
    if not has_proba and not has_decision:
        raise InputError(
            f"{name} has neither predict_proba nor decision_function, so it cannot give probabilities"
        )
    if calibrate is None and not has_proba:
        raise InputError(
            f"{name} has no predict_proba; calibrate='sigmoid' or 'isotonic' computes probabilities "
            "from its decision_function"
        )
    if calibrate is None or (calibrate == "auto" and has_proba):
        return classifier
    method = "sigmoid" if calibrate == "auto" else calibrate
    return CalibratedClassifierCV(classifier, method=method)


def fit_posteriors(
    classifier: Any,
    matrix: Any,
    codes: NDArray[np.int64],
    classes: NDArray[Any],
    *,
    weights: NDArray[np.float64] | None = None,
    groups: NDArray[np.int64],
    place: str = "",
) -> StepPosteriors:
    """Fit a clone of the classifier on the given steps.

    Parameters
    ----------
    classifier : what `prepare_classifier` returned
    matrix : array or CSR matrix of shape (n_rows, n_features)
    codes : int array of shape (n_rows,)
        Labels of the rows.
    classes : array of shape (n_labels,)
        The labels of the labeler.
    weights : array of shape (n_rows,), optional
        Only if the user gave weights. Rows of weight 0 are left out.
    groups : int array of shape (n_rows,)
        Sequence of each row: calibration keeps the steps of a sequence in one fold.
    place : str
        Describes the rows in error messages (" after 'B'").
    """
    calibrated = isinstance(classifier, CalibratedClassifierCV)
    inner = classifier.estimator if calibrated else classifier
    options: dict[str, Any] = {}
    if weights is not None:
        if not has_fit_parameter(inner, "sample_weight"):
            raise InputError(f"{type(inner).__name__} does not accept sample_weight")
        used = np.flatnonzero(weights > 0)
        if used.size < weights.size:
            matrix, codes, groups, weights = matrix[used], codes[used], groups[used], weights[used]
        options["sample_weight"] = weights
    present = np.unique(codes)
    if present.size == 1:
        return StepPosteriors(None, present, classes.size)
    fitted = clone(classifier)
    own_folds = calibrated and fitted.cv is None
    if own_folds:
        fitted.set_params(cv=_folds(codes, groups))
    if calibrated and options and get_config()["enable_metadata_routing"]:
        # Without a request scikit-learn raises an error about weights nobody asked for.
        fitted.estimator.set_fit_request(sample_weight=True)
    # The classifier gets the user's labels, because class weights may name them. Exception: labels such as
    # 0.5, which scikit-learn would take for regression targets.
    uses_codes = classes.dtype.kind not in "biuU"
    try:
        fitted.fit(matrix, codes if uses_codes else classes[codes], **options)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{type(inner).__name__} could not be fitted to the {codes.size} steps{place}: {error}"
        ) from error
    if own_folds:
        fitted.set_params(cv=None)  # the folds are as large as the data and no longer needed
    return StepPosteriors(fitted, _columns(fitted, present, classes, uses_codes), classes.size)


def weights_and_groups(data: TrainingData) -> tuple[NDArray[np.float64] | None, NDArray[np.int64]]:
    """Return the ``weights`` and ``groups`` of all training steps, as `fit_posteriors` takes them."""
    groups = np.repeat(np.arange(len(data.X)), data.X.lengths)
    return (data.step_weights if data.is_weighted else None), groups


def _columns(
    fitted: Any, present: NDArray[np.int64], classes: NDArray[Any], uses_codes: bool
) -> NDArray[np.int64]:
    """Return the label codes of the classifier's columns; without ``classes_`` in sorted order."""
    known = getattr(fitted, "classes_", None)
    if known is None:
        return present
    names = (present if uses_codes else classes[present]).tolist()
    code_of = dict(zip(names, present.tolist(), strict=True))
    columns = [code_of.get(label, -1) for label in np.asarray(known).tolist()]
    if -1 in columns:
        label = np.asarray(known).tolist()[columns.index(-1)]
        raise InputError(
            f"{type(fitted).__name__} has a class {label!r} that is not in its training data"
        )
    return np.array(columns, dtype=np.int64)


def _folds(codes: NDArray[np.int64], groups: NDArray[np.int64]) -> list[tuple[Any, Any]]:
    """Split the steps by sequences if there are enough, otherwise the steps of each label in turn.

    The default of scikit-learn needs five examples of every class, which rare labels do not have.
    """
    distinct, position = np.unique(groups, return_inverse=True)
    if distinct.size >= N_FOLDS:
        fold = position % N_FOLDS
    else:
        fold = np.empty(codes.size, dtype=np.int64)
        for code in np.unique(codes):
            mine = np.flatnonzero(codes == code)
            fold[mine] = np.arange(mine.size) % N_FOLDS
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(N_FOLDS)]
    # A fold needs two classes to train on and at least one step to calibrate on.
    usable = [
        (train, test) for train, test in splits if test.size and np.unique(codes[train]).size > 1
    ]
    if not usable:
        raise InputError(
            f"{codes.size} steps are too few to calibrate on: use a classifier with predict_proba"
        )
    return usable
