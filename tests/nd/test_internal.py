"""Operators under the names that MXNet begins with an underscore."""

import pytest

from numbagrad import nd
from numbagrad.errors import MXNetError


def test_arrays_and_numbers():
    internal, x = nd._internal, nd.array([1, 2])
    assert internal._plus_scalar(x, scalar=3).asnumpy().tolist() == [4, 5]
    assert internal._rminus_scalar(x, 3).asnumpy().tolist() == [2, 1]
    assert internal._rpower_scalar(x, scalar=3).asnumpy().tolist() == [3, 9]
    assert internal._lesser_scalar(x, scalar=2).asnumpy().tolist() == [1, 0]
    out = nd.zeros((2,))
    assert internal._div_scalar(x, scalar=2, out=out) is out
    assert out.asnumpy().tolist() == [0.5, 1]
    assert internal._plus(x, x).asnumpy().tolist() == [2, 4]
    assert internal._zeros(shape=(2,)).asnumpy().tolist() == [0, 0]
    assert internal._random_uniform(low=2, high=3, shape=(4,)).min().asscalar() >= 2
    assert nd.op.relu is nd.relu


def test_assignment_to_a_part():
    x, y = nd.ones((2, 3)), nd.array([[5, 6]])
    result = nd._internal._crop_assign(x, y, begin=(0, 0), end=(1, 2))
    assert result.asnumpy().tolist() == [[5, 6, 1], [1, 1, 1]]
    assert x.asnumpy().tolist() == [[1, 1, 1], [1, 1, 1]]
    assert nd._internal._crop_assign(x, y, begin=(0, 0), end=(1, 2), out=x) is x
    assert x.asnumpy().tolist() == [[5, 6, 1], [1, 1, 1]]
    nd._internal._slice_assign_scalar(x, scalar=9, begin=(None, 0), end=(None, 3), step=(1, 2), out=x)
    assert x.asnumpy().tolist() == [[9, 6, 9], [9, 1, 9]]
    with pytest.raises(MXNetError, match="_crop_assign"):
        nd._internal._crop_assign(x, y, begin=(0, 0), end=(1, 2), out=nd.zeros((2, 2)))
