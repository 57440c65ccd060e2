"""Learn the features of templates, apart from the transformer: nothing here needs scikit-learn.

`Templates` learns with `extract`. A program that has to import scikit-learn first, which takes a second, can
call `extract` in a thread meanwhile, and give the result to `Templates` as `ExtractedTokens`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.data.sequences import Sequences
from seqlab.data.token_table import CodedColumn, TokenTable
from seqlab.data.vocabulary import Vocabulary
from seqlab.features._token_columns import Codes, token_blocks
from seqlab.features.templates._block_reader import BlockReader
from seqlab.features.templates._feature_columns import (
    assemble,
    count_columns,
    keep_frequent,
    make_column_map,
    prune_vocabularies,
)
from seqlab.features.templates._feature_table import FeatureTable, look_up_all
from seqlab.features.templates._lookup import boundary_marks, name_columns
from seqlab.features.templates._plan import make_plan
from seqlab.features.templates._presets import default_templates
from seqlab.features.templates.syntax import Template, parse_templates, resolve_columns


class TemplateParams(NamedTuple):
    """The parameters of `Templates`."""

    templates: Sequence[Any] | str = "default"
    min_count: int = 1
    columns: Sequence[str] | None = None
    boundary: str = "mark"
    syntax: str = "auto"
    source: str | None = None


class LearnedFeatures(NamedTuple):
    """The attributes of fitted `Templates`, without their underscore, and the matrix of the tokens."""

    templates: list[Any]
    syntax: str
    column_names: tuple[str, ...]
    bigram_templates: list[str]
    vocabularies: list[Vocabulary]
    tables: list[Codes]
    text_features: list[Vocabulary]
    edge_tables: list[Codes]
    edge_text_features: list[Vocabulary]
    matrix: Sequences | None


class ExtractedTokens(TokenTable):
    """Tokens with their features for certain parameters: `Templates.fit_transform` need not learn them.

    Parameters
    ----------
    tokens : TokenTable
    params : TemplateParams
    features : LearnedFeatures
        The result of ``extract(tokens, params)``.
    """

    def __init__(
        self, tokens: TokenTable, params: TemplateParams, features: LearnedFeatures
    ) -> None:
        super().__init__(tokens.columns, tokens.offsets)
        self._params = params
        self._features: LearnedFeatures | None = features

    def take(self, params: TemplateParams) -> LearnedFeatures | None:
        """Return the features if these are the parameters, but only once: two estimators share no array."""
        if self._features is None or params != self._params:
            return None
        features, self._features = self._features, None
        return features


def parse_lines(
    lines: Sequence[Any], syntax: str, source: str | None
) -> tuple[list[Template], str]:
    """Parse templates, of which there must be one; return them and their syntax."""
    templates, syntax = parse_templates(lines, syntax=syntax, source=source)
    if not templates:
        raise InputError(f"no templates in {source or 'templates'}")
    return templates, syntax


def read_lines(path: Any) -> list[str]:
    """Return the lines of a template file."""
    with open(path, encoding="utf-8-sig") as file:
        try:
            return file.read().splitlines()
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not UTF-8 text: {error}") from None


def extract(
    X: Any,
    params: TemplateParams,
    *,
    keep_matrix: bool = True,
    is_stopped: Callable[[], bool] = lambda: False,
) -> LearnedFeatures:
    """Learn the features of tokens.

    Parameters
    ----------
    X : iterable of sequences of tokens
    params : TemplateParams
    keep_matrix : bool
        Whether to make the feature matrix of X.
    is_stopped : callable, optional
        Called before every block of tokens; if it returns True, `InterruptedError` is raised.
    """
    blocks = token_blocks(X)
    first = next(blocks, None)
    if first is None or first.width == 0:
        raise InputError("X holds no tokens to learn features from")
    names = name_columns(first, params.columns)
    lines = params.templates
    lines = default_templates(len(names)) if isinstance(lines, str) else list(lines)
    parsed, syntax = parse_lines(lines, params.syntax, params.source)
    templates = [resolve_columns(template, names) for template in parsed]
    plan = make_plan(templates)
    marks = boundary_marks(plan, syntax, params.boundary)
    reader = BlockReader(plan, [{} for _ in plan.views], marks)
    tables = [FeatureTable(group) for group in plan.unary]
    edge_tables = [FeatureTable(group) for group in plan.edge]
    numbers: list[NDArray[np.int32]] = []
    lengths: list[int] = []
    for block in chain([first], blocks):
        if is_stopped():
            raise InterruptedError
        if block.width not in (0, first.width):
            raise InputError(
                f"{block.locate(0)} has {block.width} columns but "
                f"{first.locate(0)} has {first.width}"
            )
        codes = reader.read(block)
        block_numbers = look_up_all(tables, codes, reader, None, add=True)
        look_up_all(edge_tables, codes, reader, block.positions() == 0, add=True)
        lengths += block.lengths
        if keep_matrix:
            numbers.append(block_numbers)
    kept = [keep_frequent(table, params.min_count) for table in tables]
    edge_kept = [keep_frequent(table, params.min_count) for table in edge_tables]
    vocabularies = prune_vocabularies(reader, [*kept, *edge_kept])
    keys, texts = [one.keys for one in kept], [one.texts for one in kept]
    matrix = None
    if keep_matrix:
        column_map = make_column_map(
            plan.unary, [one.kept_rows for one in kept], [one.kept_texts for one in kept]
        )
        matrix = assemble(numbers, lengths, column_map, count_columns(keys, texts))
    return LearnedFeatures(
        templates=lines,
        syntax=syntax,
        column_names=names,
        bigram_templates=[template.text for template in templates if template.edge],
        vocabularies=vocabularies,
        tables=keys,
        text_features=texts,
        edge_tables=[one.keys for one in edge_kept],
        edge_text_features=[one.texts for one in edge_kept],
        matrix=matrix,
    )


def load_kernels() -> None:
    """Load or compile every kernel that `extract` may call, so that a thread only runs them."""
    words = CodedColumn(["a", "b"], np.array([0, 1, 1], np.int32))
    tokens = TokenTable([words], np.array([0, 2, 3]))
    for lines in (["U0:%x[0,0]", "U1:%x[-1,0]/%x[0,0]", "B"], ["U:%x[0,0]", "U:%x[1,0]"]):
        extract(tokens, TemplateParams(lines))
