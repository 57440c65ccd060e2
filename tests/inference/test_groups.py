"""A group of eight chains gives the same results as each chain alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqlab.inference import ChainScores, expected_transitions
from seqlab.inference.kernels.dense import exp_matrix, padded_width
from seqlab.inference.kernels.groups import fold_products, group_marginals, group_space
from seqlab.simd.lanes import LANES


def run_group(chains, pairwise, weights, capacity=None):
    """`group_marginals` of chains given as (n_steps, n_labels) arrays."""
    n_labels = pairwise.shape[0]
    width = int(padded_width(n_labels))
    lengths = [len(chain) for chain in chains]
    bounds = np.zeros(LANES + 1, dtype=np.int64)
    bounds[1 : len(chains) + 1] = np.cumsum(lengths)
    unary = np.full((sum(lengths) + 1, width), -np.inf)
    unary[:-1, :n_labels] = np.concatenate(chains)
    unary[-1] = 0.0
    exp_pairwise, exp_transposed = np.zeros((2, width, width))
    shift, spread = exp_matrix(np.ascontiguousarray(pairwise), exp_pairwise, exp_transposed)
    products, transitions = np.zeros((width * width, LANES)), np.zeros((width, width))
    node, log_z = np.empty_like(unary), np.empty(LANES)
    space = group_space(max(lengths) if capacity is None else capacity, unary)
    done = group_marginals(
        unary, bounds, len(chains), exp_pairwise, exp_transposed, shift, spread,
        np.append(weights, np.ones(LANES - len(chains))), space, products, node, log_z,
    )  # fmt: skip
    if not done:
        return None
    fold_products(products, exp_pairwise, transitions)
    node = node[:-1]  # the last row is workspace
    assert not products.any()
    assert not node[:, n_labels:].any()
    return log_z[: len(chains)], node[:, :n_labels], transitions[:n_labels, :n_labels]


def assert_equals_single_chains(chains, pairwise, weights):
    log_z, node, transitions = run_group(chains, pairwise, weights)
    offsets = np.concatenate([[0], np.cumsum([len(chain) for chain in chains])])
    scores = ChainScores(np.concatenate(chains), pairwise, offsets=offsets)
    expected = expected_transitions(scores, weights=np.asarray(weights, dtype=float))
    np.testing.assert_allclose(log_z, expected.log_z, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(node, expected.node, atol=1e-12)
    np.testing.assert_allclose(transitions, expected.transitions, atol=1e-11)


@st.composite
def groups(draw, largest_scale):
    """Chains, transition scores and weights."""
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
    n_labels, scale = draw(st.integers(1, 9)), draw(st.floats(0.1, largest_scale))
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    chains = [random.normal(size=(n, n_labels)) * scale for n in lengths]
    pairwise = random.normal(size=(n_labels, n_labels)) * scale
    return chains, pairwise, random.random(len(chains))


@settings(max_examples=60, deadline=None)
@given(groups(20.0))
def test_groups_equal_single_chains(group):
    assert_equals_single_chains(*group)


@pytest.mark.parametrize(
    "options", [{"capacity": 3}, {}], ids=["too long for the workspace", "extreme scores"]
)
def test_chains_that_do_not_fit_are_refused(options):
    random = np.random.default_rng(0)
    scale = 1.0 if options else 1e4
    chains = [random.normal(size=(n, 5)) * scale for n in (2, 7, 4)]
    assert run_group(chains, random.normal(size=(5, 5)), [1.0, 2.0, 0.5], **options) is None


def test_a_long_chain_beside_short_ones():
    random = np.random.default_rng(1)
    chains = [random.normal(size=(n, 4)) for n in (3000, 1, 2, 3)]
    assert_equals_single_chains(chains, random.normal(size=(4, 4)), np.ones(4))
