"""M3N: the max-margin Markov network on chains (Taskar, Guestrin & Koller 2003).

A chain whose gold labelings beat all others by a margin that grows with the number of wrong labels. It is
trained in its dual, over the marginals of nodes and edges, which admits kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from seqlab.learning import BlockAscent, FitProgress
from seqlab.models._margin_bound import MarginBoundMixin
from seqlab.models._margin_chain import MARGIN_CONSTRAINTS, MarginChainLabeler
from seqlab.optim import FitState
from seqlab.structures.margins import MarginModel


class M3N(MarginBoundMixin, MarginChainLabeler):
    """Max-margin Markov network on chains, linear or with a kernel.

    Minimises ``|w|^2 / 2 + C sum_i max_y [ loss(y_i, y) - w' (phi(x_i, y_i) - phi(x_i, y)) ]``, where the
    loss is the number of wrong labels.

    Parameters
    ----------
    C : float, default=1.0
        Factor of the summed slack; larger values fit the training data more closely. As in SVM-hmm with
        ``C_hmm = C * n_sequences``.
    kernel : {"linear", "poly", "rbf", "precomputed"} or callable, default="linear"
        Similarity of the features of two steps; its matrices must be positive semidefinite. "poly" is
        ``(gamma a . b + coef0) ** degree``, "rbf" is ``exp(-gamma |a - b|^2)``. A callable takes two matrices
        and returns the matrix of similarities of their rows. With "precomputed", X holds the kernel between
        its own steps (rows) and all training steps in their order (columns).
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=1.0
        Constant of the "poly" kernel, not negative.
    gamma : float or None, default=None
        Factor of "poly" (default 1) and "rbf" (default ``1 / (n_features * variance of X)``).
    normalize : bool or "auto", default="auto"
        Divide the "poly" kernel by ``sqrt(k(a, a) k(b, b))``; with "linear", scale every row of X to unit
        length; "rbf" is normalised in any case. "auto" is True for "poly" only. The best ``C`` depends
        strongly on it: without it, ``k(a, a)`` of a cubic kernel on 128 pixels is about 10^5.
    edge_features : bool, default=False
        Whether the kernel, or the features, also apply to pairs of labels; L^2 times the cost.
    boundary : bool, default=True
        Whether the first and the last label have weights.
    class_weight : dict, "balanced" or None, default=None
        Cost of missing a step with a label of this class.
    solver : {"smo", "bcfw"}, default="smo"
        "smo" (sequential minimal optimisation) moves mass between labelings found by inference, on the
        marginals of nodes and edges. "bcfw" is block-coordinate Frank-Wolfe with pairwise steps on stored
        labelings. Both converge to the same optimum, but slowly if C or the scale of the features is large;
        `StructuredSVM` has a solver that does not depend on the scale.
    cache_size : float, default=2000
        Memory for rows of the kernel matrix, in MB. If the matrix of the distinct training steps does not
        fit, rows are computed on demand (fast if all features are 0 or 1).
    max_iter : int, default=1000
        Maximum number of passes over the data.
    tol : float, default=1e-3
        Relative duality gap, ``(primal - dual) / primal``, at which training stops.
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
    classes_ : array of shape (n_labels,)
    coef_ : array of shape (n_labels, n_features)
        Weights of the features; only if ``kernel="linear"``.
    edge_coef_ : array of shape (n_labels ** 2, n_features) or None
        Weights of the features for pairs of labels; only if ``kernel="linear"``.
    support_ : array of shape (n_support,)
        Indices of the distinct training steps with coefficients; with any other kernel.
    support_steps_ : matrix of shape (n_support, n_features) or None
        Their features; None if ``kernel="precomputed"``.
    dual_coef_ : array of shape (n_support, n_labels)
        Their coefficients: the score of label s is ``sum_j k(x, support_steps_[j]) dual_coef_[j, s]``.
    edge_dual_coef_ : array of shape (n_support, n_labels ** 2) or None
        The same for pairs of labels.
    transitions_ : array of shape (n_labels, n_labels)
        Weights from one label (row) to the next (column).
    start_, end_ : arrays of shape (n_labels,)
    squared_norm_ : float
        ``|w|^2``.
    objective_ : float
        Primal objective.
    n_iter_ : int
    converged_ : bool
    history_ : dict of str to list
        iteration, objective (primal), dual, gap (their difference, which bounds the distance from the
        optimum), seconds, n_updates.

    See Also
    --------
    StructuredSVM : the same objective with other losses, slack rescaling and other solvers.
    LinearChainCRF : probabilities instead of margins.

    Notes
    -----
    A pass costs O(T L^2) for inference, and O(T F L) with weights or O(T N) per changed label with a
    kernel, for T steps, L labels, F features and N distinct training steps. Equal training steps are
    merged. A kernel prediction costs one row of ``n_support`` kernel values per step.

    References
    ----------
    Taskar, Guestrin & Koller (2003), *Max-margin Markov networks*. Lacoste-Julien, Jaggi, Schmidt & Pletscher
    (2013), *Block-coordinate Frank-Wolfe optimization for structural SVMs*. Garber & Meshi (2016),
    *Linear-memory and decomposition-invariant linearly convergent conditional gradient*.

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab import M3N
    >>> X = [
    ...     np.array([[0.0, 0], [1, 1], [0, 1], [1, 0], [0, 0]]),
    ...     np.array([[1.0, 0], [0, 1], [1, 1], [0, 0], [0, 1]]),
    ... ]
    >>> y = [["same", "same", "other", "other", "same"], ["other", "other", "same", "same", "other"]]
    >>> model = M3N(kernel="poly", degree=2, C=10, random_state=0).fit(X, y)
    >>> model.predict([np.array([[1.0, 0], [1, 1], [0, 1], [0, 0]])])
    [array(['other', 'same', 'other', 'same'], dtype='<U5')]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **MARGIN_CONSTRAINTS,
        "solver": [StrOptions({"smo", "bcfw"})],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Callable[..., Any] = "linear",
        degree: int = 3,
        coef0: float = 1.0,
        gamma: float | None = None,
        normalize: bool | str = "auto",
        edge_features: bool = False,
        boundary: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        solver: str = "smo",
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
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.gamma = gamma
        self.normalize = normalize
        self.edge_features = edge_features
        self.boundary = boundary
        self.class_weight = class_weight
        self.solver = solver
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.tol = tol
        self.max_seconds = max_seconds
        self.callback = callback
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, lengths: Any = None) -> M3N:
        """Learn the weights or the kernel coefficients.

        Parameters
        ----------
        X, y, lengths : see `LinearChainCRF.fit`
        sample_weight : array of shape (n_sequences,), optional
            Factor of ``C`` for each sequence.
        """
        return self._fit(X, y, sample_weight, lengths)

    def _states(self, model: MarginModel) -> Iterator[FitState]:
        dual = model.marginal_dual() if self.solver == "smo" else model.plane_dual()
        random = check_random_state(self.random_state)
        return BlockAscent(
            model, dual, tol=self.tol, random=random, n_cached=0 if self.solver == "smo" else 2
        ).states()
