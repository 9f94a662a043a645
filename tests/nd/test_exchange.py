"""__array__ and DLPack: who shares memory with whom, and what the tape hears of it."""

import numpy as np
import pytest

import numbagrad
from numbagrad import autograd, nd
from numbagrad.errors import CaptureError, MXNetError


def address(values):
    return values.__array_interface__["data"][0]


def test_asarray_copies_unless_told_not_to():
    x = nd.array([[1.0, 2.0]])
    for values in (np.asarray(x), np.array(x), np.asarray(x, copy=True)):
        values[0, 0] = 9
        assert values.dtype == np.float32
    assert x.tolist() == [[1.0, 2.0]]
    assert np.asarray(x, dtype="float64").dtype == np.float64
    view = np.asarray(x, copy=False)
    assert address(view) == x.handle
    x[:] = 5
    assert view.tolist() == [[5.0, 5.0]]
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 1
    assert np.asarray(x, "float32", copy=False).base is not None
    with pytest.raises(ValueError, match="float32 cannot become one of float64 without a copy"):
        np.asarray(x, dtype="float64", copy=False)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"])
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)])
def test_dlpack_shares_memory_both_ways(dtype, shape):
    source = np.ones(shape, dtype)
    x = nd.from_dlpack(source)
    assert (x.shape, x.dtype, x.handle) == (shape, np.dtype(dtype).type, address(source))
    out = np.from_dlpack(x)
    assert (out.shape, out.dtype) == (shape, np.dtype(dtype))
    if x.size:
        assert address(out) == x.handle
        x[:] = 0
        assert not source.any()
        assert not out.any()
    assert x.__dlpack_device__() == (1, 0)


def test_a_view_is_exported_from_its_place():
    x = nd.arange(6).reshape((2, 3))
    assert np.from_dlpack(x[1]).tolist() == [3.0, 4.0, 5.0]
    assert address(np.from_dlpack(x[1])) == x.handle + 12


def test_memory_outlives_who_made_it():
    x = nd.from_dlpack(np.arange(3.0))
    y = np.from_dlpack(x * 1)
    del x
    assert y.tolist() == [0.0, 1.0, 2.0]
    z = nd.from_dlpack(nd.to_dlpack_for_read(nd.array([4.0, 5.0])))
    assert z.tolist() == [4.0, 5.0]


def test_capsules_by_mxnets_names():
    x = nd.array([1.0, 2.0])
    y = nd.from_dlpack(nd.to_dlpack_for_write(x))
    y[:] = 7
    assert x.tolist() == [7.0, 7.0]
    z = nd.from_dlpack(nd.to_dlpack_for_read(x))
    assert z.handle == x.handle
    assert x.to_dlpack_for_read() is not None
    assert nd.from_dlpack(x.to_dlpack_for_write()).handle == x.handle
    with pytest.raises(TypeError, match="to_dlpack_for_read: takes an NDArray"):
        nd.to_dlpack_for_read(np.ones(2))


def test_what_cannot_be_shared_is_copied_or_refused():
    transposed = np.arange(6.0).reshape(2, 3).T
    x = nd.from_dlpack(transposed)
    np.testing.assert_array_equal(x.asnumpy(), transposed)
    x[:] = 0
    assert transposed.any()
    locked = np.ones(2)
    locked.flags.writeable = False
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        y = nd.from_dlpack(locked)
        y[:] = 5
        assert locked.tolist() == [1.0, 1.0]
        with pytest.raises(ValueError, match="read-only"):
            np.from_dlpack(nd.ones((2,)))[0] = 1
    with pytest.raises(TypeError, match="unsupported dtype complex128"):
        nd.from_dlpack(np.ones(2, complex))


def test_for_write_counts_as_a_write():
    x, w = nd.array([1.0, 2.0]), nd.array([3.0, 4.0])
    w.attach_grad()
    for export, refused in ((nd.to_dlpack_for_read, False), (np.from_dlpack, False), (nd.to_dlpack_for_write, True)):
        with autograd.record():
            y = (w * x).sum()
        export(x)
        if refused:
            with pytest.raises(MXNetError, match="written in place"):
                y.backward()
        else:
            y.backward()
            assert w.grad.tolist() == [1.0, 2.0]
    with autograd.record():
        y = w * 2
        for array in (w, y):
            with pytest.raises(MXNetError, match="Inplace operations"):
                nd.to_dlpack_for_write(array)


@pytest.mark.parametrize(
    "export",
    [nd.to_dlpack_for_read, nd.to_dlpack_for_write, np.from_dlpack, np.asarray, lambda x: np.asarray(x, copy=False)],
)
def test_captured_functions_cannot_hand_out_memory(export):
    with pytest.raises(CaptureError, match="cannot read the value"):
        numbagrad.jit(lambda x: (export(x), x * 2)[1])(nd.ones((2,)))
