"""Stable sorting against NumPy's stable sort, both ways, with everything floats can hold."""

import numpy as np
import pytest

from numbagrad.kernels import order
from numbagrad.launch import launch

SHAPES = [(1, 0, 1), (1, 1, 1), (3, 2, 1), (2, 16, 2), (2, 17, 1), (1, 100, 3), (1, 127, 1), (1, 128, 1), (2, 1500, 2)]


def sample(shape, dtype):
    rng = np.random.default_rng(shape[1])
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype == "int64":
        x = rng.integers(-(2**62), 2**62, shape)
        x[rng.random(shape) < 0.2] = rng.choice([-(2**63), 2**63 - 1, 0, -1])
        return x
    x = rng.normal(size=shape).round(1) * 10.0 ** rng.integers(-30, 30, shape)
    special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45], shape)
    return np.where(rng.random(shape) < 0.3, special, x).astype(dtype)


def descending_order(x):
    """Stable and descending with NaN last: the stable ascending order of the ranks turned round."""
    _, ranks = np.unique(x.ravel(), return_inverse=True)
    ranks = ranks.reshape(x.shape).astype(np.int64)
    return np.argsort(np.where(x == x, -ranks, ranks.size + 1), 1, kind="stable")


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_stable_order(dtype):
    for shape in SHAPES:
        x = sample(shape, dtype)
        for descending in (0, 1):
            places = np.full(x.size, -1)
            launch(order.argsort, x.ravel(), places, *shape, descending)
            expected = descending_order(x) if descending else np.argsort(x, 1, kind="stable")
            np.testing.assert_array_equal(places.reshape(shape), expected)
            if dtype in ("float32", "bool"):
                out = np.empty_like(x)
                launch(order.sort, x.ravel(), out.reshape(-1), *shape, descending)
                np.testing.assert_array_equal(out, np.take_along_axis(x, expected, 1))
