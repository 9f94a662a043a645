"""Random fills: distributions by statistical tests at fixed seeds, bounds, determinism, streams, failures."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from numbagrad.errors import MXNetError
from numbagrad.kernels import random as kernels
from numbagrad.launch import launch
from numbagrad.native import rng

FLOATS = [np.float32, np.float64]
LEAST_P_VALUE = 1e-4  # seeds are fixed, so a test passes or fails for good


def _fill(kernel, out, *scalars, seed=11):
    state = rng.seed_state(seed)
    launch(kernel, state, out, out.size, *scalars)
    return out


def _rows(kernel, parameters, per_row, dtype=np.float64, seed=12):
    parameters = [np.atleast_1d(np.asarray(parameter, np.float64)) for parameter in parameters]
    out = np.full(parameters[0].size * per_row, 77, dtype)
    launch(kernel, rng.seed_state(seed), *parameters, out, parameters[0].size, per_row)
    return out.reshape(-1, per_row)


def _assert_counts(values, distribution, least_expected=20):
    """Chi-square of integers against a SciPy distribution, rare ones taken together."""
    top = int(values.max()) + 1
    seen = np.bincount(values.astype(np.int64), minlength=top + 1)
    expected = distribution.pmf(np.arange(top + 1)) * values.size
    common = expected >= least_expected
    seen = np.append(seen[common], seen[~common].sum())
    expected = np.append(expected[common], values.size - expected[common].sum())
    if expected[-1] < 1:
        assert seen[-1] < 20
        seen, expected = seen[:-1], expected[:-1] * seen[:-1].sum() / expected[:-1].sum()
    assert stats.chisquare(seen, expected).pvalue > LEAST_P_VALUE


# ------------------------------------------------------------------------------------------- uniform and normal


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_distribution(dtype):
    """Kolmogorov and Smirnov's test, moments, and no correlation of neighbours, also across lanes and groups."""
    u = _fill(kernels.uniform, np.empty(200_001, dtype), -1.0, 3.0).astype(float)
    assert u.min() >= -1
    assert u.max() < 3
    assert stats.kstest(u, stats.uniform(-1, 4).cdf).pvalue > LEAST_P_VALUE
    for lag in (1, 2, 32, 64, 128):
        assert abs(np.corrcoef(u[:-lag], u[lag:])[0, 1]) < 5 / np.sqrt(u.size)


def test_uniform_uses_all_bits_of_the_dtype():
    """24 bits for float32, 53 for float64: multiples of no coarser step, and nothing lost."""
    for dtype, bits in ((np.float32, 24), (np.float64, 53)):
        steps = _fill(kernels.uniform, np.empty(10_000, dtype), 0.0, 1.0).astype(np.float64) * 2**bits
        assert np.array_equal(steps, np.floor(steps))
        for bit in range(bits):
            share = ((steps.astype(np.uint64) >> np.uint64(bit)) & np.uint64(1)).mean()
            assert abs(share - 0.5) < 5 * 0.5 / 100


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("low", "high"),
    [(0.0, 1.0), (1.0, 1.0 + 2**-20), (1e6, 1e6 + 1), (-1e-30, 1e-30), (-3e38, 3e38), (0.0, 1e-44), (-2.0, -1.0)],
)
def test_uniform_never_leaves_its_interval(dtype, low, high):
    """A million draws of intervals that rounding would leave, among them one wider than float32."""
    out = _fill(kernels.uniform, np.empty(1_000_000, dtype), low, high)
    assert out.min() >= dtype(low)
    assert out.max() < dtype(high)
    span = float(dtype(high)) - float(dtype(low))
    if span > 1e-40:
        assert out.min() < low + 0.1 * span
        assert out.max() > high - 0.2 * span


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_of_the_widest_and_the_emptiest_interval(dtype):
    """high - low beyond the dtype, and low == high."""
    most = float(np.finfo(dtype).max)
    out = _fill(kernels.uniform, np.empty(20_000, dtype), -most, most)
    assert np.isfinite(out).all()
    assert stats.kstest(out / dtype(most), stats.uniform(-1, 2).cdf).pvalue > LEAST_P_VALUE
    assert (_fill(kernels.uniform, np.empty(300, dtype), 0.1, 0.1) == dtype(0.1)).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_distribution(dtype):
    """Kolmogorov and Smirnov's test, four moments, and the number of draws beyond 4 deviations."""
    x = _fill(kernels.normal, np.empty(1_000_001, dtype), 3.0, 2.0).astype(float)
    z = (x - 3) / 2
    assert stats.kstest(z[:200_000], stats.norm.cdf).pvalue > LEAST_P_VALUE
    for power, moment, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((z**power).mean() - moment) < 5 * np.sqrt(spread / z.size)
    tail = 2 * stats.norm.sf(4) * z.size  # 63
    assert abs((np.abs(z) > 4).sum() - tail) < 5 * np.sqrt(tail)
    assert 4.5 < np.abs(z).max() < 6.5
    half = rng.GROUP_WORDS * 2 // np.dtype(dtype).itemsize  # the two numbers of a pair are that far apart
    assert abs(np.corrcoef(z[:-half], z[half:])[0, 1]) < 5 / np.sqrt(z.size)
    assert abs(np.corrcoef(z[:-half] ** 2, z[half:] ** 2)[0, 1]) < 5 / np.sqrt(z.size)


