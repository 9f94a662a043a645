"""grad, value_and_grad, vjp, jvp, hvp: values from mathematics, composition, scopes, containers, errors."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import numbagrad
from numbagrad import autograd, gluon, nd
from numbagrad.errors import InPlaceError, MXNetError
from numbagrad.transforms import elementwise_grad, grad, hessian, hvp, jvp, value_and_grad, vjp


def array(*values):
    return nd.array(values, dtype="float64")


def quartic(x):
    return (x * x * x * x).sum()


X = (0.5, -1.0, 2.0)


def test_gradients_of_gradients_to_the_fourth_order():
    x = array(1.5)
    f = quartic
    for expected in (4 * 1.5**3, 12 * 1.5**2, 24 * 1.5, 24.0, 0.0):
        f = grad(f)
        assert f(x).item() == pytest.approx(expected, rel=1e-14)


def test_arguments_and_state_are_left_alone():
    x, y = array(*X), array(*X)
    y.attach_grad("add")
    y.grad[:] = 7
    node = y._node
    value, (dx, dy) = value_and_grad(lambda x, y: (x * y * y).sum(), (0, 1))(x, y)
    assert value.item() == pytest.approx(sum(v**3 for v in X))
    np.testing.assert_allclose(dx.asnumpy(), np.square(X))
    np.testing.assert_allclose(dy.asnumpy(), 2 * np.square(X))
    assert x._node is None
    assert y._node is node
    assert (y.grad.asnumpy() == 7).all()
    assert y._fresh_grad == 0
    for result in (value, dx, dy):
        assert result._node is None
    dx[:] = 0
    assert dy.asnumpy().any()
    assert not autograd.is_recording()


def test_argnums_and_keywords():
    f = lambda a, b, *, scale: (a * b * b).sum() * scale  # noqa: E731
    a, b = array(2.0), array(3.0)
    assert grad(f, 1)(a, b, scale=2.0).item() == 24.0
    assert grad(f, -2)(a, b, scale=2.0).item() == 18.0
    found = grad(f, (1,))(a, b, scale=1.0)
    assert type(found) is tuple
    assert found[0].item() == 12.0
    with pytest.raises(ValueError, match="argnums 2 is out of range: the function was called with 2"):
        grad(f, 2)(a, b, scale=1.0)
    with pytest.raises(ValueError, match="twice"):
        grad(f, (0, -2))(a, b, scale=1.0)
    for argnums in ("0", (), True, (0, 1.0)):
        with pytest.raises(TypeError, match="argnums is an int or a tuple"):
            grad(f, argnums)


def test_containers_and_aux():
    def f(parameters, x):
        y = x
        for layer in parameters["layers"]:
            y = nd.tanh(y * layer[0] + layer[1])
        return (y * parameters["scale"]).sum(), {"y": y, "n": 2}

    parameters = {"layers": [(array(0.5), array(0.1)), [array(-1.0), array(0.2)]], "scale": array(3.0), "none": None}
    found, aux = grad(f, has_aux=True)(parameters, array(0.7))
    assert type(found["layers"]) is list
    assert [type(layer) for layer in found["layers"]] == [tuple, list]
    assert found["none"] is None
    inner = np.tanh(0.7 * 0.5 + 0.1)
    outer = np.tanh(-inner + 0.2)
    assert found["scale"].item() == pytest.approx(outer)
    assert found["layers"][1][1].item() == pytest.approx(3 * (1 - outer**2))
    assert found["layers"][0][0].item() == pytest.approx(3 * (1 - outer**2) * -1 * (1 - inner**2) * 0.7)
    assert aux["n"] == 2
    assert aux["y"].item() == pytest.approx(outer)
    assert aux["y"]._node is None
    (value, again), _ = value_and_grad(f, has_aux=True)(parameters, array(0.7))
    assert value.item() == pytest.approx(3 * outer)
    assert again["n"] == 2


def test_a_value_that_does_not_depend_on_the_argument():
    c = array(1.0, 2.0)
    c.attach_grad()
    for f in (lambda x: array(3.0), lambda x: c.sum(), lambda x: (x.detach() * 2).sum(), lambda x: c[0]):
        assert grad(f)(array(*X)).tolist() == [0.0, 0.0, 0.0]
    with autograd.record():
        outer = (c * c).sum()
        assert grad(lambda x: outer)(array(*X)).tolist() == [0.0, 0.0, 0.0]
    outer.backward()
    assert c.grad.tolist() == [2.0, 4.0]
    dx, dy = grad(lambda x, y: (x * 2).sum(), (0, 1))(array(*X), array(1.0))
    assert dx.tolist() == [2.0, 2.0, 2.0]
    assert dy.tolist() == [0.0]


def test_identity_gives_arrays_of_their_own():
    x = array(2.0)
    value, pull = vjp(lambda x: x, x)
    cotangent = array(5.0)
    (found,) = pull(cotangent)
    found[:] = 0
    assert cotangent.item() == 5.0
    gradient = grad(lambda x: x)(x)
    gradient[:] = 9
    assert grad(lambda x: x)(x).item() == 1.0
    assert value.item() == 2.0


def test_what_is_refused():
    x = array(*X)
    with pytest.raises(MXNetError, match=r"grad: the function returned shape \(3,\).*sum"):
        grad(lambda x: x * 2)(x)
    with pytest.raises(MXNetError, match="returned int32"):
        grad(lambda x: (x * 2).sum().astype("int32"))(x)
    with pytest.raises(TypeError, match="NDArray of int32"):
        grad(quartic)(nd.array([1, 2], dtype="int32"))
    with pytest.raises(TypeError, match="for a float;"):
        grad(quartic)(2.0)
    with pytest.raises(TypeError, match="for a ndarray;"):
        grad(quartic)(np.ones(3))
    with pytest.raises(TypeError, match="returned a float and no NDArray"):
        grad(lambda x: 3.0)(x)
    with pytest.raises(TypeError, match="returned a tuple, not one NDArray"):
        grad(lambda x: (x.sum(), x.sum()))(x)
    with pytest.raises(TypeError, match="has_aux quartic returns a pair"):
        grad(quartic, has_aux=True)(x)
    with pytest.raises(TypeError, match="jvp: primals is a tuple"):
        jvp(quartic, x, (x,))
    with pytest.raises(MXNetError, match=r"jvp: tangents of shape \(1,\)"):
        jvp(quartic, (x,), (array(1.0),))
    with pytest.raises(MXNetError, match="containers"):
        hvp(quartic, (x,), (x, x))
    _, pull = vjp(quartic, x)
    with pytest.raises(MXNetError, match="cotangent of shape"):
        pull(x)
    with pytest.raises(TypeError, match="cotangent are NDArrays"):
        pull(1.0)
    assert not autograd.is_recording()


def test_an_exception_in_the_function_restores_the_flags():
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        grad(f)(array(1.0))
    assert not autograd.is_recording()
    with autograd.pause():
        assert grad(quartic)(array(1.0)).item() == 4.0
        assert not autograd.is_recording()


def test_recorded_calls_are_differentiable():
    x = array(*X)
    x.attach_grad()
    with autograd.record():
        loss = (grad(quartic)(x) * x).sum()  # 4 x^4
    loss.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 16 * np.power(X, 3))
    with autograd.record():
        loss = (jvp(quartic, (x,), (x,))[1] + hvp(quartic, (x,), (x,))[0].sum()).sum()  # 4 x^4 + 12 x^3
    loss.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 16 * np.power(X, 3) + 36 * np.square(X))
    with autograd.record():
        with autograd.pause():
            constant = grad(quartic)(x)
        loss = (constant * x).sum()
    loss.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 4 * np.power(X, 3))


def test_parameters_reached_in_a_closure_get_gradients_when_recorded():
    """The gradient penalty of Gulrajani et al. (2017): a loss of the gradient for the input."""
    net = gluon.nn.Dense(1, use_bias=False, in_units=2)
    net.initialize()
    net.cast("float64")
    net.weight.set_data(nd.array([[3.0, 4.0]], dtype="float64"))
    x = nd.array([[1.0, 2.0]], dtype="float64")
    with autograd.record():
        penalty = (grad(lambda x: net(x).sum())(x).norm() - 1) ** 2
    penalty.backward()
    np.testing.assert_allclose(net.weight.grad().asnumpy(), [[2 * 4 * 0.6, 2 * 4 * 0.8]])
    assert x.grad is None


def test_scopes_inside_the_function():
    def f(x):
        with autograd.pause():
            factor = x * 1
        y = x * x * factor
        with autograd.record():
            (inner,) = autograd.grad(quartic(x), x, create_graph=True)
        return (y + inner).sum()

    np.testing.assert_allclose(grad(f)(array(*X)).asnumpy(), 2 * np.square(X) + 12 * np.square(X))
    np.testing.assert_allclose(np.diag(hessian(f)(array(*X)).asnumpy()), 2 * np.array(X) + 24 * np.array(X))
    marked = array(2.0)
    marked.attach_grad()

    def trains(x):
        with autograd.record():
            loss = (marked * marked).sum()
        loss.backward()
        return (x * marked.grad).sum()

    assert grad(trains)(array(3.0)).item() == 4.0
    with pytest.raises(InPlaceError):
        grad(lambda x: x.__iadd__(1).sum())(array(1.0))


def test_the_training_flag_is_the_callers():
    seen = []
    f = lambda x: (seen.append(autograd.is_training()), x.sum())[1]  # noqa: E731
    grad(f)(array(1.0))
    with autograd.train_mode():
        grad(f)(array(1.0))
    assert seen == [False, True]


def test_vjp_and_jvp_of_a_linear_map_are_its_matrix():
    a = nd.array(np.arange(6.0).reshape(2, 3), dtype="float64")
    f = lambda x: {"y": nd.dot(a, x), "z": [x * 2]}  # noqa: E731
    x, v = array(*X), array(1.0, 10.0, 100.0)
    value, slope = jvp(f, (x,), (v,))
    np.testing.assert_allclose(value["y"].asnumpy(), a.asnumpy() @ X)
    np.testing.assert_allclose(slope["y"].asnumpy(), a.asnumpy() @ [1, 10, 100])
    np.testing.assert_allclose(slope["z"][0].asnumpy(), [2, 20, 200])
    value, pull, aux = vjp(lambda x: (f(x), 5), x, has_aux=True)
    assert aux == 5
    for _ in range(2):
        (found,) = pull({"y": array(1.0, -1.0), "z": [v]})
        np.testing.assert_allclose(found.asnumpy(), a.asnumpy().T @ [1, -1] + [2, 20, 200])
    with autograd.record():
        c = array(1.0, -1.0)
        c.attach_grad()
        loss = (pull({"y": c, "z": [v]})[0] * v).sum()
    loss.backward()
    np.testing.assert_allclose(c.grad.asnumpy(), a.asnumpy() @ [1, 10, 100])


def test_jvp_where_derivatives_are_singular():
    f = lambda x: nd.sqrt(x) + nd.maximum(x, 0.0)  # noqa: E731
    value, slope = jvp(f, (array(0.0, 4.0),), (array(0.0, 1.0),))
    assert value.tolist() == [0.0, 6.0]
    assert slope.tolist() == [0.0, 1.25]


def test_jvp_and_hvp_nest():
    x, v = array(*X), array(1.0, 2.0, 3.0)
    along = lambda x: jvp(quartic, (x,), (v,))[1].sum()  # noqa: E731
    _, second = jvp(along, (x,), (v,))
    expected = 12 * (np.square(X) * [1, 4, 9]).sum()
    np.testing.assert_allclose(second.asnumpy().sum(), expected)
    np.testing.assert_allclose((hvp(quartic, (x,), (v,))[0].asnumpy() * [1, 2, 3]).sum(), expected)
    g = grad(lambda x: (hvp(quartic, (x,), (v,))[0] * v).sum())(x)
    np.testing.assert_allclose(g.asnumpy(), 24 * np.array(X) * [1, 4, 9])
    pair = hvp(lambda a, b: (a * b * b).sum(), (array(2.0), array(3.0)), (array(1.0), array(10.0)))
    assert [h.item() for h in pair] == [60.0, 6.0 + 40.0]


def test_elementwise_grad():
    x = array(*X)
    np.testing.assert_allclose(elementwise_grad(elementwise_grad(nd.sin))(x).asnumpy(), -np.sin(X))
    found = elementwise_grad(lambda x, y: (x * y, y), (0, 1))(x, array(2.0, 2.0, 2.0))
    assert [g.tolist() for g in found] == [[2.0, 2.0, 2.0], [1.5, 0.0, 3.0]]


class Straight(autograd.Function):
    """Rounds, with the gradient of the identity."""

    def forward(self, x):
        return nd.round(x)

    def backward(self, dy):
        return dy


def test_functions_and_custom_gradients():
    f = lambda x: (Straight()(x) * x).sum()  # noqa: E731
    assert grad(f)(array(1.2, 1.7)).tolist() == [1.2 + 1.0, 1.7 + 2.0]
    with pytest.raises(MXNetError, match="Straight: the gradient of a Function cannot be differentiated again"):
        hessian(f)(array(1.2))


def test_a_network_is_a_function_of_its_input():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(3, activation="tanh", in_units=2), gluon.nn.Dense(1, in_units=3))
    net.initialize()
    x = nd.array([[0.5, -1.0]])
    plain = grad(lambda x: net(x).sum())(x).asnumpy()
    curvature = hessian(lambda x: net(x).sum())(x).asnumpy()
    net.hybridize()
    for _ in range(2):
        np.testing.assert_allclose(grad(lambda x: net(x).sum())(x).asnumpy(), plain, rtol=1e-5)
        np.testing.assert_allclose(hessian(lambda x: net(x).sum())(x).asnumpy(), curvature, rtol=1e-4, atol=1e-6)
    assert all(not p.grad().asnumpy().any() for p in net.collect_params().values())


def test_through_steps_of_gradient_descent():
    """Two steps of rate r on a (w - c)^2 / 2 give w' - c = (1 - r a)^2 (w - c); the loss after them is known."""
    a, c, r = 3.0, 0.5, 0.1

    def loss(p):
        return (a * (p["w"] - c) ** 2 / 2).sum()

    def after(p):
        for _ in range(2):
            slope = grad(loss)(p)
            p = {"w": p["w"] - r * slope["w"]}
        return loss(p)

    w = np.array([2.0, -1.0])
    for f in (grad(after), numbagrad.jit(grad(after))):
        for shift in (0.0, 1.0):
            found = f({"w": array(*(w + shift))})["w"]
            np.testing.assert_allclose(found.asnumpy(), a * (1 - r * a) ** 4 * (w + shift - c), rtol=1e-12)


