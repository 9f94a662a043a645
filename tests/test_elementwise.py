"""numbagrad.elementwise: the user's scalar functions as ops, eager, at higher order, broadcast and captured."""

import copy
import math
import pickle

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, elementwise, jit, nd, scalar
from numbagrad.scalar import erf, exp, log1p, maximum, tanh, where
from numbagrad.testing import check_gradients


@elementwise
def elu(x, alpha=1.0):
    """An exponential linear unit."""
    return where(x > 0, x, alpha * (exp(x) - 1))


@elementwise
def bump(x, w, *, height=2):
    return w * tanh(x) + height / (1 + x * x)


@elementwise(name="gelu_of_mine")
def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def test_values_and_the_gradient():
    x = nd.array([-1.0, 0.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = elu(x)
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), [math.exp(-1) - 1, 0, 2], rtol=1e-6)
    np.testing.assert_allclose(x.grad.asnumpy(), [math.exp(-1), 1, 1], rtol=1e-6)


@pytest.mark.parametrize(
    ("shapes", "order"), [(((2, 1), (3,)), 2), (((2, 3), (2, 3)), 1), (((), (2, 2)), 1), (((0, 3), (1, 3)), 1)]
)
def test_gradients_under_broadcasting(shapes, order):
    rng = np.random.default_rng(1)
    x, w = (rng.uniform(0.5, 1.5, shape) for shape in shapes)
    check_gradients(bump, [x, w], order)
    expected = w * np.tanh(x) + 2 / (1 + x * x)
    np.testing.assert_allclose(bump(nd.array(x, dtype="float64"), nd.array(w, dtype="float64")).asnumpy(), expected)


