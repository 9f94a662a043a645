"""The passes: each alone, and any subset of them leaves results as they are."""

import itertools
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numbagrad as mx
from numbagrad import autograd, gluon, jit, nd
from numbagrad.capture import fusion
from numbagrad.capture.passes import PASSES
from numbagrad.errors import CaptureError

SUBSETS = [names for k in range(len(PASSES) + 1) for names in itertools.combinations(PASSES, k)]


@pytest.fixture(autouse=True, scope="module")
def every_size():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fusion, "FUSED_FROM", 1)
        yield


class Written(gluon.Block):
    """A layer whose rows are not those of Dense."""

    def __init__(self, units):
        super().__init__()
        self.w = self.params.get("weight", shape=(units, units))
        self.b = self.params.get("bias", shape=(units,), init="zeros")

    def forward(self, x):
        y = nd.relu(nd.dot(x, self.w.data()) + self.b.data())
        return nd.dot(y, self.w.data()) * 0.5


def trained(wrap, widths=(3, 4, 2), steps=5, rows=4, **options):
    """Losses and parameters of a small network after some steps."""
    mx.random.seed(1)
    net = gluon.nn.Sequential()
    for units_in, units in itertools.pairwise(widths):
        net.add(gluon.nn.Dense(units, activation="tanh", in_units=units_in))
    net.add(Written(widths[-1]))
    net.initialize(mx.init.Uniform(0.5))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, **options})

    def step(x):
        with autograd.record():
            loss = ((net(x) - 0.25) ** 2 * 0.5).sum()
        loss.backward()
        trainer.step(x.shape[0])
        return loss

    call = wrap(step)
    x = nd.array(np.cos(np.arange(rows * widths[0]) * 1.1).reshape(rows, widths[0]))
    found = [call(x).asnumpy() for _ in range(steps)]
    return found + [p.data().asnumpy() for p in net.collect_params().values()], net, call, x


@settings(max_examples=12)
@given(
    passes=st.sampled_from(SUBSETS),
    widths=st.lists(st.integers(1, 5), min_size=2, max_size=4),
    rows=st.integers(1, 6),
    momentum=st.sampled_from([0.0, 0.9]),
    wd=st.sampled_from([0.0, 0.01]),
)
def test_any_subset_leaves_results_as_they_are(passes, widths, rows, momentum, wd):
    options = {"momentum": momentum, "wd": wd}
    ours = trained(lambda f: jit(f, passes=passes), widths, rows=rows, **options)[0]
    theirs = trained(lambda f: f, widths, rows=rows, **options)[0]
    exact = "fold_updates" not in passes or momentum or wd
    for a, b in zip(ours, theirs, strict=True):
        if exact:
            np.testing.assert_array_equal(a, b)
        else:  # the folded product is rounded once, not twice
            np.testing.assert_allclose(a, b, rtol=5e-6, atol=1e-6)


@pytest.mark.parametrize("name", PASSES)
def test_each_pass_alone_leaves_out_rows(name):
    call = trained(lambda f: jit(f, passes=(name,)))[2]
    ((before, after),) = call._variants[0].passes.values()
    assert after < before
    assert f"{name}: {before} rows, then {after}" in call.report()


def test_an_unknown_pass():
    with pytest.raises(ValueError, match="no pass magic; there are drop_dead_rows"):
        jit(lambda x: x, passes=["magic"])


def test_rows_whose_results_nobody_reads_are_dropped():
    def f(x):
        nd.tanh(nd.exp(x))
        return x * 2

    call = jit(f)
    x = nd.array([1.0])
    assert [call(x).asscalar(), call(x * 2).asscalar()] == [2.0, 4.0]
    assert [line.split("(")[0].split()[1] for line in call.source().splitlines()[1:]] == ["multiply"]


def reads(net):
    weight = net[0].weight
    return [weight.grad, weight.list_grad, lambda: weight.data().grad]


def test_a_folded_gradient_raises_until_the_next_real_backward():
    _, net, call, x = trained(jit)
    for read in reads(net):
        with pytest.raises(CaptureError, match="keep_grads=True"):
            read()
    with autograd.record():
        loss = net(x).sum()
    loss.backward()
    held = net[0].weight.grad()
    expected = held.asnumpy()
    assert all(np.array_equal(np.ravel(read()[0].asnumpy()), expected[0]) or len(read()) for read in reads(net))
    call(x)  # somebody holds the gradient now: it is written
    assert "gemm_update" in call.source()  # of the other layer
    with autograd.record():
        loss = (net(x) ** 2).sum()
    before = held.asnumpy()
    loss.backward()
    assert not np.array_equal(before, expected)
    assert before.shape == held.shape


def test_zero_grad_brings_a_folded_gradient_back():
    _, net, call, x = trained(jit)
    net.collect_params().zero_grad()
    assert not any(read()[0].asnumpy().any() for read in reads(net))
    call(x)
    assert "gemm_update" in call.source()
    inside = jit(lambda: net.collect_params().zero_grad())
    inside()
    assert not net[0].weight.grad().asnumpy().any()


def test_a_gradient_that_is_held_from_before_a_fold_stays_right():
    found = []
    for wrap in (jit, lambda f: f):
        _, net, call, x = trained(wrap)
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        held = [p.grad() for p in net.collect_params().values()]
        call(x)
        found.append([g.asnumpy() for g in held])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_keep_grads():
    found = []
    for wrap in (lambda f: jit(f, keep_grads=True), lambda f: f):
        _, net, _, _ = trained(wrap)
        found.append([p.grad().asnumpy() for p in net.collect_params().values()])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("options", [{"momentum": 0.5}, {"wd": 0.1}, {"clip_gradient": 0.1}])
def test_only_plain_sgd_is_folded(options):
    call = trained(jit, **options)[2]
    assert "gemm_update" not in call.source()
    assert "gemm_update" in trained(jit)[2].source()


def python_calls(function):
    """How many Python functions run in a call."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def test_a_capture_is_linear_in_the_number_of_layers():
    counts = []
    for layers in (15, 120):
        _, net, _, x = trained(lambda f: f, [3] * layers, steps=1)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})

        def step(x, net=net, trainer=trainer):
            with autograd.record():
                loss = net(x).sum()
            loss.backward()
            trainer.step(4)
            return loss

        step(x)
        call = jit(step)
        counts.append(python_calls(lambda call=call, x=x: call(x)))
    assert counts[1] < 9 * counts[0]
