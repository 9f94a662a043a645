"""The functions of networks: MXNet's rules and values (numbers from MXNet 1.9.1 where none are derived here)."""

import numpy as np
import pytest
from scipy import special

from numbagrad import autograd, nd
from numbagrad.errors import MXNetError

V = np.arange(12).reshape(2, 3, 2) / 3 - 1


def _variable(values, dtype="float32"):
    x = nd.array(values, dtype=dtype)
    x.attach_grad()
    return x


def _gradient(function, *arrays):
    with autograd.record():
        y = function(*arrays)
    y.backward()
    return arrays[0].grad.asnumpy()


# ------------------------------------------------------------------------------------------------ dense layers


def test_dense_flattens_unless_told():
    """(2, 3, 2) is (2, 6) with flatten; without, the last axis is multiplied; a vector is a column."""
    w, b = np.sin(np.arange(24.0)).reshape(4, 6), np.arange(4.0)
    y = nd.FullyConnected(nd.array(V), nd.array(w), nd.array(b), num_hidden=4)
    np.testing.assert_allclose(y.asnumpy(), V.reshape(2, 6) @ w.T + b, rtol=1e-5, atol=1e-6)
    w = w[:, :2]
    y = nd.FullyConnected(nd.array(V), nd.array(w), no_bias=True, num_hidden=4, flatten=False)
    np.testing.assert_allclose(y.asnumpy(), V @ w.T, rtol=1e-5, atol=1e-6)
    y = nd.FullyConnected(nd.ones(3), nd.array(w[:, :1]), nd.array(b), num_hidden=4)
    np.testing.assert_allclose(y.asnumpy(), np.ones((3, 1)) @ w[:, :1].T + b, rtol=1e-6)
    y = nd.FullyConnected(nd.ones(2), nd.array(w), nd.array(b), num_hidden=4, flatten=False)
    assert y.shape == (4,)
    np.testing.assert_allclose(y.asnumpy(), w.sum(1) + b, rtol=1e-5, atol=1e-6)


def test_dense_gradient_has_the_shape_of_the_data():
    """Through the flattening."""
    w = np.sin(np.arange(24.0)).reshape(4, 6)
    got = _gradient(lambda x: nd.FullyConnected(x, nd.array(w), None, 4, no_bias=True), _variable(V))
    np.testing.assert_allclose(got, np.tile(w.sum(0), (2, 1)).reshape(V.shape), rtol=1e-5, atol=1e-6)


def test_dense_refuses_what_contradicts():
    """Bias against no_bias, num_hidden against the weight, widths, unknown keywords."""
    x, w, b = nd.ones((2, 3)), nd.ones((4, 3)), nd.ones(4)
    for arguments, options, text in (
        ((x, w), {}, "bias is missing"),
        ((x, w, b), {"no_bias": True}, "no_bias"),
        ((x, w, b), {"num_hidden": 5}, r"\(4, 3\).*num_hidden=5"),
        ((nd.ones((2, 2)), w, b), {}, r"\(2, 2\) does not fit a weight of shape \(4, 3\)"),
        ((x, w, nd.ones(3)), {}, r"bias of shape \(3,\)"),
    ):
        with pytest.raises(MXNetError, match=text):
            nd.FullyConnected(*arguments, **options)
    with pytest.raises(TypeError, match="units"):
        nd.FullyConnected(x, w, b, units=4)
    with pytest.raises(TypeError, match="takes an NDArray, not ndarray"):
        nd.FullyConnected(np.ones((2, 3)), w, b)


# ------------------------------------------------------------------------------------------------- activations


