"""GraphCRF: conditional random field on graphs (relational Markov network; Taskar, Abbeel & Koller 2002)."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from seqlab.data.graphs import Graphs
from seqlab.inference.graphs import labeling_scores
from seqlab.learning import FitProgress, FitResult, Likelihood, PenalisedObjective, TrainingData
from seqlab.learning.curvature import LikelihoodCurvature
from seqlab.learning.likelihood import DataTerm
from seqlab.learning.pseudo_likelihood import PseudoLikelihood
from seqlab.models.graphs.graph_labeler import GRAPH_CONSTRAINTS, GraphLabeler
from seqlab.optim import lbfgs
from seqlab.structures.graph import BoundGraph


class GraphCRF(GraphLabeler):
    """Conditional random field on graphs (relational Markov network).

    Labels linked objects, such as web pages, jointly: every node has features, and every edge has a weight
    for each pair of labels, shared by all edges of the same type. Minimises the summed negative
    log-likelihood (or pseudo-likelihood) plus ``c2 |w|^2``.

    Parameters
    ----------
    c2 : float, default=1.0
        L2 penalty.
    objective : {"likelihood", "pseudo_likelihood"}, default="likelihood"
        What is maximised. The likelihood needs marginals in every iteration; they are approximate if
        inference is. The pseudo-likelihood, the product of the probabilities of each label given all other
        labels, is cheap and exact on any graph, but relies on the labels of neighbours more than prediction
        can.
    directed : bool, default=True
        Whether an edge from a to b differs from one from b to a: a full table of label pairs. Otherwise the
        table is symmetric.
    fit_intercept : bool, default=True
        Whether each label has a weight without a feature; it is penalised like the others.
    inference : {"auto", "exact", "loopy", "lp"}, default="auto"
        "exact" is possible on graphs without cycles and on graphs of small treewidth. "loopy" is loopy
        belief propagation. "lp" is a linear-programming relaxation for `predict`, and "loopy" for
        probabilities. "auto" is "exact" if the tables have at most ``max_entries`` entries, else "loopy".
    damping : float in [0, 1), default=0.5
        Share of the old message in the new one (loopy belief propagation).
    max_rounds : int, default=200
        Maximum rounds of loopy belief propagation.
    max_entries : int, default=4194304
        Maximum entries of the tables of exact inference on one graph, 8 bytes each.
    max_iter : int, default=1000
        Maximum number of iterations.
    tol : float, default=1e-4
        Training stops when the relative distance of the objective from the optimum is at most ``tol``.
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

    See Also
    --------
    GraphM3N : the maximum-margin model on graphs.
    LinearChainCRF : the model for sequences, much faster than a chain given as a graph.

    Notes
    -----
    X is a list of graphs, each a tuple ``(features, edges)`` or ``(features, edges, edge_features)``. An edge
    from a node to itself counts as a pair of equal labels; several edges between two nodes all count.

    References
    ----------
    Taskar, Abbeel & Koller (2002), *Discriminative probabilistic models for relational data*.

    Examples
    --------
    Two kinds of pages; pages link to pages of the other kind.

    >>> import numpy as np
    >>> from seqlab import GraphCRF
    >>> X = [(np.eye(2)[[0, 1, 0, 1]], [[0, 1], [1, 2], [2, 3]])]
    >>> y = [["course", "student", "course", "student"]]
    >>> crf = GraphCRF(c2=0.1).fit(X, y)
    >>> crf.predict([(np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]), [[0, 1], [1, 2]])])
    [array(['course', 'student', 'course'], dtype='<U7')]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "c2": [Interval(Real, 0, None, closed="left")],
        "objective": [StrOptions({"likelihood", "pseudo_likelihood"})],
        **GRAPH_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        c2: float = 1.0,
        objective: str = "likelihood",
        directed: bool = True,
        fit_intercept: bool = True,
        inference: str = "auto",
        damping: float = 0.5,
        max_rounds: int = 200,
        max_entries: int = 2**22,
        max_iter: int = 1000,
        tol: float = 1e-4,
        max_seconds: float | None = None,
        callback: Callable[[FitProgress], Any] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.c2 = c2
        self.objective = objective
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
    def fit(self, X: Any, y: Any, *, sample_weight: Any = None) -> GraphCRF:
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
        term: DataTerm
        if self.objective == "likelihood":
            term = Likelihood(bound, data.codes, data.sequence_weights)
        else:
            term = PseudoLikelihood(bound, data.codes, data.sequence_weights)
        objective = PenalisedObjective(term, self.c2)
        zero = np.zeros(objective.n_params)
        scales = LikelihoodCurvature(objective).at_zero(zero)
        result = self._train(
            lbfgs(
                objective,
                zero,
                max_iter=self.max_iter,
                tol=self.tol,
                preconditioner=scales,
                n_jobs=self.n_jobs,
            ),
            data,
            lambda w: self._store(bound.structure, w),
            tol=self.tol,
            first_iteration=0,
        )
        self.objective_ = result.state.objective
        if not self.converged_ and self.objective == "likelihood":
            result.hint = _inference_hint(bound, result.state.point)
        return result

    def predict_proba(self, X: Any) -> list[NDArray[np.float64]]:
        """Return the probability of each label at each node; approximate if inference is.

        Parameters
        ----------
        X : list of graphs

        Returns
        -------
        list of arrays of shape (n_nodes, n_labels)
            Columns in the order of ``classes_``.
        """
        graphs, layout = self._read(X)
        restored: list[NDArray[np.float64]] = layout.restore(
            self._predict_marginals(graphs), graphs.offsets
        )
        return restored

    def sequence_log_proba(self, X: Any, y: Any) -> NDArray[np.float64]:
        """Return the log-probability of each given labeling of a graph; approximate if inference is.

        A labeling with a label that was not seen in training has probability 0 (``-inf``).

        Parameters
        ----------
        X : list of graphs
        y : list of label sequences

        Returns
        -------
        array of shape (n_graphs,)
        """
        graphs, layout = self._read(X)
        codes = self._read_labels(y, graphs, layout).codes
        scores = self._scores(graphs)
        log_z = self._inference().marginals(scores, n_jobs=self.n_jobs).log_z
        out = labeling_scores(scores, np.maximum(codes, 0)) - log_z
        unseen = np.flatnonzero(codes < 0)
        out[np.searchsorted(graphs.offsets, unseen, side="right") - 1] = -np.inf
        return out

    def _predict_marginals(self, X: Graphs) -> NDArray[np.float64]:
        return self._inference().marginals(self._scores(X), n_jobs=self.n_jobs).node


def _inference_hint(bound: BoundGraph, w: NDArray[np.float64]) -> str:
    """Return a hint if belief propagation does not converge at the last weights, else ''."""
    scores = bound.scores(bound.source(w), bound.X.block(0, len(bound.X)))
    n_failed = int((~bound.inference.marginals(scores).converged).sum())
    if n_failed == 0:
        return ""
    return (
        f"; belief propagation does not converge on {n_failed} of {len(bound.X)} graphs, so that the "
        "gradient is not exact: raise damping, max_rounds or c2, or use objective='pseudo_likelihood'"
    )
