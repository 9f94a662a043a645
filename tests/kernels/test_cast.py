"""Casts against NumPy's astype, and float16 bit for bit."""

import numpy as np
import pytest

from numbagrad.kernels import cast
from numbagrad.launch import launch

DTYPES = ["float32", "float64", "int8", "uint8", "int32", "int64", "bool"]


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", ["float32", "int8", "uint8", "int64", "bool"])
def test_every_dtype_as_astype(source, target):
    rng = np.random.default_rng(5)
    values = np.concatenate([[0, 0.25, 0.99, 1, 1.5, 100.9, 127], rng.uniform(0, 127, 50)])
    if source not in ("uint8", "bool"):
        values = np.concatenate([values, -values])
    x = values.astype(source)
    out = np.empty(x.size, target)
    launch(cast.cast, x, out, x.size)
    expected = x.astype(np.int64).astype(target) if target == "uint8" else x.astype(target)  # -1.5 to uint8: C's choice
    np.testing.assert_array_equal(out, expected)


def test_nan_is_true_and_ints_wrap():
    out = np.empty(3, bool)
    launch(cast.cast, np.array([np.nan, -0.0, np.inf], np.float32), out, 3)
    assert out.tolist() == [True, False, True]
    out = np.empty(3, np.int8)
    launch(cast.cast, np.array([128, 255, -129], np.int64), out, 3)
    assert out.tolist() == [-128, -1, 127]


@pytest.mark.parametrize("target", ["float32", "float64"])
def test_all_halves(target):
    halves = np.arange(65536, dtype=np.uint16)
    out = np.empty(65536, target)
    launch(cast.half_to_float, halves, out, 65536)
    bits = f"uint{out.itemsize * 8}"
    expected = halves.view(np.float16).astype(target)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(out.view(bits)[number], expected.view(bits)[number])
    assert np.isnan(out[~number]).all()
    if target == "float32":
        np.testing.assert_array_equal(out.view(bits), expected.view(bits))


def halfway_cases():
    """Every half, the middle between each and the next, and the nearest neighbours of that middle."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    middles = (halves[:-1] + halves[1:]) / 2
    return np.concatenate([halves, middles, [65519.996, 65520.0, 65536.0, 1e30, 2.0**-25, 2.0**-26, 0.0]])


@pytest.mark.parametrize(("source", "kernel"), [("float32", cast.float_to_half), ("float64", cast.double_to_half)])
def test_rounding_to_halves(source, kernel):
    source_type = np.dtype(source).type
    x = halfway_cases().astype(source)
    random = np.random.default_rng(1).integers(0, 2**63, 200_000, dtype=np.uint64).astype(f"u{x.itemsize}")
    near = np.random.default_rng(2).uniform(1, 2, 200_000) * 2.0 ** np.random.default_rng(3).integers(-28, 18, 200_000)
    beside = [np.nextafter(x, source_type(np.inf)), np.nextafter(x, source_type(-np.inf))]
    x = np.concatenate([x, *beside, random.view(source), near.astype(source)])
    x = np.concatenate([x, -x, np.array([np.inf, -np.inf, np.nan], source)])
    out = np.empty(x.size, np.uint16)
    launch(kernel, x, out, x.size)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        expected = x.astype(np.float16)
    np.testing.assert_array_equal(out, expected.view(np.uint16))
