"""Philox against its published vectors, and the rules of streams."""

import numpy as np
import pytest

from numbagrad.kernels import random
from numbagrad.native import rng, vmath
from numbagrad.native.compiler import njit
from numbagrad.native.fingerprint import fingerprint


@njit
def _philox(counter, key):
    return rng.philox(counter[0], counter[1], counter[2], counter[3], key[0], key[1])


@njit
def _wide(a, b):
    return rng.multiply_wide(a, b)


@njit
def _bounded(word, count, key, block, lane):
    return rng.bounded(word, count, key, block, lane)


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_vectors(counter, key, words):
    """The three known answers for philox4x32, 10 rounds, of Random123."""
    assert tuple(map(int, _philox(np.array(counter, np.uint64), np.array(key, np.uint64)))) == words


def test_group_holds_the_words_of_its_blocks():
    """Also across the carry from the first counter word into the second, and with both key words in use."""
    key = 0x299F31D0A4093822
    first = 2**32 - 5
    words = np.zeros(rng.GROUP_WORDS, np.uint32)
    rng.draw_group(np.uint64(key), np.uint64(first), words)
    halves = np.array([key & 0xFFFFFFFF, key >> 32], np.uint64)
    for j in range(rng.GROUP_WORDS):
        block = first + j % rng.GROUP_BLOCKS
        counter = np.array([block & 0xFFFFFFFF, block >> 32, 0, 0], np.uint64)
        assert words[j] == _philox(counter, halves)[j // rng.GROUP_BLOCKS]
    attempt = rng.draw_block(np.uint64(key), np.uint64(first), np.uint64(3), np.uint64(4))
    assert attempt == _philox(np.array([first, 0, 3, 4], np.uint64), halves)


def test_wide_product_is_exact():
    """Against Python's integers."""
    numbers = [0, 1, 2**32 - 1, 2**32, 2**64 - 1, 0x123456789ABCDEF0, 0xFEDCBA9876543210, 3 * 2**62]
    for a in numbers:
        for b in numbers:
            high, low = _wide(np.uint64(a), np.uint64(b))
            assert (int(high) << 64) | int(low) == a * b


def test_bounded_refuses_what_would_be_too_likely():
    """Of the 2^32 words, a count of 3 * 2^30 can use 3 in 4; the others lead to a further attempt."""
    count = 3 * 2**30
    refused = 0
    for word in range(0, 2**32, 2**22 + 1):
        value = int(_bounded(np.uint64(word), np.uint64(count), np.uint64(9), np.uint64(5), np.uint64(0)))
        assert value < count
        if (word * count) % 2**32 < 2**32 % count:
            refused += 1
            again = int(rng.draw_block(np.uint64(9), np.uint64(5), np.uint64(1), np.uint64(0))[0])
            if (again * count) % 2**32 >= 2**32 % count:
                assert value == again * count >> 32
        else:
            assert value == word * count >> 32
    assert 200 < refused < 312  # a quarter of 1024


def test_seeds_of_any_size_and_sign_give_streams_of_their_own():
    """Also, the key of seed 0 is what ``printf '\\0' | b2sum -l 64`` prints, its bytes reversed."""
    seeds = [0, 1, -1, 127, 128, 255, 256, -128, -129, 2**63, 2**64, 2**64 + 1, -(2**64), 2**64 - 1, 10**40, -(10**40)]
    states = [rng.seed_state(seed) for seed in seeds]
    assert len({int(state[0]) for state in states}) == len(seeds)
    assert all(state.dtype == np.uint64 and state.shape == (2,) and state[1] == 0 for state in states)
    assert int(rng.seed_state(0)[0]) == 0x4882EAD1CDD9F694
    assert np.array_equal(rng.seed_state(np.int64(-7)), rng.seed_state(-7))


def test_a_copy_is_apart_and_reseeding_is_in_place():
    """What programs hold is the array itself."""
    state = rng.seed_state(5)
    state[1] = 12
    copy = rng.copy_state(state)
    state[1] = 13
    assert copy.tolist() == [int(state[0]), 12]
    held = state
    rng.reseed(state, 5)
    assert held.tolist() == rng.seed_state(5).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normal_direction_and_radius(dtype):
    """Box and Muller's formula, evaluated from the same words in float64 by NumPy."""
    words = np.zeros(rng.GROUP_WORDS, np.uint32)
    per_group = rng.GROUP_WORDS * 4 // np.dtype(dtype).itemsize
    values = np.zeros(per_group, dtype)
    rng.draw_group(np.uint64(77), np.uint64(0), words)
    words[0], words[per_group // 2 - 1] = 0, 0xFFFFFFFF  # the longest and shortest radius
    rng.to_normal(words, values)
    pairs = per_group // 2
    wide = words.astype(np.float64)
    angles = words[64:].view(np.int32).astype(np.int64)
    if dtype == np.float32:
        radius = np.sqrt(-2 * np.log((np.floor(wide[:64] / 2) + 0.5) / 2**31))
        turns = (angles >> 2) / 2**30
    else:
        u = (np.floor(wide[:32] / 2**5) * 2**26 + np.floor(wide[32:64] / 2**6) + 0.5) / 2**53
        radius = np.sqrt(-2 * np.log(u))
        turns = ((angles[:32] >> 2) + (words[96:] >> 10) / 2**22) / 2**30
        angles = angles[:32]
    sine, cosine = np.sin(turns * np.pi / 2), np.cos(turns * np.pi / 2)
    swap = (angles & 2) != 0
    radius *= np.where(angles & 1, -1.0, 1.0)
    expected = np.concatenate([radius * np.where(swap, sine, cosine), radius * np.where(swap, cosine, sine)])
    assert expected.size == values.size == 2 * pairs
    tolerance = {"rtol": 1e-6, "atol": 1e-7} if dtype == np.float32 else {"rtol": 1e-14, "atol": 1e-15}
    inner = np.setdiff1d(np.arange(2 * pairs), [pairs - 1, 2 * pairs - 1])
    np.testing.assert_allclose(values[inner], expected[inner], **tolerance)
    assert abs(values[pairs - 1]) < 5e-4  # log(1 - 2^-32), for which float32 has 0


def test_cached_kernels_notice_a_change_behind_a_module(monkeypatch):
    """`kernels.random` calls ``rng.to_normal``, which calls ``vmath.log``: a change of either is another kernel."""
    normal = random.normal.compiled.py_func if hasattr(random.normal.compiled, "py_func") else random.normal.compiled
    before = fingerprint(normal)
    assert fingerprint(normal) == before
    with monkeypatch.context() as patch:
        patch.setattr(rng, "to_normal", rng.to_uniform)
        assert fingerprint(normal) != before
    with monkeypatch.context() as patch:
        patch.setattr(vmath, "log", vmath.exp)
        assert fingerprint(normal) != before
