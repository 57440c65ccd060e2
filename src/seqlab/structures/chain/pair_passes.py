"""Passes over chains whose scores are tables of rows: log-likelihoods and sums of pair marginals."""

from __future__ import annotations

from threading import Lock

import numpy as np
from numpy.typing import NDArray

from seqlab.data.sequences import Sequences
from seqlab.structures.chain._kernels.beam_pairs import add_beam_sums, run_beam
from seqlab.structures.chain._kernels.label_pairs import (
    add_label_sums,
    largest_scores,
    run_forward_backward,
)
from seqlab.structures.chain._kernels.two_label_pairs import add_two_label_sums
from seqlab.structures.pair_sums import PairSums, RowScores
from seqlab.structures.values import BeamOptions
from seqlab.utils.threads import block_bounds, run_blocks

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

# Doubles of exponentials that a block may hold: half a megabyte, which fits in an L2 cache.
BLOCK_DOUBLES = 65_536
# Exponentials of a block with a beam: some milliseconds.
BEAM_WORK = 1_000_000


def add_pair_sums(
    X: Sequences,
    source: RowScores,
    codes: Codes,
    weights: Floats,
    sums: PairSums,
    n_jobs: int | None,
) -> Floats | None:
    """Add exact sums; see `BoundStructure.add_pair_sums`. None if the range of the scores is too large."""
    if source.n_labels == 2:
        return _add_two_labels(X, source, codes, weights, sums)
    node, pair, rows = source.node, source.pair, source.rows
    shifts = np.empty((source.n_rows, 2))
    if not largest_scores(node, pair, shifts):
        return None
    n_labels, log_likelihood = source.n_labels, np.empty(len(X))
    lock = Lock()  # sums are integers: the order of the blocks does not matter
    bounds = block_bounds(
        X.offsets,
        n_labels * n_labels,
        block_work=BLOCK_DOUBLES,
        max_blocks=max(len(X), 1),
    ).tolist()

    def run(b: int) -> None:
        block = X.block(bounds[b], bounds[b + 1])
        steps, samples = block.steps, slice(block.first, block.last)
        exps = np.empty((block.n_steps, n_labels, n_labels))
        alpha, right = np.empty((2, block.n_steps, n_labels))
        # For numba a read-only array is another type, for which it would compile the kernel again.
        offsets = block.offsets.copy()
        run_forward_backward(
            node, pair, shifts, codes[steps], rows[steps], offsets, exps, alpha, right,
            log_likelihood[samples],
        )  # fmt: skip
        with lock:
            add_label_sums(
                exps, alpha, right, codes[steps], rows[steps], weights[samples], offsets,
                sums.scale, sums.gradient, sums.curvature,
            )  # fmt: skip

    run_blocks(run, len(bounds) - 1, n_jobs)
    return log_likelihood


def add_beam_pair_sums(
    X: Sequences,
    source: RowScores,
    codes: Codes,
    weights: Floats,
    sums: PairSums,
    beam: BeamOptions,
    n_jobs: int | None,
) -> Floats:
    """Add the sums over the labels in a beam; see `BoundStructure.add_pair_sums`."""
    node, pair, rows = source.node, source.pair, source.rows
    log_likelihood, gold_share = np.empty((2, len(X)))
    lock, size = Lock(), beam.width + 1
    bounds = block_bounds(
        X.offsets, source.n_labels * size, block_work=BEAM_WORK, max_blocks=max(len(X), 1)
    ).tolist()

    def run(b: int) -> None:
        block = X.block(bounds[b], bounds[b + 1])
        steps, samples = block.steps, slice(block.first, block.last)
        gold, of_steps, offsets = codes[steps], rows[steps], block.offsets.copy()
        kept = np.empty((block.n_steps, size), dtype=np.int64)
        n_kept = np.empty(block.n_steps, dtype=np.int64)
        probability = np.empty((block.n_steps, size, size))
        run_beam(
            node, pair, gold, of_steps, offsets, beam.width, beam.keep_gold, kept, n_kept,
            probability, log_likelihood[samples], gold_share[samples],
        )  # fmt: skip
        with lock:
            add_beam_sums(
                gold, of_steps, weights[samples], offsets, kept, n_kept, probability,
                gold_share[samples], sums.scale, sums.gradient, sums.curvature,
            )  # fmt: skip

    run_blocks(run, len(bounds) - 1, n_jobs)
    return log_likelihood


def _add_two_labels(
    X: Sequences, source: RowScores, codes: Codes, weights: Floats, sums: PairSums
) -> Floats | None:
    log_likelihood = np.empty(len(X))
    is_in_range = add_two_label_sums(
        source.node, source.pair, codes, source.rows, weights, X.offsets, sums.scale,
        sums.gradient, sums.curvature, log_likelihood,
    )  # fmt: skip
    return log_likelihood if is_in_range else None
