"""BracketFeatures: what a classifier sees when it decides whether a phrase opens or closes here.

A bracket sits in a gap between two tokens. Both decisions of token ``t`` look at the same number of
tokens on each side of their gap; with a window of six::

    open     t-3  t-2  t-1 [ t   t+1  t+2
    close         t-2  t-1   t ] t+1  t+2  t+3

Features are conjunctions of up to three tokens of the window, with their places: all adjacent runs
(6 + 5 + 4 = 15 per column) or all subsets (6 + 15 + 20 = 41).

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
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Integral, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.features.columns import token_blocks
from seqlab.features.templates import Templates

Spec = list[tuple[int, int | str]]


class BracketFeatures(  # type: ignore[call-arg]  # scikit-learn's __init_subclass__
    TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    """Features of open and close decisions over token columns.

    A sequence of T tokens becomes one of 2T steps, the open and the close decision of each token in turn
    (`seqlab.data.phrases_to_open_close` writes phrases in the same order), or of T steps where
    only one kind is wanted. The two kinds of decisions have no column in common.

    Parameters
    ----------
    columns : sequence of int or str, optional
        Columns of the tokens to read, by number or by name (``word`` and ``pos`` for pairs; see
        `Templates`); all of them where None.
    scheme : {"runs", "subsets"}, default="runs"
        Conjunctions of adjacent tokens of the window only, or of any.
    size : int, default=3
        Tokens in a conjunction, at most.
    window : int, default=6
        Tokens that are looked at, half of them on each side of the gap; even.
    mixed : bool, default=False
        Whether conjunctions may take one token's word and another's part of speech. Otherwise each
        reads one column throughout.
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
    ClassifierHMM, ProjectionMarkovModel, PhraseInference : what makes phrases out of decisions.
    Templates : features of any other form.

    Notes
    -----
    Tokens outside the sequence are read as marks, ``_B-1``, ``_B-2``, ... before and ``_B+1``, ...
    after it. Each token has, per column and decision, exactly 15 (runs) or 41 (subsets) features at
    the defaults, as far as they were met in `fit`.

    The paper prints neither the alignment of its window nor which conjunctions of size 3 it takes;
    both readings are here, and the window is centred on the gap.

    References
    ----------
    Punyakanok and Roth, "The use of classifiers in sequential inference", NIPS 2000.

    Examples
    --------
    >>> from seqlab.features import BracketFeatures
    >>> X = [[("the", "DT"), ("cat", "NN"), ("sat", "VBD")]]
    >>> brackets = BracketFeatures(columns=["pos"])
    >>> made = brackets.fit_transform(X)
    >>> made.lengths.tolist(), made.matrix.sum(axis=1).ravel().tolist()
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
        tokens, made = self._prepare(X)
        for templates in made.values():
            templates.fit(tokens)
        self._store(made)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Sequences:
        """Learn the features of the tokens and return their matrix, in one pass."""
        tokens, made = self._prepare(X)
        parts = [templates.fit_transform(tokens) for templates in made.values()]
        self._store(made)
        return _in_turn(parts)

    def transform(self, X: Any) -> Sequences:
        """Return the features of the decisions, CSR of shape (n_steps, n_features_out_).

        Parameters
        ----------
        X : see `fit`
        """
        check_is_fitted(self)
        tokens = _kept(X)
        return _in_turn([templates.transform(tokens) for templates in self.templates_.values()])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the features, ``open:word[-1]|word[0]=the|cat``; made anew at each call."""
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def _prepare(self, X: Any) -> tuple[Any, dict[str, Templates]]:
        """The tokens, and unfitted templates of the wanted kinds of decisions over their columns."""
        if isinstance(self.columns, str):
            raise InputError(f"columns must be a list, such as [{self.columns!r}]")
        self._validate_params()
        if self.window % 2:
            raise InputError(
                f"window={self.window} must be even: half of it on each side of the gap"
            )
        tokens = _kept(X)
        columns = self.columns
        if columns is None:
            columns = range(next((b.width for b in token_blocks(tokens) if b.width), 0))
        columns = list(columns)
        if not columns:
            raise InputError("X holds no tokens to learn features from")
        half = self.window // 2
        kinds = ("open", "close") if self.decisions == "both" else (self.decisions,)
        made = {}
        for kind in kinds:
            # The gap of a close decision is one token further.
            first = -half if kind == "open" else 1 - half
            places = range(first, first + self.window)
            specs = self._conjunctions(places, columns)
            made[kind] = Templates(specs, min_count=self.min_count)
        return tokens, made

    def _conjunctions(self, places: range, columns: Sequence[int | str]) -> list[Spec]:
        """The conjunctions of a window, as templates."""
        specs = []
        for size in range(1, min(self.size, len(places)) + 1):
            chosen: Iterable[tuple[int, ...]]
            if self.scheme == "runs":
                chosen = [tuple(places[i : i + size]) for i in range(len(places) - size + 1)]
            else:
                chosen = combinations(places, size)
            for rows in chosen:
                reads = (
                    product(columns, repeat=size) if self.mixed else ([c] * size for c in columns)
                )
                specs += [list(zip(rows, read, strict=True)) for read in reads]
        return specs

    def _store(self, made: dict[str, Templates]) -> None:
        self.templates_ = made
        self.n_features_in_ = next(iter(made.values())).n_features_in_


def _kept(X: Any) -> Any:
    """The input in a form that can be read twice; what cannot be read is left to `token_blocks`."""
    readable = isinstance(X, Iterable) and not isinstance(X, str | bytes | dict | Sequences)
    return list(X) if readable else X


def _in_turn(parts: list[Sequences]) -> Sequences:
    """Steps of several transformers in turn (a, b, a, b, ...), each with columns of its own."""
    if len(parts) == 1:
        return parts[0]
    n_steps, n_parts = parts[0].n_steps, len(parts)
    stacked = sp.block_diag([part.matrix for part in parts], format="csr")
    turn = np.arange(n_parts * n_steps).reshape(n_parts, n_steps).T.ravel()
    return Sequences(stacked[turn], n_parts * parts[0].offsets)
