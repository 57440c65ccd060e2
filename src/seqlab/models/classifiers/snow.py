r"""SNoW: a sparse network of Winnows.

One target node per class. The activation of node ``c`` is a sum over its links to the active
features,

    \Omega_c(x) = \sum_{f \text{ active, linked to } c} w_{cf} x_f ,

and every weight is positive. A node that should have fired and did not has its active weights
promoted, one that fired and should not has them demoted, both by a factor:

    w_{cf} \leftarrow w_{cf} \alpha^{x_f}  (\alpha > 1)
    w_{cf} \leftarrow w_{cf} \beta^{x_f}   (0 < \beta < 1)

so that the number of mistakes grows with the logarithm of the number of irrelevant features only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Integral, Interval, Real
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from seqlab.data.errors import InputError
from seqlab.learning import Monitor, unchanged_on_failure


class SNoW(ClassifierMixin, BaseEstimator):
    r"""Sparse network of Winnows, a multiplicative learner for many sparse features.

    A node per class is linked to the features that were active in examples of its class, and to no
    others. Node ``c`` fires where its activation ``Omega_c(x)``, the sum of ``weight * strength`` over
    its links, reaches the threshold ``theta``. Probabilities are its sigmoids, normalised over the
    classes::

        P(c | x) = sigma_c / sum_k sigma_k        sigma_c = 1 / (1 + exp(theta - Omega_c(x)))

    Parameters
    ----------
    promotion : float, default=1.35
        Factor of the active weights of a node that should have fired, above 1.
    demotion : float, default=0.8
        Factor of the active weights of a node that should not have fired, between 0 and 1.
    threshold : float, default=4.0
        Activation at which a node fires.
    initial_weight : float, default=0.2
        Weight of a new link.
    max_iter : int, default=5
        Passes over the data; a pass without any update ends the training.
    margin : float, default=1.0
        Thick separator: a node is updated until its activation is on the right side of the threshold
        by this much. 0 for updates on mistakes only.
    averaged : bool, default=True
        Whether to predict with the mean of the weights after each example in place of the last ones.
    min_count : int, default=1
        Examples of a class in which a feature must have been active before it is linked to the node
        of the class.
    shuffle : bool, default=True
        Whether to visit the examples in a new random order in each pass.
    random_state : int, RandomState or None
        Of the shuffling.
    verbose : bool, default=False
        Show a progress bar on standard error.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    weights_ : CSR matrix of shape (n_features, n_classes)
        Weights of the links that prediction uses; what is not stored is not linked.
    links_ : CSR matrix of shape (n_features, n_classes)
        Weights after the last example, where `partial_fit` goes on; 0 for a link not made yet.
    n_seen_ : int
        Examples shown, over all passes.
    n_iter_ : int
        Passes done.
    converged_ : bool
        Whether the last pass updated no node.
    history_ : dict of str to list
        Per pass: ``iteration``, ``objective`` (examples whose node was not the most active one when
        they came, before links were made for them), ``seconds`` and ``n_updates``.

    See Also
    --------
    TemperedClassifier : the probabilities of any classifier, made less sure.
    ClassifierHMM, ProjectionMarkovModel, PhraseInference : classifiers over sequences.

    Notes
    -----
    Features are strengths, zero or more; most often 1 for what is present. Negative values are refused:
    they would turn a promotion into a demotion. An example has O(active features x links) cost.

    Weights stay within ``exp(-30)`` and ``exp(30)``, so that no run of updates makes them zero or
    infinite. There is no bias: a constant feature is one. Of two equally active classes the first wins.

    Links are made as the examples come, in their first pass, so that a `fit` of one pass without
    shuffling and `partial_fit` on the same examples in pieces give the same network.

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

    links_: Any
    # Beside the weights of the links: positive examples seen, sum of the weight over the examples up to its
    # last change, and the number of that example.
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
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> SNoW:
        """Train a new network.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Strengths of the features, none negative.
        y : array of shape (n_samples,)
        """
        interrupted = None
        with unchanged_on_failure(self):
            matrix, y = self._read(X, y, reset=True)
            self.classes_, codes = np.unique(y, return_inverse=True)
            self._clear()
            self._grow(matrix, codes)
            random_state = check_random_state(self.random_state)
            monitor = Monitor(type(self).__name__, self.max_iter, self.verbose)
            order = np.arange(codes.size)
            try:
                with monitor:
                    for iteration in range(1, self.max_iter + 1):
                        if self.shuffle:
                            order = random_state.permutation(codes.size)
                        n_wrong, n_updates = self._pass(matrix, codes, order, iteration == 1)
                        self.n_iter_, self.converged_ = iteration, n_updates == 0
                        monitor.record(iteration, n_wrong, n_updates=n_updates)
                        if self.converged_:
                            break
            except KeyboardInterrupt as interrupt:  # keep the last full pass
                if self.n_iter_ == 0:
                    raise
                interrupted, self.converged_ = interrupt, False
            self.history_ = monitor.history
            self._conclude()
        if interrupted is not None:
            raise interrupted
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> SNoW:
        """Show new examples to the network, once and in the order given.

        Parameters
        ----------
        X, y : see `fit`
        classes : array of shape (n_classes,), optional
            All classes there will be; needed at the first call, unless `fit` was called before.
        """
        with unchanged_on_failure(self):
            first = not hasattr(self, "classes_")
            if first and classes is None:
                raise InputError("classes must be passed on the first call to partial_fit.")
            matrix, y = self._read(X, y, reset=first)
            if first:
                self.classes_ = np.unique(classes)
                self._clear()
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
                raise InputError(f"y[{at}] is {y.tolist()[at]!r}, which is none of the classes")
            # On copies: a failure, or an interrupt, must not leave half of an update behind.
            self.links_ = self.links_.copy()
            self._counts, self._totals = self._counts.copy(), self._totals.copy()
            self._touched = self._touched.copy()
            self._grow(matrix, codes)
            _, n_updates = self._pass(matrix, codes, np.arange(codes.size), True)
            self.n_iter_, self.converged_ = max(self.n_iter_, 1), n_updates == 0
            self._conclude()
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
        """Activations; for two classes that of the second above that of the first.

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
        # log sigma itself, so that classes which are all far below the threshold can be compared.
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
        # Made for many sparse features; on a few continuous ones without a bias it need not be good.
        tags.classifier_tags.poor_score = True
        return tags

    # The work.

    def _read(self, X: Any, y: Any, *, reset: bool) -> tuple[sp.csr_matrix, Any]:
        """Examples as CSR with int32 indices and no negative value, and their checked labels."""
        if self.margin >= self.threshold:
            raise InputError(
                f"margin={self.margin} must be below threshold={self.threshold}: a node is never less "
                "active than 0"
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
                f"{matrix.data[at]:g}, but a feature has a strength of at least 0"
            )
        if matrix.indices.dtype != np.int32:
            parts = (matrix.data, matrix.indices.astype(np.int32), matrix.indptr)
            matrix = sp.csr_matrix(parts, shape=matrix.shape)
        return matrix, y

    def _clear(self) -> None:
        self.links_ = sp.csr_matrix((self.n_features_in_, self.classes_.size))
        self._counts = np.zeros(0, np.int32)
        self._totals = np.zeros(0)
        self._touched = np.zeros(0, np.int64)
        self.n_seen_, self.n_iter_, self.converged_ = 0, 0, False

    def _grow(self, matrix: sp.csr_matrix, codes: NDArray[np.int64]) -> None:
        """Make room for the links between the features of each example and the node of its class."""
        n_samples, n_classes = codes.size, self.classes_.size
        one = np.ones(n_samples)
        members = sp.csr_matrix((one, (codes, np.arange(n_samples))), (n_classes, n_samples))
        present = sp.csr_matrix(
            (np.ones_like(matrix.data), matrix.indices, matrix.indptr), matrix.shape
        )
        needed = (members @ present).T.tocsr()
        needed.sort_indices()
        old, new = _keys(self.links_), _keys(needed)
        at = np.searchsorted(old, new)
        missing = (
            np.ones(new.size, bool) if old.size == 0 else old[np.minimum(at, old.size - 1)] != new
        )
        if not missing.any():
            return
        every = np.sort(np.concatenate([old, new[missing]]), kind="stable")  # merges sorted runs
        place = np.searchsorted(every, old)
        indptr = np.searchsorted(every, np.arange(self.n_features_in_ + 1) * n_classes)
        grown = [
            np.zeros(every.size, values.dtype)
            for values in (self.links_.data, self._counts, self._totals, self._touched)
        ]
        for values, before in zip(
            grown, (self.links_.data, self._counts, self._totals, self._touched), strict=True
        ):
            values[place] = before
        weights, self._counts, self._totals, self._touched = grown
        self.links_ = sp.csr_matrix(
            (weights, every % n_classes, indptr), (self.n_features_in_, n_classes)
        )

    def _pass(
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

    def _conclude(self) -> None:
        """The weights to predict with: the last ones, or their mean over the examples shown."""
        weights = self.links_.copy()
        if self.averaged:
            weights.data *= self.n_seen_ - self._touched
            weights.data += self._totals
            weights.data /= self.n_seen_
        weights.eliminate_zeros()
        self.weights_ = weights


def _keys(links: sp.csr_matrix) -> NDArray[np.int64]:
    """Each link as one number, ``feature * n_classes + class``, in order."""
    features = np.repeat(np.arange(links.shape[0]), np.diff(links.indptr))
    return features * links.shape[1] + links.indices
