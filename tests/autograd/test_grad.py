"""grad: gradients as new arrays, of any order."""

import numpy as np
import pytest

from numbagrad import autograd, nd
from numbagrad.errors import MXNetError


def leaf(*values, request="write"):
    x = nd.array(values)
    x.attach_grad(request)
    return x


def test_a_list_is_returned_and_no_buffer_is_touched():
    x, w = leaf(1.0, 2.0, request="add"), leaf(3.0, 4.0)
    x.grad[:] = 9
    w.grad[:] = 9
    with autograd.record():
        y = x * w
    found = autograd.grad(y, x, retain_graph=True)
    assert type(found) is list
    assert found[0].asnumpy().tolist() == [3.0, 4.0]
    dx, dw, again = autograd.grad(y, [x, w, x], head_grads=nd.array([1.0, 10.0]))
    assert dx.asnumpy().tolist() == again.asnumpy().tolist() == [3.0, 40.0]
    assert dw.asnumpy().tolist() == [1.0, 20.0]
    assert x.grad.asnumpy().tolist() == w.grad.asnumpy().tolist() == [9.0, 9.0]
    assert x._fresh_grad == w._fresh_grad == 0
    assert found[0].grad is None


def test_several_heads_and_heads_that_are_variables():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with autograd.record():
        y = x * w
    dx, dw = autograd.grad([y, x, y], [x, w], [None, nd.array([0.5, 0.5]), None])
    assert dx.asnumpy().tolist() == [6.5, 8.5]
    assert dw.asnumpy().tolist() == [2.0, 4.0]


def test_results_are_arrays_of_their_own():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    head = nd.array([1.0, 2.0])
    with autograd.record():
        y = nd.tanh(a + b)
        z = (a * b).reshape((1, 2)).reshape((2,))
    da, db, again = autograd.grad(y, [a, b, a], head)
    expected = db.asnumpy().tolist()
    da[:] = 0
    assert db.asnumpy().tolist() == again.asnumpy().tolist() == expected
    (dc,) = autograd.grad([z, a], a, [head, head])
    dc[:] = 0
    (dx,) = autograd.grad(a, a, head)
    dx[:] = 0
    assert head.asnumpy().tolist() == [1.0, 2.0]
    (dx,) = autograd.grad(a, a)
    dx[:] = 0
    (dx,) = autograd.grad(a, a)
    assert dx.asnumpy().tolist() == [1.0, 1.0]


def test_what_is_refused_leaves_the_graph():
    x, other, null = leaf(2.0), leaf(3.0), leaf(4.0, request="null")
    with autograd.record():
        y = x * x * null
        h = y * 1
    with pytest.raises(AssertionError):
        autograd.grad(y, [])
    for variable in (h, nd.ones((1,)), null):
        with pytest.raises(MXNetError, match="not marked"):
            autograd.grad(h, variable)
    with pytest.raises(MXNetError, match="no head depends"):
        autograd.grad(h, [x, other])
    with pytest.raises(MXNetError, match="no head depends"):
        autograd.grad(h, [x, other], create_graph=True)
    with pytest.raises(MXNetError):
        autograd.grad(h, x, nd.zeros((2,)))
    assert not autograd.is_recording()
    h.backward()
    assert x.grad.asnumpy().tolist() == [16.0]


def test_the_graph_is_freed_unless_retained():
    x = leaf(2.0)
    with autograd.record():
        y = x * x
    for _ in range(2):
        assert autograd.grad(y, x, retain_graph=True)[0].asscalar() == 4
    assert autograd.grad(y, x, create_graph=True)[0].asscalar() == 4
    assert autograd.grad(y, x)[0].asscalar() == 4
    with pytest.raises(MXNetError, match="freed"):
        autograd.grad(y, x)


def test_a_gradient_of_zero_is_zeros():
    x, w = leaf(1.0, 2.0), leaf(1.0, 2.0)
    with autograd.record():
        y = nd.stop_gradient(x) * w
    dx, dw = autograd.grad(y, [x, w])
    assert dx.asnumpy().tolist() == [0.0, 0.0]
    assert dw.asnumpy().tolist() == [1.0, 2.0]


def test_first_order_results_are_not_recorded():
    x = leaf(2.0)
    with autograd.record():
        y = x * x
        (g,) = autograd.grad(y, x)
        with pytest.raises(MXNetError, match="not in a graph"):
            g.backward()
        assert autograd.is_recording()


def test_sine_to_the_third_order():
    x = leaf(0.5, -0.25)
    with autograd.record():
        y = nd.sin(x)
    (first,) = autograd.grad(y, x, create_graph=True)
    (second,) = autograd.grad(first, x, create_graph=True)
    second.backward()
    # MXNet 1.9.1: -cos x
    np.testing.assert_allclose(x.grad.asnumpy(), [-0.8775825500488281, -0.9689124226570129], rtol=1e-6)


