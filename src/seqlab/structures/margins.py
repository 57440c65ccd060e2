"""What max-margin learners need of a structure, and a version of it for any structure.

With ``psi_i(y) = phi(x_i, gold) - phi(x_i, y)`` the learners minimise

    |w|^2 / 2 + sum_i limit_i max_y h_i(y),    h_i(y) = loss(y) - scale(y) w' psi_i(y)

``scale`` is 1 (margin rescaling) or the loss (slack rescaling). The dual has a weight for every sample and
labeling, whose sum for a sample is its limit; ``w`` is the weighted sum of ``scale(y) psi_i(y)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.utils.linalg import dot

if TYPE_CHECKING:
    from seqlab.structures.protocol import BoundStructure

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


# Steps per visit of a sample, and the share of the first violation at which a visit ends. Chosen on one
# fold of the OCR letters: 5 to 20 steps and shares of 0.03 to 0.3 took within 20 % of the same time.
MAX_STEPS = 10
SHRINK = 0.1


class SpanRules(NamedTuple):
    """Which labels form spans, for the span loss."""

    continues: NDArray[
        np.bool_
    ]  # (n_labels, n_labels): the second label is in the span of the first
    types: Codes  # type of the span that a label is in, negative for none, (n_labels,)


class MarginProblem(NamedTuple):
    """The data of a max-margin problem."""

    codes: Codes  # gold labels, (n_positions,)
    costs: (
        Floats  # cost of each label at each position, 0 for the gold label, (n_positions, n_labels)
    )
    limits: Floats  # factor of the slack of each sample, (n_samples,)
    rescale_slack: bool = False  # slack rescaling; the costs are then 0 or 1
    spans: SpanRules | None = None  # the loss is the span loss, and the costs are not used


class Violators(NamedTuple):
    """The labeling of highest ``h`` of every sample."""

    labels: Codes  # (n_positions,)
    slack: Floats  # h of the labeling, (n_samples,)
    losses: Floats  # (n_samples,)
    scales: Floats  # (n_samples,)


class DualValues(NamedTuple):
    """Objectives of primal and dual, and the duality gap of each sample."""

    primal: float
    dual: float
    gaps: Floats  # (n_samples,); their sum is primal - dual


class BlockDual(Protocol):
    """A dual that is improved one sample at a time."""

    def run_pass(self, order: NDArray[np.int64], *, search: bool = True) -> int:
        """Improve the dual on these samples, in order; return the number of steps.

        Without ``search``, only labelings that are stored already are used, and no inference is needed.
        """
        ...

    def measure(self) -> DualValues:
        """Return primal and dual of the current model; one search of every sample."""
        ...

    def objective(self) -> float:
        """Return the dual objective, without search."""
        ...


class MarginModel(Protocol):
    """A model that max-margin learners train: weights, or kernel coefficients.

    A model is a vector; its *image* is such that the inner product of two models is the dot product of the
    vector of one with the image of the other. For weights both are the same.
    """

    problem: MarginProblem

    def vector(self) -> Floats:
        """Return a copy of the model."""
        ...

    def image(self, vector: Floats) -> Floats:
        """Return the image of a vector."""
        ...

    def set(self, vector: Floats, image: Floats | None = None) -> None:
        """Replace the model."""
        ...

    def squared_norm(self) -> float:
        """Return the squared norm of the model."""
        ...

    def total(self, labels: Codes, weights: Floats) -> Floats:
        """Return the vector of ``sum_i weights_i psi_i(labels_i)``."""
        ...

    def find_violators(self) -> Violators:
        """Search the labeling of highest ``h`` of every sample."""
        ...

    def find_many_violators(self) -> list[Violators]:
        """Search one or more labelings of every sample; the first ones are those of highest ``h``."""
        ...

    def plane_dual(self) -> BlockDual:
        """Return the dual over stored labelings, all weight on the gold ones; the model becomes zero."""
        ...

    def marginal_dual(self) -> BlockDual:
        """Return the dual over marginals of the parts of the structure; the model becomes zero."""
        ...

    def subgradient(self) -> StochasticSubgradient:
        """Return a stochastic subgradient method; the model becomes zero."""
        ...


class StochasticSubgradient(Protocol):
    """Stochastic subgradient steps with rate 1 / t, and the average of the models weighted by t."""

    def run_pass(self, order: NDArray[np.int64]) -> None:
        """Make one step for each of these samples."""
        ...

    def average(self) -> Floats:
        """Return the vector of the weighted average."""
        ...


class WeightModel:
    """Weights of any structure, for margin rescaling; a `MarginModel`.

    Parameters
    ----------
    bound : BoundStructure
    problem : MarginProblem
    """

    def __init__(self, bound: BoundStructure, problem: MarginProblem) -> None:
        if problem.rescale_slack or problem.spans is not None:
            what = "slack rescaling" if problem.rescale_slack else "the span loss"
            raise InputError(f"{type(bound).__name__} does not support {what}")
        self.bound, self.problem = bound, problem
        self.w = np.zeros(bound.n_params)

    def vector(self) -> Floats:
        """Return a copy of the weights."""
        return self.w.copy()

    def image(self, vector: Floats) -> Floats:
        """Return the vector itself."""
        return vector

    def set(self, vector: Floats, image: Floats | None = None) -> None:
        """Replace the weights."""
        self.w[:] = vector

    def squared_norm(self) -> float:
        """Return the squared norm of the weights."""
        return float(dot(self.w, self.w))

    def total(self, labels: Codes, weights: Floats) -> Floats:
        """Return ``sum_i weights_i psi_i(labels_i)``."""
        gold = self.bound.total_features(self.problem.codes, weights)
        return gold - self.bound.total_features(labels, weights)

    def find_violators(self, unit: float = 1.0) -> Violators:
        """Search the labeling of highest ``h`` of every sample; see `MarginModel`."""
        problem, bound = self.problem, self.bound
        labels = np.empty_like(problem.codes)
        source = bound.source(self.w)
        for block in bound.blocks():
            scores = bound.scores(source, block)
            augmented = bound.add_costs(scores, unit * problem.costs[block.steps])
            labels[block.steps] = bound.argmax(augmented)
        cost = problem.costs[np.arange(labels.size), labels]
        losses = np.add.reduceat(np.append(cost, 0.0), bound.X.offsets[:-1])
        losses[np.diff(bound.X.offsets) == 0] = 0.0
        margins = bound.inner_products(problem.codes, self.w) - bound.inner_products(labels, self.w)
        return Violators(labels, losses - margins, losses, np.ones(losses.size))

    def find_many_violators(self) -> list[Violators]:
        """Search the labeling of highest ``h`` of every sample; see `MarginModel`."""
        return [self.find_violators()]

    def search(self, sample: int, unit: float = 1.0) -> tuple[Codes, float]:
        """Return the labeling of highest ``h`` of one sample, and its loss."""
        bound, block = self.bound, self.bound.block(sample, sample + 1)
        costs = self.problem.costs[block.steps]
        scores = bound.add_costs(bound.scores(bound.source(self.w), block), unit * costs)
        labels = bound.argmax(scores)
        return labels, float(costs[np.arange(labels.size), labels].sum())

    def difference(self, sample: int, labels: Codes) -> Floats:
        """Return ``psi_i(labels)`` as a dense vector."""
        block = self.bound.block(sample, sample + 1)
        gold = self.problem.codes[block.steps]
        places, values = self.bound.feature_difference(sample, gold, labels)
        out = np.zeros(self.w.size)
        np.add.at(out, places, values)
        return out

    def plane_dual(self) -> BlockDual:
        """Return the dual over stored labelings; see `MarginModel`."""
        self.w[:] = 0.0
        return _Planes(self)

    def marginal_dual(self) -> BlockDual:
        """Raise an error: marginals depend on the structure."""
        raise InputError(f"{type(self.bound).__name__} has no dual over marginals")

    def subgradient(self) -> StochasticSubgradient:
        """Return a stochastic subgradient method; see `MarginModel`."""
        self.w[:] = 0.0
        return _Subgradient(self)


class _Plane:
    """One stored labeling: its features, loss and weight in the dual."""

    def __init__(self, labels: Codes, psi: Floats, loss: float, weight: float) -> None:
        self.labels, self.psi, self.loss, self.weight = labels, psi, loss, weight

    def height(self, w: Floats) -> float:
        return self.loss - float(dot(w, self.psi))


class _Planes:
    """Pairwise block-coordinate steps on stored labelings of any structure; a `BlockDual`."""

    def __init__(self, model: WeightModel) -> None:
        self._model = model
        codes, limits = model.problem.codes, model.problem.limits
        zero = np.zeros(model.w.size)
        offsets = model.bound.X.offsets
        self._planes = [
            [_Plane(codes[offsets[i] : offsets[i + 1]], zero, 0.0, float(limits[i]))]
            for i in range(limits.size)
        ]

    def run_pass(self, order: NDArray[np.int64], *, search: bool = True) -> int:
        return sum(self._visit(int(i), search) for i in order)

    def _visit(self, sample: int, search: bool) -> int:
        model, planes = self._model, self._planes[sample]
        if search:
            labels, loss = model.search(sample)
            if not any(np.array_equal(labels, plane.labels) for plane in planes):
                planes.append(_Plane(labels, model.difference(sample, labels), loss, 0.0))
        n_taken, target = 0, 0.0
        while n_taken < MAX_STEPS:
            heights = [plane.height(model.w) for plane in planes]
            used = [k for k, plane in enumerate(planes) if plane.weight > 0.0]
            if not used:
                break
            high, low = int(np.argmax(heights)), min(used, key=heights.__getitem__)
            violation = heights[high] - heights[low]
            target = SHRINK * violation if n_taken == 0 else target
            if violation <= max(target, 1e-12):
                break
            direction = planes[high].psi - planes[low].psi
            amount = min(
                planes[low].weight, violation / max(float(dot(direction, direction)), 1e-300)
            )
            planes[low].weight -= amount
            planes[high].weight += amount
            model.w += amount * direction
            n_taken += 1
        return n_taken

    def objective(self) -> float:
        loss = sum(plane.weight * plane.loss for planes in self._planes for plane in planes)
        return loss - 0.5 * self._model.squared_norm()

    def measure(self) -> DualValues:
        model = self._model
        limits, found = model.problem.limits, model.find_violators()
        gaps = limits * found.slack
        loss = 0.0
        for i, planes in enumerate(self._planes):
            for plane in planes:
                gaps[i] -= plane.weight * plane.height(model.w)
                loss += plane.weight * plane.loss
        half = 0.5 * model.squared_norm()
        return DualValues(half + float(dot(limits, found.slack)), loss - half, gaps)


class _Subgradient:
    """Stochastic subgradient steps for any structure."""

    def __init__(self, model: WeightModel) -> None:
        self._model = model
        self._sum = np.zeros(model.w.size)
        self._weighted = np.zeros(model.w.size)
        self._n_updates = 0

    def run_pass(self, order: NDArray[np.int64]) -> None:
        model, limits = self._model, self._model.problem.limits
        for i in order.tolist():
            model.w[:] = self._sum / max(self._n_updates, 1)
            labels, _ = model.search(i)
            self._n_updates += 1
            step = limits.size * limits[i] * model.difference(i, labels)
            self._sum += step
            self._weighted += self._n_updates * step

    def average(self) -> Floats:
        return weighted_average(self._sum, self._weighted, self._n_updates)


def weighted_average(total: Any, weighted: Any, n_updates: int) -> Any:
    """Return the average of ``total_t / t`` weighted by t; ``weighted`` is the sum of t times the steps."""
    n = max(n_updates, 1)
    return (2.0 / (n * (n + 1.0))) * ((n + 1.0) * total - weighted)
