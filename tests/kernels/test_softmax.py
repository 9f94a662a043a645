import numpy as np
import pytest

from numbagrad.kernels.softmax import log_softmax, log_softmax_vjp, softmax, softmax_vjp
from numbagrad.launch import launch

F, D = np.float32, np.float64
SHAPES = [(1, 1, 1), (3, 5, 1), (2, 40, 1), (2, 5, 3), (0, 4, 1), (2, 3, 0), (1, 3000, 1)]


def reference(x, temperature=1.0):
    z = x.astype(D) / temperature
    z = z - z.max(1, keepdims=True)
    log = z - np.log(np.exp(z).sum(1, keepdims=True))
    return np.exp(log), log


def run(kernel, x, temperature=1.0):
    y = np.full(x.size, np.nan, x.dtype)
    launch(kernel, x.ravel(), y, *x.shape, temperature)
    return y.reshape(x.shape)


@pytest.mark.parametrize("dtype", [F, D])
def test_values_and_vjps(dtype):
    rng = np.random.default_rng(0)
    eps = np.finfo(dtype).eps
    for shape in SHAPES:
        for temperature in (1.0, 2.5):
            x, g = (3 * rng.standard_normal(shape)).astype(dtype), rng.standard_normal(shape).astype(dtype)
            p, log = reference(x, temperature)
            y, ylog = run(softmax, x, temperature), run(log_softmax, x, temperature)
            np.testing.assert_allclose(y, p, rtol=20 * eps)
            np.testing.assert_allclose(ylog, log, rtol=4 * eps, atol=8 * eps)
            dx = np.full(x.size, np.nan, dtype)
            launch(softmax_vjp, g.ravel(), y.ravel(), dx, *shape, temperature)
            expected = p * (g - (g * p).sum(1, keepdims=True)) / temperature
            np.testing.assert_allclose(dx.reshape(shape), expected, rtol=20 * eps, atol=30 * eps)
            launch(log_softmax_vjp, g.ravel(), ylog.ravel(), dx, *shape, temperature)
            expected = (g - p * g.astype(D).sum(1, keepdims=True)) / temperature
            np.testing.assert_allclose(dx.reshape(shape), expected, rtol=20 * eps, atol=30 * eps)


@pytest.mark.parametrize(("forward", "vjp"), [(softmax, softmax_vjp), (log_softmax, log_softmax_vjp)])
def test_vjp_against_finite_differences(forward, vjp):
    rng = np.random.default_rng(1)
    x, g = rng.standard_normal((2, 4, 3)), rng.standard_normal((2, 4, 3))
    dx = np.empty(x.size)
    launch(vjp, g.ravel(), run(forward, x, 0.7).ravel(), dx, *x.shape, 0.7)
    for i in range(x.size):
        high, low = x.copy(), x.copy()
        high.flat[i] += 1e-6
        low.flat[i] -= 1e-6
        slope = (g * (run(forward, high, 0.7) - run(forward, low, 0.7))).sum() / 2e-6
        assert dx[i] == pytest.approx(slope, abs=1e-7)


def test_large_and_special_logits():
    x = np.array([[1000, -1000, 0], [-1000, -1000, -1000], [-np.inf, 0, 0], [np.nan, 1, 2], [1, 2, np.nan]], F)
    y = run(softmax, x[..., None])[..., 0]
    np.testing.assert_array_equal(y[0], [1, 0, 0])
    np.testing.assert_allclose(y[1], 1 / 3, rtol=2e-7)
    np.testing.assert_array_equal(y[2], [0, 0.5, 0.5])
    assert np.isnan(y[3:]).all()
    log = run(log_softmax, x[..., None])[..., 0]
    np.testing.assert_array_equal(log[0], [0, -2000, -1000])
    np.testing.assert_allclose(log[2], [-np.inf, -np.log(2), -np.log(2)], rtol=2e-7)
    assert np.isnan(log[3:]).all()
