"""Kernels over LAPACK: both precisions, statuses, and the symbols in code on disk."""

import os
import subprocess
import sys

import numpy as np
import pytest

from numbagrad.errors import MXNetError
from numbagrad.kernels import lapack
from numbagrad.launch import launch
from numbagrad.native.compiler import PYTHON_MODE


def flat(x, dtype):
    return np.ascontiguousarray(x, dtype).reshape(-1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocked_sizes(dtype):
    """LAPACK works on blocks of columns from some size on, with more of the workspace."""
    rng = np.random.default_rng(0)
    n = 150
    x = rng.standard_normal((n, n))
    a = x @ x.T / n + np.eye(n)
    tolerance = np.finfo(dtype).eps * n * 20
    out, q, l = (np.empty(n * n, dtype) for _ in range(3))  # noqa: E741
    launch(lapack.potrf, flat(a, dtype), out, 1, n)
    np.testing.assert_allclose(out.reshape(n, n), np.linalg.cholesky(a), atol=tolerance)
    launch(lapack.inverse, flat(a, dtype), out, 1, n, 1)
    np.testing.assert_allclose(out.reshape(n, n), np.linalg.inv(a), atol=tolerance)
    launch(lapack.gelqf, flat(x[:100], dtype), q[: 100 * n], l[: 100 * 100], 1, 100, n)
    got = l[: 100 * 100].reshape(100, 100) @ q[: 100 * n].reshape(100, n)
    np.testing.assert_allclose(got, x[:100], atol=tolerance)
    w = np.empty(n, dtype)
    launch(lapack.syevd, flat(a, dtype), out, w, 1, n)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(a), atol=tolerance)
    u = out.reshape(n, n)
    np.testing.assert_allclose(u.T * w @ u, a, atol=tolerance)
    assert (u[np.arange(n), np.abs(u).argmax(1)] > 0).all()


def test_a_failure_writes_nothing_and_names_the_matrix():
    batch = np.stack([np.eye(2), np.zeros((2, 2))])
    for kernel, rest, name in (
        (lapack.potrf, (2, 2), "potrf: matrix 1 of the batch is not positive definite"),
        (lapack.inverse, (2, 2, 1), "inverse: matrix 1 of the batch is singular"),
    ):
        out = np.full(8, 7.0)
        with pytest.raises(MXNetError, match=name):
            launch(kernel, flat(batch, float), out, *rest)
        assert (out == 7).all()
    out = np.full(8, 7.0)
    with pytest.raises(MXNetError, match="potri: matrix 1 of the batch is singular"):
        launch(lapack.trsm, flat(batch, float), np.ones(8), out, 2, 2, 2, 0, 1, 0, 1, 1.0)
    assert (out == 7).all()
    u, w = np.full(8, 7.0), np.full(4, 7.0)
    batch[1] = np.nan
    with pytest.raises(MXNetError, match="syevd: found no eigenvalues of matrix 1 of the batch"):
        launch(lapack.syevd, flat(batch, float), u, w, 2, 2)
    assert (u == 7).all()
    assert (w == 7).all()


SCRIPT = """
import numpy as np
from numbagrad.kernels.lapack import potrf
from numbagrad.launch import launch
from numbagrad.native import cache
out = np.empty(4)
launch(potrf, np.array([4.0, 1.0, 1.0, 4.25]), out, 1, 2)
assert out.tolist() == [2, 0, 0.5, 2], out
print(len(cache.compilations), len(cache.loads))
"""


@pytest.mark.skipif(PYTHON_MODE, reason="nothing is compiled")
def test_a_new_process_loads_the_symbol_call_from_disk(tmp_path):
    outputs = []
    for _ in range(2):
        environment = dict(os.environ, NUMBAGRAD_CACHE_DIR=str(tmp_path))
        command = [sys.executable, "-c", SCRIPT]
        outputs.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert int(outputs[0].split()[0]) > 0
    assert outputs[1].split() == ["0", "1"]
