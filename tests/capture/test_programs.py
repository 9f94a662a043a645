"""Whole programs in both modes: the pages of README.md and docs/, the demo, lessons that people bring along.

A page says what it prints; with its networks hybridized, or its captured steps run as they are, it must print the same.
"""

import contextlib
import functools
import pathlib
import re
import runpy

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, gluon, jit, nd
from numbagrad.command import demo
from numbagrad.errors import CaptureError

ROOT = pathlib.Path(mx.__file__).resolve().parent.parent
INSIDE = {"how-it-works.md", "capture.md"}
"""Pages about what differs by mode: nodes, tables, the errors of capture."""

if not (ROOT / "docs").is_dir():
    pytest.skip("the pages are not installed with the package", allow_module_level=True)

docs = runpy.run_path(str(ROOT / "tests" / "test_docs.py"))
TEXTS = {page.name: page.read_text(encoding="utf-8") for page in docs["PAGES"] if page.name not in INSIDE}


def run_page(name, folder, monkeypatch):
    """Run a page, what it prints checked; the arrays that it leaves, by name."""
    monkeypatch.chdir(folder)
    mx.random.seed(20)
    np.random.seed(20)
    space = {"__name__": "__main__"}
    blocks = docs["blocks_of"](TEXTS[name])
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block.language != "python":
            continue
        if ">>> " in block.text:
            docs["run_doctest"](block.text, space, name, block.line)
        else:
            shown = following is not None and following.language == "text" and not following.after.strip()
            docs["run_script"](block, following.text if shown else None, space, name)
    found = {key: value.asnumpy() for key, value in space.items() if isinstance(value, nd.NDArray)}
    for key, value in space.items():
        if isinstance(value, gluon.Block):
            for k, parameter in enumerate(value.collect_params().values()):
                found[f"{key} {k}"] = parameter.data().asnumpy()
    return found


@pytest.mark.parametrize(
    "name", [name for name, text in TEXTS.items() if ".initialize()" in text and "gluon.nn." in text]
)
def test_pages_with_their_networks_hybridized(name, tmp_path, monkeypatch):
    hybridized = []
    plain = gluon.HybridBlock.initialize

    def initialize(self, *args, **kwargs):
        plain(self, *args, **kwargs)
        self.hybridize()
        hybridized.append(self)

    with monkeypatch.context() as patch:
        patch.setattr(gluon.HybridBlock, "initialize", initialize, raising=False)
        run_page(name, tmp_path, patch)
    assert hybridized


