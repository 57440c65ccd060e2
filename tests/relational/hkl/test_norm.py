"""The hierarchical norm: its variational form, its dual, and sums over descendants."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.relational.hkl.lattice_oracle import all_nodes, omega

from seqlab.relational.hkl.lattice import ActiveLattices, descendant_kernel
from seqlab.relational.hkl.norm import HierarchicalNorm, normalize
from seqlab.relational.hkl.plane_dual import PlaneDual


def make_norm(n_inputs=3, a=1.7, rho=1.5):
    nodes = all_nodes(n_inputs)
    ancestors = np.array([[set(v) <= set(w) for v in nodes] for w in nodes], dtype=float)
    d = np.array([a ** len(v) for v in nodes])
    return HierarchicalNorm(sp.csr_matrix(ancestors), d, rho), nodes


def test_sum_over_descendants_is_a_product_by_hand():
    value = descendant_kernel(np.array([[3]]), 1, 1.7)[0, 0]
    assert value == pytest.approx(0.447462, abs=5e-7)


@pytest.mark.parametrize("max_length", [None, 1, 2, 3])
@pytest.mark.parametrize("node", [(0,), (1, 3), (0, 2, 4)])
def test_sum_over_descendants_equals_enumeration(node, max_length):
    random = np.random.default_rng(0)
    rows = random.random((6, 5)) < 0.7
    rows[:, list(node)] = True
    if max_length is not None and len(node) > max_length:
        return
    overlap = (rows[:, None] & rows[None]).sum(axis=2)
    a, expected = 1.7, np.zeros((6, 6))
    others = [b for b in range(5) if b not in node]
    for size in range(len(others) + 1):
        for more in combinations(others, size):
            if max_length is not None and len(node) + size > max_length:
                continue
            holds = rows[:, [*node, *more]].all(axis=1)
            penalty = a ** len(node) * (1 + a) ** size
            expected += np.outer(holds, holds) / penalty**2
    np.testing.assert_allclose(descendant_kernel(overlap, len(node), a, max_length), expected)


@pytest.mark.parametrize("rho", [1.05, 1.5, 2.0])
def test_variational_form_bounds_the_norm_and_touches_it(rho):
    norm, nodes = make_norm(rho=rho)
    random = np.random.default_rng(1)
    lengths = random.random(len(nodes))
    assert norm.value(lengths) == pytest.approx(omega(nodes, lengths, 1.7, rho))
    touching = norm.variational_value(lengths, norm.best_gamma(lengths))
    assert touching == pytest.approx(norm.value(lengths) ** 2, rel=1e-10)
    for _ in range(20):
        gamma = random.dirichlet(np.ones(len(nodes)))
        assert norm.variational_value(lengths, gamma) >= touching * (1 - 1e-12)


@pytest.mark.parametrize("rho", [1.2, 1.5, 2.0])
def test_conjugate_is_the_supremum_of_the_inner_product(rho):
    norm, nodes = make_norm(rho=rho)
    random = np.random.default_rng(2)
    q, gamma = random.random(len(nodes)), random.dirichlet(np.ones(len(nodes)))
    values = norm.conjugate(gamma, q)
    h = np.sqrt(q)
    f = values.eta * h  # the maximiser
    reached = h @ f - 0.5 * norm.variational_value(f, gamma)
    assert reached == pytest.approx(0.5 * values.phi, rel=1e-10)
    for _ in range(20):
        other = f * random.uniform(0.5, 1.5, f.size)
        assert h @ other - 0.5 * norm.variational_value(other, gamma) <= reached + 1e-12


@pytest.mark.parametrize("rho", [1.2, 1.5, 2.0])
def test_gradient_equals_finite_differences(rho):
    norm, nodes = make_norm(rho=rho)
    random = np.random.default_rng(3)
    q, gamma = 10 * random.random(len(nodes)), random.dirichlet(np.ones(len(nodes)))
    expected = np.zeros(len(nodes))
    for v in range(len(nodes)):
        step = 1e-6 * gamma[v]
        high, low = gamma.copy(), gamma.copy()
        high[v] += step
        low[v] -= step
        rise = norm.conjugate(high, q).phi - norm.conjugate(low, q).phi
        expected[v] = -0.5 * rise / (2 * step)
    np.testing.assert_allclose(norm.gradient(gamma, q), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("rho", [1.5, 2.0])
@pytest.mark.parametrize("label_wise", [True, False])
def test_gradient_of_the_partial_dual_equals_finite_differences(rho, label_wise):
    random = np.random.default_rng(6)
    inputs = random.random((7, 3)) < 0.6
    lattices = ActiveLattices(inputs, 2, label_wise=label_wise, a=1.5, rho=rho, max_length=None)
    dual = PlaneDual(2, 7, 2, 4)
    dual.activate(lattices)
    group = np.array([0, 0, 0, 1, 1, 1])
    dual.add(group, random.normal(size=(6, 7, 2)), random.normal(size=(6, 4)), 5 * random.random(6))
    gamma = random.dirichlet(np.ones(lattices.n_active))
    q = dual.solve(gamma, 1e-13).q
    expected = np.zeros(gamma.size)
    for v in range(gamma.size):
        step = 1e-4 * gamma[v]
        values = []
        for sign in (1.0, -1.0):
            moved = gamma.copy()
            moved[v] += sign * step
            values.append(dual.solve(moved, 1e-13).value)
        expected[v] = (values[0] - values[1]) / (2 * step)
    np.testing.assert_allclose(lattices.norm.gradient(gamma, q), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("rho", [1.5, 2.0])
def test_bound_on_the_dual_norm_is_close_and_never_below(rho):
    norm, nodes = make_norm(rho=rho)
    random = np.random.default_rng(4)
    q = random.random(len(nodes))
    bound = norm.dual_norm_bound(normalize(np.ones(len(nodes))), q)
    h, highest = np.sqrt(q), 0.0
    for _ in range(3000):  # the dual norm is the largest inner product with a unit vector
        f = h * random.exponential(size=h.size) * (random.random(h.size) < 0.5)
        highest = max(highest, (h @ f) / max(norm.value(f), 1e-300))
    assert highest**2 <= bound * (1 + 1e-12)
    assert bound <= 1.5 * highest**2


def test_candidates_have_active_parents_and_bounds_equal_enumeration():
    random = np.random.default_rng(5)
    inputs = random.random((8, 4)) < 0.6
    lattices = ActiveLattices(inputs, 2, label_wise=True, a=1.5, rho=2.0, max_length=None)
    beta = random.normal(size=(8, 2))
    found = {(one.lattice, one.node): one.bound for one in lattices.find_candidates(beta)}
    pairs = {
        (k, c) for k in range(2) for c in combinations(range(4), 2) if inputs[:, c].all(1).any()
    }
    assert set(found) == pairs
    for (label, node), bound in found.items():
        expected = 0.0
        for w in all_nodes(4):
            if set(node) <= set(w):
                total = inputs[:, list(w)].all(axis=1) @ beta[:, label]
                expected += (total / (1.5**2 * 2.5 ** (len(w) - 2))) ** 2
        assert bound == pytest.approx(expected)
