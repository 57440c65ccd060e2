"""StructHKL: a max-margin chain over automatically chosen conjunctions of binary inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.inference import ChainScores
from seqlab.kernels import merge_equal_rows
from seqlab.learning import FitProgress, FitResult, TrainingData, class_weights
from seqlab.models.base import LIMIT_CONSTRAINTS
from seqlab.models.chain_labeler import ChainLabeler
from seqlab.relational.hkl.lattice import ActiveLattices
from seqlab.relational.hkl.rules import Rule, binary_inputs, conjunction_columns
from seqlab.relational.hkl.solver import HKLModel, HKLSolver
from seqlab.structures import miss_costs
from seqlab.structures.chain import ChainMarginModel
from seqlab.structures.margins import MarginProblem
from seqlab.utils.training_clock import training_time

Floats = NDArray[np.float64]


class StructHKL(ChainLabeler):
    """Max-margin chain that learns which conjunctions of binary inputs to use.

    The features of a label are all conjunctions of inputs, such as "kitchen door and fridge"; there are 2^n
    of them for n inputs. Minimises

        ``Omega(f)^2 / 2 + |f_T|^2 / 2 + C sum_i xi_i``,  ``Omega(f) = sum_v d_v |f_D(v)|_rho``

    where ``D(v)`` are the conjunctions that contain ``v``, ``d_v = length_penalty^|v|``, ``f_T`` are the
    weights of transitions and the slacks ``xi_i`` are those of `StructuredSVM`. The norm makes ``f`` zero on
    most conjunctions, and a conjunction is only used together with all of its parts. Only the conjunctions
    that can matter are ever visited; the duality gap is certified for all 2^n of them.

    Parameters
    ----------
    C : float, default=1.0
        Factor of the summed slack.
    rho : float, default=1.5
        Norm within the groups, in (1, 2]: smaller values give fewer conjunctions within the chosen part of
        the lattice.
    length_penalty : float, default=2.0
        The penalty of a conjunction is multiplied by this number for every further input; more than 1 prefers
        short conjunctions.
    max_length : int or None, default=None
        Limit on the inputs of a conjunction.
    max_nodes : int, default=20000
        Limit on the conjunctions in the active set, over all labels. If it is reached, training stops with a
        warning that says so, as soon as the weights of these conjunctions are optimal within ``tol``. The
        empty conjunction and those of one input are always in the set.
    label_wise : bool, default=True
        Whether each label chooses its own conjunctions. Otherwise all labels share them.
    rescaling : {"margin", "slack"}, default="margin"
        See `StructuredSVM`.
    class_weight : dict, "balanced" or None, default=None
        Factor of the loss of steps with a label of this class.
    boundary : bool, default=True
        Whether the first and the last label of a sequence have weights.
    max_iter : int, default=1000
        Maximum number of steps of mirror descent.
    tol : float, default=1e-2
        Relative duality gap at which training stops.
    max_seconds : float or None, default=None
        Training stops when this time is exceeded, with a warning.
    callback : callable or None, default=None
        Called after every step with a `seqlab.learning.FitProgress`; training stops if it returns True.
        `seqlab.save` leaves it out.
    n_jobs : int, default=None
        Number of threads for prediction; training is sequential.
    verbose : bool, default=False
        Show progress on standard error.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    conjunctions_ : list of tuples of int
        Inputs of each chosen conjunction, by column; the empty conjunction is the bias.
    conjunction_coef_ : array of shape (n_labels, n_conjunctions)
    is_selected_ : boolean array of shape (n_labels, n_conjunctions)
        Which conjunctions each label uses; with a conjunction, all of its parts are used.
    rules_ : list of Rule
        ``(label, conditions, weight)``, the largest weights first.
    transitions_ : array of shape (n_labels, n_labels)
    start_, end_ : arrays of shape (n_labels,)
    objective_ : float
    n_iter_ : int
    converged_ : bool
    history_ : dict of str to list
        iteration, objective, seconds, gap (certified for the whole lattice; infinite before the first check),
        active_gap (for the conjunctions in the active set), n_conjunctions, n_planes.

    See Also
    --------
    StructuredSVM : the same model without conjunctions.

    Notes
    -----
    An input is on if its value is positive. Equal steps are merged: the cost depends on the number of
    distinct steps U. A step of mirror descent takes one Viterbi search per new cutting plane, and O(K^2 W)
    operations for K planes and W active conjunctions; a check of the sufficient condition O(U^2) for each
    candidate.

    References
    ----------
    Nair, Nagesh & Ramakrishnan (2012), *Probing the space of optimal Markov logic networks for sequence
    labeling*. Jawanpuria, Jagarlapudi & Ramakrishnan (2011), *Efficient rule ensemble learning using
    hierarchical kernels*. Bach (2009), *High-dimensional non-linear variable selection through hierarchical
    kernel learning*.

    Examples
    --------
    >>> from seqlab import StructHKL
    >>> both, door, light = ["door", "light"], ["door"], ["light"]
    >>> X = [[door, both, both, light, [], door, light, both], [both, light, light, both, both, door, []]]
    >>> y = [["enter" if step == both else "idle" for step in steps] for steps in X]
    >>> model = StructHKL(C=10, boundary=False).fit(X, y)
    >>> model.predict([[["light"], ["door"], ["door", "light"]]])
    [array(['idle', 'idle', 'enter'], dtype='<U5')]
    >>> [rule.conditions for rule in model.rules_ if len(rule.conditions) == 2]
    [('door', 'light'), ('door', 'light')]
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "rho": [Interval(Real, 1, 2, closed="right")],
        "length_penalty": [Interval(Real, 0, None, closed="neither")],
        "max_length": [Interval(Integral, 0, None, closed="left"), None],
        "max_nodes": [Interval(Integral, 1, None, closed="left")],
        "label_wise": ["boolean"],
        "rescaling": [StrOptions({"margin", "slack"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "boundary": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        **LIMIT_CONSTRAINTS,
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        rho: float = 1.5,
        length_penalty: float = 2.0,
        max_length: int | None = None,
        max_nodes: int = 20_000,
        label_wise: bool = True,
        rescaling: str = "margin",
        class_weight: dict[Any, float] | str | None = None,
        boundary: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-2,
        max_seconds: float | None = None,
        callback: Callable[[FitProgress], Any] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.C = C
        self.rho = rho
        self.length_penalty = length_penalty
        self.max_length = max_length
        self.max_nodes = max_nodes
        self.label_wise = label_wise
        self.rescaling = rescaling
        self.class_weight = class_weight
        self.boundary = boundary
        self.max_iter = max_iter
        self.tol = tol
        self.max_seconds = max_seconds
        self.callback = callback
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, lengths: Any = None) -> StructHKL:
        """Learn the conjunctions, their weights and the weights of transitions.

        Parameters
        ----------
        X, y, lengths : see `LinearChainCRF.fit`
            An input is on if its value is positive.
        sample_weight : array of shape (n_sequences,), optional
            Factor of ``C`` for each sequence.
        """
        return self._fit(X, y, sample_weight, lengths)

    def _learn(self, data: TrainingData) -> FitResult:
        return self._learn_conjunctions(data, training_time())

    def _learn_conjunctions(self, data: TrainingData, began: float) -> FitResult:
        """Learn from binary inputs, in a fit that began at a given time."""
        rescales_slack = self.rescaling == "slack"
        if rescales_slack and self.class_weight is not None:
            raise InputError("rescaling='slack' does not support class_weight")
        weights = class_weights(self.class_weight, data)
        costs = miss_costs(data.codes, data.n_labels, weights[data.codes])
        limits = float(self.C) * data.sequence_weights
        problem = MarginProblem(np.array(data.codes), costs, limits, rescales_slack)
        rows, place = merge_equal_rows(binary_inputs(data.X.matrix))
        model = ChainMarginModel(
            indicator_sequences(place, rows.shape[0], data.X), problem, boundary=self.boundary
        )
        lattices = ActiveLattices(
            rows.toarray() > 0.0,
            data.n_labels,
            label_wise=self.label_wise,
            a=self.length_penalty,
            rho=self.rho,
            max_length=self.max_length,
        )
        deadline = began + (math.inf if self.max_seconds is None else self.max_seconds)
        solver = HKLSolver(
            model, lattices, tol=self.tol, max_nodes=self.max_nodes, deadline=deadline
        )
        result = self._train(solver.states(), data, self._store, tol=self.tol, began=began)
        self.objective_ = result.state.objective
        return result

    def _store(self, point: HKLModel) -> None:
        nodes, n_labels = point.nodes, point.table.shape[1]
        self.conjunction_indices_ = np.array([b for node in nodes for b in node], dtype=np.int32)
        sizes = [len(node) for node in nodes]
        self.conjunction_offsets_ = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        self.conjunction_coef_ = np.ascontiguousarray(point.table.T)
        self.is_selected_ = np.ascontiguousarray(point.is_selected.T)
        pair = n_labels * n_labels
        none = np.zeros(n_labels)
        self.transitions_ = point.arcs[:pair].reshape(n_labels, n_labels).copy()
        self.start_ = point.arcs[pair : pair + n_labels].copy() if self.boundary else none
        self.end_ = point.arcs[pair + n_labels :].copy() if self.boundary else none.copy()

    @property
    def conjunctions_(self) -> list[tuple[int, ...]]:
        """Inputs of each chosen conjunction, by column."""
        check_is_fitted(self)
        parts = np.split(self.conjunction_indices_, self.conjunction_offsets_[1:-1])
        return [tuple(part.tolist()) for part in parts[: self.conjunction_offsets_.size - 1]]

    def _input_names(self) -> list[str]:
        """Return the names of the inputs."""
        if self.vectorizer_ is not None:
            return [str(name) for name in self.vectorizer_.get_feature_names_out()]
        numbered = [f"x{b}" for b in range(self.n_features_in_)]
        names = getattr(self, "column_names_", None) or numbered
        return [str(name) for name in getattr(self, "feature_names_in_", names)]

    def _read_training_features(self, X: Any, y: Any, lengths: Any) -> tuple[Sequences, Any]:
        sequences, layout = super()._read_training_features(X, y, lengths)
        # The names of `Sequences` are for the rules only: other data need not have them in `predict`.
        names = None if self.vectorizer_ is not None else sequences.feature_names
        self.column_names_ = None if names is None else [str(name) for name in names]
        return sequences, layout

    @property
    def rules_(self) -> list[Rule]:
        """The chosen conjunctions of every label, the largest weights first."""
        check_is_fitted(self)
        names = self._input_names()
        conditions = [tuple(names[b] for b in node) for node in self.conjunctions_]
        rules = [
            Rule(label, conditions[k], float(self.conjunction_coef_[s, k]))
            for s, label in enumerate(self.classes_.tolist())
            for k in np.flatnonzero(self.is_selected_[s])
        ]
        return sorted(rules, key=lambda rule: -abs(rule.weight))

    def describe(self, n: int | None = None) -> str:
        """Return the rules as text, one per line, the largest weights first.

        Parameters
        ----------
        n : int, optional
            Number of rules; all by default.
        """
        return "\n".join(str(rule) for rule in self.rules_[:n])

    def _check_state(self) -> None:
        super()._check_state()
        if not state_checks.has_fitted_attributes(self):
            return
        n_labels = self.classes_.size
        self._check_chain()
        names = getattr(self, "column_names_", None)
        if names is not None:
            is_valid = isinstance(names, list) and all(isinstance(name, str) for name in names)
            state_checks.require(is_valid and len(names) == self.n_features_in_, "column_names_")
        state_checks.check_array(self.end_, "end_", (n_labels,))
        offsets = state_checks.check_array(
            self.conjunction_offsets_, "conjunction_offsets_", (None,), "i"
        )
        ascending = offsets.size > 0 and offsets[0] == 0 and (np.diff(offsets) >= 0).all()
        state_checks.require(ascending, "conjunction_offsets_")
        # Only the first conjunction may be empty.
        state_checks.require((np.diff(offsets)[1:] > 0).all(), "conjunction_offsets_")
        state_checks.check_array(
            self.conjunction_indices_,
            "conjunction_indices_",
            (int(offsets[-1]),),
            "i",
            low=0,
            high=self._n_inputs(),
        )
        shape = (n_labels, offsets.size - 1)
        state_checks.check_array(self.conjunction_coef_, "conjunction_coef_", shape)
        state_checks.check_array(self.is_selected_, "is_selected_", shape, "b")

    def _n_inputs(self) -> int:
        """Return the number of inputs of the conjunctions."""
        return self.n_features_in_

    def _block_inputs(self, block: SequenceBlock) -> sp.csr_matrix:
        """Return the binary inputs of a block."""
        return binary_inputs(block.matrix[block.begin : block.begin + block.n_steps])

    def _block_scores(self, block: SequenceBlock, prepared: Any) -> ChainScores:
        columns = conjunction_columns(
            self._block_inputs(block), self.conjunction_indices_, self.conjunction_offsets_
        )
        unary = np.ascontiguousarray(columns @ self.conjunction_coef_.T)
        return ChainScores(unary, self.transitions_, self.start_, self.end_, block.offsets)


def indicator_sequences(place: NDArray[np.int64], n_rows: int, X: Sequences) -> Sequences:
    """Return sequences whose only feature at each step is the number of its distinct row."""
    steps = np.arange(place.size + 1)
    matrix = sp.csr_matrix((np.ones(place.size), place, steps), (place.size, n_rows))
    return Sequences(matrix, np.array(X.offsets))
