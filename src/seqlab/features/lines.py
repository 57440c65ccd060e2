"""LineFeatures: lines of mails, logs, FAQs and other documents to matrices.

A document is a sequence of lines. Each line has the binary features of `_line_patterns` (blank, quoted,
separator, addresses, case, punctuation); the "full" set adds the position of the line in its document and
the features of its neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils._param_validation import Integral, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.features._base import FixedTokenTransformer
from seqlab.features._line_patterns import BASIC_NAMES, basic_features
from seqlab.features._token_columns import token_blocks
from seqlab.features.window import Window

# Lower bounds of the buckets of distances from the first and to the last line of a document. Near both ends
# every line has its own bucket; in the middle the exact distance does not matter.
_DISTANCES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 30, 45, 70, 100)
_N_TENTHS = 10
_N_NEIGHBOURS = 2  # lines before, and lines after, whose features are added


class LineFeatures(FixedTokenTransformer):
    r"""Binary features of lines of text.

    Parameters
    ----------
    features : {"full", "basic"}, default="full"
        "basic" describes each line by itself: blank, quoted, rule, list item, header field, log level,
        address, phone number, closing words, case, punctuation, length. "full" adds buckets of the
        distance from the first and to the last line, tenths of the document, and the basic features of
        the two lines before and the two after.
    patterns : dict of str to str, optional
        Names and regular expressions of additional basic features; each is searched for in every line.
    column : int, default=0
        The column that holds the line if steps are tuples, as `fetch_email_signatures` returns them.

    Attributes
    ----------
    feature_names_ : list of str
        Names of the columns: ``blank``, ``blank[-1]`` for the previous line, ``line 3 from the end``.

    See Also
    --------
    Window : Adds the features of neighbouring steps to those of any transformer.
    SequenceUnion : Combines these features with others.

    Notes
    -----
    Nothing is learned from the data: `fit` only checks the patterns. Positions are counted in the given
    sequence, so a sequence must be a whole document.

    Examples
    --------
    >>> from seqlab.features import LineFeatures
    >>> mail = ["Hello,", "", "> see you at 10:30?", "fine!", "--", "Ada Lovelace", "ada@example.org"]
    >>> lines = LineFeatures(features="basic")
    >>> matrix = lines.fit_transform([mail])[0]
    >>> names = lines.get_feature_names_out()
    >>> names[matrix[4].indices].tolist()[-3:]
    ['short', 'double dash alone', 'begins with dash']
    >>> names[matrix[5].indices].tolist()
    ['one or two words', 'short', 'name alone', 'begins in upper case']
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "features": [StrOptions({"basic", "full"})],
        "patterns": [Mapping, None],
        "column": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self, *, features: str = "full", patterns: Mapping[str, str] | None = None, column: int = 0
    ) -> None:
        self.features = features
        self.patterns = patterns
        self.column = column

    def fit(self, X: Any = None, y: Any = None) -> LineFeatures:
        """Check the patterns; nothing is learned from X.

        Parameters
        ----------
        X, y : ignored
        """
        self._validate_params()
        extra = list(self._compile_patterns())
        duplicates = sorted(set(extra) & set(BASIC_NAMES))
        if duplicates:
            raise InputError(f"the pattern name {duplicates[0]!r} is the name of a basic feature")
        basic = [*BASIC_NAMES, *extra]
        self.feature_names_ = basic
        if self.features == "full":
            window = _make_window().fit([np.zeros((1, len(basic)))])
            self.feature_names_ = [*window.get_feature_names_out(basic), *_position_names()]
        return self

    def transform(self, X: Any) -> Sequences:
        """Features of each line.

        Parameters
        ----------
        X : list of documents
            Each a list of lines (strings, or tuples that hold the line in ``column``).

        Returns
        -------
        Sequences
            CSR, one row per line.
        """
        check_is_fitted(self)
        patterns = list(self._compile_patterns().values())
        columns_of_line: dict[str, list[int]] = {}  # many lines are equal: blank, "--", a rule
        columns: list[list[int]] = []
        lengths: list[int] = []
        for block in token_blocks(X):
            for step, line in enumerate(block.column(self.column)):
                if not isinstance(line, str):
                    raise InputError(f"{block.locate(step)} is {line!r}, not a line of text")
                if line not in columns_of_line:
                    columns_of_line[line] = _line_columns(line, patterns)
                columns.append(columns_of_line[line])
            lengths += block.lengths
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        basic = Sequences(_binary_rows(columns, len(BASIC_NAMES) + len(patterns)), offsets)
        if self.features == "basic":
            return basic
        with_neighbours = _make_window().fit_transform(basic)
        matrix = sp.hstack([with_neighbours.matrix, _positions(basic.lengths)], format="csr")
        return Sequences(matrix, offsets)

    def _compile_patterns(self) -> dict[str, re.Pattern[str]]:
        compiled = {}
        for name, pattern in (self.patterns or {}).items():
            try:
                compiled[name] = re.compile(pattern)
            except (re.error, TypeError) as error:
                raise InputError(f"pattern {name!r} is not a regular expression: {error}") from None
        return compiled


def _make_window() -> Window:
    return Window(before=_N_NEIGHBOURS, after=_N_NEIGHBOURS, boundary=False)


def _line_columns(line: str, patterns: list[re.Pattern[str]]) -> list[int]:
    extra = [len(BASIC_NAMES) + k for k, pattern in enumerate(patterns) if pattern.search(line)]
    return basic_features(line) + extra


def _binary_rows(columns: list[list[int]], n_columns: int) -> sp.csr_matrix:
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in columns], dtype=np.int64)])
    indices = np.fromiter((c for row in columns for c in row), np.int32, int(indptr[-1]))
    return sp.csr_matrix((np.ones(indices.size), indices, indptr), (len(columns), n_columns))


def _position_names() -> list[str]:
    ends = [*_DISTANCES[1:], None]
    spans = [
        f"{first}" if last == first + 1 else f"{first}+" if last is None else f"{first}-{last - 1}"
        for first, last in zip(_DISTANCES, ends, strict=True)
    ]
    return [
        *[f"line {span} from the start" for span in spans],
        *[f"line {span} from the end" for span in spans],
        *[f"tenth {tenth}" for tenth in range(1, _N_TENTHS + 1)],
    ]


def _positions(lengths: NDArray[np.int64]) -> sp.csr_matrix:
    """Three ones per line: its bucket from the start, its bucket from the end, and its tenth."""
    n_steps, size = int(lengths.sum()), np.repeat(lengths, lengths)
    begin = np.repeat(np.cumsum(lengths) - lengths, lengths)
    position = np.arange(n_steps) - begin
    buckets = np.stack(
        [
            np.searchsorted(_DISTANCES, position, side="right") - 1,
            np.searchsorted(_DISTANCES, size - 1 - position, side="right") - 1 + len(_DISTANCES),
            _N_TENTHS * position // np.maximum(size, 1) + 2 * len(_DISTANCES),
        ],
        axis=1,
    )
    indptr = np.arange(n_steps + 1) * buckets.shape[1]
    shape = (n_steps, 2 * len(_DISTANCES) + _N_TENTHS)
    return sp.csr_matrix((np.ones(buckets.size), buckets.ravel(), indptr), shape=shape)
