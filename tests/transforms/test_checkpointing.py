"""checkpoint: the same numbers as without, from less memory."""

import tracemalloc

import numpy as np
import pytest

import numbagrad
from numbagrad import autograd, gluon, nd
from numbagrad.errors import MXNetError
from numbagrad.transforms import checkpoint, grad, hessian, hvp


def network():
    nn = gluon.nn
    net = nn.Sequential()
    net.add(nn.Dense(5, activation="tanh"), nn.Dropout(0.5), nn.BatchNorm(), nn.Dense(2))
    net.initialize()
    net(nd.ones((1, 3)))
    return net


def gradients(net, wrapped, x):
    numbagrad.random.seed(3)
    with autograd.record():
        loss = (wrapped(x) ** 2).sum() + nd.random.uniform().sum()
    loss.backward()
    after = nd.random.uniform()
    parameters = net.collect_params().values()
    return [loss, after, *[p.grad() if p.grad_req != "null" else p.data() for p in parameters]]


def test_parameters_dropout_and_running_statistics():
    """All as without, to the bit: the mask, the stream afterwards, statistics that move once."""
    net = network()
    x = nd.random.normal(shape=(4, 3))
    running = [p for p in net.collect_params().values() if p.grad_req == "null"]
    start = [p.data().copy() for p in running]
    plain = [a.asnumpy() for a in gradients(net, net, x)]
    for wrapped in (checkpoint(net), checkpoint(lambda x: checkpoint(net)(x))):
        for p, value in zip(running, start, strict=True):
            p.set_data(value)
        for ours, theirs in zip(gradients(net, wrapped, x), plain, strict=True):
            np.testing.assert_array_equal(ours.asnumpy(), theirs)


def test_a_hybridized_network():
    net = network()
    x = nd.random.normal(shape=(4, 3))
    running = [p for p in net.collect_params().values() if p.grad_req == "null"]
    start = [p.data().copy() for p in running]
    plain = [a.asnumpy() for a in gradients(net, net, x)]
    for block in net:
        block.hybridize()
    for _ in range(2):  # captured, replayed
        for p, value in zip(running, start, strict=True):
            p.set_data(value)
        for ours, theirs in zip(gradients(net, checkpoint(net), x), plain, strict=True):
            np.testing.assert_allclose(ours.asnumpy(), theirs, rtol=1e-5, atol=1e-6)


def test_fewer_bytes_are_kept():
    def segment(x):
        for _ in range(10):
            x = nd.tanh(x)
        return x

    def kept(f):
        x = nd.ones((1000, 100))
        x.attach_grad()
        f(x)
        tracemalloc.start()
        try:
            with autograd.record():
                y = x
                for _ in range(4):
                    y = f(y)
            bytes_kept = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            y.backward()
            return bytes_kept, tracemalloc.get_traced_memory()[1], x.grad.asnumpy()
        finally:
            tracemalloc.stop()

    plain, _, expected = kept(segment)
    small, peak, found = kept(checkpoint(segment))
    np.testing.assert_array_equal(found, expected)
    array = 400_000
    assert plain > 39 * array
    assert small < 4.2 * array  # the results of the four calls
    assert peak < 20 * array  # with one call's own, and gradients


def test_closures_containers_and_arrays_that_come_before():
    w, b = nd.array([2.0, 3.0]), nd.array([0.5, 0.5])
    w.attach_grad()
    b.attach_grad()

    def run(wrap):
        with autograd.record():
            before = w * b  # on the tape, reached by the closure and as an argument

            def f(pair, scale, *, d):
                x, n = pair
                assert n == 3
                return {"y": x * before * scale, "z": [d["b"] * x, 7], "c": nd.ones((2,))}

            found = wrap(f)((before, 3), 2.0, d={"b": b})
            assert found["z"][1] == 7
            assert found["c"]._node is None
            loss = (found["y"] * before).sum() + found["z"][0].sum()
        loss.backward()
        return w.grad.asnumpy(), b.grad.asnumpy()

    for ours, theirs in zip(run(checkpoint), run(lambda f: f), strict=True):
        np.testing.assert_allclose(ours, theirs)
    expected = 6 * np.square([2.0, 3.0]) * 0.125 + 0.25  # 2 (w b)^3 + w b^2
    np.testing.assert_allclose(run(checkpoint)[0], expected)


