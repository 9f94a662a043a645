"""SGD: the formula, in every precision, against NumPy and against MXNet 1.9.1."""

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, nd, optimizer
from numbagrad.errors import InPlaceError, MXNetError

START = np.array([0.5, -1.25, 2.0, 0.1])
EPS = {"float16": 2**-10, "float32": 2**-23, "float64": 2**-52}

# What MXNet 1.9.1 makes of START in six updates, by setting.
PLAIN = {"learning_rate": 0.1}
DECAYED = {"learning_rate": 0.1, "wd": 0.05, "clip_gradient": 0.4, "rescale_grad": 0.5}
MOMENTUM = {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01}
ALL = {"momentum": 0.9, **DECAYED}
REAL = [
    (PLAIN, [0.3499999977648258, -1.4000000022351744, 1.8499999977648258, -0.0500000022351742]),
    (DECAYED, [0.4112041554892905, -1.2676853138867823, 1.9147370145455964, 0.07062830366466545]),
    (MOMENTUM, [0.021315273745106916, -1.1866713620211082, 0.6771950916615527, 1.058986998901816]),
    (ALL, [0.22461476085758963, -1.1024130332924356, 1.504979748473093, 0.2608408617927466]),
]


def gradient(t):
    return np.array([0.3, -0.7, 1.9, -2.5]) * (1 - 0.4 * t) + 0.1 * t


def reference(steps, learning_rate, momentum=0.0, wd=0.0, clip_gradient=np.inf, rescale_grad=1.0):
    w, m = START.copy(), np.zeros(4)
    for t in range(steps):
        g = np.clip(rescale_grad * gradient(t), -clip_gradient, clip_gradient) + wd * w
        m = momentum * m - learning_rate * g
        w = w + m
    return w, m


def run(steps, dtype, **keywords):
    updater = optimizer.get_updater(optimizer.create("sgd", **keywords))
    w = nd.array(START, dtype=dtype)
    for t in range(steps):
        updater(0, nd.array(gradient(t), dtype=dtype), w)
    return w, updater


@pytest.mark.parametrize(("keywords", "real"), REAL)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_six_updates(keywords, real, dtype):
    w, updater = run(6, dtype, **keywords)
    assert w.dtype == np.dtype(dtype)
    expected, momentum = reference(6, **keywords)
    np.testing.assert_allclose(w.asnumpy(), expected, rtol=0, atol=10 * EPS[dtype])
    np.testing.assert_allclose(w.asnumpy(), real, rtol=0, atol=1e-7 + 10 * EPS[dtype])  # its rates are float32
    if keywords.get("momentum"):
        assert updater.states[0].dtype == np.dtype(dtype)
        np.testing.assert_allclose(updater.states[0].asnumpy(), momentum, rtol=0, atol=10 * EPS[dtype])
    else:
        assert updater.states[0] is None
    assert updater.optimizer.num_update == 6


@pytest.mark.parametrize("keywords", [PLAIN, ALL])
def test_float16(keywords):
    expected, _ = reference(6, **keywords)
    w, updater = run(6, "float16", **keywords)
    assert w.dtype == np.float16
    np.testing.assert_allclose(w.asnumpy(), expected, rtol=0, atol=3e-3)
    w, updater = run(6, "float16", multi_precision=True, **keywords)
    assert w.dtype == np.float16
    momentum, master = updater.states[0]  # as MXNet has them
    assert master.dtype == np.float32
    assert momentum is None or momentum.dtype == np.float32
    # The gradients have been rounded to float16, the sum of updates has not.
    np.testing.assert_allclose(master.asnumpy(), expected, rtol=0, atol=5e-4)
    assert (w.asnumpy() == master.asnumpy().astype("float16")).all()


def test_updates_below_the_resolution_of_float16_need_the_master_copy():
    for multi_precision, expected in ((False, 1.0), (True, 1 - 16 / 8192)):
        updater = optimizer.get_updater(optimizer.SGD(learning_rate=1.0, multi_precision=multi_precision))
        w = nd.ones(1, dtype="float16")
        for _ in range(16):
            updater(0, nd.array([1 / 8192], dtype="float16"), w)
        assert w.asscalar() == expected


def test_momentum_and_clipping_that_are_off():
    for momentum in (0, -0.5):
        w, updater = run(3, "float64", learning_rate=0.1, momentum=momentum)
        assert updater.states[0] is None
        np.testing.assert_allclose(w.asnumpy(), reference(3, 0.1)[0], rtol=0, atol=1e-15)
    w, _ = run(3, "float64", learning_rate=0.1, clip_gradient=0)
    np.testing.assert_allclose(w.asnumpy(), reference(3, 0.1)[0], rtol=0, atol=1e-15)


def test_a_momentum_is_the_signed_step():
    _, updater = run(1, "float64", learning_rate=0.1, momentum=0.9)
    np.testing.assert_allclose(updater.states[0].asnumpy(), -0.1 * gradient(0), rtol=1e-15)


