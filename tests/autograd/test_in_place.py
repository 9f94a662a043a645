"""Writes in place: what is refused while recording, and what backward does about memory that was overwritten."""

import numpy as np
import pytest

from numbagrad import autograd, nd
from numbagrad.errors import MXNetError
from numbagrad.ops.dense import fully_connected

TEXT = r"Inplace operations \(\+=, -=, x\[:\]=, etc\) are not supported when recording with"


def leaf(*values):
    x = nd.array(values)
    x.attach_grad()
    return x


def add(x):
    x += 1


def subtract(x):
    x -= 1


def multiply(x):
    x *= 2


def divide(x):
    x /= 2


def element(x):
    x[0] = 5


def fill(x):
    x[:] = 5


def whole(x):
    x[:] = nd.array([5.0, 6.0])


def out(x):
    nd.square(nd.array([5.0, 6.0]), out=x)


WRITES = [add, subtract, multiply, divide, element, fill, whole, out]


@pytest.mark.parametrize("write", WRITES)
def test_an_array_in_the_graph_is_not_written_while_recording(write):
    x = leaf(1.0, 2.0)
    with autograd.record():
        y = x * x
        for array, before in ((x, [1.0, 2.0]), (y, [1.0, 4.0])):
            with pytest.raises(MXNetError, match=TEXT):
                write(array)
            assert array.asnumpy().tolist() == before
    y.backward()
    assert x.grad.asnumpy().tolist() == [2.0, 4.0]
    with autograd.record(), pytest.raises(MXNetError, match=TEXT):
        write(x)  # a leaf stays one after backward
    write(x)
    write(y)


def add_leaf(y, x):
    y += x


def set_element(y, x):
    y[0] = x[1]


def set_run(y, x):
    y[0:1] = x[0:1] * 2


@pytest.mark.parametrize("write", [add_leaf, set_element, set_run])
def test_an_operand_in_the_graph_is_refused(write):
    x, y = leaf(1.0, 2.0), nd.array([7.0, 8.0])
    with autograd.record(), pytest.raises(MXNetError, match=TEXT):
        write(y, x)
    assert y.asnumpy().tolist() == [7.0, 8.0]


@pytest.mark.parametrize("write", WRITES)
def test_other_arrays_are_written_while_recording(write):
    x, y = leaf(1.0, 2.0), nd.array([1.0, 2.0])
    with autograd.record():
        write(y)
        z = x * y
    z.backward()
    assert x.grad.asnumpy().tolist() == y.asnumpy().tolist()
    assert y.asnumpy().tolist() != [1.0, 2.0]


def test_a_whole_array_takes_the_place_of_what_it_is_given():
    x = leaf(1.0, 2.0)
    y, z = nd.zeros((2,)), nd.zeros((2,))
    with autograd.record():
        y[:] = x
        nd.square(x, out=z)
        w = y * z
    w.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), [3.0, 12.0])


def test_a_constant_is_free_again_after_backward():
    x, c = leaf(1.0), nd.array([3.0])
    with autograd.record():
        y = x * c
    y.backward()
    with autograd.record():
        c += 1
        y = x * c
    y.backward()
    assert x.grad.asnumpy().tolist() == [4.0]


@pytest.mark.parametrize("write", WRITES)
def test_writing_what_backward_needs_raises_and_writes_nothing(write):
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    x.grad[:] = 9.0
    with autograd.record():
        y = nd.tanh(x * w)
    write(w)
    for _ in range(2):  # the graph is as it was
        with pytest.raises(MXNetError, match=r"multiply needs .* \(2,\) .* written in place"):
            y.backward()
    assert x.grad.asnumpy().tolist() == [9.0, 9.0]
    assert x._fresh_grad == 0
    with pytest.raises(MXNetError, match="multiply"):
        autograd.grad(y, x)


def test_writing_an_output_that_backward_needs_raises():
    x = leaf(0.5)
    with autograd.record():
        y = nd.exp(x)
        z = y * 1
    y += 1
    with pytest.raises(MXNetError, match="exp needs"):
        z.backward()


def test_writing_through_a_view_is_noticed():
    x, c = leaf(1.0, 2.0), nd.array([3.0, 4.0])
    with autograd.record():
        y = x * c
    c[1:2][:] = 0
    with pytest.raises(MXNetError, match="multiply needs"):
        y.backward()
    x, c = leaf(1.0, 2.0), nd.array([3.0, 4.0])
    with autograd.record():
        y = x * c.reshape((1, 2)).reshape((2,))
    c += 1
    with pytest.raises(MXNetError, match="multiply needs"):
        y.backward()


def test_what_backward_does_not_need_may_be_written():
    x, w = leaf(1.0, 2.0), nd.array([3.0, 4.0])
    with autograd.record():
        y = x + w  # needs neither
        z = x * w  # needs w alone, w being no variable
    x += 1
    z.backward(retain_graph=True)
    assert x.grad.asnumpy().tolist() == [3.0, 4.0]
    w += 1
    y.backward()
    assert x.grad.asnumpy().tolist() == [1.0, 1.0]


def test_writes_after_backward_are_legal():
    x = leaf(1.0, 2.0)
    for expected in ([2.0, 4.0], [1.6, 3.2]):
        with autograd.record():
            y = x * x
        y.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), expected, rtol=1e-6)
        x -= 0.1 * x.grad


def test_reading_a_gradient_into_the_graph_keeps_its_value():
    x = leaf(3.0, 5.0)
    with autograd.record():
        y = x * x
    y.backward()
    with autograd.record():
        z = x * x.grad * x  # the buffer is an input of the graph that will write it
    z.backward()
    assert x.grad.asnumpy().tolist() == [2 * 3.0 * 6.0, 2 * 5.0 * 10.0]


def test_a_buffer_given_by_the_user_may_be_an_input_of_the_graph():
    weight = nd.array([[1.0, 2.0], [3.0, 4.0]])
    buffer = nd.array([[1.0, 2.0], [1.0, 2.0]])
    autograd.mark_variables(weight, buffer)
    with autograd.record():
        y = fully_connected(buffer, weight, None)
    y.backward()
    assert buffer.asnumpy().tolist() == [[2.0, 4.0], [2.0, 4.0]]
