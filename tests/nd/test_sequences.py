"""Sequences of different lengths."""

import numpy as np
import pytest

from numbagrad import autograd, nd
from numbagrad.errors import MXNetError

X = np.arange(24.0).reshape(4, 2, 3)  # time, batch, features
LENGTHS = [1, 3]


def test_last():
    x, lengths = nd.array(X), nd.array(LENGTHS)
    assert nd.SequenceLast(x).asnumpy().tolist() == X[3].tolist()
    expected = [X[n - 1, k].tolist() for k, n in enumerate(LENGTHS)]
    assert nd.SequenceLast(x, lengths, use_sequence_length=True).asnumpy().tolist() == expected
    y = nd.array(X.swapaxes(0, 1))
    assert nd.SequenceLast(y, axis=1).asnumpy().tolist() == X[3].tolist()
    assert nd.SequenceLast(y, lengths, use_sequence_length=True, axis=1).asnumpy().tolist() == expected
    flat = nd.array(X[:, :, 0])
    assert nd.SequenceLast(flat).asnumpy().tolist() == X[3, :, 0].tolist()
    for wrong in ([0, 1], [1, 5]):
        with pytest.raises(IndexError):
            nd.SequenceLast(x, nd.array(wrong), use_sequence_length=True)


def test_reverse():
    x = nd.array(X)
    assert nd.SequenceReverse(x).asnumpy().tolist() == X[::-1].tolist()
    expected = X.copy()
    expected[:3, 1] = X[:3, 1][::-1]
    assert nd.SequenceReverse(x, nd.array(LENGTHS), use_sequence_length=True).asnumpy().tolist() == expected.tolist()
    with pytest.raises(IndexError):
        nd.SequenceReverse(x, nd.array([1, 5]), use_sequence_length=True)
    with pytest.raises(MXNetError, match="axis 0"):
        nd.SequenceReverse(x, axis=1)


@pytest.mark.parametrize("function", [nd.SequenceLast, nd.SequenceReverse, nd.SequenceMask])
def test_gradients_go_where_the_values_came_from(function):
    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = function(x, nd.array(LENGTHS), use_sequence_length=True)
    head = nd.array(np.arange(1.0, y.size + 1).reshape(y.shape))
    y.backward(head)
    # Each is linear: x . gradient is y . head.
    assert (x * x.grad).sum().asscalar() == (y * head).sum().asscalar()
    for bad in (nd.array([1]), nd.array([[1, 2]])):
        with pytest.raises(MXNetError, match=function.__name__):
            function(x, bad, use_sequence_length=True)
