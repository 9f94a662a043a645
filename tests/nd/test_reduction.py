"""Reductions: MXNet's shapes, NumPy's values, exact gradients."""

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, nd
from numbagrad.errors import MXNetError

X = np.cos(np.arange(24) * 1.7).reshape(2, 3, 4) + 0.1
NAMES = {
    "sum": np.sum,
    "mean": np.mean,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "nansum": np.nansum,
    "nanprod": np.nanprod,
    "norm": lambda x, axis, keepdims: np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims)),
}


def gradient(function, values):
    x = nd.array(values, dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward()
    return x.grad.asnumpy().tolist()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("axis", [None, (), 0, -1, (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_values_and_shapes(name, axis, keepdims):
    x = nd.array(X, dtype="float64")
    result = getattr(nd, name)(x, axis=axis, keepdims=keepdims)
    expected = NAMES[name](X, axis=None if axis == () else axis, keepdims=keepdims)
    assert result.shape == (np.shape(expected) or (1,))
    np.testing.assert_allclose(result.asnumpy(), expected.reshape(result.shape), rtol=1e-13)
    assert (getattr(x, name)(axis=axis, keepdims=keepdims) == result).asnumpy().all()


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"norm"}))
def test_exclude(name):
    got = getattr(nd, name)(nd.array(X, dtype="float64"), axis=1, exclude=True)
    np.testing.assert_allclose(got.asnumpy(), NAMES[name](X, axis=(0, 2), keepdims=False), rtol=1e-13)


def test_vectors_and_numbers_reduce_to_shape_1():
    for x in (nd.array([2.0], dtype="float64"), nd.array(2.0, dtype="float64")):
        for name in NAMES:
            result = getattr(nd, name)(x)
            assert result.shape == (1,)
            assert result.asscalar() == 2
    assert nd.ones((3,)).sum(axis=0).asnumpy().tolist() == [3]


def test_dtypes():
    x = nd.array([[1, 2], [3, 4]], dtype="int32")
    assert x.sum().dtype is np.int32
    assert x.mean().dtype is np.float32
    assert x.mean().asscalar() == 2.5
    assert x.norm().dtype is np.float32
    np.testing.assert_allclose(x.norm().asscalar(), np.sqrt(30), rtol=1e-6)
    truths = nd.array([1, 1, 0], dtype="bool")
    assert truths.sum().dtype is np.int64
    assert truths.sum().asscalar() == 2
    half = nd.array([1, 2, 4], dtype="float16")
    assert half.mean().dtype is np.float16
    assert half.sum().asscalar() == 7


def test_empty():
    x = nd.zeros((0, 3), dtype="float64")
    assert x.sum().asnumpy().tolist() == [0]
    assert x.sum(axis=0).asnumpy().tolist() == [0, 0, 0]
    assert x.prod(axis=0).asnumpy().tolist() == [1, 1, 1]
    assert np.isnan(x.mean().asscalar())
    assert x.norm().asnumpy().tolist() == [0]
    assert x.max(axis=1).shape == (0,)
    assert nd.cumsum(x).shape == (0,)
    with pytest.raises(mx.MXNetError, match=r"max.*\(0, 3\)"):
        x.max()
    with pytest.raises(mx.MXNetError, match=r"min.*\(0, 3\)"):
        x.min(axis=0)


def test_nan():
    x = nd.array([1.0, np.nan, 3.0], dtype="float64")
    assert nd.nansum(x).asscalar() == 4
    assert nd.nanprod(x).asscalar() == 3
    assert np.isnan(x.max().asscalar())
    assert gradient(nd.nansum, [1, np.nan, 3]) == [1, 0, 1]
    assert gradient(nd.nanprod, [2, np.nan, 3]) == [3, 0, 2]


def test_gradients_at_special_points():
    assert gradient(nd.max, [[1, 3, 3], [3, 0, 1]]) == [[0, 1 / 3, 1 / 3], [1 / 3, 0, 0]]
    assert gradient(lambda x: nd.min(x, axis=1), [[1, 1], [2, 0]]) == [[0.5, 0.5], [0, 1]]
    assert gradient(nd.norm, [0, 0]) == [0, 0]
    assert gradient(nd.norm, [3, 4]) == [0.6, 0.8]
    assert gradient(lambda x: nd.norm(x, ord=1), [-2, 0, 3]) == [-1, 0, 1]
    assert gradient(nd.prod, [0, 2, 3]) == [6, 0, 0]
    assert gradient(nd.prod, [0, 2, 0]) == [0, 0, 0]


def test_prod_is_exact_with_zeros_at_second_order():
    x = nd.array([0.0, 2.0, 0.0], dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = nd.prod(x)
        (g,) = autograd.grad(y, [x], create_graph=True)
    g.backward(nd.array([1, 0, 0], dtype="float64"))  # the row of the Hessian for x0: 0, x2, x1
    assert x.grad.asnumpy().tolist() == [0, 0, 2]


def test_max_at_second_order_and_over_axes_apart():
    x = nd.array(X, dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = nd.square(nd.max(x, axis=(0, 2)))
        (g,) = autograd.grad(y, [x], create_graph=True)
    g.backward()
    expected = 2.0 * (X.max(axis=(0, 2), keepdims=True) == X)
    np.testing.assert_allclose(x.grad.asnumpy(), expected)


def test_norm_of_orders():
    x = nd.array([[1.0, -2.0], [3.0, -4.0]], dtype="float64")
    assert nd.norm(x, ord=1, axis=1).asnumpy().tolist() == [3, 7]
    with pytest.raises(mx.MXNetError, match="ord"):
        nd.norm(x, ord=3)


def test_moments_and_cumsum():
    average, variance = nd.moments(nd.array(X, dtype="float64"), axes=(0, 2))
    np.testing.assert_allclose(average.asnumpy(), X.mean(axis=(0, 2)), rtol=1e-13)
    np.testing.assert_allclose(variance.asnumpy(), X.var(axis=(0, 2)), rtol=1e-13)
    average, variance = nd.moments(nd.array(X, dtype="float64"))
    np.testing.assert_allclose([average.asscalar(), variance.asscalar()], [X.mean(), X.var()], rtol=1e-13)
    x = nd.array([[1, 2, 3], [4, 5, 6]], dtype="int64")
    assert nd.cumsum(x).asnumpy().tolist() == [1, 3, 6, 10, 15, 21]
    assert nd.cumsum(x, axis=0).asnumpy().tolist() == [[1, 2, 3], [5, 7, 9]]
    assert nd.cumsum(x, axis=1, dtype="float64").dtype is np.float64
    assert gradient(lambda v: nd.cumsum(v, axis=0), [[1, 2], [3, 4], [5, 6]]) == [[3, 3], [2, 2], [1, 1]]


def test_bad_axes():
    x = nd.ones((2, 3))
    with pytest.raises(mx.MXNetError, match=r"sum.*axis 5"):
        x.sum(axis=5)
    with pytest.raises(mx.MXNetError, match=r"sum.*twice"):
        x.sum(axis=(0, -2))
    with pytest.raises(TypeError, match="colour"):
        x.sum(colour=1)
    with pytest.raises(TypeError, match="sum"):
        nd.sum(np.ones(3))


def test_a_long_float32_sum_keeps_its_digits():
    x = nd.full((1_000_000,), 0.1)
    np.testing.assert_allclose(x.sum().asscalar(), 1_000_000 * np.float64(np.float32(0.1)), rtol=5e-7)


def test_finiteness_and_squares_of_many_arrays():
    good, bad, none = nd.array([1, 2]), nd.array([[1, np.inf]]), nd.zeros((0,))
    assert nd.all_finite(good).asnumpy().tolist() == [1]
    assert nd.all_finite(bad).asnumpy().tolist() == [0]
    assert nd.all_finite(none).asnumpy().tolist() == [1]
    assert nd.multi_all_finite(good, none, good, num_arrays=3).asnumpy().tolist() == [1]
    assert nd.multi_all_finite(good, nd.array([np.nan], dtype="float64")).asnumpy().tolist() == [0]
    out = nd.zeros((1,))
    assert nd.all_finite(good, init_output=False, out=out).asnumpy().tolist() == [0]
    assert nd.all_finite(good, out=out).asnumpy().tolist() == [1]
    assert nd.multi_sum_sq(good, nd.ones((2, 3)), num_arrays=2).asnumpy().tolist() == [5, 6]
    for function in (nd.multi_all_finite, nd.multi_sum_sq):
        with pytest.raises(MXNetError, match="num_arrays"):
            function(good, num_arrays=2)
