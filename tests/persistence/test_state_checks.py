"""Attributes that do not belong together are found when a model is loaded, not when it predicts."""

import copy
from functools import lru_cache

import numpy as np
import pytest
import scipy.sparse as sp

from damaged_models import check_prediction
from fitted_models import NEW_MODELS
from seqlab import ModelFileError
from seqlab.persistence._checks import check_objects

pytestmark = pytest.mark.filterwarnings("ignore")


def shorter(value):
    return value[:-1] if isinstance(value, list) else value[..., :-1]


def as_integers(array):
    return array.astype(np.int64)


def with_entry(value, at=-1):
    """A change that puts a value into an array."""

    def change(array):
        array = array.copy()
        array.reshape(-1)[at] = value
        return array

    return change


def as_value(value):
    """A change to another value."""
    return lambda _: value


DAMAGES = [
    ("M3N", "coef_", shorter),
    ("M3N", "transitions_", shorter),
    ("M3N", "end_", as_integers),
    ("M3N", "gamma_", as_value(np.nan)),
    ("M3N", "degree", as_value(2**63)),
    ("M3N", "kernel", as_value("rbf")),
    ("M3N-edges", "edge_coef_", shorter),
    ("M3N-poly", "support_", shorter),
    ("M3N-poly", "dual_coef_", shorter),
    ("M3N-poly", "edge_dual_coef_", shorter),
    ("M3N-poly", "support_steps_", lambda matrix: sp.csr_matrix(matrix)[:, :-1]),
    ("M3N-rbf", "support_steps_", shorter),
    ("M3N-rbf", "kernel", as_value("linear")),
    ("StructuredSVM", "coef_", as_integers),
    ("StructuredSVM-subsequences", "kernel.window", as_value((10**9, 0))),
    ("StructuredSVM-subsequences", "kernel.window", as_value((1, 2))),
    ("StructuredSVM-subsequences", "kernel.window", as_value("ab")),
    ("StructuredSVM-subsequences", "kernel.max_length", as_value(0)),
    ("KernelFeatures", "steps.0.1.map_", shorter),
    ("KernelFeatures", "steps.0.1.pivots_", shorter),
    ("KernelFeatures", "steps.0.1.n_features_in_", as_value(3)),
    ("GraphCRF", "coef_", shorter),
    ("GraphCRF", "intercept_", shorter),
    ("GraphCRF", "edge_coef_", shorter),
    ("GraphCRF", "edge_types_", lambda types: np.append(types, "other")),
    ("GraphCRF", "n_edge_features_in_", as_value(3)),
    ("GraphM3N", "has_plain_edges_", as_value(True)),
    ("BoostedCRF", "trees_.feature", with_entry(10**6, 0)),
    ("BoostedCRF", "trees_.child", with_entry(-1, 0)),
    ("BoostedCRF", "trees_.child", with_entry(2, 0)),
    ("BoostedCRF", "trees_.tree_offsets", with_entry(10**6)),
    ("BoostedCRF", "trees_.value", with_entry(np.nan)),
    ("BoostedCRF", "trees_.threshold", with_entry(np.nan)),
    ("BoostedCRF", "trees_.label_set", with_entry(10**6)),
    ("BoostedCRF", "trees_.n_labels", as_value("2")),
    ("BoostedCRF", "trees_.has_pairs", as_value(1)),
    ("BoostedCRF-categories", "trees_.category_sets", shorter),
    ("RelationalBoostedCRF", "columns_", with_entry(10**6)),
    ("RelationalBoostedCRF", "window_", as_value((10**9, 0))),
    ("RelationalBoostedCRF", "queries_.terms", with_entry(10**6)),
    ("RelationalBoostedCRF", "queries_.signature", with_entry(10**6)),
    ("StructHKL", "conjunction_indices_", with_entry(10**6)),
    ("StructHKL", "conjunction_offsets_", with_entry(10**6)),
    ("StructHKL", "conjunction_coef_", shorter),
    ("PatternHKL", "pattern_literals_", lambda literals: [*literals[:-1], [[2**70, "use", []]]]),
    ("PatternHKL", "pattern_literals_", lambda literals: [*literals[:-1], [[0, "use", [7]]]]),
    ("PatternHKL", "pattern_literals_", shorter),
    ("SequentialOutputCode", "code_", with_entry(2)),
    ("SequentialOutputCode", "code_", shorter),
    ("SequentialOutputCode", "window_", as_value((2**70, 0))),
    ("SequentialOutputCode", "tie_seed_", as_value(2**70)),
    ("SequentialOutputCode-cascade", "cascade_", as_value(2**70)),
    ("SequentialOutputCode-cascade", "window_", as_value((1, 2))),
    ("SequentialOutputCode-cascade", "cascade_values_", as_value("other")),
]


@lru_cache
def fitted(name):
    return NEW_MODELS[name]()


def item(value, key):
    return value[int(key)] if key.isdecimal() else getattr(value, key)


@pytest.mark.parametrize(
    ("name", "place", "change"),
    DAMAGES,
    ids=[f"{one[0]}-{one[1]}-{k}" for k, one in enumerate(DAMAGES)],
)
def test_damaged_attribute(name, place, change):
    model = copy.deepcopy(fitted(name)[0])
    check_objects(model)
    *path, last = place.split(".")
    owner = model
    for key in path:
        owner = item(owner, key)
    before = getattr(owner, last)
    setattr(owner, last, change(before if not isinstance(before, list) else list(before)))
    with pytest.raises(ModelFileError):
        check_objects(model)


@pytest.mark.parametrize("name", NEW_MODELS)
def test_missing_attributes(name):
    model, X = fitted(name)
    labeler = model.steps[-1][1] if hasattr(model, "steps") else model
    names = [attribute for attribute in vars(labeler) if attribute.endswith("_")]
    n_refused = 0
    for attribute in names:
        value = vars(labeler).pop(attribute)
        try:
            check_objects(model)
        except ModelFileError:
            n_refused += 1
        else:
            assert check_prediction(model, X) == "predicted", attribute
        vars(labeler)[attribute] = value
    assert n_refused >= 3
