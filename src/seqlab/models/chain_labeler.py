"""ChainLabeler: all predictions that can be computed from chain scores.

A chain model implements `_block_scores`, which returns the `ChainScores` of a block of sequences;
prediction, n-best, max-marginals, probabilities and constraints are computed from them, block by block,
which bounds the memory and lets threads share the work.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlab import inference
from seqlab.data import state_checks
from seqlab.data.errors import InputError, PlacedError
from seqlab.data.labels import decode_labels
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.data.sparse_state import unpack_sparse
from seqlab.data.tags import scheme_mask
from seqlab.inference import ChainScores, Mask
from seqlab.models.base import BaseLabeler
from seqlab.utils.threads import block_bounds, effective_n_jobs, run_blocks

# Doubles of scores that a block may hold (2 MB): with less, the overhead per block dominates; with more, the
# scores no longer fit in the cache.
BLOCK_DOUBLES = 1 << 18
# Proportion of malformed tags in training above which the labels are assumed to follow another scheme.
MALFORMED = 0.02


class ChainLabeler(BaseLabeler):
    """A labeler whose predictions come from chain inference."""

    def _prepare_scoring(self, X: Sequences) -> Any:
        """Return data that the blocks of X share, for example a table of weights; None by default."""
        return None

    def _block_scores(self, block: SequenceBlock, prepared: Any) -> ChainScores:
        """Return the scores of a block; every chain model implements this method."""
        raise NotImplementedError

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state_checks.add_new_params(type(self), unpack_sparse(state)))

    def _check_state(self) -> None:
        super()._check_state()
        if state_checks.has_fitted_attributes(self):
            state_checks.require("transition_counts_" in vars(self), "transition_counts_")

    def _check_chain(self, *, start: bool = True, transitions: bool = True) -> None:
        """Check the arrays of a Markov chain among the restored attributes."""
        n_labels = self.classes_.size
        if start:
            state_checks.check_array(self.start_, "start_", (n_labels,))
        if transitions:
            state_checks.check_array(self.transitions_, "transitions_", (n_labels, n_labels))
        if "may_end_" in vars(self):
            state_checks.check_array(self.may_end_, "may_end_", (n_labels,), "b")

    def predict(self, X: Any, *, lengths: Any = None, constraints: Any = None) -> Any:
        """Return the most probable labeling of each sequence (Viterbi).

        Parameters
        ----------
        X : see `fit`
        lengths : list of int, optional
            Steps per sequence, if X is one stacked matrix.
        constraints : str, Mask or list, optional
            Restricts the labelings: the name of a tag scheme ("IOB2": only valid sequences of tags), a
            `seqlab.inference.Mask`, or a list shaped like ``y`` with the labels that are already known
            (``None`` for an unknown label, a set if several are possible).

        Returns
        -------
        list of arrays of labels, or one stacked array if X is stacked
        """
        sequences, layout = self._read(X, lengths)
        mask = self._mask(constraints, sequences, layout)
        codes = self._predict(sequences, mask)
        return layout.restore(decode_labels(codes, self.classes_), sequences.offsets)

    def predict_nbest(
        self, X: Any, n: int = 5, *, lengths: Any = None, constraints: Any = None
    ) -> list[list[tuple[NDArray[Any], float]]]:
        """Return the ``n`` best labelings of each sequence, best first.

        Parameters
        ----------
        X, lengths, constraints : see `predict`
        n : int
            Number of labelings; fewer are returned if fewer exist.

        Returns
        -------
        list of lists of (labels, score)
            The score is the log-probability of the labeling if the model is a probability
            distribution, else the model's own score.
        """
        if not isinstance(n, Integral) or n < 1:
            raise InputError(f"n must be a whole number of at least 1, got {n!r}")
        sequences, layout = self._read(X, lengths)
        mask = self._mask(constraints, sequences, layout)
        normalise = hasattr(self, "sequence_log_proba")

        def answer(scores: ChainScores, local: Mask | None, _: slice) -> list[Any]:
            # A constraint selects labelings but does not renormalise their probabilities.
            log_z = np.zeros(scores.n_sequences)
            if normalise:
                log_z = inference.log_partition(scores)
            return [
                [(decode_labels(labels, self.classes_), score - log_z[i]) for labels, score in best]
                for i, best in enumerate(inference.kbest(scores, n, mask=local))
            ]

        blocks = self._run(sequences, answer, mask)
        return [best for block in blocks for best in block]

    def decision_function(self, X: Any, *, lengths: Any = None, constraints: Any = None) -> Any:
        """Return max-marginals: the best score of any labeling that has a given label at a given step.

        Parameters
        ----------
        X, lengths, constraints : see `predict`

        Returns
        -------
        list of arrays of shape (n_steps, n_labels), or one stacked array if X is stacked
            Columns in the order of ``classes_``.
        """
        sequences, layout = self._read(X, lengths)
        mask = self._mask(constraints, sequences, layout)
        blocks = self._run(
            sequences, lambda s, local, _: inference.max_marginals(s, mask=local), mask
        )
        return layout.restore(_stack(blocks, self.classes_.size), sequences.offsets)

    def _predict(self, X: Sequences, mask: Mask | None = None) -> NDArray[np.int64]:
        blocks = self._run(X, lambda s, local, _: inference.viterbi(s, mask=local).labels, mask)
        return np.concatenate([np.zeros(0, dtype=np.int64), *blocks])

    def _predict_marginals(self, X: Sequences, mask: Mask | None = None) -> NDArray[np.float64]:
        blocks = self._run(X, lambda s, local, _: inference.marginals(s, mask=local).node, mask)
        return _stack(blocks, self.classes_.size)

    def _run(
        self,
        X: Sequences,
        answer: Callable[[ChainScores, Mask | None, slice], Any],
        mask: Mask | None,
    ) -> list[Any]:
        """Return the results of ``answer(scores, mask, steps)`` for all blocks, in order."""
        prepared = self._prepare_scoring(X)
        n_labels = self.classes_.size
        per_step = n_labels * n_labels if self._pairwise_per_step() else n_labels
        # The result for a sequence does not depend on its block, so blocks can be made smaller for threads.
        n_jobs = getattr(self, "n_jobs", None)
        n_threads, work = effective_n_jobs(n_jobs), BLOCK_DOUBLES
        if n_threads > 1:
            work = max(1, min(work, X.n_steps * per_step // (2 * n_threads)))
        max_blocks = max(len(X), 1)
        if not self._pairwise_per_step() and X.n_steps * per_step <= len(X) * BLOCK_DOUBLES:
            max_blocks = max(len(X) // 2, n_threads)  # Viterbi is faster on two sequences at a time
        bounds = block_bounds(X.offsets, per_step, block_work=work, max_blocks=max_blocks)

        def block(b: int) -> Any:
            part = X.block(int(bounds[b]), int(bounds[b + 1]))
            try:
                scores = self._block_scores(part, prepared)
                return answer(scores, cut_mask(mask, part.steps), part.steps)
            except PlacedError as error:
                raise error.shifted(part.first) from None

        return run_blocks(block, bounds.size - 1, n_jobs)

    def _pairwise_per_step(self) -> bool:
        """Return whether the pairwise scores of the model differ from step to step."""
        return False

    def _mask(self, constraints: Any, X: Sequences, layout: Any) -> Mask | None:
        if constraints is None:
            return None
        if isinstance(constraints, Mask):
            constraints.check(X.n_steps, self.classes_.size)
            return constraints
        if isinstance(constraints, str):
            if self.classes_.dtype.kind not in "US":
                raise InputError(f"constraints={constraints!r} needs labels that are strings")
            return self._scheme(constraints)
        known = self._read_labels(constraints, X, layout, partial=True, name="constraints")
        unseen = np.flatnonzero(known.codes == -1)
        if unseen.size:
            sequence, position = X.locate(int(unseen[0]))
            raise InputError(f"constraints[{sequence}][{position}] is not a label of this model")
        if known.allowed is not None:
            return Mask(steps=known.allowed)
        steps = np.zeros((X.n_steps, self.classes_.size), dtype=bool)
        steps[np.arange(X.n_steps), known.codes] = True
        return Mask(steps=steps)

    def _scheme(self, scheme: str) -> Mask:
        """Return the mask of a tag scheme; raise an error if it would forbid every label but one."""
        legal = scheme_mask(self.classes_.tolist(), scheme)
        usable = _find_reachable(legal.start, legal.transitions) & _find_reachable(
            legal.end, legal.transitions.T
        )
        if usable.sum() <= 1 < usable.size:
            tags = ", ".join(self.classes_[~usable][:4])
            raise InputError(
                f"constraints={scheme!r} forbids {tags} ... everywhere: the labels of this model follow "
                "another scheme"
            )
        broken = self.transition_counts_ * ~legal.transitions
        starts = self.start_counts_ * ~legal.start
        n_seen = self.transition_counts_.sum() + self.start_counts_.sum()
        if broken.sum() + starts.sum() > MALFORMED * n_seen:
            i, j = np.unravel_index(np.argmax(broken), broken.shape)
            example = f"{self.classes_[j]} after {self.classes_[i]}"
            if not broken.any():
                example = f"{self.classes_[np.argmax(starts)]} at the beginning"
            raise InputError(
                f"the labels of this model do not follow {scheme}: {example} is not allowed, but was "
                "seen in training"
            )
        return Mask(transitions=legal.transitions, start=legal.start, end=legal.end)


def _find_reachable(first: NDArray[np.bool_], transitions: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the labels that can be reached from the first labels."""
    reached = first.copy()
    for _ in range(reached.size):
        further = reached | (reached[:, None] & transitions).any(axis=0)
        if (further == reached).all():
            break
        reached = further
    return reached


