"""The transformer `SequenceVectorizer`.

A step is a dict of named values or a bag of attribute strings, as in CRFsuite. Each attribute of the
training data gets a column, in the order of first occurrence. Data are read in chunks of sequences, and the
attributes of a chunk become one array of column numbers. Bags are looked up as bytes, a block of steps at a
time (see `seqlab.data.string_table`): about 50 ns per attribute, half of it for reading Python's strings.
Dicts go through `map` over dict look-ups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils._param_validation import Integral, Interval
from sklearn.utils.validation import check_is_fitted

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences, to_offsets
from seqlab.data.string_table import StringTable
from seqlab.data.vocabulary import Vocabulary
from seqlab.features._base import SequenceTransformer
from seqlab.features.vectorizer._dict_steps import DictColumns, UnsupportedValueError, encode_dicts
from seqlab.features.vectorizer._numbering import numbering
from seqlab.features.vectorizer._step_reader import StepReader, raise_unsupported
from seqlab.features.vectorizer._step_rows import (
    ColumnsOfBags,
    EncodedSteps,
    assemble,
    encode_bags,
    select_columns,
)


class SequenceVectorizer(SequenceTransformer):
    """Turn sequences of dicts or of bags of strings into `Sequences`.

    In a dict, a string value gives the feature ``name=value`` with weight 1; True gives ``name`` with
    weight 1; a number gives ``name`` with that weight; False, 0 and None give no feature; a list, tuple
    or set of strings gives one feature ``name=item`` for each string; a dict gives the features of its
    entries, named ``name:entry``. In a bag (a list or set of strings) every string is a feature with
    weight 1. The weights of a feature that occurs more than once in a step are summed. A data frame is
    read as the dicts of its rows, missing text as None.

    Parameters
    ----------
    separator : str, default="="
        Text between name and value.
    min_count : int, default=1
        Features that occur in fewer steps of the training data are dropped.
    keep_zeros : bool, default=False
        Whether False and 0 give ``name`` with weight 0, stored in the matrix, instead of no feature. The
        values of a row are the same, but the feature occurs in that step: this matters for ``min_count``
        and for ``LinearChainCRF(crfsuite_features=True)``.
    n_jobs : int, default=None
        With two threads or more, `fit` numbers the strings of bags while it reads the next ones; the result
        is the same. None means 1, -1 all cores.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        The features, in the order of first occurrence: the same data in the same order give the same
        columns. (Sets are not ordered: use lists if the columns must be the same in every process.)

    See Also
    --------
    seqlab.LinearChainCRF : Labels the result; it also takes dicts and bags directly.

    Notes
    -----
    Time and memory are linear in the number of attributes. Iterators are consumed in chunks, so a file
    larger than memory can be vectorized while it is read. `transform` ignores unseen features.

    Examples
    --------
    >>> from seqlab import SequenceVectorizer
    >>> X = [[{"word": "Mr", "title": True}, {"word": "Fog", "length": 3}]]
    >>> vectorizer = SequenceVectorizer()
    >>> vectorizer.fit_transform(X)[0].toarray()
    array([[1., 1., 0., 0.],
           [0., 0., 1., 3.]])
    >>> vectorizer.get_feature_names_out().tolist()
    ['word=Mr', 'title', 'word=Fog', 'length']
    >>> vectorizer.transform([[["title", "word=Aouda"]]])[0].toarray()
    array([[0., 1., 0., 0.]])
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "separator": [str],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "keep_zeros": ["boolean"],
        "n_jobs": [None, Integral],
    }

    vocabulary_: Vocabulary
    # For vectorizers that were saved before these parameters existed.
    keep_zeros = False
    n_jobs: int | None = None

    def __init__(
        self,
        *,
        separator: str = "=",
        min_count: int = 1,
        keep_zeros: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.separator = separator
        self.min_count = min_count
        self.keep_zeros = keep_zeros
        self.n_jobs = n_jobs

    def fit(self, X: Iterable[Any], y: Any = None) -> SequenceVectorizer:
        """Learn the features of X.

        Parameters
        ----------
        X : list or iterator of sequences
            Each a list of dicts, a list of bags of strings, or a data frame.
        y : ignored

        Returns
        -------
        self
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Iterable[Any], y: Any = None) -> Sequences:
        """Learn the features of X and vectorize it in one pass.

        Parameters
        ----------
        X : list or iterator of sequences
        y : ignored

        Returns
        -------
        Sequences
            CSR float64 with one column per feature.
        """
        self._validate_params()
        table = StringTable()  # for bags
        index: defaultdict[str, int] = defaultdict()  # for dicts
        index.default_factory = index.__len__
        with numbering(table, self.n_jobs) as columns_of_bags:
            chunks, offsets = _encode(
                X, columns_of_bags, index.__getitem__, self.separator, self.keep_zeros
            )
        vocabulary = Vocabulary.from_index(dict(index)) if index else Vocabulary.from_table(table)
        matrix = assemble(chunks, len(vocabulary))
        if self.min_count > 1:
            counts = np.bincount(matrix.indices, minlength=len(vocabulary))
            frequent = counts >= self.min_count
            matrix = select_columns(matrix, frequent)
            vocabulary = vocabulary.select(frequent)
        self.vocabulary_ = vocabulary
        return Sequences(matrix, offsets, feature_names=vocabulary)

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        if state_checks.has_fitted_attributes(self):
            state_checks.check_type(self.vocabulary_, "vocabulary_", Vocabulary)

    def transform(self, X: Iterable[Any]) -> Sequences:
        """Vectorize X with the features learned in `fit`.

        Parameters
        ----------
        X : list or iterator of sequences

        Returns
        -------
        Sequences
            CSR float64 with one column per feature of `vocabulary_`.
        """
        check_is_fitted(self)
        vocabulary = self.vocabulary_

        def find(bags: list[Any], n_strings: int, out: NDArray[np.int32]) -> None:
            out[:] = vocabulary.table.find(bags, n_strings)

        chunks, offsets = _encode(
            X,
            find,
            lambda name: vocabulary.index.get(name, -1),
            self.separator,
            self.keep_zeros,
        )
        matrix = assemble(chunks, len(vocabulary))
        return Sequences(matrix, offsets, feature_names=vocabulary)

    def inverse_transform(self, X: Any) -> list[list[dict[str, float]]]:
        """Return the features of each step as a dict of names and weights.

        Parameters
        ----------
        X : Sequences, or list of matrices, with the columns of `vocabulary_`

        Returns
        -------
        list of lists of dicts
        """
        check_is_fitted(self)
        result = []
        for index, item in enumerate(X):
            csr = sp.csr_matrix(item)
            if csr.shape[1] != len(self.vocabulary_):
                raise InputError(
                    f"X[{index}] has {csr.shape[1]} columns but the vocabulary has "
                    f"{len(self.vocabulary_)} names"
                )
            names = self.vocabulary_.names[csr.indices]
            bounds = csr.indptr.tolist()
            pairs = list(zip(names, csr.data.tolist(), strict=True))
            result.append([dict(pairs[a:b]) for a, b in pairwise(bounds)])
        return result

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str objects
        """
        check_is_fitted(self)
        return self.vocabulary_.names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.dict = True
        return tags


def _encode(
    X: Any,
    columns_of_bags: ColumnsOfBags,
    column_of_name: Callable[[str], int],
    separator: str,
    keep_zeros: bool,
) -> tuple[list[EncodedSteps], NDArray[np.int64]]:
    """Column numbers of X, chunk by chunk, and its offsets.

    The functions give the columns of bags and of a single name; in `fit` they also add new columns.
    """
    dict_columns = DictColumns(column_of_name, separator, keep_zeros)
    encoded: list[EncodedSteps] = []
    lengths: list[int] = []
    reader = StepReader(X)
    for chunk in reader.chunks():
        lengths.extend(map(len, chunk.sequences))
        try:
            if reader.kind is Mapping:
                encoded.append(encode_dicts(chunk.steps, dict_columns))
            else:
                encoded.append(encode_bags(chunk.steps, columns_of_bags))
        except (UnsupportedValueError, TypeError):
            raise_unsupported(chunk)
            raise
    return encoded, to_offsets(lengths)
