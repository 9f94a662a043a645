import itertools

import numpy as np
import pytest

from numbagrad.errors import MXNetError
from numbagrad.kernels.dense import (
    ACTIVATIONS,
    DENSE,
    DENSE_VJP,
    WANT_B,
    WANT_X,
    dense,
    dense_parts,
    dense_vjp,
    dense_vjp_parts,
)
from numbagrad.launch import launch
from numbagrad.native.compiler import PYTHON_MODE

F, D = np.float32, np.float64


def act(z, code):
    """The activations in float64, and their derivatives."""
    s = 1 / (1 + np.exp(-z))
    return {
        0: (z, np.ones_like(z)),
        1: (np.maximum(z, 0), (z > 0) * 1.0),
        2: (s, s * (1 - s)),
        3: (np.tanh(z), 1 - np.tanh(z) ** 2),
        4: (np.logaddexp(z, 0), s),
        5: (z / (1 + abs(z)), 1 / (1 + abs(z)) ** 2),
    }[code]


def forward(x, w, b, code, has_bias=1):
    y = np.full(x.shape[0] * w.shape[0], np.nan, x.dtype)
    launch(dense, x.ravel(), w.ravel(), b, y, x.shape[0], *w.shape, has_bias, code)
    return y.reshape(x.shape[0], w.shape[0])


def draw(rng, dtype, n, units, in_units):
    return (rng.standard_normal(shape).astype(dtype) for shape in ((n, in_units), (units, in_units), units))


@pytest.mark.parametrize("dtype", [F, D])
@pytest.mark.parametrize("code", ACTIVATIONS.values())
def test_forward_and_vjp_against_float64_numpy(dtype, code):
    rng = np.random.default_rng(code)
    for n, units, in_units in ((1, 1, 1), (64, 1, 10), (32, 64, 4), (9, 3, 30), (5, 17, 0), (0, 3, 2), (3, 0, 2)):
        x, w, b = draw(rng, dtype, n, units, in_units)
        z = x.astype(D) @ w.astype(D).T
        tolerance = {"rtol": 0, "atol": 60 * np.finfo(dtype).eps}
        for has_bias in (0, 1):
            y = forward(x, w, b, code, has_bias)
            expected, slope = act(z + has_bias * b.astype(D), code)
            np.testing.assert_allclose(y, expected, **tolerance)
        g = rng.standard_normal((n, units)).astype(dtype)
        gz = g * slope
        scratch, dx = np.full(n * units, np.nan, dtype), np.full(x.size, np.nan, dtype)
        dw, db = rng.standard_normal(w.size).astype(dtype), rng.standard_normal(units).astype(dtype)
        old_w, old_b = dw.copy(), db.copy()
        arrays = g.ravel(), x.ravel(), w.ravel(), y.ravel(), scratch, dx, dw, db
        tolerance["atol"] *= 4
        launch(dense_vjp, *arrays, n, units, in_units, code, 31)
        np.testing.assert_allclose(dx, (gz @ w.astype(D)).ravel(), **tolerance)
        np.testing.assert_allclose(dw, old_w + (gz.T @ x.astype(D)).ravel(), **tolerance)
        np.testing.assert_allclose(db, old_b + gz.sum(0), **tolerance)
        dx[:], dw[:], db[:] = np.nan, np.nan, np.nan
        launch(dense_vjp, *arrays, n, units, in_units, code, 7)
        np.testing.assert_allclose(dx, (gz @ w.astype(D)).ravel(), **tolerance)
        np.testing.assert_allclose(dw, (gz.T @ x.astype(D)).ravel(), **tolerance)
        np.testing.assert_allclose(db, gz.sum(0), **tolerance)


@pytest.mark.parametrize("code", ACTIVATIONS.values())
def test_vjp_against_finite_differences(code):
    rng = np.random.default_rng(10 + code)
    n, units, in_units = 3, 4, 5
    x, w, b = draw(rng, D, n, units, in_units)
    g = rng.standard_normal((n, units))
    y = forward(x, w, b, code)
    dx, dw, db = np.empty(x.size), np.empty(w.size), np.empty(units)
    launch(
        dense_vjp, g.ravel(), x.ravel(), w.ravel(), y.ravel(), np.empty(y.size), dx, dw, db, n, units, in_units, code,
        7,
    )  # fmt: skip
    for array, gradient in ((x, dx), (w, dw), (b, db)):
        flat = array.reshape(-1)
        for i in range(flat.size):
            kept, step = flat[i], 1e-6
            flat[i] = kept + step
            high = (g * forward(x, w, b, code)).sum()
            flat[i] = kept - step
            low = (g * forward(x, w, b, code)).sum()
            flat[i] = kept
            assert gradient[i] == pytest.approx((high - low) / (2 * step), abs=1e-7)


