"""Matrix products: MXNet's dot, batches, NumPy's matmul."""

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, nd

RNG = np.random.default_rng(3)


def draw(*shape):
    return RNG.standard_normal(shape)


@pytest.mark.parametrize(
    ("a", "b", "ta", "tb", "axes"),
    [
        ((2, 3), (3, 4), False, False, (1, 0)),
        ((3, 2), (3, 4), True, False, (0, 0)),
        ((2, 3), (4, 3), False, True, (1, 1)),
        ((3, 2), (4, 3), True, True, (0, 1)),
        ((2, 3), (3,), False, False, (1, 0)),
        ((3,), (3, 4), False, False, (0, 0)),
        ((2, 3, 4), (4, 5), False, False, (2, 0)),
        ((2, 3, 4), (2, 5, 4), False, True, (2, 2)),
        ((4, 2, 3), (4, 5), True, False, (0, 0)),
    ],
)
def test_dot(a, b, ta, tb, axes):
    x, y = draw(*a), draw(*b)
    u, v = nd.array(x, dtype="float64"), nd.array(y, dtype="float64")
    u.attach_grad()
    v.attach_grad()
    expected = np.tensordot(x, y, axes)
    head = draw(*expected.shape)
    with autograd.record():
        z = nd.dot(u, v, transpose_a=ta, transpose_b=tb)
    np.testing.assert_allclose(z.asnumpy(), expected, rtol=1e-12, atol=1e-14)
    z.backward(nd.array(head, dtype="float64"))
    # The product is linear in each: the gradient is its value at unit arrays.
    for variable, values, other in ((u, x, False), (v, y, True)):
        slopes = [
            (np.tensordot(*((x, e.reshape(y.shape)) if other else (e.reshape(x.shape), y)), axes) * head).sum()
            for e in np.eye(values.size)
        ]
        np.testing.assert_allclose(variable.grad.asnumpy().ravel(), slopes, rtol=1e-11, atol=1e-13)


def test_vectors_and_the_method():
    x = nd.array([1.0, 2.0, 3.0])
    assert nd.dot(x, x).shape == (1,)
    assert x.dot(x).asscalar() == 14


def test_dtypes():
    x = nd.array([[1, 2], [3, 4]], dtype="int32")
    assert nd.dot(x, x).dtype is np.int32
    assert nd.dot(x, x).asnumpy().tolist() == [[7, 10], [15, 22]]
    assert nd.dot(x, x, transpose_a=True).asnumpy().tolist() == [[10, 14], [14, 20]]
    assert nd.dot(x, nd.ones((2, 1))).dtype is np.float32
    half = nd.ones((2, 2), dtype="float16")
    assert nd.dot(half, half).dtype is np.float16
    assert nd.dot(half, half).asnumpy().tolist() == [[2, 2], [2, 2]]


def test_sizes_of_zero():
    assert nd.dot(nd.ones((2, 0)), nd.ones((0, 3))).asnumpy().tolist() == [[0, 0, 0], [0, 0, 0]]
    assert nd.dot(nd.ones((0, 2)), nd.ones((2, 3))).shape == (0, 3)
    assert nd.batch_dot(nd.ones((0, 2, 2)), nd.ones((0, 2, 2))).shape == (0, 2, 2)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_batch_dot(ta, tb):
    x, y = draw(2, 5, *((4, 3) if ta else (3, 4))), draw(2, 5, *((2, 4) if tb else (4, 2)))
    got = nd.batch_dot(nd.array(x, dtype="float64"), nd.array(y, dtype="float64"), ta, tb).asnumpy()
    expected = (x.swapaxes(-1, -2) if ta else x) @ (y.swapaxes(-1, -2) if tb else y)
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (5, 3, 2)),
        ((5, 2, 3), (3, 4)),
        ((5, 1, 2, 3), (4, 3, 2)),
        ((2, 3), (4, 3, 2)),
    ],
)
def test_matmul(a, b):
    x, y = draw(*a), draw(*b)
    got = nd.array(x, dtype="float64") @ nd.array(y, dtype="float64")
    expected = x @ y
    assert got.shape == expected.shape
    np.testing.assert_allclose(got.asnumpy(), expected, rtol=1e-12, atol=1e-14)


def test_what_does_not_fit():
    with pytest.raises(mx.MXNetError, match=r"dot: cannot multiply \(2, 3\) by \(2, 3\): axis -1 of the first is 3"):
        nd.dot(nd.ones((2, 3)), nd.ones((2, 3)))
    with pytest.raises(mx.MXNetError, match="batch_dot"):
        nd.batch_dot(nd.ones((2, 3, 4)), nd.ones((3, 4, 2)))
    with pytest.raises(mx.MXNetError, match="3 axes"):
        nd.batch_dot(nd.ones((3, 4)), nd.ones((4, 2)))
    with pytest.raises(TypeError, match="dot"):
        nd.dot(nd.ones((2, 2)), 3)
    with pytest.raises(TypeError):
        nd.ones((2, 2)) @ 3
