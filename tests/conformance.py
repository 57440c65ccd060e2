"""The registry of public estimators: every labeler enters it the day it is born.

`LABELERS` gives, for each public labeler, a factory of small, fast instances; the checks of
test_conformance.py run on all of them. `EXPECTED_FAILURES` is the one place that says which of
scikit-learn's own checks cannot hold for a chain, and why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.linear_model import LogisticRegression, RidgeClassifier
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
    # One pass: nothing to interrupt where every label is known (test_hmm.py interrupts EM).
    Entry("HMM", seqlab.HMM(), weight_is_repetition=True, interruptible=False),
    Entry(
        "HMM-full",
        seqlab.HMM(covariance="full", model_end=True),
        weight_is_repetition=True,
        interruptible=False,
    ),
    Entry(
        "HMM-bernoulli",
        seqlab.HMM(emissions="bernoulli", constraints="seen"),
        weight_is_repetition=True,
        interruptible=False,
    ),
    Entry(
        "ClassifierHMM",
        seqlab.ClassifierHMM(LogisticRegression(tol=1e-10, max_iter=2000)),
        weight_is_repetition=True,
        interruptible=False,
    ),
    Entry(
        "ClassifierHMM-calibrated",
        seqlab.ClassifierHMM(RidgeClassifier(), divide_by_prior="marginal"),
        interruptible=False,
    ),
    Entry(
        "ProjectionMarkovModel",
        seqlab.ProjectionMarkovModel(LogisticRegression(tol=1e-10, max_iter=2000)),
        weight_is_repetition=True,
        interruptible=False,
    ),
    Entry(
        "MEMM",
        seqlab.MEMM(LogisticRegression(tol=1e-10, max_iter=2000)),
        weight_is_repetition=True,
        interruptible=False,
    ),
    Entry(
        "MEMM-beam",
        seqlab.MEMM(history=2, conjunction=True, decoding="beam", beam_width=4),
        interruptible=False,
    ),
    Entry(
        "StackedSequentialLearner",
        seqlab.StackedSequentialLearner(
            seqlab.LinearChainCRF(c2=0.5, tol=1e-10), cv=2, window=(1, 1), random_state=0
        ),
        interruptible=False,
    ),
    Entry(
        "StackedSequentialLearner-halves",
        seqlab.StackedSequentialLearner(
            seqlab.StructuredPerceptron(max_iter=5, random_state=0),
            cv="two_halves",
            window=(2, 1),
            include_self=False,
            random_state=0,
        ),
        interruptible=False,
    ),
    Entry(
        "StackedSequentialLearner-classifier",
        seqlab.StackedSequentialLearner(
            LogisticRegression(tol=1e-10, max_iter=2000),
            cv=2,
            window=(1, 0),  # few columns: BLAS rounds the rows of wide matrices by their place
            random_state=0,
        ),
        interruptible=False,
    ),
    Entry("Tagger", seqlab.Tagger(None, seqlab.LinearChainCRF(c2=0.5, tol=1e-10)), True),
]
# Public names that are not labelers, so that a forgotten labeler is noticed.
# `PhraseInference` is a labeler of phrases, not of steps: test_phrase_inference.py holds its contract.
NOT_LABELERS = {
    "PhraseInference",
    "LineFeatures",
    "ModelFileError",
    "SNoW",  # plain classifiers: tests/models/test_snow.py, test_tempered.py
    "TemperedClassifier",
    "SequenceVectorizer",
    "Templates",
    "load",
    "save",
    "__version__",
}
