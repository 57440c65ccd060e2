"""HiddenRuns: labels of chains of which some are not known.

Between known labels lie runs of hidden ones. Given the known labels the runs are independent of each other:

    log Z(x | known) = score of the known labels and of the transitions between them + sum of log Z(run)

The first part is linear in the weights, so that only the runs need forward-backward.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlab.structures.chain._kernels.hidden_runs import count_unseen
from seqlab.structures.partial_labels import Codes, PartialLabels

Flags = NDArray[np.bool_]


class RunArrays(NamedTuple):
    """Arguments of the kernels: the runs of all sequences, in order."""

    ptr: Codes  # (n_sequences + 1,): the runs of sequence i are ptr[i]:ptr[i + 1]
    first: Codes  # (n_runs,): first step of each run
    last: Codes  # (n_runs,): the step after each run
    before: Codes  # (n_runs,): known label before each run, -1 at the start of a sequence
    after: Codes  # (n_runs,): known label after each run, -1 at the end of a sequence
    allowed: Flags  # (n_steps, n_labels): possible labels


class HiddenRuns(PartialLabels):
    """Labels of chains of which some are not known; see `PartialLabels`.

    Parameters
    ----------
    codes : array of shape (n_steps,)
        Negative if a label is not known.
    allowed : boolean array of shape (n_steps, n_labels)
        Possible labels of each step.
    offsets : array of shape (n_sequences + 1,)

    Attributes
    ----------
    arrays : RunArrays
    """

    def __init__(self, codes: Codes, allowed: Flags, offsets: Codes) -> None:
        super().__init__(codes, allowed, offsets)
        self.arrays = find_runs(codes, allowed, offsets)


def find_runs(codes: Codes, allowed: Flags, offsets: Codes) -> RunArrays:
    """Return the runs of hidden labels of all sequences."""
    hidden = codes < 0
    is_first, is_last = np.zeros((2, codes.size), dtype=bool)
    nonempty = offsets[:-1] < offsets[1:]
    is_first[offsets[:-1][nonempty]] = True
    is_last[offsets[1:][nonempty] - 1] = True
    known_before = np.concatenate([[False], ~hidden])[:-1]
    known_after = np.concatenate([~hidden, [False]])[1:]
    first = np.flatnonzero(hidden & (is_first | known_before))
    last = np.flatnonzero(hidden & (is_last | known_after)) + 1
    before = np.where(is_first[first], -1, codes[first - 1])
    after = np.where(is_last[last - 1], -1, np.append(codes, -1)[last])
    return RunArrays(np.searchsorted(first, offsets), first, last, before, after, allowed)


def count_unseen_transitions(
    codes: Codes, allowed: Flags, offsets: Codes, seen: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Count the transitions that hidden labels need although they were not seen between known labels.

    Usually some labeling of a run has only transitions that were seen, and nothing is counted. Otherwise the
    transitions of the labelings with the fewest unseen transitions are, once for each step.
    """
    counts = np.zeros(seen.shape, dtype=np.int64)
    count_unseen(find_runs(codes, allowed, offsets), seen, counts)
    return counts
