"""BracketFeatures: features for deciding whether a phrase opens or closes at a token.

A bracket is placed in a gap between two tokens. Both decisions of token ``t`` read the same number of tokens
on each side of their gap; with a window of six::

    open     t-3  t-2  t-1 [ t   t+1  t+2
    close         t-2  t-1   t ] t+1  t+2  t+3

Features are conjunctions of up to three tokens of the window, with their positions: all runs of adjacent
tokens (6 + 5 + 4 = 15 per column) or all subsets (6 + 15 + 20 = 41).

References
----------
Punyakanok and Roth, "The use of classifiers in sequential inference", NIPS 2000.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils._param_validation import Integral, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.features._base import TokenTransformer
from seqlab.features._token_columns import token_blocks
from seqlab.features.templates import Templates

Spec = list[tuple[int, int | str]]


class BracketFeatures(TokenTransformer):
    """Features of open and close decisions over token columns.

    A sequence of T tokens becomes a sequence of 2T steps, the open and the close decision of each token
    in turn (`seqlab.data.phrases_to_open_close` uses the same order), or of T steps for one kind of
    decision only. The two kinds of decisions have no columns in common.

    Parameters
    ----------
    columns : sequence of int or str, optional
        Columns of the tokens to read, by number or by name (``word`` and ``pos`` for pairs; see
        `Templates`); all columns by default.
    scheme : {"runs", "subsets"}, default="runs"
        Whether conjunctions combine adjacent tokens of the window only, or any.
    size : int, default=3
        Largest number of tokens in a conjunction.
    window : int, default=6
        Number of tokens in the window, half of them on each side of the gap; must be even.
    mixed : bool, default=False
        Whether a conjunction may read different columns, such as one token's word and another token's
        part of speech. Otherwise each conjunction reads a single column.
    decisions : {"both", "open", "close"}, default="both"
    min_count : int, default=1
        Features seen fewer times in `fit` are dropped.

    Attributes
    ----------
    templates_ : dict of str to Templates
        The fitted templates of each kind of decision.
    n_features_in_ : int
        Number of columns of the tokens seen in `fit`.
    n_features_out_ : int

    See Also
    --------
    ClassifierHMM, ProjectionMarkovModel, PhraseInference : Turn decisions into phrases.
    Templates : Features of any other form.

    Notes
    -----
    Tokens outside the sequence are read as marks, ``_B-1``, ``_B-2``, ... before and ``_B+1``, ...
    after it. With the default parameters each token has exactly 15 (runs) or 41 (subsets) features per
    column and decision; those not seen in `fit` are ignored.

    The paper does not say how its window is aligned and which conjunctions of size 3 it uses. Here the
    window is centred on the gap, and `scheme` selects one of the two possible readings.

    References
    ----------
    Punyakanok and Roth, "The use of classifiers in sequential inference", NIPS 2000.

    Examples
    --------
    >>> from seqlab.features import BracketFeatures
    >>> X = [[("the", "DT"), ("cat", "NN"), ("sat", "VBD")]]
    >>> brackets = BracketFeatures(columns=["pos"])
    >>> result = brackets.fit_transform(X)
    >>> result.lengths.tolist(), result.matrix.sum(axis=1).ravel().tolist()
    ([6], [[15.0, 15.0, 15.0, 15.0, 15.0, 15.0]])
    >>> brackets.get_feature_names_out()[-1]
    'close:pos[1]|pos[2]|pos[3]=_B+1|_B+2|_B+3'
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "columns": ["array-like", None],
        "scheme": [StrOptions({"runs", "subsets"})],
        "size": [Interval(Integral, 1, None, closed="left")],
        "window": [Interval(Integral, 2, None, closed="left")],
        "mixed": ["boolean"],
        "decisions": [StrOptions({"both", "open", "close"})],
        "min_count": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        columns: Sequence[int | str] | None = None,
        scheme: str = "runs",
        size: int = 3,
        window: int = 6,
        mixed: bool = False,
        decisions: str = "both",
        min_count: int = 1,
    ) -> None:
        self.columns = columns
        self.scheme = scheme
        self.size = size
        self.window = window
        self.mixed = mixed
        self.decisions = decisions
        self.min_count = min_count

    def fit(self, X: Any, y: Any = None) -> BracketFeatures:
        """Learn the features of the tokens.

        Parameters
        ----------
        X : iterable of sequences of tokens
            As for `Templates`.
        y : ignored
        """
        tokens, templates = self._prepare(X)
        for part in templates.values():
            part.fit(tokens)
        self._store(templates)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Sequences:
        """Learn the features of the tokens and return their matrix, in one pass."""
        tokens, templates = self._prepare(X)
        parts = [part.fit_transform(tokens) for part in templates.values()]
        self._store(templates)
        return _interleave(parts)

    def transform(self, X: Any) -> Sequences:
        """Return the features of the decisions, CSR of shape (n_steps, n_features_out_).

        Parameters
        ----------
        X : see `fit`
        """
        check_is_fitted(self)
        tokens = _as_list(X)
        return _interleave([part.transform(tokens) for part in self.templates_.values()])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the features, ``open:word[-1]|word[0]=the|cat``; rebuilt at each call."""
        check_is_fitted(self)
        names = [
            f"{kind}:" + templates.get_feature_names_out()
            for kind, templates in self.templates_.items()
        ]
        return np.concatenate(names)

    @property
    def n_features_out_(self) -> int:
        """Number of features."""
        return sum(templates.n_features_out_ for templates in self.templates_.values())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "templates_")

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        if not state_checks.has_fitted_attributes(self):
            return
        kinds = ["open", "close"] if self.decisions == "both" else [self.decisions]
        state_checks.check_type(self.templates_, "templates_", dict)
        state_checks.require(list(self.templates_) == kinds, "templates_")
        for templates in self.templates_.values():
            state_checks.check_type(templates, "templates_", Templates)
            state_checks.require(hasattr(templates, "vocabularies_"), "templates_")
            state_checks.require(templates.n_features_in_ == self.n_features_in_, "templates_")

    def _prepare(self, X: Any) -> tuple[Any, dict[str, Templates]]:
        """Return the tokens as a list, and unfitted templates for each kind of decision."""
        if isinstance(self.columns, str):
            raise InputError(f"columns must be a list, such as [{self.columns!r}]")
        self._validate_params()
        if self.window % 2:
            raise InputError(
                f"window={self.window} must be even: half of it on each side of the gap"
            )
        tokens = _as_list(X)
        columns = self.columns
        if columns is None:
            columns = range(next((b.width for b in token_blocks(tokens) if b.width), 0))
        columns = list(columns)
        if not columns:
            raise InputError("X holds no tokens to learn features from")
        half = self.window // 2
        kinds = ("open", "close") if self.decisions == "both" else (self.decisions,)
        templates = {}
        for kind in kinds:
            # The gap of a close decision is one token further.
            first = -half if kind == "open" else 1 - half
            specs = self._conjunctions(range(first, first + self.window), columns)
            templates[kind] = Templates(specs, min_count=self.min_count)
        return tokens, templates

    def _conjunctions(self, window: range, columns: Sequence[int | str]) -> list[Spec]:
        """Return the conjunctions of a window of distances, as templates."""
        specs = []
        for size in range(1, min(self.size, len(window)) + 1):
            selected: Iterable[tuple[int, ...]]
            if self.scheme == "runs":
                selected = [tuple(window[i : i + size]) for i in range(len(window) - size + 1)]
            else:
                selected = combinations(window, size)
            for rows in selected:
                reads = (
                    product(columns, repeat=size) if self.mixed else ([c] * size for c in columns)
                )
                specs += [list(zip(rows, read, strict=True)) for read in reads]
        return specs

    def _store(self, templates: dict[str, Templates]) -> None:
        self.templates_ = templates
        self.n_features_in_ = next(iter(templates.values())).n_features_in_


def _as_list(X: Any) -> Any:
    """Return the input as a list, to read it twice; for invalid input `token_blocks` raises the error."""
    is_readable = isinstance(X, Iterable) and not isinstance(X, str | bytes | dict | Sequences)
    return list(X) if is_readable else X


def _interleave(parts: list[Sequences]) -> Sequences:
    """Alternate the steps of several transformers (a, b, a, b, ...), each with its own columns."""
    if len(parts) == 1:
        return parts[0]
    n_steps, n_parts = parts[0].n_steps, len(parts)
    stacked = sp.block_diag([part.matrix for part in parts], format="csr")
    order = np.arange(n_parts * n_steps).reshape(n_parts, n_steps).T.ravel()
    return Sequences(stacked[order], n_parts * parts[0].offsets)