def test_normal_of_scale_0_is_loc():
    """MXNet refused a scale of 0; here it gives the mean."""
    assert (_fill(kernels.normal, np.empty(300, np.float32), 1.5, 0.0) == 1.5).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_exponential_distribution(dtype):
    """Rows with parameters of their own."""
    rows = _rows(kernels.exponential, [[0.5, 4.0, 0.0]], 50_000, dtype)
    assert stats.kstest(rows[0], stats.expon(scale=0.5).cdf).pvalue > LEAST_P_VALUE
    assert stats.kstest(rows[1], stats.expon(scale=4).cdf).pvalue > LEAST_P_VALUE
    assert not rows[2].any()


@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_equal_the_scalar_form(dtype):
    """Row r transforms the standard numbers of its own elements, whatever rows and groups do to each other."""
    low, high = np.array([0.0, -5.0, 2.0]), np.array([1.0, 5.0, 2.0])
    standard = _fill(kernels.uniform, np.empty(3 * 77, dtype), 0.0, 1.0, seed=12).reshape(3, 77)
    out = _rows(kernels.uniform_rows, [low, high], 77, dtype)
    assert np.array_equal(out, low[:, None].astype(dtype) + standard * (high - low)[:, None].astype(dtype))
    standard = _fill(kernels.normal, np.empty(3 * 77, dtype), 0.0, 1.0, seed=12).reshape(3, 77)
    out = _rows(kernels.normal_rows, [low, high], 77, dtype)
    assert np.array_equal(out, low[:, None].astype(dtype) + standard * high[:, None].astype(dtype))
    single = _rows(kernels.normal_rows, [np.full(300, 3.0), np.full(300, 2.0)], 1, dtype)
    assert np.array_equal(single.ravel(), _fill(kernels.normal, np.empty(300, dtype), 3.0, 2.0, seed=12))


# ------------------------------------------------------------------------------------------------------ integers


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_randint_distribution(dtype):
    """Chi-square over small ranges of either sign."""
    for low, high in ((0, 10), (-7, 6), (5, 6)):
        out = _fill(kernels.randint, np.empty(100_000, dtype), low, high)
        assert out.dtype == dtype
        assert out.min() == low
        assert out.max() == high - 1
        if high - low > 1:
            assert stats.chisquare(np.bincount(out - low)).pvalue > LEAST_P_VALUE


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0, 3 * 2**30),  # a quarter of all words is refused
        (-(2**31), 2**31),  # exactly 2^32
        (-5, 2**32),  # just above it
        (0, 3 * 2**62 - 2**62 - 2**61),
        (-(2**62), 2**63 - 1),
        (-(2**63), 2**63 - 1),
    ],
)
def test_randint_over_wide_ranges(low, high):
    """As likely everywhere: chi-square over 64 equal parts, where a biased method would favour some."""
    out = _fill(kernels.randint, np.empty(100_000, np.int64), low, high)
    assert out.min() >= low
    assert out.max() < high
    parts = np.floor((out.astype(float) - low) / (high - low) * 64).clip(0, 63).astype(int)
    assert stats.chisquare(np.bincount(parts, minlength=64)).pvalue > LEAST_P_VALUE
    assert abs((out & 1).mean() - 0.5) < 5 * 0.5 / np.sqrt(out.size)


