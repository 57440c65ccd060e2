"""SequenceUnion: the features of several transformers side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import FeatureUnion

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences


class SequenceUnion(FeatureUnion):
    """Put the features of several transformers side by side.

    This is scikit-learn's `FeatureUnion` for transformers that return `Sequences`, with the same
    parameters, attributes and feature names (``words__word[0]=Paris``).

    Parameters
    ----------
    transformer_list : list of (str, transformer)
    n_jobs : int, optional
    transformer_weights : dict, optional
    verbose : bool
    verbose_feature_names_out : bool

    Examples
    --------
    >>> from seqlab.features import Gazetteer, SequenceUnion, Templates
    >>> union = SequenceUnion(
    ...     [("words", Templates([(0, "word")])), ("lists", Gazetteer({"city": ["New York"]}))]
    ... )
    >>> union.fit_transform([["in", "New", "York"]])[0].toarray()
    array([[1., 0., 0., 0., 0.],
           [0., 1., 0., 1., 0.],
           [0., 0., 1., 0., 1.]])
    >>> union.get_feature_names_out()[-2:].tolist()
    ['lists__city:B', 'lists__city:I']
    """

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        state_checks.check_named_estimators(self.transformer_list, "transformer_list", "transform")
        state_checks.check_type(self.n_jobs, "n_jobs", int, type(None))
        state_checks.check_type(self.transformer_weights, "transformer_weights", dict, type(None))

    def _hstack(self, Xs: Any) -> Sequences:
        for part in Xs:
            if not isinstance(part, Sequences):
                raise InputError(f"SequenceUnion joins Sequences, not {type(part).__name__}")
            if not np.array_equal(part.offsets, Xs[0].offsets):
                raise InputError(
                    "the transformers of a SequenceUnion return different numbers of steps"
                )
        matrices = [part.matrix for part in Xs]
        if any(part.is_sparse for part in Xs):
            return Sequences(sp.hstack(matrices, format="csr"), Xs[0].offsets)
        return Sequences(np.hstack(matrices), Xs[0].offsets)