def test_activations():
    """The five by name, gradients of relu at 0 and of NaN included."""
    x = np.array([-3.0, -0.5, 0.0, 0.5, 30.0])
    for name, function in (
        ("relu", lambda x: np.maximum(x, 0)),
        ("sigmoid", special.expit),
        ("tanh", np.tanh),
        ("softrelu", lambda x: np.logaddexp(x, 0)),
        ("softsign", lambda x: x / (1 + abs(x))),
    ):
        y = nd.Activation(nd.array(x), act_type=name)
        np.testing.assert_allclose(y.asnumpy(), function(x), rtol=1e-6, err_msg=name)
    assert _gradient(lambda x: nd.Activation(x, "relu"), _variable(x)).tolist() == [0, 0, 0, 1, 1]
    assert np.isnan(nd.Activation(nd.array([np.nan]), "relu").asnumpy()).all()
    with pytest.raises(MXNetError, match=r"act_type must be one of relu, .*not 'foo'"):
        nd.Activation(nd.array(x), "foo")


def test_rectifiers():
    """Values from MXNet, and the derivative that it takes at 0."""
    x = [[-1.0, -2.0, 0.0, 3.0]]
    for options, values, slopes in (
        ({}, [-0.25, -0.5, 0, 3], [0.25, 0.25, 0.25, 1]),
        ({"act_type": "elu"}, [-0.15803012, -0.21616618, 0, 3], [0.25 / np.e, 0.25 / np.e**2, 0.25, 1]),
        (
            {"act_type": "elu", "slope": 1.0},
            [np.exp(-1) - 1, np.exp(-2) - 1, 0, 3],
            [1 / np.e, 1 / np.e**2, 1, 1],
        ),
        (
            {"act_type": "selu"},
            [-1.1113307, -1.5201665, 0, 3.152103],
            [1.7580993 / np.e, 1.7580993 / np.e**2, 1.7580993, 1.0507010],
        ),
        (
            {"act_type": "gelu"},
            [-0.15865527, -0.0455001, 0, 2.99595],
            special.ndtr(x[0]) + np.array(x[0]) * np.exp(-(np.array(x[0]) ** 2) / 2) / np.sqrt(2 * np.pi),
        ),
        ({"act_type": "rrelu"}, [-0.2295, -0.459, 0, 3], [0.2295, 0.2295, 0.2295, 1]),
    ):
        v = _variable(x)
        y = nd.LeakyReLU(v, **options)
        np.testing.assert_allclose(y.asnumpy()[0], values, rtol=1e-5, err_msg=str(options))
        with autograd.record(train_mode=False):
            y = nd.LeakyReLU(v, **options)
        y.backward()
        np.testing.assert_allclose(v.grad.asnumpy()[0], slopes, rtol=2e-6, err_msg=str(options))


def test_large_arguments_stay_finite():
    """The branch that is not taken adds nothing, neither infinity nor NaN."""
    x = [-1e4, 1e4]
    for name, values, slopes in (("elu", [-0.25, 1e4], [0, 1]), ("gelu", [0, 1e4], [0, 1])):
        np.testing.assert_allclose(nd.LeakyReLU(nd.array(x), act_type=name).asnumpy(), values, rtol=1e-6)
        assert _gradient(lambda v, name=name: nd.LeakyReLU(v, act_type=name), _variable(x)).tolist() == slopes


