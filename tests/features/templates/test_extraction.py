"""Features of tables of tokens, and features that were extracted ahead."""

from __future__ import annotations

import numpy as np
import pytest

from seqlab.data import InputError
from seqlab.data.io import write_conll
from seqlab.data.io.token_table import read_token_table
from seqlab.datasets import make_addresses
from seqlab.features import BracketFeatures, Gazetteer, Templates
from seqlab.features._token_columns import token_blocks
from seqlab.features.templates.extraction import (
    ExtractedTokens,
    TemplateParams,
    extract,
    load_kernels,
)

LINES = ["U0:%x[0,0]", "U1:%x[-1,0]/%x[0,1]", "U:%x[-1,0]", "U:%x[1,0]", "B", "B1:%x[0,1]"]


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    """Tokens of two columns as a table and as lists."""
    path = tmp_path_factory.mktemp("tokens") / "tokens.txt"
    X, y = make_addresses(40, random_state=0, return_X_y=True)
    X = [[(token, token[-2:]) for (token,) in tokens] for tokens in as_tuples(X)]
    write_conll(X, y, path)
    return read_token_table(path)[0], X


def as_tuples(X):
    return [[(token,) if isinstance(token, str) else token for token in tokens] for tokens in X]


def assert_same_features(a, b):
    assert vars(a).keys() == vars(b).keys()
    assert a.vocabularies_ == b.vocabularies_
    assert a.text_features_ == b.text_features_
    for name in ("tables_", "edge_tables_"):
        for one, other in zip(getattr(a, name), getattr(b, name), strict=True):
            np.testing.assert_array_equal(one, other)


def assert_same_matrix(a, b):
    assert (a.matrix != b.matrix).nnz == 0
    np.testing.assert_array_equal(a.offsets, b.offsets)


@pytest.mark.parametrize("params", [{}, {"templates": LINES}, {"templates": LINES, "min_count": 3}])
def test_features_of_a_table_equal_those_of_lists(tokens, params):
    table, X = tokens
    a, b = Templates(**params), Templates(**params)
    assert_same_matrix(a.fit_transform(table), b.fit_transform(X))
    assert_same_features(a, b)
    assert_same_matrix(a.transform(table), b.transform(X))
    assert_same_matrix(a.transform_edges(table), b.transform_edges(X))


@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_blocks_of_a_table_equal_those_of_lists(tokens, size):
    table, X = tokens
    a, b = (list(token_blocks(data, block_tokens=size)) for data in (table, X))
    assert len(a) == len(b)
    for one, other in zip(a, b, strict=True):
        assert (one.lengths, one.first, one.width) == (other.lengths, other.first, other.width)
        assert one.n_tokens == len(other.tokens)
        assert [list(one.column(k)) for k in (0, 1)] == [list(other.column(k)) for k in (0, 1)]
        with pytest.raises(InputError, match="has 2 columns, but column 2 is needed"):
            one.column(2)


def test_other_transformers_take_a_table(tokens):
    table, X = tokens
    for transformer in (Gazetteer({"street": ["Street", "Avenue"]}), BracketFeatures()):
        assert_same_matrix(transformer.fit_transform(table), transformer.fit_transform(X))


def test_extracted_features_are_used_once_and_for_the_same_parameters(tokens, monkeypatch):
    table, X = tokens
    params = TemplateParams(LINES, min_count=2)
    expected = Templates(LINES, min_count=2)
    matrix = expected.fit_transform(X)
    features = extract(table, params)
    extracted = ExtractedTokens(table, params, features)
    other = Templates(LINES, min_count=1)
    assert_same_matrix(other.fit_transform(extracted), Templates(LINES).fit_transform(X))
    first, second = Templates(LINES, min_count=2), Templates(LINES, min_count=2)
    found = first.fit_transform(extracted)
    assert found is features.matrix
    assert_same_matrix(found, matrix)
    assert_same_features(first, expected)
    again = second.fit_transform(extracted)
    assert again is not found
    assert_same_matrix(again, matrix)
    assert second.tables_[0] is not first.tables_[0]


def test_extraction_can_be_stopped(tokens):
    with pytest.raises(InterruptedError):
        extract(tokens[0], TemplateParams(), is_stopped=lambda: True)


def test_kernels_can_be_loaded_ahead():
    load_kernels()
