"""RelationalBoostedCRF: a conditional random field with relational regression trees (TildeCRF)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted

from seqlab.data import state_checks
from seqlab.data.atoms import Atom, as_atom
from seqlab.data.errors import InputError
from seqlab.data.sequences import SequenceBlock, Sequences
from seqlab.data.symbolic import name_atoms
from seqlab.data.vocabulary import Vocabulary
from seqlab.features.window import check_window
from seqlab.inference import ChainScores
from seqlab.learning import FitProgress, TrainingData
from seqlab.learning.boosting import (
    BinnedRows,
    Bins,
    DescribedTrees,
    LanguageTreeGrower,
    TreeEnsemble,
    TreeGrower,
)
from seqlab.models.boosted_crf import BoostedCRF
from seqlab.relational.literals import format_conjunction
from seqlab.relational.modes import ANY, COMPARISONS, Mode, Place, parse_modes
from seqlab.relational.trees.atom_vectorizer import AtomVectorizer, first_columns
from seqlab.relational.trees.language import RelationalLanguage
from seqlab.relational.trees.printing import format_tree
from seqlab.relational.trees.query_set import QuerySet
from seqlab.relational.trees.windows import (
    column_name,
    cover_queries,
    merge_windows,
    select_columns,
    window_columns,
)

_INHERITED = {
    name: constraint
    for name, constraint in BoostedCRF._parameter_constraints.items()
    if name != "categorical_features"
}


class RelationalBoostedCRF(BoostedCRF):
    """Conditional random field with relational regression trees, trained by gradient boosting (TildeCRF).

    The model and its training are those of `BoostedCRF`. The tests of the trees are queries about the atoms
    of the steps around ``t``, such as ``use(A)[t] & use(A)[t-1]``: is there an object that is used now and
    was used one step before? Variables of a test are visible in its yes branch, where further tests extend
    the query.

    Parameters
    ----------
    window : (int, int), default=(1, 1)
        Numbers of steps before and after a step that queries may refer to.
    modes : list of str or None, default=None
        The literals that a test may add to a query: ``"use(#object)"`` for constants of the data,
        ``"use(-object)"`` for a new variable, ``"use(+object)"`` for a variable that the query has,
        ``"use(+-object)"`` or ``"use(?object)"`` for both, ``"use(+object)@-3..-1"`` for some steps of the
        window only; ``"same(+object, +object)"`` and ``"different(+object, +object)"`` compare variables.
        Variables are shared by arguments of the same type, the word after the mark. By default every
        predicate with constants, and in sequences of atoms (strings, dicts) also with variables of one type.
    background : list of atoms, default=()
        What is known about constants at every step, such as ``"type(kettle, kitchen)"``.
    lookahead : bool, default=True
        Whether a test may also add two literals at once, if the second one has a new variable of the first.
        Needed if the first one alone does not reduce the error; takes more time.
    max_leaf_nodes, learning_rate, order, beam_width, keep_gold, leaf_values, l2_regularization, max_iter, tol
        See `BoostedCRF`.
    max_seconds, validation_fraction, n_iter_no_change, callback, random_state, n_jobs, verbose
        See `BoostedCRF`.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
    atoms_ : Vocabulary
        The atoms of the columns of X. A column of a plain matrix is ``on(name)``; it holds if the value is
        not zero.
    trees_ : TreeEnsemble
        The trees, as arrays; `format_trees` shows them as queries.
    queries_ : QuerySet
        The queries with variables that trees ask.
    columns_ : int64 array
        Columns of the window that trees may test, before the queries.
    feature_importances_ : array of shape (n_tests,)
        Proportion of the total gain that is due to each test; `get_test_names` has their names.
    n_iter_, converged_, history_, best_iteration_, best_validation_score_ : see `BoostedCRF`

    See Also
    --------
    BoostedCRF : trees over the columns of X; the same model if no mode has variables.
    seqlab.data.io.read_logical : reads sequences of atoms.

    Notes
    -----
    Steps with equal windows are merged. The rows that a query covers are found once, by a join of the answers
    to its beginning with the atoms of the window, and stored as binary features, which all trees and rounds
    use.
    A candidate is chosen by the reduction of the squared error, as in `BoostedCRF`. Atoms with constants that
    training does not show take part in queries with variables.

    References
    ----------
    Gutmann, B. & Kersting, K. (2006). TildeCRF: Conditional random fields for logical sequences. ECML.

    Blockeel, H. & De Raedt, L. (1998). Top-down induction of first-order logical decision trees.
    Artificial Intelligence 101.

    Examples
    --------
    A label that says whether the object of the step before is used again, whatever object it is:

    >>> import numpy as np
    >>> from seqlab import RelationalBoostedCRF
    >>> objects = np.random.default_rng(0).integers(0, 8, size=(30, 6))
    >>> X = [[[f"use(object{k})"] for k in row] for row in objects]
    >>> y = [["first", *np.where(row[1:] == row[:-1], "again", "new")] for row in objects]
    >>> model = RelationalBoostedCRF(window=(1, 0), modes=["use(+-object)"], max_iter=5)
    >>> model = model.fit(X, y)
    >>> model.predict([[["use(kettle)"], ["use(kettle)"], ["use(cup)"]]])[0].tolist()
    ['first', 'again', 'new']
    >>> print(model.format_trees("again", rounds=1))
    use(A)[t-1] & use(A)[t]?
      yes: previous label in {again}?
        yes: +0.346
        no:  +1.190
      no:  -0.578
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "window": [tuple, list],
        "modes": [list, tuple, None],
        "background": [list, tuple],
        "lookahead": ["boolean"],
        **_INHERITED,
    }

    atoms_: Vocabulary
    columns_: NDArray[np.int64]
    queries_: QuerySet

    def __init__(
        self,
        *,
        window: tuple[int, int] = (1, 1),
        modes: Any = None,
        background: Any = (),
        lookahead: bool = True,
        max_leaf_nodes: int = 31,
        learning_rate: float = 0.5,
        order: int = 1,
        beam_width: int | None = None,
        keep_gold: bool = True,
        leaf_values: str = "newton",
        l2_regularization: float = 1.0,
        max_iter: int = 50,
        tol: float = 1e-4,
        max_seconds: float | None = None,
        validation_fraction: float | None = None,
        n_iter_no_change: int = 5,
        callback: Callable[[FitProgress], Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        super().__init__(
            max_leaf_nodes=max_leaf_nodes,
            learning_rate=learning_rate,
            order=order,
            beam_width=beam_width,
            keep_gold=keep_gold,
            leaf_values=leaf_values,
            l2_regularization=l2_regularization,
            max_iter=max_iter,
            tol=tol,
            max_seconds=max_seconds,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            callback=callback,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        del self.categorical_features
        self.window = window
        self.modes = modes
        self.background = background
        self.lookahead = lookahead

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        lengths: Any = None,
        X_val: Any = None,
        y_val: Any = None,
    ) -> RelationalBoostedCRF:
        """Grow the trees.

        Parameters
        ----------
        X : list of sequences
            Steps are lists of atoms (``["use(cup)", "at(sink)"]``), dicts, or rows of a matrix.
        y, lengths, X_val, y_val : see `LinearChainCRF.fit`
        sample_weight : array of shape (n_sequences,), optional
            Factor of the log-likelihood of each sequence.
        """
        return self._fit(X, y, sample_weight, lengths, X_val, y_val)

    def _new_vectorizer(self) -> Any:
        return AtomVectorizer()

    def _check_features(self, X: Any, sequences: Sequences, *, reset: bool) -> None:
        # Columns of unseen atoms come from the vectorizer only: a user's matrix has the columns of training.
        if not (reset or self.vectorizer_ is None or isinstance(X, Sequences)):
            X = sequences = first_columns(sequences, self.n_features_in_)
        super()._check_features(X, sequences, reset=reset)

    def _new_grower(
        self, data: TrainingData, **options: Any
    ) -> tuple[TreeGrower, Callable[[list[Any]], None]]:
        X, window = data.X, check_window(self.window)
        atoms = self._name_columns(X)
        known = [as_atom(atom, f"background[{i}]") for i, atom in enumerate(self.background)]
        modes = self._read_modes(atoms, known, window)
        self.window_ = window
        self.atoms_, self.background_ = (
            Vocabulary(map(str, atoms)),
            Vocabulary(dict.fromkeys(known)),
        )
        self.columns_ = select_columns(None if self.modes is None else modes, atoms, window)
        columns = window_columns(X, window, self.columns_)
        relational = [mode for mode in modes if not mode.is_propositional]
        if not relational:
            rows, facts = BinnedRows.from_sequences(columns), None
        else:
            windows = merge_windows(X, window, atoms, known)
            first = Sequences(columns.matrix[windows.first], [0, windows.first.size])
            rows = BinnedRows.from_sequences(first, merge=False)
            rows, facts = replace(rows, row_of_step=windows.row_of_step), windows.facts
        language = RelationalLanguage(
            rows, facts, relational, lookahead=self.lookahead, deadline=options["deadline"]
        )

        def store(rounds: list[tuple[float, list[DescribedTrees]]]) -> None:
            self._store_rounds(rounds, rows.bins, data.n_labels)

        return LanguageTreeGrower(language, **options), store

    def _store_rounds(
        self, rounds: list[tuple[float, list[DescribedTrees]]], bins: Bins, n_labels: int
    ) -> None:
        """Number the queries of all trees, and collect the trees."""
        n_columns = bins.n_features
        numbers: dict[Any, int] = {}
        numbered = []
        for step, trees in rounds:
            plain = []
            for grown, tests in trees:
                for test in tests:
                    if not isinstance(test, int | np.integer):
                        numbers.setdefault(test, n_columns + len(numbers))
                # Negative numbers mark leaves and splits on the previous label; they stay as they are.
                places = np.array([numbers.get(t, t) for t in tests] or [0], dtype=np.int32)
                feature = np.where(
                    grown.feature >= 0, places[np.maximum(grown.feature, 0)], grown.feature
                )
                plain.append(grown._replace(feature=feature.astype(np.int32)))
            numbered.append((step, plain))
        self.queries_ = QuerySet.from_queries(list(numbers))
        self.trees_ = TreeEnsemble.from_rounds(
            numbered, _append_binary(bins, len(numbers)), n_labels, has_pairs=self.order == 1
        )

    def _name_columns(self, X: Sequences) -> list[Atom]:
        names = None if X.feature_names is None else list(X.feature_names)
        predicate = "on" if self.vectorizer_ is None else None
        return name_atoms(names, X.n_features, predicate=predicate)

    def _read_modes(
        self, atoms: list[Atom], background: list[Atom], window: tuple[int, int]
    ) -> list[Mode]:
        """Return the modes with constants and with variables."""
        distances = (-window[0], window[1])
        known = {atom.signature for atom in background}
        given = dict.fromkeys(atom.signature for atom in atoms)
        both = known & set(given)
        if both:
            raise InputError(f"{min(both)} is in the background and in the steps of X")
        if self.modes is not None:
            modes = parse_modes(self.modes, distances)
            for mode in modes:
                if mode.signature not in (*given, *known, *COMPARISONS):
                    some = ", ".join([*given, *sorted(known)][:6])
                    raise InputError(
                        f"modes name {mode.signature}, which X does not have; it has {some}"
                    )
                if mode.signature in known and mode.is_propositional:
                    raise InputError(f"the mode of {mode.signature}, background, needs a variable")
            return modes
        if self.vectorizer_ is None and not background:
            return []
        place = Place(ANY, "")
        signatures = [*given, *dict.fromkeys(atom.signature for atom in background)]
        return [
            Mode(signature, (place,) * int(n), tuple(range(distances[0], distances[1] + 1)))
            for signature in signatures
            if (n := signature.rpartition("/")[2]) != "0"
        ]

    def _prepare_scoring(self, X: Sequences) -> Sequences:
        """Return the columns and queries of all steps, which the trees test."""
        known = first_columns(X, self.n_features_in_)
        matrix = sp.csr_matrix(window_columns(known, self.window_, self.columns_).matrix)
        if len(self.queries_):
            atoms = [Atom.parse(name) for name in self.atoms_]
            if X.n_features > self.n_features_in_ and X.feature_names is not None:
                new = list(X.feature_names[self.n_features_in_ :])
                atoms += name_atoms(new, len(new), predicate=None)
            background = [Atom.parse(name) for name in self.background_]
            windows = merge_windows(X, self.window_, atoms, background)
            matrix = sp.hstack([matrix, cover_queries(self.queries_, windows)], format="csr")
        return Sequences.from_checked(matrix, X.offsets.copy())

    def _block_scores(self, block: SequenceBlock, prepared: Sequences) -> ChainScores:
        return super()._block_scores(prepared.block(block.first, block.last), None)

    def _n_tree_features(self) -> int:
        return self.columns_.size + len(self.queries_)

    def _check_state(self) -> None:
        if state_checks.has_fitted_attributes(self):
            window = check_window(self.window_)
            n = state_checks.check_int(self.n_features_in_, "n_features_in_", 1)
            n_steps = window[0] + window[1]
            high = n * (n_steps + 1) + n_steps
            state_checks.check_array(self.columns_, "columns_", (None,), "i", low=0, high=high)
            state_checks.check_type(self.queries_, "queries_", QuerySet)
            for name in ("atoms_", "background_"):
                for text in state_checks.check_type(getattr(self, name), name, Vocabulary):
                    Atom.parse(text)
            state_checks.require(len(self.atoms_) == n, "atoms_")
        super()._check_state()

    def get_test_names(self) -> list[str]:
        """Return the tests of the trees as text: columns of the window, then queries."""
        check_is_fitted(self)
        atoms = [Atom.parse(name) for name in self.atoms_]
        columns = [column_name(column, atoms, self.window_) for column in self.columns_.tolist()]
        return columns + [format_conjunction(query) for query in self.queries_]

    def format_trees(self, label: Any, *, rounds: int | None = None) -> str:
        """Return the trees of a label as text.

        Parameters
        ----------
        label : object
            One of ``classes_``.
        rounds : int, optional
            Number of rounds to show, all by default.
        """
        tests = self.get_test_names()
        found = np.flatnonzero(self.classes_ == label)
        if found.size != 1:
            raise InputError(f"{label!r} is not a label of this model")
        n_labels = self.classes_.size
        n_rounds = self.trees_.n_trees // n_labels
        shown = range(n_rounds if rounds is None else min(rounds, n_rounds))
        trees = [int(found[0]) + r * n_labels for r in shown]
        return "\n\n".join(format_tree(self.trees_, at, tests, self.classes_) for at in trees)


def _append_binary(bins: Bins, n: int) -> Bins:
    """Return bins with ``n`` further binary features."""
    last = int(bins.begin[-1])
    begin = last + 2 * np.arange(1, n + 1)
    return Bins(
        np.concatenate([bins.begin, begin]).astype(np.int32),
        np.concatenate([bins.default, last + 2 * np.arange(n)]).astype(np.int32),
        np.concatenate([bins.upper, np.tile([0.5, np.inf], n)]),
        np.concatenate([bins.is_categorical, np.zeros(n, dtype=np.bool_)]),
    )
