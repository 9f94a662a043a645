import numpy as np
import pytest

from numbagrad.errors import MXNetError
from numbagrad.kernels import loss as losses
from numbagrad.kernels.softmax import log_softmax
from numbagrad.launch import launch

F, D = np.float32, np.float64


def ce(x, label, weight=1.0):
    n, classes = x.shape
    loss, p = np.full(n, np.nan, x.dtype), np.full(x.size, np.nan, x.dtype)
    launch(losses.softmax_ce, x.ravel(), label, loss, p, n, classes, weight)
    return loss, p


@pytest.mark.parametrize(("dtype", "label_dtype"), [(F, np.int64), (F, F), (F, np.uint8), (D, np.int64)])
def test_softmax_ce_equals_log_softmax_and_pick(dtype, label_dtype):
    rng = np.random.default_rng(0)
    eps = np.finfo(dtype).eps
    for n, classes in ((0, 3), (1, 1), (5, 2), (7, 10), (3, 2500)):
        x = (4 * rng.standard_normal((n, classes))).astype(dtype)
        label = rng.integers(0, min(classes, 200), n).astype(label_dtype)
        loss, slopes = ce(x, label, 0.5)
        log = np.empty(x.size, dtype)
        launch(log_softmax, x.ravel(), log, n, classes, 1, 1.0)
        picked = log.reshape(n, classes)[np.arange(n), label.astype(int)]
        np.testing.assert_allclose(loss, -0.5 * picked, rtol=4 * eps, atol=eps)
        g, dx = rng.standard_normal(n).astype(dtype), np.full(x.size, np.nan, dtype)
        launch(losses.scale_rows, g, slopes, dx, n, classes)
        onehot = np.eye(classes)[label.astype(int)]
        expected = 0.5 * g[:, None] * (np.exp(log.astype(D).reshape(n, classes)) - onehot)
        np.testing.assert_allclose(dx.reshape(n, classes), expected, rtol=0, atol=20 * eps)


def test_softmax_ce_is_stable():
    x = np.array([[1000.0, -1000.0], [-1000.0, 1000.0], [-1000.0, -1000.0]], F)
    loss, slopes = ce(x, np.zeros(3, np.int64))
    np.testing.assert_allclose(loss, [0, 2000, np.log(2)], rtol=2e-7)
    np.testing.assert_array_equal(slopes, [0, 0, -1, 1, -0.5, 0.5])


@pytest.mark.parametrize(
    ("label", "message"),
    [([0, 3], "out of range"), ([0, -1], "out of range"), ([0.0, 0.5], "whole number"), ([0.0, np.nan], "NaN"),
     ([1.0, np.inf], "out of range"), ([0.0, 3.0], "out of range")],
)  # fmt: skip
def test_a_bad_label_raises_and_writes_nothing(label, message):
    loss, p = np.full(2, 7, F), np.full(6, 7, F)
    label = np.array(label).astype(F if isinstance(label[0], float) else np.int64)
    with pytest.raises(MXNetError, match=f"example 1 .*{message}"):
        launch(losses.softmax_ce, np.zeros(6, F), label, loss, p, 2, 3, 1.0)
    assert (loss == 7).all()
    assert (p == 7).all()


def test_dense_label_ce_with_finite_differences():
    rng = np.random.default_rng(1)
    n, classes = 3, 4
    x, z, g = rng.standard_normal(12), rng.random(12), rng.standard_normal(3)

    def run(x, z):
        loss, p = np.full(n, np.nan), np.full(12, np.nan)
        launch(losses.softmax_ce_dense, x, z, loss, p, n, classes, 1.5)
        return loss, p

    loss, p = run(x, z)
    rows = x.reshape(n, classes)
    log = rows - np.log(np.exp(rows).sum(1, keepdims=True))
    np.testing.assert_allclose(loss, -1.5 * (z.reshape(n, classes) * log).sum(1), rtol=1e-14)
    dx, dz = np.full(12, np.nan), np.full(12, np.nan)
    launch(losses.softmax_ce_dense_vjp, g, p, z, dx, n, classes, 1.5)
    launch(losses.softmax_ce_dense_label_vjp, g, x, dz, n, classes, 1.5)
    for gradient, at in ((dx, 0), (dz, 1)):
        for i in range(12):
            high, low = [x.copy(), z.copy()], [x.copy(), z.copy()]
            high[at][i] += 1e-6
            low[at][i] -= 1e-6
            slope = (g * (run(*high)[0] - run(*low)[0])).sum() / 2e-6
            assert gradient[i] == pytest.approx(slope, abs=1e-7)