def test_bernoulli_rates_by_row():
    """Within 5 deviations, and exact at 0 and 1; rows shorter and longer than a group."""
    p = np.array([0.0, 0.2, 0.5, 0.97, 1.0])
    rows = _rows(kernels.bernoulli, [p], 30_001, np.uint8)
    assert np.isin(rows, [0, 1]).all()
    assert (np.abs(rows.mean(axis=1) - p) <= 5 * np.sqrt(p * (1 - p) / 30_001)).all()
    alternating = _rows(kernels.bernoulli, [np.tile([0.0, 1.0], 150)], 3, np.uint8)
    assert np.array_equal(alternating, np.tile([[0, 0, 0], [1, 1, 1]], (150, 1)))


def test_multinomial_counts():
    """Chi-square of unnormalised rows; classes of probability 0 never come."""
    p = np.array([[1, 2, 0, 7, 0], [0, 0, 3, 0, 0], [5, 5, 5, 5, 5]], np.float32)
    out = np.full(3 * 40_000, -1, np.int32)
    launch(kernels.multinomial, rng.seed_state(4), p.ravel(), out, 3, 5, 40_000)
    counts = np.array([np.bincount(row, minlength=5) for row in out.reshape(3, -1)])
    assert counts.shape == (3, 5)
    assert counts[0, 2] == counts[0, 4] == 0
    assert counts[1].tolist() == [0, 0, 40_000, 0, 0]
    assert stats.chisquare(counts[0, [0, 1, 3]], [4000, 8000, 28_000]).pvalue > LEAST_P_VALUE
    assert stats.chisquare(counts[2]).pvalue > LEAST_P_VALUE


def test_permutations_are_permutations_and_as_likely():
    """All 24 orders of 4 things; a long one moves every element about half as far as it can."""
    orders = {}
    state = rng.seed_state(6)
    out = np.empty(4, np.int64)
    for _ in range(4800):
        launch(kernels.permutation, state, out, 4)
        orders[tuple(out.tolist())] = orders.get(tuple(out.tolist()), 0) + 1
    assert len(orders) == 24
    assert stats.chisquare(list(orders.values())).pvalue > LEAST_P_VALUE
    out = _fill(kernels.permutation, np.empty(100_000, np.int64))
    assert np.array_equal(np.sort(out), np.arange(100_000))
    assert abs(np.corrcoef(out, np.arange(100_000))[0, 1]) < 5 / np.sqrt(100_000)
    assert abs((out == np.arange(100_000)).sum() - 1) < 7


# ------------------------------------------------------------------------------------- samplers with rejection


def test_gamma_distribution():
    """Shapes below and above 1; beta is the scale."""
    alpha, beta = np.array([0.2, 0.5, 1.0, 3.7, 500.0]), np.array([1.0, 2.0, 0.1, 3.0, 1.0])
    rows = _rows(kernels.gamma, [alpha, beta], 20_000)
    for row, a, b in zip(rows, alpha, beta, strict=True):
        assert stats.kstest(row, stats.gamma(a, scale=b).cdf).pvalue > LEAST_P_VALUE
    assert not _rows(kernels.gamma, [[0.0, 2.0], [1.0, 0.0]], 10).any()


def test_gamma_of_a_great_shape():
    """A normal number by then: mean 1e10, deviation 1e5."""
    z = (_rows(kernels.gamma, [1e10, 1.0], 20_000)[0] - 1e10) / 1e5
    assert stats.kstest(z, stats.norm.cdf).pvalue > LEAST_P_VALUE


@pytest.mark.parametrize("lam", [0.03, 2.5, 9.99, 10.0, 31.0, 450.0])
def test_poisson_distribution(lam):
    """Chi-square on both sides of the change of method at 10."""
    _assert_counts(_rows(kernels.poisson, [lam], 50_000)[0], stats.poisson(lam))


def test_poisson_edges():
    """Mean 0, means so large that they are normal, on both sides of the change of method at 1e15."""
    rows = _rows(kernels.poisson, [[0.0, 1e9, 9e14, 1e18]], 20_000)
    assert not rows[0].any()
    for row, lam in zip(rows[1:], (1e9, 9e14, 1e18), strict=True):
        assert np.array_equal(row, np.floor(row))
        assert stats.kstest((row - lam) / np.sqrt(lam), stats.norm.cdf).pvalue > LEAST_P_VALUE


@pytest.mark.parametrize(("k", "p"), [(4.0, 0.3), (0.7, 0.9), (200.0, 0.5), (3.0, 1.0)])
def test_negative_binomial_distribution(k, p):
    """Failures before k successes of probability p."""
    values = _rows(kernels.negative_binomial, [k, p], 50_000, np.float32)[0]
    if p == 1:
        assert not values.any()
    else:
        _assert_counts(values, stats.nbinom(k, p))