def test_only_some_results_used_and_arguments_handed_through():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        same, square, twice = checkpoint(lambda x: (x, x * x, x * x))(x)
        loss = (same * 3).sum() + square.sum()
    loss.backward()
    assert x.grad.tolist() == [5.0, 7.0]
    assert twice.tolist() == [1.0, 4.0]


def test_every_order():
    x, v = nd.array([0.5, 2.0], dtype="float64"), nd.array([1.0, 3.0], dtype="float64")
    f = checkpoint(lambda x: (nd.exp(nd.log(x) * 4)).sum())
    np.testing.assert_allclose(grad(f)(x).asnumpy(), [0.5, 32.0])
    np.testing.assert_allclose(np.diag(hessian(f)(x).asnumpy()), [3.0, 48.0])
    np.testing.assert_allclose(grad(lambda x: (hvp(f, (x,), (v,))[0]).sum())(x).asnumpy(), [12.0, 144.0])
    np.testing.assert_allclose(hessian(checkpoint(grad(lambda x: f(x))))(x[1:]).asnumpy(), [[48.0]])


def test_retained_and_added_gradients():
    x = nd.array([2.0])
    x.attach_grad("add")
    with autograd.record():
        y = checkpoint(nd.square)(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 8.0


def test_without_recording_nothing_is_kept():
    x = nd.array([2.0])
    f = checkpoint(nd.square)
    assert f(x)._node is None
    with autograd.record():
        assert f(x)._node is None  # nothing on the tape
    x.attach_grad()
    with autograd.record():
        with autograd.pause():
            assert f(x)._node is None
        assert f(x)._node is not None


def test_what_is_refused():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = checkpoint(nd.square)(x)
    x += 1
    with pytest.raises(MXNetError, match=r"checkpoint\(square\) needs an array of shape \(2,\).*written in place"):
        y.backward()
    lengths = [1, 2]
    with autograd.record():
        y = checkpoint(lambda x: x[: lengths.pop()] * 2)(x)
    with pytest.raises(MXNetError, match="does not return what it returned before"):
        y.backward()

    def fails(x):
        if lengths:
            raise KeyError("again")
        lengths.append(1)
        return x * 2

    with autograd.record():
        y = checkpoint(fails)(x)
    x.grad[:] = 7
    state = nd.random.uniform().item()
    numbagrad.random.seed(3)
    with pytest.raises(KeyError, match="again"):
        y.backward()
    assert x.grad.tolist() == [7.0, 7.0]
    numbagrad.random.seed(3)
    assert nd.random.uniform().item() != state
    assert not autograd.is_recording()


def test_captured():
    net = network()
    x = nd.random.normal(shape=(4, 3))
    wrapped = checkpoint(net)

    def step(x):
        with autograd.record():
            loss = (wrapped(x) ** 2).sum()
        loss.backward()
        return loss

    captured = numbagrad.jit(step, keep_grads=True)
    running = [p for p in net.collect_params().values() if p.grad_req == "null"]
    start = [p.data().copy() for p in running]

    def three(f):
        numbagrad.random.seed(5)
        for p, value in zip(running, start, strict=True):
            p.set_data(value)
        losses = [f(x).item() for _ in range(3)]
        return losses, [
            p.data().asnumpy() if p in running else p.grad().asnumpy() for p in net.collect_params().values()
        ]

    expected, eager = three(step)
    found, ours = three(captured)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    for a, b in zip(ours, eager, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    whole = numbagrad.jit(lambda x: wrapped(x).sum())  # one node on the tape
    with autograd.record():
        y = whole(x)
    y.backward()
