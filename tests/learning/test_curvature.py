"""The diagonal of the Hessian, and the distance from the optimum that it predicts."""

import numpy as np
import pytest

from seqlab import LinearChainCRF
from seqlab.datasets import make_hmm_sequences


@pytest.mark.parametrize("c1", [0.0, 0.1])
@pytest.mark.parametrize("n_copies", [1, 6])
def test_collinear_frequent_features_do_not_stop_training_early(n_copies, c1):
    """Copies of a constant column: the objective is flat in the directions of their differences."""
    X, y = make_hmm_sequences(60, random_state=1, return_X_y=True)
    random = np.random.default_rng(0)
    wide = [
        np.hstack([x, np.ones((len(x), n_copies)), random.random((len(x), 4)) < 0.99]) for x in X
    ]
    options = {"c1": c1, "c2": 0.01, "max_iter": 3000}
    model = LinearChainCRF(tol=1e-3, **options).fit(wide, y)
    tight = LinearChainCRF(tol=1e-8, **options).fit(wide, y)
    assert model.converged_
    assert model.objective_ <= tight.objective_ * 1.001
    assert model.n_iter_ < tight.n_iter_


def test_the_reported_gap_includes_the_decrement_of_slow_directions():
    X, y = make_hmm_sequences(60, random_state=2, return_X_y=True)
    model = LinearChainCRF(c2=0.1, tol=1e-3, max_iter=500).fit(X, y)
    tight = LinearChainCRF(c2=0.1, tol=1e-9, max_iter=5000).fit(X, y)
    true = np.array(model.history_["objective"]) - tight.objective_
    gaps = np.array(model.history_["gap"])
    assert model.converged_
    assert (gaps[5:] >= true[5:]).mean() > 0.9