@pytest.mark.parametrize(("mu", "alpha"), [(5.0, 0.4), (0.5, 3.0), (6.0, 0.0), (12.0, 1e-305)])
def test_generalized_negative_binomial_distribution(mu, alpha):
    """Mean mu and variance mu + alpha mu^2: k = 1 / alpha and p = 1 / (1 + mu alpha)."""
    values = _rows(kernels.generalized_negative_binomial, [mu, alpha], 50_000, np.float32)[0]
    _assert_counts(values, stats.nbinom(1 / alpha, 1 / (1 + mu * alpha)) if alpha > 1e-300 else stats.poisson(mu))


# ------------------------------------------------------------------------------------------------------- streams


@pytest.mark.parametrize("dtype", FLOATS)
def test_equal_seeds_give_equal_values_and_a_stream_goes_on(dtype):
    """The stream rule: two fills equal one where the first takes whole groups."""
    group = rng.GROUP_WORDS * 4 // np.dtype(dtype).itemsize
    for kernel in (kernels.uniform, kernels.normal):
        whole = _fill(kernel, np.empty(3 * group + 5, dtype), 0.0, 1.0)
        assert np.array_equal(whole, _fill(kernel, np.empty(3 * group + 5, dtype), 0.0, 1.0))
        assert not np.array_equal(whole, _fill(kernel, np.empty(3 * group + 5, dtype), 0.0, 1.0, seed=8))
        state = rng.seed_state(11)
        first, second = np.empty(2 * group, dtype), np.empty(group + 5, dtype)
        launch(kernel, state, first, first.size, 0.0, 1.0)
        assert state[1] == 2 * rng.GROUP_BLOCKS
        launch(kernel, state, second, second.size, 0.0, 1.0)
        assert state[1] == 4 * rng.GROUP_BLOCKS
        assert np.array_equal(np.concatenate([first, second]), whole)
        # a longer fill begins with the shorter one
        assert np.array_equal(_fill(kernel, np.empty(group + 1, dtype), 0.0, 1.0), whole[: group + 1])


def test_rejection_does_not_shift_other_elements():
    """Element i of a gamma or Poisson fill does not depend on how often those before it were drawn again."""
    for kernel, one, other in ((kernels.gamma, [0.5, 1.0], [9.0, 1.0]), (kernels.poisson, [40.0], [3.0])):
        mixed = [np.array([a] * 10 + [b] * 10) for a, b in zip(one, other, strict=True)]
        out = _rows(kernel, mixed, 5).ravel()
        assert np.array_equal(out[:50], _rows(kernel, one, 100).ravel()[:50])
        assert np.array_equal(out[50:], _rows(kernel, other, 100).ravel()[50:])


def test_empty_fills_take_nothing():
    """n = 0 for every kernel."""
    one, nothing = np.ones(1), np.empty(0)
    state = rng.seed_state(2)
    launch(kernels.uniform, state, nothing, 0, 0.0, 1.0)
    launch(kernels.normal, state, nothing, 0, 0.0, 1.0)
    launch(kernels.randint, state, np.empty(0, np.int64), 0, 0, 5)
    launch(kernels.permutation, state, np.empty(0, np.int64), 0)
    launch(kernels.uniform_rows, state, one, one, nothing, 1, 0)
    launch(kernels.normal_rows, state, one, one, nothing, 1, 0)
    launch(kernels.exponential, state, one, nothing, 1, 0)
    launch(kernels.bernoulli, state, one, np.empty(0, np.uint8), 1, 0)
    launch(kernels.gamma, state, one, one, nothing, 1, 0)
    launch(kernels.poisson, state, one, nothing, 1, 0)
    launch(kernels.multinomial, state, np.empty(0, np.float32), np.empty(0, np.int32), 0, 5, 1)
    assert state[1] == 0


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(("low", "high"), [(1.0, 0.0), (NAN, 1.0), (0.0, INFINITY), (-INFINITY, 0.0), (0.0, 1e39)])
def test_bad_uniform_leaves_all_as_it_was(low, high):
    """Reversed, not finite, or beyond float32."""
    state, out = rng.seed_state(1), np.full(5, 7, np.float32)
    with pytest.raises(MXNetError, match="uniform: low and high"):
        launch(kernels.uniform, state, out, 5, low, high)
    with pytest.raises(MXNetError, match="uniform: low and high"):
        launch(kernels.uniform_rows, state, np.array([0.0, low]), np.array([1.0, high]), out, 2, 2)
    assert state[1] == 0
    assert (out == 7).all()


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("normal_rows", (NAN, 1.0)),
        ("normal_rows", (0.0, -1.0)),
        ("exponential", (-1.0,)),
        ("bernoulli", (1.5,)),
        ("gamma", (-1.0, 1.0)),
        ("gamma", (1.0, NAN)),
        ("poisson", (-0.1,)),
        ("poisson", (INFINITY,)),
        ("negative_binomial", (1.0, 0.0)),
        ("negative_binomial", (-1.0, 0.5)),
        ("generalized_negative_binomial", (1.0, -1.0)),
    ],
)
def test_bad_parameters_leave_all_as_they_were(name, parameters):
    """One bad row among good ones, found before the first write."""
    good = {"negative_binomial": (1.0, 0.5)}.get(name, (0.5,) * len(parameters))
    dtype = np.uint8 if name == "bernoulli" else np.float32 if "binomial" in name else np.float64
    state, out = rng.seed_state(1), np.full(4, 7, dtype)
    arrays = [np.array(pair) for pair in zip(good, parameters, strict=True)]
    with pytest.raises(MXNetError, match=name.removesuffix("_rows")):
        launch(getattr(kernels, name), state, *arrays, out, 2, 2)
    assert state[1] == 0
    assert (out == 7).all()


