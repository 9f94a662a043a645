import numpy as np
import pytest

from numbagrad.errors import MXNetError
from numbagrad.kernels.gemm import batch_gemm, batch_gemm_into, gemm, gemm_into, integer_gemm, integer_gemm_into
from numbagrad.launch import launch


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gemm_writes_and_gemm_into_adds(dtype):
    a, b = np.arange(6, dtype=dtype), np.arange(12, dtype=dtype)
    c = np.full(8, 99, dtype)
    launch(gemm, a, b, c, 2, 4, 3, 0, 0, 2.0)
    expected = 2 * a.reshape(2, 3) @ b.reshape(3, 4)
    assert (c == expected.reshape(-1)).all()
    launch(gemm_into, a, b, c, 2, 4, 3, 0, 0, 1.0)
    assert (c == 1.5 * expected.reshape(-1)).all()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_are_exact(dtype):
    rng = np.random.default_rng(2)
    for batch, m, n, k in ((1, 5, 4, 6), (3, 2, 3, 4), (2, 3, 2, 0), (1, 1, 1, 1), (0, 2, 2, 2)):
        for ta in (0, 1):
            for tb in (0, 1):
                a = rng.integers(-9, 9, (batch, k, m) if ta else (batch, m, k)).astype(dtype)
                b = rng.integers(-9, 9, (batch, n, k) if tb else (batch, k, n)).astype(dtype)
                expected = (a.swapaxes(1, 2) if ta else a) @ (b.swapaxes(1, 2) if tb else b)
                c = np.full(batch * m * n, 77, dtype)
                arguments = a.reshape(-1), b.reshape(-1), c, batch, m, n, k, ta, tb
                launch(integer_gemm, *arguments)
                assert (c == expected.reshape(-1)).all()
                launch(integer_gemm_into, *arguments)
                assert (c == 2 * expected.reshape(-1)).all()


@pytest.mark.parametrize("sizes", [(2**31, 1, 1), (1, 2**31, 1), (1, 1, 2**31)])
def test_sizes_beyond_int32_are_refused_before_anything_is_written(sizes):
    a = np.ones(1, np.float32)
    for product, tail in ((gemm, (0, 0, 1.0)), (gemm_into, (0, 0, 1.0))):
        with pytest.raises(MXNetError, match="2147483647"):
            launch(product, a, a, a.copy(), *sizes, *tail)
    for product in (batch_gemm, batch_gemm_into):
        with pytest.raises(MXNetError, match="2147483647"):
            launch(product, a, a, a.copy(), 1, *sizes, 0, 0)


def test_roles_tell_out_from_inout():
    assert gemm.roles[:3] == ("in", "in", "out")
    assert gemm_into.roles[:3] == ("in", "in", "inout")


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
