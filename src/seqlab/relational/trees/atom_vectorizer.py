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

    A query with variables may hold for constants that training does not show: ``use(A, t), use(A, t-1)`` is
    about any object. `SequenceVectorizer` leaves such columns out.

    Examples
    --------
    >>> vectorizer = AtomVectorizer().fit([[["use(cup)"]]])
    >>> X = vectorizer.transform([[["use(cup)", "use(kettle)", "other"]]])
    >>> X.feature_names.tolist(), X[0].toarray()
    (['use(cup)', 'use(kettle)'], array([[1., 1.]]))
    """

    def transform(self, X: Iterable[Any]) -> Sequences:
        """Vectorize X: the columns learned in `fit`, then those of unseen atoms."""
        check_is_fitted(self)
        given = SequenceVectorizer(separator=self.separator, keep_zeros=self.keep_zeros)
        found = given.fit_transform(X)
        names = [str(name) for name in given.vocabulary_]
        atoms = name_atoms(names, len(names), predicate=None)
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
