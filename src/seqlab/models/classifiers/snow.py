r"""SNoW: a sparse network of Winnows.

There is one node per class. The activation of node ``c`` is a sum over its links to the active
features,

    \Omega_c(x) = \sum_{f \text{ active, linked to } c} w_{cf} x_f ,

and every weight is positive. If a node did not fire but should have, its active weights are promoted; if
it fired but should not have, they are demoted, both by a factor:

    w_{cf} \leftarrow w_{cf} \alpha^{x_f}  (\alpha > 1)
    w_{cf} \leftarrow w_{cf} \beta^{x_f}   (0 < \beta < 1)

The number of mistakes grows only with the logarithm of the number of irrelevant features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Integral, Interval, Real
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.learning import FitProgress, run_fit, unchanged_on_failure
from seqlab.models.base import LIMIT_CONSTRAINTS
from seqlab.models.classifiers._snow_links import add_links
from seqlab.optim import FitState


class SNoW(ClassifierMixin, BaseEstimator):
    r"""Sparse network of Winnows, a multiplicative learner for many sparse features.

    Each class has a node, which is linked only to features that were active in examples of the class. Node
    ``c`` fires if its activation ``Omega_c(x)``, the sum of ``weight * strength`` over its links, reaches
    the threshold ``theta``. Probabilities are sigmoids of the activations, normalised over the classes::

        P(c | x) = sigma_c / sum_k sigma_k        sigma_c = 1 / (1 + exp(theta - Omega_c(x)))

    Parameters
    ----------
    promotion : float, default=1.35
        Factor, above 1, on the active weights of a node that should have fired.
    demotion : float, default=0.8
        Factor, between 0 and 1, on the active weights of a node that should not have fired.
    threshold : float, default=4.0
        Activation at which a node fires.
    initial_weight : float, default=0.2
        Weight of a new link.
    max_iter : int, default=5
        Maximum number of passes over the data; training ends after a pass without an update.
    margin : float, default=1.0
        Thick separator: a node is updated unless its activation is on the correct side of the threshold by
        at least this much. With 0, only mistakes cause updates.
    averaged : bool, default=True
        Whether to predict with the mean of the weights after each example instead of the last weights.
    min_count : int, default=1
        A feature is linked to the node of a class once it was active in this many examples of the class.
    shuffle : bool, default=True
        Whether to visit the examples in a new random order in each pass.
    max_seconds : float or None, default=None
        `fit` stops after the pass in which this time is exceeded, with a warning.
    callback : callable or None, default=None
        Called by `fit` after every pass with a `seqlab.learning.FitProgress`; training stops if it returns
        True. `seqlab.save` leaves it out.
    random_state : int, RandomState or None
        For shuffling.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    weights_ : CSR matrix of shape (n_features, n_classes)
        Weights for prediction; features and classes without a stored entry are not linked.
    links_ : CSR matrix of shape (n_features, n_classes)
        Weights after the last example, from which `partial_fit` continues; 0 for a link not made yet.
    n_seen_ : int
        Examples processed, over all passes.
    n_iter_ : int
        Passes done.
    converged_ : bool
        Whether the last pass updated no node.
    history_ : dict of str to list
        For each pass ``iteration``, ``objective`` (examples whose node was not the most active one, before
        links were made for them), ``seconds`` and ``n_updates``.

    See Also
    --------
    TemperedClassifier : temperature scaling of the probabilities of any classifier.
    ClassifierHMM, ProjectionMarkovModel, PhraseInference : classifiers over sequences.

    Notes
    -----
    Feature values are strengths of at least 0, usually 1 for a present feature. Negative values raise an
    error: they would turn a promotion into a demotion. An example costs O(active features x links).

    Weights stay between ``exp(-30)`` and ``exp(30)``, so that repeated updates never make them zero or
    infinite. There is no bias; add a constant feature instead. If two classes are equally active, the first
    is predicted.

    Links are made in the first pass, example by example. One pass of `fit` without shuffling therefore gives
    the same network as `partial_fit` on parts of the same examples.

    References
    ----------
    Littlestone, "Learning quickly when irrelevant attributes abound: a new linear-threshold
    algorithm", Machine Learning 2, 1988. Roth, "Learning to resolve natural language ambiguities: a
    unified approach", AAAI 1998. Punyakanok and Roth, "The use of classifiers in sequential inference",
    NIPS 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from seqlab import SNoW
    >>> X = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]])
    >>> y = ["vowel", "vowel", "consonant", "consonant"]
    >>> model = SNoW(max_iter=50, random_state=0).fit(X, y)
    >>> model.predict([[1, 0, 0, 0], [0, 1, 0, 0]])
    array(['vowel', 'consonant'], dtype='<U9')
    >>> model.predict_proba([[1, 0, 0, 0]]).shape
    (1, 2)
    """

    # Defaults for models that were saved before these parameters existed.
    max_seconds: float | None = None
    callback: Callable[[FitProgress], Any] | None = None

    links_: Any
    n_iter_: int
    history_: dict[str, list[float]]
    # For each link: its positive examples, the sum of its weight over the examples up to its last change, and
    # the number of that example.
    _counts: NDArray[np.int32]
    _totals: NDArray[np.float64]
    _touched: NDArray[np.int64]

    _parameter_constraints: dict[str, list[Any]] = {
        "promotion": [Interval(Real, 1, None, closed="neither")],
        "demotion": [Interval(Real, 0, 1, closed="neither")],
        "threshold": [Interval(Real, 0, None, closed="neither")],
        "initial_weight": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "margin": [Interval(Real, 0, None, closed="left")],
        "averaged": ["boolean"],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        **LIMIT_CONSTRAINTS,
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        promotion: float = 1.35,
        demotion: float = 0.8,
        threshold: float = 4.0,
        initial_weight: float = 0.2,
        max_iter: int = 5,
        margin: float = 1.0,
        averaged: bool = True,
        min_count: int = 1,
        shuffle: bool = True,
        max_seconds: float | None = None,
        callback: Callable[[FitProgress], Any] | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.promotion = promotion
        self.demotion = demotion
        self.threshold = threshold
        self.initial_weight = initial_weight
        self.max_iter = max_iter
        self.margin = margin
        self.averaged = averaged
        self.min_count = min_count
        self.shuffle = shuffle
        self.max_seconds = max_seconds
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        if not state_checks.has_fitted_attributes(self):
            return
        n_features = state_checks.check_int(self.n_features_in_, "n_features_in_", 1)
        shape = (n_features, state_checks.check_classes(self.classes_))
        for name in ("weights_", "links_"):
            matrix = state_checks.check_matrix(getattr(self, name), name, shape)
            state_checks.require(sp.issparse(matrix) and matrix.format == "csr", name)
        for name, dtype in (("_counts", np.int32), ("_totals", np.float64), ("_touched", np.int64)):
            array = getattr(self, name)
            state_checks.check_array(array, name, (self.links_.nnz,), "fi", dtype=dtype)
        state_checks.check_int(self.n_seen_, "n_seen_", 0)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> SNoW:
        """Train a new network.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Strengths of the features, not negative.
        y : array of shape (n_samples,)
        """
        with unchanged_on_failure(self):
            matrix, y = self._read(X, y, reset=True)
            self.classes_, codes = np.unique(y, return_inverse=True)
            self._reset_network()
            self._add_links(matrix, codes)
            result = run_fit(
                self._passes(matrix, codes),
                title=type(self).__name__,
                max_iter=self.max_iter,
                verbose=self.verbose,
                can_warn=False,  # there is no optimum to converge to
                max_seconds=self.max_seconds,
                callback=self.callback,
            )
            result.report_to(self)
            self._set_prediction_weights()
        result.conclude()
        return self

    def _passes(self, matrix: sp.csr_matrix, codes: NDArray[np.int64]) -> Iterator[FitState]:
        """Run passes over the examples; the first one also makes links."""
        random_state = check_random_state(self.random_state)
        order = np.arange(codes.size)
        while True:
            if self.shuffle:
                order = random_state.permutation(codes.size)
            n_wrong, n_updates = self._run_pass(matrix, codes, order, self.n_seen_ == 0)
            info = {"n_updates": float(n_updates)}
            yield FitState(self.links_, n_wrong, converged=n_updates == 0, info=info)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> SNoW:
        """Train the network on new examples, once and in the given order.

        Parameters
        ----------
        X, y : see `fit`
        classes : array of shape (n_classes,), optional
            All classes; required in the first call, unless `fit` was called before.
        """
        with unchanged_on_failure(self):
            first = not hasattr(self, "classes_")
            if first and classes is None:
                raise InputError("classes must be passed on the first call to partial_fit.")
            matrix, y = self._read(X, y, reset=first)
            if first:
                self.classes_ = np.unique(classes)
                self._reset_network()
                self.history_ = {"iteration": [], "objective": [], "seconds": [], "n_updates": []}
            elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
                raise InputError(
                    f"`classes={classes!r}` is not the same as on last call to partial_fit, was: "
                    f"{self.classes_!r}"
                )
            codes = np.searchsorted(self.classes_, y)
            known = self.classes_[np.minimum(codes, self.classes_.size - 1)] == y
            if not known.all():
                at = int(np.argmin(known))
                raise InputError(f"y[{at}] is {y.tolist()[at]!r}, which is not one of the classes")
            # On copies, so that a failure or an interrupt does not leave a partial update.
            self.links_ = self.links_.copy()
            self._counts, self._totals = self._counts.copy(), self._totals.copy()
            self._touched = self._touched.copy()
            self._add_links(matrix, codes)
            _, n_updates = self._run_pass(matrix, codes, np.arange(codes.size), True)
            self.n_iter_, self.converged_ = max(self.n_iter_, 1), n_updates == 0
            self._set_prediction_weights()
        return self

    def activations(self, X: Any) -> NDArray[np.float64]:
        """Activation of the node of each class, shape (n_samples, n_classes).

        Parameters
        ----------
        X : see `fit`
        """
        from seqlab.models.classifiers._snow_kernel import activations

        check_is_fitted(self)
        matrix, _ = self._read(X, None, reset=False)
        weights = self.weights_
        found = activations(
            matrix.indptr, matrix.indices, matrix.data,
            weights.indptr, weights.indices, weights.data, self.classes_.size,
        )  # fmt: skip
        return np.minimum(found, np.finfo(np.float64).max / 4)  # differences stay finite

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Activations; for two classes the second minus the first.

        Parameters
        ----------
        X : see `fit`

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        found = self.activations(X)
        return found[:, 1] - found[:, 0] if self.classes_.size == 2 else found

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of the normalised sigmoids, shape (n_samples, n_classes).

        Parameters
        ----------
        X : see `fit`
        """
        # Logarithms, so that classes far below the threshold can still be compared.
        log_sigma = -np.logaddexp(0.0, self.threshold - self.activations(X))
        return log_sigma - np.logaddexp.reduce(log_sigma, axis=1, keepdims=True)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Sigmoids of the activations, normalised over the classes, shape (n_samples, n_classes).

        Parameters
        ----------
        X : see `fit`
        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of the most active node.

        Parameters
        ----------
        X : see `fit`
        """
        best = np.argmax(self.activations(X), axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        # Designed for many sparse features; it may be poor on a few continuous ones without a bias.
        tags.classifier_tags.poor_score = True
        return tags

    def _read(self, X: Any, y: Any, *, reset: bool) -> tuple[sp.csr_matrix, Any]:
        """Return the examples as CSR with int32 indices, after checks, and the labels."""
        if self.margin >= self.threshold:
            raise InputError(
                f"margin={self.margin} must be below threshold={self.threshold}, because "
                "activations are at least 0"
            )
        options = {"accept_sparse": "csr", "dtype": np.float64, "reset": reset}
        if reset or y is not None:
            X, y = validate_data(self, X, y, **options)
            check_classification_targets(y)
        else:
            X = validate_data(self, X, **options)
        matrix = sp.csr_matrix(X)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        negative = matrix.data < 0
        if negative.any():
            at = int(np.argmax(negative))
            row = int(np.searchsorted(matrix.indptr, at, side="right") - 1)
            raise InputError(
                f"Negative values in data passed to SNoW: X[{row}, {matrix.indices[at]}] is "
                f"{matrix.data[at]:g}, but strengths must be at least 0"
            )
        if matrix.indices.dtype != np.int32:
            parts = (matrix.data, matrix.indices.astype(np.int32), matrix.indptr)
            matrix = sp.csr_matrix(parts, shape=matrix.shape)
        return matrix, y

    def _reset_network(self) -> None:
        self.links_ = sp.csr_matrix((self.n_features_in_, self.classes_.size))
        self._counts = np.zeros(0, np.int32)
        self._totals = np.zeros(0)
        self._touched = np.zeros(0, np.int64)
        self.n_seen_, self.n_iter_, self.converged_ = 0, 0, False

    def _add_links(self, matrix: sp.csr_matrix, codes: NDArray[np.int64]) -> None:
        values: list[Any] = [self._counts, self._totals, self._touched]
        self.links_, values = add_links(self.links_, values, matrix, codes)
        self._counts, self._totals, self._touched = values

    def _run_pass(
        self, matrix: sp.csr_matrix, codes: NDArray[np.int64], order: NDArray[np.int64], new: bool
    ) -> tuple[int, int]:
        from seqlab.models.classifiers._snow_kernel import winnow_pass

        links = self.links_
        done = winnow_pass(
            order, matrix.indptr, matrix.indices, matrix.data, codes,
            links.indptr, links.indices, links.data, self._counts, self._totals, self._touched,
            self.classes_.size, np.log(self.promotion), np.log(self.demotion), float(self.threshold),
            float(self.margin), float(self.initial_weight), self.min_count, new, self.n_seen_,
        )  # fmt: skip
        self.n_seen_ += codes.size
        return done

    def _set_prediction_weights(self) -> None:
        """Set ``weights_`` to the last weights, or to their mean over the examples."""
        weights = self.links_.copy()
        if self.averaged:
            weights.data *= self.n_seen_ - self._touched
            weights.data += self._totals
            weights.data /= self.n_seen_
        weights.eliminate_zeros()
        self.weights_ = weights