def test_third_order():
    x = nd.array([0.3], dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = elementwise(lambda x: log1p(x) * x)(x)
        for _ in range(2):
            (y,) = autograd.grad(y, [x], create_graph=True)
    y.backward()
    # (x log(1 + x))''' = -1/(1 + x)^2 - 2/(1 + x)^3
    np.testing.assert_allclose(x.grad.asnumpy(), [-1 / 1.3**2 - 2 / 1.3**3], rtol=1e-12)


def test_parameters_are_inputs():
    x = nd.array([-1.0, 2.0])
    for call in (lambda: elu(x, 0.5), lambda: elu(x, alpha=0.5), lambda: elu(x, nd.array([0.5]))):
        np.testing.assert_allclose(call().asnumpy(), [0.5 * (math.exp(-1) - 1), 2], rtol=1e-6)
    np.testing.assert_allclose(bump(x, 3.0, height=5).asnumpy(), [3 * np.tanh(-1) + 2.5, 3 * np.tanh(2) + 1], rtol=1e-6)
    check_gradients(elu, [np.array([-1.0, 2.0]), np.array([0.7])])
    kernels = len(elu._loops)
    for alpha in (0.1, 0.2, 3):
        elu(x, alpha=alpha)
    assert len(elu._loops) == kernels


@pytest.mark.parametrize(
    ("args", "keywords", "message"),
    [
        ((), {}, "'x' is missing"),
        ((1,), {}, "'w' is missing"),
        ((1, 2, 3), {}, "takes 2 positional arguments, got 3"),
        ((1, 2), {"x": 1}, "'x' is given twice"),
        ((1, 2), {"beta": 1}, "'beta' is not one"),
        ((1, 2), {}, "at least one argument must be an array"),
        ((np.ones(2), nd.ones(2)), {}, "not ndarray"),
    ],
)
def test_wrong_calls(args, keywords, message):
    with pytest.raises(TypeError, match=f"^bump: .*{message}"):
        bump(*args, **keywords)


def test_dtype_rules():
    ints = nd.array([-3, 5], dtype="int32")
    assert elementwise(lambda x: maximum(x, 0) * 2 + x**2)(ints).dtype == np.int32
    assert elementwise(lambda x: x / 2)(ints).dtype == np.float32
    assert elementwise(lambda x: 0.5 * x)(ints).dtype == np.float32
    assert elementwise(lambda x: x > 0)(ints).asnumpy().tolist() == [0, 1]
    assert elementwise(lambda x: x > 0, result="bool")(ints).dtype == np.bool_
    assert elementwise(lambda x: -x, result="float")(ints).dtype == np.float32
    half = elu(nd.array([1.0, -1.0], dtype="float16"))
    assert half.dtype == np.float16
    np.testing.assert_allclose(half.asnumpy(), [1, math.exp(-1) - 1], rtol=1e-3)
    assert bump(nd.ones(2), nd.ones(2, dtype="float64")).dtype == np.float64
    assert elu(nd.ones(2), np.float64(0.5)).dtype == np.float32


def test_constants_and_the_argument_itself():
    x = nd.array([1.0, -2.0])
    x.attach_grad()
    with autograd.record():
        y = elementwise(lambda x: 3)(x) + elementwise(lambda x: x)(x) + elementwise(lambda x, y: y * y)(x, 2.0)
    y.backward()
    assert y.asnumpy().tolist() == [8, 5]
    assert x.grad.asnumpy().tolist() == [1, 1]


def test_ops_compose():
    @elementwise
    def scaled(x, s=2.0):
        return elu(s * x, alpha=0.5) + gelu(x)

    x = np.array([-1.0, 0.5])
    expected = np.where(x > 0, 2 * x, 0.5 * (np.exp(2 * x) - 1)) + gelu(nd.array(x, dtype="float64")).asnumpy()
    np.testing.assert_allclose(scaled(nd.array(x, dtype="float64")).asnumpy(), expected, rtol=1e-12)
    check_gradients(scaled, x)


def test_a_branch_that_is_not_taken_contributes_zero():
    x = nd.array([0.0, 4.0])
    x.attach_grad()
    with autograd.record():
        y = elementwise(lambda x: where(x > 0, scalar.sqrt(x), 0))(x)
    y.backward()
    assert x.grad.asnumpy().tolist() == [0, 0.25]


@pytest.mark.parametrize("backward_inside", [True, False])
def test_captured(backward_inside):
    rng = np.random.default_rng(2)
    values = [(rng.uniform(-1, 1, (4, 3)), rng.uniform(-1, 1, 3)) for _ in range(3)]

    def run(wrap):
        x, w = nd.zeros((4, 3)), nd.zeros((3,))
        x.attach_grad()
        w.attach_grad()

        def step(x, w):
            with autograd.record():
                y = (bump(x, w, height=4) * elu(x, alpha=0.3)).sum()
            if backward_inside:
                y.backward()
            return y

        call, found = wrap(step), []
        for new_x, new_w in values:
            x[:], w[:] = new_x, new_w
            y = call(x, w)
            if not backward_inside:
                y.backward()
            found += [y.asnumpy(), x.grad.asnumpy(), w.grad.asnumpy()]
        return found

    for ours, theirs in zip(run(jit), run(lambda f: f), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)


def test_an_op_is_a_function_to_python():
    assert elu.__name__ == "elu"
    assert elu.__doc__ == "An exponential linear unit."
    assert repr(bump) == "<elementwise op bump(x, w, height)>"
    assert gelu.name == "gelu_of_mine"
    net = mx.gluon.nn.HybridLambda(lambda F, x: elu(x))
    np.testing.assert_allclose(net(nd.array([[-1.0]])).asnumpy(), [[math.exp(-1) - 1]], rtol=1e-6)


def test_pickled_by_name():
    assert pickle.loads(pickle.dumps(elu)) is elu
    assert copy.deepcopy([elu])[0] is elu
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(elementwise(lambda x: x * 3))


TRACED = "use numbagrad's scalar functions"
BRANCH = r"where\(condition, a, b\)"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x if x > 0 else 0, BRANCH),
        (lambda x: max(x, 0), "maximum and minimum instead of max and min"),
        (lambda x: 0 < x < 1, r"\(a < x\) & \(x < b\) instead of a < x < b"),
        (lambda x: (x > 0) and x, r"& \| ~ instead of and, or, not"),
        (lambda x: not x, BRANCH),
        (lambda x: math.exp(x), TRACED),
        (lambda x: np.exp(x), TRACED),
        (lambda x: np.where(x > 0, x, 0), TRACED),
        (lambda x: np.clip(x, 0, 1), TRACED),
        (lambda x: nd.exp(x), TRACED),
        (lambda x: x.exp(), TRACED),
        (lambda x: round(x), TRACED),
        (lambda x: x[0], TRACED),
        (lambda x: x * nd.ones(1), "make the array another argument"),
        (lambda x: x * np.ones(2), "make the array another argument"),
        (lambda x: None, "must return one expression, not NoneType"),
        (lambda x: (x, x), "must return one expression, not tuple"),
        (lambda *x: x[0], "names its arguments"),
        (lambda: 1, "at least one argument"),
        (lambda x, mode="a": x, "default of 'mode' must be a number"),
        (3, "takes a function, not int"),
    ],
)
def test_what_cannot_be_traced_is_refused_with_advice(function, message):
    with pytest.raises(mx.MXNetError, match=message) as caught:
        elementwise(function)
    assert str(caught.value).startswith(("<lambda>: ", "elementwise: "))


def test_errors_of_the_function_itself_pass():
    with pytest.raises(ZeroDivisionError):
        elementwise(lambda x: x + 1 / 0)
    with pytest.raises(mx.MXNetError, match="result is"):
        elementwise(lambda x: x, result="int32")
