"""Batch and layer normalization: values, running statistics, gradients; the sweep over the registry does the orders."""

import numpy as np
import pytest

from numbagrad import autograd, nd
from numbagrad.errors import MXNetError
from numbagrad.ops.normalization import batch_norm, layer_norm

# Case B79 of the behaviour suite.
X = np.array([[0.18527887, 2.0], [-1.23678724, 1.0], [0.7, -3.0], [0.1, 0.5]])
C = np.array([[1.0, 0.3], [-2.0, 0.7], [0.5, -1.0], [0.4, 2.0]])
GAMMA, BETA = np.array([1.5, -0.5]), np.array([0.1, 0.2])


def _variable(values, request="write", dtype="float32"):
    x = nd.array(values, dtype=dtype)
    x.attach_grad(request)
    return x


def _batch(x, gamma, beta, mean, var, training=True, axis=1, fix_gamma=False, eps=1e-5, momentum=0.9):
    return batch_norm(
        x,
        gamma,
        beta,
        mean,
        var,
        axis=axis,
        eps=eps,
        momentum=momentum,
        fix_gamma=fix_gamma,
        training=training,
        recording=autograd.is_recording(),
    )


def _running(n, dtype="float32"):
    return nd.zeros((n,), dtype=dtype), nd.ones((n,), dtype=dtype)


def _images():
    return np.sin(np.arange(2 * 3 * 5 * 7) * 1.1).reshape(2, 3, 5, 7) * 2 + 4


