"""Exact inference on graphs equals enumeration: forests, junction trees, parallel edges, loops, masks."""

from __future__ import annotations

import numpy as np
import pytest
from tests.inference.graphs.enumeration import Enumerated, random_graph, random_tree

from seqlab.data.errors import InputError, NoLegalLabelingError, NumericalError
from seqlab.inference import (
    ChainScores,
    GraphInference,
    GraphScores,
    Mask,
    beam,
    beam_marginals,
    error_count_scores,
    expected_transitions,
    kbest,
    log_partition,
    loss_augmented,
    marginals,
    max_marginals,
    pair_marginals,
    path_scores,
    sample,
    viterbi,
)
from seqlab.inference.graphs.elimination import eliminate

EXACT = GraphInference("exact")


def check(scores):
    expected = Enumerated(scores)
    found = EXACT.marginals(scores)
    assert found.is_exact.all()
    assert found.converged.all()
    np.testing.assert_allclose(found.log_z, expected.log_z, atol=1e-10)
    np.testing.assert_allclose(found.node, expected.node, atol=1e-10)
    np.testing.assert_allclose(found.pair, expected.pair, atol=1e-10)
    np.testing.assert_allclose(EXACT.max_marginals(scores), expected.max, atol=1e-10)
    best = EXACT.labelings(scores)
    np.testing.assert_allclose(best.score, expected.scores.max(), atol=1e-10)
    np.testing.assert_allclose(path_scores(scores, best.labels), best.score, atol=1e-10)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("forbidden", [0.0, 0.3])
def test_random_graphs(seed, forbidden):
    rng = np.random.default_rng(seed)
    n_nodes, n_labels = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    n_edges = int(rng.integers(0, 12))
    check(
        random_graph(rng, n_nodes=n_nodes, n_labels=n_labels, n_edges=n_edges, forbidden=forbidden)
    )


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("forbidden", [0.0, 0.3])
def test_random_forests(seed, forbidden):
    rng = np.random.default_rng(seed)
    n_nodes, n_labels = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    n_trees = int(rng.integers(1, n_nodes + 1))
    scores = random_tree(
        rng, n_nodes=n_nodes, n_labels=n_labels, n_trees=n_trees, forbidden=forbidden
    )
    assert scores.layout.graphs[0].breadth_first.is_forest
    check(scores)


@pytest.mark.parametrize("per_step", [False, True])
def test_a_chain_as_a_graph_gives_the_answers_of_the_chain(per_step):
    rng = np.random.default_rng(0)
    offsets = np.array([0, 6, 7, 7, 12])
    unary = rng.integers(-1, 2, size=(12, 3)).astype(float)  # ties
    pairwise = rng.integers(-1, 2, size=(12, 3, 3) if per_step else (3, 3)).astype(float)
    chain = ChainScores(unary, pairwise, offsets=offsets)
    inside = np.setdiff1d(np.arange(12), offsets[:-1])
    edges = np.column_stack([inside - 1, inside])
    graph = GraphScores(unary, pairwise[inside] if per_step else pairwise, edges, offsets)
    np.testing.assert_allclose(log_partition(graph), log_partition(chain), atol=1e-12)
    np.testing.assert_allclose(marginals(graph).node, marginals(chain).node, atol=1e-12)
    expected = pair_marginals(chain).pair[inside]
    np.testing.assert_allclose(pair_marginals(graph).pair, expected, atol=1e-12)
    np.testing.assert_allclose(max_marginals(graph), max_marginals(chain), atol=1e-12)
    np.testing.assert_array_equal(viterbi(graph).labels, viterbi(chain).labels)
    gold = rng.integers(0, 3, 12)
    np.testing.assert_array_equal(
        loss_augmented(graph, gold).labels, loss_augmented(chain, gold).labels
    )
    np.testing.assert_allclose(path_scores(graph, gold), path_scores(chain, gold), atol=1e-12)


def test_many_graphs_at_once_equal_one_at_a_time_for_any_number_of_threads():
    rng = np.random.default_rng(1)
    parts = [random_graph(rng, n_nodes=5, n_labels=3, n_edges=7) for _ in range(6)]
    offsets = np.arange(7) * 5
    together = GraphScores(
        np.concatenate([part.unary for part in parts]),
        np.concatenate([part.pairwise for part in parts]),
        np.concatenate([part.edges + 5 * k for k, part in enumerate(parts)]),
        offsets,
    )
    alone = [EXACT.marginals(part) for part in parts]
    for n_jobs in (1, 2):
        found = EXACT.marginals(together, n_jobs=n_jobs)
        np.testing.assert_array_equal(found.node, np.concatenate([part.node for part in alone]))
        np.testing.assert_array_equal(found.pair, np.concatenate([part.pair for part in alone]))
        np.testing.assert_array_equal(found.log_z, np.concatenate([part.log_z for part in alone]))
        labels = EXACT.labelings(together, n_jobs=n_jobs).labels
        np.testing.assert_array_equal(
            labels, np.concatenate([EXACT.labelings(part).labels for part in parts])
        )


def test_sampled_labelings_have_the_marginals():
    rng = np.random.default_rng(2)
    scores = random_graph(rng, n_nodes=4, n_labels=3, n_edges=6)
    drawn = np.array([EXACT.sample(scores, rng) for _ in range(4000)])
    shares = np.array([(drawn == label).mean(axis=0) for label in range(3)]).T
    np.testing.assert_allclose(shares, EXACT.marginals(scores).node, atol=0.04)
    other = sample(scores, 3, random_state=0)
    assert np.array_equal(other, sample(scores, 3, random_state=np.random.default_rng(0)))
    uniforms = np.random.default_rng(0).random((3, 4))
    assert np.array_equal(other, [EXACT.sample_from(scores, row) for row in uniforms])
    assert sample(scores, 0).shape == (0, 4)


