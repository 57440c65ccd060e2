"""Loopy belief propagation on graphs with cycles: the message loops.

Edge ``e = (a, b)`` carries two messages: ``2 e`` from ``a`` to ``b`` and ``2 e + 1`` back. ``belief[i]`` is
the sum of the node's scores and its incoming messages. A new message is mixed with the old one
(``damping``), in logs, and normalised. The next message to be sent is the one that would change most
(residual belief propagation, Elidan et al. 2006), found in a tournament tree over all messages.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from seqlab.inference.kernels.forests import combine

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@njit(nogil=True, cache=True)
def _cavity(
    i: int,
    skip: int,
    label: int,
    unary: Floats,
    messages: Floats,
    belief: Floats,
    starts: Ints,
    links: Ints,
    edges: Ints,
) -> float:
    """Belief of a label without one incoming message."""
    if messages[skip, label] > -np.inf:
        return belief[i, label] - messages[skip, label]
    total = unary[i, label]
    for k in range(starts[i], starts[i + 1]):
        incoming = 2 * links[k] + (1 if edges[links[k], 0] == i else 0)
        if incoming != skip:
            total += messages[incoming, label]
    return total


@njit(nogil=True, cache=True)
def _new_message(
    m: int,
    unary: Floats,
    pair: Floats,
    edges: Ints,
    starts: Ints,
    links: Ints,
    messages: Floats,
    belief: Floats,
    use_max: bool,
    cavity: Floats,
    row: Floats,
    out: Floats,
) -> float:
    """Compute message ``m`` into ``out``; return by how much it differs from the present one."""
    n_labels = unary.shape[1]
    e, back = m // 2, m % 2
    i = edges[e, back]
    for label in range(n_labels):
        cavity[label] = _cavity(i, m ^ 1, label, unary, messages, belief, starts, links, edges)
    for other in range(n_labels):
        for label in range(n_labels):
            edge = pair[e, label, other] if back == 0 else pair[e, other, label]
            row[label] = cavity[label] + edge
        out[other] = combine(row, use_max)
    shift = combine(out, use_max)
    change = 0.0
    for label in range(n_labels):
        out[label] -= shift
        if out[label] > -np.inf and messages[m, label] > -np.inf:
            change = max(change, abs(out[label] - messages[m, label]))
        elif out[label] != messages[m, label]:
            change = np.inf
    return change


@njit(nogil=True, cache=True)
def _set_priority(tree: Floats, m: int, value: float) -> None:
    """Set the priority of a message in the tournament tree."""
    at = tree.size // 2 + m
    tree[at] = value
    at //= 2
    while at >= 1:
        top = max(tree[2 * at], tree[2 * at + 1])
        if tree[at] == top:
            break
        tree[at] = top
        at //= 2


@njit(nogil=True, cache=True)
def _first_of_highest(tree: Floats) -> int:
    """Return the first message with the highest priority."""
    at = 1
    while at < tree.size // 2:
        at = 2 * at if tree[2 * at] >= tree[2 * at + 1] else 2 * at + 1
    return at - tree.size // 2


@njit(nogil=True, cache=True)
def propagate(
    unary: Floats,
    pair: Floats,
    edges: Ints,
    starts: Ints,
    links: Ints,
    use_max: bool,
    damping: float,
    tol: float,
    max_rounds: int,
    use_residual: bool,
    messages: Floats,
    belief: Floats,
) -> tuple[int, float]:
    """Send messages until none would change by more than ``tol``; return the rounds and the largest change.

    ``messages`` (2 n_edges, n_labels) is the starting point and is overwritten, ``belief`` is filled. A
    round is as many messages as there are; without ``use_residual`` they are sent in order, forwards and
    backwards by turns.
    """
    n_messages, n_labels = messages.shape
    cavity, row, out = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
    belief[:] = unary
    for m in range(n_messages):
        target = edges[m // 2, 1 - m % 2]
        for label in range(n_labels):
            belief[target, label] += messages[m, label]
    size = 1
    while size < n_messages:
        size *= 2
    tree = np.full(2 * size, -1.0)
    if use_residual:
        for m in range(n_messages):
            change = _new_message(
                m, unary, pair, edges, starts, links, messages, belief, use_max, cavity, row, out
            )
            _set_priority(tree, m, change)
    largest = np.inf if n_messages else 0.0
    for done in range(max_rounds):
        if n_messages == 0:
            return done, largest
        if not use_residual:
            largest = 0.0
        for k in range(n_messages):
            if use_residual:
                largest = tree[1]
                if largest <= tol:
                    return done + 1, largest
                m = _first_of_highest(tree)
            else:
                m = k if done % 2 == 0 else n_messages - 1 - k
            change = _new_message(
                m, unary, pair, edges, starts, links, messages, belief, use_max, cavity, row, out
            )
            largest = max(largest, change) if not use_residual else largest
            target = edges[m // 2, 1 - m % 2]
            # Messages with -inf are not mixed: a forbidden label stays forbidden at once.
            mix = damping if change < np.inf else 0.0
            for label in range(n_labels):
                if mix > 0.0:
                    out[label] = (1.0 - mix) * out[label] + mix * messages[m, label]
                    if np.isnan(out[label]):
                        out[label] = -np.inf
            _replace(m, target, out, unary, messages, belief, starts, links, edges)
            if not use_residual:
                continue
            _set_priority(tree, m, change * mix if mix > 0.0 else 0.0)
            for k2 in range(starts[target], starts[target + 1]):
                e2 = links[k2]
                outgoing = 2 * e2 + (0 if edges[e2, 0] == target else 1)
                if outgoing != m ^ 1:
                    change = _new_message(
                        outgoing,
                        unary,
                        pair,
                        edges,
                        starts,
                        links,
                        messages,
                        belief,
                        use_max,
                        cavity,
                        row,
                        out,
                    )
                    _set_priority(tree, outgoing, change)
        if not use_residual and largest <= tol:
            return done + 1, largest
    return max_rounds, largest


@njit(nogil=True, cache=True)
def _replace(
    m: int,
    target: int,
    new: Floats,
    unary: Floats,
    messages: Floats,
    belief: Floats,
    starts: Ints,
    links: Ints,
    edges: Ints,
) -> None:
    """Put a new message in place of an old one, also in the belief of its target."""
    for label in range(new.size):
        rest = _cavity(target, m, label, unary, messages, belief, starts, links, edges)
        messages[m, label] = new[label]
        belief[target, label] = rest + new[label]