@pytest.mark.parametrize("shape", [(4, 1, 10), (64, 1, 10), (32, 64, 4), (40, 30, 20), (33, 2, 64)])
def test_composite_and_parts_have_the_same_bits(shape):
    rng = np.random.default_rng(3)
    n, units, in_units = shape
    x, w, b = draw(rng, F, n, units, in_units)
    g = rng.standard_normal(n * units).astype(F)
    for has_bias, code in itertools.product((0, 1), ACTIVATIONS.values()):
        sizes = n, units, in_units, has_bias, code
        y, other = np.empty(n * units, F), np.empty(n * units, F)
        launch(dense, x.ravel(), w.ravel(), b, y, *sizes)
        for part, arguments in dense_parts(x.ravel(), w.ravel(), b, other, *sizes):
            launch(part, *arguments)
        assert (y == other).all()
        launch(DENSE[code], x.ravel(), w.ravel(), b, other, *sizes)
        assert (y == other).all()
    for code in ACTIVATIONS.values():
        for what in range(32):
            outputs = [rng.standard_normal(size).astype(F) for size in (n * units, x.size, w.size, units)]
            others = [array.copy() for array in outputs]
            again = [array.copy() for array in outputs]
            launch(dense_vjp, g, x.ravel(), w.ravel(), y, *outputs, n, units, in_units, code, what)
            launch(DENSE_VJP[code], g, x.ravel(), w.ravel(), y, *again, n, units, in_units, code, what)
            parts = dense_vjp_parts(g, x.ravel(), w.ravel(), y, *others, n, units, in_units, code, what)
            for part, arguments in parts:
                launch(part, *arguments)
            for mine, theirs, quick in zip(outputs[1:], others[1:], again[1:], strict=True):
                assert (mine == theirs).all()
                assert (mine == quick).all()


def test_unwanted_gradients_are_not_written():
    dummy = np.full(1, 7, F)
    x, w, _b = draw(np.random.default_rng(0), F, 4, 3, 2)
    g = np.ones(12, F)
    db = np.empty(3, F)
    launch(dense_vjp, g, x.ravel(), w.ravel(), dummy, dummy, dummy, dummy, db, 4, 3, 2, 0, WANT_B)
    assert (db == 4).all()
    assert dummy[0] == 7


def test_nan_passes_through_relu_and_a_unit_that_is_off_passes_nothing():
    x = np.array([[np.nan], [-1.0], [0.0], [2.0], [-np.inf], [np.inf]], F)
    w, b = np.ones((1, 1), F), np.zeros(1, F)
    y = forward(x, w, b, 1)
    np.testing.assert_array_equal(y.ravel(), [np.nan, 0, 0, 2, 0, np.inf])
    g = np.array([1, np.nan, np.inf, 3, 4, 5], F)
    dx, dummy = np.empty(6, F), np.empty(1, F)
    launch(dense_vjp, g, x.ravel(), w.ravel(), y.ravel(), np.empty(6, F), dx, dummy, dummy, 6, 1, 1, 1, WANT_X)
    np.testing.assert_array_equal(dx, [np.nan, 0, 0, 3, 0, 5])


def test_column_sums_stay_exact_over_many_rows():
    n = 3_001 if PYTHON_MODE else 300_001
    g = np.full(n * 2, 0.1, F)
    db, dummy = np.empty(2, F), np.empty(1, F)
    launch(dense_vjp, g, dummy, dummy, dummy, dummy, dummy, dummy, db, n, 2, 1, 0, WANT_B)
    np.testing.assert_allclose(db, n * D(F(0.1)), rtol=2e-7)


def test_sizes_beyond_int32_are_refused():
    a = np.ones(1, F)
    with pytest.raises(MXNetError, match="2147483647"):
        launch(dense, a, a, a, a.copy(), 2**31, 1, 1, 1, 0)
    with pytest.raises(MXNetError, match="2147483647"):
        launch(dense_vjp, a, a, a, a, a, a, a, a, 1, 2**31, 1, 0, 7)
