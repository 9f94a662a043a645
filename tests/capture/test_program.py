"""The table on disk and in memory: cold starts, damaged cache entries, the layout of buffers."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from numbagrad import jit, nd

PROGRAM = """
from numbagrad import jit, nd
f = jit(lambda x: nd.exp(x) + 1)
for k in (0.0, 0.0):
    print(f(nd.zeros((2,))).asnumpy().tolist())
"""
EXPECTED = "[2.0, 2.0]\n[2.0, 2.0]\n"


def start(directory):
    environment = {**os.environ, "NUMBAGRAD_CACHE_DIR": str(directory), "PYTHONWARNINGS": "error"}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process):
    out, error = process.communicate(timeout=240)
    assert process.returncode == 0, error
    assert out == EXPECTED
    return error


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A cache that two processes have filled at once."""
    directory = tmp_path_factory.mktemp("cache")
    for process in [start(directory), start(directory)]:
        finish(process)
    return directory


def test_a_damaged_cache_is_rebuilt(warm):
    damaged = 0
    for path in Path(warm).rglob("*"):
        if path.is_file() and path.suffix == ".bin":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] + b"damaged")
            damaged += 1
    assert damaged
    finish(start(warm))
    finish(start(warm))


def test_buffers_that_are_never_in_use_together_share_memory():
    def chain(x):
        for _ in range(20):
            x = nd.tanh(x) * 1.01
        return x

    f = jit(chain)
    x = nd.array(np.linspace(-1, 1, 1024))
    np.testing.assert_array_equal(f(x).asnumpy(), chain(x).asnumpy())
    np.testing.assert_array_equal(f(x * 0.5).asnumpy(), chain(x * 0.5).asnumpy())
    assert f._variants[0].program.arena_bytes <= 3 * 4096


def test_an_empty_program_and_an_empty_array():
    same = jit(lambda x: x)
    x = nd.ones((2,))
    assert same(x) is x
    assert same(x) is x
    f = jit(lambda x: x * 2)
    assert f(nd.zeros((0, 3))).shape == f(nd.zeros((0, 3))).shape == (0, 3)


def test_the_status_of_a_late_row_names_its_line():
    table = nd.arange(12).reshape((4, 3))

    @jit
    def f(x, index):
        y = nd.tanh(x)
        return y + table[index].sum()

    x = nd.zeros((1,))
    assert f(x, nd.array([0, 1], dtype="int32")).asscalar() == 15
    with pytest.raises(IndexError, match="test_program"):
        f(x, nd.array([0, 9], dtype="int32"))
    assert f(x, nd.array([3], dtype="int32")).asscalar() == 30
