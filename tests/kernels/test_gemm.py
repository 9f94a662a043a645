import numpy as np
import pytest

from numbagrad.kernels.gemm import batch_gemm, batch_gemm_into, gemm, gemm_into
from numbagrad.launch import launch


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_gemm_writes_and_gemm_into_adds(dtype):
    a, b = np.arange(6, dtype=dtype), np.arange(12, dtype=dtype)
    c = np.full(8, 99, dtype)
    launch(gemm, a, b, c, 2, 4, 3, 0, 0, 2.0)
    expected = 2 * a.reshape(2, 3) @ b.reshape(3, 4)
    assert (c == expected.reshape(-1)).all()
    launch(gemm_into, a, b, c, 2, 4, 3, 0, 0, 1.0)
    assert (c == 1.5 * expected.reshape(-1)).all()


def test_roles_tell_out_from_inout():
    assert gemm.roles[:3] == ("in", "in", "out") and gemm_into.roles[:3] == ("in", "in", "inout")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batch(dtype):
    rng = np.random.default_rng(0)
    for batch, m, n, k in ((0, 2, 2, 2), (1, 1, 1, 1), (3, 2, 5, 4), (2, 20, 21, 22), (2, 3, 4, 0)):
        for ta in (0, 1):
            for tb in (0, 1):
                a = rng.standard_normal((batch, k, m) if ta else (batch, m, k)).astype(dtype)
                b = rng.standard_normal((batch, n, k) if tb else (batch, k, n)).astype(dtype)
                expected = (a.swapaxes(1, 2) if ta else a) @ (b.swapaxes(1, 2) if tb else b)
                c = np.full(batch * m * n, np.nan, dtype)
                arguments = a.reshape(-1), b.reshape(-1), c, batch, m, n, k, ta, tb
                launch(batch_gemm, *arguments)
                np.testing.assert_allclose(c, expected.reshape(-1), rtol=0, atol=np.finfo(dtype).eps * 50)
                launch(batch_gemm_into, *arguments)
                np.testing.assert_allclose(c, 2 * expected.reshape(-1), rtol=0, atol=np.finfo(dtype).eps * 100)
