"""What cannot be captured says so, names the user's line, and leaves everything as it was; the next call works."""

import threading

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, gluon, jit, nd
from numbagrad import launch as door
from numbagrad.errors import CaptureError
from numbagrad.ops.random import STATE
from numbagrad.optimizer import Optimizer


class World:
    """A network in training, and all that a failed call must leave alone."""

    def __init__(self):
        mx.random.seed(9)
        self.net = gluon.nn.HybridSequential()
        self.net.add(gluon.nn.Dense(4, in_units=3), gluon.nn.BatchNorm(in_channels=4), gluon.nn.Dropout(0.5))
        self.net.initialize()
        self.trainer = gluon.Trainer(self.net.collect_params(), "adam", {"learning_rate": 0.1})
        self.kept = []
        self.x = nd.array(np.cos(np.arange(12.0)).reshape(4, 3))
        self.fails = True
        self.step(self.x, lambda loss: None)

    def step(self, x, bad):
        with autograd.record():
            loss = (self.net(x) ** 2).sum()
        loss.backward()
        self.trainer.step(4)
        bad(loss)
        return loss

    def state(self):
        found = [p.data()._flat.copy() for p in self.net.collect_params().values()]
        found += [
            p.data()._node.gradient._flat.copy() for p in self.net.collect_params().values() if p.grad_req != "null"
        ]
        found += [state._flat.copy() for states in self.trainer._updaters[0].states.values() for state in states]
        versions = [p.data()._storage.version for p in self.net.collect_params().values()]
        flags = [autograd.is_recording(), autograd.is_training(), door.mode is None, self.trainer.optimizer.num_update]
        return [*found, STATE.copy(), np.array(versions), np.array(flags)]


def keep(world):
    return lambda loss: world.kept.append(loss * 2)


def leave_recording_on(loss):
    autograd.set_recording(True)


def raise_something(loss):
    raise KeyError("the user's own")


BAD = {
    "asscalar": (lambda world: lambda loss: loss.asscalar(), CaptureError, "cannot read the value"),
    "asnumpy": (lambda world: lambda loss: loss.asnumpy(), CaptureError, "cannot read the value"),
    "bool": (lambda world: lambda loss: 1 if loss > 0 else 2, CaptureError, "cannot read the value"),
    "float": (lambda world: float, CaptureError, "cannot read the value"),
    "int": (lambda world: int, CaptureError, "cannot read the value"),
    "print": (lambda world: print, CaptureError, "cannot read the value"),
    "numpy": (lambda world: np.asarray, CaptureError, "cannot read the value"),
    "index": (lambda world: lambda loss: loss[(loss > 0).astype(bool)], CaptureError, "cannot read the value"),
    "escape": (keep, CaptureError, "outlives the call"),
    "flags": (lambda world: leave_recording_on, CaptureError, "recording and training as they were"),
    "exception": (lambda world: raise_something, KeyError, "the user's own"),
    "seed": (lambda world: lambda loss: (mx.random.seed(1), loss.asscalar()), CaptureError, "cannot read"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_failed_capture_leaves_everything_as_it_was(what):
    make, kind, message = BAD[what]
    world = World()
    bad = make(world)
    step = jit(lambda x: world.step(x, bad if world.fails else lambda loss: None))
    before = world.state()
    with pytest.raises(kind, match=message) as caught:
        step(world.x)
    for old, new in zip(before, world.state(), strict=True):
        np.testing.assert_array_equal(old, new)
    if kind is CaptureError and what != "flags":
        assert __file__ in str(caught.value)
    world.fails = False
    world.kept.clear()
    ours = [step(world.x).asscalar() for _ in range(3)]
    reached = world.state()
    expected = World()
    assert ours == [expected.step(expected.x, lambda loss: None).asscalar() for _ in range(3)]
    for ours, theirs in zip(reached[:-2], expected.state()[:-2], strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_marks_and_shapes_of_arguments_are_refused_and_put_back():
    def mark(x):
        x.attach_grad()
        return x * 2

    def reshape(x):
        x.shape = (2, 1)
        return x * 2

    def record(x):
        w = nd.ones((2,))
        w.attach_grad()
        with autograd.record():
            x[:] = w * 2

    for function in (mark, reshape, record):
        x = nd.array([1.0, 2.0])
        with pytest.raises(CaptureError):
            jit(function)(x)
        assert x.shape == (2,)
        assert x.grad is None
        assert x._node is None
        assert x.asnumpy().tolist() == [1.0, 2.0]


def test_a_graph_from_before_the_call_is_refused():
    w = nd.array([2.0])
    w.attach_grad()

    def inside(h):
        with autograd.record():
            loss = h * h
        loss.backward()

    with autograd.record():
        h = w * 3
    with pytest.raises(CaptureError, match="recorded before the call"):
        jit(inside)(h)
    h.backward()
    assert w.grad.asscalar() == 3
    with autograd.record():
        h = w * 3
        with pytest.raises(CaptureError, match="computed on the tape before the call"):
            jit(lambda x: x * h)(nd.ones((1,)))


def test_other_arguments_and_results_are_refused():
    with pytest.raises(CaptureError, match="not object"):
        jit(lambda x, o: x)(nd.ones((1,)), object())
    with pytest.raises(CaptureError, match="not object"):
        jit(lambda x: object())(nd.ones((1,)))
    assert door.mode is None


def test_an_optimizer_without_a_table_says_so():
    class Own(Optimizer):
        def update(self, index, weight, grad, state):
            weight[:] = weight - grad

    net = gluon.nn.Dense(1, in_units=2)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), Own())

    @jit
    def step(x):
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(1)

    before = net.weight.data().asnumpy()
    with pytest.raises(CaptureError, match="cannot be captured"):
        step(nd.ones((1, 2)))
    np.testing.assert_array_equal(net.weight.data().asnumpy(), before)


def test_a_label_out_of_range_in_step_fifty():
    net = gluon.nn.Dense(3, in_units=2)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()

    def step(x, label):
        with autograd.record():
            loss = loss_of(net(x), label)
        loss.backward()
        trainer.step(2)
        return loss

    step = jit(step)
    x, good, bad = nd.ones((2, 2)), nd.array([0, 2]), nd.array([0, 3])
    for _ in range(50):
        step(x, good)
    before = net.weight.data().asnumpy()
    for _ in range(2):
        with pytest.raises(mx.MXNetError) as caught:
            step(x, bad)
        assert __file__ in str(caught.value)
        np.testing.assert_array_equal(net.weight.data().asnumpy(), before)
    step(x, good)
    assert not np.array_equal(net.weight.data().asnumpy(), before)
    assert step.report().startswith("step: 1 variant(s)")


def test_two_threads_capture_and_replay_at_once():
    f, g = jit(lambda x: nd.tanh(x) * 2 + x), jit(lambda x: nd.exp(x) - x)
    failures = []

    def work(function, plain, k):
        try:
            for n in range(1, 60):
                x = nd.ones((n % 7 + 1,)) * k
                with autograd.record():
                    pass
                np.testing.assert_array_equal(function(x).asnumpy(), plain(x).asnumpy())
        except Exception as error:
            failures.append(error)

    threads = [
        threading.Thread(target=work, args=(function, function._function, k))
        for k, function in ((0.1, f), (0.2, f), (0.3, g), (0.4, g))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert door.mode is None
