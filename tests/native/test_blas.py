import os
import subprocess
import sys

import numpy as np
import pytest

from numbagrad.native import blas, openblas
from numbagrad.native.compiler import PYTHON_MODE, njit

# every branch: empty, vectors, few rows or columns below and above the threshold, own loops, BLAS
SIZES = [
    (0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 1, 1), (5, 1, 1), (1, 5, 1), (1, 1, 5), (64, 1, 10), (1, 10, 64), (9, 10, 1),
    (7, 2, 5), (2, 7, 5), (3, 4, 700), (300, 2, 40), (2, 300, 40), (120, 1, 90), (1, 120, 90), (9, 10, 11), (33, 9, 17),
]  # fmt: skip


@njit
def run_gemm(ta, tb, m, n, k, alpha, a, b, beta, c, start):
    number = a.dtype.type
    blas.gemm(ta, tb, m, n, k, number(alpha), a[start:], b[start:], number(beta), c[start:])


@njit
def run_gemv(ta, m, n, alpha, a, x, beta, y):
    blas.gemv(ta, m, n, a.dtype.type(alpha), a, x, a.dtype.type(beta), y)


def product(ta, tb, m, n, k, a, b):
    left = a.reshape(k, m).T if ta else a.reshape(m, k)
    right = b.reshape(n, k).T if tb else b.reshape(k, n)
    return (left.astype(np.float64) @ right.astype(np.float64)).reshape(-1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gemm_every_transpose_offset_alpha_and_beta(dtype):
    rng = np.random.default_rng(0)
    for m, n, k in SIZES:
        for ta in (0, 1):
            for tb in (0, 1):
                a, b = rng.standard_normal(3 + m * k).astype(dtype), rng.standard_normal(3 + n * k).astype(dtype)
                expected = product(ta, tb, m, n, k, a[3:], b[3:])
                bound = np.finfo(dtype).eps * (k + 2) * 4
                for alpha, beta in ((1.0, 0.0), (1.0, 1.0), (-0.5, 2.0)):
                    # two elements before and one after must survive, and beta 0 must not read NaN
                    c = rng.standard_normal(3 + m * n + 1).astype(dtype)
                    old = c.copy()
                    if beta == 0:
                        c[3 : 3 + m * n] = np.nan
                    run_gemm(ta, tb, m, n, k, alpha, a, b, beta, c, 3)
                    wanted = alpha * expected + beta * old[3 : 3 + m * n].astype(np.float64)
                    np.testing.assert_allclose(c[3 : 3 + m * n], wanted, rtol=0, atol=bound * 4)
                    assert (c[:3] == old[:3]).all()
                    assert c[-1] == old[-1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gemv(dtype):
    rng = np.random.default_rng(1)
    for m, n in ((0, 3), (3, 0), (1, 1), (5, 7), (150, 90)):
        for ta in (0, 1):
            a, x = rng.standard_normal(m * n).astype(dtype), rng.standard_normal(n).astype(dtype)
            expected = product(ta, 0, m, 1, n, a, x)
            y = np.full(m, np.nan, dtype)
            run_gemv(ta, m, n, 2.0, a, x, 0.0, y)
            np.testing.assert_allclose(y, 2 * expected, rtol=0, atol=np.finfo(dtype).eps * (n + 2) * 8)
            run_gemv(ta, m, n, -1.0, a, x, 1.0, y)
            np.testing.assert_allclose(y, expected, rtol=0, atol=np.finfo(dtype).eps * (n + 2) * 16)


def test_infinity_and_nan_come_through():
    for m, n, k in ((3, 2, 5), (20, 20, 30)):  # own loops and BLAS
        a, b, c = np.ones(m * k, np.float32), np.ones(k * n, np.float32), np.zeros(m * n, np.float32)
        a[0], a[k] = np.nan, np.inf
        run_gemm(0, 0, m, n, k, 1.0, a, b, 0.0, c, 0)
        c = c.reshape(m, n)
        assert np.isnan(c[0]).all()
        assert np.isposinf(c[1]).all()
        assert (c[2:] == k).all()


SCRIPT = """
import numpy as np
from numbagrad.kernels.gemm import gemm
from numbagrad.launch import launch
from numbagrad.native import cache
a = np.arange(900.0, dtype=np.float32); c = np.empty(900, np.float32)
launch(gemm, a, a, c, 30, 30, 30, 0, 1, 1.0)
assert np.array_equal(c.reshape(30, 30), a.reshape(30, 30) @ a.reshape(30, 30).T), c
print(len(cache.compilations), len(cache.loads))
"""


@pytest.mark.skipif(PYTHON_MODE, reason="nothing is compiled")
def test_a_new_process_loads_the_symbol_call_from_disk(tmp_path):
    outputs = []
    for seed in "01":  # with these the set of fast-math flags has another order
        environment = dict(os.environ, NUMBAGRAD_CACHE_DIR=str(tmp_path), PYTHONHASHSEED=seed)
        command = [sys.executable, "-c", SCRIPT]
        outputs.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert int(outputs[0].split()[0]) > 0
    assert outputs[1].split() == ["0", outputs[0].split()[0]]


def test_neither_compiling_nor_a_product_imports_all_of_scipy_linalg(tmp_path):
    script = """
import sys
import numbagrad
from numbagrad import nd
assert nd.dot(nd.ones((2, 3)), nd.ones((3, 2))).asnumpy().tolist() == [[3, 3], [3, 3]]
assert numbagrad.native.cache.compilations
assert not [name for name in sys.modules if name.startswith("scipy.linalg")]
from scipy.linalg import cython_blas, solve
assert solve([[2.0]], [4.0]) == 2 and cython_blas.__pyx_capi__
"""
    environment = {**os.environ, "NUMBAGRAD_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


BOTH = """
import sys
from numbagrad.native import cache, openblas
if sys.argv[1] == "without":
    openblas._library = lambda: (None, "")
import numpy as np
from numbagrad import nd
a = np.arange(900.0, dtype=np.float32).reshape(30, 30)
assert np.array_equal(nd.dot(nd.array(a), nd.array(a)).asnumpy(), a @ a)
x = nd.linalg.trsm(nd.array([[2.0, 0.0], [1.0, 4.0]]), nd.array([[2.0], [9.0]]))
assert x.asnumpy().tolist() == [[1.0], [2.0]]
from numbagrad.native.fortran import wide
print(wide("gemm"), wide("potrf"), len(cache.compilations))
"""


@pytest.mark.skipif(PYTHON_MODE, reason="nothing is compiled")
def test_without_openblas_of_numpy_scipy_has_the_products_and_code_on_disk_is_for_one_of_them(tmp_path):
    """One directory of compiled code serves both: what calls a routine that is not there is compiled again."""
    printed = []
    for which in ("with", "without", "without", "with"):
        command = [sys.executable, "-c", BOTH, which]
        environment = {**os.environ, "NUMBAGRAD_CACHE_DIR": str(tmp_path)}
        printed.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    has_own = bool(openblas.path())
    assert [line.split()[0] for line in printed] == [str(has_own), "False", "False", str(has_own)]
    assert all(line.split()[1] == "False" for line in printed)
    compiled = [int(line.split()[2]) for line in printed]
    assert compiled[0] > 0
    assert (compiled[1] > 0) == has_own
    assert compiled[2] == 0
    assert (compiled[3] > 0) == has_own
