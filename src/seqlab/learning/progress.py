"""FitProgress: what a callback receives after every iteration of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class FitProgress:
    """One iteration of a fit, as a callback sees it; read-only.

    Parameters
    ----------
    iteration : int
        Number of the iteration; 0 for the starting point, if the learner reports it.
    objective : float
        Value of the objective, penalties included; the number of errors for a learner without objective.
    seconds : float
        Time since training began.
    info : mapping of str to float
        The other values of this iteration in ``history_``: gradient norm, estimated gap, number of updates,
        validation score.

    Examples
    --------
    >>> from seqlab.learning import FitProgress
    >>> progress = FitProgress(3, 250.0, 0.1, {"gap": 2.5})
    >>> progress.iteration, progress.info["gap"]
    (3, 2.5)
    """

    iteration: int
    objective: float
    seconds: float
    info: Mapping[str, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "info", MappingProxyType(dict(self.info)))
