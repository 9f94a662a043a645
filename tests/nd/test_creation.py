"""New arrays: values, dtypes, labels, what is refused."""

import warnings

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, nd

DTYPES = ["float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool"]


@pytest.mark.parametrize("source", [np.float64, np.float32, np.float16, np.int64, np.int16, np.uint8, np.bool_])
def test_array_of_numpy_is_float32_whatever_the_source(source):
    values = np.array([[0, 1, 2], [3, 4, 5]]).astype(source)
    result = nd.array(values)
    assert result.dtype is np.float32
    assert result.asnumpy().tolist() == values.astype(np.float32).tolist()


def test_array_copies_and_keeps_c_order():
    values = np.arange(6, dtype="float32").reshape(2, 3)
    result = nd.array(values)
    turned = nd.array(values.T)
    stepped = nd.array(values[:, ::-2])
    values[:] = -1
    assert result.asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert turned.asnumpy().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert stepped.asnumpy().tolist() == [[2, 0], [5, 3]]


def test_array_takes_read_only_unaligned_and_byte_swapped_memory():
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    unaligned = np.frombuffer(b"x" + np.arange(3.0).tobytes(), np.float64, offset=1)
    swapped = np.arange(3.0).astype(">f8")
    for source in (fixed, unaligned, swapped):
        for dtype in ("float32", "float64", "int32"):
            assert nd.array(source, dtype=dtype).asnumpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", DTYPES)
def test_array_in_every_dtype(dtype):
    result = nd.array([[0, 1], [1, 0]], dtype=dtype)
    assert result.dtype is np.dtype(dtype).type
    assert result.asnumpy().tolist() == np.array([[0, 1], [1, 0]], dtype).tolist()


def test_array_of_an_ndarray_keeps_its_dtype_and_is_recorded():
    x = nd.array([1, 2], dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = nd.array(x) * 3
    y.backward()
    assert y.dtype is np.float64
    assert x.grad.asnumpy().tolist() == [3, 3]
    assert nd.array(nd.array([1.5]), dtype="int32").asnumpy().tolist() == [1]


def test_array_of_ndarrays_stacks_them():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = nd.array([x, x * 2])
    y.backward()
    assert y.asnumpy().tolist() == [[1, 2], [2, 4]]
    assert x.grad.asnumpy().tolist() == [3, 3]


@pytest.mark.parametrize(
    "source",
    [[[1, 2], [3]], "abc", ["a"], None, object(), [1 + 2j], [[1], "b"]],
    ids=["ragged", "str", "strs", "None", "object", "complex", "mixed"],
)
def test_what_is_no_array_of_numbers(source):
    with pytest.raises(TypeError, match="array"):
        nd.array(source)


def test_a_list_of_ndarrays_of_several_shapes_is_refused():
    with pytest.raises(TypeError, match="one shape"):
        nd.array([nd.ones(2), nd.ones(3)])


def test_numbers_beyond_float32_become_infinite_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(nd.array(np.array([1e300])).asscalar())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [3, (2, 3), (), (0, 2)])
def test_constants(shape, dtype):
    for function, value in ((nd.zeros, 0), (nd.ones, 1)):
        result = function(shape, dtype=dtype)
        expected = np.full(shape, value, dtype)
        assert result.shape == expected.shape
        assert result.dtype is expected.dtype.type
        assert (result.asnumpy() == expected).all()
    result = nd.full(shape, 1, dtype=dtype)
    assert (result.asnumpy() == np.full(shape, 1, dtype)).all()


def test_full_broadcasts_and_converts():
    assert nd.full((2, 2), nd.array([1, 2])).asnumpy().tolist() == [[1, 2], [1, 2]]
    assert nd.full((2,), 2.7, dtype="int32").asnumpy().tolist() == [2, 2]
    assert nd.full((2,), 0.1, dtype="float16").asnumpy().tolist() == [np.float16(0.1)] * 2
    assert nd.full((1,), 2**62 + 1, dtype="int64").asnumpy().tolist() == [2**62 + 1]


def test_likes_keep_shape_and_dtype_and_have_no_gradient():
    x = nd.array([[1, 2]], dtype="float64")
    x.attach_grad()
    x.grad[:] = 5
    with autograd.record():
        y = nd.zeros_like(x) + nd.ones_like(x) + nd.full_like(x, 3)
    y.backward()
    assert y.dtype is np.float64
    assert y.asnumpy().tolist() == [[4, 4]]
    assert x.grad.asnumpy().tolist() == [[0, 0]]


def test_out():
    x = nd.array([9, 9], dtype="int32")
    assert nd.ones(2, out=x) is x
    assert x.asnumpy().tolist() == [1, 1]
    with pytest.raises(mx.MXNetError, match=r"\(3,\).*\(2,\)"):
        nd.ones(3, out=x)
    assert x.asnumpy().tolist() == [1, 1]
    with pytest.raises(TypeError, match="NDArray"):
        nd.ones(2, out=np.zeros(2))