class ProbabilisticChainMixin:
    """Node marginals, for chain models whose scores can be used as log-potentials."""

    def predict_proba(self, X: Any, *, lengths: Any = None, constraints: Any = None) -> Any:
        """Return the probability of each label at each step (node marginals).

        Parameters
        ----------
        X, lengths, constraints : see `predict`
            Under constraints the probabilities are conditional on them.

        Returns
        -------
        list of arrays of shape (n_steps, n_labels), or one stacked array if X is stacked
            Columns in the order of ``classes_``.
        """
        sequences, layout = self._read(X, lengths)  # type: ignore[attr-defined]
        mask = self._mask(constraints, sequences, layout)  # type: ignore[attr-defined]
        node = self._predict_marginals(sequences, mask)  # type: ignore[attr-defined]
        return layout.restore(node, sequences.offsets)


class DistributionMixin(ProbabilisticChainMixin):
    """Probabilities of whole labelings, for chain models that are probability distributions."""

    def sequence_log_proba(self, X: Any, y: Any, *, lengths: Any = None) -> NDArray[np.float64]:
        """Return the log-probability of each given labeling.

        A labeling with a label that was not seen in training has probability 0 (``-inf``). If labels are
        unknown or partly known, the probability is that of all labelings that agree with them.

        Parameters
        ----------
        X, lengths : see `predict`
        y : list of label sequences

        Returns
        -------
        array of shape (n_sequences,)
        """
        sequences, layout = self._read(X, lengths)  # type: ignore[attr-defined]
        labels = self._read_labels(y, sequences, layout, partial=True)  # type: ignore[attr-defined]
        unseen = np.flatnonzero(labels.codes == -1)
        impossible = np.searchsorted(sequences.offsets, unseen, side="right") - 1
        codes = np.maximum(labels.codes, 0)
        allowed = None
        if labels.allowed is not None:
            allowed = labels.allowed | (labels.codes == -1)[:, None]

        def answer(scores: ChainScores, local: Mask | None, steps: slice) -> NDArray[np.float64]:
            log_z = inference.log_partition(scores)
            if local is None:
                return inference.path_scores(scores, codes[steps]) - log_z
            return inference.log_partition(scores, mask=local) - log_z

        mask = None if allowed is None else Mask(steps=allowed)
        blocks = self._run(sequences, answer, mask)  # type: ignore[attr-defined]
        out = np.concatenate([np.zeros(0), *blocks])
        out[impossible] = -np.inf
        return out


def _stack(blocks: list[Any], n_columns: int) -> NDArray[np.float64]:
    return np.concatenate([np.zeros((0, n_columns)), *blocks])


def cut_mask(mask: Mask | None, steps: slice) -> Mask | None:
    """Return the part of a mask that applies to the given steps."""
    if mask is None or mask.steps is None:
        return mask
    return Mask(mask.steps[steps], mask.transitions, mask.start, mask.end)
