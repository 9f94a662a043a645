"""numbagrad.register_op: users' kernels as ops, eager, at higher order, captured, and found again on disk."""

import copy
import os
import pickle
import subprocess
import sys

import numba
import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, jit, nd, register_op
from numbagrad.testing import GradientError, check_gradients


@numba.njit(fastmath=True)
def square(v):
    return v * v


def weigh(x, w, y, n, k, scale):
    for i in range(n):
        total = 0.0
        for j in range(k):
            total += square(x[i * k + j]) * w[j]
        y[i] = scale * total
    return 0


def weigh_x(g, x, w, dx, n, k, scale):
    for i in range(n):
        for j in range(k):
            dx[i * k + j] = 2 * scale * g[i] * w[j] * x[i * k + j]
    return 0


@numba.njit
def weigh_w(g, x, dw, n, k, scale):
    for j in range(k):
        total = 0.0
        for i in range(n):
            total += g[i] * square(x[i * k + j])
        dw[j] = scale * total
    return 0


def weigh_shape(x, w, scale):
    n, k = x
    if w != (k,):
        raise ValueError(f"w must have the shape ({k},)")
    return {"y": (n,), "n": n, "k": k}


WEIGH = {
    "inputs": "x w",
    "sizes": "n k",
    "params": {"scale": 1.0},
    "forward": weigh,
    "vjp": [weigh_x, weigh_w],
    "shape": weigh_shape,
    "reference": lambda x, w, scale: (x * x * w).sum(axis=1) * scale,
}
weighted = register_op("weighted", **WEIGH)
X, W = np.array([[1.0, -2.0, 0.5], [0.3, 1.0, 2.0]]), np.array([1.0, 2.0, 3.0])


def loss(x, label, y, e, n, k):
    """Squared distance from a one-hot label, with the errors kept."""
    for i in range(n):
        if label[i] < 0 or label[i] >= k:
            return 1
    for i in range(n):
        total = x[0] * 0
        for j in range(k):
            e[i * k + j] = x[i * k + j] - (1 if label[i] == j else 0)
            total += e[i * k + j] ** 2
        y[i] = total
    return 0


def loss_vjp(g, e, dx, n, k):
    for i in range(n):
        for j in range(k):
            dx[i * k + j] = 2 * g[i] * e[i * k + j]
    return 0


LOSS = {
    "inputs": "x label",
    "keeps": "e",
    "sizes": "n k",
    "dtypes": {"label": "int64"},
    "forward": loss,
    "vjp": loss_vjp,
    "shape": lambda x, label: {"y": label, "e": x, "n": x[0], "k": x[1]},
    "failures": {1: "a label is no class"},
}
one_hot_loss = register_op("one_hot_loss", **LOSS)


def cube(x, y, n):
    for i in range(n):
        y[i] = x[i] ** 3
    return 0


def cube_vjp(g, x, y, dx, n):
    for i in range(n):
        dx[i] = 3 * y[i] / x[i] * g[i]
    return 0


def test_values_and_gradients_of_both_orders():
    np.testing.assert_allclose(weighted(nd.array(X), nd.array(W)).asnumpy(), (X * X) @ W, rtol=1e-6)
    check_gradients(weighted, [X, W], order=2)
    check_gradients(lambda x, w: weighted(nd.sin(x), w * w, scale=2), [X, W], order=2)
    check_gradients(lambda x: weighted(x, x.sum(axis=0)), [X], order=2)


def test_kept_arrays_labels_and_outputs_that_the_vjp_reads():
    label = nd.array([2, 0], dtype="int32")
    y = one_hot_loss(nd.array(X), label)
    expected = ((X - np.eye(3)[[2, 0]]) ** 2).sum(axis=1)
    np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-6)
    check_gradients(one_hot_loss, [X, label])
    check_gradients(register_op("cube", inputs="x", forward=cube, vjp=cube_vjp), X)


def test_only_wanted_gradients_are_computed():
    def explode(g, x, dw, n, k, scale):
        return 9

    op = register_op("half_broken", **{**WEIGH, "vjp": [weigh_x, explode]})
    x, w = nd.array(X), nd.array(W)
    x.attach_grad()
    with autograd.record():
        y = op(x, w)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * X * W, rtol=1e-6)
    w.attach_grad()
    with autograd.record():
        y = op(x, w)
    with pytest.raises(mx.MXNetError, match="half_broken_vjp1: failed with the unknown status 9"):
        y.backward()


