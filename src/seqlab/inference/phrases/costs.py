"""Costs of phrases: structured costs from open and close probabilities, or a list of candidates.

A phrase of type ``k`` over the steps ``i, ..., j`` costs, with ``p_o`` the probability that it opens at
``i`` and ``p_c`` that it closes at ``j``::

    product    threshold - p_o p_c
    log_odds   threshold - log(p_o p_c / (1 - p_o p_c))
    map        threshold - log(p_o p_c) - w sum_{t inside} log(P(nCi, t) P(nOi, t + 1))

Under ``map`` a step in no phrase costs ``-w log(P(nOo, t) P(nCo, t))``, otherwise nothing. With ``w = 1``
the total is minus the log-probability of the decisions that correspond to a phrase set, if they are
independent.

Without a threshold the cost of a product is never positive, so that nearly every step ends up in a phrase.
A threshold, or a minimum probability of candidates, prevents that.

References
----------
Punyakanok and Roth, "The use of classifiers in sequential inference", NIPS 2000.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlab.data.errors import InputError, NumericalError
from seqlab.inference.phrases._kernels import (
    LOG_ODDS,
    PRODUCT,
    SUM,
    CostArrays,
    count_candidates,
    list_candidates,
)
from seqlab.inference.scores import Bools, Floats

Ints = NDArray[np.int64]

NO_LIMIT = int(np.iinfo(np.int64).max // 4)  # a position can be added to it without overflow


@dataclass(frozen=True, slots=True)
class PhraseCosts:
    """The cost of every possible phrase, in O(n_steps * n_types) memory; see `product`, `log_odds`, `map`.

    Parameters
    ----------
    kind : int
        How the values at the ends of a phrase are combined.
    first, last : arrays of shape (n_steps, n_types)
        Values at the first and at the last step of a phrase.
    through : array of shape (n_steps,)
        Cost of being inside the same phrase at a step and at the next (``map`` only).
    outside : array of shape (n_steps,)
        Cost of a step in no phrase; ``inf`` if it must be in one.
    opens, closes : boolean arrays of shape (n_steps, n_types)
        Where a phrase may begin and end.
    threshold : array of shape (n_types,)
        Added to the cost of every phrase.
    shortest, longest : int64 arrays of shape (n_types,)
        Length limits.
    offsets : int64 array of shape (n_sequences + 1,)

    Examples
    --------
    >>> from seqlab.inference import PhraseCosts, best_phrases
    >>> costs = PhraseCosts.product([[0.9], [0.2], [0.6]], [[0.3], [0.8], [0.7]])
    >>> best = best_phrases(costs)
    >>> best.phrases.start.tolist(), best.phrases.stop.tolist(), best.cost.round(2).tolist()
    ([0, 2], [2, 3], [-1.14])
    """

    kind: int
    first: Floats
    last: Floats
    through: Floats
    outside: Floats
    opens: Bools
    closes: Bools
    threshold: Floats
    shortest: Ints
    longest: Ints
    offsets: Ints

    @classmethod
    def product(
        cls,
        open_proba: ArrayLike,
        close_proba: ArrayLike,
        offsets: ArrayLike | None = None,
        *,
        threshold: ArrayLike = 0.0,
        min_probability: float = 0.0,
    ) -> PhraseCosts:
        """``threshold - p_o p_c``; outside costs nothing.

        Parameters
        ----------
        open_proba, close_proba : arrays of shape (n_steps, n_types)
            Probability that a phrase of each type opens, and closes, at each step.
        offsets : int array of shape (n_sequences + 1,), optional
            First step of each sequence, and the number of steps; one sequence by default.
        threshold : float or array of shape (n_types,)
            Phrases with a smaller product are not chosen.
        min_probability : float
            Phrases that open or close with a smaller probability are not candidates.
        """
        opened = _probabilities(open_proba, "open_proba", offsets)
        closed = _probabilities(close_proba, "close_proba", offsets)
        if opened.shape != closed.shape or opened.shape[1] == 0:
            raise InputError(
                "open_proba and close_proba must have the same steps and types, got shapes "
                f"{opened.shape} and {closed.shape}"
            )
        none = np.zeros(opened.shape[0])
        opens, closes = opened >= min_probability, closed >= min_probability
        return cls._build(PRODUCT, opened, closed, none, none, opens, closes, threshold, offsets)

    @classmethod
    def log_odds(
        cls,
        open_proba: ArrayLike,
        close_proba: ArrayLike,
        offsets: ArrayLike | None = None,
        *,
        threshold: ArrayLike = 0.0,
        min_probability: float = 0.0,
    ) -> PhraseCosts:
        """``threshold - log(p / (1 - p))`` with ``p = p_o p_c``; parameters as in `product`."""
        limits: Any = {"threshold": threshold, "min_probability": min_probability}
        return replace(cls.product(open_proba, close_proba, offsets, **limits), kind=LOG_ODDS)

    @classmethod
    def map(
        cls,
        open_proba: ArrayLike,
        close_proba: ArrayLike,
        offsets: ArrayLike | None = None,
        *,
        threshold: ArrayLike = 0.0,
        min_probability: float = 0.0,
        inside_weight: float = 1.0,
    ) -> PhraseCosts:
        """Minus the log-probability of all open and close decisions.

        Parameters
        ----------
        open_proba, close_proba : arrays of shape (n_steps, n_types + 2)
            Probabilities of the decisions: one column per type, then "no, inside" (``nOi``, ``nCi``),
            then "no, outside" (``nOo``, ``nCo``).
        offsets, threshold, min_probability
            As in `product`.
        inside_weight : float
            Weight of the decisions at steps that are not the end of a phrase. A weight below 1 is useful
            because the errors of one classifier at neighbouring steps are correlated, and a long phrase, or
            a long part outside, has many of these decisions.
        """
        opened = _probabilities(open_proba, "open_proba", offsets)
        closed = _probabilities(close_proba, "close_proba", offsets)
        if opened.shape != closed.shape or opened.shape[1] < 3:
            raise InputError(
                "open_proba and close_proba need one column per type and two more, got shapes "
                f"{opened.shape} and {closed.shape}"
            )
        with np.errstate(divide="ignore"):
            open_cost, close_cost = 0.0 - np.log(opened), 0.0 - np.log(closed)
        through = close_cost[:, -2].copy()  # nCi here, nOi at the next step
        through[:-1] += open_cost[1:, -2]
        outside = open_cost[:, -1] + close_cost[:, -1]
        if not 0.0 <= inside_weight < np.inf:
            raise InputError(f"inside_weight must be finite and not negative, got {inside_weight}")
        if inside_weight == 0.0:  # with any other weight, what is impossible stays impossible
            through, outside = np.zeros((2, outside.size))
        return cls._build(
            SUM,
            open_cost[:, :-2],
            close_cost[:, :-2],
            inside_weight * through,
            inside_weight * outside,
            (opened[:, :-2] >= min_probability) & (opened[:, :-2] > 0.0),
            (closed[:, :-2] >= min_probability) & (closed[:, :-2] > 0.0),
            threshold,
            offsets,
        )

    @classmethod
    def _build(
        cls,
        kind: int,
        first: Floats,
        last: Floats,
        through: Floats,
        outside: Floats,
        opens: Bools,
        closes: Bools,
        threshold: ArrayLike,
        offsets: ArrayLike | None,
    ) -> PhraseCosts:
        n_steps, n_types = first.shape
        thresholds = np.array(np.broadcast_to(np.asarray(threshold, dtype=np.float64), (n_types,)))
        if not np.isfinite(thresholds).all():
            raise InputError(f"threshold must be finite, got {threshold!r}")
        return cls(
            kind,
            np.ascontiguousarray(first),
            np.ascontiguousarray(last),
            np.ascontiguousarray(through),
            np.ascontiguousarray(outside),
            np.ascontiguousarray(opens),
            np.ascontiguousarray(closes),
            thresholds,
            np.ones(n_types, dtype=np.int64),
            np.full(n_types, NO_LIMIT, dtype=np.int64),
            _offsets(offsets, n_steps),
        )

    @property
    def n_types(self) -> int:
        """Number of phrase types."""
        return int(self.first.shape[1])

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return int(self.offsets.size - 1)

    @property
    def arrays(self) -> CostArrays:
        """The arrays in the form that the kernels take."""
        return CostArrays(*(getattr(self, name) for name in CostArrays._fields))

    @property
    def has_limits(self) -> bool:
        """Whether some phrases are excluded because of their length."""
        return bool((self.shortest > 1).any() or (self.longest < NO_LIMIT).any())

    def limited(self, shortest: ArrayLike = 1, longest: ArrayLike = NO_LIMIT) -> PhraseCosts:
        """The same costs with length limits, for all types or for each; earlier limits stay in force."""
        lower = np.broadcast_to(np.asarray(shortest, dtype=np.int64), self.shortest.shape)
        upper = np.broadcast_to(np.asarray(longest, dtype=np.int64), self.longest.shape)
        return replace(
            self,
            shortest=np.maximum(self.shortest, lower),
            longest=np.minimum(self.longest, np.maximum(upper, 0)),
        )

    def covering(self, steps: Bools) -> PhraseCosts:
        """The same costs, but the given steps (boolean, all sequences stacked) must be in a phrase."""
        return replace(self, outside=np.where(steps, np.inf, self.outside))

    def with_threshold(self, threshold: ArrayLike) -> PhraseCosts:
        """The same costs with another threshold."""
        given = np.asarray(threshold, dtype=np.float64)
        return replace(self, threshold=np.array(np.broadcast_to(given, self.threshold.shape)))

    def sequence(self, index: int) -> PhraseCosts:
        """The costs of one sequence."""
        steps = slice(int(self.offsets[index]), int(self.offsets[index + 1]))
        cut: dict[str, Any] = {
            name: getattr(self, name)[steps]
            for name in ("first", "last", "through", "outside", "opens", "closes")
        }
        return replace(self, offsets=np.array([0, steps.stop - steps.start]), **cut)

    def candidates(self) -> PhraseCandidates:
        """Every allowed phrase with its cost: up to n_types * T * (T + 1) / 2 per sequence."""
        n = count_candidates(self.arrays)
        start, stop, type_ = np.empty((3, n), dtype=np.int64)
        cost = np.empty(n)
        list_candidates(self.kind, self.arrays, start, stop, type_, cost)
        return PhraseCandidates(start, stop, type_, cost, self.outside, self.offsets)


@dataclass(frozen=True, slots=True)
class PhraseCandidates:
    """A list of phrases with arbitrary costs.

    Parameters
    ----------
    start, stop, type : int arrays of shape (n_candidates,)
        Positions in the stacked steps; no phrase may extend over two sequences.
    cost : array of shape (n_candidates,)
        A candidate with cost ``inf`` is never chosen.
    outside : array of shape (n_steps,)
        Cost of each step that is in no phrase; ``inf`` if it must be in one.
    offsets : int array of shape (n_sequences + 1,), optional

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab.inference import PhraseCandidates, best_phrases
    >>> candidates = PhraseCandidates([0, 1, 2], [2, 3, 3], [0, 1, 0], [-1.0, -3.0, -1.5], np.zeros(3))
    >>> best_phrases(candidates).cost
    array([-3.])
    """

    start: Ints
    stop: Ints
    type: Ints
    cost: Floats
    outside: Floats
    offsets: Ints = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        outside = np.ascontiguousarray(self.outside, dtype=np.float64)
        offsets = _offsets(self.offsets, outside.size)
        start = np.ascontiguousarray(self.start, dtype=np.int64)
        columns = [np.ascontiguousarray(part, np.int64) for part in (self.stop, self.type)]
        cost = np.ascontiguousarray(self.cost, dtype=np.float64)
        if any(part.shape != start.shape for part in (*columns, cost)) or start.ndim != 1:
            raise InputError("start, stop, type and cost of candidates must have equal lengths")
        stop, type_ = columns
        if start.size:
            inside = (start >= 0) & (start < outside.size)
            ends = np.append(offsets, 0)[np.searchsorted(offsets, start, side="right")]
            bad = ~inside | (stop <= start) | (stop > ends) | (type_ < 0)
            if bad.any():
                at = int(np.argmax(bad))
                raise InputError(
                    f"candidate {at} (steps {start[at]}:{stop[at]}) is not inside a sequence"
                )
        for name, part in (("cost", cost), ("outside", outside)):
            if np.isnan(part).any() or np.isneginf(part).any():
                at = int(np.argmax(np.isnan(part) | np.isneginf(part)))
                raise NumericalError(f"{name}[{at}] of the candidates is {part[at]}")
        if np.any(start[1:] < start[:-1]):  # the kernel reads them in the order of their starts
            order = np.argsort(start, kind="stable")
            start, stop, type_, cost = start[order], stop[order], type_[order], cost[order]
        checked: dict[str, Any] = {"start": start, "stop": stop, "type": type_, "cost": cost}
        for name, array in {**checked, "outside": outside, "offsets": offsets}.items():
            object.__setattr__(self, name, array)

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return int(self.offsets.size - 1)


def _probabilities(given: ArrayLike, name: str, offsets: ArrayLike | None) -> Floats:
    array = np.asarray(given, dtype=np.float64)
    if array.ndim != 2:
        raise InputError(f"{name} must have the shape (n_steps, n_types), got {array.shape}")
    bad = ~((array >= 0.0) & (array <= 1.0 + 1e-9))  # also true for NaN
    if bad.any():
        step = int(np.argmax(bad.any(axis=1)))
        bounds = _offsets(offsets, array.shape[0])
        sequence = int(np.searchsorted(bounds, step, side="right") - 1)
        value = array[step, int(np.argmax(bad[step]))]
        raise NumericalError(
            f"{name} of sequence {{sequence}} at position {step - int(bounds[sequence])} is {value}: "
            "not a probability",
            sequence,
        )
    return array


def _offsets(offsets: ArrayLike | None, n_steps: int) -> Ints:
    array = np.array([0, n_steps]) if offsets is None else np.array(offsets, dtype=np.int64)
    ends = array.ndim == 1 and array.size and array[0] == 0 and array[-1] == n_steps
    if not ends or np.any(array[1:] < array[:-1]):
        raise InputError(f"offsets must run from 0 to the {n_steps} steps without decreasing")
    return array.astype(np.int64)
