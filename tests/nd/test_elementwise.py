"""Elementwise functions under MXNet's names."""

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, nd
from numbagrad.nd import elementwise

X = np.array([[-2.5, -1.0, 0.0], [0.3, 1.5, 2.0]])


def gradient(function, values, dtype="float64"):
    x = nd.array(values, dtype=dtype)
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward()
    return x.grad.asnumpy().tolist()


@pytest.mark.parametrize(
    ("name", "numpy"),
    [
        ("abs", np.abs),
        ("negative", np.negative),
        ("sign", np.sign),
        ("floor", np.floor),
        ("ceil", np.ceil),
        ("fix", np.fix),
        ("rint", np.rint),
        ("exp", np.exp),
        ("tanh", np.tanh),
        ("relu", lambda x: np.maximum(x, 0)),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        ("softsign", lambda x: x / (1 + np.abs(x))),
        ("logical_not", lambda x: (x == 0).astype(float)),
        ("square", np.square),
    ],
)
def test_unary_values_and_methods(name, numpy):
    x = nd.array(X, dtype="float64")
    np.testing.assert_allclose(getattr(nd, name)(x).asnumpy(), numpy(X), rtol=1e-14)
    np.testing.assert_allclose(getattr(nd, name)(data=x, name="node").asnumpy(), numpy(X), rtol=1e-14)
    if name in nd.METHODS:
        np.testing.assert_allclose(getattr(x, name)().asnumpy(), numpy(X), rtol=1e-14)


def test_every_function_is_documented_under_its_own_name():
    for name, function in nd.FUNCTIONS.items():
        assert function.__doc__, name
        assert getattr(nd, name) is function
    for name in elementwise.UNARY:
        assert getattr(nd, name).__name__ == name


def test_round_goes_away_from_zero_and_rint_to_even():
    x = nd.array([-2.5, -1.5, 0.5, 1.5, 2.5])
    assert nd.round(x).asnumpy().tolist() == [-3, -2, 1, 2, 3]
    assert nd.rint(x).asnumpy().tolist() == [-2, -2, 0, 2, 2]


def test_ints():
    x = nd.array([1, 4, 9], dtype="int32")
    assert nd.sqrt(x).dtype is np.float32
    assert nd.sqrt(x).asnumpy().tolist() == [1, 2, 3]
    assert nd.square(x).dtype is np.int32
    assert nd.divide(x, 2).asnumpy().tolist() == [0.5, 2, 4.5]
    assert nd.add(x, 0.5).dtype is np.float32
    assert nd.clip(x, 2, 8).dtype is np.int32
    assert nd.clip(x, 2, 8).asnumpy().tolist() == [2, 4, 8]
    assert nd.add(nd.array([250], dtype="uint8"), 10).asnumpy().tolist() == [4]


def test_float16():
    x = nd.array([0.1, 1, 2], dtype="float16")
    assert nd.exp(x).dtype is np.float16
    np.testing.assert_allclose(nd.exp(x).asnumpy(), np.exp(x.asnumpy().astype(np.float32)), rtol=1e-3)


def test_binary_of_arrays_and_numbers():
    x, y = nd.array([1.0, 2.0, 3.0]), nd.array([[3.0], [2.0]])
    assert nd.add(x, y).asnumpy().tolist() == [[4, 5, 6], [3, 4, 5]]
    assert nd.subtract(10, x).asnumpy().tolist() == [9, 8, 7]
    assert nd.power(2, x).asnumpy().tolist() == [2, 4, 8]
    assert nd.maximum(x, 2).asnumpy().tolist() == [2, 2, 3]
    assert nd.minimum(2, x).asnumpy().tolist() == [1, 2, 2]
    assert nd.modulo(nd.array([-7.0, 7.0]), 4).asnumpy().tolist() == [1, 3]
    assert nd.equal(x, 2).asnumpy().tolist() == [0, 1, 0]
    assert nd.logical_xor(x, nd.array([0, 1, 0])).asnumpy().tolist() == [1, 0, 1]
    assert nd.hypot(nd.array([3.0]), 4).asscalar() == 5


