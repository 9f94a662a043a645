"""``numbagrad cache``: the compiled kernels on disk."""

import time
from collections.abc import Callable, Iterable
from typing import Any

from numbagrad import autograd, gluon, initializer, nd
from numbagrad.native import cache


def _amount(size: int) -> str:
    return f"{size:,} bytes" if size < 10**4 else f"{size / 10**6:,.1f} MB"


def describe() -> list[tuple[str, str]]:
    """Where the cache is and what it holds, as pairs of a name and its value."""
    found = cache.usage()
    return [
        ("directory", str(found.directory)),
        ("kernels", f"{found.kernels:,}"),
        ("generated modules", f"{found.modules:,}"),
        ("size", _amount(found.size)),
    ]


def info() -> int:
    """Print what :func:`describe` tells."""
    for name, value in describe():
        print(f"{name:18} {value}")
    return 0


def clear() -> int:
    """Remove all entries."""
    found = cache.clear()
    left = cache.usage()
    print(f"removed {found.kernels} kernels and {found.modules} modules, {_amount(found.size)}, from {found.directory}")
    if left.kernels or left.modules:
        print(f"{left.kernels + left.modules} entries could not be removed")
        return 1
    return 0


# ------------------------------------------------------------------------------------------------------- warm

_OPTIMIZERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sgd", {"learning_rate": 0.1}),
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 1e-4}),
    ("adam", {}),
)


def _step(net: Any, loss_of: Any, trainer: Any, batch: Any) -> None:
    images, labels = batch
    with autograd.record():
        loss = loss_of(net(images), labels)
    loss.backward()
    trainer.step(images.shape[0])
    loss.mean().asscalar()
    loss.sum().asscalar()


def _network(activation: str, units: int) -> Any:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Flatten(), gluon.nn.Dense(8, activation=activation), gluon.nn.Dropout(0.5))
    net.add(gluon.nn.Dense(8, use_bias=False), gluon.nn.Activation(activation), gluon.nn.BatchNorm())
    net.add(gluon.nn.LayerNorm(), gluon.nn.Dense(units))
    return net


def _train(activation: str, loss_of: Any, units: int, labels: Any) -> None:
    dataset = gluon.data.ArrayDataset(nd.random.normal(shape=(6, 5)), labels)
    for optimizer, options in _OPTIMIZERS:
        net = _network(activation, units)
        net.initialize(initializer.Xavier())
        trainer = gluon.Trainer(net.collect_params(), optimizer, options)
        # One whole batch and a short one, shuffled.
        for batch in gluon.data.DataLoader(dataset, batch_size=4, shuffle=True):
            _step(net, loss_of, trainer, batch)
        net(nd.random.uniform(shape=(6, 5))).argmax(axis=1)


def _arithmetic() -> None:
    """Update rules and metrics written by hand."""
    x: Any = nd.random.normal(shape=(6, 5))
    w: Any = nd.random.normal(shape=(5, 3))
    b: Any = nd.zeros((3,))
    for parameter in (w, b):
        parameter.attach_grad()
    with autograd.record():
        hidden = nd.relu(nd.dot(x, w) + b)
        loss = ((hidden - 1) ** 2).mean() + (hidden.sum(axis=1) / 2).sum() + nd.softmax(hidden).log().mean()
    loss.backward()
    for parameter in (w, b):
        parameter[:] = parameter - 0.1 * parameter.grad / 4
        parameter -= 0.1 * parameter.grad
    labels = nd.array([0, 1, 2, 0, 1, 2])
    (hidden.argmax(axis=1) == labels).mean().asscalar()
    (hidden.argmax(axis=1) == labels.astype("int32")).sum().asscalar()
    hidden.norm().asscalar()
    nd.exp(hidden)
    nd.arange(4)
    nd.random.randn(2, 3)
    nd.random.randint(0, 2, (4,))
    nd.concat(hidden, hidden, dim=0)
    for initial in (initializer.Uniform(), initializer.Normal(), initializer.One()):
        gluon.nn.Dense(2, in_units=2).initialize(initial)


def _jobs() -> Iterable[tuple[str, Callable[[], None]]]:
    classes = nd.array([0, 1, 2, 0, 1, 2])
    reals = nd.random.normal(shape=(6, 1))
    bits = nd.array([0, 1, 1, 0, 1, 0])
    losses = gluon.loss
    yield "classification", lambda: _train("relu", losses.SoftmaxCrossEntropyLoss(), 3, classes)
    yield (
        "classification, int32 labels",
        lambda: _train("tanh", losses.SoftmaxCrossEntropyLoss(), 3, classes.astype("int32")),
    )
    yield "regression", lambda: _train("sigmoid", losses.L2Loss(), 1, reals)
    yield "absolute loss", lambda: _train("relu", losses.L1Loss(), 1, reals)
    yield "Huber loss", lambda: _train("relu", losses.HuberLoss(), 1, reals)
    yield "yes or no", lambda: _train("relu", losses.SigmoidBinaryCrossEntropyLoss(), 1, bits)
    yield (
        "yes or no, int32 labels",
        lambda: _train("relu", losses.SigmoidBinaryCrossEntropyLoss(), 1, bits.astype("int32")),
    )
    yield "arithmetic by hand", _arithmetic


def warm() -> int:
    """Compile the float32 kernels that common training programs need, by training tiny networks."""
    start = time.perf_counter()
    for name, job in _jobs():
        before = len(cache.compilations)
        job()
        print(f"{name:30} {len(cache.compilations) - before:4} compiled", flush=True)
    compiled, loaded = len(cache.compilations), len(cache.loads)
    seconds = time.perf_counter() - start
    print(f"{compiled} kernels compiled, {loaded} were there; {seconds:.1f} s; {cache.usage().directory}")
    return 0
