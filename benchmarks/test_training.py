"""One training step of each workload, a group a workload: ``pytest -n 0 benchmarks/test_training.py``."""

import numpy as np
import pytest

from benchmarks.systems import SYSTEMS, missing, value
from benchmarks.workloads import WORKLOADS

AGREEMENT_STEPS = 5


@pytest.fixture(scope="module")
def expected():
    """The first losses of a workload by NumPy, the reference."""
    known = {}

    def losses(name):
        if name not in known:
            step = SYSTEMS["numpy"].build(name)
            known[name] = [value(step()) for _ in range(AGREEMENT_STEPS)]
        return known[name]

    return losses


@pytest.mark.parametrize("key", SYSTEMS)
@pytest.mark.parametrize("name", WORKLOADS)
def test_step(benchmark, expected, name, key):
    reason = missing(key)
    if reason:
        pytest.skip(reason)
    step, wait = SYSTEMS[key].build(name), SYSTEMS[key].wait
    np.testing.assert_allclose([value(step()) for _ in range(AGREEMENT_STEPS)], expected(name), rtol=1e-3)
    benchmark.group = f"{name}: {WORKLOADS[name].stands_for}"

    def run():
        step()
        wait()

    benchmark(run)


@pytest.mark.parametrize("key", [key for key, system in SYSTEMS.items() if "adam" in system.optimizers])
@pytest.mark.parametrize("name", [name for name in WORKLOADS if name != "A"])
def test_adam(benchmark, name, key):
    reason = missing(key, "adam")
    if reason:
        pytest.skip(reason)
    by_hand, step, wait = SYSTEMS["limit"].build(name, "adam"), SYSTEMS[key].build(name, "adam"), SYSTEMS[key].wait
    expected = [value(by_hand()) for _ in range(AGREEMENT_STEPS)]
    np.testing.assert_allclose([value(step()) for _ in range(AGREEMENT_STEPS)], expected, rtol=1e-3)
    benchmark.group = f"{name}, Adam: {WORKLOADS[name].stands_for}"

    def run():
        step()
        wait()

    benchmark(run)
