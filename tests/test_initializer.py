"""Initializers: distributions by their bounds and moments, names, the registry."""

import json
import math

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import init, nd


def drawn(initializer, shape=(100, 50), name="w_weight"):
    array = nd.zeros(shape)
    initializer(init.InitDesc(name), array)
    return array.asnumpy()


@pytest.mark.parametrize(
    ("initializer", "shape", "bound"),
    [
        (init.Uniform(), (100, 50), 0.07),
        (init.Uniform(2), (100, 50), 2),
        (init.Xavier(), (100, 50), math.sqrt(3 / 75)),
        (init.Xavier(factor_type="in"), (100, 50), math.sqrt(3 / 50)),
        (init.Xavier(factor_type="out", magnitude=2), (100, 50), math.sqrt(2 / 100)),
        (init.Xavier(factor_type="in"), (20, 10, 5, 5), math.sqrt(3 / 250)),
    ],
)
def test_uniform(initializer, shape, bound):
    values = drawn(initializer, shape)
    assert np.abs(values).max() < bound
    # of 5000 draws: 5 standard deviations of the mean, and of the maximum
    assert abs(values.mean()) < 5 * bound / math.sqrt(3 * 5000)
    assert np.abs(values).max() > bound * (1 - 8 / 5000)


@pytest.mark.parametrize(
    ("initializer", "sigma"),
    [
        (init.Normal(), 0.01),
        (init.Normal(3), 3),
        (init.Xavier("gaussian", magnitude=2), math.sqrt(2 / 75)),
        (init.MSRAPrelu(), math.sqrt(2 / (1 + 0.25**2) / 75)),
        (init.MSRAPrelu("in", slope=0), math.sqrt(2 / 50)),
    ],
)
def test_normal(initializer, sigma):
    values = drawn(initializer)
    assert abs(values.mean()) < 5 * sigma / math.sqrt(5000)
    assert abs(values.std() / sigma - 1) < 5 / math.sqrt(2 * 5000)
    assert np.abs(values).max() > 3 * sigma


@pytest.mark.parametrize("rand_type", ["uniform", "normal"])
@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (3, 2, 2)])
def test_orthogonal(shape, rand_type):
    values = drawn(init.Orthogonal(2.0, rand_type), shape).reshape(shape[0], -1)
    product = values @ values.T if values.shape[0] <= values.shape[1] else values.T @ values
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_constants():
    assert (drawn(init.Zero()) == 0).all()
    assert (drawn(init.One()) == 1).all()
    assert (drawn(init.Constant(2.5)) == 2.5).all()
    values = np.arange(6).reshape(2, 3)
    for value in (nd.array(values), values):
        assert drawn(init.Constant(value), (2, 3)).tolist() == values.tolist()
    with pytest.raises(ValueError, match="6 values"):
        drawn(init.Constant(values), (2, 2))
    assert drawn(init.LSTMBias(3.0), (8,)).tolist() == [0, 0, 3, 3, 0, 0, 0, 0]
    corner = [0.0625, 0.1875, 0.1875, 0.0625]
    assert drawn(init.Bilinear(), (1, 1, 4, 4))[0, 0, 0].tolist() == corner


def test_seed():
    results = []
    for _ in range(2):
        mx.random.seed(11)
        results.append([drawn(one, (3, 3)).tolist() for one in (init.Uniform(), init.Xavier(), init.Orthogonal())])
    assert results[0] == results[1]
    assert drawn(init.Uniform(), (3, 3)).tolist() != results[0][0]


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_dtypes(dtype):
    array = nd.zeros((50, 50), dtype=dtype)
    init.Normal(1.0)(init.InitDesc("weight"), array)
    assert array.dtype == np.dtype(dtype)
    assert abs(array.asnumpy().astype("float64").std() - 1) < 0.1
    init.One()(init.InitDesc("weight"), array)
    assert (array.asnumpy() == 1).all()


def test_rules_go_by_the_end_of_the_name():
    for name, value in (("a_bias", 0), ("a_gamma", 1), ("a_beta", 0), ("a_min", 0), ("a_max", 1), ("a_weight", 5)):
        assert (drawn(init.Constant(5), (2,), name) == value).all()
    with pytest.raises(ValueError, match="running_mean"):
        drawn(init.One(), (2,), "a_running_mean")
    array = nd.zeros(2)
    init.One()(init.InitDesc("a_bias", {"__init__": '["constant", {"value": 7}]'}), array)
    assert array.tolist() == [7, 7]
    with pytest.warns(DeprecationWarning, match="InitDesc"):
        init.One()("a_weight", array)
    assert array.tolist() == [1, 1]
    with pytest.raises(ValueError, match=r"Xavier cannot initialise w_weight of shape \(3,\)"):
        drawn(init.Xavier(), (3,))


def test_registry():
    assert isinstance(init.create("Xavier", magnitude=2), init.Xavier)
    for name, kind in (("zeros", init.Zero), ("ones", init.One), ("msraprelu", init.MSRAPrelu)):
        assert type(init.create(name)) is kind
    one = init.Uniform(3)
    assert init.create(one) is one
    for wrong in ("nothing", None, 3):
        with pytest.raises(AssertionError):
            init.create(wrong)

    @init.register
    class Twos(init.Initializer):
        def _init_weight(self, name, arr):
            arr[:] = 2

    layer = mx.gluon.nn.Dense(1, in_units=2, bias_initializer="twos")
    layer.initialize("twos")
    assert (layer.weight.data().tolist(), layer.bias.data().tolist()) == ([[2, 2]], [2])


def test_dumps_and_equality():
    assert init.Xavier().dumps() == '["xavier", {"rnd_type": "uniform", "factor_type": "avg", "magnitude": 3}]'
    assert init.Constant(nd.ones(2)).dumps() == '["constant", {"value": [1.0, 1.0]}]'
    again = init.create(init.MSRAPrelu("out", 0.1).dumps())
    assert json.loads(again.dumps()) == ["msraprelu", {"factor_type": "out", "slope": 0.1}]
    assert init.Uniform(1) == init.Uniform(1)
    assert init.Uniform(1) != init.Uniform(2)
    assert init.Zero() != init.One()


def test_mixed_and_load():
    mixed = init.Mixed(["bias", ".*"], [init.Zero(), init.One()])
    array = nd.ones(2)
    mixed(init.InitDesc("bias"), array)
    assert array.tolist() == [0, 0]
    mixed(init.InitDesc("a_weight"), array)
    assert array.tolist() == [1, 1]
    with pytest.raises(ValueError, match="no pattern"):
        init.Mixed(["x"], [init.Zero()])("y", array)
    with pytest.raises(AssertionError):
        init.Mixed(["x"], [])
    load = init.Load({"arg:a": nd.array([3, 4])}, default_init=init.Zero())
    load("a", array)
    assert array.tolist() == [3, 4]
    load(init.InitDesc("b_bias"), array)
    assert array.tolist() == [0, 0]
    with pytest.raises(AssertionError, match="has shape"):
        load("a", nd.ones(3))
    with pytest.raises(AssertionError, match="not loaded"):
        init.Load({})("b", array)


def test_verbosity(capsys):
    drawn(init.One().set_verbosity(True))
    assert capsys.readouterr().out == "Initialized w_weight as weight: 1\n"
    drawn(init.One().set_verbosity(True, lambda array: "figure"))
    assert "figure" in capsys.readouterr().out
