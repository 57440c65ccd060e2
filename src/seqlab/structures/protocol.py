"""The interface between learners and structures.

A learner (likelihood, perceptron, margin) works with weights and objectives. A structure computes scores from
weights, the labeling with the best score, and the features of a labeling. A chain is one structure, a graph
another. A structure is bound to its data once, ``bound = structure.bind(X)``; learners use only the methods
of `BoundStructure`:

- all learners: `source` and `scores`, block by block;
- online and margin learners: `argmax`, `loss_augmented_argmax`, `feature_difference`, `joint_features`,
  `squared_norms`, `margin_model`;
- likelihood learners: `expected_features`, `total_features`;
- learners of score functions, such as tree boosting: `add_pair_sums`.

A new structure implements the abstract methods. The other methods have generic versions, which a structure
may override with faster ones (as the chain does).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import pairwise
from threading import Lock
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import PlacedError
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.structures.losses import hamming_loss, miss_costs
from seqlab.structures.margins import MarginModel, MarginProblem, WeightModel
from seqlab.structures.online import DenseOnlineWeights, OnlineWeights
from seqlab.structures.pair_sums import (
    PairSums,
    RowScores,
    add_block_sums,
    add_independent_sums,
)
from seqlab.structures.partial_labels import PartialLabels
from seqlab.structures.sources import ScoreSource
from seqlab.structures.stochastic_support import StochasticSupport
from seqlab.structures.values import (
    BeamOptions,
    ExpectedFeatures,
    LabelCurvature,
    PairMarginals,
    SquareShares,
)
from seqlab.utils.threads import block_bounds, run_blocks

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

# Parts of a sum over the data computed in parallel: more take more memory, fewer limit the threads.
N_SLOTS = 8
# Doubles of scores and marginals that a block may hold: half a megabyte, which fits in an L2 cache.
BLOCK_DOUBLES = 65_536


class Marginals(Protocol):
    """Marginals of a block of samples, multiplied by the weights of the samples."""

    @property
    def log_z(self) -> Floats:
        """Log-partition of each sample of the block; not weighted."""
        ...

    def minus(self, other: Any) -> Any:
        """Subtract other marginals; the log-partitions too."""
        ...


class Structure(Protocol):
    """Parameters of a structure, which can be bound to data."""

    n_labels: int
    n_params: int

    def bind(self, X: Sequences, *, n_jobs: int | None = None) -> BoundStructure:
        """Return the structure bound to these data."""
        ...


class BoundStructure(ABC):
    """A structure bound to its data.

    A sample is a group of positions: those of ``X.offsets[i]:X.offsets[i + 1]``. Labels are codes, one per
    position, stacked as the rows of ``X.matrix``.

    Parameters
    ----------
    n_labels, n_params : int
    X : Sequences
    n_jobs : int, optional
        Number of threads; results are bitwise identical for any number.
    """

    def __init__(
        self, n_labels: int, n_params: int, X: Sequences, *, n_jobs: int | None = None
    ) -> None:
        self.n_labels = n_labels
        self.n_params = n_params
        self.X = X
        self.n_jobs = n_jobs

    # Methods that every structure implements.

    @abstractmethod
    def source(self, w: Floats) -> ScoreSource:
        """Return the scores that weights ``w`` give to the data; call it again after ``w`` has changed."""

    @abstractmethod
    def scores(self, source: ScoreSource, block: SequenceBlock) -> Any:
        """Return the scores of a block, as the structure's inference expects them."""

    @abstractmethod
    def add_costs(self, scores: Any, costs: Floats) -> Any:
        """Return scores with ``costs`` (n_block_positions, n_labels) added to the node scores."""

    @abstractmethod
    def argmax(self, scores: Any) -> Codes:
        """Return the best labeling of each sample of a block, stacked; ties go to the lowest code."""

    @abstractmethod
    def marginals(
        self, scores: Any, weights: Floats | None = None, allowed: NDArray[np.bool_] | None = None
    ) -> Any:
        """Return the `Marginals` of a block.

        Parameters
        ----------
        scores : as `scores` returns them
        weights : array of shape (n_block_samples,), optional
            Weight of each sample.
        allowed : boolean array of shape (n_block_positions, n_labels), optional
            Labels that each position may have.
        """

    @abstractmethod
    def add_expected_features(self, marginals: Any, block: SequenceBlock, out: Floats) -> None:
        """Add the features of a block, expected under its marginals, to ``out`` (n_params,)."""

    @abstractmethod
    def joint_features(
        self, codes: Codes, samples: NDArray[np.int64] | None = None
    ) -> sp.csr_matrix:
        """Return ``phi(x_i, y_i)`` of samples, shape (n_samples, n_params).

        Parameters
        ----------
        codes : array
            Labels of all positions of these samples.
        samples : array, optional
            Indices of the samples; all if not given.
        """

    # Methods with a generic version.

    @property
    def doubles_per_position(self) -> int:
        """Number of doubles that a block holds for each position; it limits the size of blocks."""
        return self.n_labels

    def block(self, first: int, last: int) -> SequenceBlock:
        """Return the samples ``first`` to ``last - 1`` as a block."""
        return self.X.block(first, last)

    def blocks(self, max_doubles: int = BLOCK_DOUBLES) -> Iterator[SequenceBlock]:
        """Yield blocks of bounded memory that cover all samples in order."""
        bounds = block_bounds(
            self.X.offsets,
            self.doubles_per_position,
            block_work=max_doubles,
            max_blocks=max(len(self.X), 1),
        )
        for first, last in pairwise(bounds.tolist()):
            yield self.X.block(first, last)

    def loss(self, codes: Codes, predicted: Codes, block: SequenceBlock | None = None) -> Floats:
        """Count the wrong labels of each sample of a block; of all samples if ``block`` is None."""
        return hamming_loss(codes, predicted, (block or self.X).offsets)

    def feature_difference(self, sample: int, codes: Codes, other: Codes) -> tuple[Codes, Floats]:
        """Return ``phi(x_i, codes) - phi(x_i, other)`` of one sample, as indices and values."""
        one = np.array([sample])
        change = self.joint_features(codes, one) - self.joint_features(other, one)
        change.eliminate_zeros()
        return change.indices, change.data

    def loss_augmented_argmax(self, scores: Any, codes: Codes) -> Codes:
        """Return the labeling with the largest sum of score and Hamming loss, for a block with labels."""
        return self.argmax(self.add_costs(scores, miss_costs(codes, self.n_labels)))

    def squared_norms(self, codes: Codes) -> Floats:
        """Return ``|phi(x_i, y_i)|^2`` of every sample."""
        features = self.joint_features(codes)
        return np.asarray(features.multiply(features).sum(axis=1)).ravel()

    def inner_products(self, codes: Codes, w: Floats) -> Floats:
        """Return ``w' phi(x_i, y_i)``, the score of the labeling of every sample."""
        return self.joint_features(codes) @ w

    def total_features(self, codes: Codes, weights: Floats) -> Floats:
        """Return ``sum_i weights_i phi(x_i, y_i)``, shape (n_params,)."""
        return self.joint_features(codes).T @ weights

    def partial_labels(self, codes: Codes, allowed: NDArray[np.bool_]) -> PartialLabels:
        """Return labels of which some are not known, in the form that `expected_features` takes."""
        return PartialLabels(codes, allowed, self.X.offsets)

    def observed_features(
        self, codes: Codes, weights: Floats, partial: PartialLabels | None = None
    ) -> Floats:
        """Return the summed features of known labels, or an array of size 0 if not all labels are known."""
        return self.total_features(codes, weights) if partial is None else np.zeros(0)

    def expected_features(
        self,
        w: Floats,
        weights: Floats | None = None,
        partial: PartialLabels | None = None,
    ) -> ExpectedFeatures:
        """Return log-partitions and expected features of all samples under weights ``w``.

        Parameters
        ----------
        w : array of shape (n_params,)
        weights : array of shape (n_samples,), optional
            Weight of each sample; the log-partitions are not weighted.
        partial : PartialLabels, optional
            Labels of which some are not known. If given, the log-partitions and expected features restricted
            to the possible labels are subtracted, without those that `observed_features` returns.
        """
        source = self.source(w)
        allowed = None if partial is None else partial.allowed

        def marginals(block: SequenceBlock) -> Any:
            return self.block_marginals(source, block, weights, allowed)

        return self.sum_over_blocks(marginals)

    def sum_over_blocks(self, marginals: Callable[[SequenceBlock], Any]) -> ExpectedFeatures:
        """Return the expected features of all blocks, from the function that gives their marginals."""
        slots = self._slots()
        log_z = np.zeros(len(self.X))
        parts = np.zeros((len(slots), self.n_params))

        def run(slot: int) -> None:
            for first, last in slots[slot]:
                block = self.X.block(first, last)
                try:
                    found = marginals(block)
                except PlacedError as error:
                    raise error.shifted(first) from None
                log_z[first:last] = found.log_z
                self.add_expected_features(found, block, parts[slot])

        run_blocks(run, len(slots), self.n_jobs)
        return ExpectedFeatures(log_z, parts)

    def pair_marginals(self, scores: Any, codes: Codes) -> PairMarginals:
        """Return the marginals of neighbouring labels of a block, for structures with ordered neighbours.

        Parameters
        ----------
        scores : as `scores` returns them
        codes : array of shape (n_block_positions,)
            The gold labels.
        """
        raise NotImplementedError(f"{type(self).__name__} has no marginals of neighbouring labels")

    def add_pair_sums(
        self,
        source: RowScores,
        codes: Codes,
        weights: Floats,
        sums: PairSums,
        *,
        beam: BeamOptions | None = None,
    ) -> Floats:
        """Add the gradient of the weighted log-likelihood with respect to a table of scores to ``sums``.

        Parameters
        ----------
        source : RowScores
        codes : array of shape (n_positions,)
        weights : array of shape (n_samples,)
            Samples of weight 0 add nothing; their log-likelihood is still computed.
        sums : PairSums
        beam : BeamOptions, optional
            Approximate marginals, for structures that have them.

        Returns
        -------
        array of shape (n_samples,)
            Log-likelihood of each sample, not weighted.
        """
        if beam is not None:
            raise NotImplementedError(f"{type(self).__name__} has no beam")
        log_likelihood = np.zeros(len(self.X))
        tables = sums.scale, sums.gradient, sums.curvature
        if not source.edges_vary:  # positions are independent in any structure
            add_independent_sums(
                source.node, codes, source.rows, weights, self.X.offsets, *tables, log_likelihood
            )
            return log_likelihood
        lock = Lock()  # sums are integers: the order of the blocks does not matter

        def run(first: int, last: int) -> None:
            block = self.X.block(first, last)
            gold, steps = codes[block.steps], block.steps
            try:
                found = self.pair_marginals(self.scores(source, block), gold)
            except PlacedError as error:
                raise error.shifted(first) from None
            log_likelihood[first:last] = found.log_likelihood
            with lock:
                add_block_sums(
                    found.node, found.pair, gold, source.rows[steps], weights[first:last],
                    block.offsets, *tables,
                )  # fmt: skip

        doubles = (2 * self.n_labels + 2) * self.n_labels
        bounds = block_bounds(
            self.X.offsets, doubles, block_work=BLOCK_DOUBLES, max_blocks=max(len(self.X), 1)
        ).tolist()
        run_blocks(lambda b: run(bounds[b], bounds[b + 1]), len(bounds) - 1, self.n_jobs)
        return log_likelihood

    def online_weights(self) -> OnlineWeights:
        """Return zero weights that a perceptron can train, pass by pass."""
        return DenseOnlineWeights(self)

    def margin_model(self, problem: MarginProblem) -> MarginModel:
        """Return zero weights that max-margin learners can train."""
        return WeightModel(self, problem)

    def curvature_at_zero(self, weights: Floats) -> Floats | None:
        """Return the approximate diagonal of the Hessian of the summed log-partitions at zero weights.

        None if it is not available.
        """
        return None

    def curvature(self, w: Floats, weights: Floats | None = None) -> Floats | None:
        """Return the approximate diagonal of the Hessian of the summed log-partitions at ``w``.

        None if it is not available.
        """
        return None

    def curvature_block(
        self,
        w: Floats,
        diagonal: Floats,
        size: int,
        weights: Floats | None = None,
        *,
        precise: bool = False,
    ) -> tuple[NDArray[np.int64], Floats] | None:
        """Return a dense block of the approximate Hessian at ``w``, for the weights that matter most.

        ``diagonal`` is the result of `curvature`. The block has less correlation than the data suggest,
        unless ``precise``. Returns the indices of at most ``size`` weights and the block,
        or None if it is not available.
        """
        return None

    def nonzero_block(
        self,
        w: Floats,
        diagonal: Floats,
        size: int,
        weights: Floats | None = None,
        **limits: float,
    ) -> tuple[NDArray[np.int64], Floats] | None:
        """Return a dense block of the Hessian at ``w``, for weights that are not zero.

        It has the covariances between steps. ``diagonal`` is as in `curvature_block`. The limits are those
        of `hessian`; the block comes from as many samples as ``max_products`` operations are enough for.
        Returns the indices of at most ``size`` weights and the block, or None if it is not available.
        """
        return None

    @property
    def has_label_blocks(self) -> bool:
        """Whether `label_blocks` are available, unless features turn out to be uncorrelated."""
        return False

    def label_blocks(
        self, diagonal: Floats, *, sparse: bool = False, precise: bool = False
    ) -> LabelCurvature | None:
        """Return some disjoint sets of weights and their blocks of the Hessian, one for each label.

        With directions that run through several blocks, unless ``sparse``: with an L1 penalty.

        They belong to the point of the last call of `curvature`, whose result is ``diagonal``. They have
        less correlation than the data suggest, unless ``precise``. None if they are not available, or if
        they would take much longer than a pass over the data.
        """
        return None

    def remove_invariant_part(self, w: Floats, *, states_only: bool = False) -> None:
        """Subtract from ``w``, in place, its part in directions that change no probability.

        Directions that are known; with ``states_only``, those of the weights of node features.
        """
        return

    def invariant_groups(self) -> tuple[NDArray[np.int64], int]:
        """Return the first weights of groups, and the size of each group.

        If one number is added to all weights of a group, no probability changes.
        """
        return np.empty(0, dtype=np.int64), 1

    def afford_label_blocks(self, max_passes: float) -> None:
        """Let `label_blocks` take as long as this number of passes over the data."""
        return

    def hessian(self, w: Floats, weights: Floats | None = None, **limits: float) -> Floats | None:
        """Return the Hessian of the summed log-partitions at ``w``; None if it is not available.

        The limits are ``min_probability``, the probability below which a label may be left out, and
        ``max_products``, the number of operations above which the result is None.
        """
        return None

    def square_shares(self) -> SquareShares | None:
        """Return the shares of the squares of features that are not due to outliers, or to an offset.

        None if all shares are 1, or if they are not known.
        """
        return None

    def squared_scales(self) -> Floats | None:
        """Return the mean square of the feature of each weight, shape (n_params,); None if all are 1."""
        return None

    def stochastic_support(self) -> StochasticSupport | None:
        """Return the methods that a warm start needs; None if the structure does not have them."""
        return None

    @property
    def work_per_pass(self) -> float:
        """Approximate number of operations of one pass over the data."""
        return self.X.n_steps * float(self.n_labels) ** 2

    def block_marginals(
        self,
        source: ScoreSource,
        block: SequenceBlock,
        weights: Floats | None,
        allowed: NDArray[np.bool_] | None,
    ) -> Any:
        """Return the `Marginals` of a block; minus those of allowed labels, if given."""
        scores = self.scores(source, block)
        some = None if weights is None else weights[block.first : block.last]
        found = self.marginals(scores, some)
        if allowed is not None:
            found = found.minus(self.marginals(scores, some, allowed[block.steps]))
        return found

    def _slots(self) -> list[list[tuple[int, int]]]:
        """Split the data into slots, each a list of blocks (first, last)."""
        offsets = self.X.offsets
        slots = block_bounds(offsets, self.n_labels * self.n_labels, max_blocks=N_SLOTS)
        plan = []
        for first, last in pairwise(slots.tolist()):
            blocks = first + block_bounds(
                offsets[first : last + 1],
                self.doubles_per_position,
                block_work=BLOCK_DOUBLES,
                max_blocks=last - first,
            )
            plan.append(list(pairwise(blocks.tolist())))
        return plan
