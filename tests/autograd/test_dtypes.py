"""Dtypes of gradients."""

import numpy as np
import pytest

from numbagrad import autograd, nd
from numbagrad.errors import MXNetError


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_an_int_leaf_has_a_float32_gradient_with_its_fraction(dtype):
    x = nd.array([1, 2, 3], dtype=dtype)
    x.attach_grad()
    assert x.grad.dtype is np.float32
    with autograd.record():
        y = x * 0.25
    y.backward()
    assert x.grad.asnumpy().tolist() == [0.25] * 3


def test_an_int_leaf_among_float64_arrays():
    x = nd.array([1, 2], dtype="int32")
    x.attach_grad()
    weight = nd.array([0.5, 0.25], dtype="float64")
    with autograd.record():
        y = x * weight + x * nd.array([1.0, 1.0])
    assert y.dtype is np.float64
    y.backward()
    assert x.grad.dtype is np.float32
    assert x.grad.asnumpy().tolist() == [1.5, 1.25]
    with autograd.record():
        y = x * weight
    (found,) = autograd.grad(y, x)
    assert found.dtype is np.float32
    assert found.asnumpy().tolist() == [0.5, 0.25]


@pytest.mark.parametrize("request_", ["write", "add"])
def test_float16(request_):
    x = nd.array([0.5, -2.0], dtype="float16")
    x.attach_grad(request_)
    assert x.grad.dtype is np.float16
    assert x.grad.asnumpy().tolist() == [0.0, 0.0]
    for _ in range(2):
        with autograd.record():
            y = x * x + x
        y.backward()
    times = 2 if request_ == "add" else 1
    assert x.grad.asnumpy().tolist() == [times * 2.0, times * -3.0]


def test_a_float16_intermediate_used_four_times():
    x = nd.array([1.0, 2.0], dtype="float16")
    x.attach_grad()
    with autograd.record():
        h = x * 2
        y = h * 1 + h * 2 + h * 3 + h * h
    y.backward()
    assert x.grad.asnumpy().tolist() == [12.0 + 8.0, 12.0 + 16.0]


def test_mixed_widths_keep_each_leafs_dtype():
    x = nd.array([1.0, 2.0])
    z = nd.array([3.0, 4.0], dtype="float64")
    x.attach_grad()
    z.attach_grad()
    with autograd.record():
        y = x * z
    y.backward()
    assert (x.grad.dtype, z.grad.dtype) == (np.float32, np.float64)
    assert x.grad.asnumpy().tolist() == [3.0, 4.0]
    assert z.grad.asnumpy().tolist() == [1.0, 2.0]


def test_a_gradient_goes_back_through_casts():
    x = nd.array([1.5, -2.5], dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = x.astype("float32").astype("float64") * x
    y.backward()
    assert x.grad.dtype is np.float64
    assert x.grad.asnumpy().tolist() == [3.0, -5.0]


def test_a_round_trip_through_int_has_gradient_one():
    x = nd.array([1.5, -2.5])
    x.attach_grad()
    with autograd.record():
        y = x.astype("int32").astype("float32") * 0.5
    y.backward()
    assert x.grad.asnumpy().tolist() == [0.5, 0.5]


@pytest.mark.parametrize("op", [nd.floor, nd.sign, nd.zeros_like, lambda x: x > 0, lambda x: nd.argmax(x, axis=0)])
def test_steps_are_recorded_with_zero_gradient(op):
    x = nd.array([1.5, -2.5])
    x.attach_grad()
    x.grad[:] = 9.0
    with autograd.record():
        y = op(x)
    y.backward()
    assert x.grad.asnumpy().tolist() == [0.0, 0.0]


def test_the_head_of_an_int_graph_takes_a_float_head_gradient():
    x = nd.array([1, 2], dtype="int64")
    x.attach_grad()
    with autograd.record():
        y = x * x
    assert y.dtype is np.int64
    for other in ("float64", "int32"):
        with pytest.raises(MXNetError, match=other):
            y.backward(nd.array([1, 1], dtype=other))
    y.backward(nd.array([0.5, 2.0]))
    assert x.grad.asnumpy().tolist() == [1.0, 8.0]


def test_the_gradient_of_an_int_variable_may_be_int_or_float32():
    for dtype, right in (("int32", [6, 7]), ("float32", [6.5, 7.5])):
        x, g = nd.array([2, 3], dtype="int32"), nd.array([9, 9], dtype=dtype)
        autograd.mark_variables([x], [g])
        with autograd.record():
            y = x * nd.array([6.5, 7.5])
        y.backward()
        assert g.asnumpy().tolist() == right


def test_the_head_gradient_of_an_int_head_may_be_int():
    x = nd.array([2, 3], dtype="int32")
    x.attach_grad()
    with autograd.record():
        y = x * 3
    y.backward(nd.array([5, 7], dtype="int32"))
    assert x.grad.asnumpy().tolist() == [15, 21]
    assert x.grad.dtype == np.float32
