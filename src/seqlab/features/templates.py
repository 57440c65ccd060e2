"""Templates: token columns to feature matrices, by CRF++, Wapiti or Python templates.

Tokens are coded as integers once (`seqlab.features.columns`); a template's feature at a step is
the tuple of codes it reads there, looked up in an exact hash table
(`seqlab.features.feature_table`). No text is made per token: the names of the features are put
together only when someone asks.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Integral, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.data.vocabulary import Vocabulary
from seqlab.features.columns import TokenBlock, token_blocks
from seqlab.features.feature_columns import (
    ColumnMap,
    assemble,
    check_keys,
    count_columns,
    first_steps,
    keep_frequent,
    make_column_map,
    prune_vocabularies,
)
from seqlab.features.feature_table import BlockReader, FeatureTable, look_up_all
from seqlab.features.template_plan import Group, Plan, make_plan
from seqlab.features.template_sets import (
    crfpp_chunking_templates,
    crfsuite_chunking_templates,
    default_templates,
)
from seqlab.features.template_syntax import Template, parse_templates, resolve_columns

# Values remembered between calls of transform; beyond it the memory is emptied.
_MAX_REMEMBERED = 1 << 17
_LOCK = threading.Lock()


class Templates(  # type: ignore[call-arg]  # scikit-learn's __init_subclass__
    TransformerMixin, BaseEstimator, auto_wrap_output_keys=None
):
    r"""Features of token columns, written as templates.

    At step ``t`` a template such as ``U05:%x[-1,0]/%x[0,1]`` gives the binary feature whose name
    is the template with its holes filled: column 0 of the token before, column 1 of the token
    itself. Every name met in `fit` (at least `min_count` times) becomes a column of the matrix.
    What was not met in `fit` is ignored in `transform`.

    Parameters
    ----------
    templates : list or "default"
        Templates in CRF++ or Wapiti syntax, ``(row, column)`` or ``(row, column, form)`` tuples,
        lists of such tuples (conjunctions), ``"__BOS__"`` and ``"__EOS__"``; see
        `seqlab.features.template_syntax`. "default" takes a good set for text whose first column
        is the word.
    min_count : int
        Features seen fewer times in `fit` are dropped (``-f`` of CRF++).
    columns : sequence of str, optional
        Names of the tokens' columns. Taken from data frames and named tuples where not given;
        else ``word`` and ``pos`` for one or two columns, ``word``, ``column1``, ``column2``, ...
        for more.
    boundary : {"mark", "skip"}
        What a template reads outside the sequence: a mark, ``_B-1``, ``_B-2``, ... before and
        ``_B+1``, ... after it as in CRF++ (``_x-1`` in Wapiti's syntax), or nothing, and then it
        gives no feature there.
    syntax : {"auto", "crfpp", "wapiti"}
        How to read strings; "auto" takes Wapiti's rules if any line uses what CRF++ does not have.
    source : str, optional
        Name of the file the templates come from, for error messages; set by `from_file`.

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
    tables_, edge_tables_ : list of int32 arrays of shape (n_rows, n_holes)
        The features of each group of templates, as tuples of positions in the vocabularies.
    text_features_, edge_text_features_ : list of Vocabulary
        The few features of each group that are kept as text, because their tuple does not
        determine it.

    See Also
    --------
    seqlab.SequenceVectorizer : features given as dicts or bags of strings.

    Notes
    -----
    A transformer cannot make features of label pairs by itself. A bare ``B`` is the plain
    transition, which every chain model has; `has_label_bigrams` says whether one was asked for. A
    template such as ``B01:%x[0,0]`` wants a weight for each pair of labels and each value:
    `transform_edges` gives these features as their own `Sequences`, row ``t`` for the pair of the
    labels at ``t - 1`` and ``t``.

    A feature is its text, as in CRF++: templates without a number (``U:%x[-1,0]``, ``U:%x[1,0]``)
    make a bag of words, and a feature that two templates give at one step has the value 2.

    One dict look-up per token and column, then one hash look-up per token and template; the word
    forms are computed once per distinct value.

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
            UTF-8 text, one template a line; blank lines and comments are skipped.
        **params
            Further parameters of the constructor.

        Raises
        ------
        InputError
            For a line that is no template; the message gives file and line.
        """
        try:
            lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not UTF-8 text: {error}") from None
        made = cls(lines, source=str(path), **params)
        made._parse(lines)
        return made

    @classmethod
    def default(cls, n_columns: int | None = None, **params: Any) -> Templates:
        """Good templates for text whose first column is the word.

        Parameters
        ----------
        n_columns : int, optional
            Number of columns of the tokens. Where not given, `fit` sees for itself.
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
        """Classic templates for tokens ``(word, part of speech)``.

        Parameters
        ----------
        style : {"crfsuite", "crfpp"}
            The attributes of CRFsuite's chunking tutorial, or the template that comes with CRF++.
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
            list of tokens, an array or a data frame. Generators are read block by block.
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
        """Names of the features; made anew at each call."""
        check_is_fitted(self)
        return self._names(edge=False)

    def get_edge_names_out(self) -> NDArray[np.object_]:
        """Names of the features of label pairs."""
        check_is_fitted(self)
        return self._names(edge=True)

    @property
    def has_label_bigrams(self) -> bool:
        """Whether any template asks for label pairs, a bare ``B`` included."""
        if isinstance(self.templates, str):
            return True
        return any(template.edge for template in self._parse(self.templates)[0])

    @property
    def n_features_out_(self) -> int:
        """Number of features."""
        return count_columns(self.tables_, self.text_features_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "vocabularies_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_runtime", None)  # hash tables and dicts, made again on first use
        return state

    # The work.

    def _parse(self, lines: Sequence[Any], syntax: str | None = None) -> tuple[list[Template], str]:
        syntax = self.syntax if syntax is None else syntax
        templates, syntax = parse_templates(lines, syntax=syntax, source=self.source)
        if not templates:
            raise InputError(f"no templates in {self.source or 'templates'}")
        return templates, syntax

    def _check_parameters(self) -> None:
        self._validate_params()
        if isinstance(self.templates, str) and self.templates != "default":
            raise InputError(
                f"templates must be a list of templates or 'default', not {self.templates!r}; "
                "use Templates.from_file(path) for a file"
            )

    def _fit(self, X: Any, *, keep: bool) -> Any:
        self._check_parameters()
        if not isinstance(self.templates, str):
            self._parse(self.templates)  # complain of the templates before reading any data
        blocks = token_blocks(X)
        first = next(blocks, None)
        if first is None or first.width == 0:
            raise InputError("X holds no tokens to learn features from")
        names = self._column_names(first)
        lines = self.templates
        lines = default_templates(len(names)) if isinstance(lines, str) else list(lines)
        resolved, syntax = self._resolve(lines, names)
        plan = make_plan(resolved)
        reader = BlockReader(plan, [{} for _ in plan.views], _marks(plan, syntax, self.boundary))
        tables = [FeatureTable(group) for group in plan.unary]
        edge_tables = [FeatureTable(group) for group in plan.edge]
        found: list[NDArray[np.int32]] = []
        lengths: list[int] = []
        for block in _chain(first, blocks):
            if block.width not in (0, first.width):
                raise InputError(
                    f"{block.locate(0)} has {block.width} columns but "
                    f"{first.locate(0)} has {first.width}"
                )
            codes = reader.read(block)
            numbers = look_up_all(tables, codes, reader, None, add=True)
            look_up_all(edge_tables, codes, reader, first_steps(block.lengths), add=True)
            lengths += block.lengths
            if keep:
                found.append(numbers)
        kept = [keep_frequent(table, self.min_count) for table in tables]
        edge_kept = [keep_frequent(table, self.min_count) for table in edge_tables]
        self.vocabularies_ = prune_vocabularies(reader, [*kept, *edge_kept])
        self.tables_ = [one.keys for one in kept]
        self.text_features_ = [one.texts for one in kept]
        self.edge_tables_ = [one.keys for one in edge_kept]
        self.edge_text_features_ = [one.texts for one in edge_kept]
        self.templates_ = lines
        self.syntax_ = syntax
        self.boundary_ = self.boundary
        self.column_names_ = names
        self.n_features_in_ = len(names)
        self.bigram_templates_ = [one.text for one in resolved if one.edge]
        self._runtime: _Runtime | None = None
        if not keep:
            return None
        column_map = make_column_map(
            plan.unary, [one.rows for one in kept], [one.text_rows for one in kept]
        )
        return assemble(found, lengths, column_map, self.n_features_out_)

    def _transform(self, X: Any, *, edge: bool) -> Sequences:
        check_is_fitted(self)
        lengths: list[int] = []
        found = []
        for block in token_blocks(X):
            lengths += block.lengths
            with _LOCK:  # the reader learns new values
                runtime = self._ready()
                self._check_width(block, runtime.templates)
                reader = runtime.reader
                tables = runtime.edge_tables if edge else runtime.tables
                starts = first_steps(block.lengths) if edge else None
                found.append(look_up_all(tables, reader.read(block), reader, starts, add=False))
        runtime = self._ready()
        if edge:
            n_columns = count_columns(self.edge_tables_, self.edge_text_features_)
            return assemble(found, lengths, runtime.edge_map, n_columns)
        return assemble(found, lengths, runtime.map, self.n_features_out_)

    def _ready(self) -> _Runtime:
        """Dicts and hash tables of the fitted state; made on first use."""
        runtime = getattr(self, "_runtime", None)
        if runtime is not None and runtime.reader.n_values <= _MAX_REMEMBERED:
            return runtime
        resolved, syntax = self._resolve(self.templates_, self.column_names_, self.syntax_)
        plan = make_plan(resolved)
        known = [vocabulary.index for vocabulary in self.vocabularies_]
        check_keys(plan.unary, self.tables_, self.vocabularies_)
        check_keys(plan.edge, self.edge_tables_, self.vocabularies_)
        runtime = self._runtime = _Runtime(
            resolved,
            BlockReader(plan, known, _marks(plan, syntax, self.boundary_)),
            _load_tables(plan.unary, self.tables_, self.text_features_),
            _load_tables(plan.edge, self.edge_tables_, self.edge_text_features_),
            _full_map(plan.unary, self.tables_, self.text_features_),
            _full_map(plan.edge, self.edge_tables_, self.edge_text_features_),
        )
        return runtime

    def _resolve(
        self, lines: Sequence[Any], names: Sequence[str], syntax: str | None = None
    ) -> tuple[list[Template], str]:
        templates, syntax = self._parse(lines, syntax)
        return [resolve_columns(template, names) for template in templates], syntax

    def _column_names(self, block: TokenBlock) -> tuple[str, ...]:
        if self.columns is not None:
            names = tuple(self.columns)
            if len(names) != block.width:
                raise InputError(
                    f"columns has {len(names)} names but tokens have {block.width} columns"
                )
            return names
        if block.names is not None:
            return block.names
        if block.width <= 2:
            return ("word", "pos")[: block.width]
        return ("word", *(f"column{number}" for number in range(1, block.width)))

    def _check_width(self, block: TokenBlock, templates: list[Template]) -> None:
        if block.width == 0 or block.width >= self.n_features_in_:
            return
        for template in templates:
            for read in template.reads:
                needed = max(int(read.column), read.row if read.mode == "indirect" else 0)
                if needed >= block.width:
                    has = "1 column" if block.width == 1 else f"{block.width} columns"
                    raise InputError(
                        f"{block.locate(0)} has {has}, but {template.where} reads column "
                        f"{needed} ({self.column_names_[needed]})"
                    )

    def _names(self, *, edge: bool) -> NDArray[np.object_]:
        plan = make_plan(self._resolve(self.templates_, self.column_names_, self.syntax_)[0])
        groups = plan.edge if edge else plan.unary
        tables = self.edge_tables_ if edge else self.tables_
        texts = self.edge_text_features_ if edge else self.text_features_
        parts = [np.empty(0, object)]
        for group, keys, text in zip(groups, tables, texts, strict=True):
            if not group.by_text:
                names = np.full(keys.shape[0], group.literals[0], dtype=object)
                for hole, (view, literal) in enumerate(
                    zip(group.views, group.literals[1:], strict=True)
                ):
                    names = names + self.vocabularies_[view].names[keys[:, hole]] + literal
                parts.append(names)
            parts.append(text.names)
        return np.concatenate(parts)


class _Runtime(NamedTuple):
    templates: list[Template]
    reader: BlockReader
    tables: list[FeatureTable]
    edge_tables: list[FeatureTable]
    map: ColumnMap
    edge_map: ColumnMap


def _chain(first: TokenBlock, rest: Iterator[TokenBlock]) -> Iterator[TokenBlock]:
    yield first
    yield from rest


def _marks(plan: Plan, syntax: str, boundary: str) -> tuple[list[str], list[str]]:
    if boundary == "skip":
        return [], []
    if syntax == "wapiti":
        near_and_far = ["1", "2", "3", "4", "#"]
        return [f"_x-{n}" for n in near_and_far], [f"_x+{n}" for n in near_and_far]
    distances = [str(n) for n in range(1, plan.reach + 1)]
    return [f"_B-{n}" for n in distances], [f"_B+{n}" for n in distances]


def _load_tables(
    groups: tuple[Group, ...], tables: list[NDArray[np.int32]], texts: list[Vocabulary]
) -> list[FeatureTable]:
    return [
        FeatureTable(group, np.ascontiguousarray(keys, np.int32), text.index)
        for group, keys, text in zip(groups, tables, texts, strict=True)
    ]


def _full_map(
    groups: tuple[Group, ...], tables: list[NDArray[np.int32]], texts: list[Vocabulary]
) -> ColumnMap:
    rows = [np.ones(keys.shape[0], bool) for keys in tables]
    return make_column_map(groups, rows, [np.ones(len(text), bool) for text in texts])
