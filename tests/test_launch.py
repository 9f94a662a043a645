"""The one door: kernels run through it, their failures are raised, and who stands at it sees everything."""

import threading

import numpy as np
import pytest

from numbagrad import autograd, launch, nd
from numbagrad.errors import MXNetError
from numbagrad.kernels.kernel import Kernel, kernel
from numbagrad.kernels.strided import add_into, copy, fill


class Watcher:
    """Runs everything and keeps a list of it."""

    def __init__(self):
        self.seen = []

    def kernel(self, kernel, arguments):
        self.seen.append(kernel.name)
        status = kernel.function(*arguments)
        if status:
            raise kernel.failure(status)

    def host(self, effect, before=False, epoch=None):
        self.seen.append(("host", before))
        effect()

    def read(self):
        self.seen.append("read")

    def mine(self):
        return True

    def walking(self, nodes):
        assert nodes

    def start(self):
        self.seen.append("start")

    def stop(self):
        self.seen.append("stop")

    def delivered(self, leaf):
        """Backward has written the gradient of a leaf."""


@pytest.fixture
def watcher(monkeypatch):
    watcher = Watcher()
    monkeypatch.setattr(launch, "mode", watcher)
    return watcher


@kernel("in out size", failures={1: (MXNetError, "first: an element is negative"), 2: (IndexError, "second: too long")})
def picky(x, out, n):
    """``out = x``, of at most three elements, none negative."""
    if n > 3:
        return 2
    for i in range(n):
        if x[i] < 0:
            return 1
    for i in range(n):
        out[i] = x[i]
    return 0


def test_launch_writes_and_returns_nothing():
    x, out = np.array([1.0, 2.0]), np.zeros(2)
    assert launch.launch(picky, x, out, 2) is None
    assert out.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [([1.0, -1.0], MXNetError, "first: an element"), ([1.0] * 4, IndexError, "second: too long")],
)
def test_a_status_is_raised_as_declared_and_nothing_is_written(request, watched, values, kind, message):
    if watched:
        request.getfixturevalue("watcher")
    out = np.zeros(4)
    with pytest.raises(kind, match=message):
        launch.launch(picky, np.array(values), out, len(values))
    assert out.tolist() == [0.0] * 4


def test_kernels_say_what_they_do():
    assert copy.roles == ("in", "out", "size")
    assert add_into.roles == ("in", "inout", "size")
    assert fill.roles == ("scalar", "out", "size")
    assert repr(copy) == "<Kernel copy(in, out, size)>"
    with pytest.raises(ValueError, match=r"unknown argument roles.*input"):
        Kernel("wrong", None, ("input",), {})
    with pytest.raises(AttributeError):
        copy.nothing  # noqa: B018


def test_the_watcher_sees_forward_backward_and_writes(watcher):
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    watcher.seen.clear()
    with autograd.record():
        y = nd.tanh(x * x)
    assert watcher.seen == ["multiply", "tanh"]
    y.backward()
    assert [name for name in watcher.seen if str(name).endswith("_vjp")] == ["tanh_vjp", "multiply_vjp"]
    watcher.seen.clear()
    x += 1
    x[:] = 3
    x[0] = 4
    assert len(watcher.seen) == 3
    assert x._flat.tolist() == [4.0, 3.0]


def test_reading_is_announced(watcher):
    x = nd.array([2.0])
    watcher.seen.clear()
    for read in (x.asnumpy, x.asscalar, x.item, x.tolist, lambda: float(x), lambda: int(x), lambda: bool(x)):
        read()
        assert watcher.seen == ["read"], read
        watcher.seen.clear()
    repr(x)
    np.asarray(x)
    assert watcher.seen == ["read", "read"]


def test_host_effects():
    done = []
    launch.host(lambda: done.append(1))
    assert done == [1]


def test_host_effects_are_handed_to_the_watcher(watcher):
    done = []
    launch.host(lambda: done.append(1))
    launch.host(lambda: done.append(2), before=True)
    assert watcher.seen == [("host", False), ("host", True)]
    assert done == [1, 2]


def test_aside_hides_launches_and_comes_back_after_an_exception(watcher):
    out = np.zeros(2)
    with launch.aside():
        assert launch.mode is None
        launch.launch(fill, 1, out, 2)
        with launch.aside():
            launch.reading()
        assert launch.mode is None
    assert launch.mode is watcher
    assert watcher.seen == ["stop", "start"]
    with pytest.raises(ZeroDivisionError), launch.aside():
        raise ZeroDivisionError
    assert launch.mode is watcher
    assert out.tolist() == [1.0, 1.0]


def test_aside_does_nothing_where_nobody_watches():
    with launch.aside():
        assert launch.mode is None
    assert launch.mode is None


def test_a_kernel_is_compiled_and_run_by_several_threads_at_once():
    @kernel("in out size")
    def triple(x, out, n):
        for i in range(n):
            out[i] = 3 * x[i]
        return 0

    start = threading.Barrier(4)
    found = []

    def work(k):
        out = np.zeros(3)
        start.wait()
        launch.launch(triple, np.arange(3.0) + k, out, 3)
        found.append((k, out.tolist()))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(k, [3.0 * k, 3.0 * k + 3, 3.0 * k + 6]) for k in range(4)]