def test_two_numbers_give_a_number():
    # MXNet 1.9.1: 5, 0, 8, 3.5, 3.5, 3, 0
    got = [
        nd.add(2, 3),
        nd.equal(2, 3),
        nd.power(2, 3),
        nd.maximum(2, 3.5),
        nd.true_divide(7, 2),
        nd.modulo(7, 4),
        nd.logical_xor(2, 3),
    ]
    assert got == [5, 0, 8, 3.5, 3.5, 3, 0]
    assert not any(isinstance(value, nd.NDArray) for value in got)


def test_families_of_arrays():
    a, b = nd.array([[1.0], [2.0]]), nd.array([[10.0, 20.0]])
    assert nd.broadcast_add(a, b).asnumpy().tolist() == [[11, 21], [12, 22]]
    assert nd.broadcast_lesser(a, b).asnumpy().tolist() == [[1, 1], [1, 1]]
    assert nd.elemwise_mul(a, a).asnumpy().tolist() == [[1], [4]]
    with pytest.raises(mx.MXNetError, match=r"elemwise_add.*\(2, 1\).*\(1, 2\)"):
        nd.elemwise_add(a, b)
    with pytest.raises(TypeError, match="broadcast_add"):
        nd.broadcast_add(a, 1)
    with pytest.raises(mx.MXNetError, match="do not broadcast"):
        nd.broadcast_add(nd.ones((2, 3)), nd.ones((2,)))


@pytest.mark.parametrize(
    "shape", [(4, 1, 5), (3, 1), (4, 1, 1), (1, 3, 5), (2, 1, 1, 5), (2, 4, 3, 1), (2, 1, 3, 1), (1, 4, 1, 5)]
)
@pytest.mark.parametrize("captured", [False, True])
def test_axes_repeated_anywhere(shape, captured):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 4, 3, 5)).astype("float32"), rng.standard_normal(shape).astype("float32")
    a, b, head = nd.array(x), nd.array(w), nd.array(rng.standard_normal(x.shape))
    a.attach_grad()
    b.attach_grad()

    def step(a, b, head):
        with autograd.record():
            y = a * b
        y.backward(head)
        return y

    y = (mx.jit(step) if captured else step)(a, b, head)
    np.testing.assert_array_equal(y.asnumpy(), x * w)
    np.testing.assert_array_equal(a.grad.asnumpy(), head.asnumpy() * w)
    repeated = tuple(k for k in range(4) if ((1,) * (4 - w.ndim) + shape)[k] == 1)
    expected = (x * head.asnumpy()).sum(axis=repeated, keepdims=True).reshape(shape)
    np.testing.assert_allclose(b.grad.asnumpy(), expected, rtol=1e-4, atol=1e-5)


def test_unknown_arguments_are_refused():
    x = nd.ones(2)
    with pytest.raises(TypeError, match="colour"):
        nd.relu(x, colour=1)
    with pytest.raises(TypeError, match="relu"):
        nd.relu([3])
    with pytest.raises(TypeError, match="add"):
        nd.add(x, [1, 2])
    with pytest.raises(TypeError, match="a_max"):
        nd.clip(x, 1)


def test_out_takes_the_place_of_the_result_on_the_tape():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    y = nd.zeros(2)
    with autograd.record():
        assert nd.square(x, out=y) is y
        z = y * 3
    z.backward()
    assert y.asnumpy().tolist() == [1, 4]
    assert x.grad.asnumpy().tolist() == [6, 12]
    with autograd.record(), pytest.raises(mx.MXNetError, match="Inplace"):
        nd.square(x, out=x)
    assert x.asnumpy().tolist() == [1, 2]
    nd.square(x, out=x)
    assert x.asnumpy().tolist() == [1, 4]


