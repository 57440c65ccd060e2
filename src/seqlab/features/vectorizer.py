"""SequenceVectorizer: symbolic steps to columns of numbers.

A step is a dict of named values or a bag of attribute strings, as in CRFsuite; each attribute that
the training data shows gets a column, in the order of first sight. Data are read in chunks of
sequences and each chunk becomes one flat run of column numbers. Bags are looked up as bytes, a block
of steps at a time (see `seqlab.data.string_table`): about 50 ns per attribute, half of it for reading
Python's strings. Dicts go through `map` over dict lookups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Integral, Interval
from sklearn.utils.validation import check_is_fitted

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.data.string_table import StringTable
from seqlab.data.vocabulary import Vocabulary
from seqlab.features.dict_steps import Tables, UnfitError, run_of_dicts
from seqlab.features.step_reader import StepReader, explain
from seqlab.features.step_rows import ColumnsOfBags, Run, assemble, run_of_bags, select_columns


class SequenceVectorizer(  # type: ignore[call-arg]  # scikit-learn's __init_subclass__
    TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    """Turn sequences of dicts or of bags of strings into `Sequences`.

    In a dict, a string value gives the feature ``name=value`` with weight 1; True gives ``name``
    with weight 1; a number gives ``name`` with that weight; False, 0 and None give nothing; a list,
    tuple or set of strings gives one feature ``name=item`` for each; a dict gives the features of
    its entries, named ``name:entry``. In a bag (list or set of strings) every string is a feature
    with weight 1. A feature that occurs more than once in a step gets the sum. A data frame counts
    as the dicts of its rows, missing text as None.

    Parameters
    ----------
    separator : str, default="="
        Stands between name and value.
    min_count : int, default=1
        Features that fewer than this many steps of the training data have are dropped.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        The features, in the order of first sight: the same data in the same order give the same
        columns. (A set has no order of its own: give lists where columns must be reproducible
        between processes.)

    See Also
    --------
    seqlab.LinearChainCRF : Labels the result; it also takes dicts and bags as they are.

    Notes
    -----
    Time and memory are linear in the number of attributes. Iterators are consumed in chunks, so
    that a file larger than memory can be vectorized as it is read. Unseen features are ignored by
    `transform`.

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
    }

    vocabulary_: Vocabulary

    def __init__(self, *, separator: str = "=", min_count: int = 1) -> None:
        self.separator = separator
        self.min_count = min_count

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
        runs, offsets = _read(X, table.add, index.__getitem__, self.separator)
        vocabulary = Vocabulary.from_index(dict(index)) if index else Vocabulary.from_table(table)
        matrix = assemble(runs, len(vocabulary))
        if self.min_count > 1:
            counts = np.bincount(matrix.indices, minlength=len(vocabulary))
            frequent = counts >= self.min_count
            matrix = select_columns(matrix, frequent)
            vocabulary = vocabulary.select(frequent)
        self.vocabulary_ = vocabulary
        return Sequences(matrix, offsets, feature_names=vocabulary)

    def transform(self, X: Iterable[Any]) -> Sequences:
        """Vectorize X with the features known from `fit`.

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
        runs, offsets = _read(
            X,
            lambda bags, n: vocabulary.table.find(bags, n),
            lambda name: vocabulary.index.get(name, -1),
            self.separator,
        )
        matrix = assemble(runs, len(vocabulary))
        return Sequences(matrix, offsets, feature_names=vocabulary)

    def inverse_transform(self, X: Any) -> list[list[dict[str, float]]]:
        """Give the features of each step back as a dict of names and weights.

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


def _read(
    X: Any, columns_of: ColumnsOfBags, column_of: Callable[[str], int], separator: str
) -> tuple[list[Run], NDArray[np.int64]]:
    """Runs and offsets of X; the functions say, or decide, the columns of bags and of a name."""
    tables = Tables(column_of, separator)
    runs: list[Run] = []
    lengths: list[int] = []
    reader = StepReader(X)
    for chunk in reader.chunks():
        lengths.extend(map(len, chunk.sequences))
        try:
            if reader.kind is Mapping:
                run = run_of_dicts(chunk.steps, tables)
            else:
                run = run_of_bags(chunk.steps, columns_of)
        except (UnfitError, TypeError):
            explain(chunk)
            raise
        runs.append(run)
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return runs, offsets
