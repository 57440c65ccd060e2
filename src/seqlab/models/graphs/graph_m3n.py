"""GraphM3N: the max-margin Markov network on graphs (Taskar, Guestrin & Koller 2004)."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from seqlab.learning import FitProgress, FitResult, TrainingData
from seqlab.learning.relaxed_margin import RelaxedMargin
from seqlab.models.graphs.graph_labeler import GRAPH_CONSTRAINTS, GraphLabeler


class GraphM3N(GraphLabeler):
    """Max-margin Markov network on graphs.

    Labels linked objects jointly, like `GraphCRF`, but trains by maximum margin with the number of wrong
    labels as loss::

        min_w  |w|^2 / 2 + C sum_x [ max_y (score(y) + number of wrong labels in y) - score(true labels) ]

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed slack of the graphs.
    directed : bool, default=True
        Whether an edge from a to b differs from one from b to a: a full table of label pairs. Otherwise the
        table is symmetric.
    fit_intercept : bool, default=True
        Whether each label has a weight without a feature; it is penalised like the others.
    inference : {"auto", "exact", "loopy", "lp"}, default="auto"
        How the maximum is found. "exact" is possible on graphs without cycles and of small treewidth. "lp"
        solves the linear-programming relaxation: training then minimises an upper bound (the relaxed dual
        of the paper). With "loopy" the maximum may be missed: the reported gap is then a lower estimate.
        "auto" is "exact" if the tables have at most ``max_entries`` entries, else "loopy".
    damping : float in [0, 1), default=0.5
        Share of the old message in the new one (loopy belief propagation).
    max_rounds : int, default=200
        Maximum rounds of loopy belief propagation.
    max_entries : int, default=4194304
        Maximum entries of the tables of exact inference on one graph, 8 bytes each.
    max_iter : int, default=1000
        Maximum number of passes over the graphs.
    tol : float, default=1e-3
        Training stops at a relative duality gap of ``tol``.
    max_seconds : float or None, default=None
        Training stops after the iteration in which this time is exceeded, with a warning and
        ``converged_ = False``.
    callback : callable or None, default=None
        Called after every iteration with a `seqlab.learning.FitProgress`; training stops if it returns
        True. `seqlab.save` leaves it out.
    n_jobs : int, default=None
        Number of threads; the result is bitwise identical for any number.
    verbose : bool, default=False
        Show progress on standard error.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    coef_ : array of shape (n_labels, n_features)
        Weights of the node features.
    intercept_ : array of shape (n_labels,)
    edge_coef_ : array of shape (n_edge_features, n_labels, n_labels)
        Weights of the pairs of labels, for each type (or feature) of edges.
    edge_types_ : array or None
        The types of edges, if they have types.
    n_iter_ : int
    converged_ : bool
    objective_ : float
    history_ : dict of str to list
        iteration, objective, seconds, gap, dual and n_planes.

    See Also
    --------
    GraphCRF : the same network, trained by likelihood, with probabilities.
    M3N : the model for sequences, with kernels.

    References
    ----------
    Taskar, Guestrin & Koller (2004), *Max-margin Markov networks*.

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab import GraphM3N
    >>> X = [(np.eye(2)[[0, 1, 0, 1]], [[0, 1], [1, 2], [2, 3]])]
    >>> y = [["course", "student", "course", "student"]]
    >>> model = GraphM3N(C=10).fit(X, y)
    >>> model.predict([(np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]), [[0, 1], [1, 2]])])
    [array(['course', 'student', 'course'], dtype='<U7')]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        **GRAPH_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        directed: bool = True,
        fit_intercept: bool = True,
        inference: str = "auto",
        damping: float = 0.5,
        max_rounds: int = 200,
        max_entries: int = 2**22,
        max_iter: int = 1000,
        tol: float = 1e-3,
        max_seconds: float | None = None,
        callback: Callable[[FitProgress], Any] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.C = C
        self.directed = directed
        self.fit_intercept = fit_intercept
        self.inference = inference
        self.damping = damping
        self.max_rounds = max_rounds
        self.max_entries = max_entries
        self.max_iter = max_iter
        self.tol = tol
        self.max_seconds = max_seconds
        self.callback = callback
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, *, sample_weight: Any = None) -> GraphM3N:
        """Learn the weights.

        Parameters
        ----------
        X : list of graphs
            Each a tuple ``(features, edges)`` or ``(features, edges, edge_features)``; see
            `seqlab.data.Graph`.
        y : list of label sequences
            One label per node of each graph.
        sample_weight : array of shape (n_graphs,), optional
            Weight of each graph.
        """
        return self._fit(X, y, sample_weight, None)

    def _learn(self, data: TrainingData) -> FitResult:
        bound = self._bind(data)
        learner = RelaxedMargin(bound, data.codes, self.C * data.sequence_weights)
        result = self._train(
            learner.states(self.tol),
            data,
            lambda w: self._store(bound.structure, w),
            tol=self.tol,
            first_iteration=0,
        )
        self.objective_ = result.state.objective
        return result