@pytest.mark.parametrize(("shape", "axis"), [((6, 3), 1), ((2, 3, 5, 7), 1), ((2, 5, 7, 3), 3), ((3, 40), 0)])
def test_batch_statistics(shape, axis):
    """Values against NumPy; running statistics move once, by the biased variance."""
    v = np.sin(np.arange(np.prod(shape)) * 1.1).reshape(shape) * 2 + 4
    axes = tuple(k for k in range(v.ndim) if k != axis)
    along = tuple(3 if k == axis else 1 for k in range(v.ndim))
    gamma, beta = np.array([1.0, -2.0, 0.5]), np.array([0.0, 1.0, 3.0])
    mean, var = _running(3)
    y = _batch(nd.array(v), nd.array(gamma), nd.array(beta), mean, var, axis=axis)
    z = (v - v.mean(axes, keepdims=True)) / np.sqrt(v.var(axes, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y.asnumpy(), z * gamma.reshape(along) + beta.reshape(along), rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(mean.asnumpy(), 0.1 * v.mean(axes), rtol=1e-6)
    np.testing.assert_allclose(var.asnumpy(), 0.9 + 0.1 * v.var(axes), rtol=1e-6)


def test_a_large_mean_costs_no_digits():
    """x = 10000 + small: the variance is that of the small part."""
    small = np.tile(np.array([-1.0, 1.0, 3.0, -3.0]), 64).reshape(-1, 1)
    mean, var = _running(1)
    y = _batch(nd.array(small + 1e4), nd.ones((1,)), nd.zeros((1,)), mean, var)
    np.testing.assert_allclose(y.asnumpy(), small / np.sqrt(5 + 1e-5), rtol=1e-6)
    np.testing.assert_allclose(var.asnumpy(), [0.9 + 0.1 * 5], rtol=1e-6)
    row = layer_norm(nd.array(small.T + 1e4), nd.ones((256,)), nd.zeros((256,)), axis=1, eps=1e-5)
    np.testing.assert_allclose(row.asnumpy(), small.T / np.sqrt(5 + 1e-5), rtol=1e-6)


def test_batch_gradients():
    """The published formula for data, gamma and beta."""
    x, gamma, beta = _variable(X), _variable(GAMMA), _variable(BETA)
    with autograd.record():
        y = _batch(x, gamma, beta, *_running(2)) * nd.array(C)
    y.backward()
    s = np.sqrt(X.var(0) + 1e-5)
    z = (X - X.mean(0)) / s
    np.testing.assert_allclose(beta.grad.asnumpy(), C.sum(0), rtol=1e-5)
    np.testing.assert_allclose(gamma.grad.asnumpy(), (C * z).sum(0), rtol=1e-5)
    expected = GAMMA * (C - C.mean(0) - z * (C * z).mean(0)) / s
    np.testing.assert_allclose(x.grad.asnumpy(), expected, rtol=1e-4, atol=1e-6)


def test_gradients_accumulate():
    """grad_req add: twice the gradient after two passes, for gamma and beta too."""
    x, gamma, beta = _variable(_images(), "add"), _variable([1, 2, 3], "add"), _variable([0, 0, 0], "add")
    once = []
    for _ in range(2):
        with autograd.record():
            y = _batch(x, gamma, beta, *_running(3))
            z = y * y * x
        z.backward()
        once.append([v.grad.asnumpy() for v in (x, gamma, beta)])
    for first, both in zip(*once, strict=True):
        np.testing.assert_allclose(both, 2 * first, rtol=1e-6)


def test_fixed_gamma_counts_as_1():
    """Value, and a gradient of 0, at first and second order."""
    # In float64, for which the sweep has compiled the second order.
    x, gamma, beta = (_variable(v, dtype="float64") for v in (X, [7.0, 7.0], BETA))
    with autograd.record():
        y = _batch(x, gamma, beta, *_running(2), fix_gamma=True)
    gamma.grad[:] = 5
    y.backward()
    z = (X - X.mean(0)) / np.sqrt(X.var(0) + 1e-5)
    np.testing.assert_allclose(y.asnumpy(), z + BETA, rtol=1e-4, atol=1e-6)
    assert (gamma.grad.asnumpy() == 0).all()
    with autograd.record():
        y = _batch(x, gamma, beta, *_running(2), fix_gamma=True)
        gx, gg = autograd.grad(y * y * y, [x, gamma], create_graph=True)
    assert (gg.asnumpy() == 0).all()
    assert np.abs(gx.asnumpy()).max() > 0.01


def test_prediction_takes_running_statistics():
    """And leaves them; the gradient is gamma / deviation times the head, the statistics being constants."""
    x, gamma, beta = _variable(X), _variable(GAMMA), _variable(BETA)
    mean, var = nd.array([0.5, -1.0]), nd.array([4.0, 0.25])
    with autograd.record():
        y = _batch(x, gamma, beta, mean, var, training=False, eps=0.0)
        # They may move before the backward.
        _batch(nd.array(X), gamma, beta, mean, var)
    y.backward(nd.array(C))
    s = np.array([2.0, 0.5])
    z = (X - np.array([0.5, -1.0])) / s
    np.testing.assert_allclose(y.asnumpy(), z * GAMMA + BETA, rtol=1e-5)
    np.testing.assert_allclose(x.grad.asnumpy(), C * GAMMA / s, rtol=1e-6)
    np.testing.assert_allclose(gamma.grad.asnumpy(), (C * z).sum(0), rtol=1e-5)
    np.testing.assert_allclose(beta.grad.asnumpy(), C.sum(0), rtol=1e-5)


def test_bad_shapes_leave_running_statistics():
    """Refused before anything is written, with the shapes named."""
    x, two, three = nd.array(X), nd.ones((2,)), nd.ones((3,))
    mean, var = _running(2)
    for arrays, name in (((three, two, mean, var), "gamma"), ((two, three, mean, var), "beta")):
        with pytest.raises(MXNetError, match=rf"{name} of shape \(3,\).*\(4, 2\)"):
            _batch(x, *arrays)
    with pytest.raises(MXNetError, match="moving_var of shape"):
        _batch(x, two, two, mean, three)
    assert mean.asnumpy().tolist() == [0, 0]
    assert var.asnumpy().tolist() == [1, 1]


def test_empty_batch():
    """Nothing to normalize, and the running statistics stay."""
    mean, var = _running(2)
    y = _batch(nd.zeros((0, 2)), nd.ones((2,)), nd.ones((2,)), mean, var)
    assert y.shape == (0, 2)
    assert mean.asnumpy().tolist() == [0, 0]
    assert var.asnumpy().tolist() == [1, 1]


def test_float16_data_with_float32_parameters():
    """Computed in float32, rounded once; parameters keep their dtype."""
    mean, var = _running(2)
    gamma = _variable(GAMMA)
    with autograd.record():
        y = _batch(nd.array(X, dtype="float16"), gamma, nd.array(BETA), mean, var)
    y.backward()
    v = X.astype("float16").astype(float)
    expected = (v - v.mean(0)) / np.sqrt(v.var(0) + 1e-5) * GAMMA + BETA
    assert y.dtype == np.float16
    assert gamma.grad.dtype == np.float32
    np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("shape", "axis"), [((3, 1500), 1), ((4, 5, 3), 1)])
def test_layer_values_and_gradients(shape, axis):
    """Against the formula, along the last axis and along one in the middle."""
    v = np.sin(np.arange(np.prod(shape)) * 1.1).reshape(shape)
    c = np.cos(np.arange(np.prod(shape)) * 0.7).reshape(shape)
    n = shape[axis]
    along = tuple(n if k == axis else 1 for k in range(v.ndim))
    rest = tuple(k for k in range(v.ndim) if k != axis)
    g, b = np.linspace(-1, 2, n), np.linspace(0, 1, n)
    x, gamma, beta = _variable(v), _variable(g), _variable(b)
    with autograd.record():
        y = layer_norm(x, gamma, beta, axis=axis, eps=1e-5)
    y.backward(nd.array(c))
    s = np.sqrt(v.var(axis, keepdims=True) + 1e-5)
    z = (v - v.mean(axis, keepdims=True)) / s
    h = c * g.reshape(along)
    expected = (h - h.mean(axis, keepdims=True) - z * (h * z).mean(axis, keepdims=True)) / s
    np.testing.assert_allclose(y.asnumpy(), z * g.reshape(along) + b.reshape(along), rtol=1e-4, atol=2e-6)
    np.testing.assert_allclose(x.grad.asnumpy(), expected, rtol=1e-4, atol=3e-6)
    np.testing.assert_allclose(gamma.grad.asnumpy(), (c * z).sum(rest), rtol=1e-4, atol=2e-6)
    np.testing.assert_allclose(beta.grad.asnumpy(), c.sum(rest), rtol=1e-4, atol=2e-6)


def test_layer_refuses_what_does_not_fit():
    """With the shapes named."""
    with pytest.raises(MXNetError, match=r"LayerNorm: gamma of shape \(2,\).*\(4, 3\)"):
        layer_norm(nd.ones((4, 3)), nd.ones((2,)), nd.ones((3,)), axis=1, eps=1e-5)
