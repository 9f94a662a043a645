"""Choosing elements by index, range and mask; numbers are MXNet 1.9.1's where its conventions are its own."""

import numpy as np
import pytest

from numbagrad import autograd, nd
from numbagrad.errors import MXNetError
from numbagrad.ops import indexing


def array(values, dtype="float32"):
    return nd.array(values, dtype=dtype)


def variable(values):
    result = array(values)
    result.attach_grad()
    return result


def same(result, expected, dtype="float32"):
    assert result.dtype == np.dtype(dtype).type
    assert result.shape == np.shape(expected)
    np.testing.assert_array_equal(result.asnumpy(), expected)


W = [1, 2, 3, 4]
Y = [[3, 1, 2], [1, 5, 5]]
X = np.arange(24, dtype="float32").reshape(2, 3, 4)

# ----------------------------------------------------------------------------------------------------- by index


def test_take():
    w = array(W)
    same(nd.take(w, array([-1, 10, 2])), [1, 4, 3])
    same(nd.take(w, array([-1, 3, -9, 7, 1.9, -1.5]), mode="wrap"), [4, 4, 4, 4, 2, 4])
    same(nd.take(w, array([-1.5, 1.9, -0.5])), [1, 2, 1])
    same(nd.take(w, array([-1, 3]), mode="raise"), [4, 4])
    index = np.array([[0, 1], [2, 1]])
    same(nd.take(array(X), array(index), axis=1), X[:, index])
    same(nd.take(array(X), array(index, "int32"), axis=-1), X[:, :, index])
    same(array(X).take(array([1])), X[[1]])


def test_take_refuses():
    w = array(W)
    with pytest.raises(IndexError, match="take"):
        nd.take(w, array([0, 4]), mode="raise")
    with pytest.raises(MXNetError, match="mode"):
        nd.take(w, array([0]), mode="nearest")
    with pytest.raises(MXNetError, match="axis"):
        nd.take(w, array([0]), axis=1)
    with pytest.raises(TypeError, match="list"):
        nd.take(w, [0])
    with pytest.raises(TypeError):
        nd.take(w, array([0]), nonsense=1)
    with pytest.raises(IndexError):
        nd.take(array(np.zeros((0, 2))), array([0]))


def test_clipped_indices_send_the_gradient_to_the_clipped_row():
    x = variable(W)
    with autograd.record():
        y = nd.take(x, array([-1, 10, 2, 0])) * array([1, 10, 100, 1000])
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [1001, 0, 100, 10])


def test_second_order_through_take_gather_and_pick():
    values = np.array([[0.5, 2.0, -1.0], [1.5, -0.3, 0.7]])
    for choose, positions in (
        (lambda x: nd.take(x, array([1, 1, 0])), [(1, 1, 1, 1, 1, 1, 0, 0, 0), (0, 1, 2, 0, 1, 2, 0, 1, 2)]),
        (lambda x: nd.gather_nd(x, array([[1, 1, 0], [1, 1, 2]])), [(1, 1, 0), (1, 1, 2)]),
        (lambda x: nd.pick(x, array([2, 0])), [(0, 1), (2, 0)]),
        (lambda x: nd.Embedding(array([1, 1]), x, 2, 3), [(1,) * 6, (0, 1, 2) * 2]),
    ):
        x = variable(values)
        times = np.zeros((2, 3))
        np.add.at(times, tuple(positions), 1.0)
        with autograd.record():
            y = choose(x * x * x * x)
            (first,) = autograd.grad(y, [x], create_graph=True)
            (second,) = autograd.grad(first, [x], create_graph=True)
        np.testing.assert_allclose(first.asnumpy(), times * 4 * values**3, rtol=1e-5)
        np.testing.assert_allclose(second.asnumpy(), times * 12 * values**2, rtol=1e-5)
        second.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), times * 24 * values, rtol=1e-5)


def test_pick():
    y = array(Y)
    same(nd.pick(y, array([0, 2])), [3, 5])
    same(nd.pick(y, array([-1, 4])), [3, 5])
    same(nd.pick(y, array([-1, 4]), mode="wrap"), [2, 5])
    same(nd.pick(y, array([[-1], [4]]), keepdims=True), [[3], [5]])
    same(nd.pick(y, array([[1], [2]])), [1, 5])
    same(nd.pick(y, array([0, 1, 1]), axis=0), [3, 5, 5])
    same(nd.pick(y, array([0.9, 1.9])), [3, 5])
    same(nd.pick(array(W), array([2])), [3])
    same(y.pick(array([1, 0], "int32")), [1, 1])
    same(nd.choose_element_0index(y, array([0, 2])), [3, 5])
    same(nd.batch_take(y, array([-1, 5], "int32")), [3, 5])
    with pytest.raises(MXNetError, match=r"pick.*\(3,\)"):
        nd.pick(y, array([0, 1, 2]))
    with pytest.raises(MXNetError, match="axis"):
        nd.pick(y, array([0]), axis=None)


