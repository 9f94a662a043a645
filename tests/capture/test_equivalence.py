"""Eager against captured, to the bit: every registered op, layer, loss and optimiser, and programs of random shapes.

The registries are walked, so that what is added later is covered by being there.
"""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numbagrad as mx
from numbagrad import autograd, gluon, jit, lr_scheduler, nd
from numbagrad.errors import CaptureError
from numbagrad.ops.registry import REGISTRY, Elementwise
from numbagrad.optimizer import Optimizer

READS = {"true_positions"}
"""Ops whose output has a shape that depends on values: Python reads them, so they cannot be captured."""
CHANGES = (1.0, 0.75, 0.5)
"""What the inputs of the first, second and third call are multiplied by."""


def array(values):
    return nd.array(values, dtype="float32" if values.dtype == np.float64 else values.dtype)


def same(ours, theirs, what=""):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), what
        np.testing.assert_array_equal(a, b, err_msg=what)


def as_list(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def calls_of(name):
    """(function, NumPy inputs) for the op: its samples, or values of its domain."""
    op = REGISTRY[name]
    if isinstance(op, Elementwise):
        rng = np.random.default_rng(1)
        return [(op, [rng.uniform(*domain, (2, 3)) for domain in op.domains])]
    return [
        (lambda *arrays, params=sample.params: op(*arrays, **params), list(sample.arrays)) for sample in op.samples()
    ]


def run(function, inputs, mode, wrap):
    """The outputs and gradients of three calls with other values: forward, step, or forward with backward outside."""
    arrays = [x if x is None else array(x) for x in inputs]
    marked = [x for x in arrays if x is not None and x.dtype == np.float32]
    if mode != "forward":
        for x in marked:
            x.attach_grad()

    def step(*given):
        with autograd.record():
            outputs = as_list(function(*given))
        autograd.backward(outputs)
        return outputs

    call = wrap({"forward": function, "step": step, "attached": function}[mode])
    mx.random.seed(5)
    found = []
    for factor in CHANGES:
        for x, values in zip(arrays, inputs, strict=True):
            if x is not None and values.dtype == np.float64:
                x[:] = values * factor
        if mode == "attached":
            with autograd.record():
                outputs = as_list(call(*arrays))
            autograd.backward(outputs)
        else:
            outputs = as_list(call(*arrays))
        found += [y.asnumpy() for y in outputs]
        if mode != "forward":
            found += [x.grad.asnumpy() for x in marked]
    return found


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_ops(name):
    for function, inputs in calls_of(name):
        for mode in ("forward", "step", "attached"):
            try:
                expected = run(function, inputs, mode, lambda f: f)
            except mx.MXNetError:
                with pytest.raises(mx.MXNetError):
                    run(function, inputs, mode, jit)
                continue
            if name in READS:
                with pytest.raises(CaptureError, match="cannot read the value"):
                    run(function, inputs, mode, jit)
            else:
                same(run(function, inputs, mode, jit), expected, f"{name} {mode}")


# --------------------------------------------------------------------------------------------- layers, losses

ARGUMENTS = {
    "Activation": ("relu",),
    "Dense": (3,),
    "Dropout": (0.5,),
    "Embedding": (5, 3),
    "HybridLambda": ("tanh",),
    "Lambda": ("tanh",),
    "LeakyReLU": (0.1,),
}
INPUTS = {"Embedding": np.array([[0, 4], [2, 2]], "int32"), "InstanceNorm": np.cos(np.arange(24.0)).reshape(2, 3, 4)}
LAYERS = sorted(set(gluon.nn.__all__) - {"Block", "HybridBlock"})


def a_net(name, x):
    mx.random.seed(2)
    net = getattr(gluon.nn, name)(*ARGUMENTS.get(name, ()))
    net.initialize()
    net(x)
    return net


def train(net, x, wrap, optimizer="sgd", options=None, steps=4):
    """The losses of some steps, and then every parameter."""
    options = {"learning_rate": 0.1} if options is None else options
    parameters = net.collect_params()
    trainer = gluon.Trainer(parameters, optimizer, options) if len(parameters) else None
    mx.random.seed(3)
    if not len(parameters):
        x.attach_grad()

    def step(x):
        with autograd.record():
            y = net(x)
            loss = (y * y).sum()
        loss.backward()
        if trainer is not None:
            trainer.step(x.shape[0])
        return loss

    step = wrap(step)
    found = [step(x).asnumpy() for _ in range(steps)]
    found += [parameter.data().asnumpy() for parameter in parameters.values()]
    return found if len(parameters) else [*found, x.grad.asnumpy()]


def keeping(function):
    return jit(function, keep_grads=True)


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    x = array(INPUTS.get(name, np.cos(np.arange(12.0)).reshape(4, 3)))
    same(train(a_net(name, x), x.copy(), keeping), train(a_net(name, x), x.copy(), lambda f: f), name)


@pytest.mark.parametrize("name", [n for n in LAYERS if issubclass(getattr(gluon.nn, n), gluon.HybridBlock)])
def test_hybridized_layers(name):
    x = array(INPUTS.get(name, np.cos(np.arange(12.0)).reshape(4, 3)))
    eager, hybrid = a_net(name, x), a_net(name, x)
    hybrid.hybridize()
    same(train(hybrid, x.copy(), lambda f: f), train(eager, x.copy(), lambda f: f), name)


_P = [np.cos(np.arange(12.0) * k).reshape(4, 3) * 0.9 for k in (0.7, 1.3, 2.1)]
TARGETS = {
    "SoftmaxCELoss": [_P[0], np.array([0, 2, 1, 1], "int32")],
    "SoftmaxCrossEntropyLoss": [_P[0], np.array([0, 2, 1, 1], "int32")],
    "TripletLoss": _P,
    "CosineEmbeddingLoss": [_P[0], _P[1], np.array([1.0, -1.0, 1.0, -1.0])],
}


@pytest.mark.parametrize("name", sorted(n for n in gluon.loss.__all__ if n != "Loss"))
@pytest.mark.parametrize("mode", ["step", "attached"])
def test_losses(name, mode):
    inputs = TARGETS.get(name, _P[:2])
    loss = getattr(gluon.loss, name)()
    same(run(loss, inputs, mode, jit), run(loss, inputs, mode, lambda f: f), name)


# -------------------------------------------------------------------------------------------------- training

OPTIONS = {
    "sgd": [
        {"learning_rate": 0.1, "momentum": 0.9},
        {"learning_rate": 0.1, "wd": 0.01},
        {"learning_rate": 0.1, "clip_gradient": 0.05, "momentum": 0.5, "wd": 0.1},
    ]
}
CASES = [(name, options) for name in sorted(Optimizer.registry) for options in [{}, *OPTIONS.get(name, [])]]


def small_net():
    mx.random.seed(4)
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(4, activation="tanh", in_units=3), gluon.nn.Dense(2, in_units=4))
    net.initialize()
    return net


