"""TrainingData: the training data of a labeler, converted and checked once.

`fit` converts the user's data and passes them to `_learn`; a meta-learner converts them once and passes parts
of them, or the same X with other labels, to many inner learners.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab.data.labels import sequence_weights
from seqlab.data.sequences import Sequences


@dataclass(slots=True)
class TrainingData:
    """The training data of a labeler, in the internal form.

    Parameters
    ----------
    X : Sequences
        No sequence is empty.
    codes : int64 array of shape (n_steps,)
        Label codes; negative if the label is unknown or partly known (see ``allowed``).
    classes : array of shape (n_labels,)
        The labels, sorted.
    allowed : boolean array of shape (n_steps, n_labels) or None
        Possible labels of each step, if some are not known.
    sequence_weights : array of shape (n_sequences,)
    step_weights : array of shape (n_steps,)
    is_weighted : bool
        Whether weights were given.
    groups : array of shape (n_sequences,) or None
        Sequences of one group stay together when the data are split.
    validation : TrainingData or None
        Held-out sequences for early stopping, with the same classes.
    derived : dict
        What learners have computed from X alone, by name. The same X with other labels shares it.
    """

    X: Sequences
    codes: NDArray[np.int64]
    classes: NDArray[Any]
    allowed: NDArray[np.bool_] | None
    sequence_weights: NDArray[np.float64]
    step_weights: NDArray[np.float64]
    is_weighted: bool = False
    groups: NDArray[Any] | None = None
    validation: TrainingData | None = None
    derived: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.classes.size)

    def with_labels(self, codes: NDArray[np.int64], classes: NDArray[Any]) -> TrainingData:
        """Return the same sequences with other labels, all known."""
        return replace(self, codes=codes, classes=classes, allowed=None)

    def with_features(self, X: Sequences) -> TrainingData:
        """Return the same labels with other features."""
        return replace(self, X=X, derived={})

    def part(self, chosen: NDArray[np.int64], *, keep_classes: bool = False) -> TrainingData:
        """Return the chosen sequences.

        If all labels are known, ``classes`` are those that occur in them, unless ``keep_classes``.
        """
        X, offsets = self.X[chosen], self.X.offsets
        rows = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in chosen])
        codes, classes = self.codes[rows], self.classes
        allowed = None if self.allowed is None else self.allowed[rows]
        if allowed is None and not keep_classes:
            present = np.unique(codes)
            codes, classes = np.searchsorted(present, codes), classes[present]
        return TrainingData(
            X,
            codes,
            classes,
            allowed,
            self.sequence_weights[chosen],
            self.step_weights[rows],
            self.is_weighted,
            None if self.groups is None else self.groups[chosen],
        )

    def cut(self, offsets: NDArray[np.int64]) -> TrainingData:
        """Return the same steps, split into other sequences; their weights are the means over their steps."""
        X = Sequences(self.X.matrix, offsets, feature_names=self.X.feature_names)
        weights, _ = sequence_weights(self.step_weights, offsets)
        return replace(self, X=X, sequence_weights=weights, groups=None, derived={})

    @property
    def sample_weight(self) -> Any:
        """Weights in the form that `fit` accepts: None, one per sequence, or a list of weights per step."""
        if not self.is_weighted:
            return None
        repeated = np.repeat(self.sequence_weights, self.X.lengths)
        is_constant = np.array_equal(repeated, self.step_weights)
        return self.sequence_weights if is_constant else self.X.split(self.step_weights)

    def count_transitions(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count the known transitions and first labels.

        Returns
        -------
        transitions : array of shape (n_labels, n_labels)
        starts : array of shape (n_labels,)
        """
        codes, offsets, n_labels = self.codes, self.X.offsets, self.n_labels
        pairs = codes[:-1] * n_labels + codes[1:]
        is_counted = (codes[:-1] >= 0) & (codes[1:] >= 0)
        is_counted[offsets[1:-1] - 1] = False  # pairs of different sequences
        transitions = np.bincount(pairs[is_counted], minlength=n_labels * n_labels)
        first = codes[offsets[:-1]]
        starts = np.bincount(first[first >= 0], minlength=n_labels)
        return transitions.reshape(n_labels, n_labels), starts
