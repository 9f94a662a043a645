"""Import and first step, each in new processes; the figures that count are in `extra_info` and in ``--startup``."""

import pytest

from benchmarks import startup
from benchmarks.systems import missing


def test_import(benchmark):
    benchmark.group = "import numbagrad"
    seconds = benchmark.pedantic(startup.import_seconds, rounds=1)
    benchmark.extra_info["seconds"] = round(seconds, 4)
    assert seconds > 0


@pytest.mark.parametrize("key", ["eager", "jit"])
def test_first_step(benchmark, key):
    reason = missing(key)
    if reason:
        pytest.skip(reason)
    benchmark.group = "first step of E"
    cold, warm = benchmark.pedantic(startup.first_step_seconds, args=("E", key), rounds=1)
    benchmark.extra_info |= {"cold seconds": round(cold, 3), "warm seconds": round(warm, 3)}
    assert warm < cold
