"""The structured perceptron on any structure (Collins 2002).

For each training sample: decode under the current weights; if the labeling is wrong, add the features of the
gold labeling and subtract those of the decoded one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.optim import FitState
from seqlab.structures import BoundStructure

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class Perceptron:
    """Perceptron updates, pass by pass.

    Parameters
    ----------
    bound : BoundStructure
        The structure, bound to the training data.
    codes : array of shape (n_positions,)
    weights : array of shape (n_samples,)
        Factor of the updates of each sample.
    tol : float
        Proportion of wrong labels in a pass at which training stops.
    random : RandomState or None
        Draws a new order of the samples for each pass; None keeps their order.
    beam_width : int
        Labels kept per step in decoding; 0 for exact decoding.
    early_update : bool
        Whether to stop decoding when the gold labeling falls out of the beam.
    keep_gold : bool
        Whether the gold labels are always kept in the beam.
    tie_seed : int or None
        Seed of the noise that breaks ties in decoding; None: ties go to the lowest label.
    keep_updates : bool
        Whether to keep every update, for a vote of all weight vectors.

    Attributes
    ----------
    online : OnlineWeights
        The weights and their average.
    updates : list of (CSR matrix, array)
        For each pass: the updates in order, one per row, and the number of visits before each.
    """

    def __init__(
        self,
        bound: BoundStructure,
        codes: Codes,
        weights: Floats,
        *,
        tol: float = 0.0,
        random: np.random.RandomState | None = None,
        beam_width: int = 0,
        early_update: bool = False,
        keep_gold: bool = False,
        tie_seed: int | None = None,
        keep_updates: bool = False,
    ) -> None:
        self.bound, self.codes, self.weights = bound, codes, weights
        self.tol, self.random = tol, random
        self.search: dict[str, Any] = {
            "beam_width": beam_width,
            "early_update": early_update,
            "keep_gold": keep_gold,
        }
        if tie_seed is not None:
            self.search["tie_state"] = np.array([tie_seed], dtype=np.uint64)
        self.keep_updates = keep_updates
        self.online = bound.online_weights()
        self.updates: list[tuple[sp.csr_matrix, NDArray[np.int64]]] = []

    def states(self) -> Iterator[FitState]:
        """Yield a state after each pass; the objective is the number of wrong labels."""
        n_samples = len(self.bound.X)
        order = np.arange(n_samples)
        for iteration in count(1):
            if self.random is not None:
                order = self.random.permutation(n_samples)
            self.online.save()
            try:
                state = self._run_pass(order, iteration)
            except KeyboardInterrupt:  # return to the last full pass, which is the last state
                self.online.restore()
                del self.updates[iteration - 1 :]
                raise
            yield state

    def _run_pass(self, order: NDArray[np.int64], iteration: int) -> FitState:
        n_before = self.online.n_steps
        found = self.online.run_pass(self.codes, self.weights, order, **self.search)
        if not self.online.is_finite():
            raise InputError(f"the weights overflowed in pass {iteration}: scale the features of X")
        if self.keep_updates:
            changed = found.updated[order]
            update = self._update_features(found.predicted, order[changed])
            self.updates.append((update, n_before + np.flatnonzero(changed)))
        converged = found.n_wrong <= self.tol * self.codes.size
        info = {"n_updates": float(found.updated.sum())}
        return FitState(self.online, found.n_wrong, converged=converged, info=info)

    def _update_features(self, predicted: Codes, samples: NDArray[np.int64]) -> sp.csr_matrix:
        """Return ``weights_i (phi(x_i, y_i) - phi(x_i, predicted_i))``, one row per sample."""
        offsets = self.bound.X.offsets
        rows = np.concatenate(
            [np.zeros(0, np.int64), *[np.arange(*offsets[i : i + 2]) for i in samples]]
        )
        gold = self.bound.joint_features(self.codes[rows], samples)
        wrong = self.bound.joint_features(predicted[rows], samples)
        return sp.csr_matrix(sp.diags(self.weights[samples]) @ (gold - wrong))
