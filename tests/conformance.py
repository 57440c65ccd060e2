"""The registry of public estimators: every labeler enters it the day it is born.

`LABELERS` gives, for each public labeler, a factory of small, fast instances; the checks of
test_conformance.py run on all of them. `EXPECTED_FAILURES` is the one place that says which of
scikit-learn's own checks cannot hold for a chain, and why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import seqlab

EXPECTED_FAILURES = {
    "check_methods_sample_order_invariance": "samples of one 2-D array are the steps of a sequence: "
    "their order is information",
    "check_methods_subset_invariance": "a label depends on its neighbours, so part of a sequence is "
    "labelled differently from the whole",
    "check_sample_weight_equivalence_on_dense_data": "weights belong to sequences; repeating a step "
    "makes another sequence",
    "check_sample_weight_equivalence_on_sparse_data": "as for dense data",
    "check_estimator_sparse_array": "the check reads the shape of predict_proba off a classifier tag, "
    "which labelers do not carry (integer cv would reject sequence targets)",
    "check_estimator_sparse_matrix": "as for sparse arrays",
}


@dataclass(frozen=True)
class Entry:
    """One labeler under test."""

    id: str
    estimator: Any
    weight_is_repetition: bool = False  # weight 2 equals the sequence given twice
    interruptible: bool = True  # not where the inner estimator's own fit is one call


LABELERS = [
    Entry("LinearChainCRF", seqlab.LinearChainCRF(c2=0.5, tol=1e-10), weight_is_repetition=True),
    Entry(
        "LinearChainCRF-l1",
        seqlab.LinearChainCRF(c1=0.1, c2=0.1, tol=1e-8),
        weight_is_repetition=True,
    ),
    Entry(
        "LinearChainCRF-edges",
        seqlab.LinearChainCRF(c2=0.5, tol=1e-10, edge_features=True, all_transitions=True),
        weight_is_repetition=True,
    ),
    Entry("StructuredPerceptron", seqlab.StructuredPerceptron(max_iter=5, random_state=0)),
    Entry(
        "StructuredPerceptron-beam",
        seqlab.StructuredPerceptron(max_iter=5, beam_width=2, early_update=True, random_state=0),
    ),
    Entry(
        "StructuredPerceptron-voted",
        seqlab.StructuredPerceptron(max_iter=3, combination="voted", random_state=0),
    ),
    Entry(
        "IndependentLabeler",
        seqlab.IndependentLabeler(LogisticRegression(tol=1e-10, max_iter=2000)),
        weight_is_repetition=True,
        interruptible=False,
    ),
    Entry(
        "IndependentLabeler-no-proba",
        seqlab.IndependentLabeler(LinearSVC(random_state=0)),
        interruptible=False,
    ),
    Entry("Tagger", seqlab.Tagger(None, seqlab.LinearChainCRF(c2=0.5, tol=1e-10)), True),
]
# Public names that are not labelers, so that a forgotten labeler is noticed.
NOT_LABELERS = {"ModelFileError", "SequenceVectorizer", "Templates", "load", "save", "__version__"}