def test_sequences():
    # MXNet 1.9.1: arange(2, 3, 0.3), arange(3, repeat=2), eye(2, 3, 1), linspace(0, 1, 3, endpoint=False)
    np.testing.assert_allclose(nd.arange(2, 3, 0.3).asnumpy(), [2, 2.3, 2.6, 2.9], rtol=1e-6)
    assert nd.arange(3, repeat=2).asnumpy().tolist() == [0, 0, 1, 1, 2, 2]
    assert nd.eye(2, 3, 1).asnumpy().tolist() == [[0, 1, 0], [0, 0, 1]]
    np.testing.assert_allclose(nd.linspace(0, 1, 3, endpoint=False).asnumpy(), [0, 1 / 3, 2 / 3], rtol=1e-6)
    assert nd.arange(5, 0, -2, dtype="int64").asnumpy().tolist() == [5, 3, 1]
    assert nd.arange(0).shape == (0,)
    assert nd.eye(2).asnumpy().tolist() == [[1, 0], [0, 1]]
    with pytest.raises(mx.MXNetError, match="step"):
        nd.arange(1, 2, 0)


def test_labels():
    assert nd.zeros(2).context == mx.cpu()
    assert nd.array([1], ctx=mx.cpu(1)).context == mx.cpu(1)
    with mx.cpu(2):
        assert nd.array([1]).context == mx.cpu(2)
        assert nd.ones(1).context == mx.cpu(2)
        assert nd.random.uniform(shape=2).context == mx.cpu(2)
    for make in (lambda c: nd.zeros(2, ctx=c), lambda c: nd.array([1], ctx=c), lambda c: nd.arange(3, ctx=c)):
        with pytest.raises(mx.MXNetError, match=r"gpu\(0\)"):
            make(mx.gpu(0))


def test_from_numpy_shares_memory_and_locks_the_source():
    values = np.arange(4.0, dtype="float32").reshape(2, 2)
    x = nd.from_numpy(values)
    assert not values.flags.writeable
    x[:] = 7
    assert values.tolist() == [[7, 7], [7, 7]]
    assert nd.from_numpy(np.array(3.0)).shape == ()
    with pytest.raises(ValueError, match="contiguous"):
        nd.from_numpy(np.zeros((2, 3)).T)
    other = np.zeros(2)
    nd.from_numpy(other, zero_copy=False)[:] = 1
    assert other.tolist() == [0, 0]


def test_moveaxis_and_histogram():
    x = np.arange(24.0).reshape(2, 3, 4)
    for source, target in ((0, 2), (2, 0), ((0, 1), (2, 0)), (-1, 0)):
        got = nd.moveaxis(nd.array(x), source, target).asnumpy()
        assert (got == np.moveaxis(x, source, target)).all()
    with pytest.raises(ValueError, match="moveaxis"):
        nd.moveaxis(nd.array(x), (0, 0), (1, 2))
    counts, edges = nd.histogram(nd.array([1, 2, 3]), bins=2, range=(0, 4))  # MXNet 1.9.1: [1, 2], [0, 2, 4]
    assert counts.asnumpy().tolist() == [1, 2]
    assert edges.asnumpy().tolist() == [0, 2, 4]


def test_shapes_and_keywords_are_checked():
    with pytest.raises(mx.MXNetError, match="negative"):
        nd.zeros((2, -1))
    with pytest.raises(TypeError, match="colour"):
        nd.zeros(2, colour=1)
    with pytest.raises(TypeError, match="dtype"):
        nd.zeros(2, dtype="complex64")
    with pytest.raises(mx.MXNetError, match="row_sparse"):
        nd.zeros(2, stype="row_sparse")


@pytest.mark.parametrize(("source", "target"), [(3, 0), (-4, 0), (0, 5), (0, (0, 1)), ((0, 1), (1, 1))])
def test_moveaxis_refuses_axes_that_are_not_there(source, target):
    with pytest.raises(ValueError, match="moveaxis"):
        nd.moveaxis(nd.zeros((1, 2, 3)), source, target)


def test_from_numpy_shares_again_what_it_has_locked():
    values = np.zeros((2, 3), "float32")
    nd.from_numpy(values)
    x = nd.from_numpy(values)
    x[1, 2] = 5
    assert values[1, 2] == 5
    with pytest.raises(ValueError, match="read-only"):
        values[0, 0] = 1
    locked = np.zeros(2, "float32")
    locked.flags.writeable = False  # by its owner: a copy keeps it as it is
    nd.from_numpy(locked)[:] = 1
    assert locked.tolist() == [0, 0]
