"""Single operations beside NumPy: recorded cost on small arrays, time an element on large ones."""

import numpy as np
import pytest

pytest.importorskip("numbagrad.nd")
from numbagrad import autograd, nd

SIZES = (65_536, 4_194_304)
ELEMENTWISE = {
    "exp": (nd.exp, np.exp),
    "tanh": (nd.tanh, np.tanh),
    "sigmoid": (nd.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "relu": (nd.relu, lambda x: np.maximum(x, 0)),
    "mul": (lambda x: x * x, lambda x: x * x),
}
REDUCTIONS = {
    "sum": (nd.sum, np.sum),
    "sum axis 0": (lambda x: nd.sum(x, axis=0), lambda x: x.sum(axis=0)),
    "sum axis 1": (lambda x: nd.sum(x, axis=1), lambda x: x.sum(axis=1)),
    "max": (nd.max, np.max),
    "mean axis 1": (lambda x: nd.mean(x, axis=1), lambda x: x.mean(axis=1)),
    "norm": (nd.norm, np.linalg.norm),
}
CHAIN = 1000


def measure(benchmark, pair, library, x, rtol):
    """Check numbagrad's result against NumPy's in float64, then time the one of `library`."""
    ours, reference = pair
    array = nd.array(x)
    np.testing.assert_allclose(
        np.ravel(ours(array).asnumpy()), np.ravel(reference(x.astype(np.float64))), rtol=rtol, atol=1e-3 * rtol
    )
    benchmark.extra_info["elements"] = x.size
    if library == "numbagrad":
        benchmark(ours, array)
    else:
        benchmark(reference, x)
    benchmark.extra_info["ns an element"] = round(benchmark.stats.stats.min / x.size * 1e9, 3)


@pytest.mark.parametrize("library", ["numpy", "numbagrad"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(benchmark, name, size, library):
    benchmark.group = f"{name}, {size} float32"
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    measure(benchmark, ELEMENTWISE[name], library, x, 1e-6)


@pytest.mark.parametrize("library", ["numpy", "numbagrad"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(benchmark, name, library):
    benchmark.group = f"{name}, 1024 x 1024 float32"
    x = np.random.default_rng(0).uniform(0.5, 1.5, (1024, 1024)).astype(np.float32)
    measure(benchmark, REDUCTIONS[name], library, x, 1e-5)


def test_a_thousand_recorded_operations(benchmark):
    """Forward and backward through a chain of sines on 16 elements; a thousandth of it is one operation."""
    benchmark.group = f"{CHAIN} recorded operations, 16 float32"
    x = nd.array(np.linspace(-1, 1, 16))
    x.attach_grad()

    def run():
        with autograd.record():
            y = x
            for _ in range(CHAIN):
                y = nd.sin(y)
        y.backward()

    benchmark(run)
    y, slope = np.linspace(-1, 1, 16), np.ones(16)
    for _ in range(CHAIN):
        y, slope = np.sin(y), slope * np.cos(y)
    np.testing.assert_allclose(x.grad.asnumpy(), slope, rtol=1e-3, atol=1e-7)
    benchmark.extra_info["us an operation"] = round(benchmark.stats.stats.min / CHAIN * 1e6, 3)
