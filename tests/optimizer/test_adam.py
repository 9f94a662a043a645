"""Adam: the formula, in every precision, against NumPy and against MXNet 1.9.1."""

import numpy as np
import pytest

from numbagrad import nd, optimizer
from numbagrad.errors import MXNetError

START = np.array([0.5, -1.25, 2.0, 0.1])
EPS = {"float32": 2**-23, "float64": 2**-52}

# What MXNet 1.9.1 makes of START in six updates, by setting.
DEFAULT: dict = {}
ALL = {
    "learning_rate": 0.1,
    "beta1": 0.8,
    "beta2": 0.9,
    "epsilon": 1e-3,
    "wd": 0.05,
    "clip_gradient": 0.4,
    "rescale_grad": 0.5,
}
REAL = [
    (DEFAULT, [0.4940769462314831, -1.2480265661364265, 1.9960015892326786, 0.10295089348242978]),
    (ALL, [-0.08043819590018177, -1.0301608958742696, 1.595704260195908, 0.33708412576592756]),
]


def gradient(t):
    return np.array([0.3, -0.7, 1.9, -2.5]) * (1 - 0.4 * t) + 0.1 * t


def reference(
    steps,
    learning_rate=0.001,
    beta1=0.9,
    beta2=0.999,
    epsilon=1e-8,
    wd=0.0,
    clip_gradient=np.inf,
    rescale_grad=1.0,
    begin=0,
):
    w, m, v = START.copy(), np.zeros(4), np.zeros(4)
    for t in range(steps):
        g = np.clip(rescale_grad * gradient(t) + wd * w, -clip_gradient, clip_gradient)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        made = begin + t + 1
        w = w - learning_rate * np.sqrt(1 - beta2**made) / (1 - beta1**made) * m / (np.sqrt(v) + epsilon)
    return w, m, v


def run(steps, dtype, **keywords):
    updater = optimizer.get_updater(optimizer.create("adam", **keywords))
    w = nd.array(START, dtype=dtype)
    for t in range(steps):
        updater(0, nd.array(gradient(t), dtype=dtype), w)
    return w, updater


@pytest.mark.parametrize(("keywords", "real"), REAL)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_six_updates(keywords, real, dtype):
    w, updater = run(6, dtype, **keywords)
    assert w.dtype == np.dtype(dtype)
    # MXNet rounds rates to float32, also for float64 weights.
    np.testing.assert_allclose(w.asnumpy(), real, rtol=0, atol=2e-7 + 20 * EPS[dtype])
    for got, expected in zip((w, *updater.states[0]), reference(6, **keywords), strict=True):
        assert got.dtype == np.dtype(dtype)
        np.testing.assert_allclose(got.asnumpy(), expected, rtol=0, atol=20 * EPS[dtype])


@pytest.mark.parametrize("keywords", [DEFAULT, ALL])
def test_float16(keywords):
    expected = reference(6, **keywords)[0]
    w, _ = run(6, "float16", **keywords)
    assert w.dtype == np.float16
    np.testing.assert_allclose(w.asnumpy(), expected, rtol=0, atol=8e-3)
    w, updater = run(6, "float16", multi_precision=True, **keywords)
    master, (mean, variance) = updater.states[0]
    assert (w.dtype, master.dtype, mean.dtype, variance.dtype) == (np.float16, np.float32, np.float32, np.float32)
    np.testing.assert_allclose(master.asnumpy(), expected, rtol=0, atol=1e-3)
    assert (w.asnumpy() == master.asnumpy().astype("float16")).all()


def test_each_parameter_has_its_own_step_count():
    updater = optimizer.get_updater(optimizer.Adam(learning_rate=0.1))
    early, late = nd.array(START, dtype="float64"), nd.array(START, dtype="float64")
    for t in range(4):
        updater(0, nd.array(gradient(t), dtype="float64"), early)
        if t >= 2:
            updater(1, nd.array(gradient(t - 2), dtype="float64"), late)
    np.testing.assert_allclose(early.asnumpy(), reference(4, 0.1)[0], rtol=0, atol=1e-14)
    np.testing.assert_allclose(late.asnumpy(), reference(2, 0.1)[0], rtol=0, atol=1e-14)
    assert updater.optimizer.num_update == 4


def test_counting_from_begin_num_update():
    w, updater = run(3, "float64", begin_num_update=10)
    np.testing.assert_allclose(w.asnumpy(), reference(3, begin=10)[0], rtol=0, atol=1e-15)
    assert updater.optimizer.num_update == 13


def test_states_that_do_not_fit():
    rule = optimizer.Adam()
    w = nd.ones(3)
    for state in (None, nd.zeros(3), (nd.zeros(3), nd.zeros(2))):
        with pytest.raises(MXNetError, match=r"Adam.*parameter 0"):
            rule.update(0, w, nd.ones(3), state)
    assert w.tolist() == [1, 1, 1]
    assert rule.num_update == 0