def test_a_wrong_vjp_is_found():
    def wrong(g, x, dw, n, k, scale):
        for j in range(k):
            dw[j] = scale * g[0] * square(x[j])
        return 0

    with pytest.raises(GradientError, match=r"input 1"):
        check_gradients(register_op("wrong", **{**WEIGH, "vjp": [weigh_x, wrong]}), [X, W])


def test_dtype_rules():
    assert weighted(nd.array(X), nd.array(W)).dtype == np.float32
    assert weighted(nd.array(X), nd.array(W, dtype="float64")).dtype == np.float64
    assert weighted(nd.array(X, dtype="int32"), nd.array(W, dtype="int8")).dtype == np.float32
    half = weighted(nd.array(X, dtype="float16"), nd.array(W, dtype="float16"))
    assert half.dtype == np.float16
    np.testing.assert_allclose(half.asnumpy(), (X * X) @ W, rtol=2e-3)
    # a gradient goes back through the change of dtype
    x, w = nd.array(X), nd.array(W, dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = weighted(x, w)
    y.backward()
    assert x.grad.dtype == np.float32
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * X * W, rtol=1e-6)
    with pytest.raises(TypeError, match="w must be an NDArray, not ndarray"):
        weighted(nd.array(X), W)


def test_failures_and_shapes_leave_nothing_behind():
    x = nd.array(X)
    with pytest.raises(mx.MXNetError, match=r"^one_hot_loss: a label is no class$"):
        one_hot_loss(x, nd.array([0, 3]))
    with pytest.raises(mx.MXNetError, match=r"weighted: inputs of shapes \(2, 3\), \(2,\) do not fit: w must have"):
        weighted(x, nd.ones(2))
    with pytest.raises(TypeError, match="takes x w, got 1"):
        weighted(x)
    with pytest.raises(TypeError, match="'scales' is none of its parameters scale"):
        weighted(x, nd.array(W), scales=2)
    with pytest.raises(TypeError, match="'scale' is a number, not NDArray"):
        weighted(x, nd.array(W), scale=nd.ones(1))


def test_without_reference_or_vjp():
    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = one_hot_loss(x, nd.array([2, 0]))
    with pytest.raises(mx.MXNetError, match="one_hot_loss: a second-order gradient goes through a reference"):
        autograd.grad(y, x, create_graph=True)
    plain = register_op("plain_cube", inputs="x", forward=cube)
    np.testing.assert_allclose(plain(x).asnumpy(), X**3, rtol=1e-6)
    with autograd.record():
        y = plain(x)
    with pytest.raises(mx.MXNetError, match="plain_cube: it has no gradient"):
        y.backward()


