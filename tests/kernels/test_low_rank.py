"""KernelFeatures: pivoted Cholesky with a stated error."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from seqlab import StructuredSVM, SubsequenceKernel, load, save
from seqlab.data import InputError
from seqlab.kernels import KernelFeatures, RBFKernel, merge_equal_rows


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    X = [(random.random((15, 3)) < 0.4).astype(float) for _ in range(6)]
    y = [np.where(np.concatenate([[0], x[:-1, 0]]) > 0, "b", "a") for x in X]
    return X, y


KERNEL = SubsequenceKernel(2, 0.7, window=(1, 1))


@pytest.mark.parametrize("kernel", [KERNEL, RBFKernel(0.5)])
def test_all_pivots_give_back_the_kernel(data, kernel):
    X, _ = data
    features = KernelFeatures(kernel, tol=0.0).fit(X)
    assert features.error_ == pytest.approx(0.0, abs=1e-10)
    from seqlab.data import Sequences

    inputs = kernel.inputs(Sequences.from_list(X))
    found = features.transform(X).matrix
    expected = kernel.bind(inputs).rows(inputs)
    np.testing.assert_allclose(found @ found.T, expected, atol=1e-8)


@pytest.mark.parametrize("rank", [1, 5, 12])
def test_error_is_that_of_the_matrix_of_distinct_inputs(data, rank):
    X, _ = data
    features = KernelFeatures(KERNEL, max_rank=rank, tol=0.0).fit(X)
    windows, place = merge_equal_rows(KERNEL.windows(X))
    first = np.unique(place, return_index=True)[1]
    found = features.transform(X).matrix[first]
    residual = KERNEL(windows) - found @ found.T
    assert found.shape[1] == rank
    assert features.error_ == pytest.approx(np.trace(residual) / windows.shape[0], rel=1e-8)
    assert np.abs(residual).max() <= features.max_error_ + 1e-12
    assert np.linalg.eigvalsh(residual).min() > -1e-10


def test_rank_is_the_smallest_that_reaches_the_tolerance(data):
    X, _ = data
    features = KernelFeatures(KERNEL, tol=0.2).fit(X)
    rank = features.pivots_.shape[0]
    assert features.error_ <= 0.2
    assert KernelFeatures(KERNEL, max_rank=rank - 1, tol=0.2).fit(X).error_ > 0.2


def test_linear_model_on_features_equals_the_kernel_model(data, tmp_path):
    X, y = data
    exact = StructuredSVM(kernel=KERNEL, solver="1-slack", tol=1e-6).fit(X, y)
    pipeline = make_pipeline(
        KernelFeatures(KERNEL, tol=0.0), StructuredSVM(solver="1-slack", tol=1e-6)
    ).fit(X, y)
    assert pipeline[-1].objective_ == pytest.approx(exact.objective_, rel=1e-4)
    save(pipeline, tmp_path / "model.seqlab")
    again = load(tmp_path / "model.seqlab")
    assert all(map(np.array_equal, again.predict(X), pipeline.predict(X)))


def test_wrong_input_is_refused(data):
    X, _ = data
    features = KernelFeatures(KERNEL).fit(X)
    with pytest.raises(InputError, match="X has 2 features, but KernelFeatures is expecting 3"):
        features.transform([x[:, :2] for x in X])
    with pytest.raises(InputError, match="the kernel has no features"):
        KernelFeatures(SubsequenceKernel(2, normalize=False)).fit([np.zeros((3, 2))])
    with pytest.raises(ValueError, match="kernel"):
        KernelFeatures("rbf").fit(X)
