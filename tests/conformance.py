"""The registry of public estimators: every new labeler is added here.

`LABELERS` holds small, fast instances of each public labeler; the checks of test_conformance.py run
on all of them. `EXPECTED_FAILURES` is the only list of scikit-learn checks that cannot hold for a
chain, with the reasons.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import LinearSVC

import seqlab

EXPECTED_FAILURES = {
    "check_methods_sample_order_invariance": "the samples of a 2-D array are the steps of one sequence, "
    "so their order matters",
    "check_methods_subset_invariance": "a label depends on its neighbours, so part of a sequence is "
    "labelled differently from the whole",
    "check_sample_weight_equivalence_on_dense_data": "weights belong to sequences; repeating a step "
    "gives a different sequence",
    "check_sample_weight_equivalence_on_sparse_data": "same reason as for dense data",
    "check_estimator_sparse_array": "the check decides from the classifier tag which shape predict_proba "
    "has; labelers do not carry that tag, because integer cv would then reject sequence targets",
    "check_estimator_sparse_matrix": "same reason as for sparse arrays",
}


@dataclass(frozen=True)
class Entry:
    """One labeler under test."""

    id: str
    estimator: Any
    weight_is_repetition: bool = False  # weight 2 is the same as giving the sequence twice
    interruptible: bool = True  # False if fit is a single call of another estimator's fit
    parallel: tuple[str, ...] = ("predict",)  # which of fit and predict n_jobs splits into tasks


def run_in_forked_child(work: Callable[[], object], seconds: float) -> None:
    """Run ``work()`` in a forked process; raise AssertionError if it fails or is not done in time.

    A lock that another thread holds during the fork is never released in the child. The time limit
    turns such a deadlock into a failure, with the stack of every thread of the child on standard error.
    """

    def run() -> None:
        os.setsid()  # a process group, so that the processes it starts can be killed with it
        faulthandler.dump_traceback_later(0.9 * seconds, file=2)
        work()

    child = multiprocessing.get_context("fork").Process(target=run)
    with warnings.catch_warnings():
        # Python warns about a fork in a process that has had threads: exactly what is tested.
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    child.join(seconds)
    if child.exitcode is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.join()
        raise AssertionError(f"the forked child was still running after {seconds:g} seconds")
    assert child.exitcode == 0, f"the forked child failed with exit code {child.exitcode}"


LABELERS = [
    Entry(
        "LinearChainCRF",
        seqlab.LinearChainCRF(c2=0.5, tol=1e-10),
        weight_is_repetition=True,
        parallel=("fit", "predict"),
    ),
    Entry(
        "LinearChainCRF-l1",
        seqlab.LinearChainCRF(c1=0.1, c2=0.1, tol=1e-8),
        weight_is_repetition=True,
        parallel=("fit", "predict"),
    ),
    Entry(
        "LinearChainCRF-edges",
        seqlab.LinearChainCRF(c2=0.5, tol=1e-10, edge_features=True, all_transitions=True),
        weight_is_repetition=True,
        parallel=("fit", "predict"),
    ),
    Entry("StructuredPerceptron", seqlab.StructuredPerceptron(max_iter=5, random_state=0)),
    Entry(
        "StructuredPerceptron-beam",
        seqlab.StructuredPerceptron(max_iter=5, beam_width=2, early_update=True, random_state=0),
    ),
    Entry(
        "StructuredPerceptron-voted",
        seqlab.StructuredPerceptron(max_iter=3, combination="voted", random_state=0),
        parallel=(),
    ),
    Entry(
        "IndependentLabeler",
        seqlab.IndependentLabeler(LogisticRegression(tol=1e-10, max_iter=2000)),
        weight_is_repetition=True,
        interruptible=False,
    ),
    Entry(
        "IndependentLabeler-no-proba",
        seqlab.IndependentLabeler(LinearSVC(dual=False, tol=1e-10, max_iter=10_000)),
        weight_is_repetition=True,
        interruptible=False,
    ),
    # One pass, nothing to interrupt if every label is known (test_hmm_em.py interrupts EM).
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
        parallel=("fit", "predict"),
    ),
    Entry(
        "MEMM",
        seqlab.MEMM(LogisticRegression(tol=1e-10, max_iter=2000)),
        weight_is_repetition=True,
        interruptible=False,
    ),
    Entry(
        "MEMM-beam",
        seqlab.MEMM(
            LogisticRegression(tol=1e-10, max_iter=2000),
            history=2,
            conjunction=True,
            decoding="beam",
            beam_width=4,
        ),
        weight_is_repetition=True,
        interruptible=False,
        parallel=(),
    ),
    Entry(
        "StackedSequentialLearner",
        seqlab.StackedSequentialLearner(
            seqlab.LinearChainCRF(c2=0.5, tol=1e-10), cv=2, window=(1, 1), random_state=0
        ),
        interruptible=False,
        parallel=("fit", "predict"),
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
        parallel=("fit", "predict"),
    ),
    Entry(
        "StackedSequentialLearner-classifier",
        seqlab.StackedSequentialLearner(
            LogisticRegression(tol=1e-10, max_iter=2000),
            cv=2,
            window=(
                1,
                0,
            ),  # few columns: in wide matrices BLAS rounds a row depending on its position
            random_state=0,
        ),
        interruptible=False,
        parallel=("fit",),
    ),
    Entry(
        "Tagger",
        seqlab.Tagger(None, seqlab.LinearChainCRF(c2=0.5, tol=1e-10)),
        weight_is_repetition=True,
        parallel=("fit", "predict"),
    ),
]
# Public names that are not labelers: any other name must be registered above.
# `PhraseInference` labels phrases, not steps: test_phrase_inference.py checks it.
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
