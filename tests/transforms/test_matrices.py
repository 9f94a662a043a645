"""Jacobians and Hessians: shapes, values, containers, composition."""

import numpy as np

import numbagrad
from numbagrad import autograd, nd
from numbagrad.transforms import grad, hessian, jacobian


def array(values):
    return nd.array(values, dtype="float64")


A = np.arange(1.0, 7).reshape(2, 3)


def test_shape_and_value():
    x = np.array([[0.5, -1.0], [2.0, 0.3], [1.0, 1.0]])
    found = jacobian(lambda x: nd.dot(array(A), x))(array(x))
    assert found.shape == (2, 2, 3, 2)
    np.testing.assert_allclose(found.asnumpy(), np.einsum("ik,jl->ijkl", A, np.eye(2)))
    assert jacobian(lambda x: x.sum())(array(x)).shape == (1, 3, 2)
    assert jacobian(lambda x: x.reshape(()) * 2)(array([3.0])).shape == (1,)
    assert jacobian(lambda x: x[1:1])(array(x)).shape == (0, 2, 3, 2)
    assert jacobian(lambda x: array([1.0, 2.0]))(array([3.0])).tolist() == [[0.0], [0.0]]


def test_containers_of_both_sides():
    f = lambda p, y: (p["a"] * y, [p["b"].sum()])  # noqa: E731
    found = jacobian(f, (0, 1))({"a": array([1.0, 2.0]), "b": array([3.0])}, array([4.0, 5.0]))
    by_p, by_y = found[0]
    assert by_p["a"].tolist() == [[4.0, 0.0], [0.0, 5.0]]
    assert by_p["b"].tolist() == [[0.0], [0.0]]
    assert by_y.tolist() == [[1.0, 0.0], [0.0, 2.0]]
    assert found[1][0][0]["b"].tolist() == [[1.0]]


def test_hessian_of_a_quadratic_form_and_of_a_product():
    m = np.array([[2.0, 1.0, 0.0], [-1.0, 3.0, 0.5], [0.0, 4.0, 1.0]])
    f = lambda x: nd.dot(x, nd.dot(array(m), x))  # noqa: E731
    np.testing.assert_allclose(hessian(f)(array([1.0, 2.0, 3.0])).asnumpy(), m + m.T)
    (aa, ab), (ba, bb) = hessian(lambda a, b: (a * b * b).sum(), (0, 1))(array([2.0]), array([3.0]))
    assert [h.tolist() for h in (aa, ab, ba, bb)] == [[[0.0]], [[6.0]], [[6.0]], [[4.0]]]


def test_hessian_of_a_function_that_takes_gradients_itself():
    def f(x):
        with autograd.record():
            (g,) = autograd.grad((x**4).sum(), x, create_graph=True)
        return (g * g).sum() + (grad(lambda x: (x**3).sum())(x) * x).sum()  # 16 x^6 + 3 x^3

    x = np.array([0.5, -1.0])
    np.testing.assert_allclose(hessian(f)(array(x)).asnumpy(), np.diag(480 * x**4 + 18 * x), rtol=1e-13)


def test_third_order_tensor_and_trace():
    f = lambda x: (x[0] * x[0] * x[1]).sum()  # noqa: E731
    found = jacobian(hessian(f))(array([2.0, 3.0])).asnumpy()
    expected = np.zeros((2, 2, 2))
    expected[0, 0, 1] = expected[0, 1, 0] = expected[1, 0, 0] = 2
    np.testing.assert_allclose(found, expected)


def test_recorded_and_captured():
    x = array([0.5, 2.0])
    x.attach_grad()
    with autograd.record():
        loss = (hessian(lambda x: (x**4).sum())(x) ** 2).sum()  # 144 x^4
    loss.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 576 * np.array([0.125, 8.0]))
    captured = numbagrad.jit(hessian(lambda x: (x**4).sum()))
    for values in ([0.5, 2.0], [1.0, 3.0]):
        np.testing.assert_allclose(captured(array(values)).asnumpy(), np.diag(12 * np.square(values)))
