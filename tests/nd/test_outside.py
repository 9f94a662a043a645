"""One piece of memory that was handed over twice is one storage: for the tape, and for captured steps."""

import gc

import numpy as np
import pytest

from numbagrad import autograd, jit, nd
from numbagrad.errors import CaptureError, MXNetError
from numbagrad.nd import outside


def from_numpy_twice():
    source = np.arange(4, dtype=np.float32)
    return nd.from_numpy(source), nd.from_numpy(source)


def views_from_numpy():
    source = np.arange(4, dtype=np.float32)
    one, other = source[:], source.reshape(2, 2)
    return nd.from_numpy(one), nd.from_numpy(other).reshape((-1,))


def from_dlpack_twice():
    source = np.arange(4, dtype=np.float32)
    return nd.from_dlpack(source), nd.from_dlpack(source)


def both():
    source = np.arange(4, dtype=np.float32)
    return nd.from_dlpack(source), nd.from_numpy(source)


def there_and_back():
    x = nd.arange(4)
    return x, nd.from_dlpack(nd.to_dlpack_for_write(x))


WAYS = [from_numpy_twice, views_from_numpy, from_dlpack_twice, both, there_and_back]


@pytest.mark.parametrize("twins", WAYS)
def test_twins_share_what_they_hold_and_the_tape_sees_writes(twins):
    x, y = twins()
    x.attach_grad()
    with autograd.record():
        loss = (x * x).sum()
    y[:] = 7.0
    assert x.tolist() == [7.0] * 4
    with pytest.raises(MXNetError, match="written"):
        loss.backward()


@pytest.mark.parametrize("twins", WAYS)
def test_a_twin_of_what_a_captured_step_writes_is_passed_later(twins):
    w = nd.array(np.eye(4))
    found = []
    for wrap in (lambda f: f, jit):
        kept, twin = twins()

        def step(x, kept=kept):
            p = nd.dot(w, nd.ones((4, 1)))  # may be written to `kept` at once, unless that is x
            q = x * 2.0
            kept[:] = p.reshape((4,))
            return q + 0.0

        call = wrap(step)
        seen = []
        for x in (nd.zeros((4,)), nd.ones((4,)), twin, twin, nd.ones((4,))):
            kept[:] = nd.arange(4)
            seen.append(call(x).tolist())
        found.append(seen)
    assert found[0] == found[1]
    assert found[1][2] == [0.0, 2.0, 4.0, 6.0]


@pytest.mark.parametrize("twins", WAYS)
def test_arguments_that_turn_out_to_be_twins(twins):
    def f(x, y):
        a = y + 1.0
        x[:] = 5.0
        return a * y + x

    found = []
    for call in (f, jit(f)):
        seen = [call(nd.ones((4,)), nd.ones((4,))).tolist() for _ in range(2)]
        for _ in range(2):
            seen.append(call(*twins()).tolist())
        found.append(seen)
    assert found[0] == found[1]


def test_a_numpy_argument_on_memory_that_the_step_writes():
    found = []
    for wrap in (lambda f: f, jit):
        source = np.arange(4, dtype=np.float32)
        view = source[1:3]
        kept = nd.from_numpy(source)

        def step(a, kept=kept):
            p = nd.dot(nd.array(np.eye(4)), nd.ones((4, 1)))
            q = nd.array(a) * 2.0
            kept[:] = p.reshape((4,))
            return q + 0.0

        call = wrap(step)
        plain = np.zeros(2, np.float32)
        seen = []
        for a in (plain, plain, view, view, plain):
            kept[:] = nd.arange(4)
            seen.append(call(a).tolist())
        found.append(seen)
    assert found[0] == found[1]
    assert found[1][2] == [2.0, 4.0]


def test_pieces_that_overlap_in_part_cannot_be_captured_together():
    source = np.arange(8, dtype=np.float32)
    x, y = nd.from_dlpack(source[:6]), nd.from_dlpack(source[4:])
    with pytest.raises(CaptureError, match="share memory, which cannot be seen from them"):
        jit(lambda: x[:4] + y)()
    f = jit(lambda a: nd.array(a) + x)
    assert f(np.zeros(6, np.float32)).tolist() == x.tolist()

    @jit
    def g(a):
        x[:] = nd.array(a)

    with pytest.raises(CaptureError, match="share memory, which cannot be seen from them"):
        g(source[:6])
    assert jit(lambda: x + 1)().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    z, inside = nd.from_dlpack(source[:2].copy()), np.arange(4, dtype=np.float32)
    first, last = nd.from_dlpack(inside[:2]), nd.from_dlpack(inside[2:])
    with pytest.raises(MXNetError, match="from_dlpack: the memory overlaps that of 2 other arrays in part; copy it"):
        nd.from_dlpack(inside[1:3])
    assert (first + last + z).tolist() == [2.0, 5.0]


def test_other_pieces_and_empty_ones_are_apart():
    source = np.arange(8, dtype=np.float32)
    x, y = nd.from_dlpack(source[:4]), nd.from_dlpack(source[4:])
    x.attach_grad()
    with autograd.record():
        loss = (x * x).sum()
    y[:] = 0.0
    loss.backward()
    assert x.grad.tolist() == [0.0, 2.0, 4.0, 6.0]
    assert nd.from_dlpack(np.zeros(0, np.float32)).shape == nd.from_numpy(np.zeros(0, np.float32)).shape == (0,)


def test_memory_that_is_gone_is_not_remembered():
    gc.collect()
    kept = [nd.from_numpy(np.zeros(3, np.float32)) for _ in range(10)]
    for _ in range(2000):
        nd.from_dlpack(np.zeros(3, np.float32))
    assert len(outside._starts) == len(outside._pieces) < 300
    assert all(nd.from_dlpack(nd.to_dlpack_for_read(x))._storage is x._storage for x in kept)
