"""The constants of the default solver that `leave_out.py` chooses anew, and how to set them.

Each has three levels; that in the middle is the default. Constants that belong together change together.
Fits with c1 = 0 and with c1 > 0 use different solvers and choose separately.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

import seqlab.learning.curvature as curvature
import seqlab.learning.likelihood as likelihood
import seqlab.learning.warm_start as warm_start
import seqlab.models.crf as crf
import seqlab.optim.proximal_solver as proximal_solver
import seqlab.optim.quadratic_model as quadratic_model
import seqlab.structures.chain.curvature_block as curvature_block
import seqlab.structures.chain.hessian as hessian
import seqlab.structures.chain.label_blocks as label_blocks
import seqlab.structures.chain.stochastic as stochastic
from seqlab.optim import Preconditioner
from seqlab.optim.state import StoppingRule


class Constant(NamedTuple):
    """One or several values of modules, classes or dicts that change together."""

    places: list[tuple[Any, Any]]  # owner and name, or dict and key
    levels: list[tuple[float, ...]]  # one value for each place


def scaled(places, factors=(0.5, 1, 2)):
    """Return a constant whose levels are multiples of the defaults."""
    defaults = [get(*place) for place in places]
    kinds = [type(value) for value in defaults]
    return Constant(
        places,
        [tuple(k(f * v) for k, v in zip(kinds, defaults, strict=True)) for f in factors],
    )


def single(owner, name, *levels):
    return Constant([(owner, name)], [(level,) for level in levels])


def get(owner, name):
    return owner[name] if isinstance(owner, dict) else getattr(owner, name)


def put(owner, name, value):
    if isinstance(owner, dict):
        owner[name] = value
    else:
        setattr(owner, name, value)


SAMPLE = ["MAX_PAIRS", "MIN_STEPS", "MAX_STEPS", "MAX_PRODUCTS"]
BOTH = {
    "rate of the passes": single(warm_start, "RATE", 0.075, 0.15, 0.3),
    "end of the passes": Constant(
        [(warm_start, "MAX_RATIO"), (warm_start, "MAX_RATIO_WITH_BLOCKS")],
        [(0.94, 0.88), (0.97, 0.94), (0.985, 0.97)],
    ),
    "damping": single(stochastic, "DAMPING", 0.1, 0.2, 0.4),
    "least data for passes": scaled([(warm_start, "MIN_SEQUENCES")]),
    "largest block": single(likelihood, "MAX_BLOCK", 200, 400, 800),
    "sample of the block": scaled([(curvature_block, name) for name in SAMPLE]),
    "shrinkage of the block": single(curvature_block, "SHRINKAGE", 0.005, 0.02, 0.08),
    "work per pair": single(crf, "WORK_PER_PAIR", 200, 400, 800),
    "first renewal": single(curvature, "FIRST_RENEWAL", 3, 5, 8),
    "first Hessian": scaled([(curvature, "HESSIAN_FROM"), (curvature, "LATE")]),
    "share of the Hessian": single(curvature, "HESSIAN_SHARE", 0.35, 0.7, 1.4),
    "runs of the Hessian": single(likelihood, "MIN_RUN", 2.5, 5.0, 10.0),
}
# By whether there is an L1 penalty.
CONSTANTS = {
    False: {
        **BOTH,
        "weak penalty": single(warm_start, "WEAK_PENALTY", 0.02, 0.05, 0.125),
        "passes of the block": single(likelihood.BLOCK_PASSES, False, 7.0, 20.0, 60.0),
        "label blocks": scaled([(label_blocks, "MAX_PASSES"), (label_blocks, "MAX_SAMPLED")]),
        "collective": single(curvature, "COLLECTIVE", 1.5, 3.0, 6.0),
        "first step": single(Preconditioner, "first_step", 0.15, 0.3, 0.6),
        "pairs": single(crf.MIN_MEMORY, False, 3, 5, 8),
    },
    True: {
        **BOTH,
        "passes of the block": single(likelihood.BLOCK_PASSES, True, 0.1, 0.3, 0.9),
        "pairs": single(crf.MIN_MEMORY, True, 6, 8, 12),
        "nonzero block": scaled([(likelihood, "NONZERO_PASSES")], (1 / 3, 1, 3)),
        "share of the nonzero block": scaled([(curvature, "LONG_SHARE")]),
        "shrinkage of the nonzero block": single(hessian, "SHRINKAGE", 1e-4, 1e-3, 1e-2),
        "length of steps": single(quadratic_model, "LENGTH", 0.0, 0.25, 0.5),
        "signs that may change": single(quadratic_model, "MAX_CHANGED", 0.005, 0.02, 0.06),
    },
}
DEFAULT_LEVEL = 1


class Rule(NamedTuple):
    """Factors of `StoppingRule`; see there."""

    caution: float
    safety: float
    tail: float
    ratio: float


def random_design(sparse, n_runs, seed=0):
    """Return levels of all constants for a number of runs; each level occurs equally often."""
    random = np.random.default_rng([seed, sparse])
    levels = np.tile(np.arange(3), n_runs // 3)
    columns = [random.permutation(levels) for _ in CONSTANTS[sparse]]
    return [tuple(map(int, run)) for run in zip(*columns, strict=True)]


@contextmanager
def applied(sparse, levels, rule=None):
    """Set the constants to these levels, and those of the stopping rule if given."""
    changes = []
    for constant, level in zip(CONSTANTS[sparse].values(), levels, strict=True):
        changes += [(*p, v) for p, v in zip(constant.places, constant.levels[level], strict=True)]
    if rule is not None:
        defaults = StoppingRule.__init__.__kwdefaults__
        changes += [
            (proximal_solver if sparse else curvature, "CAUTION", rule.caution),
            (defaults, "safety", rule.safety),
            (defaults, "tail_safety", rule.tail),
            (StoppingRule, "BOUND_RATIO", rule.ratio),
        ]
    before = [(owner, name, get(owner, name)) for owner, name, _ in changes]
    for change in changes:
        put(*change)
    try:
        yield
    finally:
        for change in before:
            put(*change)