@pytest.mark.parametrize("backward_inside", [True, False])
def test_captured(backward_inside):
    def run(wrap):
        x, w = nd.zeros((2, 3)), nd.zeros((3,))
        x.attach_grad()
        w.attach_grad()
        label = nd.array([1, 2])

        def step(x, w, label):
            with autograd.record():
                y = (weighted(x, w, scale=0.5) * one_hot_loss(x, label)).sum()
            if backward_inside:
                y.backward()
            return y

        call, found = wrap(step), []
        for k in range(3):
            x[:], w[:], label[:] = X + k, W * (k + 1), [k, 2 - k]
            y = call(x, w, label)
            if not backward_inside:
                y.backward()
            found += [y.asnumpy(), x.grad.asnumpy(), w.grad.asnumpy()]
        label[:] = [0, 5]
        with pytest.raises(mx.MXNetError, match="a label is no class"):
            call(x, w, label)
        return found

    for ours, theirs in zip(run(jit), run(lambda f: f), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@numba.njit
def factorial(n):
    return n * factorial(n - 1) if n > 1 else 1


def test_recursion_is_refused():
    def forward(x, y, n):
        y[0] = factorial(n)
        return 0

    with pytest.raises(mx.MXNetError, match="factorial calls itself"):
        register_op("recursive", inputs="x", forward=forward)


def test_copied_and_pickled_by_name():
    assert copy.deepcopy([weighted])[0] is weighted
    assert pickle.loads(pickle.dumps(weighted)) is weighted
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(register_op("nowhere", inputs="x", forward=cube))


def no_return(x, y, n):
    y[0] = x[0]


def defaults(x, y, n=1):
    return 0


def untypable(x, y, n):
    y[0] = "text" + x[0]
    return 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "two words"}, "must be an identifier"),
        ({"name": "add"}, "numbagrad has an op add of its own"),
        ({"inputs": ""}, "at least one input"),
        ({"inputs": "x y"}, "the name 'y' is taken"),
        ({"inputs": "x w dx"}, "the name 'dx' is taken"),
        ({"params": {"scale": "a"}}, "default of the parameter 'scale' must be a number"),
        ({"dtypes": {"z": "int32"}}, "dtypes names 'z'"),
        ({"dtypes": {"x": "float16"}}, "cannot take float16"),
        ({"failures": {0: "none"}}, "from 1 to 255"),
        ({"forward": 3}, "forward must be a function, not int"),
        ({"forward": np.exp}, "forward must be a function, not ufunc"),
        ({"forward": no_return}, "must return 0 at its end"),
        ({"forward": defaults}, "plain positional arguments; n=1 is none"),
        ({"forward": lambda x, w, y, m: 0}, "forward takes 'm'; it can take x, w, y, n, k, scale"),
        ({"forward": lambda x, w, n: 0}, "forward takes no 'y'"),
        ({"vjp": weigh_x}, "no VJP kernels write dw"),
        ({"vjp": [weigh_x, weigh_w, weigh_w]}, "2 VJP kernels write dw"),
        ({"vjp": lambda x, dx, dw: 0}, "must take g"),
        ({"vjp": lambda g, x: 0}, "must take g and write one of dx, dw"),
        ({"shape": lambda x: {}}, "shape must take"),
        ({"shape": None}, "without a shape rule the only size is n"),
        ({"reference": lambda x: x}, r"reference must take \(x, w, scale=\)"),
        ({"reference": 3}, "reference must be a function, not int"),
    ],
)
def test_bad_declarations_are_refused_at_registration(changes, message):
    with pytest.raises(mx.MXNetError, match=message):
        register_op(**{"name": "bad", **WEIGH, **changes})


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"y": (2,)}, "must return a dict of y, n, k, not of y"),
        ((2,), r"must return a dict of y, n, k, not of \(2,\)"),
        ({"y": 2, "n": 2, "k": 3}, "says 2 for the array y; it must be a shape"),
        ({"y": (2,), "n": 2, "k": 3.0}, "says 3.0 for the size k; it must be an int"),
    ],
)
def test_bad_shape_rules(said, message):
    op = register_op("bad_rule", **{**WEIGH, "shape": lambda x, w, scale: said})
    with pytest.raises(mx.MXNetError, match=f"^bad_rule: .*{message}"):
        op(nd.array(X), nd.array(W))


def test_what_numba_cannot_compile_is_told_with_the_kernel():
    op = register_op("untypable", inputs="x", forward=untypable)
    with pytest.raises(mx.MXNetError, match=r"untypable_forward\(x: float32, y: float32, n: int\) cannot be compiled"):
        op(nd.ones(2))


PROGRAM = """
import numbagrad as mx
from numbagrad.native.cache import compilations
import numba

@numba.njit
def helper(v):
    return 2 * v

def forward(x, y, n):
    for i in range(n):
        y[i] = helper(x[i])
    return 0

first = mx.register_op("first", inputs="x", forward=forward)
x = mx.nd.array([1, 2])
print(first(x).asnumpy().tolist())

def forward(x, y, n):
    for i in range(n):
        y[i] = 10 * x[i]
    return 0

second = mx.register_op("second", inputs="x", forward=forward)
print(second(x).asnumpy().tolist(), first(x).asnumpy().tolist())
print([c.name for c in compilations if c.name in ("forward", "helper")])
"""


def test_kernels_of_scripts_and_of_the_prompt_are_found_again(tmp_path):
    environment = {
        **os.environ,
        "NUMBAGRAD_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)

    def run(*arguments, given=None):
        return subprocess.run(
            [sys.executable, *arguments], input=given, env=environment, capture_output=True, text=True, check=True
        ).stdout.splitlines()

    values = ["[2.0, 4.0]", "[10.0, 20.0] [2.0, 4.0]"]
    assert run(str(script)) == [*values, "['helper', 'forward', 'forward']"]
    assert run("-", given=PROGRAM) == [*values, "[]"]  # no source to look at
    (tmp_path / "own_module.py").write_text(PROGRAM)
    environment["PYTHONPATH"] += os.pathsep + str(tmp_path)
    assert run("-c", "import own_module") == [*values, "[]"]
