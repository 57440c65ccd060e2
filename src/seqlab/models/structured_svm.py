"""StructuredSVM: the structural support vector machine on chains, with several losses and solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from seqlab.data.errors import InputError
from seqlab.data.tags import phrase_rules
from seqlab.learning import (
    MAX_GROUPS,
    BlockAscent,
    CuttingPlane,
    FitProgress,
    SubgradientDescent,
    TrainingData,
)
from seqlab.models._margin_bound import MarginBoundMixin
from seqlab.models._margin_chain import MARGIN_CONSTRAINTS, MarginChainLabeler
from seqlab.optim import FitState
from seqlab.structures.chain import ChainMarginModel
from seqlab.structures.margins import MarginModel, SpanRules

# Passes over stored labelings after each pass with inference ("bcfw"), and the gain below which "n-slack"
# stops them, as a share of tol times the primal objective.
N_CACHED = 2
CACHED_GAIN = 0.05
# C times the mean squared length of the features of a step, from which "auto" chooses cutting planes. On
# letters (28) "bcfw" is 5 times as fast; on small chains with features of 250 it does not converge in 1,000
# passes, and cutting planes need 30 iterations.
LARGE_SCALE = 100.0
TAG_SCHEMES = ("IOB2", "IOBES", "BILOU")


class StructuredSVM(MarginBoundMixin, MarginChainLabeler):
    """Structural support vector machine on chains.

    Minimises ``|w|^2 / 2 + C sum_i xi_i``, where the slack ``xi_i`` is the largest violation over all
    labelings:

    - margin rescaling: ``loss(y) - w' psi_i(y)``,
    - slack rescaling: ``loss(y) (1 - w' psi_i(y))``,

    with ``psi_i(y) = phi(x_i, y_i) - phi(x_i, y)``.

    Parameters
    ----------
    C : float, default=1.0
        Factor of the summed slack.
    rescaling : {"margin", "slack"}, default="margin"
        Slack rescaling ignores labelings whose score is lower by more than 1 than the gold one, whatever
        their loss. It needs the Hamming loss without class weights, and O(T^2 L^2) operations for a
        sequence of T steps.
    loss : "hamming", "span" or array of shape (n_labels, n_labels), default="hamming"
        Number of wrong labels; number of missed and of wrong phrases, if the labels are tags (IOB2, IOBES or
        BILOU); or the cost of predicting one label (column) instead of another (row), in the order of
        ``classes_``.
    class_weight : dict, "balanced" or None, default=None
        Factor of the loss of steps with a label of this class.
    solver : {"auto", "bcfw", "cutting_plane", "n-slack", "1-slack", "subgradient"}, default="auto"
        All of them converge to the same optimum.

        - "bcfw" is block-coordinate Frank-Wolfe with pairwise steps on stored labelings: one sequence at a
          time. It is the fastest with margin rescaling, unless C or the scale of the features is large.
        - "cutting_plane" has working sets for up to 16 groups of sequences, and is stabilised. It does not
          depend on the scale of the features, and is the only one to use with slack rescaling of sequences
          of more than about 20 steps. With a kernel it needs much memory: ``n_labels`` numbers for each
          distinct step, for hundreds of planes.
        - "1-slack" is the same with one working set for all sequences, "n-slack" has one for each sequence.
        - "subgradient" is stochastic subgradient descent with averaging, which runs ``max_iter`` passes and
          has no certificate.
        - "auto" is "cutting_plane" with slack rescaling, and without a kernel if C times the mean squared
          length of the features of a step exceeds 100; otherwise "bcfw".
    kernel : {"linear", "poly", "rbf", "precomputed"} or callable, default="linear"
        See `M3N`.
    degree, coef0, gamma, normalize, edge_features, boundary, cache_size
        See `M3N`.
    max_iter : int, default=1000
        Maximum number of passes over the data (iterations of a cutting-plane method).
    tol : float, default=1e-3
        Relative duality gap at which training stops.
    max_seconds : float or None, default=None
        Training stops after the pass in which this time is exceeded, with a warning.
    callback : callable or None, default=None
        Called after every pass with a `seqlab.learning.FitProgress`; training stops if it returns True.
        `seqlab.save` leaves it out.
    random_state : int, RandomState or None, default=None
        Draws the order of the sequences in each pass.
    n_jobs : int, default=None
        Number of threads for prediction; training is sequential.
    verbose : bool, default=False
        Show progress on standard error.

    Attributes
    ----------
    classes_, coef_, transitions_, start_, end_, edge_coef_
        See `M3N`.
    support_, support_steps_, dual_coef_, edge_dual_coef_
        With a kernel; see `M3N`.
    squared_norm_ : float
        ``|w|^2``.
    objective_ : float
        Primal objective.
    n_iter_ : int
    converged_ : bool
    history_ : dict of str to list
        iteration, objective (primal), seconds and, if the solver has a certificate, dual, gap and n_updates.

    See Also
    --------
    M3N : the same model for the Hamming loss, trained on marginals.

    References
    ----------
    Tsochantaridis, Joachims, Hofmann & Altun (2005), *Large margin methods for structured and interdependent
    output variables*. Joachims, Finley & Yu (2009), *Cutting-plane training of structural SVMs*.
    Lacoste-Julien, Jaggi, Schmidt & Pletscher (2013), *Block-coordinate Frank-Wolfe optimization for
    structural SVMs*. Shalev-Shwartz, Singer & Srebro (2007), *Pegasos*.

    Examples
    --------
    >>> from seqlab import StructuredSVM
    >>> X = [[["w=the"], ["w=dog"], ["w=barks"]], [["w=dogs"], ["w=bark"]]]
    >>> y = [["DET", "NOUN", "VERB"], ["NOUN", "VERB"]]
    >>> svm = StructuredSVM(C=10, random_state=0).fit(X, y)
    >>> svm.predict([[["w=the"], ["w=cat"], ["w=barks"]]])
    [array(['DET', 'NOUN', 'VERB'], dtype='<U4')]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **MARGIN_CONSTRAINTS,
        "rescaling": [StrOptions({"margin", "slack"})],
        "loss": [StrOptions({"hamming", "span"}), "array-like"],
        "solver": [
            StrOptions({"auto", "bcfw", "cutting_plane", "n-slack", "1-slack", "subgradient"})
        ],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        rescaling: str = "margin",
        loss: Any = "hamming",
        class_weight: dict[Any, float] | str | None = None,
        solver: str = "auto",
        kernel: str | Callable[..., Any] = "linear",
        degree: int = 3,
        coef0: float = 1.0,
        gamma: float | None = None,
        normalize: bool | str = "auto",
        edge_features: bool = False,
        boundary: bool = True,
        cache_size: float = 2000,
        max_iter: int = 1000,
        tol: float = 1e-3,
        max_seconds: float | None = None,
        callback: Callable[[FitProgress], Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.C = C
        self.rescaling = rescaling
        self.loss = loss
        self.class_weight = class_weight
        self.solver = solver
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.gamma = gamma
        self.normalize = normalize
        self.edge_features = edge_features
        self.boundary = boundary
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.tol = tol
        self.max_seconds = max_seconds
        self.callback = callback
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, lengths: Any = None
    ) -> StructuredSVM:
        """Learn the weights or the kernel coefficients.

        Parameters
        ----------
        X, y, lengths : see `LinearChainCRF.fit`
        sample_weight : array of shape (n_sequences,), optional
            Factor of ``C`` for each sequence.
        """
        return self._fit(X, y, sample_weight, lengths)

    @property
    def _rescales_slack(self) -> bool:  # type: ignore[override]
        return self.rescaling == "slack"

    @property
    def _can_warn(self) -> bool:  # type: ignore[override]
        return self.solver != "subgradient"  # which has no stopping rule

    def _costs(self, data: TrainingData) -> NDArray[np.float64]:
        is_hamming = isinstance(self.loss, str) and self.loss == "hamming"
        if isinstance(self.loss, str) and self.loss == "span" and self.class_weight is not None:
            raise InputError("loss='span' does not support class_weight")
        if self._rescales_slack and (not is_hamming or self.class_weight is not None):
            raise InputError("rescaling='slack' needs loss='hamming' without class_weight")
        costs = super()._costs(data)
        if isinstance(self.loss, str):
            return costs
        return costs * check_loss_matrix(self.loss, data.n_labels)[data.codes]

    def _span_rules(self, data: TrainingData) -> SpanRules | None:
        if not isinstance(self.loss, str) or self.loss != "span":
            return None
        for scheme in TAG_SCHEMES:
            try:
                found = phrase_rules(data.classes.tolist(), scheme)
            except InputError:
                continue
            return SpanRules(found.continues, found.types)
        raise InputError(
            "loss='span' needs labels that are tags of IOB2, IOBES or BILOU, such as 'B-NP', 'I-NP' and 'O'"
        )

    def _states(self, model: MarginModel) -> Iterator[FitState]:
        random = check_random_state(self.random_state)
        solver = self.solver
        if solver == "auto":
            solver = "cutting_plane" if self._needs_planes(model) else "bcfw"
        if solver in ("cutting_plane", "1-slack"):
            n_groups = 1 if solver == "1-slack" else MAX_GROUPS
            return CuttingPlane(model, tol=self.tol, n_groups=n_groups).states()
        if solver == "subgradient":
            return SubgradientDescent(model, random=random).states()
        dual = model.plane_dual()
        options = {"tol": self.tol, "random": random, "n_cached": N_CACHED}
        if solver == "n-slack":
            options["cached_gain"] = CACHED_GAIN
        return BlockAscent(model, dual, **options).states()

    def _needs_planes(self, model: MarginModel) -> bool:
        """Return whether steps on single sequences would converge too slowly."""
        if self._rescales_slack:
            return True
        if not self._is_linear:
            return False  # planes of kernel coefficients take too much memory
        assert isinstance(model, ChainMarginModel)
        data, n_steps = model.X.matrix.data, max(model.X.n_steps, 1)
        return float(self.C) * float((data**2).sum()) / n_steps > LARGE_SCALE


def check_loss_matrix(loss: Any, n_labels: int) -> NDArray[np.float64]:
    """Return a matrix of costs; raise an error if it is not valid."""
    try:
        matrix = np.asarray(loss, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("loss must be 'hamming', 'span' or a matrix of numbers") from None
    if matrix.shape != (n_labels, n_labels):
        raise InputError(f"loss has shape {matrix.shape}, but there are {n_labels} labels")
    if not np.isfinite(matrix).all() or (matrix < 0.0).any():
        i, j = np.argwhere(~np.isfinite(matrix) | (matrix < 0.0))[0]
        raise InputError(f"loss[{i}, {j}] is {matrix[i, j]}; costs must be finite and not negative")
    if np.diagonal(matrix).any():
        i = int(np.argmax(np.diagonal(matrix) != 0.0))
        raise InputError(f"loss[{i}, {i}] is {matrix[i, i]}; the right label must cost 0")
    return matrix
