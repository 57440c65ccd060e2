"""MarginChainLabeler: base class of the max-margin labelers, with weights or with a kernel.

A subclass chooses the loss and the solver. The base class prepares kernel, costs and limits, runs the fit,
stores the model and scores with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.inference import ChainScores
from seqlab.kernels import (
    BoundKernel,
    GramMatrix,
    Kernel,
    SubsequenceKernel,
    default_gamma,
    make_kernel,
    merge_equal_rows,
)
from seqlab.learning import FitProgress, FitResult, TrainingData, class_weights
from seqlab.models.base import LIMIT_CONSTRAINTS
from seqlab.models.chain_labeler import ChainLabeler
from seqlab.optim import FitState
from seqlab.structures import miss_costs
from seqlab.structures.chain import (
    ChainMarginModel,
    ChainStructure,
    ChainWeights,
    FeaturePattern,
    WeightSource,
    as_csr,
    chain_scores,
)
from seqlab.structures.margins import MarginModel, MarginProblem, SpanRules
from seqlab.utils.linalg import matmul

Floats = NDArray[np.float64]
MB = 1e6
# Rows of a kernel matrix computed at a time in prediction: larger blocks are hardly faster and take more
# memory.
BLOCK_ROWS = 256
# Powers are products of this many factors at most, which bounds the time of a value.
MAX_DEGREE = 1000

# Fitted attributes that only models with weights, or only models with a kernel, have.
LINEAR_ATTRIBUTES = ("coef_", "edge_coef_")
KERNEL_ATTRIBUTES = ("support_", "support_steps_", "dual_coef_", "edge_dual_coef_")

MARGIN_CONSTRAINTS: dict[str, list[Any]] = {
    "C": [Interval(Real, 0, None, closed="neither")],
    "kernel": [StrOptions({"linear", "poly", "rbf", "precomputed"}), callable],
    "degree": [Interval(Integral, 1, MAX_DEGREE, closed="both")],
    "coef0": [Interval(Real, 0, None, closed="left")],
    "gamma": [Interval(Real, 0, None, closed="neither"), None],
    "normalize": ["boolean", StrOptions({"auto"})],
    "edge_features": ["boolean"],
    "boundary": ["boolean"],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "cache_size": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    **LIMIT_CONSTRAINTS,
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
}


class _KernelScoring(NamedTuple):
    """What the blocks of a prediction share."""

    kernel: BoundKernel
    coefs: Floats  # (n_support, n_labels)
    edge_coefs: Floats  # (n_support, n_labels ** 2) or (n_support, 0)


class MarginChainLabeler(ChainLabeler):
    """Base class of `M3N` and `StructuredSVM`."""

    C: float
    kernel: str | Callable[..., Any]
    degree: int
    coef0: float
    gamma: float | None
    normalize: bool | str
    edge_features: bool
    boundary: bool
    class_weight: dict[Any, float] | str | None
    cache_size: float
    max_iter: int
    tol: float
    max_seconds: float | None
    callback: Callable[[FitProgress], Any] | None
    random_state: Any
    n_jobs: int | None
    verbose: bool | int

    _rescales_slack = False
    _can_warn = True

    def _states(self, model: MarginModel) -> Iterator[FitState]:
        """Return the states of the solver; every subclass implements this method."""
        raise NotImplementedError

    def _costs(self, data: TrainingData) -> Floats:
        """Return the cost of every label at every step, shape (n_steps, n_labels)."""
        weights = class_weights(self.class_weight, data)
        return miss_costs(data.codes, data.n_labels, weights[data.codes])

    def _span_rules(self, data: TrainingData) -> SpanRules | None:
        """Return which labels form spans, if the loss is the span loss."""
        return None

    def _learn(self, data: TrainingData) -> FitResult:
        problem = MarginProblem(
            np.array(data.codes),
            self._costs(data),
            float(self.C) * data.sequence_weights,
            self._rescales_slack,
            self._span_rules(data),
        )
        if self.normalize is True and (callable(self.kernel) or self._is_precomputed):
            raise InputError(
                "normalize=True needs one of the named kernels: normalise the values that the kernel returns"
            )
        X = self._scaled(data.X)
        self.gamma_ = default_gamma(self.kernel, X.matrix) if self.gamma is None else self.gamma
        model: ChainMarginModel
        if self._is_linear:
            structure = self._structure(X, data)
            model = structure.bind(X).margin_model(problem)  # type: ignore[assignment]
        else:
            model, support = self._kernel_model(X, problem)

        def store(vector: Floats) -> None:
            # The scores of all inputs are up to date already if the last model is the best.
            if not np.array_equal(vector, model.vector()):
                model.set(vector)
            self.squared_norm_ = model.squared_norm()
            if self._is_linear:
                self._store_weights(structure.weights(vector))
            else:
                self._store_coefficients(model, vector, support)

        result = self._train(
            self._states(model), data, store, tol=self.tol, can_warn=self._can_warn
        )
        self.objective_ = result.state.objective
        result.hint = (
            ", lower C, or scale the features (normalize=True)"
            if self._is_linear
            else ", lower C, or scale the kernel"
        )
        return result

    @property
    def _is_linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    @property
    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _normalizes(self) -> bool:
        if self.normalize == "auto":
            return isinstance(self.kernel, str) and self.kernel == "poly"
        return bool(self.normalize)

    def _scaled(self, X: Sequences) -> Sequences:
        """Return X with rows of unit length, if the linear kernel is normalised."""
        if not (self._is_linear and self._normalizes):
            return X
        csr = as_csr(X).matrix
        squares = np.zeros(csr.shape[0])
        np.add.at(squares, np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr)), csr.data**2)
        scale = 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0))
        scaled = sp.csr_matrix(
            (csr.data * np.repeat(scale, np.diff(csr.indptr)), csr.indices, csr.indptr), csr.shape
        )
        return Sequences.from_checked(scaled, np.array(X.offsets), X._names)

    def _check_features(self, X: Any, sequences: Sequences, *, reset: bool) -> None:
        is_other = not reset and sequences.n_features != self.n_features_in_
        if self._is_precomputed and is_other:
            raise InputError(
                f"kernel='precomputed' needs the kernel between the steps of X and all {self.n_features_in_} "
                f"training steps, but X has {sequences.n_features} columns"
            )
        super()._check_features(X, sequences, reset=reset)

    def _structure(self, X: Sequences, data: TrainingData) -> ChainStructure:
        n_labels = data.n_labels
        pairs = n_labels * n_labels
        return ChainStructure(
            n_labels,
            FeaturePattern(X.n_features, n_labels),
            np.arange(pairs).reshape(n_labels, n_labels),
            self.boundary,
            FeaturePattern(X.n_features, pairs) if self.edge_features else None,
        )

    def _make_kernel(self) -> Kernel:
        return make_kernel(
            self.kernel,
            degree=self.degree,
            coef0=self.coef0,
            gamma=self.gamma_,
            normalize=self._normalizes,
        )

    def _kernel_model(self, X: Sequences, problem: MarginProblem) -> tuple[ChainMarginModel, Any]:
        """Return the zero model with kernel coefficients, and the distinct inputs."""
        kernel = self._make_kernel()
        matrix = kernel.inputs(X)
        if self._is_precomputed and matrix.shape[0] != matrix.shape[1]:
            raise InputError(
                f"kernel='precomputed' needs the kernel between all pairs of training steps: X has "
                f"{matrix.shape[0]} steps but {matrix.shape[1]} columns"
            )
        if self._is_precomputed:
            inputs, place = matrix, np.arange(matrix.shape[0])
        else:
            inputs, place = merge_equal_rows(matrix)
        checked = self._is_precomputed or callable(self.kernel)
        gram = GramMatrix(kernel, inputs, max_bytes=self.cache_size * MB, check_symmetry=checked)
        model = ChainMarginModel(
            X,
            problem,
            boundary=self.boundary,
            edge_features=self.edge_features,
            gram=gram,
            place=place,
        )
        return model, inputs

    def _forget(self, names: tuple[str, ...]) -> None:
        """Delete attributes that an earlier fit, with another kernel, has set."""
        for name in names:
            self.__dict__.pop(name, None)

    def _store_weights(self, weights: ChainWeights) -> None:
        self._forget(KERNEL_ATTRIBUTES)
        self.coef_ = weights.coef
        self.transitions_, self.start_, self.end_ = weights.transitions, weights.start, weights.end
        self.edge_coef_ = weights.edge_coef

    def _store_coefficients(self, model: ChainMarginModel, vector: Floats, inputs: Any) -> None:
        self._forget(LINEAR_ATTRIBUTES)
        table, edge_table, arcs = model.split(vector)
        n_labels = table.shape[1]
        used = np.flatnonzero((table != 0.0).any(axis=1) | (edge_table != 0.0).any(axis=1))
        self.support_ = used
        self.support_steps_ = None if self._is_precomputed else inputs[used]
        self.dual_coef_ = np.ascontiguousarray(table[used])
        self.edge_dual_coef_ = np.ascontiguousarray(edge_table[used]) if edge_table.size else None
        pair = n_labels * n_labels
        none = np.zeros(n_labels)
        self.transitions_ = arcs[:pair].reshape(n_labels, n_labels).copy()
        self.start_ = arcs[pair : pair + n_labels].copy() if self.boundary else none
        self.end_ = arcs[pair + n_labels :].copy() if self.boundary else none.copy()

    def _check_state(self) -> None:
        super()._check_state()
        if not state_checks.has_fitted_attributes(self):
            return
        n_labels, n_features = self.classes_.size, self.n_features_in_
        self._check_chain()
        state_checks.check_array(self.end_, "end_", (n_labels,))
        state_checks.check_number(self.gamma_, "gamma_", 0.0)
        if self._is_linear:
            state_checks.check_matrix(self.coef_, "coef_", (n_labels, n_features))
            if self.edge_coef_ is not None:
                state_checks.check_matrix(self.edge_coef_, "edge_coef_", (n_labels**2, n_features))
            return
        n_support = self._check_support()
        state_checks.check_array(self.dual_coef_, "dual_coef_", (n_support, n_labels))
        if self.edge_dual_coef_ is not None:
            shape = (n_support, n_labels**2)
            state_checks.check_array(self.edge_dual_coef_, "edge_dual_coef_", shape)

    def _check_support(self) -> int:
        """Check the restored support steps, and return their number."""
        n_features = self.n_features_in_
        high = n_features if self._is_precomputed else None
        state_checks.check_array(self.support_, "support_", (None,), "i", low=0, high=high)
        n_support = self.support_.size
        if self._is_precomputed:
            return n_support
        n_columns = n_features
        if isinstance(self.kernel, SubsequenceKernel):
            n_columns *= self.kernel.width
        state_checks.check_matrix(self.support_steps_, "support_steps_", (n_support, n_columns))
        return n_support

    def _prepare_scoring(self, X: Sequences) -> Any:
        if not hasattr(self, "coef_" if self._is_linear else "dual_coef_"):
            raise InputError("the kernel was changed after fit: fit again")
        if self._is_linear:
            weights = ChainWeights(
                self.coef_, self.transitions_, self.start_, self.end_, self.edge_coef_
            )
            return WeightSource(weights, self._scaled(X), repeated=True)
        none = np.zeros((self.dual_coef_.shape[0], 0))
        edge_coefs = none if self.edge_dual_coef_ is None else self.edge_dual_coef_
        bound = self._make_kernel().bind(self.support_steps_)
        return _KernelScoring(bound, self.dual_coef_, edge_coefs)

    def _block_scores(self, block: SequenceBlock, prepared: Any) -> ChainScores:
        if self._is_linear:
            return chain_scores(prepared, block)
        n_labels = self.classes_.size
        inputs, place = self._block_inputs(block)
        unary = np.zeros((inputs.shape[0], n_labels))
        edges = np.zeros((inputs.shape[0], prepared.edge_coefs.shape[1]))
        for first in range(0, inputs.shape[0], BLOCK_ROWS):
            last = min(first + BLOCK_ROWS, inputs.shape[0])
            rows = self._kernel_rows(inputs[first:last], prepared)
            unary[first:last] = matmul(rows, prepared.coefs)
            if edges.shape[1]:
                edges[first:last] = matmul(rows, prepared.edge_coefs)
        pairwise = self.transitions_
        if edges.shape[1]:
            pairwise = edges[place].reshape(-1, n_labels, n_labels) + pairwise
        return ChainScores(unary[place], pairwise, self.start_, self.end_, block.offsets)

    def _block_inputs(self, block: SequenceBlock) -> tuple[Any, NDArray[np.int64]]:
        """Return the distinct inputs of the kernel in a block, and the place of each step among them."""
        part = Sequences.from_checked(block.matrix[block.steps], np.array(block.offsets))
        matrix = self._make_kernel().inputs(part)
        if self._is_precomputed:
            return matrix, np.arange(matrix.shape[0])
        return merge_equal_rows(matrix)

    def _kernel_rows(self, steps: Any, prepared: _KernelScoring) -> Floats:
        if self.support_.size == 0:
            return np.zeros((steps.shape[0], 0))
        if self._is_precomputed:
            steps = steps[:, self.support_]
        rows = prepared.kernel.rows(steps)
        if not np.isfinite(rows).all():
            i, j = np.argwhere(~np.isfinite(rows))[0]
            raise InputError(
                f"the kernel returned {rows[i, j]} for a step of X and support step {j}: kernel values "
                "must be finite"
            )
        return rows

    def _own_similarities(self, X: Sequences) -> Floats:
        """Return ``k(x_t, x_t)`` of every step."""
        if self._is_precomputed:
            raise InputError("kernel='precomputed' does not say k(x, x), which the bound needs")
        kernel = self._make_kernel()
        matrix = kernel.inputs(self._scaled(X))
        own = [
            kernel.bind(matrix[t : t + 1]).rows(matrix[t : t + 1])[0, 0] for t in range(X.n_steps)
        ]
        return np.array(own)

    def _pairwise_per_step(self) -> bool:
        return (self.edge_coef_ if self._is_linear else self.edge_dual_coef_) is not None
