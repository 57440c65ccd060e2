"""Sequences from a random hidden Markov model with many labels.

The model of the SECOC experiments: every label ``i`` has a preferred observation ``o_i`` and a small
set of others; it stays with some probability and otherwise moves to one of a small set of labels,

    P(o | i) = po if o = o_i,  (1 - po) / ko for o in O_i,   |O_i| = ko, o_i not in O_i
    P(j | i) = pl if j = i,    (1 - pl) / kl for j in L_i,   |L_i| = kl, i not in L_i

with the sets drawn once per data set and a uniform start. In the preset "transition" the order of
labels is informative (po 0.2, ko 8, pl 0.6, kl 2), in the preset "both" order and observations are
(po 0.6, ko 2, pl 0.6, kl 2).

References
----------
Hao, G. & Fern, A. (2007). Revisiting output coding for sequential supervised learning. IJCAI.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from seqlab.data.errors import InputError
from seqlab.datasets._helpers import check_choice, check_count, check_random_state, make_result
from seqlab.datasets.bayes_ceilings import HMMParameters, draw_sequences, hmm_bayes_ceilings

if TYPE_CHECKING:
    from sklearn.utils import Bunch

_PRESETS: dict[str | None, dict[str, float]] = {
    "transition": {"po": 0.2, "ko": 8, "pl": 0.6, "kl": 2},
    "both": {"po": 0.6, "ko": 2, "pl": 0.6, "kl": 2},
    None: {},
}
_ENCODINGS = ("onehot", "sparse", "index")
_DESCR = """\
Sequences from a random hidden Markov model
-------------------------------------------
{n_labels} labels, {n_observations} observation symbols, {n_sequences} sequences.
Label i emits its own symbol with probability {po:g}, else one of {ko} others; it stays with
probability {pl:g}, else moves to one of {kl} labels. Best possible accuracy: {w1:.1%} from one
observation, {w3:.1%} from three, {full:.1%} from the whole sequence.
"""


def make_hmm_sequences(
    n_sequences: int = 100,
    length: int | tuple[int, int] = 50,
    *,
    preset: str | None = "transition",
    n_labels: int = 40,
    n_observations: int = 40,
    po: float | None = None,
    ko: int | None = None,
    pl: float | None = None,
    kl: int | None = None,
    encoding: str = "onehot",
    random_state: Any = None,
    return_X_y: bool = False,
) -> Bunch | tuple[list[Any], list[NDArray[np.int64]]]:
    """Generate sequences from a random hidden Markov model with many labels.

    The parameters are drawn first, then the sequences: to train and test on the same model, draw
    all sequences at once and split them.

    Parameters
    ----------
    n_sequences : int, default=100
        Number of sequences.
    length : int or (int, int), default=50
        Steps per sequence, or the inclusive range from which they are drawn uniformly.
    preset : {"transition", "both", None}, default="transition"
        Default values of `po`, `ko`, `pl`, `kl`; with None all four are required.
    n_labels, n_observations : int, default=40
        Number of labels and of observation symbols; label ``i`` prefers symbol ``i``
        (modulo `n_observations`).
    po, pl : float, optional
        Probability of the preferred symbol, and of staying at a label.
    ko, kl : int, optional
        Number of other symbols of a label, and of its successors.
    encoding : {"onehot", "sparse", "index"}, default="onehot"
        Form of the observations: a float row with a single 1, the same as a CSR matrix, or the
        number of the symbol as a column of integers, shape (n_steps, 1).
    random_state : int, RandomState or None
        Seed of the generator.
    return_X_y : bool, default=False
        Whether to return only ``(data, target)``; the ceilings are then not computed.

    Returns
    -------
    Bunch
        ``data`` (list of matrices), ``target`` (list of int arrays), ``start``, ``transition``,
        ``emission`` (the true parameters), ``bayes_ceilings`` (`BayesCeilings`), ``feature_names``,
        ``target_names``, ``DESCR``.

    See Also
    --------
    hmm_bayes_ceilings : The ceilings of any HMM.

    Examples
    --------
    >>> from seqlab.datasets import make_hmm_sequences
    >>> data = make_hmm_sequences(10, 20, preset="both", random_state=0)
    >>> data.data[0].shape, data.target[0].shape
    ((20, 40), (20,))
    >>> data.bayes_ceilings.window_1 < data.bayes_ceilings.posterior
    True
    """
    if isinstance(n_sequences, str):
        raise InputError(
            f"n_sequences must be an integer, got {n_sequences!r}; parameters after length must "
            f"be named: preset={n_sequences!r}"
        )
    check_count(n_sequences, "n_sequences")
    check_count(n_labels, "n_labels", least=2)
    check_count(n_observations, "n_observations", least=2)
    check_choice(preset, "preset", _PRESETS)
    check_choice(encoding, "encoding", _ENCODINGS)
    given = {"po": po, "ko": ko, "pl": pl, "kl": kl}
    settings: dict[str, Any] = _PRESETS[preset] | {k: v for k, v in given.items() if v is not None}
    missing = sorted(given.keys() - settings.keys())
    if missing:
        raise InputError(f"with preset=None, {', '.join(missing)} must be set")
    rng = check_random_state(random_state)
    truth = _draw_parameters(n_labels, n_observations, rng=rng, **settings)
    lengths = _draw_lengths(n_sequences, length, rng)
    states, symbols = draw_sequences(truth, lengths, rng)
    data = [_encode(sequence, n_observations, encoding) for sequence in symbols]
    if return_X_y:
        return data, states
    ceilings = hmm_bayes_ceilings(*truth, random_state=rng)
    names = [f"o{k}" for k in range(n_observations)]
    return make_result(
        return_X_y=False,
        data=data,
        target=states,
        start=truth.start,
        transition=truth.transition,
        emission=truth.emission,
        bayes_ceilings=ceilings,
        feature_names=["symbol"] if encoding == "index" else names,
        target_names=[str(label) for label in range(n_labels)],
        DESCR=_DESCR.format(
            n_labels=n_labels,
            n_observations=n_observations,
            n_sequences=n_sequences,
            w1=ceilings.window_1,
            w3=ceilings.window_3,
            full=ceilings.posterior,
            **settings,
        ),
    )


def _draw_parameters(
    n_labels: int,
    n_observations: int,
    *,
    po: float,
    ko: Any,
    pl: float,
    kl: Any,
    rng: np.random.RandomState,
) -> HMMParameters:
    for name, value in (("po", po), ("pl", pl)):
        if not isinstance(value, Real) or not 0 <= value <= 1:
            raise InputError(f"{name} must be a probability, got {value!r}")
    for name, value, limit in (("ko", ko, n_observations), ("kl", kl, n_labels)):
        if not isinstance(value, int | np.integer) or not 1 <= value < limit:
            raise InputError(f"{name} must be an integer in 1..{limit - 1}, got {value!r}")
    emission = _draw_table(n_labels, n_observations, po, ko, rng)
    transition = _draw_table(n_labels, n_labels, pl, kl, rng)
    return HMMParameters(np.full(n_labels, 1.0 / n_labels), transition, emission)


def _draw_table(
    n_rows: int, n_columns: int, own: float, n_others: int, rng: np.random.RandomState
) -> NDArray[np.float64]:
    """Draw rows with probability `own` at their own column, and the rest at some other columns."""
    table = np.zeros((n_rows, n_columns))
    for i in range(n_rows):
        preferred = i % n_columns
        others = np.delete(np.arange(n_columns), preferred)
        table[i, rng.choice(others, size=n_others, replace=False)] = (1 - own) / n_others
        table[i, preferred] = own
    return table


def _draw_lengths(
    n_sequences: int, length: int | tuple[int, int], rng: np.random.RandomState
) -> NDArray[np.int64]:
    ends = [length, length] if isinstance(length, int | np.integer) else length
    if (
        not isinstance(ends, tuple | list)
        or len(ends) != 2
        or not all(isinstance(end, int | np.integer) for end in ends)
        or not 1 <= ends[0] <= ends[1]
    ):
        raise InputError(
            "length must be an integer of at least 1, or the two ends of a non-empty range, "
            f"got {length!r}"
        )
    low, high = ends
    return rng.randint(low, high + 1, size=n_sequences).astype(np.int64)


def _encode(symbols: NDArray[np.int64], n_observations: int, encoding: str) -> Any:
    if encoding == "index":
        return symbols[:, None]
    rows = np.arange(len(symbols))
    if encoding == "sparse":
        ones = np.ones(len(symbols))
        return sp.csr_matrix((ones, (rows, symbols)), shape=(len(symbols), n_observations))
    onehot = np.zeros((len(symbols), n_observations))
    onehot[rows, symbols] = 1.0
    return onehot
