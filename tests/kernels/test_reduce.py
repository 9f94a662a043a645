"""Reductions against NumPy on shapes that reach every branch, and against exact arithmetic where NumPy rounds."""

import numpy as np
import pytest

from numbagrad.kernels import extreme, reduce
from numbagrad.launch import launch

SHAPES = [
    (1, 1, 1), (1, 7, 1), (5, 3, 1), (3, 300, 1), (2, 2500, 1),
    (1, 1, 4), (3, 7, 5), (2, 19, 70), (1, 9, 1500), (2, 1500, 3), (1, 1200, 1100), (1, 2600, 40), (2, 3, 2300),
]  # fmt: skip
EMPTY = [(3, 0, 1), (3, 0, 4), (0, 5, 1), (0, 5, 3), (2, 5, 0)]


def sample(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.4
    if dtype in ("int8", "uint8", "int32", "int64"):
        return rng.integers(0 if dtype == "uint8" else -50, 120, shape).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def run(kernel, x, dtype, *more):
    """`kernel` on `x` (outer, n, inner), over garbage; the result as (outer, inner)."""
    outer, n, inner = x.shape
    out = np.full(outer * inner, 77, dtype)
    launch(kernel, x.ravel(), out, outer, n, inner, *more)
    return out.reshape(outer, inner)


def close_sum(found, terms, precision):
    exact = terms.astype(np.longdouble).sum(1)
    bound = precision * np.abs(terms.astype(np.longdouble)).sum(1)
    assert found.shape == exact.shape
    assert (np.abs(found - exact) <= bound).all()


PRECISION = {"float32": 4e-7, "float64": 1e-15}


@pytest.mark.parametrize("shape", SHAPES + EMPTY, ids=str)
def test_sums_of_floats(shape):
    for dtype, precision in PRECISION.items():
        x = sample(shape, dtype)
        close_sum(run(reduce.sum_, x, dtype), x, precision)
    x = sample(shape, "float32")
    precision = PRECISION["float32"]
    close_sum(run(reduce.sum_squares, x, "float32"), x.astype(np.float64) ** 2, 2 * precision)
    close_sum(run(reduce.sum_abs, x, "float32"), np.abs(x), precision)
    holed = np.where(sample(shape, "bool", 1), x, np.nan).astype("float32")
    close_sum(run(reduce.nansum, holed, "float32"), np.nan_to_num(holed), precision)
    total = np.linspace(-3, 3, shape[0] * shape[2]).astype("float32")
    start = total.reshape(shape[0], 1, shape[2]).copy()
    launch(reduce.sum_into, x.ravel(), total, *shape)
    close_sum(total.reshape(shape[0], shape[2]), np.concatenate([start, x], 1), 2 * precision)
    if shape[1]:
        close_sum(run(reduce.mean, x, "float32") * shape[1], x, 2 * precision)
    else:
        assert np.isnan(run(reduce.mean, x, "float32")).all()


@pytest.mark.parametrize("dtype", ["int8", "bool"])
def test_sums_of_ints_are_exact(dtype):
    for shape in SHAPES + EMPTY:
        x = sample(shape, dtype)
        np.testing.assert_array_equal(run(reduce.sum_, x, "int64"), x.astype(np.int64).sum(1))


@pytest.mark.parametrize("dtype", ["float32"])
def test_nonzero_elements_are_counted(dtype):
    for shape in SHAPES + EMPTY:
        x = np.where(sample(shape, "bool"), sample(shape, dtype), 0).astype(dtype)
        if dtype == "float32" and x.size:
            x[0, 0, 0] = np.nan
        np.testing.assert_array_equal(run(reduce.count_nonzero, x, "int64"), np.count_nonzero(x, 1))


def test_an_int_sum_is_kept_in_the_dtype_by_wrapping():
    x = sample((2, 2500, 3), "uint8")
    np.testing.assert_array_equal(run(reduce.sum_, x, "uint8"), x.sum(1, dtype=np.uint8))
    x = sample((2, 9, 70), "uint8")
    np.testing.assert_array_equal(run(reduce.sum_, x, "uint8"), x.sum(1, dtype=np.uint8))


def test_an_int_sum_does_not_pass_through_float64():
    big = np.full((1, 1001, 1), 2**53 - 1, np.int64)
    assert run(reduce.sum_, big, "int64")[0, 0] == 1001 * (2**53 - 1)


@pytest.mark.parametrize("value", [0.1, 0.7, 1.3, 1.9])
def test_ten_million_equal_terms(value):
    x = np.full(10_000_000, value, np.float32)
    exact = float(x[0]) * x.size
    out = np.empty(1, np.float32)
    launch(reduce.sum_, x, out, 1, x.size, 1)
    assert abs(float(out[0]) / exact - 1) < 2e-7
    out = np.empty(4, np.float32)
    launch(reduce.sum_, x, out, 1, x.size // 4, 4)
    assert np.abs(out.astype(np.float64) / (exact / 4) - 1).max() < 6e-7


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_sums_of_special_values(special):
    for shape in [(1, 5, 1), (1, 2000, 1), (1, 9, 70), (1, 2000, 3)]:
        x = sample(shape, "float32")
        x[0, shape[1] // 2, 0] = special
        np.testing.assert_equal(run(reduce.sum_, x, "float32")[0, 0], np.float32(special))
    x = np.array([np.inf, -np.inf], np.float32).reshape(1, 2, 1)
    assert np.isnan(run(reduce.sum_, x, "float32")[0, 0])


def test_expand_and_any_all():
    dtype = "float32"
    for shape in SHAPES + EMPTY:
        outer, n, inner = shape
        g = sample((outer, 1, inner), dtype)
        out = np.full(outer * n * inner, 9, dtype)
        launch(reduce.expand, g.ravel(), out, outer, n, inner)
        np.testing.assert_array_equal(out.reshape(shape), np.broadcast_to(g, shape))
        x = np.where(np.random.default_rng(0).random(shape) < 1 / (n + 1), 1, 0).astype(dtype)
        np.testing.assert_array_equal(run(reduce.any_, x, "bool"), x.any(1))
        np.testing.assert_array_equal(run(reduce.all_, 1 - x, "bool"), (1 - x).all(1))
    g = np.array([3, 6], np.float32)
    out = np.empty(6, np.float32)
    launch(reduce.expand_mean, g, out, 2, 3, 1)
    np.testing.assert_array_equal(out, [1, 1, 1, 2, 2, 2])
    launch(reduce.expand_mean, g, out, 1, 3, 2)
    np.testing.assert_array_equal(out, [1, 2, 1, 2, 1, 2])


def test_products():
    for shape in SHAPES[:8] + EMPTY:
        x = np.exp(sample(shape, "float64") / 20).astype("float32")
        exact = x.astype(np.float64).prod(1)
        np.testing.assert_allclose(run(reduce.prod, x, "float32"), exact, rtol=3e-6)
        holed = np.where(sample(shape, "bool", 1), x, np.nan).astype("float32")
        np.testing.assert_allclose(run(reduce.nanprod, holed, "float32"), np.nanprod(holed, 1), rtol=6e-6)
        odd = sample(shape, "uint8") | 1
        np.testing.assert_array_equal(run(reduce.prod, odd, "int64"), odd.prod(1, dtype=np.int64))


def others(x):
    """The product of the other elements along axis 1, one by one."""
    return np.stack([np.delete(x, k, 1).prod(1) for k in range(x.shape[1])], 1)


@pytest.mark.parametrize("inner", [1, 3])
def test_product_vjp_is_exact_with_zeros(inner):
    for zeros in (0, 1, 2):
        x = sample((2, 6, inner), "float64")
        x[:, :zeros] = 0
        g = sample((2, inner), "float64", 3)
        dx = np.full(x.size, 7.0)
        launch(reduce.prod_vjp, g.ravel(), x.ravel(), dx, 2, 6, inner)
        np.testing.assert_allclose(dx.reshape(x.shape), g[:, None] * others(x), rtol=1e-14)
        x[:, 4] = np.nan
        launch(reduce.nanprod_vjp, g.ravel(), x.ravel(), dx, 2, 6, inner)
        expected = g[:, None] * others(np.where(np.isnan(x), 1, x))
        expected[:, 4] = 0
        np.testing.assert_allclose(dx.reshape(x.shape), expected, rtol=1e-14)


def test_product_vjp_does_not_leave_float32_range_halfway():
    x = np.array([1e-30, 1e-30, 1e30, 1e30], np.float32)
    dx = np.empty(4, np.float32)
    launch(reduce.prod_vjp, np.ones(1, np.float32), x, dx, 1, 4, 1)
    np.testing.assert_allclose(dx, [1e30, 1e30, 1e-30, 1e-30], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_cumsum_both_ways(dtype):
    wide = "int64" if dtype == "int8" else dtype
    for shape in SHAPES[:9] + EMPTY:
        x = sample(shape, dtype)
        out = np.empty(x.size, wide)
        exact = np.cumsum(x.astype(np.float64), 1)
        launch(reduce.cumsum, x.ravel(), out, *shape, 0)
        np.testing.assert_allclose(out.reshape(shape), exact, rtol=1e-6, atol=1e-6)
        launch(reduce.cumsum, x.ravel(), out, *shape, 1)
        exact = np.cumsum(x[:, ::-1].astype(np.float64), 1)[:, ::-1]
        np.testing.assert_allclose(out.reshape(shape), exact, rtol=1e-6, atol=1e-6)


MAXIMUM = (extreme.max_, extreme.argmax, np.max, np.argmax)
MINIMUM = (extreme.min_, extreme.argmin, np.min, np.argmin)


@pytest.mark.parametrize(
    ("dtype", "kernels"),
    [("float32", MAXIMUM), ("float32", MINIMUM), ("int8", MAXIMUM), ("bool", MINIMUM)],
)
def test_extremes_and_their_positions(dtype, kernels):
    value, position, numpy_value, numpy_position = kernels
    for shape in SHAPES:
        x = sample(shape, dtype)  # the ints have ties, so the first one is asked for
        np.testing.assert_array_equal(run(value, x, dtype), numpy_value(x, 1))
        np.testing.assert_array_equal(run(position, x, "int64"), numpy_position(x, 1))
        if dtype.startswith("float"):
            x[-1, 0, 0] = np.inf
            x[-1, shape[1] // 2, -1] = -np.inf
            np.testing.assert_array_equal(run(value, x, dtype), numpy_value(x, 1))
            x[0, shape[1] * 2 // 3 :, 0] = np.nan
            x[0, -1, -1] = np.nan
            np.testing.assert_array_equal(run(value, x, dtype), numpy_value(x, 1))
            np.testing.assert_array_equal(run(position, x, "int64"), numpy_position(x, 1))


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 97, 511, 512, 513, 544, 1300, 20000])
def test_positions_in_lines_of_any_length(n):
    rng = np.random.default_rng(n)
    x = rng.integers(-50, 50, (9, n, 1)).astype("float32")  # with ties
    x[0, -1] = 99
    x[1, 0] = 99
    x[2:5][rng.random((3, n, 1)) < 0.01] = np.nan
    x[5, -1] = np.nan
    np.testing.assert_array_equal(run(extreme.argmax, x, "int64"), np.argmax(x, 1))
    np.testing.assert_array_equal(run(extreme.max_, x, "float32"), np.max(x, 1))


def test_signed_ints_and_negative_extremes():
    x = np.array([[-3, -7, -3], [5, -128, 127]], np.int8).reshape(2, 3, 1)
    assert run(extreme.max_, x, "int8").tolist() == [[-3], [127]]
    assert run(extreme.argmax, x, "int64").tolist() == [[0], [2]]


@pytest.mark.parametrize("inner", [1, 3])
def test_the_gradient_of_an_extreme_is_shared(inner):
    dtype = "float32"
    x = np.array([[1, 5, 5, 2, 5], [np.nan, 7, np.nan, 1, 0], [3, 2, 1, 0, -np.inf]], dtype)
    expected = np.array([[0, 4, 4, 0, 4], [6, 0, 6, 0, 0], [12, 0, 0, 0, 0]], dtype)
    x = np.repeat(x[:, :, None], inner, 2)
    y = run(extreme.max_, x, dtype)
    dx = np.full(x.size, 9, dtype)
    launch(extreme.extreme_vjp, np.full(3 * inner, 12, dtype), x.ravel(), y.ravel(), dx, 3, 5, inner)
    np.testing.assert_array_equal(dx.reshape(x.shape), np.repeat(expected[:, :, None], inner, 2))