def test_dense_label_ce_of_a_class_that_is_ruled_out():
    loss, p = np.empty(1, F), np.empty(2, F)
    launch(losses.softmax_ce_dense, np.array([0, -np.inf], F), np.array([1, 0], np.int64), loss, p, 1, 2, 1.0)
    assert loss[0] == 0
    assert (p == [1, 0]).all()


def bce(x, z):
    return np.maximum(x, 0) - x * z + np.log1p(np.exp(-abs(x)))


ELEMENTWISE = {
    "sigmoid_bce": (bce, lambda x, z: 1 / (1 + np.exp(-x)) - z),
    "l2": (lambda x, z: (z - x) ** 2 / 2, lambda x, z: x - z),
    "l1": (lambda x, z: abs(z - x), lambda x, z: np.sign(x - z)),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize(("dtype", "label_dtype"), [(F, F), (F, np.int32), (D, D)])
def test_mean_losses_and_their_vjps(name, dtype, label_dtype):
    value, slope = ELEMENTWISE[name]
    rng = np.random.default_rng(2)
    eps = np.finfo(dtype).eps
    for batch, inner in ((0, 1), (1, 1), (64, 1), (3, 5), (2, 3000)):
        x = (3 * rng.standard_normal((batch, inner))).astype(dtype)
        x.flat[:1] = 0
        z, g = rng.integers(0, 2, (batch, inner)).astype(label_dtype), rng.standard_normal(batch).astype(dtype)
        loss, dx = np.full(batch, np.nan, dtype), np.full(x.size, np.nan, dtype)
        kernels = getattr(losses, name.upper())
        launch(kernels.forward, x.ravel(), z.ravel(), loss, batch, inner, 0.7)
        xd, zd = x.astype(D), z.astype(D)
        np.testing.assert_allclose(loss, 0.7 * value(xd, zd).mean(1), rtol=10 * eps)
        launch(kernels.vjp, g, x.ravel(), z.ravel(), dx, batch, inner, 0.7)
        expected = 0.7 * g[:, None].astype(D) / inner * slope(xd, zd)
        np.testing.assert_allclose(dx.reshape(x.shape), expected, rtol=10 * eps, atol=eps)
        again, by_itself, ones = np.empty_like(loss), np.empty_like(dx), np.ones(batch, dtype)
        launch(kernels.both, x.ravel(), z.ravel(), again, dx, batch, inner, 0.7)
        launch(kernels.vjp, ones, x.ravel(), z.ravel(), by_itself, batch, inner, 0.7)
        assert (again == loss).all()
        assert (dx == by_itself).all()
        if label_dtype == dtype:
            launch(kernels.label_vjp, g, x.ravel(), z.ravel(), dx, batch, inner, 0.7)
            expected = -0.7 * g[:, None].astype(D) / inner * (xd if name == "sigmoid_bce" else slope(xd, zd))
            np.testing.assert_allclose(dx.reshape(x.shape), expected, rtol=10 * eps, atol=eps)


def test_gradient_of_the_label():
    x, z, g = np.array([1.0, 2.0, 5.0]), np.array([3.0, 2.0, 1.0]), np.ones(3)
    dz = np.empty(3)
    launch(losses.L2.label_vjp, g, x, z, dz, 3, 1, 1.0)
    assert (dz == [2, 0, -4]).all()
    launch(losses.L1.label_vjp, g, x, z, dz, 3, 1, 1.0)
    assert (dz == [1, 0, -1]).all()


def test_bce_at_the_ends():
    x = np.array([1000, -1000, 1000, -1000, 20, 0, np.nan, 1], F)
    z = np.array([1, 0, 0, 1, 1, 0.5, 1, np.nan], F)
    loss = np.empty(8, F)
    launch(losses.SIGMOID_BCE.forward, x, z, loss, 8, 1, 1.0)
    expected = [0, 0, 1000, 1000, np.log1p(np.exp(-20)), np.log(2), np.nan, np.nan]
    np.testing.assert_allclose(loss, expected, rtol=3e-7)
