"""Indexing kernels against NumPy's take, put and fancy indexing."""

import numpy as np
import pytest

from numbagrad.kernels import index as kernels
from numbagrad.launch import launch

RNG = np.random.default_rng(0)
MODES = {kernels.CLIP: "clip", kernels.WRAP: "wrap", kernels.RAISE: "raise"}
SHAPES = [(1, 6, 1), (3, 5, 1), (1, 4, 9), (2, 7, 3), (2, 1, 2)]


def positions(n, count, mode):
    low, high = (-n, n) if mode == kernels.RAISE else (-3 * n, 3 * n)
    return RNG.integers(low, high, count)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_take_its_vjp_and_assign(shape, mode):
    outer, n, inner = shape
    x = RNG.integers(0, 99, shape).astype(np.float32)
    for count in (0, 1, 11):
        index = positions(n, count, mode)
        out = np.full(outer * count * inner, 7, np.float32)
        launch(kernels.take, x.ravel(), index, out, outer, n, inner, count, mode)
        expected = np.take(x, index, 1, mode=MODES[mode])
        np.testing.assert_array_equal(out.reshape(outer, count, inner), expected)

        resolved = np.take(np.arange(n), index, mode=MODES[mode])
        dx, expected = x.copy(), x.copy()
        np.add.at(expected, (slice(None), resolved), out.reshape(outer, count, inner))
        launch(kernels.take_add, out, index, dx.reshape(-1), outer, n, inner, count, mode)
        np.testing.assert_array_equal(dx, expected)

        fresh = RNG.normal(size=out.size).astype(np.float32)
        written, expected = x.copy(), x.copy()
        for k, where in enumerate(resolved):
            expected[:, where] = fresh.reshape(outer, count, inner)[:, k]
        launch(kernels.assign, fresh, index, written.reshape(-1), outer, n, inner, count, mode)
        np.testing.assert_array_equal(written, expected)


@pytest.mark.parametrize("bad", [4, -5, 2**62, -(2**63)])
def test_nothing_is_written_where_an_index_is_refused(bad):
    x = np.arange(8, dtype=np.float32)
    index = np.array([0, 1, bad])
    out = np.full(6, 7, np.float32)
    for kernel in (kernels.take, kernels.take_add, kernels.assign):
        source, target = (x, out) if kernel is kernels.take else (out, x.copy())
        before = target.copy()
        with pytest.raises(IndexError, match="out of the range"):
            launch(kernel, source, index, target, 2, 4, 1, 3, kernels.RAISE)
        np.testing.assert_array_equal(target, before)
    flat = np.array([1, 2, 3])
    with pytest.raises(IndexError):
        launch(kernels.flat_index, index, flat, 3, 4, 10)
    assert flat.tolist() == [1, 2, 3]
    with pytest.raises(IndexError):
        launch(kernels.pick, x[:4], np.array([bad]), out, 1, 4, 1, kernels.RAISE)
    with pytest.raises(IndexError):
        launch(kernels.pick_add, out[:1].copy(), np.array([bad]), x[:4].copy(), 1, 4, 1, kernels.RAISE)
    assert (out == 7).all()


@pytest.mark.parametrize("mode", MODES)
def test_no_index_fits_an_empty_axis(mode):
    nothing = np.empty(0, np.float32)
    out = np.full(1, 7, np.float32)
    with pytest.raises(IndexError):
        launch(kernels.take, nothing, np.zeros(1, np.int64), out, 1, 0, 1, 1, mode)
    assert out[0] == 7
    launch(kernels.take, nothing, np.empty(0, np.int64), nothing.copy(), 1, 0, 1, 0, mode)


def test_flat_positions_of_several_index_arrays():
    shape = (4, 5, 6)
    indices = [RNG.integers(-n, n, 20) for n in shape]
    flat = np.zeros(20, np.int64)
    for index, n, stride in zip(indices, shape, (30, 6, 1), strict=True):
        launch(kernels.flat_index, index, flat, 20, n, stride)
    wrapped = [index % n for index, n in zip(indices, shape, strict=True)]
    np.testing.assert_array_equal(flat, np.ravel_multi_index(wrapped, shape))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_pick_and_its_vjp(shape, mode):
    outer, n, inner = shape
    x = RNG.normal(size=shape).astype(np.float32)
    index = positions(n, outer * inner, mode).reshape(outer, 1, inner)
    resolved = np.take(np.arange(n), index, mode=MODES[mode])
    out = np.full(outer * inner, 7, np.float32)
    launch(kernels.pick, x.ravel(), index.ravel(), out, outer, n, inner, mode)
    np.testing.assert_array_equal(out.reshape(index.shape), np.take_along_axis(x, resolved, 1))
    dx, expected = x.copy(), x.copy()
    np.put_along_axis(expected, resolved, np.take_along_axis(x, resolved, 1) + out.reshape(index.shape), 1)
    launch(kernels.pick_add, out, index.ravel(), dx.reshape(-1), outer, n, inner, mode)
    np.testing.assert_array_equal(dx, expected)


def test_one_hot_rows_out_of_range_stay_dark():
    index = np.array([1, 0, -1, 3, 2])
    out = np.full(15, 9, np.float32)
    launch(kernels.one_hot, index, out, 5, 3, 2.5, -1.0)
    expected = np.full((5, 3), -1.0)
    expected[0, 1] = expected[1, 0] = expected[4, 2] = 2.5
    np.testing.assert_array_equal(out.reshape(5, 3), expected)


@pytest.mark.parametrize("dtype", ["bool", "float32"])
def test_positions_of_a_mask(dtype):
    for n, share in ((0, 0.5), (1, 0.0), (1, 1.0), (100, 0.3), (100, 0.0), (100, 1.0)):
        mask = (RNG.random(n) < share).astype(dtype)
        count = np.full(1, -1)
        launch(kernels.count_true, mask, count, n)
        assert count[0] == np.count_nonzero(mask)
        found = np.full(count[0], -1)
        launch(kernels.true_positions, mask, found, n, int(count[0]))
        np.testing.assert_array_equal(found, np.flatnonzero(mask))
