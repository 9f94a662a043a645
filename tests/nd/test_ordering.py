"""Sorting and positions of extremes; numbers are MXNet 1.9.1's where its conventions are its own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from numbagrad import autograd, nd
from numbagrad.errors import MXNetError

Y = [[3, 1, 2], [1, 5, 5]]
NAN, INF = float("nan"), float("inf")


def array(values, dtype="float32"):
    return nd.array(values, dtype=dtype)


def variable(values):
    result = array(values)
    result.attach_grad()
    return result


def same(result, expected, dtype="float32"):
    assert result.dtype == np.dtype(dtype).type
    assert result.shape == np.shape(expected)
    np.testing.assert_array_equal(result.asnumpy(), expected)


def test_sort():
    same(nd.sort(array(Y)), [[1, 2, 3], [1, 5, 5]])
    same(nd.sort(array(Y), axis=None), [1, 1, 2, 3, 5, 5])
    same(array(Y).sort(axis=0, is_ascend=False), [[3, 5, 5], [1, 1, 2]])
    same(nd.sort(array([NAN, 1, INF, 0])), [0, 1, INF, NAN])  # MXNet puts NaN first
    same(nd.sort(array([NAN, 1, INF, 0]), is_ascend=False), [INF, 1, 0, NAN])
    same(nd.sort(array([3, 1], "float16")), [1, 3], "float16")
    assert nd.sort(array(np.zeros((2, 0)))).shape == (2, 0)
    with pytest.raises(MXNetError, match="axis"):
        nd.sort(array(Y), axis=2)


def test_argsort():
    same(nd.argsort(array(Y), is_ascend=False), [[0, 2, 1], [1, 2, 0]])
    same(nd.argsort(array(Y), axis=None), [1, 3, 2, 0, 4, 5])
    same(array(Y).argsort(dtype="int32"), [[1, 2, 0], [0, 1, 2]], "int32")


@given(
    arrays(np.float32, st.tuples(st.integers(0, 4), st.integers(0, 40)), elements=st.integers(-5, 5)),
    st.integers(0, 1),
    st.booleans(),
)
def test_sorts_are_stable(values, axis, ascending):
    order = np.argsort(values if ascending else -values, axis=axis, kind="stable")
    same(nd.argsort(array(values), axis=axis, is_ascend=ascending, dtype="int64"), order, "int64")
    same(nd.sort(array(values), axis=axis, is_ascend=ascending), np.take_along_axis(values, order, axis))


def test_topk():
    y = array(Y)
    same(nd.topk(y), [[0], [1]])
    same(nd.topk(y, k=2), [[0, 2], [1, 2]])
    same(y.topk(k=2, ret_typ="value"), [[3, 2], [5, 5]])
    values, indices = nd.topk(y, k=2, ret_typ="both", dtype="int64")
    same(values, [[3, 2], [5, 5]])
    same(indices, [[0, 2], [1, 2]], "int64")
    same(nd.topk(y, k=2, ret_typ="mask"), [[1, 0, 1], [0, 1, 1]])
    same(nd.topk(y, k=2, axis=None), [4, 5])
    same(nd.topk(y, k=2, axis=None, ret_typ="mask"), [[0, 0, 0], [0, 1, 1]])
    same(nd.topk(y, k=2, axis=None, ret_typ="value"), [5, 5])
    same(nd.topk(y, k=0), [[0, 2, 1], [1, 2, 0]])
    same(nd.topk(y, axis=0, is_ascend=True), [[1, 0, 0]])
    same(nd.topk(array(Y, "int32"), k=1), [[0], [1]])
    with pytest.raises(MXNetError, match="topk"):
        nd.topk(y, k=5)
    with pytest.raises(MXNetError, match="ret_typ"):
        nd.topk(y, ret_typ="values")
    out = [array([[0], [0]]), array([[0], [0]])]
    nd.topk(y, ret_typ="both", out=out)
    same(out[0], [[3], [5]])
    same(out[1], [[0], [1]])


@pytest.mark.parametrize("axis", [0, 1])
def test_gradients_go_back_to_where_elements_came_from(axis):
    values = np.array([[0.5, 2.0, -1.0], [1.5, -0.3, 0.7]])
    n = values.shape[axis]
    weight = np.arange(1.0, 7).reshape(2, 3)
    for k, choose in (
        (n, lambda x: nd.sort(x, axis=axis, is_ascend=False)),
        (2, lambda x: nd.topk(x, axis=axis, k=2, ret_typ="value")),
    ):
        head = np.take(weight, range(k), axis)
        scattered = np.zeros((2, 3))
        np.put_along_axis(scattered, np.take(np.argsort(-values, axis), range(k), axis), head, axis)
        x = variable(values)
        with autograd.record():
            y = choose(x)
        y.backward(array(head))
        np.testing.assert_array_equal(x.grad.asnumpy(), scattered)
        with autograd.record():
            cubes = choose(x * x * x) * array(head)  # cubing keeps the order
            (first,) = autograd.grad(cubes, [x], create_graph=True)
        np.testing.assert_allclose(first.asnumpy(), scattered * 3 * values**2, rtol=1e-5)
        first.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), scattered * 6 * values, rtol=1e-5)


def test_indices_have_zero_gradients():
    for choose in (nd.argsort, nd.topk, nd.argmax, nd.argmin):
        x = variable(Y)
        x.grad[:] = 4
        with autograd.record():
            y = choose(x)
        y.backward()
        np.testing.assert_array_equal(x.grad.asnumpy(), np.zeros((2, 3)))


def test_argmax():
    y = array(Y)
    same(nd.argmax(y), [4])
    same(nd.argmax(y, axis=1), [0, 1])
    same(y.argmin(axis=1, keepdims=True), [[1], [0]])
    same(nd.argmax(array(Y, "int32"), axis=1), [0, 1], "int32")
    same(nd.argmax(y, axis=0), [0, 1, 1])
    same(nd.argmax(y, keepdims=True), [[4]])
    same(nd.argmin(y, axis=-1), [1, 0])
    same(y.argmax_channel(), [0, 1])
    same(nd.argmax(array([1, NAN, 5])), [1])
    same(nd.argmin(array([1, NAN, 5])), [1])
    same(nd.argmax(array(5)), [0])
    with pytest.raises(MXNetError, match="argmax"):
        nd.argmax(y, axis=2)
    with pytest.raises(MXNetError, match="argmax"):
        nd.argmax(array(np.zeros((2, 0))), axis=1)
    assert nd.argmax(array(np.zeros((0, 2))), axis=1).shape == (0,)
