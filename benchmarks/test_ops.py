"""Single operations beside NumPy: recorded cost on small arrays, time an element on large and on awkward ones."""

import numpy as np
import pytest

pytest.importorskip("numbagrad.nd")
from benchmarks.operations import check, operations
from numbagrad import autograd, nd

CHAIN = 1000


@pytest.mark.benchmark(max_time=0.1, warmup=False)
@pytest.mark.parametrize("library", ["numpy", "numbagrad"])
@pytest.mark.parametrize("operation", operations(), ids=lambda operation: operation.title)
def test_operation(benchmark, operation, library):
    benchmark.group = f"{operation.title} float32"
    inputs = operation.inputs()
    arrays = [nd.array(x) for x in inputs]
    check(operation, arrays, inputs)
    benchmark.extra_info["elements"] = operation.elements
    if library == "numbagrad":
        benchmark(operation.ours, *arrays)
    else:
        benchmark(operation.numpy, *inputs)
    benchmark.extra_info["ns an element"] = round(benchmark.stats.stats.min / operation.elements * 1e9, 3)


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