@pytest.mark.parametrize("row", [(0.0, 0.0), (0.5, -0.1), (NAN, 1.0), (INFINITY, 1.0)])
def test_bad_probabilities(row):
    """No row of a multinomial may be void."""
    out = np.full(2, 7, np.int32)
    with pytest.raises(MXNetError, match="multinomial"):
        launch(kernels.multinomial, rng.seed_state(1), np.array([0.5, 0.5, *row], np.float32), out, 2, 2, 1)
    assert (out == 7).all()


def test_empty_range_of_integers():
    """An empty range killed MXNet's process."""
    with pytest.raises(MXNetError, match="low must be below high"):
        launch(kernels.randint, rng.seed_state(1), np.empty(3, np.int64), 3, 4, 4)


# ------------------------------------------------------------------------------------------------ plain Python

_DRAWS = """
import json
import numpy as np
from numbagrad.kernels import dropout, random as kernels
from numbagrad.launch import launch
from numbagrad.native import rng

state = rng.seed_state(-(10**30))
results = []
def draw(kernel, dtype, n, *arguments, before=()):
    out = np.zeros(n, dtype)
    launch(kernel, state, *before, out, *arguments)
    results.append(out.tolist())
A = lambda *values: np.array(values, np.float64)
for dtype in (np.float32, np.float64):
    draw(kernels.uniform, dtype, 5, 5, -1.0, 2.0)
    draw(kernels.normal, dtype, 5, 5, 1.0, 2.0)
draw(kernels.randint, np.int64, 5, 5, -9, 3 * 2**30)
draw(kernels.randint, np.int64, 5, 5, -(2**63), 2**62)
draw(kernels.permutation, np.int64, 9, 9)
draw(kernels.exponential, np.float64, 4, 2, 2, before=(A(1, 2),))
draw(kernels.bernoulli, np.uint8, 6, 2, 3, before=(A(0.3, 0.6),))
draw(kernels.multinomial, np.int32, 6, 2, 2, 3, before=(np.float32(A(0.3, 0.6, 2, 1)),))
draw(kernels.gamma, np.float64, 4, 2, 2, before=(A(0.5, 5), A(1, 2)))
draw(kernels.poisson, np.float64, 6, 3, 2, before=(A(0.5, 50, 1e16),))
x, y, mask = np.ones(9, np.float32), np.zeros(9, np.float32), np.zeros(9, np.uint8)
launch(dropout.dropout, state, x, y, mask, 9, 0.4)
results += [y.tolist(), mask.tolist(), state.tolist()]
print(json.dumps(results))
"""


def test_plain_python_draws_the_same():
    """Under NUMBA_DISABLE_JIT=1, warnings being errors; only logarithms and the like may differ by an ulp or two."""
    printed = []
    for disabled in ("0", "1"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", _DRAWS], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        printed.append(json.loads(done.stdout))
    compiled, plain = printed
    assert len(compiled) == len(plain)
    for a, b in zip(compiled, plain, strict=True):
        if isinstance(a[0], int):
            assert a == b
        else:
            np.testing.assert_allclose(a, b, rtol=1e-6 if np.array_equal(a, np.float32(a)) else 1e-13)
