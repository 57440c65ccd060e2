"""Costs of phrases, computed from the posteriors of open and close decisions."""

from __future__ import annotations

from typing import Any

from seqlab.inference import PhraseCosts

COSTS = ("weighted", "map", "threshold", "product", "log_odds")
# Costs for which threshold="auto" tunes the threshold; for the others 0 has a meaning of its own.
TUNED_COSTS = ("weighted", "threshold", "log_odds")


def make_costs(
    cost: str,
    opened: Any,
    closed: Any,
    offsets: Any,
    inside_weight: float,
    min_probability: float,
    max_length: int | None,
) -> PhraseCosts:
    """Return the costs of all phrases, with a threshold of 0.

    Parameters
    ----------
    cost : str
        One of `COSTS`.
    opened, closed : arrays of shape (n_tokens, n_types + 2)
        Posteriors of the open and close decisions.
    offsets : int array of shape (n_sequences + 1,)
    inside_weight, min_probability, max_length : see `seqlab.PhraseInference`
    """
    options = {"min_probability": float(min_probability)}
    if cost in ("weighted", "map"):
        weight = 1.0 if cost == "map" else inside_weight
        costs = PhraseCosts.map(opened, closed, offsets, inside_weight=weight, **options)
    else:
        make = PhraseCosts.log_odds if cost == "log_odds" else PhraseCosts.product
        costs = make(opened[:, :-2], closed[:, :-2], offsets, **options)
    return costs if max_length is None else costs.limited(longest=max_length)