def test_third_order_through_products_sums_and_views():
    x = leaf(0.5, -0.25, 1.5)
    with autograd.record():
        y = ((x * x * x * x).reshape((3, 1)) * 2).sum()
    (first,) = autograd.grad(y, x, create_graph=True)
    (second,) = autograd.grad(first, x, create_graph=True)
    (third,) = autograd.grad(second, x)
    t = x.asnumpy()
    np.testing.assert_allclose(first.asnumpy(), 8 * t**3, rtol=1e-6)
    np.testing.assert_allclose(second.asnumpy(), 24 * t**2, rtol=1e-6)
    np.testing.assert_allclose(third.asnumpy(), 48 * t, rtol=1e-6)


def test_mixed_partials_agree():
    x, w = leaf(0.5, 2.0), leaf(3.0, -1.0)
    with autograd.record():
        y = nd.exp(x * w)
    dx, dw = autograd.grad(y, [x, w], create_graph=True)
    (dxw,) = autograd.grad(dx, w, retain_graph=True)
    (dwx,) = autograd.grad(dw, x)
    a, b = x.asnumpy(), w.asnumpy()
    np.testing.assert_allclose(dxw.asnumpy(), np.exp(a * b) * (1 + a * b), rtol=1e-5)
    np.testing.assert_allclose(dwx.asnumpy(), dxw.asnumpy(), rtol=1e-5)


def test_a_penalty_on_the_gradient():
    x, w = leaf(1.0, 2.0), leaf(0.5, -0.5)
    with autograd.record():
        y = nd.tanh(x * w).sum()
        (dx,) = autograd.grad(y, x, create_graph=True)
        loss = y + (dx * dx).sum()
    loss.backward()
    a, b = x.asnumpy().astype("float64"), w.asnumpy().astype("float64")
    s = 1 - np.tanh(a * b) ** 2
    ds = -2 * np.tanh(a * b) * s
    np.testing.assert_allclose(w.grad.asnumpy(), s * a + 2 * (s * b) * (ds * a * b + s), rtol=1e-5)


def test_hessian_vector_product_through_a_matrix():
    a = nd.array([[2.0, 1.0], [1.0, 3.0]])
    x = nd.array([[1.0], [-2.0]])
    x.attach_grad()
    v = nd.array([[0.5], [1.0]])
    with autograd.record():
        y = (x * nd.dot(a, x)).sum()
        (g,) = autograd.grad(y, x, create_graph=True)
        s = (g * v).sum()
    s.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * a.asnumpy() @ v.asnumpy(), rtol=1e-6)


def test_create_graph_without_retain_is_accepted():
    x = leaf(3.0)
    with autograd.record():
        y = x * x
    (g,) = autograd.grad(y, x, create_graph=True, retain_graph=False)
    assert g.asscalar() == 6.0
    with pytest.raises(MXNetError, match="freed"):
        y.backward()


def test_recording_is_restored_after_create_graph():
    x = leaf(3.0)
    with autograd.record():
        y = x * x
    autograd.grad(y, x, create_graph=1, train_mode=0)
    assert (autograd.is_recording(), autograd.is_training()) == (False, False)


@pytest.mark.parametrize("function", [lambda x: 3 * x, lambda x: x, nd.radians, nd.floor, lambda x: nd.Dropout(x)])
def test_a_constant_gradient_has_a_gradient_of_zero(function):
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        (first,) = autograd.grad(function(x) + 0, x, create_graph=True, retain_graph=True)
        (second,) = autograd.grad(first, x, create_graph=True)
    expected = {nd.radians: np.pi / 180, nd.floor: 0}.get(function)
    if expected is not None:
        np.testing.assert_allclose(first.asnumpy(), [expected] * 2, rtol=1e-6)
    assert second.asnumpy().tolist() == [0, 0]
    x.grad[:] = 7
    first.backward()
    assert x.grad.asnumpy().tolist() == [0, 0]


def test_get_symbol_names_the_variables():
    x, z = nd.ones((1,)), nd.ones((1,))
    with pytest.raises(MXNetError, match="not in a graph"):
        autograd.get_symbol(x)
    for array in (x, z):
        array.attach_grad()
    with autograd.record():
        one = x * x + 2 * x - 1
        two = (x * x + 2 * z - 1).split(1, axis=0)
    assert autograd.get_symbol(one).list_arguments() == ["var0"]
    assert autograd.get_symbol(two).list_arguments() == ["var0", "var1"]
    assert autograd.get_symbol(x).list_arguments() == ["var0"]
    assert len(autograd.get_symbol(one).list_outputs()) == 1
