"""AtomVectorizer: a `SequenceVectorizer` that keeps atoms that training does not show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from seqlab.data.sequences import Sequences
from seqlab.data.symbolic import name_atoms
from seqlab.features import SequenceVectorizer


class AtomVectorizer(SequenceVectorizer):
    """Turn dicts and bags of atoms into columns; `transform` appends unseen atoms with arguments.

    A query with variables may hold for constants that training does not show: ``use(A)[t] & use(A)[t-1]`` is
    about any object. `SequenceVectorizer` leaves such columns out.

    Parameters
    ----------
    separator, min_count, keep_zeros
        See `SequenceVectorizer`.
    predicate : str or None, default=None
        Predicate of names that are not atoms with arguments: with "on", ``door`` is ``on(door)``. Without
        one such names have no arguments, and `transform` leaves unseen ones out.

    Examples
    --------
    >>> vectorizer = AtomVectorizer().fit([[["use(cup)"]]])
    >>> X = vectorizer.transform([[["use(cup)", "use(kettle)", "other"]]])
    >>> X.feature_names.tolist(), X[0].toarray()
    (['use(cup)', 'use(kettle)'], array([[1., 1.]]))
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **SequenceVectorizer._parameter_constraints,
        "predicate": [str, None],
    }

    def __init__(
        self,
        *,
        separator: str = "=",
        min_count: int = 1,
        keep_zeros: bool = False,
        predicate: str | None = None,
    ) -> None:
        super().__init__(separator=separator, min_count=min_count, keep_zeros=keep_zeros)
        self.predicate = predicate

    def transform(self, X: Iterable[Any]) -> Sequences:
        """Vectorize X: the columns learned in `fit`, then those of unseen atoms."""
        check_is_fitted(self)
        given = SequenceVectorizer(separator=self.separator, keep_zeros=self.keep_zeros)
        found = given.fit_transform(X)
        names = [str(name) for name in given.vocabulary_]
        atoms = name_atoms(names, len(names), predicate=self.predicate)
        index, n_known = self.vocabulary_.index, len(self.vocabulary_)
        new = [n for n, a in zip(names, atoms, strict=True) if n not in index and a.arguments]
        target = dict(index) | {name: n_known + at for at, name in enumerate(new)}
        column = np.array([target.get(name, -1) for name in names], dtype=np.int64)
        entries = sp.coo_matrix(found.matrix)
        columns = column[entries.col] if names else entries.col
        keep = columns >= 0
        shape = (found.n_steps, n_known + len(new))
        at = entries.row[keep], columns[keep]
        all_names = np.array([*self.vocabulary_, *new], dtype=object)
        matrix = sp.csr_matrix((entries.data[keep], at), shape=shape)
        return Sequences(matrix, found.offsets, feature_names=all_names)


def first_columns(X: Sequences, n: int) -> Sequences:
    """Return the columns of training, without those of unseen atoms."""
    if X.n_features <= n:
        return X
    return Sequences.from_checked(X.matrix[:, :n], X.offsets.copy())
