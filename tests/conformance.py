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

import numpy as np
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


TIME_LIMIT = 120.0  # seconds for a fit that takes less than one, compiling included


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
    Entry("BoostedCRF", seqlab.BoostedCRF(max_iter=10), parallel=("fit", "predict")),
    Entry(
        "BoostedCRF-beam",
        seqlab.BoostedCRF(max_iter=10, beam_width=2),
        parallel=("fit", "predict"),
    ),
    Entry(
        "BoostedCRF-order-0",
        seqlab.BoostedCRF(max_iter=10, order=0, leaf_values="least_squares"),
        parallel=("fit", "predict"),
    ),
    Entry(
        "LinearChainCRF-weighted",
        seqlab.LinearChainCRF(c2=0.5, tol=1e-10, class_weight="balanced"),
        parallel=("fit", "predict"),
    ),
    Entry(
        "RelationalBoostedCRF",
        seqlab.RelationalBoostedCRF(max_iter=5, max_leaf_nodes=5),
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
    Entry("M3N", seqlab.M3N(tol=1e-9, max_iter=600, random_state=0), weight_is_repetition=True),
    Entry(
        "M3N-poly",
        seqlab.M3N(kernel="poly", degree=2, tol=1e-9, max_iter=700, random_state=0),
        weight_is_repetition=True,
    ),
    Entry(
        "StructuredSVM",
        seqlab.StructuredSVM(tol=1e-10, max_iter=300, random_state=0),
        weight_is_repetition=True,
    ),
    Entry(
        "StructuredSVM-slack",
        seqlab.StructuredSVM(rescaling="slack", tol=1e-9),
        weight_is_repetition=True,
    ),
    Entry("StructHKL", seqlab.StructHKL(C=20, tol=0.05)),
    Entry("PatternHKL", seqlab.PatternHKL(C=20, window=(1, 0), min_support=4, tol=0.05)),
    Entry("StructHKL-shared", seqlab.StructHKL(C=20, rho=2.0, label_wise=False, tol=0.05)),
    Entry(
        "StructuredSVM-subsequences",
        seqlab.StructuredSVM(
            kernel=seqlab.SubsequenceKernel(2, window=(2, 1)), solver="1-slack", tol=1e-4
        ),
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
        "SequentialOutputCode",
        seqlab.SequentialOutputCode(seqlab.LinearChainCRF(c2=0.5, tol=1e-10), random_state=0),
        weight_is_repetition=True,
        interruptible=False,
        parallel=("fit", "predict"),
    ),
    Entry(
        "SequentialOutputCode-cascade",
        seqlab.SequentialOutputCode(
            seqlab.StructuredPerceptron(max_iter=3, random_state=0),
            cascade="auto",
            cascade_candidates=(0, 2),
            decoding="hamming",
            random_state=0,
        ),
        interruptible=False,
        parallel=("fit", "predict"),
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
    "GraphCRF",  # label the nodes of graphs: tests/models/graphs
    "GraphM3N",
    "LineFeatures",
    "ModelFileError",
    "SubsequenceKernel",  # tests/kernels/test_subsequence.py
    "SNoW",  # plain classifiers: tests/models/test_snow.py, test_tempered.py
    "TemperedClassifier",
    "SequenceVectorizer",
    "Templates",
    "load",
    "save",
    "__version__",
}


def same(a, b):
    """Whether two arrays, or two lists of arrays, are equal bit for bit."""
    if isinstance(a, list):
        return len(a) == len(b) and all(same(p, q) for p, q in zip(a, b, strict=True))
    return np.array_equal(a, b)


def answers(model, X, **options):
    """The results of all prediction methods that a labeler has."""
    out = {"predict": model.predict(X, **options)}
    for name in ("predict_proba", "decision_function"):
        if hasattr(model, name):
            out[name] = getattr(model, name)(X, **options)
    if hasattr(model, "predict_nbest"):
        best = model.predict_nbest(X, 3, **options)
        out["nbest"] = [labels for one in best for labels, _ in one]
        out["nbest_scores"] = [np.array([score for _, score in one]) for one in best]
    return out


def names_of_n_jobs(estimator):
    """Names of the ``n_jobs`` parameters of the labeler and of seqlab's estimators inside it."""
    parameters = estimator.get_params()
    owners = {name: name.rpartition("__")[0] for name in parameters if name.endswith("n_jobs")}
    return [
        name
        for name, owner in owners.items()
        if type(parameters[owner] if owner else estimator).__module__.startswith("seqlab.")
    ]


def scores_of(model, X):
    """The most detailed real-valued result that a labeler has: probabilities, else scores."""
    for name in ("predict_proba", "decision_function"):
        if hasattr(model, name):
            return getattr(model, name)(X)
    labels = [["a"] * len(x) for x in X]
    return [model.sequence_log_proba(X, labels)]


def make_data():
    """Return sequences of 4 to 8 steps, 5 features (some entries zero), 3 labels."""
    random = np.random.default_rng(0)
    X, y = [], []
    for i in range(12):
        labels = random.integers(0, 3, size=4 + i % 5)
        features = random.normal(size=(labels.size, 5)) * (random.random((labels.size, 5)) < 0.7)
        features[np.arange(labels.size), labels] += 1.0
        X.append(features)
        y.append([("a", "b", "c")[label] for label in labels])
    return X, y