def x43():
    return array(np.cos(np.arange(12.0)).reshape(4, 3))


@pytest.mark.parametrize(("name", "options"), CASES)
def test_optimizers(name, options):
    kind = Optimizer.registry[name]
    if not kind.rules:
        with pytest.raises(CaptureError, match="the optimizer has no kernel for a table"):
            train(small_net(), x43(), keeping, name, dict(options), 1)
        return
    a = train(small_net(), x43(), keeping, name, dict(options), 20)
    same(a, train(small_net(), x43(), lambda f: f, name, dict(options), 20), f"{name} {options}")


def test_adam_over_a_thousand_steps():
    a = train(small_net(), x43(), jit, "adam", {"learning_rate": 0.01}, 1000)
    same(a, train(small_net(), x43(), lambda f: f, "adam", {"learning_rate": 0.01}, 1000))


SCHEDULES = sorted(
    name
    for name, kind in vars(lr_scheduler).items()
    if inspect.isclass(kind) and name.endswith("Scheduler") and name != "LRScheduler"
)
HOW = {
    "FactorScheduler": {"step": 3, "factor": 0.5},
    "MultiFactorScheduler": {"step": [2, 7, 11], "factor": 0.3},
    "PolyScheduler": {"max_update": 15},
    "CosineScheduler": {"max_update": 15, "final_lr": 0.01},
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    def options():
        return {"lr_scheduler": getattr(lr_scheduler, name)(base_lr=0.2, warmup_steps=2, **HOW[name])}

    a = train(small_net(), x43(), keeping, "sgd", options(), 20)
    same(a, train(small_net(), x43(), lambda f: f, "sgd", options(), 20), name)
    a = train(small_net(), x43(), jit, "sgd", options(), 20)  # folded: the product is rounded once
    for ours, theirs in zip(a, train(small_net(), x43(), lambda f: f, "sgd", options(), 20), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-7)


def normed_net():
    mx.random.seed(6)
    net = gluon.nn.HybridSequential()
    net.add(
        gluon.nn.Dense(4, in_units=3),
        gluon.nn.BatchNorm(in_channels=4),
        gluon.nn.Dropout(0.3),
        gluon.nn.Dense(2, in_units=4),
    )
    net.initialize()
    return net


def test_running_statistics_and_dropout_streams_over_two_hundred_steps():
    ours, theirs = normed_net(), normed_net()
    same(train(ours, x43(), keeping, steps=200), train(theirs, x43(), lambda f: f, steps=200))
    same([mx.nd.random.uniform(shape=(3,)).asnumpy()], [continued(theirs)])


def continued(net):
    """The next numbers of the stream after the same steps, eagerly."""
    train(normed_net(), x43(), lambda f: f, steps=200)
    return mx.nd.random.uniform(shape=(3,)).asnumpy()


# --------------------------------------------------------------------------------------------- random programs


@settings(max_examples=25)
@given(
    rows=st.integers(0, 5),
    columns=st.integers(1, 4),
    dtype=st.sampled_from(["float32", "float64"]),
    training=st.booleans(),
    axis=st.sampled_from([None, 0, 1]),
)
def test_a_program_of_any_shape_dtype_and_flag(rows, columns, dtype, training, axis):
    values = np.cos(np.arange(rows * columns) * 1.3).reshape(rows, columns)

    def program(x, w):
        with autograd.record(train_mode=training):
            y = nd.Dropout(nd.tanh(x * w), p=0.5)
            z = (y.sum() if axis is None else y.sum(axis=axis).square().sum()) + y[:, 0:1].sum()
        z.backward()
        return z, y.detach() - w

    found = []
    for call in (jit(program), program):
        mx.random.seed(8)
        x, w = nd.array(values, dtype=dtype), nd.array(np.arange(1.0, columns + 1), dtype=dtype)
        w.attach_grad()
        for factor in CHANGES:
            x[:] = values * factor
            found += [y.asnumpy() for y in (*call(x, w), w.grad)]
    same(found[: len(found) // 2], found[len(found) // 2 :])
