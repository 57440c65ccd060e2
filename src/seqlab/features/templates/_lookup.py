"""Look-up tables of fitted templates, built from the fitted attributes when they are first needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seqlab.data.errors import InputError
from seqlab.data.vocabulary import Vocabulary
from seqlab.features._token_columns import Codes, TokenBlock
from seqlab.features.templates._block_reader import BlockReader
from seqlab.features.templates._feature_columns import (
    ColumnMap,
    check_keys,
    count_columns,
    make_column_map,
)
from seqlab.features.templates._feature_table import FeatureTable
from seqlab.features.templates._plan import Group, Plan
from seqlab.features.templates.syntax import Template


class FittedTables(NamedTuple):
    """Tables of the features of the label, or of those of the label pair."""

    tables: list[FeatureTable]
    column_map: ColumnMap
    n_columns: int


class Lookup(NamedTuple):
    """Everything that `transform` needs."""

    templates: list[Template]
    reader: BlockReader
    unary: FittedTables
    edge: FittedTables

    def check_width(self, block: TokenBlock, names: Sequence[str]) -> None:
        """Check that a block has all columns that the templates read; further ones may be missing."""
        if block.width == 0 or block.width >= len(names):
            return
        for template in self.templates:
            for read in template.reads:
                needed = max(int(read.column), read.row if read.mode == "indirect" else 0)
                if needed >= block.width:
                    has = "1 column" if block.width == 1 else f"{block.width} columns"
                    raise InputError(
                        f"{block.locate(0)} has {has}, but {template.where} reads column "
                        f"{needed} ({names[needed]})"
                    )


def load_tables(
    groups: Sequence[Group],
    keys: list[Codes],
    texts: list[Vocabulary],
    vocabularies: list[Vocabulary],
) -> FittedTables:
    """Build the tables of all groups from the fitted attributes."""
    check_keys(groups, keys, vocabularies)
    tables = [
        FeatureTable(group, np.ascontiguousarray(rows, np.int32), text.index)
        for group, rows, text in zip(groups, keys, texts, strict=True)
    ]
    kept_rows = [np.ones(rows.shape[0], bool) for rows in keys]
    column_map = make_column_map(groups, kept_rows, [np.ones(len(text), bool) for text in texts])
    return FittedTables(tables, column_map, count_columns(keys, texts))


def boundary_marks(plan: Plan, syntax: str, boundary: str) -> tuple[list[str], list[str]]:
    """Marks of the positions 1, 2, ... before and after a sequence; none for ``boundary="skip"``."""
    if boundary == "skip":
        return [], []
    if syntax == "wapiti":
        distances = ["1", "2", "3", "4", "#"]
        return [f"_x-{n}" for n in distances], [f"_x+{n}" for n in distances]
    distances = [str(n) for n in range(1, plan.reach + 1)]
    return [f"_B-{n}" for n in distances], [f"_B+{n}" for n in distances]


def name_columns(block: TokenBlock, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Names of the token columns: the given ones, those of the data, or the default ones."""
    if columns is not None:
        names = tuple(columns)
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
