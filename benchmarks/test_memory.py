"""What must not grow: memory over many steps, and the stack over long graphs."""

import gc
import pathlib

import numpy as np
import pytest

pytest.importorskip("numbagrad.gluon")
from benchmarks.systems import SYSTEMS
from numbagrad import autograd, nd

STATM = pathlib.Path("/proc/self/statm")
PAGE = 4096
STEPS, WARM_UP = 100_000, 2_000
ALLOWED = 512 * 1024
LONG = 1_000_000


def resident():
    """Bytes of this process in memory."""
    return int(STATM.read_text().split()[1]) * PAGE


@pytest.mark.skipif(not STATM.exists(), reason="reads /proc")
def test_memory_of_many_steps(benchmark):
    """100,000 steps of A, without the cycle collector: what only it could free would show."""
    benchmark.group = f"{STEPS} steps of A"
    step = SYSTEMS["eager"].build("A")

    def run(steps):
        for _ in range(steps):
            step()

    run(WARM_UP)
    gc.collect()
    gc.disable()
    try:
        before = resident()
        benchmark.pedantic(run, args=(STEPS,), rounds=1)
        growth = resident() - before
    finally:
        gc.enable()
    benchmark.extra_info["bytes grown"] = growth
    assert growth <= ALLOWED


@pytest.mark.parametrize("length", [LONG // 10, LONG])
def test_long_chain(benchmark, length):
    """Record, walk and release; the two lengths show whether the time is linear."""
    benchmark.group = "a chain of recorded additions"
    x = nd.zeros((1,))
    x.attach_grad()

    def run():
        with autograd.record():
            y = x
            for _ in range(length):
                y = y + 1
        y.backward()
        return y

    y = benchmark.pedantic(run, rounds=1)
    assert np.array_equal(x.grad.asnumpy(), [1])
    assert y.asscalar() == length
    if benchmark.stats is not None:  # None under --benchmark-disable
        benchmark.extra_info["us an operation"] = round(benchmark.stats.stats.min / length * 1e6, 3)
