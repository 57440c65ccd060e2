"""The transformer `Templates`: fit, transform, names.

Tokens are encoded as integers once (`seqlab.features._token_columns`). A template's feature at a step is
the tuple of codes it reads there, looked up in a table of exact keys (`_feature_table`). No text is built
per token: the names of the features are built only on request.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Integral, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.data.vocabulary import Vocabulary
from seqlab.features._base import TokenTransformer
from seqlab.features._token_columns import token_blocks
from seqlab.features.templates._block_reader import BlockReader
from seqlab.features.templates._feature_columns import (
    assemble,
    check_keys,
    count_columns,
    feature_names,
)
from seqlab.features.templates._feature_table import look_up_all
from seqlab.features.templates._lookup import Lookup, boundary_marks, load_tables
from seqlab.features.templates._plan import make_plan
from seqlab.features.templates._presets import (
    crfpp_chunking_templates,
    crfsuite_chunking_templates,
    default_templates,
)
from seqlab.features.templates.extraction import (
    ExtractedTokens,
    TemplateParams,
    extract,
    parse_lines,
    read_lines,
)
from seqlab.features.templates.syntax import Template, resolve_columns

# Number of distinct values remembered between calls of `transform`. Beyond it they are all forgotten:
# a larger number costs memory, a smaller one the time to encode the values again.
_MAX_REMEMBERED_VALUES = 1 << 17


class Templates(TokenTransformer):
    r"""Features of token columns, written as templates.

    At step ``t`` a template such as ``U05:%x[-1,0]/%x[0,1]`` gives a binary feature. Its name is the
    template with the placeholders filled in: column 0 of the previous token, column 1 of the token
    itself. Every name seen in `fit` (at least `min_count` times) becomes a column of the matrix;
    `transform` ignores all others.

    Parameters
    ----------
    templates : list or "default"
        Templates in CRF++ or Wapiti syntax, ``(row, column)`` or ``(row, column, form)`` tuples,
        lists of such tuples (conjunctions), ``"__BOS__"`` and ``"__EOS__"``; see
        `seqlab.features.templates.syntax`. "default" is a good set for text whose first column is
        the word.
    min_count : int
        Features seen fewer times in `fit` are dropped (``-f`` of CRF++).
    columns : sequence of str, optional
        Names of the token columns. By default those of data frames and named tuples; otherwise
        ``word`` and ``pos`` for one or two columns, ``word``, ``column1``, ``column2``, ... for more.
    boundary : {"mark", "skip"}
        What a template reads outside the sequence. "mark" reads ``_B-1``, ``_B-2``, ... before and
        ``_B+1``, ... after it as in CRF++ (``_x-1`` in Wapiti's syntax); with "skip" the template has
        no feature there.
    syntax : {"auto", "crfpp", "wapiti"}
        How to read strings; "auto" chooses Wapiti if any line uses syntax that CRF++ does not have.
    source : str, optional
        Name of the file that contains the templates, for error messages; set by `from_file`.

    Attributes
    ----------
    templates_ : list
        The templates in use.
    syntax_, boundary_ : str
        How they are read.
    column_names_ : tuple of str
    n_features_in_ : int
        Number of columns of the tokens seen in `fit`.
    n_features_out_ : int
    bigram_templates_ : list of str
        The templates of label pairs (``B``, ``b:`` and ``*:`` lines).
    vocabularies_ : list of Vocabulary
        Values of each column and word form that occur in features.
    tables_, edge_tables_ : list of int32 arrays of shape (n_rows, n_placeholders)
        The features of each group of templates, as tuples of positions in the vocabularies.
    text_features_, edge_text_features_ : list of Vocabulary
        The few features of each group that are stored as text, because their tuple does not
        determine the text.

    See Also
    --------
    seqlab.SequenceVectorizer : features given as dicts or bags of strings.

    Notes
    -----
    A transformer alone cannot produce features of label pairs. A bare ``B`` is the plain transition,
    which every chain model has; `has_label_bigrams` says whether the templates ask for label pairs. A
    template such as ``B01:%x[0,0]`` stands for a weight for each pair of labels and each value:
    `transform_edges` returns these features as separate `Sequences`, row ``t`` for the pair of the
    labels at ``t - 1`` and ``t``.

    As in CRF++, a feature is identified by its text: templates without a number (``U:%x[-1,0]``,
    ``U:%x[1,0]``) form a bag of words, and a feature that two templates give at one step has the
    value 2.

    The cost is one dict look-up per token and column, then one hash look-up per token and template; word
    forms are computed once per distinct value. Threads may share one object: its look-ups wait for each
    other, those of different objects do not.

    References
    ----------
    T. Kudo, "CRF++: Yet Another CRF toolkit"; T. Lavergne, O. Cappé, F. Yvon (2010), "Practical
    very large scale CRFs", ACL.

    Examples
    --------
    >>> from seqlab.features import Templates
    >>> X = [[("He", "PRP"), ("reckons", "VBZ")], [("He", "PRP"), ("left", "VBD")]]
    >>> templates = Templates(["U00:%x[-1,0]", "U05:%x[-1,0]/%x[0,1]", "B"])
    >>> templates.fit_transform(X)
    Sequences(n_sequences=2, n_steps=4, n_features=5, CSR, 8 stored)
    >>> templates.get_feature_names_out().tolist()
    ['U00:_B-1', 'U00:He', 'U05:_B-1/PRP', 'U05:He/VBZ', 'U05:He/VBD']
    >>> Templates([(0, "word", "suffix3")]).fit(X).get_feature_names_out().tolist()
    ['word[0].suffix3=ons', 'word[0].suffix3=eft']
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "templates": [list, tuple, str],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "columns": ["array-like", None],
        "boundary": [StrOptions({"mark", "skip"})],
        "syntax": [StrOptions({"auto", "crfpp", "wapiti"})],
        "source": [str, None],
    }

    def __init__(
        self,
        templates: Sequence[Any] | str = "default",
        *,
        min_count: int = 1,
        columns: Sequence[str] | None = None,
        boundary: str = "mark",
        syntax: str = "auto",
        source: str | None = None,
    ) -> None:
        self.templates = templates
        self.min_count = min_count
        self.columns = columns
        self.boundary = boundary
        self.syntax = syntax
        self.source = source

    @classmethod
    def from_file(cls, path: str | Path, **params: Any) -> Templates:
        """Read a template file of CRF++ or Wapiti.

        Parameters
        ----------
        path : str or Path
            UTF-8 text, one template per line; blank lines and comments are skipped.
        **params
            Further parameters of the constructor.

        Raises
        ------
        InputError
            If a line is not a template; the message names the file and the line.
        """
        lines = read_lines(path)
        templates = cls(lines, source=str(path), **params)
        templates._parse(lines)
        return templates

    @classmethod
    def default(cls, n_columns: int | None = None, **params: Any) -> Templates:
        """Return good templates for text whose first column is the word.

        Parameters
        ----------
        n_columns : int, optional
            Number of columns of the tokens; by default `fit` finds it in the data.
        **params
            Further parameters of the constructor.

        Examples
        --------
        >>> templates = Templates.default().fit([["1600", "Pennsylvania", "Ave"]])
        >>> names = templates.get_feature_names_out().tolist()
        >>> "word[0].short_shape=Xx" in names, "word[-1]=1600" in names
        (True, True)
        """
        return cls("default" if n_columns is None else default_templates(n_columns), **params)

    @classmethod
    def chunking(cls, style: str = "crfsuite", **params: Any) -> Templates:
        """Return classic templates for tokens ``(word, part of speech)``.

        Parameters
        ----------
        style : {"crfsuite", "crfpp"}
            The attributes of CRFsuite's chunking tutorial, or the template included in CRF++.
        **params
            Further parameters of the constructor.

        Examples
        --------
        >>> templates = Templates.chunking().fit([[("He", "PRP"), ("left", "VBD")]])
        >>> templates.get_feature_names_out()[:3].tolist()
        ['w[-1]=He', 'w[0]=He', 'w[0]=left']
        """
        if style == "crfsuite":
            params = {"columns": ("w", "pos"), "boundary": "skip", **params}
            return cls(crfsuite_chunking_templates(), **params)
        if style == "crfpp":
            return cls(crfpp_chunking_templates(), **params)
        raise InputError(f"style must be 'crfsuite' or 'crfpp', not {style!r}")

    def fit(self, X: Any, y: Any = None) -> Templates:
        """Learn the features of the tokens.

        Parameters
        ----------
        X : iterable of sequences of tokens
            Tokens are tuples of strings ``(word, pos, ...)`` or plain strings; a sequence is a
            list of tokens, an array or a data frame. Generators are consumed block by block.
        y : ignored
        """
        self._fit(X, keep=False)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Sequences:
        """Learn the features of the tokens and return their matrix, in one pass."""
        return self._fit(X, keep=True)

    def transform(self, X: Any) -> Sequences:
        """Return the feature matrix, CSR of shape (n_steps, n_features_out_)."""
        return self._transform(X, edge=False)

    def transform_edges(self, X: Any) -> Sequences:
        """Return the features of label pairs; the first step of each sequence has none."""
        return self._transform(X, edge=True)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the features, rebuilt at each call."""
        check_is_fitted(self)
        return self._names(edge=False)

    def get_edge_names_out(self) -> NDArray[np.object_]:
        """Names of the features of label pairs."""
        check_is_fitted(self)
        return self._names(edge=True)

    @property
    def has_label_bigrams(self) -> bool:
        """Whether any template asks for label pairs; a bare ``B`` counts."""
        if isinstance(self.templates, str):
            return True
        return any(template.edge for template in self._parse(self.templates)[0])

    @property
    def n_features_out_(self) -> int:
        """Number of features."""
        return count_columns(self.tables_, self.text_features_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "vocabularies_")

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        if not state_checks.has_fitted_attributes(self):
            return
        state_checks.check_type(self.templates_, "templates_", list)
        names = self.column_names_
        state_checks.check_list(list(names), "column_names_", str, self.n_features_in_)
        state_checks.require(self.boundary_ in ("mark", "skip"), "boundary_")
        state_checks.require(self.syntax_ in ("crfpp", "wapiti"), "syntax_")
        plan = make_plan(self._resolve(self.templates_, names, self.syntax_)[0])
        vocabularies = self.vocabularies_
        state_checks.check_list(vocabularies, "vocabularies_", Vocabulary, len(plan.views))
        for prefix, groups in (("", plan.unary), ("edge_", plan.edge)):
            tables = getattr(self, f"{prefix}tables_")
            state_checks.check_list(tables, f"{prefix}tables_", np.ndarray, len(groups))
            texts = getattr(self, f"{prefix}text_features_")
            state_checks.check_list(texts, f"{prefix}text_features_", Vocabulary, len(groups))
            check_keys(groups, tables, vocabularies)
        for name in ("_lookup", "_lookup_lock"):  # made on first use
            state_checks.require(vars(self).get(name) is None, name)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the look-up tables and their lock, which are made on first use."""
        state = dict(super().__getstate__())
        state.pop("_lookup", None)
        state.pop("_lookup_lock", None)
        return state

    def _parse(self, lines: Sequence[Any], syntax: str | None = None) -> tuple[list[Template], str]:
        return parse_lines(lines, self.syntax if syntax is None else syntax, self.source)

    def _check_parameters(self) -> None:
        self._validate_params()
        if not isinstance(self.templates, str):
            self._parse(self.templates)  # report wrong templates before reading any data
        elif self.templates != "default":
            raise InputError(
                f"templates must be a list of templates or 'default', not {self.templates!r}; "
                "use Templates.from_file(path) for a file"
            )

    def _fit(self, X: Any, *, keep: bool) -> Any:
        """Learn the features; return the matrix of X if ``keep``."""
        self._check_parameters()
        params = TemplateParams(**self.get_params(deep=False))
        learned = X.take(params) if keep and isinstance(X, ExtractedTokens) else None
        if learned is None:
            learned = extract(X, params, keep_matrix=keep)
        self.vocabularies_ = learned.vocabularies
        self.tables_ = learned.tables
        self.text_features_ = learned.text_features
        self.edge_tables_ = learned.edge_tables
        self.edge_text_features_ = learned.edge_text_features
        self.templates_ = learned.templates
        self.syntax_ = learned.syntax
        self.boundary_ = self.boundary
        self.column_names_ = learned.column_names
        self.n_features_in_ = len(learned.column_names)
        self.bigram_templates_ = learned.bigram_templates
        self._lookup: Lookup | None = None
        return learned.matrix

    def _transform(self, X: Any, *, edge: bool) -> Sequences:
        check_is_fitted(self)
        lengths: list[int] = []
        numbers = []
        for block in token_blocks(X):
            lengths += block.lengths
            skip_first = block.positions() == 0 if edge else None
            with self._lock:  # the reader stores new values
                lookup = self._get_lookup()
                lookup.check_width(block, self.column_names_)
                tables = (lookup.edge if edge else lookup.unary).tables
                codes = lookup.reader.read(block)
                numbers.append(look_up_all(tables, codes, lookup.reader, skip_first, add=False))
        with self._lock:
            lookup = self._get_lookup()
        fitted = lookup.edge if edge else lookup.unary
        return assemble(numbers, lengths, fitted.column_map, fitted.n_columns)

    @property
    def _lock(self) -> threading.Lock:
        """The lock of this object alone; `dict.setdefault` is atomic, so all threads get the same one."""
        lock: threading.Lock = self.__dict__.setdefault("_lookup_lock", threading.Lock())
        return lock

    def _get_lookup(self) -> Lookup:
        """Return the look-up tables of the fitted state; the caller holds the lock."""
        lookup = getattr(self, "_lookup", None)
        if lookup is not None and lookup.reader.n_values <= _MAX_REMEMBERED_VALUES:
            return lookup
        templates, syntax = self._resolve(self.templates_, self.column_names_, self.syntax_)
        plan = make_plan(templates)
        vocabularies = self.vocabularies_
        known = [vocabulary.index for vocabulary in vocabularies]
        lookup = self._lookup = Lookup(
            templates,
            BlockReader(plan, known, boundary_marks(plan, syntax, self.boundary_)),
            load_tables(plan.unary, self.tables_, self.text_features_, vocabularies),
            load_tables(plan.edge, self.edge_tables_, self.edge_text_features_, vocabularies),
        )
        return lookup

    def _resolve(
        self, lines: Sequence[Any], names: Sequence[str], syntax: str | None = None
    ) -> tuple[list[Template], str]:
        templates, syntax = self._parse(lines, syntax)
        return [resolve_columns(template, names) for template in templates], syntax

    def _names(self, *, edge: bool) -> NDArray[np.object_]:
        plan = make_plan(self._resolve(self.templates_, self.column_names_, self.syntax_)[0])
        if edge:
            parts = plan.edge, self.edge_tables_, self.edge_text_features_
        else:
            parts = plan.unary, self.tables_, self.text_features_
        return feature_names(*parts, self.vocabularies_)
