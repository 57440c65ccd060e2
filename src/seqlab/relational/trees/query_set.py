"""QuerySet: the queries of fitted trees as arrays, which can be stored and checked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from seqlab.data import state_checks
from seqlab.data.errors import InputError
from seqlab.data.vocabulary import Vocabulary
from seqlab.relational.literals import Literal, Term
from seqlab.relational.modes import COMPARISONS
from seqlab.relational.trees.queries import Query

# A term is stored as 0 (no term), 1 + the number of a constant, or -1 - the number of a variable.
_NO_DISTANCE = np.iinfo(np.int32).min
_MAX_VARIABLES = 1000


class QuerySet:
    """Queries over the atoms of a window.

    Parameters
    ----------
    signatures, constants : Vocabulary
    query_offsets : int64 array of shape (n_queries + 1,)
        First literal of each query.
    signature, distance : int32 arrays of shape (n_literals,)
    terms : int32 array of shape (n_literals, n_most_terms)
    """

    def __init__(
        self,
        signatures: Vocabulary,
        constants: Vocabulary,
        query_offsets: NDArray[np.int64],
        signature: NDArray[np.int32],
        distance: NDArray[np.int32],
        terms: NDArray[np.int32],
    ) -> None:
        self.signatures, self.constants = signatures, constants
        self.query_offsets = query_offsets
        self.signature, self.distance, self.terms = signature, distance, terms
        self._check_state()

    @classmethod
    def from_queries(cls, queries: list[Query]) -> QuerySet:
        """Collect queries.

        Examples
        --------
        >>> query = (Literal(0, "use", (0,)), Literal(-1, "use", (0,)))
        >>> list(QuerySet.from_queries([query])) == [query]
        True
        """
        literals = [literal for query in queries for literal in query]
        signatures: dict[str, int] = {}
        constants: dict[str, int] = {}
        terms = np.zeros(
            (len(literals), max((len(x.arguments) for x in literals), default=0)), np.int32
        )
        for i, literal in enumerate(literals):
            signatures.setdefault(literal.signature, len(signatures))
            for k, term in enumerate(literal.arguments):
                if isinstance(term, str):
                    terms[i, k] = 1 + constants.setdefault(term, len(constants))
                else:
                    terms[i, k] = -1 - term
        distances = [_NO_DISTANCE if x.offset is None else x.offset for x in literals]
        return cls(
            Vocabulary(signatures),
            Vocabulary(constants),
            np.cumsum([0, *map(len, queries)], dtype=np.int64),
            np.array([signatures[x.signature] for x in literals], dtype=np.int32),
            np.array(distances, dtype=np.int32),
            terms,
        )

    def __len__(self) -> int:
        return int(self.query_offsets.size - 1)

    def __iter__(self) -> Iterator[Query]:
        for a, b in pairwise(self.query_offsets.tolist()):
            yield tuple(self._literal(i) for i in range(a, b))

    def _literal(self, i: int) -> Literal:
        signature, distance = self.signatures[self.signature[i]], int(self.distance[i])
        predicate, _, n_terms = signature.rpartition("/")
        terms: list[Term] = [
            self.constants[term - 1] if term > 0 else -1 - term
            for term in self.terms[i, : int(n_terms)].tolist()
        ]
        return Literal(None if distance == _NO_DISTANCE else distance, predicate, tuple(terms))

    def _check_state(self) -> None:
        """Raise an `InputError` if restored attributes do not agree with each other."""
        state_checks.check_type(self.signatures, "signatures", Vocabulary)
        state_checks.check_type(self.constants, "constants", Vocabulary)
        offsets = state_checks.check_array(
            self.query_offsets, "query_offsets", (None,), dtype=np.int64, kinds="i", low=0
        )
        state_checks.require(offsets.size and offsets[0] == 0, "query_offsets")
        state_checks.require(np.all(np.diff(offsets) > 0), "query_offsets")
        n = int(offsets[-1])
        high = len(self.signatures)
        state_checks.check_array(
            self.signature, "signature", (n,), dtype=np.int32, kinds="i", low=0, high=high
        )
        state_checks.check_array(self.distance, "distance", (n,), dtype=np.int32, kinds="i")
        state_checks.check_array(
            self.terms, "terms", (n, None), dtype=np.int32, kinds="i",
            low=-_MAX_VARIABLES, high=len(self.constants) + 1,
        )  # fmt: skip
        for name in self.signatures:
            n_terms = name.rpartition("/")[2]
            is_count = n_terms.isdecimal() and len(n_terms) < 4
            if not is_count or int(n_terms) > self.terms.shape[1]:
                raise InputError(f"{name!r} is not a predicate with a number of arguments")
        for query in self:
            n_variables = 0  # they are numbered in the order of their first occurrence
            for literal in query:
                variables = literal.variables()
                if literal.signature in COMPARISONS and literal.offset is None:
                    state_checks.require(len(variables) == 2, "terms")
                    state_checks.require(max(variables) < n_variables, "terms")
                for variable in variables:
                    state_checks.require(0 <= variable <= n_variables, "terms")
                    n_variables = max(n_variables, variable + 1)