def test_functions_for_chains_only_say_so():
    scores = GraphScores(np.zeros((3, 2)), np.zeros((2, 2, 2)), [[0, 1], [1, 2]])
    for call in (
        lambda: kbest(scores, 2),
        lambda: beam(scores, 2),
        lambda: beam_marginals(scores, 2),
        lambda: expected_transitions(scores),
        lambda: error_count_scores(scores, [0, 0, 0]),
    ):
        with pytest.raises(InputError, match="needs ChainScores, got GraphScores; for graphs"):
            call()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_entries", 0),
        ("max_entries", 1.5),
        ("max_rounds", -1),
        ("damping", "a"),
        ("damping", 1.0),
        ("tol", float("nan")),
    ],
)
def test_settings_out_of_range_raise_errors(option, value):
    with pytest.raises(InputError, match=f"{option} must be"):
        GraphInference(**{option: value})


@pytest.mark.parametrize("width", [1, 2, 3])
def test_min_fill_finds_the_treewidth_of_grids(width):
    # A grid of `width + 1` rows and many columns, except that width 1 is a path.
    rows, columns = width, 12
    node = np.arange(rows * columns).reshape(rows, columns)
    edges = [*zip(node[:, :-1].ravel(), node[:, 1:].ravel(), strict=True)]
    edges += [*zip(node[:-1].ravel(), node[1:].ravel(), strict=True)]
    graph = GraphScores(np.zeros((node.size, 2)), np.zeros((2, 2)), edges).layout.graphs[0]
    cliques = eliminate(graph.starts, graph.neighbours, 10)
    assert cliques.width == width
    assert eliminate(graph.starts, graph.neighbours, width) is None
    for v, separator in enumerate(cliques.separators):  # running intersection
        if separator:
            assert set(separator[1:]) <= set(cliques.separators[separator[0]])
        later = set(graph.neighbours[graph.starts[v] : graph.starts[v + 1]].tolist())
        position = {u: k for k, u in enumerate(cliques.order)}
        assert {u for u in later if position[u] > position[v]} <= set(separator)


def test_masks():
    rng = np.random.default_rng(3)
    scores = random_graph(rng, n_nodes=5, n_labels=3, n_edges=7)
    mask = Mask(
        steps=rng.random((5, 3)) < 0.7, transitions=np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    )
    mask.steps[:, 1] = True
    expected = Enumerated(scores.masked(mask))
    np.testing.assert_allclose(log_partition(scores, mask=mask), expected.log_z)
    np.testing.assert_allclose(viterbi(scores, mask=mask).score, expected.scores.max())
    with pytest.raises(InputError, match="no first and last node"):
        viterbi(scores, mask=Mask(start=[True, True, False]))


def test_a_graph_without_nodes_or_edges():
    scores = GraphScores(np.zeros((2, 3)), np.zeros((0, 3, 3)), [], [0, 0, 2, 2])
    np.testing.assert_allclose(EXACT.marginals(scores).log_z, [0.0, 2 * np.log(3), 0.0])
    np.testing.assert_array_equal(EXACT.labelings(scores).score, [0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edges": [[0, 5]]}, r"edges\[0\] = \[0, 5\] names a node that does not exist"),
        ({"edges": [[-1, 1]]}, "does not exist"),
        (
            {"edges": [[0, 1], [1, 2]], "offsets": [0, 2, 3]},
            "joins a node of graph 0 to one of graph 1",
        ),
        ({"edges": [[0.5, 1.0]]}, "must be integers"),
        ({"edges": [[0, 1, 2]]}, r"shape \(n_edges, 2\)"),
        ({"edges": [[0, 1], [1]]}, "two columns"),
        ({"pairwise": np.zeros((3, 2, 2))}, "pairwise must be"),
        ({"unary": np.zeros(3)}, "unary must be"),
        ({"offsets": [0, 2]}, "3 nodes"),
        ({"offsets": [0, 4, 3]}, "must not decrease"),
        ({"offsets": [1, 3]}, "begins with 0"),
    ],
)
def test_bad_scores_are_rejected(change, message):
    good = {"unary": np.zeros((3, 2)), "pairwise": np.zeros((2, 2)), "edges": [[0, 1]]}
    with pytest.raises(InputError, match=message):
        GraphScores(**{**good, **change})


def test_impossible_and_invalid_scores_name_the_graph():
    unary = np.zeros((4, 2))
    unary[3] = -np.inf
    scores = GraphScores(unary, np.zeros((2, 2)), [[0, 1], [2, 3]], [0, 2, 4])
    for run in (EXACT.marginals, EXACT.labelings, EXACT.max_marginals, EXACT.relaxed):
        with pytest.raises(NoLegalLabelingError, match="graph 1"):
            run(scores)
    unary[3] = np.nan
    with pytest.raises(NumericalError, match="graph 1 at node 1"):
        EXACT.marginals(scores.with_unary(unary))


def test_exact_inference_says_if_a_graph_is_too_large():
    n = 30
    edges = [(i, j) for i in range(n) for j in range(i)]
    scores = GraphScores(np.zeros((n, 3)), np.zeros((3, 3)), edges)
    with pytest.raises(InputError, match="raise max_entries or use loopy belief propagation"):
        EXACT.marginals(scores)
    assert not GraphInference().marginals(scores).is_exact[0]