def test_fill_element_0index():
    a, b = variable(Y), variable([7, 8])
    with autograd.record():
        y = nd.fill_element_0index(a, b, array([0, 2]))
    same(y, [[7, 1, 2], [1, 5, 8]])
    y.backward(array([[1, 2, 3], [4, 5, 6]]))
    np.testing.assert_array_equal(a.grad.asnumpy(), [[0, 2, 3], [4, 5, 0]])
    np.testing.assert_array_equal(b.grad.asnumpy(), [1, 6])


def test_one_hot():
    same(nd.one_hot(array([0, 2, -1, 5, 1.7]), 3), [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 1, 0]])
    same(nd.one_hot(array([[0, 2]]), 3, on_value=5, off_value=-1, dtype="int32"), [[[5, -1, -1], [-1, -1, 5]]], "int32")
    same(nd.one_hot(array([1]), 2, on_value=0.5, dtype="float16"), [[0, 0.5]], "float16")
    same(array([1], "int64").one_hot(2), [[0, 1]])


def test_one_hot_has_no_gradient():
    x = variable([0, 1])
    x.grad[:] = 5
    with autograd.record():
        y = nd.one_hot(x, 2)
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [0, 0])


def test_gather_nd():
    same(nd.gather_nd(array(X), array([[0, 1], [-1, 2]])), [X[0, 2], X[1, 2]])
    same(nd.gather_nd(array(X), array([[1], [2], [3]], "int64")), [23])
    x = variable([[0, 1], [2, 3]])
    with autograd.record():
        y = nd.gather_nd(x, array([[1, 1, 0], [1, 1, 0]])) * array([1, 10, 100])
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [[100, 0], [0, 11]])
    with pytest.raises(IndexError, match="gather_nd"):
        nd.gather_nd(array(X), array([[0, 5]]))
    with pytest.raises(MXNetError, match="gather_nd"):
        nd.gather_nd(array(W), array([[0], [1]]))


def test_scatter_nd():
    same(nd.scatter_nd(array([1, 2, 3]), array([[0, 0, 1]]), shape=(3,)), [2, 3, 0])
    same(nd.scatter_nd(array([[1, 2], [3, 4]]), array([[0, -1]]), shape=(3, 2)), [[1, 2], [0, 0], [3, 4]])
    x = variable([1, 2, 3])
    with autograd.record():
        y = nd.scatter_nd(x, array([[0, 0, 1]]), shape=(3,)) * array([10, 20, 30])
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [0, 10, 20])  # what was overwritten has no effect
    with pytest.raises(IndexError, match="out of the range"):
        nd.scatter_nd(array([1.0]), array([[3]]), shape=(3,))
    with pytest.raises(MXNetError, match="scatter_nd"):
        nd.scatter_nd(array([1.0, 2.0]), array([[0]]), shape=(3,))


def test_embedding():
    weight = variable(np.arange(6).reshape(3, 2))
    with autograd.record():
        y = nd.Embedding(array([0, 9, -1, 1.8]), weight, input_dim=3, output_dim=2)
    same(y, [[0, 1], [4, 5], [0, 1], [2, 3]])
    y.backward(array([[1, 2], [10, 20], [100, 200], [5, 6]]))
    np.testing.assert_array_equal(weight.grad.asnumpy(), [[101, 202], [5, 6], [10, 20]])
    with pytest.raises(MXNetError, match="Embedding"):
        nd.Embedding(array([0]), weight, input_dim=4, output_dim=2)


def test_float16_rows_are_added_in_float32():
    added = indexing.take_add(
        array([[2048], [1], [1]], "float16"), array([0, 0, 0]), first=0, last=1, mode="clip", shape=(2, 1)
    )
    same(added, [[2050], [0]], "float16")  # 2048 + 1 is 2048 in float16


# ------------------------------------------------------------------------------------------------------ by range