@pytest.mark.parametrize("name", [name for name, text in TEXTS.items() if re.search(r"^(@|\w+ = )mx.jit", text, re.M)])
def test_pages_with_their_captured_steps_run_eagerly(name, tmp_path, monkeypatch):
    captured = run_page(name, tmp_path, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(mx, "jit", lambda function: function)
        eager = run_page(name, tmp_path, patch)
    assert captured.keys() == eager.keys()
    assert captured
    for key, expected in eager.items():
        np.testing.assert_array_equal(captured[key], expected, err_msg=key)


# ------------------------------------------------------------------------------------------------- the demo


class Silent(contextlib.nullcontext):
    """A progress bar that shows nothing."""

    def __init__(self, **options):
        super().__init__(self)

    def update(self):
        """One tick."""

    def set_postfix_str(self, text):
        """A text."""


def images(count):
    rng = np.random.default_rng(count)
    labels = rng.integers(0, 10, count)
    return nd.array(rng.uniform(0, 1, (count, 64)) + (np.arange(64) % 10 == labels[:, None])), nd.array(labels)


def test_the_demo_eager_captured_and_hybridized(monkeypatch):
    runs = list(demo.train(images(150), images(40), 3, 1, Silent))
    plain = demo.network

    def hybridized():
        net = plain()
        net.hybridize()
        return net

    monkeypatch.setattr(demo, "network", hybridized)
    runs += demo.train(images(150), images(40), 3, 1, Silent)
    eager = runs[0]
    assert eager.history.losses[-1] < eager.history.losses[0]
    for run in runs[1:]:
        assert demo.difference(eager, run) == "all 15 losses and all parameters are equal, bit for bit"
        assert run.history.test_accuracy == eager.history.test_accuracy


def test_the_step_of_the_demo_captured():
    found = []
    for wrap in (lambda f: f, jit):
        mx.random.seed(1)
        np.random.seed(1)
        net = demo.network()
        loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": demo.LEARNING_RATE})

        def step(x, y, net=net, loss_of=loss_of, trainer=trainer):
            with autograd.record():
                loss = loss_of(net(x), y)
            loss.backward()
            trainer.step(x.shape[0])
            return loss

        call, accuracy = wrap(step), wrap(functools.partial(demo_accuracy, net))
        numbers = []
        for epoch in range(3):
            trainer.set_learning_rate(demo.LEARNING_RATE * (0.1 if epoch == 2 else 1))
            loader = gluon.data.DataLoader(gluon.data.ArrayDataset(*images(150)), batch_size=64, shuffle=True)
            numbers += [call(x, y).asnumpy() for x, y in loader]
            numbers.append(accuracy(*images(40)).asnumpy())
        numbers += [p.data().asnumpy() for p in net.collect_params().values()]
        found.append(numbers)
    for eager, captured in zip(*found, strict=True):
        np.testing.assert_array_equal(eager, captured)


def demo_accuracy(net, x, y):
    return (net(x).argmax(axis=1) == y).mean()


# ------------------------------------------------------------------------------------------------- lessons


class OneUnit(gluon.Block):
    def __init__(self):
        super().__init__()
        self.layer = gluon.nn.Dense(1)

    def forward(self, x):
        return self.layer(x)


@pytest.mark.parametrize("around", [contextlib.nullcontext, autograd.pause])
def test_a_recorded_step_inside_another_scope(around):
    features, labels = nd.array(np.cos(np.arange(300.0)).reshape(50, 6)), nd.array(np.arange(50) % 2, dtype="int32")
    found = []
    for wrap in (lambda f: f, functools.partial(jit, keep_grads=True), jit):
        mx.random.seed(3)
        np.random.seed(3)
        net, loss_of = OneUnit(), gluon.loss.SigmoidBinaryCrossEntropyLoss()
        net.initialize()
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05})

        def step(x, y, net=net, loss_of=loss_of, trainer=trainer):
            with around():
                with autograd.record():
                    loss = loss_of(net(x), y)
                loss.backward()
            trainer.step(x.shape[0])
            return nd.mean(loss)

        call = wrap(step)
        loader = gluon.data.DataLoader(gluon.data.ArrayDataset(features, labels), batch_size=16, shuffle=True)
        found.append([call(x, y).asscalar() for _ in range(4) for x, y in loader])
    assert found[0] == found[1]
    np.testing.assert_allclose(found[2], found[0], rtol=1e-5)
    assert len(found[0]) == 16


def test_gradients_of_a_product_and_of_a_loop_over_values():
    @jit
    def gradient(column):
        with autograd.record():
            square = 2 * nd.dot(column.T, column)
        square.backward()
        return square, column.grad - 4 * column

    for k in (1, 2):
        column = nd.arange(4).reshape(4, 1) * k
        column.attach_grad()
        square, rest = gradient(column)
        assert (square.asscalar(), rest.norm().asscalar()) == (28 * k * k, 0)

    def grow(x):
        y = x * 2
        while y.norm().asscalar() < 1000:
            y = y * 2
        return y if y.sum().asscalar() > 0 else 100 * y

    with pytest.raises(CaptureError, match="test_programs"):
        jit(grow)(nd.array([0.75]))
    start = nd.array([-0.75])
    start.attach_grad()
    with autograd.record():
        end = grow(start)
    end.backward()
    assert start.grad.asscalar() == 100 * 2**11
