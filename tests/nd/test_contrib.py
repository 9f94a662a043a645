"""nd.contrib."""

import numpy as np
import pytest

from numbagrad import autograd, nd
from numbagrad.errors import MXNetError

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kinds_of_numbers(dtype):
    x = nd.array([NAN, INF, -INF, 0, 1], dtype=dtype)
    for function, expected in (
        (nd.contrib.isnan, [1, 0, 0, 0, 0]),
        (nd.contrib.isinf, [0, 1, 1, 0, 0]),
        (nd.contrib.isfinite, [0, 0, 0, 1, 1]),
    ):
        result = function(x)
        assert result.dtype == np.dtype(dtype).type
        assert result.asnumpy().tolist() == expected


@pytest.mark.parametrize(
    ("a", "b", "more", "expected"),
    [
        ([1, 2], [1, 2.00001], {}, 1),
        ([1, 2], [1, 2.001], {}, 0),
        ([1, 2], [1, 2.001], {"rtol": 0.01}, 1),
        ([0.0], [0.5], {"atol": 1}, 1),
        ([NAN, 1], [NAN, 1], {}, 1),
        ([NAN, 1], [NAN, 1], {"equal_nan": False}, 0),
        ([INF], [INF], {}, 1),
        ([INF], [-INF], {}, 0),
        ([1], [INF], {}, 0),
        ([INF], [1], {}, 0),
    ],
)
def test_allclose(a, b, more, expected):
    result = nd.contrib.allclose(nd.array(a), nd.array(b), **more)
    assert result.shape == ()
    assert result.asscalar() == expected
    defaults = {"rtol": 1e-5, "atol": 1e-8, "equal_nan": True, **more}
    assert np.allclose(np.float32(a), np.float32(b), **defaults) == expected


def test_arange_like():
    x = nd.ones((2, 3))
    assert nd.contrib.arange_like(x).asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert nd.contrib.arange_like(x, axis=1).asnumpy().tolist() == [0, 1, 2]
    assert nd.contrib.arange_like(x, start=2, step=2, repeat=2, axis=-1).asnumpy().tolist() == [2, 2, 4]
    assert nd.contrib.arange_like(nd.ones((3,), dtype="float64")).dtype == np.float64
    assert nd.contrib.arange_like(nd.zeros((0, 2))).shape == (0, 2)


def test_index_array():
    x = nd.ones((2, 3))
    result = nd.contrib.index_array(x)
    assert result.dtype == np.int64
    assert result.asnumpy().tolist() == np.moveaxis(np.indices((2, 3)), 0, -1).tolist()
    assert nd.contrib.index_array(x, axes=(1, 0)).asnumpy()[1, 2].tolist() == [2, 1]


def test_index_copy_and_its_gradients():
    old, new = nd.zeros((4, 2)), nd.array([[1, 2], [3, 4], [5, 6]])
    index = nd.array([3, 0, 3])
    for array in (old, new):
        array.attach_grad()
    with autograd.record():
        result = nd.contrib.index_copy(old, index, new)
    result.backward(nd.array([[1, 2], [3, 4], [5, 6], [7, 8]]))
    assert result.asnumpy().tolist() == [[3, 4], [0, 0], [0, 0], [5, 6]]
    assert old.grad.asnumpy().tolist() == [[0, 0], [3, 4], [5, 6], [0, 0]]
    assert new.grad.asnumpy().tolist() == [[0, 0], [1, 2], [7, 8]]
    with pytest.raises(IndexError):
        nd.contrib.index_copy(old, nd.array([0, 1, 4]), new)
    with pytest.raises(MXNetError):
        nd.contrib.index_copy(old, nd.array([0, 1]), new)


def test_elementwise():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = nd.contrib.gradientmultiplier(x, scalar=-0.5)
    y.backward()
    assert y.asnumpy().tolist() == [1, 2]
    assert x.grad.asnumpy().tolist() == [-0.5, -0.5]
    assert nd.contrib.quadratic(x, a=1, b=2, c=3).asnumpy().tolist() == [6, 11]
    assert nd.contrib.div_sqrt_dim(nd.ones((3, 4))).asnumpy().tolist() == [[0.5] * 4] * 3


def test_foreach_is_a_running_sum_with_gradients():
    data, state = nd.array([[1, 2], [3, 4], [5, 6]]), nd.array([10, 20])
    for array in (data, state):
        array.attach_grad()
    with autograd.record():
        outputs, last = nd.contrib.foreach(lambda row, total: (row * 2, row + total), data, state)
        (outputs.sum() + last.sum()).backward()
    assert outputs.asnumpy().tolist() == [[2, 4], [6, 8], [10, 12]]
    assert last.asnumpy().tolist() == [19, 32]
    assert data.grad.asnumpy().tolist() == [[3, 3]] * 3
    outputs, states = nd.contrib.foreach(lambda rows, states: ([rows[0], rows[1]], states), [data, data], [state])
    assert [each.shape for each in outputs] == [(3, 2), (3, 2)]
    assert isinstance(states, list)


def test_while_loop_pads_with_zeros():
    outputs, (i, total) = nd.contrib.while_loop(
        lambda i, total: i < 3, lambda i, total: (i + 10, [i + 1, total + i]), [nd.array([0]), nd.array([5])], 5
    )
    assert outputs.asnumpy().tolist() == [[10], [11], [12], [0], [0]]
    assert (i.asscalar(), total.asscalar()) == (3, 8)
    with pytest.raises(ValueError, match="max_iterations"):
        nd.contrib.while_loop(lambda i: i < 3, lambda i: (i, i), nd.array([0]))


def test_cond():
    assert nd.contrib.cond(nd.array([1]), lambda: "then", lambda: "else") == "then"
    assert nd.contrib.cond(nd.array([0]), lambda: "then", lambda: "else") == "else"
