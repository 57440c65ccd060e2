"""BoundChain: a linear chain bound to its data."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import PlacedError
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.inference import (
    ChainScores,
    Mask,
    conditional_losses,
    expected_transitions,
    pair_marginals,
    path_scores,
    viterbi,
)
from seqlab.structures.chain.columns import centred_shares, sum_squares, typical_shares
from seqlab.structures.chain.curvature import add_block_curvature
from seqlab.structures.chain.features import ChainFeatures
from seqlab.structures.chain.fused import FusedPasses, PassSums
from seqlab.structures.chain.hidden_runs import HiddenRuns
from seqlab.structures.chain.invariance import ChainInvariance
from seqlab.structures.chain.joint_features import joint_features
from seqlab.structures.chain.label_blocks import LabelBlocks, plan_label_blocks
from seqlab.structures.chain.marginals import ChainMarginals
from seqlab.structures.chain.pattern import FeaturePattern
from seqlab.structures.chain.rotation import RotatedWeights, rotate_columns
from seqlab.structures.chain.structure import ChainStructure, label_pairs
from seqlab.structures.chain.two_labels import TwoLabelPasses
from seqlab.structures.chain.weights import WeightSource, as_csr, chain_scores
from seqlab.structures.margins import MarginModel, MarginProblem
from seqlab.structures.pair_sums import PairSums, RowScores
from seqlab.structures.partial_labels import PartialLabels
from seqlab.structures.protocol import BoundStructure
from seqlab.structures.sources import ScoreSource
from seqlab.structures.stochastic_support import StochasticSupport
from seqlab.structures.values import (
    BeamOptions,
    ExpectedFeatures,
    LabelCurvature,
    PairMarginals,
    SquareShares,
)

if TYPE_CHECKING:
    from seqlab.structures.chain.online import ChainOnlineWeights

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class BoundChain(BoundStructure):
    """A linear chain bound to its data; see `BoundStructure`.

    Without edge features, passes over all data run in fused kernels (see `FusedPasses`).

    Parameters
    ----------
    structure : ChainStructure
    X : Sequences
    n_jobs : int, optional
        Threads.
    features : ChainFeatures, optional
        Of X, if several chains share them.
    """

    def __init__(
        self,
        structure: ChainStructure,
        X: Sequences,
        *,
        n_jobs: int | None = None,
        features: ChainFeatures | None = None,
    ) -> None:
        super().__init__(structure.n_labels, structure.n_params, X, n_jobs=n_jobs)
        self.structure = structure
        self.features = ChainFeatures(X) if features is None else features

    @property
    def doubles_per_position(self) -> int:
        """Number of doubles that a block holds for each step."""
        return self.n_labels if self.structure.edge is None else self.n_labels**2

    @cached_property
    def passes(self) -> FusedPasses:
        """Fused passes over the data; only without edge features."""
        return FusedPasses(self.structure, self.features, n_jobs=self.n_jobs)

    @cached_property
    def two_label_passes(self) -> TwoLabelPasses | None:
        """Passes over the data if there are two labels and no edge features, else None."""
        if self.n_labels != 2 or self.structure.edge is not None:
            return None
        return TwoLabelPasses(self.structure, self.features, n_jobs=self.n_jobs)

    def source(self, w: Floats) -> WeightSource:
        """Return the scores that weights ``w`` give to the data."""
        return WeightSource(self.structure.weights(w), self.X)

    def scores(self, source: ScoreSource, block: SequenceBlock) -> ChainScores:
        """Return the scores of a block."""
        return chain_scores(source, block)

    def add_costs(self, scores: ChainScores, costs: Floats) -> ChainScores:
        """Return scores with costs added to the node scores."""
        unary = scores.unary + costs
        return ChainScores(unary, scores.pairwise, scores.start, scores.end, scores.offsets)

    def argmax(self, scores: ChainScores) -> Codes:
        """Return the best labeling of each sequence of a block (Viterbi)."""
        return viterbi(scores).labels

    def marginals(
        self,
        scores: ChainScores,
        weights: Floats | None = None,
        allowed: NDArray[np.bool_] | None = None,
    ) -> ChainMarginals:
        """Return the marginals of a block (forward-backward)."""
        mask = None if allowed is None else Mask(steps=allowed)
        step_weights = None if weights is None else np.repeat(weights, np.diff(scores.offsets))
        if self.structure.edge is None:
            counts = expected_transitions(scores, mask=mask, weights=weights)
            node = counts.node if step_weights is None else counts.node * step_weights[:, None]
            return ChainMarginals(counts.log_z, node, counts.transitions)
        full = pair_marginals(scores, mask=mask)
        node, pair = full.node, full.pair
        if step_weights is not None:
            node, pair = node * step_weights[:, None], pair * step_weights[:, None, None]
        return ChainMarginals(full.log_z, node, pair.sum(axis=0), pair)

    def chain_rule_features(
        self,
        w: Floats,
        codes: Codes,
        step_weights: Floats,
        allowed: NDArray[np.bool_] | None = None,
    ) -> ExpectedFeatures:
        """Return the weighted losses of single steps and their gradient; see `conditional_losses`.

        Parameters
        ----------
        w : array of shape (n_params,)
        codes : array of shape (n_steps,)
            Gold labels.
        step_weights : array of shape (n_steps,)
        allowed : boolean array of shape (n_steps, n_labels), optional
            Possible labels of each step, if some are not known.

        Returns
        -------
        ExpectedFeatures
            ``log_z`` is the loss of each sequence.
        """
        source = self.source(w)

        def marginals(block: SequenceBlock) -> ChainMarginals:
            steps = block.steps
            if allowed is None:
                possible = np.arange(self.n_labels) == codes[steps][:, np.newaxis]
            else:
                possible = allowed[steps]
            found = conditional_losses(self.scores(source, block), possible, step_weights[steps])
            pair = None if self.structure.edge is None else found.pair
            return ChainMarginals(found.losses, found.node, found.pair.sum(axis=0), pair)

        return self.sum_over_blocks(marginals)

    def add_expected_features(
        self, marginals: ChainMarginals, block: SequenceBlock, out: Floats
    ) -> None:
        """Add the expected features of a block to ``out`` (n_params,)."""
        structure, matrix = self.structure, self.X.matrix
        begin, stop = block.begin, block.stop
        slices = structure.slices
        structure.state.scatter(matrix, marginals.node, begin, stop, out[slices["state"]])
        if structure.edge is not None:
            assert marginals.pair is not None
            flat = marginals.pair.reshape(stop - begin, -1)
            structure.edge.scatter(matrix, flat, begin, stop, out[slices["edge"]])
        out[slices["transitions"]] += marginals.transitions[structure.has_transition]
        if structure.boundary:
            bounds = block.offsets
            nonempty = bounds[1:] > bounds[:-1]
            out[slices["start"]] += marginals.node[bounds[:-1][nonempty]].sum(axis=0)
            out[slices["end"]] += marginals.node[bounds[1:][nonempty] - 1].sum(axis=0)

    def expected_features(
        self,
        w: Floats,
        weights: Floats | None = None,
        partial: PartialLabels | None = None,
    ) -> ExpectedFeatures:
        """Return log-partitions and expected features of all sequences; see `BoundStructure`."""
        if self.structure.edge is not None:
            return super().expected_features(w, weights, partial)
        assert partial is None or isinstance(partial, HiddenRuns)
        if partial is None and self.two_label_passes is not None:
            found = self.two_label_passes.run(w, weights)
        else:
            found = self.passes.run(w, weights, partial)
        if found.n_skipped > 0:
            self._add_skipped(w, weights, partial, found)
        return ExpectedFeatures(found.log_z, found.parts)

    def partial_labels(self, codes: Codes, allowed: NDArray[np.bool_]) -> HiddenRuns:
        """Return labels of which some are not known."""
        return HiddenRuns(codes, allowed, self.X.offsets)

    def observed_features(
        self, codes: Codes, weights: Floats, partial: PartialLabels | None = None
    ) -> Floats:
        """Return the features of the known labels, summed over the sequences; see `BoundStructure`."""
        if self.structure.edge is not None:
            return super().observed_features(codes, weights, partial)
        return self.total_features(codes, weights)

    def _add_skipped(
        self,
        w: Floats,
        weights: Floats | None,
        partial: PartialLabels | None,
        sums: PassSums,
    ) -> None:
        """Add the sequences that the fused pass cannot compute: very long chains, extreme scores."""
        source, out = self.source(w), sums.parts[0]
        allowed = None if partial is None else partial.allowed
        for block in self._blocks_of(sums.skipped):
            a, b = block.first, block.last
            try:
                found = self.block_marginals(source, block, weights, allowed)
            except PlacedError as error:
                raise error.shifted(a) from None
            sums.log_z[a:b] = found.log_z
            self.add_expected_features(found, block, out)
            if partial is not None:  # known labels are in `observed_features`
                samples, codes = np.arange(a, b), partial.codes[block.steps]
                known = self.joint_features(codes, samples)
                sums.log_z[a:b] += known @ w
                out += known.T @ (np.ones(b - a) if weights is None else weights[a:b])

    def _blocks_of(self, chosen: NDArray[np.bool_]) -> list[SequenceBlock]:
        """Return blocks of bounded memory that cover the chosen sequences."""
        edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen, [0]]))).reshape(-1, 2)
        blocks = []
        for slot in self._slots():
            for first, last in slot:
                for a, b in edges:
                    if max(a, first) < min(b, last):
                        blocks.append(self.X.block(max(a, first), min(b, last)))
        return blocks

    def curvature(self, w: Floats, weights: Floats | None = None) -> Floats:
        """Return the diagonal of the Hessian at ``w``, treating steps as independent; shape (n_params,)."""
        if self.structure.edge is None:
            found = self.passes.run(w, weights, curvature=True, blocks=self._label_blocks)
            if self._label_blocks is not None:
                self._label_blocks.point = w, weights
            out, chosen = found.parts.sum(axis=0), found.skipped
        else:
            out, chosen = np.zeros(self.n_params), np.ones(len(self.X), dtype=bool)
        add_block_curvature(self, w, self._blocks_of(chosen), weights, out)
        return out

    def curvature_block(
        self,
        w: Floats,
        diagonal: Floats,
        size: int,
        weights: Floats | None = None,
        *,
        precise: bool = False,
    ) -> tuple[Codes, Floats]:
        """Return a dense block of the Hessian at ``w``, of weights of labels and transitions."""
        from seqlab.structures.chain.curvature_block import largest_weights, sample_block

        chosen = largest_weights(self.structure, self._importance(diagonal), size)
        arrays = w, weights, chosen, diagonal[chosen]
        return chosen, sample_block(self.structure, self.X, *arrays, precise=precise)

    def nonzero_block(
        self,
        w: Floats,
        diagonal: Floats,
        size: int,
        weights: Floats | None = None,
        **limits: float,
    ) -> tuple[Codes, Floats] | None:
        """Return a block of the Hessian at ``w``, of weights that are not zero; see `sample_hessian`."""
        from seqlab.structures.chain.curvature_block import nonzero_weights
        from seqlab.structures.chain.hessian import sample_hessian

        chosen = nonzero_weights(self.structure, w, self._importance(diagonal), size)
        variances = diagonal[chosen]
        block = sample_hessian(self.structure, self.X, w, weights, chosen, variances, **limits)
        return None if block is None else (chosen, block)

    def _importance(self, diagonal: Floats) -> Floats:
        """Return the diagonal of the Hessian in units in which every feature has scale 1."""
        scales = self.squared_scales()
        return diagonal if scales is None else diagonal / np.maximum(scales, 1e-300)

    @cached_property
    def _label_blocks(self) -> LabelBlocks | None:
        return plan_label_blocks(self.structure, self.X, self.work_per_pass, n_jobs=self.n_jobs)

    def afford_label_blocks(self, max_passes: float) -> None:
        """Plan blocks that may take as long as a number of passes, if there are none yet."""
        if self._label_blocks is None:
            self._label_blocks = plan_label_blocks(
                self.structure,
                self.X,
                self.work_per_pass,
                max_passes=max_passes,
                n_jobs=self.n_jobs,
            )

    @property
    def has_label_blocks(self) -> bool:
        """Whether blocks of labels take about as long as a few passes."""
        return self._label_blocks is not None

    def label_blocks(
        self, diagonal: Floats, *, sparse: bool = False, precise: bool = False
    ) -> LabelCurvature | None:
        """Return the weights of each label and their block of the Hessian; see `BoundStructure`."""
        if self._label_blocks is None:
            return None
        return self._label_blocks.compute(diagonal, sparse=sparse, precise=precise)

    @cached_property
    def _invariance(self) -> ChainInvariance:
        return ChainInvariance(self.structure)

    def remove_invariant_part(self, w: Floats, *, states_only: bool = False) -> None:
        """Subtract from ``w``, in place, its part in directions that change no probability."""
        self._invariance.remove(w, states_only=states_only)

    def invariant_groups(self) -> tuple[NDArray[np.int64], int]:
        """Return the first weight of each feature that has weights for all labels, and their number."""
        return self._invariance.firsts, self.structure.n_labels

    def hessian(self, w: Floats, weights: Floats | None = None, **limits: float) -> Floats | None:
        """Return the Hessian at ``w``, as `chain_hessian`."""
        from seqlab.structures.chain.hessian import chain_hessian

        return chain_hessian(self.structure, self.X, w, weights, **limits)

    def pair_marginals(self, scores: ChainScores, codes: Codes) -> PairMarginals:
        """Return the pair marginals of a block and the log-likelihood of its labels."""
        log_z, node, pair = pair_marginals(scores)
        return PairMarginals(path_scores(scores, codes) - log_z, node, pair)

    def add_pair_sums(
        self,
        source: RowScores,
        codes: Codes,
        weights: Floats,
        sums: PairSums,
        *,
        beam: BeamOptions | None = None,
    ) -> Floats:
        """Add the gradient with respect to a table of scores, in fused passes."""
        if not source.edges_vary:
            return super().add_pair_sums(source, codes, weights, sums)
        # Imported here because only boosting needs it, and its kernels take time to import.
        from seqlab.structures.chain.pair_passes import add_beam_pair_sums, add_pair_sums

        data = self.X, source, codes, weights, sums
        if beam is not None and beam.width < self.n_labels:
            return add_beam_pair_sums(*data, beam, self.n_jobs)
        found = add_pair_sums(*data, self.n_jobs)
        return super().add_pair_sums(*data[1:]) if found is None else found

    def squared_scales(self) -> Floats | None:
        """Return the mean square of the stored values of each weight's feature; None if all are 1."""
        if self.features.has_only_ones:
            return None
        return self._per_weight(self.features.mean_squares)

    def square_shares(self) -> SquareShares | None:
        """Return the shares of the squares of features that are not due to outliers, or to an offset."""
        if self.features.has_only_ones:
            return None
        matrix, rotation = self.X.matrix, self.features.rotation
        without_offset = centred_shares(matrix)
        # What remains if the offset that several columns have in common is subtracted.
        if rotation is not None:
            least = np.minimum(without_offset[rotation.columns], rotation.least_share)
            without_offset[rotation.columns] = least
        of_features = typical_shares(matrix), without_offset
        return SquareShares(*map(self._per_weight, of_features))

    def rotated(self) -> tuple[BoundChain, RotatedWeights] | None:
        """Return the same chain with rotated columns; None if none need to be rotated."""
        rotation = self.features.rotation
        if rotation is None or not RotatedWeights.are_possible(self.structure, rotation):
            return None
        X = rotate_columns(self.X, rotation)
        return self.structure.bind(X, n_jobs=self.n_jobs), RotatedWeights(self.structure, rotation)

    def _per_weight(self, of_features: Floats) -> Floats:
        """Return the value of each weight's feature; 1 for a weight without a feature."""
        structure, out = self.structure, np.ones(self.n_params)
        for name, pattern in (("state", structure.state), ("edge", structure.edge)):
            if pattern is not None:
                out[structure.slices[name]] = np.repeat(of_features, np.diff(pattern.explicit()[0]))
        return out

    def curvature_at_zero(self, weights: Floats) -> Floats:
        """Return the diagonal of the Hessian at zero weights, treating steps as independent."""
        structure, X = self.structure, self.X
        step_weights = np.repeat(weights, X.lengths)
        later_weights = step_weights.copy()
        later_weights[X.offsets[:-1][X.lengths > 0]] = 0.0
        node, edge = ((1.0 - p) * p for p in (1.0 / self.n_labels, 1.0 / self.n_labels**2))

        def of_features(pattern: FeaturePattern, weights_of_steps: Floats) -> Floats:
            sums = sum_squares(X.matrix, weights_of_steps)
            return np.repeat(sums, np.diff(pattern.explicit()[0]))

        out, slices = np.empty(self.n_params), structure.slices
        out[slices["state"]] = node * of_features(structure.state, step_weights)
        if structure.edge is not None:
            out[slices["edge"]] = edge * of_features(structure.edge, later_weights)
        out[slices["transitions"]] = edge * later_weights.sum()
        out[slices["start"]] = out[slices["end"]] = node * weights.sum()
        return out

    def stochastic_support(self) -> StochasticSupport:
        """Return stochastic passes over the data."""
        if self.structure.edge is None:
            return self.passes
        from seqlab.structures.chain.edge_stochastic import EdgePasses

        return EdgePasses(self)

    @property
    def work_per_pass(self) -> float:
        """Approximate number of operations of one pass over the data."""
        return super().work_per_pass + float(self.features.n_entries) * min(self.n_labels, 8)

    def online_weights(self) -> ChainOnlineWeights:
        """Return zero weights that a perceptron can train, in a fused kernel."""
        # Imported here because only perceptrons need it.
        from seqlab.structures.chain.online import ChainOnlineWeights

        return ChainOnlineWeights(self.structure, self.features)

    def margin_model(self, problem: MarginProblem) -> MarginModel:
        """Return zero weights that max-margin learners can train; compiled if all weights exist."""
        structure = self.structure
        every = [structure.state, *([] if structure.edge is None else [structure.edge])]
        if any(one.columns is not None for one in every) or not structure.has_transition.all():
            return super().margin_model(problem)
        from seqlab.structures.chain.margins import ChainMarginModel  # many kernels: slow to import

        return ChainMarginModel(
            as_csr(self.X),
            problem,
            boundary=structure.boundary,
            edge_features=structure.edge is not None,
        )

    def total_features(self, codes: Codes, weights: Floats) -> Floats:
        """Return ``sum_i weights_i phi(x_i, y_i)``, shape (n_params,); of known labels, if some are not."""
        structure, X, n_labels = self.structure, self.X, self.n_labels
        step_weights = np.repeat(weights, X.lengths)
        pairs = label_pairs(codes, X.offsets, n_labels)
        slices, out = structure.slices, np.zeros(self.n_params)
        if structure.edge is None:
            rows = self.passes.rows if self.two_label_passes is None else self.two_label_passes
            out[slices["state"]] = rows.observed(codes, step_weights)
        else:
            structure.state.add_observed(X.matrix, codes, step_weights, out[slices["state"]])
            structure.edge.add_observed(X.matrix, pairs, step_weights, out[slices["edge"]])
        seen = pairs >= 0
        counts = np.bincount(pairs[seen], step_weights[seen], n_labels * n_labels)
        out[slices["transitions"]] = counts.reshape(n_labels, n_labels)[structure.has_transition]
        if structure.boundary:
            sequences = np.flatnonzero(X.lengths)
            first, last = X.offsets[sequences], X.offsets[sequences + 1] - 1
            for name, steps in (("start", first), ("end", last)):
                known = codes[steps] >= 0
                weight = weights[sequences][known]
                out[slices[name]] = np.bincount(codes[steps][known], weight, n_labels)
        return out

    def joint_features(
        self, codes: Codes, samples: NDArray[np.int64] | None = None
    ) -> sp.csr_matrix:
        """Return ``phi(x_i, y_i)`` of sequences, shape (n_sequences, n_params); duplicates are added up."""
        return joint_features(self.structure, self.X if samples is None else self.X[samples], codes)
