"""Strided copies against NumPy's own views, made with the same strides."""

import numpy as np
import pytest

from numbagrad.kernels import strided
from numbagrad.launch import launch

RNG = np.random.default_rng(0)


def offset_and_strides(view, base):
    where = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return where // base.itemsize, tuple(step // base.itemsize for step in view.strides)


def layout_of(view, base):
    offset, strides = offset_and_strides(view, base)
    return strided.layout(offset, view.shape, strides)


VIEWS = {
    "whole": lambda a: a,
    "transpose": lambda a: a.transpose(2, 1, 0),
    "rotated": lambda a: a.transpose(1, 2, 0),
    "swapped": lambda a: a.transpose(0, 2, 1),
    "flip": lambda a: a[::-1, :, ::-1],
    "slice": lambda a: a[1:, 2:5, 1:],
    "steps": lambda a: a[::2, ::-3, 1::2],
    "one": lambda a: a[1:2, 3:4, 2:3],
    "scalar": lambda a: a[1, 3, 2, ...],
    "column": lambda a: a[:, :, 1],
    "row": lambda a: a[0, 2],
    "empty": lambda a: a[2:2],
    "diagonal": lambda a: np.lib.stride_tricks.as_strided(a[0], (4,), (a.strides[1] + a.strides[2],)),
}
SHAPES = [(3, 7, 5), (2, 40, 37), (33, 4, 65)]


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reading_and_writing_a_view(name, shape):
    a = RNG.normal(size=shape).astype(np.float32)
    view = VIEWS[name](a)
    meta = layout_of(view, a)
    assert meta.count == view.size
    out = np.full(view.size, 99, np.float32)
    launch(strided.gather, a.ravel(), out, *meta)
    np.testing.assert_array_equal(out, view.ravel())

    fresh = RNG.normal(size=view.shape).astype(np.float32)
    flat = np.ascontiguousarray(fresh).ravel()
    for kernel, value in ((strided.scatter, fresh), (strided.scatter_add, view + fresh)):
        target, expected = a.copy(), a.copy()
        VIEWS[name](expected)[...] = value
        launch(kernel, flat, target.reshape(-1), *meta)
        np.testing.assert_array_equal(target, expected)
    target, expected = a.copy(), a.copy()
    VIEWS[name](expected)[...] = 5
    launch(strided.fill_strided, np.array([5], np.float32), target.reshape(-1), *meta)
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize(
    ("source", "shape"),
    [((6,), (4, 6)), ((4, 1), (4, 6)), ((1,), (4, 6)), ((4, 6), (4, 6)), ((6,), (3, 1, 6)), ((5, 1, 6), (5, 4, 6)),
     ((4, 1), (5, 4, 6)), ((1,), (5, 4, 6)), ((4, 6), (5, 4, 6))],
    ids=str,
)  # fmt: skip
def test_broadcasts_and_their_sums(source, shape):
    a = RNG.integers(0, 99, source).astype(np.float32)
    broad = np.broadcast_to(a, shape)
    meta = strided.layout(0, shape, tuple(step // 4 for step in broad.strides))
    out = np.empty(broad.size, np.float32)
    launch(strided.gather, a.ravel(), out, *meta)
    np.testing.assert_array_equal(out.reshape(shape), broad)
    sums = np.zeros(a.size, np.float32)
    launch(strided.scatter_add, out, sums, *meta)
    np.testing.assert_array_equal(sums.reshape(source), a * (broad.size // a.size))


@pytest.mark.parametrize("size", [(1, 1), (16, 16), (31, 33), (256, 40), (100, 300)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "uint8", "bool"])
def test_transposes_of_every_size(size, dtype):
    a = RNG.integers(0, 2, size).astype(dtype)
    out = np.empty(a.size, dtype)
    launch(strided.gather, a.ravel(), out, *strided.layout(0, size[::-1], (1, size[1])))
    np.testing.assert_array_equal(out.reshape(size[::-1]), a.T)


def test_collapse_leaves_no_axis_too_many():
    assert strided.collapse((2, 3, 4), (12, 4, 1)) == ((24,), (1,))
    assert strided.collapse((2, 1, 4), (4, 77, 1)) == ((8,), (1,))
    assert strided.collapse((2, 3, 4), (4, 8, 1)) == ((2, 3, 4), (4, 8, 1))
    assert strided.collapse((5, 2, 3), (0, 0, 0)) == ((30,), (0,))
    assert strided.collapse((5, 2, 3), (0, 3, 1)) == ((5, 6), (0, 1))
    assert strided.collapse((4, 3), (-3, -1)) == ((12,), (-1,))
    assert strided.collapse((), ()) == ((1,), (1,))
    assert strided.collapse((1, 1), (5, 5)) == ((1,), (1,))
    assert strided.collapse((3, 0, 2), (0, 2, 1)) == ((0,), (1,))


def test_contiguous_strides_and_the_layout_array():
    assert strided.contiguous_strides((2, 3, 4)) == (12, 4, 1)
    assert strided.contiguous_strides(()) == ()
    meta, ndim, count = strided.layout(7, (2, 3, 4), (1, 8, 2))  # the last two axes are one run of step 2
    assert (ndim, count, meta.tolist(), meta.dtype) == (2, 24, [7, 2, 12, 1, 2], np.int64)


def test_flat_kernels():
    x = RNG.normal(size=37).astype(np.float32)
    out = np.empty(37, np.float32)
    launch(strided.copy, x, out, 37)
    np.testing.assert_array_equal(out, x)
    launch(strided.add_into, x, out, 37)
    np.testing.assert_array_equal(out, x + x)
    launch(strided.scale_into, x, out, -0.5, 37)
    np.testing.assert_array_equal(out, x + x - np.float32(0.5) * x)
    launch(strided.fill, 0.1, out, 37)
    np.testing.assert_array_equal(out, np.full(37, 0.1, np.float32))
    launch(strided.fill, 3.0, out, 0)
    assert out[0] == np.float32(0.1)
    truth = np.zeros(5, bool)
    launch(strided.fill, 1.0, truth, 5)
    assert truth.all()
    ints = np.empty(2, np.int64)
    launch(strided.fill, 2**62 + 1, ints, 2)  # an int keeps all its bits
    assert ints.tolist() == [2**62 + 1] * 2


@pytest.mark.parametrize(("outer", "inner"), [(1, 1), (3, 1), (1, 9), (4, 5), (0, 3), (2, 0)])
def test_parts_of_an_axis(outer, inner):
    parts = [RNG.normal(size=(outer, length, inner)).astype(np.float32) for length in (2, 0, 5)]
    whole = np.full((outer, 7, inner), 50, np.float32)
    start = 0
    for part in parts:
        launch(strided.insert, part.ravel(), whole.reshape(-1), outer, part.shape[1], 7, start, inner)
        start += part.shape[1]
    np.testing.assert_array_equal(whole, np.concatenate(parts, 1))
    out = np.full(outer * 3 * inner, 9, np.float32)
    launch(strided.extract, whole.ravel(), out, outer, 3, 7, 2, inner)
    np.testing.assert_array_equal(out.reshape(outer, 3, inner), whole[:, 2:5])
    launch(strided.extract_add, whole.ravel(), out, outer, 3, 7, 2, inner)
    np.testing.assert_array_equal(out.reshape(outer, 3, inner), 2 * whole[:, 2:5])
    expected = whole.copy()
    expected[:, 2:5] += out.reshape(outer, 3, inner)
    launch(strided.insert_add, out, whole.reshape(-1), outer, 3, 7, 2, inner)
    np.testing.assert_array_equal(whole, expected)
