import numpy as np
import pytest

from numbagrad.kernels import optimizer
from numbagrad.launch import launch

F, D = np.float32, np.float64
SIZES = (1, 7, 0, 40)


def table_of(*groups):
    rows = [[*(array.ctypes.data for array in arrays), arrays[0].size] for arrays in zip(*groups, strict=True)]
    return np.array(rows, np.int64).ravel()


def draw(rng, dtype, positive=False):
    arrays = [rng.standard_normal(size).astype(dtype) for size in SIZES]
    return [abs(array) for array in arrays] if positive else arrays


def clipped(values, clip):
    return np.clip(values, -clip, clip) if clip > 0 else values


@pytest.mark.parametrize("has_momentum", [False, True])
@pytest.mark.parametrize("dtype", [F, D])
def test_sgd_all_parameters_in_one_call(dtype, has_momentum):
    rng = np.random.default_rng(0)
    w, g, m = draw(rng, dtype), draw(rng, dtype), draw(rng, dtype)
    rows = np.array([[0.1, 0.01, 0.2, 0.9, 0], [0.2, 0, 0, 0, 4], [0.1, 0, 0, 0, 0], [0.3, 0.1, -1, 0.5, 7]])
    rescale = 0.5
    expected, twins = [], [[array.copy() for array in group] for group in (w, m)]
    for i in range(4):
        lr, wd, clip, momentum, _ = rows[i]
        step = lr * (clipped(rescale * g[i].astype(D), clip) + wd * w[i].astype(D))
        state = momentum * m[i].astype(D) - step if has_momentum else -step
        expected.append((w[i].astype(D) + state, state if has_momentum else m[i].copy()))
    kernel = (optimizer.SGD_MOMENTUM if has_momentum else optimizer.SGD).tables[np.dtype(dtype).name]
    table = table_of(w, g, m) if has_momentum else table_of(w, g)
    hyper = rows.ravel().copy()
    launch(kernel, table, hyper, 4, rescale)
    for i in range(4):
        np.testing.assert_allclose(w[i], expected[i][0], rtol=0, atol=8 * np.finfo(dtype).eps)
        np.testing.assert_allclose(m[i], expected[i][1], rtol=0, atol=8 * np.finfo(dtype).eps)
        if has_momentum:
            launch(optimizer.SGD_MOMENTUM.array, twins[0][i], g[i], twins[1][i], rows[i], rescale)
        else:
            launch(optimizer.SGD.array, twins[0][i], g[i], rows[i], rescale)
        assert (w[i] == twins[0][i]).all()
        assert (m[i] == twins[1][i]).all()
    assert (hyper == rows.ravel()).all()
    assert (rows[:, 4] == [1, 5, 1, 8]).all()  # the step counts, and nothing else, have moved


@pytest.mark.parametrize("dtype", [F, D])
def test_adam_three_steps(dtype):
    rng = np.random.default_rng(1)
    w, g = draw(rng, dtype), draw(rng, dtype)
    m, v = [np.zeros_like(array) for array in w], [np.zeros_like(array) for array in w]
    reference = [[array.astype(D) for array in group] for group in (w, m, v)]
    twins = [[array.copy() for array in group] for group in (w, m, v)]
    one, other = [0.1, 0.01, 0.2, 0.9, 0.999, 1e-8, 0, 0], [0.01, 0, 0, 0.8, 0.99, 1e-3, 0, 5]
    rows = np.array([one, one, other, [*one[:-1], 5]])  # in step, other averages, another count
    hyper = rows.ravel().copy()
    rescale = 0.5
    kernel = optimizer.ADAM.tables[np.dtype(dtype).name]
    table = table_of(w, g, m, v)
    for t in (1, 2, 3):
        launch(kernel, table, hyper, 4, rescale)
        launch(optimizer.ADAM.begin, rows.reshape(-1), 4)
        for i in range(4):
            launch(optimizer.ADAM.array, twins[0][i], g[i], twins[1][i], twins[2][i], rows[i], rescale)
            lr, wd, clip, beta1, beta2, epsilon = rows[i, :6]
            weight, mean, square = (group[i] for group in reference)
            gradient = clipped(rescale * g[i].astype(D) + wd * weight, clip)
            mean[:] = beta1 * mean + (1 - beta1) * gradient
            square[:] = beta2 * square + (1 - beta2) * gradient**2
            made = t + (0, 0, 5, 5)[i]
            rate = lr * np.sqrt(1 - beta2**made) / (1 - beta1**made)
            weight[:] -= rate * mean / (np.sqrt(square) + epsilon)
    for i in range(4):
        np.testing.assert_allclose(w[i], reference[0][i], rtol=0, atol=40 * np.finfo(dtype).eps)
        for group, twin in zip((w, m, v), twins, strict=True):
            assert (group[i] == twin[i]).all()
    assert (hyper.reshape(4, 8)[:, 7] == [3, 3, 8, 8]).all()


def test_nan_and_infinite_gradients_under_clipping():
    w, g = np.zeros(4, F), np.array([np.nan, np.inf, -np.inf, 0.5], F)
    launch(optimizer.SGD.array, w, g, np.array([1, 0, 2, 0, 0.0]), 1.0)
    np.testing.assert_array_equal(w, [np.nan, -2, 2, -0.5])
