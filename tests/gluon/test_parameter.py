"""Parameters, constants and dicts of them."""

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, gluon, nd


def made(**kwargs):
    parameter = gluon.Parameter("w", **{"shape": (2, 2), "init": "ones", **kwargs})
    parameter.initialize()
    return parameter


def test_attributes():
    parameter = gluon.Parameter("w", shape=3, dtype="float64", lr_mult=2, wd_mult=0)
    assert repr(parameter) == "Parameter w (shape=(3,), dtype=float64)"
    assert repr(gluon.Parameter("v", shape=(2, 3))) == "Parameter v (shape=(2, 3), dtype=<class 'numpy.float32'>)"
    assert (parameter.lr_mult, parameter.wd_mult, parameter.var().name) == (2, 0, "w")
    assert gluon.Parameter("w", differentiable=False).grad_req == "null"
    with pytest.raises(AssertionError, match="grad_req must be one of"):
        gluon.Parameter("w", grad_req="x")
    for which in ("stype", "grad_stype"):
        with pytest.raises(AssertionError, match=f"^{which} for Parameter 'w'"):
            gluon.Parameter("w", **{which: "x"})


def test_initialization():
    parameter = made()
    assert parameter.data().tolist() == [[1, 1], [1, 1]]
    assert parameter.grad().tolist() == [[0, 0], [0, 0]]
    parameter.data()[:] = 5
    with pytest.warns(UserWarning, match="already initialized, ignoring"):
        parameter.initialize()
    assert parameter.data().tolist() == [[5, 5], [5, 5]]
    parameter.initialize(init="zeros", force_reinit=True)
    assert parameter.data().tolist() == [[0, 0], [0, 0]]
    # The parameter's own initializer goes before the default; the argument before both.
    parameter.initialize(default_init="zeros", force_reinit=True)
    assert parameter.data().tolist() == [[1, 1], [1, 1]]
    # Names play no role.
    bias = gluon.Parameter("x_bias", shape=2)
    bias.initialize(init=mx.init.One())
    assert bias.data().tolist() == [1, 1]
    with pytest.raises(AssertionError, match="nothing"):
        parameter.initialize(init="nothing", force_reinit=True)
    assert parameter.data().tolist() == [[1, 1], [1, 1]]
    with pytest.raises(mx.MXNetError, match=r"gpu\(0\)"):
        parameter.initialize(ctx=mx.gpu(), force_reinit=True)
    assert parameter.data().tolist() == [[1, 1], [1, 1]]


def test_use_before_initialization():
    parameter = gluon.Parameter("w", shape=(2, 0), allow_deferred_init=True)
    with pytest.raises(RuntimeError, match=r"'w' has not been initialized.*initialize\(\)"):
        parameter.data()
    with pytest.raises(AssertionError, match="'w' has not been initialized"):
        parameter.set_data(nd.ones((2, 2)))
    parameter.initialize()
    for use in (parameter.data, parameter.grad, parameter.list_data):
        with pytest.raises(gluon.DeferredInitializationError, match="deferred"):
            use()
    assert issubclass(gluon.DeferredInitializationError, mx.MXNetError)
    assert parameter.list_ctx() == [mx.cpu()]
    with pytest.raises(ValueError, match="invalid shape"):
        gluon.Parameter("w", shape=(2, 0)).initialize()


def test_values_set_while_the_shape_is_unknown():
    layer = gluon.nn.Dense(1)
    layer.initialize()
    values = nd.array([[1.0, 2.0]])
    layer.weight.set_data(values)
    values[:] = 0
    assert layer(nd.array([[10.0, 1.0]])).tolist() == [[12]]


def test_shape_fills_in_what_is_unknown():
    parameter = gluon.Parameter("w", shape=(0, 3))
    parameter.shape = (2, 3)
    assert parameter.shape == (2, 3)
    for wrong in ((3, 3), (2, 3, 1)):
        with pytest.raises(AssertionError, match="incompatible"):
            parameter.shape = wrong
    assert parameter.shape == (2, 3)


def test_set_data():
    parameter = made()
    data = parameter.data()
    parameter.set_data(np.array([[1, 2], [3, 4]]))
    assert parameter.data() is data
    assert data.tolist() == [[1, 2], [3, 4]]
    assert data.dtype == np.float32
    with pytest.raises(AssertionError, match="incompatible"):
        parameter.set_data(nd.ones((2, 3)))
    with autograd.record(), pytest.raises(mx.MXNetError, match="Inplace operations"):
        parameter.set_data(nd.zeros((2, 2)))
    assert data.tolist() == [[1, 2], [3, 4]]
    with autograd.record():
        y = parameter.data() * 2
    y.backward()
    assert parameter.grad().tolist() == [[2, 2], [2, 2]]


def test_a_write_between_forward_and_backward_is_found():
    parameter = made()
    with autograd.record():
        y = parameter.data() * parameter.data()
    parameter.set_data(np.zeros((2, 2)))
    with pytest.raises(mx.MXNetError, match="written in place"):
        y.backward()


def test_grad_req():
    parameter = made()
    for expected in (2, 4):
        parameter.grad_req = "add"
        with autograd.record():
            y = parameter.data() * 2
        y.backward()
        assert parameter.grad().tolist() == [[expected] * 2] * 2
    parameter.zero_grad()
    assert parameter.grad().tolist() == [[0, 0], [0, 0]]
    parameter.grad_req = "null"
    with pytest.raises(RuntimeError, match="grad_req='null'"):
        parameter.grad()
    with autograd.record():
        y = parameter.data() * 2
    with pytest.raises(mx.MXNetError):
        y.backward()
    parameter.grad_req = "write"
    assert parameter.grad().tolist() == [[0, 0], [0, 0]]
    with pytest.raises(AssertionError, match="grad_req"):
        parameter.grad_req = "sum"


