"""copy, deepcopy and pickle of arrays: values, dtype, shape and label; no gradient, no history, memory of its own."""

import copy
import pickle

import numpy as np
import pytest

import numbagrad
from numbagrad import autograd, nd
from numbagrad.errors import CaptureError

WAYS = pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, *[lambda x, p=p: pickle.loads(pickle.dumps(x, p)) for p in (2, 4, 5)]],
    ids=["copy", "deepcopy", "pickle2", "pickle4", "pickle5"],
)


@WAYS
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"])
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)])
def test_values(duplicate, dtype, shape):
    x = nd.array(np.arange(np.prod(shape)).reshape(shape), dtype=dtype)
    y = duplicate(x)
    assert type(y) is type(x)
    assert (y.shape, y.dtype) == (x.shape, x.dtype)
    np.testing.assert_array_equal(y.asnumpy(), x.asnumpy())
    if x.size:
        y[:] = 1 - y if dtype != "bool" else True
        assert x.asnumpy().ravel()[0] == 0


@WAYS
def test_marks_and_history_stay_behind(duplicate):
    x = nd.array([1.0, 2.0], ctx=numbagrad.cpu(1))
    x.attach_grad()
    x.grad[:] = 7
    with autograd.record():
        y = x * x
        copies = [duplicate(x), duplicate(y)]
        z = (copies[0] * copies[1]).sum()
    for each in copies:
        assert each._node is None
        assert each.grad is None
        assert each.context == numbagrad.cpu(1)
    assert z._node is None
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0]


@WAYS
def test_views_become_arrays_of_their_own(duplicate):
    x = nd.array([[1.0, 2.0], [3.0, 4.0]])
    row = duplicate(x[1])
    row[:] = 0
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert row.shape == (2,)


def test_the_same_array_twice_stays_one():
    x = nd.array([1.0])
    for pair in (copy.deepcopy([x, x]), pickle.loads(pickle.dumps([x, x]))):
        assert pair[0] is pair[1]
        assert pair[0] is not x


def test_captured():
    copied = numbagrad.jit(lambda x: copy.copy(x) + copy.deepcopy(x))
    assert copied(nd.array([1.0])).item() == 2.0
    assert copied(nd.array([3.0])).item() == 6.0
    with pytest.raises(CaptureError, match="cannot read the value"):
        numbagrad.jit(lambda x: pickle.loads(pickle.dumps(x)))(nd.array([1.0]))


def test_unpickled_numpy_arrays():
    """Their dtype is equal to ours, and another object."""
    values = pickle.loads(pickle.dumps(np.ones(2, "float16")))
    made = [nd.array(values, dtype=values.dtype), nd.from_numpy(values.copy()), nd.from_dlpack(values), nd.ones((2,))]
    made[3] = made[3].astype(values.dtype)
    for x in made:
        assert (1 - x * 2).tolist() == [-1.0, -1.0]
