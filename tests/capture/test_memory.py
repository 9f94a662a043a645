"""Replays do not let memory grow, and captured functions that are dropped leave nothing."""

import gc
import tracemalloc

import numpy as np

from numbagrad import autograd, gluon, jit, nd
from numbagrad.tape import RebindEpoch


def a_step(wrap=jit):
    net = gluon.nn.Dense(1, in_units=10)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    loss_of = gluon.loss.L2Loss()

    def step(x, y):
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(x.shape[0])
        return loss

    return wrap(step)


def grown(call, count):
    """Bytes that Python holds more after `count` calls, once it is warm."""
    for _ in range(100):
        call()
    gc.collect()
    tracemalloc.start()
    call()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(count):
        call()
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return after - before


def test_ten_thousand_replays():
    step = a_step()
    x, y = nd.ones((64, 10)), nd.ones((64,))
    assert grown(lambda: step(x, y), 10_000) < 4096
    assert step.report().startswith("step: 1 variant(s)")


def test_results_on_the_tape_are_let_go():
    w = nd.ones((3,))
    w.attach_grad()
    f = jit(lambda x: nd.sigmoid(x * w))
    x = nd.ones((3,))

    def call(backward):
        with autograd.record():
            y = f(x)
        if backward:
            y.backward()

    gc.collect()
    gc.disable()  # no cycles either
    try:
        assert grown(lambda: call(True), 1000) < 4096
        assert grown(lambda: call(False), 1000) < 4096
    finally:
        gc.enable()


def test_captures_that_are_dropped_leave_nothing():
    kept = nd.ones((4,))

    def once():
        assert jit(lambda x: x + kept)(kept).asnumpy()[0] == 2

    once()
    gc.collect()
    known = dict(RebindEpoch.known)
    for _ in range(20):
        once()
    gc.collect()
    assert RebindEpoch.known == known


def test_capturing_again_and_again():
    kept = nd.ones((4,))
    f = jit(lambda x: x + kept)
    x = nd.ones((4,))

    def call():
        kept.attach_grad()  # another place on the tape: captured again
        np.testing.assert_array_equal(f(x).asnumpy(), np.full(4, 2.0))

    assert grown(call, 50) < 20_000
    assert f.report().startswith("<lambda>: 1 variant(s)")