def test_prelu_has_one_slope_or_one_a_channel():
    """Channels are on axis 1; the gradient of gamma sums x over what is not positive."""
    for gamma in ([0.1], [0.1, 0.2, 0.3]):
        x, g = _variable(V), _variable(gamma)
        with autograd.record():
            y = nd.LeakyReLU(x, g, act_type="prelu")
        y.backward()
        full = np.broadcast_to(np.reshape(gamma, (-1, 1)), V.shape)
        np.testing.assert_allclose(y.asnumpy(), np.where(V > 0, V, full * V), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(x.grad.asnumpy(), np.where(V > 0, 1, full), rtol=1e-6)
        each = np.where(V > 0, 0, V).sum(axis=(0, 2))
        np.testing.assert_allclose(g.grad.asnumpy(), each if len(gamma) == 3 else [each.sum()], rtol=1e-6, atol=1e-6)
    y = nd.LeakyReLU(nd.array([-1.0, 2, 3]), nd.array([0.1, 0.2, 0.3]), act_type="prelu")
    np.testing.assert_allclose(y.asnumpy(), [-0.1, 2, 3], rtol=1e-6)
    for arguments, options in (
        ((nd.array(V), nd.ones(2)), {"act_type": "prelu"}),
        ((nd.array(V),), {"act_type": "prelu"}),
        ((nd.array(V), nd.ones(1)), {}),
    ):
        with pytest.raises(MXNetError, match="LeakyReLU: gamma"):
            nd.LeakyReLU(*arguments, **options)


def test_rrelu_draws_in_training():
    """Slopes between the bounds, in the value and in the gradient alike."""
    x = _variable(-np.ones(1000))
    with autograd.record():
        y = nd.LeakyReLU(x, act_type="rrelu", lower_bound=0.2, upper_bound=0.4)
    y.backward()
    slopes = -y.asnumpy()
    assert 0.2 <= slopes.min() < 0.21
    assert 0.39 < slopes.max() <= 0.4
    np.testing.assert_array_equal(x.grad.asnumpy(), slopes)


# ----------------------------------------------------------------------------------------------------- softmax


def test_softmax_and_kin():
    """Axis, temperature, dtype; no overflow."""
    x = nd.array(V)
    np.testing.assert_allclose(nd.softmax(x, axis=1).asnumpy(), special.softmax(V, axis=1), rtol=1e-6)
    np.testing.assert_allclose(x.softmax(temperature=0.5).asnumpy(), special.softmax(V * 2, axis=-1), rtol=1e-6)
    np.testing.assert_allclose(x.log_softmax(axis=0).asnumpy(), special.log_softmax(V, axis=0), rtol=1e-5)
    np.testing.assert_allclose(nd.softmin(x, axis=1).asnumpy(), special.softmax(-V, axis=1), rtol=1e-6)
    np.testing.assert_allclose(nd.softmax(nd.array([1e4, 1e4, -1e4])).asnumpy(), [0.5, 0.5, 0])
    half = nd.array(V, dtype="float16")
    assert nd.softmax(half).dtype == np.float16
    wide = nd.softmax(half, dtype="float32")
    assert wide.dtype == np.float32
    np.testing.assert_allclose(wide.asnumpy(), special.softmax(half.asnumpy().astype(float), axis=-1), rtol=1e-6)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_softmax_refuses(name):
    """Ints, an axis out of range, a temperature of 0."""
    function = getattr(nd, name)
    with pytest.raises(MXNetError, match=f"{name}: takes floating-point data, not int32"):
        function(nd.array([1, 2], dtype="int32"))
    with pytest.raises(MXNetError, match="axis 5"):
        function(nd.ones((2, 3)), axis=5)
    with pytest.raises(MXNetError, match="positive, not 0"):
        function(nd.ones((2, 3)), temperature=0)


def test_softmax_activation():
    """Over all axes but the first, or along the channels."""
    whole = nd.SoftmaxActivation(nd.array(V)).asnumpy()
    np.testing.assert_allclose(whole, special.softmax(V.reshape(2, 6), axis=1).reshape(V.shape), rtol=1e-6)
    channels = nd.SoftmaxActivation(nd.array(V), mode="channel").asnumpy()
    np.testing.assert_allclose(channels, special.softmax(V, axis=1), rtol=1e-6)


def test_softmax_cross_entropy():
    """One sum of shape (1,), with p - onehot as gradient; a label that is no class is refused."""
    x = _variable([[1.0, 2.0], [3.0, 5.0]])
    with autograd.record():
        loss = nd.softmax_cross_entropy(x, nd.array([0, 1]))
    loss.backward()
    assert loss.shape == (1,)
    np.testing.assert_allclose(loss.asnumpy(), [1.4401897], rtol=1e-6)
    np.testing.assert_allclose(x.grad.asnumpy(), special.softmax(x.asnumpy(), axis=1) - np.eye(2), rtol=1e-5)
    with pytest.raises(MXNetError):
        nd.softmax_cross_entropy(x, nd.array([0, 2]))


# ----------------------------------------------------------------------------------------------------- dropout


def test_dropout_follows_the_training_flag():
    """Not recording: case B03 of the behaviour suite."""
    x = _variable(np.ones(2000))
    one = np.ones(2000)
    assert np.array_equal(nd.Dropout(x, 0.4).asnumpy(), one)
    with autograd.record(train_mode=False):
        y = nd.Dropout(x, 0.4)
    y.backward(train_mode=False)
    assert np.array_equal(y.asnumpy(), one)
    assert np.array_equal(x.grad.asnumpy(), one)
    with autograd.train_mode():
        assert (nd.Dropout(x, 0.4).asnumpy() == 0).any()
    assert (nd.Dropout(x, 0.4, mode="always").asnumpy() == 0).any()
    with autograd.record(), autograd.predict_mode():
        y = nd.Dropout(x, 0.4)
    assert np.array_equal(y.asnumpy(), one)


def test_dropout_arguments():
    """p = 0 is a copy; axes share a draw; what cannot be is refused."""
    x = nd.ones((40, 30))
    y = nd.Dropout(x, 0.0, mode="always")
    y[:] = 5
    assert (x.asnumpy() == 1).all()
    rows = nd.Dropout(x, 0.5, mode="always", axes=(-1,)).asnumpy()
    assert (rows == rows[:, :1]).all()
    assert len(np.unique(rows)) == 2
    for options, text in (({"p": 1.5}, "1.5"), ({"mode": "foo"}, "always, training"), ({"axes": (7,)}, "axis 7")):
        with pytest.raises(MXNetError, match=text):
            nd.Dropout(x, **options)


# ----------------------------------------------------------------------------------------------- normalization


def test_batch_norm_outside_training():
    """Running statistics; fix_gamma is the default, the deviation has eps = 1e-3. Values from MXNet."""
    x, gamma, zero, one = nd.array(V), nd.array([1.0, 2, 3]), nd.zeros(3), nd.ones(3)
    y, mean, inverse = nd.BatchNorm(x, gamma, zero, zero, one, output_mean_var=True)
    np.testing.assert_allclose(y.asnumpy()[0, 0], [-0.9995004, -0.6663336], rtol=1e-6)
    np.testing.assert_allclose(y.asnumpy()[1, 2], [2.3321676, 2.6653345], rtol=1e-6)
    assert mean.asnumpy().tolist() == [0, 0, 0]
    np.testing.assert_allclose(inverse.asnumpy(), [0.9995004] * 3, rtol=1e-6)
    y = nd.BatchNorm(x, gamma, zero, one, one, fix_gamma=False)
    np.testing.assert_allclose(y.asnumpy()[0, 1], [-2.6653345, -1.9990008], rtol=1e-6)
    np.testing.assert_allclose(y.asnumpy()[1, 2], [3.9980016, 4.9975023], rtol=1e-6)


def test_batch_norm_in_training():
    """The batch's statistics, which move the running ones, unless use_global_stats; values from MXNet."""
    x, gamma, zero = nd.array(V), nd.array([1.0, 2, 3]), nd.zeros(3)
    running = [nd.zeros(3), nd.ones(3)]
    with autograd.record():
        y, mean, inverse = nd.BatchNorm(x, gamma, zero, *running, output_mean_var=True, fix_gamma=False)
    np.testing.assert_allclose(
        y.asnumpy()[0], [[-1.1502334, -0.8215953], [-2.3004668, -1.6431905], [-3.4507005, -2.464786]], rtol=1e-5
    )
    np.testing.assert_allclose(mean.asnumpy(), [0.16666666, 0.8333333, 1.5], rtol=1e-6)
    np.testing.assert_allclose(inverse.asnumpy(), [0.98591435] * 3, rtol=1e-5)
    np.testing.assert_allclose(running[0].asnumpy(), 0.1 * V.mean(axis=(0, 2)), rtol=1e-5)
    np.testing.assert_allclose(running[1].asnumpy(), 0.9 + 0.1 * V.var(axis=(0, 2)), rtol=1e-5)
    before = [each.asnumpy() for each in running]
    with autograd.train_mode():
        nd.BatchNorm(x, gamma, zero, *running, use_global_stats=True)
        with pytest.raises(MXNetError, match=r"\(2, 3, 2\)"):
            nd.BatchNorm(x, gamma, zero, *running, out=nd.zeros((1,)))
    assert all(np.array_equal(each.asnumpy(), old) for each, old in zip(running, before, strict=True))


def test_other_normalizations():
    """Values from MXNet."""
    x = nd.array(V)
    y = nd.InstanceNorm(x, nd.array([1.0, 2, 3]), nd.zeros(3)).asnumpy()
    np.testing.assert_allclose(
        y[0], [[-0.98247164, 0.982472], [-1.9649436, 1.9649436], [-2.947415, 2.9474158]], rtol=2e-6
    )
    y = nd.LayerNorm(x, nd.array([1.0, 2]), nd.zeros(2)).asnumpy()
    np.testing.assert_allclose(y[1], [[-0.9998204, 1.9996394]] * 3, rtol=5e-6)
    z = V.reshape(2, 6)
    grouped = nd.GroupNorm(nd.array(V), nd.array([1.0, 2, 3]), nd.array([0.0, 1, 2]), num_groups=1).asnumpy()
    z = ((z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + 1e-5)).reshape(V.shape)
    np.testing.assert_allclose(grouped, z * [[1], [2], [3]] + [[0], [1], [2]], rtol=1e-5, atol=1e-6)
    _, mean, deviation = nd.LayerNorm(x, nd.ones(2), nd.zeros(2), output_mean_var=True)
    np.testing.assert_allclose(mean.asnumpy(), V.mean(-1, keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(deviation.asnumpy(), np.sqrt(V.var(-1, keepdims=True) + 1e-5), rtol=1e-5)
    with pytest.raises(MXNetError, match="2 equal groups"):
        nd.GroupNorm(x, nd.ones(3), nd.zeros(3), num_groups=2)


@pytest.mark.parametrize(
    ("mode", "corner"),
    [("instance", [-0.6882472, 0.567105]), ("channel", [-0.90453404, 0.7427814]), ("spatial", [-0.8320503, 0.7525767])],
)
def test_l2_normalization(mode, corner):
    """First and last value from MXNet."""
    y = nd.L2Normalization(nd.array(V), mode=mode).asnumpy()
    np.testing.assert_allclose([y[0, 0, 0], y[1, 2, 1]], corner, rtol=1e-6)


# ------------------------------------------------------------------------------------------------- conventions


def test_out_is_filled_and_returned():
    """Of the right shape; `name` is accepted, other keywords are not."""
    x, out = nd.array(V), nd.zeros(V.shape)
    for function in (
        lambda **more: nd.Activation(x, "relu", **more),
        lambda **more: nd.LeakyReLU(x, **more),
        lambda **more: nd.softmax(x, **more),
        lambda **more: nd.Dropout(x, **more),
        lambda **more: nd.LayerNorm(x, nd.ones(2), nd.zeros(2), **more),
        lambda **more: nd.L2Normalization(x, **more),
    ):
        expected = function(name="n").asnumpy()
        assert function(out=out) is out
        np.testing.assert_array_equal(out.asnumpy(), expected)
        with pytest.raises(MXNetError, match="cannot be written"):
            function(out=nd.zeros((1,)))
        with pytest.raises(TypeError, match="foo"):
            function(foo=1)
