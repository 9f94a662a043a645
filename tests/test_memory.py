"""What must not grow: memory over many steps, and the stack over long graphs. The benchmarks go ten times as far."""

import gc
import os
import pathlib
import platform
import subprocess
import sys
import tracemalloc
import weakref

import numpy as np
import pytest

from numbagrad import autograd, gluon, nd
from numbagrad.gluon import nn

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture
def no_collector():
    """Without the cycle collector: what only it could free would show."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def training_step():
    """A step of workload A: one dense layer, sigmoid binary cross entropy, plain SGD."""
    rng = np.random.default_rng(0)
    x = nd.array(rng.standard_normal((64, 10)))
    y = nd.array(rng.integers(0, 2, 64))
    net = nn.Dense(1)
    net.initialize()
    loss = gluon.loss.SigmoidBinaryCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})

    def step():
        with autograd.record():
            value = loss(net(x), y)
        value.backward()
        trainer.step(64)

    return step


def abandoned_step():
    """Record, and let go of the graph without a backward."""
    x = nd.ones((64, 10))
    x.attach_grad()

    def step():
        with autograd.record():
            (x * x).sum()

    return step


@pytest.mark.parametrize("make", [training_step, abandoned_step])
def test_memory_of_steps(make, no_collector):
    step = make()
    for _ in range(200):
        step()
    tracemalloc.start()
    try:
        step()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(1000):
            step()
        growth = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert growth < 4096, f"{growth} bytes more after 1,000 steps"


@pytest.mark.parametrize("end", ["backward", "drop", "keep"])
def test_memory_of_a_graph_is_freed(end, no_collector):
    """By backward or by dropping the last array, not by the cycle collector; the result itself stays."""
    x = nd.ones((3,))
    x.attach_grad()
    with autograd.record():
        a = x * x
        y = a * a
    kept = [weakref.ref(a), weakref.ref(a._node), weakref.ref(y._node)]
    del a
    if end == "backward":
        y.backward()
        assert x.grad.asnumpy().tolist() == [4, 4, 4]
    elif end == "drop":
        del y
    else:
        y.backward(retain_graph=True)
    alive = [reference() is not None for reference in kept]
    if end == "drop":
        assert alive == [False, False, False]
    elif end == "backward":
        assert alive[:2] == [False, False]
    else:
        assert alive[1:] == [True, True]


CHAIN = """
import sys
from numbagrad import autograd, nd

sys.setrecursionlimit(500)
x = nd.ones((1,))
x.attach_grad()

def chain(length):
    y = x
    for _ in range(length):
        y = -y
    return y

with autograd.record():
    y = chain(200_000)
y.backward()
assert x.grad.asnumpy().tolist() == [1]
assert y.asscalar() == 1

with autograd.record():
    y = chain(100_000)
del y  # a graph that nobody walks: released from the last array down

with autograd.record():
    y = chain(100_000)
(gradient,) = autograd.grad(y, x, create_graph=True)
assert gradient.asscalar() == 1
x = y = gradient = None
print("done")
"""


def test_a_chain_of_many_operations_needs_no_stack():
    """In a process of its own: running out of stack would take this one along."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", CHAIN],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    assert done.stdout == "done\n"


FAULTS = """
import resource
from numbagrad import nd

x = nd.ones((1 << 22,))  # 16 MB

def work():
    for _ in range(10):
        (x * x + x).wait_to_read()

work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="about glibc's malloc")
def test_large_results_get_memory_that_is_there():
    run = subprocess.run(
        [sys.executable, "-c", FAULTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 500, "each of 20 results was faulted in"