def test_slice():
    x = array(X)
    same(nd.slice(x, begin=(0, None, 1), end=(1, None, 3)), X[0:1, :, 1:3])
    same(nd.slice(x, begin=(0, 2), end=(1, None), step=(1, -1)), X[0:1, 2::-1])
    same(
        nd.slice(x, begin=(None, None, -1), end=(None, None, None), step=(None, None, -2)),
        [[[3, 1], [7, 5], [11, 9]], [[15, 13], [19, 17], [23, 21]]],
    )
    same(nd.slice(x, begin=(0, 1), end=(1, 9)), X[0:1, 1:])
    same(nd.slice(x, begin=1, end=2), X[1:2])
    assert nd.slice(x, begin=(0, 5), end=(1, 9)).shape == (1, 0, 4)
    copy = x.slice(begin=0, end=1)
    copy[:] = -1
    same(x, X)
    for bad in (
        {"begin": (0, 0), "end": (1,)},
        {"begin": (0,) * 4, "end": (1,) * 4},
        {"begin": 0, "end": 1, "step": 0},
    ):
        with pytest.raises(MXNetError, match="slice"):
            nd.slice(x, **bad)


def test_slice_axis():
    x = array(X)
    same(nd.slice_axis(x, axis=1, begin=1, end=None), X[:, 1:])
    same(x.slice_axis(axis=-1, begin=-3, end=-1), X[:, :, 1:3])
    for begin, end in ((1, 9), (2, 2), (-4, 1)):
        with pytest.raises(MXNetError, match="slice_axis"):
            nd.slice_axis(x, axis=1, begin=begin, end=end)


def test_slice_like():
    x = array(X)
    same(nd.slice_like(x, array(np.zeros((1, 2, 2)))), X[:1, :2, :2])
    same(x.slice_like(array(np.zeros((1, 2, 2))), axes=(1, -1)), X[:, :2, :2])
    same(nd.slice_like(x, array(np.zeros((1, 2))), axes=0), X[:1])
    with pytest.raises(MXNetError, match="slice_like"):
        nd.slice_like(x, array(np.zeros((5, 2, 2))), axes=(0,))
    with pytest.raises(MXNetError, match="slice_like"):
        nd.slice_like(x, array(np.zeros((1, 2))))


def test_slices_have_gradients_of_both_orders():
    values = np.arange(1.0, 7).reshape(2, 3)
    for cut, region in (
        (lambda x: nd.slice(x, begin=(None, 2), end=(None, None), step=(1, -2)), (slice(None), slice(2, None, -2))),
        (lambda x: nd.slice_axis(x, axis=1, begin=1, end=3), (slice(None), slice(1, 3))),
        (lambda x: nd.slice_like(x, array([[0, 0]])), (slice(0, 1), slice(0, 2))),
        (lambda x: nd.diag(x, k=1), ((0, 1), (1, 2))),
    ):
        x = variable(values)
        inside = np.zeros((2, 3))
        inside[region] = 1
        with autograd.record():
            y = cut(x) ** 3.0
            (first,) = autograd.grad(y, [x], create_graph=True)
        first.backward()
        np.testing.assert_allclose(first.asnumpy(), inside * 3 * values**2, rtol=1e-5)
        np.testing.assert_allclose(x.grad.asnumpy(), inside * 6 * values, rtol=1e-5)


def test_diag():
    same(nd.diag(array(Y)), [3, 5])
    same(nd.diag(array(Y), k=1), [1, 5])
    same(nd.diag(array(Y), k=-1), [1])
    same(nd.diag(array(W), k=-1), np.diag(W, -1))
    same(nd.diag(array(W), k=2), np.diag(W, 2))
    same(nd.diag(array(X)), [[0, 16], [1, 17], [2, 18], [3, 19]])
    same(array(X).diag(k=1, axis1=0, axis2=2), [[1, 14], [5, 18], [9, 22]])
    same(nd.diag(array(X), k=-1, axis1=2, axis2=1), X.diagonal(-1, 2, 1))
    with pytest.raises(MXNetError, match="diag"):
        nd.diag(array(Y), k=-5)
    x = variable(W)
    with autograd.record():
        y = nd.diag(x, k=1)
    y.backward(array(np.arange(25).reshape(5, 5)))
    np.testing.assert_array_equal(x.grad.asnumpy(), [1, 7, 13, 19])


# ------------------------------------------------------------------------------------------------------- by mask


def test_where():
    y = array(Y)
    same(nd.where(array([0, 1]), y, -y), [[-3, -1, -2], [1, 5, 5]])
    same(nd.where(array([[0, 1, 1], [1, 0, 0]]), y, -y), [[-3, 1, 2], [1, -5, -5]])
    same(nd.where(array([0.5, 0]), y, -y), [[3, 1, 2], [-1, -5, -5]])
    same(nd.where(array([1, 0], "int32"), y, -y), [[3, 1, 2], [-1, -5, -5]])
    same(nd.where(array([1e-60, 0], "float64"), y, -y), [[3, 1, 2], [-1, -5, -5]])  # 0 in float32, but not 0
    same(nd.where(array([1, 0], bool), array([1, 2]), 9), [1, 9])
    for bad in ([0, 1, 1], [[1]]):
        with pytest.raises(MXNetError, match="where"):
            nd.where(array(bad), y, y)
    with pytest.raises(TypeError):
        nd.where(array([1, 0]), 1, 2)