def test_cast_keeps_values_gradient_and_mark():
    parameter = made()
    with autograd.record():
        y = parameter.data() * 3
    y.backward()
    parameter.cast("float64")
    assert (parameter.data().dtype, parameter.grad().dtype) == (np.float64, np.float64)
    assert parameter.grad().tolist() == [[3, 3], [3, 3]]
    assert parameter.data()._fresh_grad == 1
    with autograd.record():
        y = parameter.data() * 4
    y.backward()
    assert parameter.grad().tolist() == [[4, 4], [4, 4]]


def test_replicas():
    contexts = [mx.cpu(0), mx.cpu(1)]
    parameter = gluon.Parameter("w", shape=2)
    parameter.initialize("ones", ctx=contexts)
    assert [data.context for data in parameter.list_data()] == contexts
    assert parameter.list_ctx() == contexts
    parameter.set_data(nd.array([1, 2]))
    assert parameter.data(mx.cpu(1)).tolist() == [1, 2]
    with mx.cpu(1):
        assert parameter.data() is parameter.list_data()[1]
    with pytest.raises(RuntimeError, match=r"not initialized on context cpu\(2\)"):
        parameter.data(mx.cpu(2))
    parameter.list_data()[1][:] = 3
    parameter.reset_ctx(mx.cpu(2))
    assert parameter.data().context == mx.cpu(2)
    assert parameter.data().tolist() == [2, 2.5]
    with pytest.raises(ValueError, match="Cannot reset context"):
        gluon.Parameter("v", shape=2).reset_ctx(mx.cpu())


def test_constant():
    constant = gluon.Constant("c", [[1, 2], [3, 4]])
    assert repr(constant) == "Constant c (shape=(2, 2), dtype=<class 'numpy.float32'>)"
    constant.initialize()
    assert constant.data().tolist() == [[1, 2], [3, 4]]
    with pytest.warns(UserWarning, match="does not support grad_req"):
        constant.grad_req = "write"
    assert constant.grad_req == "null"
    constant.set_data(np.zeros((2, 2)))
    assert constant.value.tolist() == [[1, 2], [3, 4]]


def test_dict_get():
    params = gluon.ParameterDict("net_")
    weight = params.get("w", shape=(0, 3), dtype="float32")
    assert weight.name == "net_w"
    assert params.get("w", shape=(2, 0), dtype=np.float32) is weight
    assert weight.shape == (2, 3)
    for wrong in ({"shape": (3, 3)}, {"dtype": "float64"}, {"grad_req": "null"}):
        with pytest.raises(AssertionError, match="Cannot retrieve Parameter 'net_w'"):
            params.get("w", **wrong)
    assert repr(params) == "net_ (\n  Parameter net_w (shape=(2, 3), dtype=float32)\n)"
    with pytest.raises(KeyError):
        params["w"]
    assert list(params.keys()) == ["net_w"]
    shared = gluon.ParameterDict("net_", shared=params)
    assert shared.get("w") is weight


def test_dict_constants():
    params = gluon.ParameterDict("net_")
    constant = params.get_constant("c", [1, 2])
    assert params.get_constant("c") is constant
    assert params.get_constant("c", np.array([1, 2])) is constant
    with pytest.raises(AssertionError, match="doesn't match"):
        params.get_constant("c", [2, 1])
    with pytest.raises(KeyError, match="net_d"):
        params.get_constant("d")
    params.get("w", shape=1)
    with pytest.raises(AssertionError, match="not a constant"):
        params.get_constant("w")


def test_dict_update_and_settings():
    first, second = gluon.ParameterDict("a_"), gluon.ParameterDict("a_")
    first.get("w", shape=2)
    second.get("v", shape=2)
    first.update(second)
    assert list(first) == ["a_w", "a_v"]
    clash = gluon.ParameterDict("a_")
    clash.get("w", shape=2)
    with pytest.raises(AssertionError, match="a_w"):
        first.update(clash)
    first.initialize(mx.init.Constant(2), ctx=[mx.cpu(0), mx.cpu(1)])
    assert first.list_ctx() == [mx.cpu(0), mx.cpu(1)]
    assert first["a_v"].data(mx.cpu(1)).tolist() == [2, 2]
    first.setattr("lr_mult", 0.5)
    assert first["a_w"].lr_mult == 0.5
    first.reset_ctx(mx.cpu(3))
    assert first.list_ctx() == [mx.cpu(3)]
    with pytest.raises(AssertionError):
        gluon.nn.Dense(1, in_units=1).initialize(init=None)


def test_verbose_initialization_leaves_the_default_alone(capsys):
    gluon.nn.Dense(1, in_units=1, prefix="d_").initialize(verbose=True)
    assert "d_weight" in capsys.readouterr().out
    gluon.nn.Dense(1, in_units=1).initialize()
    assert capsys.readouterr().out == ""


def test_seed_reproduces():
    results = []
    for _ in range(2):
        mx.random.seed(5)
        net = gluon.nn.Dense(2, in_units=3)
        net.initialize()
        results.append(net.weight.data().tolist())
    assert results[0] == results[1]
    assert np.abs(results[0]).max() <= 0.07
