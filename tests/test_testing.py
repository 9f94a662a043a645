"""check_gradients finds wrong gradients, says where, and refuses what it cannot check."""

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, nd
from numbagrad.ops.registry import Composed
from numbagrad.testing import GradientError, check_gradients


class Scaled(autograd.Function):
    """x * w, with a gradient of x that is wrong in one element."""

    def forward(self, x, w):
        self.save_for_backward(x, w)
        return x * w

    def backward(self, g):
        x, w = self.saved_tensors
        wrong = (g * w).asnumpy()
        wrong[1, 2] *= 3
        return nd.array(wrong, dtype=wrong.dtype), g * x


def inputs():
    return [np.arange(1.0, 7.0).reshape(2, 3), nd.array([[2.0, 3.0, 4.0]] * 2)]


def test_right_gradients_pass():
    check_gradients(lambda x, w: nd.sin(x) * w, inputs(), order=2)
    check_gradients(nd.tanh, nd.array([0.5, 1.5]))
    check_gradients(lambda x, k: [x * k, x + k], [np.array([1.0, 2.0]), 3])


def test_a_wrong_gradient_is_named():
    with pytest.raises(GradientError, match=r"the gradient of input 0 \(x\) at \(1, 2\): expected .* got") as caught:
        check_gradients(lambda x, w: Scaled()(x, w), inputs())
    error = caught.value
    assert isinstance(error, AssertionError)
    assert (error.order, error.input, error.index) == (1, 0, (1, 2))
    assert error.got == pytest.approx(3 * error.expected, rel=1e-6)
    assert "1 of 6 elements are wrong" in str(error)


def test_a_function_without_second_order_passes_at_the_first():
    check_gradients(lambda x: Square()(x), np.array([1.0, 2.0]))
    with pytest.raises(mx.MXNetError):
        check_gradients(lambda x: Square()(x), np.array([1.0, 2.0]), order=2)


class Square(autograd.Function):
    def forward(self, x):
        self.save_for_backward(x)
        return x * x

    def backward(self, g):
        return 2 * self.saved_tensors[0] * g


def test_a_wrong_second_order_is_found():
    op = Composed("exp_cut", lambda x: (np.exp(x._flat), x._shape), lambda c, g: (g * c.y().detach(),), saves="y0")
    check_gradients(op, np.array([0.5]))
    with pytest.raises(GradientError, match=r"the second-order gradient of input 0 at \(0,\)") as caught:
        check_gradients(op, np.array([0.5]), order=2)
    assert caught.value.order == 2
    assert caught.value.got == 0


def test_nan_is_wrong():
    with pytest.raises(GradientError, match="got nan"):
        check_gradients(lambda x: NaNGradient()(x), np.array([1.0]))


class NaNGradient(autograd.Function):
    def forward(self, x):
        return x * 1.0

    def backward(self, g):
        return g * float("nan")


def test_an_input_that_nothing_depends_on_has_gradient_zero():
    check_gradients(lambda x, y: nd.exp(x), [np.array([0.3]), np.array([1.0, 2.0])], order=2)


def test_a_result_that_left_the_tape_is_found():
    with pytest.raises(GradientError, match=r"differences, got 0;"):
        check_gradients(lambda x: nd.array(x.asnumpy(), dtype="float64"), np.array([1.0]))


def test_training_mode_is_the_same_on_both_sides():
    gamma, beta, mean, var = (nd.array(v) for v in ([1.0, 2.0], [0.0, 1.0], [0.0, 0.0], [1.0, 1.0]))
    x = np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 1.0]])

    def norm(x):
        return nd.BatchNorm(x, gamma, beta, mean, var, fix_gamma=False)

    check_gradients(norm, x)
    check_gradients(norm, x, train_mode=False)


def test_what_cannot_be_checked_is_refused():
    with pytest.raises(mx.MXNetError, match="none of the inputs"):
        check_gradients(lambda x: x, [np.array([1, 2])])
    with pytest.raises(mx.MXNetError, match="computes in float32"):
        check_gradients(lambda x: x.astype("float32"), np.array([1.0]))
    with pytest.raises(mx.MXNetError, match="other values when it was called again"):
        check_gradients(lambda x: x * nd.random.uniform(shape=(1,)), np.array([1.0]))
    with pytest.raises(mx.MXNetError, match="must return NDArrays, not float"):
        check_gradients(lambda x: 1.0, np.array([1.0]))
    with pytest.raises(mx.MXNetError, match="returns no array of floats"):
        check_gradients(lambda x: x.astype("int32"), np.array([1.0]))
    with pytest.raises(mx.MXNetError, match="order must be 1 or 2"):
        check_gradients(nd.sin, np.array([1.0]), order=3)


def test_inputs_are_left_as_they_were():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    check_gradients(nd.exp, [x])
    assert x.grad.asnumpy().tolist() == [0, 0]
    assert x.asnumpy().tolist() == [1, 2]
    assert x.dtype == np.float32
