"""Layers: values, gradients, deferred shapes, messages."""

import math

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, gluon, nd
from numbagrad.gluon import nn

X = np.sin(np.arange(24.0) * 1.3).reshape(2, 3, 4)


def dense(units, values, bias=None, **kwargs):
    values = np.asarray(values)
    layer = nn.Dense(units, in_units=values.shape[1], use_bias=bias is not None, **kwargs)
    layer.initialize()
    layer.weight.set_data(values)
    if bias is not None:
        layer.bias.set_data(bias)
    return layer


ACTIVATIONS = {
    None: lambda z: z,
    "relu": lambda z: np.maximum(z, 0),
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "tanh": np.tanh,
    "softrelu": lambda z: np.log1p(np.exp(z)),
    "softsign": lambda z: z / (1 + abs(z)),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_dense(activation):
    weight, bias = np.cos(np.arange(24.0)).reshape(2, 12), np.array([0.3, -0.1])
    expected = ACTIVATIONS[activation](X.reshape(2, 12) @ weight.T + bias)
    layer = dense(2, weight, bias, activation=activation)
    np.testing.assert_allclose(layer(nd.array(X)).asnumpy(), expected, rtol=2e-5, atol=1e-6)
    # The activation by itself, because somebody listens.
    seen = []
    if activation is not None:
        layer.act.register_forward_hook(lambda block, args, out: seen.append(out))
        y = layer(nd.array(X))
        np.testing.assert_allclose(y.asnumpy(), expected, rtol=2e-5, atol=1e-6)
        assert seen == [y]


def test_dense_on_the_last_axis():
    weight, bias = np.cos(np.arange(8.0)).reshape(2, 4), np.array([0.3, -0.1])
    layer = dense(2, weight, bias, flatten=False, activation="tanh")
    expected = np.tanh(X @ weight.T + bias)
    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = layer(x)
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(x.grad.asnumpy(), (1 - expected**2) @ weight, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(layer(nd.array(X[0, 0])).asnumpy(), expected[0, 0], rtol=1e-5, atol=1e-6)


def test_dense_of_a_vector_is_a_column():
    layer = dense(2, [[1.0], [2.0]])
    assert layer(nd.array([1.0, 10.0])).tolist() == [[1, 2], [10, 20]]


def test_dense_takes_its_width_from_the_first_input():
    layer = nn.Dense(2, prefix="fc_")
    assert repr(layer) == "Dense(None -> 2, linear)"
    with pytest.raises(RuntimeError, match="'fc_weight' has not been initialized"):
        layer(nd.ones((2, 3)))
    layer.initialize("ones")
    with autograd.record():
        y = layer(nd.ones((5, 3, 4)))
    y.backward()
    assert y.tolist() == [[12, 12]] * 5
    assert layer.weight.shape == (2, 12)
    assert layer.weight.grad().tolist() == [[5] * 12] * 2
    assert layer.bias.grad().tolist() == [5, 5]
    assert repr(layer) == "Dense(12 -> 2, linear)"
    for shape in ((5, 11), (5, 3, 5)):
        with pytest.raises(mx.MXNetError, match=rf"fc: .*\({', '.join(map(str, shape))}\)"):
            layer(nd.ones(shape))
    for other in (np.ones((1, 12)), [1], None):
        with pytest.raises(ValueError, match="NDArray"):
            layer(other)


def test_dense_mixes_dtypes_by_category():
    layer = dense(1, [[1.0, 2.0]], [0.5])
    assert layer(nd.array([[1, 2]], dtype="int32")).dtype == np.float32
    assert layer(nd.array([[1, 2]], dtype="int32")).tolist() == [[5.5]]
    assert layer(nd.array([[1, 2]], dtype="float64")).dtype == np.float64
    layer.cast("float64")
    assert layer.weight.data().dtype == np.float64
    assert layer(nd.array([[1, 2]], dtype="float64")).tolist() == [[5.5]]


def test_dense_replaces_its_activation():
    layer = dense(1, [[1.0]], activation="relu")
    x = nd.array([[-1.0]])
    assert layer(x).tolist() == [[0]]
    layer.act = nn.Activation("tanh")
    assert layer(x).asscalar() == pytest.approx(math.tanh(-1))

    class Shifted(nn.Activation):
        def hybrid_forward(self, F, x):
            return super().hybrid_forward(F, x) + 1

    layer.act = Shifted("tanh")
    assert layer(x).asscalar() == pytest.approx(math.tanh(-1) + 1)
    with pytest.raises(mx.MXNetError, match="act_type"):
        dense(1, [[1.0]], activation="nothing")(x)


def test_dense_on_replicas():
    layer = nn.Dense(1, in_units=1)
    layer.initialize("ones", ctx=[mx.cpu(0), mx.cpu(1)])
    xs = gluon.utils.split_and_load(np.array([[2.0], [5.0]]), [mx.cpu(0), mx.cpu(1)])
    with autograd.record():
        ys = [layer(x) for x in xs]
    autograd.backward(ys)
    assert [y.context for y in ys] == [mx.cpu(0), mx.cpu(1)]
    assert [grad.tolist() for grad in layer.weight.list_grad()] == [[[2]], [[5]]]


def test_shared_weights_add_their_gradients():
    first = dense(3, 0.5 * np.ones((3, 3)))
    second = nn.Dense(3, in_units=3, use_bias=False, params=first.params)
    assert second.weight is first.weight
    with autograd.record():
        y = second(first(nd.array([[1, 2, 3]])))
    y.backward()
    assert first.weight.grad().tolist() == [[4.5, 6, 7.5]] * 3


def test_dropout_follows_the_training_flag():
    layer = nn.Dropout(0.4)
    x = nd.ones((1000,))
    assert layer(x).tolist() == [1] * 1000
    with autograd.train_mode():
        y = layer(x).asnumpy()
    assert set(np.round(y, 6)) == {np.float32(0), np.float32(1.666667)}
    # 5 standard deviations of a binomial of 1000 draws
    assert abs((y == 0).mean() - 0.4) < 5 * math.sqrt(0.24 / 1000)
    with autograd.train_mode():
        rows = nn.Dropout(0.5, axes=(0,))(nd.ones((4, 200))).asnumpy()
    assert (rows == rows[0]).all()
    assert repr(nn.Dropout(0.5, axes=(0,))) == "Dropout(p = 0.5, axes=(0,))"


Y = np.array([-2.0, -0.5, 0.0, 0.5, 2.0])
SELU = (1.0507009873554805, 1.6732632423543772)
LAYERS = {
    "leaky": (nn.LeakyReLU(0.1), np.where(Y > 0, Y, 0.1 * Y)),
    "prelu": (nn.PReLU(), np.where(Y > 0, Y, 0.25 * Y)),
    "elu": (nn.ELU(2.0), np.where(Y > 0, Y, 2 * np.expm1(Y))),
    "selu": (nn.SELU(), np.where(Y > 0, SELU[0] * Y, SELU[0] * SELU[1] * np.expm1(Y))),
    "gelu": (nn.GELU(), np.array([y * 0.5 * (1 + math.erf(y / math.sqrt(2))) for y in Y])),
    "swish": (nn.Swish(2.0), Y / (1 + np.exp(-2 * Y))),
    "softsign": (nn.Activation("softsign"), Y / (1 + abs(Y))),
    "lambda": (nn.Lambda(lambda x: 2 * x), 2 * Y),
    "lambda by name": (nn.Lambda("tanh"), np.tanh(Y)),
    "hybrid lambda": (nn.HybridLambda(lambda F, x: F.exp(x)), np.exp(Y)),
    "hybrid lambda by name": (nn.HybridLambda("exp"), np.exp(Y)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_small_layers(name):
    layer, expected = LAYERS[name]
    layer.initialize()
    np.testing.assert_allclose(layer(nd.array(Y)).asnumpy(), expected, rtol=1e-5, atol=1e-7)


def test_prelu_trains_its_slopes():
    layer = nn.PReLU(in_channels=2)
    layer.initialize()
    with autograd.record():
        y = layer(nd.array([[-1.0, 2.0], [-3.0, -4.0]]))
    y.backward()
    assert layer.alpha.grad().tolist() == [-4, -4]


def test_flatten_and_reprs():
    assert nn.Flatten()(nd.array(X)).shape == (2, 12)
    assert [repr(layer) for layer in (nn.Flatten(), nn.LeakyReLU(0.1), nn.Activation("tanh"), nn.Lambda("tanh"))] == [
        "Flatten",
        "LeakyReLU(0.1)",
        "Activation(tanh)",
        "Lambda(tanh)",
    ]
    assert repr(nn.Lambda(len)) == "Lambda(len)"
    assert repr(nn.Embedding(2, 3)) == "Embedding(2 -> 3, float32)"
    assert repr(nn.BatchNorm()) == (
        "BatchNorm(axis=1, eps=1e-05, momentum=0.9, fix_gamma=False, use_global_stats=False, in_channels=None)"
    )
    assert repr(nn.LayerNorm()) == "LayerNorm(eps=1e-05, axis=-1, center=True, scale=True, in_channels=0)"
    assert repr(nn.GroupNorm()) == "GroupNorm(eps=1e-05, num_groups=1, center=True, scale=True)"
    assert repr(nn.InstanceNorm()) == "InstanceNorm(eps=1e-05, axis=1, center=True, scale=False, in_channels=0)"
    with pytest.raises(AssertionError, match="no less than 0"):
        nn.LeakyReLU(-1)
    with pytest.raises(AssertionError, match="nope is not found"):
        nn.Lambda("nope")
    with pytest.raises(ValueError, match="Unrecognized function"):
        nn.HybridLambda(3)


def test_embedding_scatters_its_gradient():
    layer = nn.Embedding(3, 2, sparse_grad=True)
    layer.initialize()
    layer.weight.set_data(np.arange(6).reshape(3, 2))
    with autograd.record():
        y = layer(nd.array([[2, 0], [2, 2]], dtype="int32"))
    y.backward()
    assert y.tolist() == [[[4, 5], [0, 1]], [[4, 5], [4, 5]]]
    assert layer.weight.grad().tolist() == [[1, 1], [0, 0], [3, 3]]


def test_batch_norm_moves_its_statistics_in_training():
    layer = nn.BatchNorm(momentum=0.8)
    layer.initialize()
    x = nd.array(X)
    mean, variance = X.mean((0, 2)), X.var((0, 2))
    plain = X / np.sqrt(1 + 1e-5)
    np.testing.assert_allclose(layer(x).asnumpy(), plain, rtol=1e-5)
    with autograd.record():
        y = layer(x)
    expected = (X - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5)
    np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer.running_mean.data().asnumpy(), 0.2 * mean, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(layer.running_var.data().asnumpy(), 0.8 + 0.2 * variance, rtol=1e-5)
    assert (layer.running_mean.grad_req, layer.gamma.shape) == ("null", (3,))
    with pytest.raises(mx.MXNetError):
        layer(nd.ones((2, 4)))


def test_batch_norm_options():
    layer = nn.BatchNorm(scale=False, center=False, use_global_stats=True, in_channels=3, gamma_initializer="zeros")
    layer.initialize()
    assert (layer.gamma.grad_req, layer.beta.grad_req) == ("null", "null")
    with autograd.train_mode():
        y = layer(nd.array(X))
    np.testing.assert_allclose(y.asnumpy(), X / np.sqrt(1 + 1e-5), rtol=1e-5)
    assert layer.running_mean.data().tolist() == [0, 0, 0]
    layer.cast("float16")
    assert layer.running_mean.data().dtype == np.float32


def normalized(x, axes):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def test_layer_instance_and_group_norm():
    x = nd.array(X)
    for layer, expected in (
        (nn.LayerNorm(), normalized(X, 2)),
        (nn.LayerNorm(axis=1), normalized(X, 1)),
        (nn.InstanceNorm(), normalized(X, 2)),
        (nn.GroupNorm(3), normalized(X, 2)),
        (nn.GroupNorm(1), normalized(X, (1, 2))),
    ):
        layer.initialize()
        np.testing.assert_allclose(layer(x).asnumpy(), expected, rtol=1e-4, atol=1e-5)
        layer.gamma.set_data(2 * np.ones(layer.gamma.shape))
        layer.beta.set_data(np.ones(layer.beta.shape))
        np.testing.assert_allclose(layer(x).asnumpy(), 2 * expected + 1, rtol=1e-4, atol=1e-5)
    layer = nn.LayerNorm(in_channels=5)
    layer.initialize()
    with pytest.raises(mx.MXNetError, match="LayerNorm"):
        layer(x)