def test_threads_share_parameters():
    net = gluon.nn.Dense(1, in_units=2)
    net.initialize()
    f = lambda x: (net(x) ** 3).sum()  # noqa: E731
    points = [nd.array([[1.0, i], [i, 2.0]]) for i in range(4)]
    expected = [hessian(f)(x).asnumpy() for x in points]
    with ThreadPoolExecutor(4) as pool:
        for found in (list(pool.map(lambda x: hessian(f)(x).asnumpy(), points)) for _ in range(5)):
            np.testing.assert_array_equal(found, expected)


def test_float16_and_mixed_dtypes():
    half, single = nd.array([1.0, 2.0], dtype="float16"), nd.array([3.0, 4.0])
    dh, ds = grad(lambda h, s: (h * h * s).sum(), (0, 1))(half, single)
    assert (dh.dtype, ds.dtype) == (np.float16, np.float32)
    assert dh.tolist() == [6.0, 16.0]
    assert ds.tolist() == [1.0, 4.0]


@pytest.mark.parametrize("inside", [True, False], ids=["jit(grad)", "grad(jit)"])
def test_captured(inside):
    f = lambda x: (nd.tanh(x) * x).sum()  # noqa: E731
    g = numbagrad.jit(grad(f)) if inside else grad(numbagrad.jit(f))
    for values in (X, (1.0, 2.0, 3.0), X):
        expected = np.tanh(values) + values / np.cosh(values) ** 2
        np.testing.assert_allclose(g(array(*values)).asnumpy(), expected, rtol=1e-14)
    x = array(*X)
    x.attach_grad()
    for _ in range(2):
        with autograd.record():
            loss = g(x).sum()
        loss.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), np.diag(hessian(f)(x).asnumpy()), rtol=1e-13)


def test_captured_products():
    x, v = array(*X), array(1.0, 2.0, 3.0)
    both = numbagrad.jit(lambda x, v: (jvp(quartic, (x,), (v,))[1], *hvp(quartic, (x,), (v,))))
    for scale in (1.0, 2.0):
        slope, product = both(x * scale, v)
        np.testing.assert_allclose(slope.item(), 4 * scale**3 * (np.power(X, 3) * [1, 2, 3]).sum())
        np.testing.assert_allclose(product.asnumpy(), 12 * scale**2 * np.square(X) * [1, 2, 3])