def test_where_row_select_on_a_square_takes_rows():
    same(nd.where(array([1, 0]), array([[1, 2], [3, 4]]), array([[5, 6], [7, 8]])), [[1, 2], [7, 8]])


def test_where_routes_the_gradient():
    c, x, y = variable([1, 0]), variable([[1, 2], [3, 4]]), variable([[5, 6], [0, 8]])
    c.grad[:] = 3
    with autograd.record():
        z = nd.where(c, x, 1 / y)
    z.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [[1, 1], [0, 0]])
    np.testing.assert_array_equal(y.grad.asnumpy()[0], [0, 0])
    np.testing.assert_array_equal(c.grad.asnumpy(), [0, 0])


def test_boolean_mask():
    y = array(Y)
    same(nd.boolean_mask(y, array([0, 1])), [[1, 5, 5]])
    assert nd.boolean_mask(y, array([0, 0])).shape == (0, 3)
    same(nd.boolean_mask(array(X), array([0, 1, 1]), axis=1), X[:, 1:])
    same(nd.boolean_mask(y, array([-0.0, 2], "float16")), [[1, 5, 5]])
    with pytest.raises(MXNetError, match="boolean_mask"):
        nd.boolean_mask(y, array([1, 1, 1]))
    x = variable(Y)
    with autograd.record():
        z = nd.boolean_mask(x, array([0, 1]))
    z.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [[0, 0, 0], [1, 1, 1]])


def test_sequence_mask():
    s = variable(np.ones((3, 2, 2)))
    with autograd.record():
        y = nd.SequenceMask(s, array([1, 3]), use_sequence_length=True, value=-1)
    expected = np.ones((3, 2, 2))
    expected[1:, 0] = -1
    same(y, expected)
    y.backward()
    np.testing.assert_array_equal(s.grad.asnumpy(), expected > 0)
    along_1 = np.ones((3, 2, 2))
    along_1[0, 1] = -1
    same(nd.SequenceMask(s, array([1, 3, 2], "int32"), use_sequence_length=True, value=-1, axis=1), along_1)
    same(nd.SequenceMask(s), np.ones((3, 2, 2)))
    with pytest.raises(MXNetError, match="SequenceMask"):
        nd.SequenceMask(s, array([1, 2, 3]), use_sequence_length=True)


# ---------------------------------------------------------------------------------------------------------- out=


def test_out():
    out = array([0, 0, 0])
    assert nd.take(array(W), array([3, 0, 1]), out=out, name="taken") is out
    same(out, [4, 1, 2])
    with pytest.raises(MXNetError, match="out="):
        nd.take(array(W), array([3]), out=out)
    same(out, [4, 1, 2])
    x = variable(W)
    target = array([0, 0])
    with autograd.record():
        nd.slice(x, begin=1, end=3, out=target)
        y = target * target
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [0, 4, 6, 0])


def test_onehot_encode_writes_to_out():
    out = nd.full((2, 3), 9)
    assert nd.onehot_encode(nd.array([0, 2]), out) is out
    assert out.asnumpy().tolist() == [[1, 0, 0], [0, 0, 1]]
    with pytest.raises(MXNetError, match="onehot_encode"):
        nd.onehot_encode(nd.array([0, 2]), nd.zeros((2,)))


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_flat_positions_and_indices(dtype):
    flat = nd.array([22, 41, 37], dtype=dtype)
    index = nd.unravel_index(flat, shape=(7, 6))
    assert index.dtype == np.dtype(dtype)
    assert index.asnumpy().tolist() == [list(row) for row in np.unravel_index([22, 41, 37], (7, 6))]
    assert nd.unravel_index(flat, shape=(-1, 3, 2)).asnumpy()[0].tolist() == [3, 6, 6]
    back = nd.ravel_multi_index(index, shape=(7, 6))
    assert back.dtype == np.dtype(dtype)
    assert back.asnumpy().tolist() == [22, 41, 37]
    with pytest.raises(MXNetError, match="ravel_multi_index"):
        nd.ravel_multi_index(index, shape=(7, 6, 2))
    with pytest.raises(MXNetError, match="unravel_index"):
        nd.unravel_index(flat, shape=(7, -1))
