"""Dropout: rates, scale, saved masks, and the edges p = 0 and p = 1."""

import numpy as np
import pytest

from numbagrad.errors import MXNetError
from numbagrad.kernels import dropout as kernels
from numbagrad.launch import launch
from numbagrad.native import rng


def _forward(p, n=100_000, dtype=np.float32, seed=3):
    state = rng.seed_state(seed)
    x = np.linspace(1, 2, n, dtype=dtype)
    y, mask = np.full(n, np.nan, dtype), np.full(n, 9, np.uint8)
    launch(kernels.dropout, state, x, y, mask, n, p)
    return state, x, y, mask


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_and_gradient_follow_the_mask(dtype):
    """Kept values are x / (1 - p), and the VJP scales the head gradient alike."""
    _, x, y, mask = _forward(0.25, 1001, dtype)
    assert set(np.unique(mask)) == {0, 1}
    np.testing.assert_allclose(y, x * mask * (4 / 3), rtol=2 * np.finfo(dtype).eps)
    g, dx = np.linspace(-3, 3, 1001, dtype=dtype), np.full(1001, np.nan, dtype)
    launch(kernels.dropout_vjp, g, mask, dx, 1001, 0.25)
    np.testing.assert_allclose(dx, g * mask * (4 / 3), rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_rate(p):
    """The count of kept elements within 5 standard deviations; the mean of y near that of x."""
    _, x, y, mask = _forward(p)
    assert abs(mask.sum() - (1 - p) * mask.size) < 5 * np.sqrt(p * (1 - p) * mask.size)
    assert abs(y.mean(dtype=float) - x.mean(dtype=float)) < 5 * 1.6 * np.sqrt(p / (1 - p) / y.size)
    assert abs(np.corrcoef(mask[:-1], mask[1:])[0, 1]) < 5 / np.sqrt(mask.size)


def test_nothing_dropped_at_0_and_all_at_1():
    """And both advance the stream as any other rate does."""
    state_0, x, y, mask = _forward(0.0)
    assert np.array_equal(y, x)
    assert mask.all()
    state_1, _, y, mask = _forward(1.0)
    assert not y.any()
    assert not mask.any()
    state, *_ = _forward(0.5)
    assert state_0.tolist() == state_1.tolist() == state.tolist()
    assert int(state[1]) == -(-100_000 // rng.GROUP_WORDS) * rng.GROUP_BLOCKS


def test_dropped_is_zero_whatever_it_was():
    """No NaN comes of infinity times 0."""
    x = np.full(256, np.inf, np.float32)
    y, mask = np.zeros_like(x), np.zeros(256, np.uint8)
    launch(kernels.dropout, rng.seed_state(1), x, y, mask, 256, 0.5)
    assert np.array_equal(y, np.where(mask == 1, np.float32(np.inf), np.float32(0)))


def test_mask_alone_is_the_mask_of_dropout():
    """In the dtype of the caller's array."""
    *_, mask = _forward(0.3, 1000)
    alone = np.full(1000, np.nan, np.float32)
    launch(kernels.dropout_mask, rng.seed_state(3), alone, 1000, 0.3)
    assert np.array_equal(alone, mask)


def test_nothing_to_drop():
    """An empty array takes nothing off the stream."""
    state, *_ = _forward(0.5, 0)
    assert state[1] == 0


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_bad_rate_leaves_all_as_it_was(p):
    """Stream, output and mask."""
    state = rng.seed_state(1)
    x, y, mask = np.ones(4, np.float32), np.full(4, 7, np.float32), np.full(4, 7, np.uint8)
    with pytest.raises(MXNetError, match="rate p"):
        launch(kernels.dropout, state, x, y, mask, 4, p)
    assert state[1] == 0
    assert (y == 7).all()
    assert (mask == 7).all()