def test_lists_update_one_by_one():
    rule = optimizer.SGD(learning_rate=0.5)
    weights = [nd.array([1.0]), nd.array([2.0, 3.0])]
    rule.update([0, 1], weights, [nd.array([2.0]), nd.array([4.0, 6.0])], [None, None])
    assert [w.tolist() for w in weights] == [[0], [0, 0]]
    updater = optimizer.get_updater(rule)
    updater([0, 1], [nd.array([2.0]), nd.array([4.0, 6.0])], weights)
    assert [w.tolist() for w in weights] == [[-1], [-2, -3]]
    assert rule.num_update == 2


def test_multipliers_by_name_and_index():
    names = {0: "a_weight", 1: "a_bias", 2: "a_gamma", 3: "a_beta"}
    rule = optimizer.SGD(learning_rate=1.0, wd=0.5, param_idx2name=names)
    assert rule.wd_mult == {"a_bias": 0, "a_beta": 0}
    updater = optimizer.get_updater(rule)
    weights = [nd.array([2.0]) for _ in names]
    for i, w in enumerate(weights):
        updater(i, nd.zeros(1), w)
    assert [w.asscalar() for w in weights] == [1, 2, 1, 2]
    rule.set_lr_mult({"a_weight": 0.5, 1: 3.0})
    rule.set_wd_mult({"a_bias": 0.1, 2: 0})
    for i, w in enumerate(weights):
        updater(i, nd.ones(1), w)
    expected = [1 - 0.5 * (1 + 0.5), 2 - 3 * (1 + 0.05 * 2), 1 - 1, 2 - 1]
    np.testing.assert_allclose([w.asscalar() for w in weights], expected, rtol=1e-6)


def test_registry_and_keywords():
    rule = optimizer.create("SGD")
    assert type(rule) is optimizer.SGD
    assert (rule.lr, rule.momentum, rule.wd, rule.rescale_grad, rule.clip_gradient) == (0.01, 0, 0, 1, None)
    assert mx.optimizer.create("adam").learning_rate == 0.001
    for name in ("sgdd", None):
        with pytest.raises(ValueError, match=r"no optimizer .*adam.*sgd"):
            optimizer.create(name)
    with pytest.raises(TypeError, match="lr"):
        optimizer.create("sgd", lr=0.1)


def test_set_learning_rate():
    rule = optimizer.SGD(learning_rate=0.5)
    rule.set_learning_rate(0.25)
    assert rule.learning_rate == rule.lr == 0.25
    scheduled = optimizer.SGD(lr_scheduler=mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=1.0))
    with pytest.raises(UserWarning, match="scheduler"):
        scheduled.set_learning_rate(0.1)
    assert scheduled.learning_rate == 1.0


@pytest.mark.parametrize(
    ("weight", "grad", "state"),
    [
        (nd.ones((2, 2)), nd.ones((4,)), None),
        (nd.ones((2, 2)), nd.ones((2, 2), dtype="float64"), None),
        (nd.ones((2, 2)), nd.ones((2, 2)), nd.ones((2, 1))),
        (nd.ones((2, 2)), nd.ones((2, 2)), (nd.ones((2, 2)), nd.ones((2, 2)))),
        (nd.ones((2, 2), dtype="int32"), nd.ones((2, 2), dtype="int32"), None),
    ],
)
def test_arrays_that_do_not_belong_together(weight, grad, state):
    rule = optimizer.SGD(learning_rate=0.5)
    with pytest.raises(MXNetError, match=r"SGD.*parameter 3"):
        rule.update(3, weight, grad, state)
    assert (weight.asnumpy() == 1).all()
    assert rule.num_update == 0


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_no_update_of_a_marked_weight_while_recording(dtype):
    w = nd.ones(2, dtype=dtype)
    w.attach_grad()
    updater = optimizer.get_updater(optimizer.SGD(learning_rate=0.5, multi_precision=True))
    with autograd.record(), pytest.raises(InPlaceError):
        updater(0, nd.ones(2, dtype=dtype), w)
    assert w.tolist() == [1, 1]
    assert updater.optimizer.num_update == 0
    updater(0, nd.ones(2, dtype=dtype), w)
    assert w.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("dump_optimizer", [False, True])
def test_states_of_an_updater(dump_optimizer):
    w, updater = run(3, "float64", **ALL)
    v = w.copy()
    other = optimizer.get_updater(optimizer.create("sgd", **({} if dump_optimizer else ALL)))
    other.set_states(updater.get_states(dump_optimizer))
    assert other.optimizer.num_update == (3 if dump_optimizer else 0)
    for t in (3, 4):
        updater(0, nd.array(gradient(t), dtype="float64"), w)
        other(0, nd.array(gradient(t), dtype="float64"), v)
    assert (w.asnumpy() == v.asnumpy()).all()
    assert (updater.states[0].asnumpy() == other.states[0].asnumpy()).all()
