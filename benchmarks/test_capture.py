"""What a capture takes on a warm kernel cache, by depth: ``pytest -n 0 benchmarks/test_capture.py``."""

import numpy as np
import pytest

import numbagrad as mx

WIDTH, ROWS = 8, 4


def deep_step(layers, optimizer):
    """A training step of a network of so many small layers."""
    net = mx.gluon.nn.HybridSequential()
    for _ in range(layers):
        net.add(mx.gluon.nn.Dense(WIDTH, activation="relu", in_units=WIDTH))
    net.initialize()
    trainer = mx.gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 1e-3})
    x = mx.nd.array(np.ones((ROWS, WIDTH), np.float32))

    def step():
        with mx.autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(ROWS)
        return loss

    return step


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("layers", [10, 100, 1000])
def test_capture_of_a_deep_network(benchmark, layers, optimizer):
    step = deep_step(layers, optimizer)
    step()
    mx.jit(step)()  # its code is warm
    benchmark.group = f"capture, {optimizer}"
    captured = []

    def capture():
        captured[:] = [mx.jit(step)]
        captured[0]()

    benchmark.pedantic(capture, rounds=5, iterations=1)
    (variant,) = captured[0]._variants
    kernels = next(iter(variant.passes.values()))[0]
    benchmark.extra_info["kernels"] = kernels
    if benchmark.stats is not None:
        each = benchmark.stats.stats.min / kernels * 1e6
        benchmark.extra_info["microseconds a kernel"] = each
        print(f"\n{layers} layers, {optimizer}: {kernels} kernels, {each:.0f} us each")
