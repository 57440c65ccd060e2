"""Where a warning should point."""

from __future__ import annotations

import sys


def stack_level_of_caller() -> int:
    """Return the stack level, for `warnings.warn`, of the first caller outside seqlab and scikit-learn."""
    level, frame = 2, sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "seqlab",
        "sklearn",
    ):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    return level