def test_out_of_a_leaf_through_an_op_that_returns_it():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    y = nd.zeros(2, dtype="float64")
    with autograd.record():
        nd.cast(x, "float32", out=y)
        z = y * y
    z.backward()
    assert y.dtype is np.float64
    assert x.grad.asnumpy().tolist() == [2, 4]


def test_gradients_at_special_points():
    # SEMANTICS: abs' = 0 at 0, clip 1 at both bounds, x**0 and x**2 at 0: 0, maximum on ties: the first operand
    assert gradient(nd.abs, [-1, 0, 2]) == [-1, 0, 1]
    assert gradient(lambda x: nd.clip(x, -1, 1), [-2, -1, 0, 1, 2]) == [0, 1, 1, 1, 0]
    assert gradient(lambda x: nd.power(x, 0), [0, 1]) == [0, 0]
    assert gradient(lambda x: nd.power(x, 2), [0, 3]) == [0, 6]
    assert gradient(lambda x: nd.maximum(x, 0), [-1, 0, 1]) == [0, 1, 1]
    assert gradient(nd.relu, [-1, 0, 1]) == [0, 0, 1]
    assert gradient(lambda x: nd.hard_sigmoid(x), [-3, -2.5, 0, 2.5]) == [0, 0, 0.2, 0]
    assert gradient(lambda x: nd.smooth_l1(x, scalar=2), [-1, 0.125, 3]) == [-1, 0.5, 1]


def test_pieces_by_mxnet():
    x = nd.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(nd.hard_sigmoid(x).asnumpy(), [0.7, 0.9, 1.0], rtol=1e-6)
    np.testing.assert_allclose(nd.smooth_l1(x, scalar=2).asnumpy(), [0.875, 1.875, 2.875], rtol=1e-6)
    odd = nd.array([np.inf, np.nan, 1, -np.inf])
    assert nd.isnan(odd).asnumpy().tolist() == [0, 1, 0, 0]
    assert nd.isinf(odd).asnumpy().tolist() == [1, 0, 0, 1]
    assert nd.isfinite(odd).asnumpy().tolist() == [0, 0, 1, 0]


def test_gradients_cut_and_started_anew():
    assert gradient(lambda x: x * nd.stop_gradient(x), [2.0, 3.0]) == [2, 3]
    assert gradient(lambda x: x * nd.BlockGrad(x), [2.0, 3.0]) == [2, 3]
    assert gradient(lambda x: nd.make_loss(x * 2) * 5, [1.0, 2.0]) == [2, 2]  # MXNet 1.9.1
    assert gradient(lambda x: nd.identity(x) * 3, [1.0]) == [3]


def test_add_n():
    x, y = nd.array([1.0, 2.0]), nd.array([3, 4], dtype="int32")
    assert nd.add_n(x, y, x).asnumpy().tolist() == [5, 8]
    assert nd.ElementWiseSum(x).asnumpy().tolist() == [1, 2]
    assert gradient(lambda a: nd.add_n(a, a * 2, a), [1.0]) == [4]
    with pytest.raises(mx.MXNetError, match="add_n"):
        nd.add_n(x, nd.ones(3))


def test_cast_copies():
    x = nd.array([1.7, -1.7])
    assert nd.cast(x, "int32").asnumpy().tolist() == [1, -1]
    y = nd.cast(x, dtype="float32")
    y[:] = 0
    np.testing.assert_allclose(x.asnumpy(), [1.7, -1.7], rtol=1e-6)


def test_relu_passes_nan_on_in_both_directions():
    x = nd.array([np.nan, -1, 0, 2])
    x.attach_grad()
    with autograd.record():
        y = nd.relu(x)
    y.backward(nd.array([5, 5, 5, 5]))
    np.testing.assert_array_equal(y.asnumpy(), [np.nan, 0, 0, 2])
    np.testing.assert_array_equal(x.grad.asnumpy(), [np.nan, 0, 0, 5])
