"""Dropout under autograd: rate, the forward's mask in every derivative, the stream of the process."""

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, nd
from numbagrad.errors import MXNetError
from numbagrad.ops.dropout import dropout, dropout_along

N = 20_000


def _ones(*shape):
    x = nd.ones(shape or (N,))
    x.attach_grad()
    return x


@pytest.mark.parametrize("p", [0.1, 0.4, 0.9])
def test_rate_and_scale(p):
    """Kept values are exactly 1 / (1 - p); their count lies within 5 standard deviations."""
    y = dropout(_ones(), p=p).asnumpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / (1 - p))}
    assert abs((y > 0).sum() - (1 - p) * N) < 5 * np.sqrt(p * (1 - p) * N)


def test_everything_dropped_at_1():
    """Zeros, no NaN, forward and backward."""
    x = _ones(50)
    x[:3] = np.array([np.inf, np.nan, -1])
    with autograd.record():
        y = dropout(x, p=1.0)
    y.backward()
    assert (y.asnumpy() == 0).all()
    assert (x.grad.asnumpy() == 0).all()


def test_gradient_has_the_mask_of_the_forward():
    """For x = 1 and a head gradient g the gradient is y g."""
    x = _ones()
    with autograd.record():
        y = dropout(x, p=0.3)
    head = nd.array(np.linspace(-1, 1, N))
    y.backward(head)
    np.testing.assert_allclose(x.grad.asnumpy(), y.asnumpy() * head.asnumpy(), rtol=1e-6)


def test_second_order_has_the_same_mask():
    """The sum of dropout(x)^3 at x = 1 has the second derivative 6 y / (1 - p)^2 on the diagonal."""
    x = _ones(300)
    with autograd.record():
        y = dropout(x, p=0.5)
        (g,) = autograd.grad(y * y * y, [x], create_graph=True)
    np.testing.assert_allclose(g.asnumpy(), 3 * (y.asnumpy() ** 2) * 2, rtol=1e-6, atol=0)
    g.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 6 * y.asnumpy() * 4, rtol=1e-6, atol=0)


def test_shared_along_axes():
    """One draw a column; the gradient follows it."""
    x = _ones(30, 200)
    with autograd.record():
        y = dropout_along(x, p=0.5, axes=(0,))
    y.backward()
    values = y.asnumpy()
    assert (values == values[:1]).all()
    assert 60 < (values[0] == 2).sum() < 140
    np.testing.assert_array_equal(x.grad.asnumpy(), values)


def test_same_seed_same_masks():
    """The stream goes on from call to call and starts anew with the seed."""
    x = _ones(500)
    mx.random.seed(11)
    first, second = dropout(x, p=0.5).asnumpy(), dropout(x, p=0.5).asnumpy()
    mx.random.seed(11)
    assert np.array_equal(dropout(x, p=0.5).asnumpy(), first)
    assert np.array_equal(dropout(x, p=0.5).asnumpy(), second)
    mx.random.seed(12)
    assert not np.array_equal(dropout(x, p=0.5).asnumpy(), first)
    assert not np.array_equal(first, second)


def test_a_bad_rate_draws_nothing():
    """The stream stands where it stood."""
    x = _ones(10)
    mx.random.seed(5)
    expected = dropout(x, p=0.5).asnumpy()
    mx.random.seed(5)
    with pytest.raises(MXNetError, match="between 0 and 1"):
        dropout(x, p=1.5)
    assert np.array_equal(dropout(x, p=0.5).asnumpy(), expected)
