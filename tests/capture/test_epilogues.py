"""What joins a matrix product, and what is written straight to where it goes: what may, what must not, and bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numbagrad import autograd, jit, nd
from numbagrad.capture import fusion
from numbagrad.capture.passes import PASSES
from numbagrad.errors import MXNetError

EXACT = tuple(name for name in PASSES if name != "extend_products")
"""All but the one that rounds in another order."""


def kernels(call):
    """The names of the kernels, in order."""
    return [c.kernel.name for c in call._variants[-1].program.calls]


def values(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def agrees(function, *given, passes=EXACT, exact=True, state=None):
    """The capture of `function`, after three calls gave, in results and in arguments, what eager calls give.

    `state` is an array that it writes to; it starts from zeros both times.
    """
    found, call = [], None
    for wrap in (lambda f: f, lambda f: jit(f, passes=passes)):
        if state is not None:
            state[:] = 0
        arrays = [nd.array(x) for x in given]
        call = wrap(function)
        seen = []
        for k in range(3):
            results = call(*arrays)
            seen += [y.asnumpy() for y in (results if isinstance(results, (list, tuple)) else [results])]
            seen += [x.asnumpy() for x in arrays]
            arrays[0][:] = arrays[0] * (0.5 - k)
        found.append(seen)
    for eager, ours in zip(*found, strict=True):
        if exact:
            np.testing.assert_array_equal(eager, ours)
        else:
            np.testing.assert_allclose(eager, ours, rtol=1e-5, atol=1e-5)
    return call


X, W, B = values(4, 3), values(3, 5, seed=1), values(5, seed=2)


# ----------------------------------------------------------------------------------------- bias and activation


@pytest.mark.parametrize("act", ["relu", "sigmoid", "tanh", "softrelu", "softsign"])
@pytest.mark.parametrize(
    "layer",
    [
        lambda x, w, b: nd.dot(x, w) + b,
        lambda x, w, b: b + x @ w,
        lambda x, w, b: nd.FullyConnected(x, w.reshape((5, 3)), b, num_hidden=5),
    ],
)
def test_a_layer_that_is_written_out_has_the_rows_of_dense(layer, act):
    call = agrees(lambda x, w, b: nd.Activation(layer(x, w, b), act), X, W, B)
    assert kernels(call) == ["gemm", "bias_act" if act == "relu" else "bias_act_smooth"]
    assert call._variants[-1].program.arena_bytes == 0
    assert "fuse_bias: 3 rows, then 2" in call.report()


def test_relu_and_its_derivative_where_inputs_are_zero_and_nan():
    w = nd.array(W)
    w.attach_grad()

    def step(x, b):
        with autograd.record():
            y = nd.relu(nd.dot(x, w) + b)
            loss = (y * y).sum() + y.sum()
        loss.backward()
        return y, w.grad + 0

    x = X.copy()
    x[0], x[1, 1] = 0.0, np.nan
    call = agrees(step, x, np.array([0.0, 1.0, -1.0, -0.0, 2.0]))
    assert kernels(call)[:2] == ["gemm", "bias_act"]
    assert "relu_vjp" in kernels(call)
    assert not {"relu", "add"} & set(kernels(call)[:3])


def test_what_else_reads_the_sum_keeps_it():
    def f(x, w, b):
        z = nd.dot(x, w) + b
        return nd.relu(z), z * 2.0

    assert kernels(agrees(f, X, W, B)) == ["gemm", "bias_act", "relu", "multiply"]
    assert kernels(agrees(lambda x, w, b: (nd.tanh(z := nd.dot(x, w) + b), z), X, W, B))[1:] == ["bias_act", "tanh"]


def test_what_else_reads_the_product_keeps_it():
    def f(x, w, b):
        p = nd.dot(x, w)
        return nd.relu(p + b), p - 1.0

    assert kernels(agrees(f, X, W, B)) == ["gemm", "add", "relu", "subtract"]


@pytest.mark.parametrize("shape", [(4, 1), (1,), (4, 5)])
def test_only_a_row_is_a_bias(shape):
    assert kernels(agrees(lambda x, w, c: nd.dot(x, w) + c, X, W, values(*shape))) == ["gemm", "add"]


def test_the_derivative_of_relu_beside_another_activation():
    b = nd.array(B)
    b.attach_grad()

    def step(x, w):
        with autograd.record():
            z = nd.dot(x, w) + b
            y = nd.sigmoid(z)
            loss = (nd.relu(z) * 3.0).sum()
        loss.backward()
        return y.detach(), b.grad + 0

    assert "relu" not in kernels(agrees(step, X, W))  # nobody reads what it gives, but its derivative stays


def test_a_residual_read_again_by_the_derivative_of_relu():
    w = nd.array(values(3, 3))
    w.attach_grad()

    def step(x, b):
        with autograd.record():
            y = nd.relu(nd.dot(x, w) + b)
            z = y + nd.dot(x, w)
            loss = (z * z).sum()
        loss.backward()
        return loss, w.grad + 0

    agrees(step, X, values(3))
    agrees(step, X, values(3), passes=tuple(PASSES), exact=False)


def test_a_long_chain_that_goes_on_is_one_loop_instead(monkeypatch):
    monkeypatch.setattr(fusion, "FUSED_FROM", 16)
    ends = agrees(lambda x, w, b: nd.relu(nd.dot(x, w) + b), X, W, B)
    assert kernels(ends) == ["gemm", "bias_act"]
    goes_on = agrees(lambda x, w, b: nd.relu(nd.dot(x, w) + b) * 2.0, X, W, B)
    assert kernels(goes_on) == ["gemm", "fused[add relu multiply]"]


# ------------------------------------------------------------------------------------------- factors and sums


@pytest.mark.parametrize("scale", [lambda p: 2.0 * p, lambda p: p * 2, lambda p: p / 4])
def test_a_factor_is_that_of_the_product(scale):
    call = agrees(lambda x, w: scale(nd.dot(x, w)), X, W, passes=tuple(PASSES))  # a power of two: exact
    assert kernels(call) == ["gemm"]
    assert "extend_products: 2 rows, then 1" in call.report()


def test_a_factor_of_a_long_product_is_within_some_ulp():
    x, w = values(7, 1000), values(1000, 9, seed=1)
    exact = 0.3 * (x.astype(np.float64) @ w.astype(np.float64))
    call = jit(lambda x, w: nd.dot(x, w) * 0.3)
    for _ in range(2):  # the second is a replay
        got = call(nd.array(x), nd.array(w))
    size = 0.3 * (abs(x).astype(np.float64) @ abs(w).astype(np.float64))
    assert (abs(got.asnumpy() - exact) / size).max() < 4 * np.finfo(np.float32).eps


def test_what_is_no_factor():
    two = nd.array([2.0])
    assert kernels(agrees(lambda x, w: nd.dot(x, w) * two, X, W, passes=tuple(PASSES))) == ["gemm", "multiply"]
    assert kernels(agrees(lambda x, w: nd.dot(x, w) * w[0, :1], X, W, passes=tuple(PASSES)))[-1] == "multiply"
    call = agrees(lambda x, w: 1 / nd.dot(x, w) + nd.dot(x, w) / 0, X, W, passes=tuple(PASSES))
    assert kernels(call).count("divide") == 2


def test_products_that_are_added_are_one_sum():
    def f(x, w, b):
        return nd.tanh(nd.dot(x, w) + nd.dot(x * 2.0, w) + b)

    call = agrees(f, X, W, B, passes=tuple(PASSES), exact=False)
    assert kernels(call) == ["gemm", "multiply", "gemm_into", "bias_act_smooth"]


def test_layers_that_are_added_are_one_sum():
    def f(x, v, b, c):
        one, two = (nd.FullyConnected(each, v, a, num_hidden=5) for each, a in ((x, b), (x * 2.0, c)))
        return nd.sigmoid(one + two)

    call = agrees(f, X, W.reshape(5, 3), B, values(5, seed=3), passes=tuple(PASSES), exact=False)
    assert kernels(call) == ["multiply", "gemm", "bias_act", "gemm_into", "bias_act_smooth"]


def test_what_is_read_later_or_belongs_to_others_is_not_added_to():
    known = nd.array(values(4, 5))

    def f(x, w, c):
        p = nd.dot(x, w)
        one = nd.dot(x, w) + c
        two = nd.dot(x, w) + known
        return one, two, p + nd.dot(x * 2.0, w), p - 1.0

    call = agrees(f, X, W, values(4, 5, seed=4), passes=tuple(PASSES), exact=False)
    assert "gemm_into" not in kernels(call)


def test_gradients_of_steps_that_share_a_weight_are_summed_by_the_products():
    w, b = nd.array(values(3, 3) * 0.5), nd.array(values(3))
    for each in (w, b):
        each.attach_grad()

    def step(x):
        with autograd.record():
            h = x * 0.0
            for _ in range(4):
                h = nd.tanh(nd.dot(x, w) + nd.dot(h, w) + b)
            loss = (h * h).sum()
        loss.backward()
        return loss, w.grad + 0, b.grad + 0

    call = agrees(step, X, passes=tuple(PASSES), exact=False)
    # of 8 products in the forward half are added to another, of 8 gradients of w all but one
    assert kernels(call).count("gemm_into") == 4 + 7


# --------------------------------------------------------------------------------------------------- copies


def test_gradients_are_written_to_their_buffers():
    w, b = nd.array(W), nd.array(B)
    for each in (w, b):
        each.attach_grad()

    def step(x):
        with autograd.record():
            y = nd.dot(x, w) + b
            loss = (y * y).sum()
        loss.backward()
        return loss

    call = agrees(lambda x: [step(x), w.grad + 0, b.grad + 0], X)
    plain = agrees(lambda x: [step(x), w.grad + 0, b.grad + 0], X, passes=())
    assert "copy" not in kernels(call)
    assert kernels(plain).count("copy") == 2


def test_a_target_that_is_used_between_is_copied_to():
    kept = nd.zeros((4, 5))

    def f(x, w):
        p = nd.dot(x, w)
        q = kept * 2.0
        kept[:] = p
        return q + 0.5

    def twice(x, w):
        p = nd.dot(x, w)
        q = kept * 2.0
        kept[:] = p.copy()
        return q + 0.5

    def g(x, w):
        kept[:] = nd.dot(x, w)
        return kept + 0.5

    def into_an_argument(x, y):
        y[:] = x * 2.0
        return y + 1.0

    assert kernels(agrees(f, X, W, state=kept)).count("copy") == 1
    assert kernels(agrees(twice, X, W, state=kept)).count("copy") == 1
    assert kernels(agrees(g, X, W, state=kept)) == ["gemm", "add"]
    assert "copy" in kernels(agrees(into_an_argument, X, X))


def test_a_part_of_a_target():
    kept = nd.zeros((3, 4, 5))

    def f(x, w):
        kept[1] = nd.dot(x, w)
        return kept * 1.0

    call = agrees(f, X, W, state=kept)
    assert "arena" not in call.source()  # the product is written there


def test_nothing_is_written_early_where_a_call_may_fail_in_between():
    kept = nd.zeros((4, 5))

    def f(x, w, z):
        p = nd.dot(x, w)
        loss = nd.softmax_cross_entropy(p + 0.0, z)
        kept[:] = p
        return loss

    call = jit(f)
    x, w, z = nd.array(X), nd.array(W), nd.array([0, 1, 2, 3])
    for _ in range(2):
        call(x, w, z)
    before = kept.asnumpy()
    with pytest.raises(MXNetError):
        call(x * 2.0, w, nd.array([0, 1, 2, 7]))
    np.testing.assert_array_equal(kept.asnumpy(), before)


# ------------------------------------------------------------------------------------------------- programs

STEPS = st.tuples(st.integers(0, 11), st.integers(0, 9), st.integers(0, 9))
ROW, STATE = nd.array(values(3)), nd.array(values(3, 3))
OPS = [
    lambda a, b: nd.dot(a, b),
    lambda a, b: nd.dot(a, b, transpose_a=True),
    lambda a, b: nd.dot(a, b) + ROW,
    lambda a, b: a + ROW,
    lambda a, b: nd.relu(a),
    lambda a, b: nd.tanh(a),
    lambda a, b: a + b,
    lambda a, b: a * 0.25,
    lambda a, b: nd.dot(a, b) + a,
]


@settings(max_examples=25)
@given(
    steps=st.lists(STEPS, min_size=3, max_size=9),
    results=st.lists(st.integers(0, 20), min_size=1, max_size=3),
    passes=st.sets(st.sampled_from(list(PASSES))),
    backward=st.booleans(),
)
def test_any_program_under_any_passes(steps, results, passes, backward):
    def forward(x, y):
        known = [x, y, nd.dot(x, y)]
        for op, i, j in steps:
            a, b = known[i % len(known)], known[j % len(known)]
            if op < len(OPS):
                known.append(nd.clip(OPS[op](a, b), -8.0, 8.0) if op == 1 else OPS[op](a, b))
            elif op == len(OPS) and not backward:
                STATE[:] = a
            elif op == len(OPS) + 1:
                known.append(STATE * 0.5)
            elif not backward:
                a[:] = b
        return [known[k % len(known)] for k in results]

    def step(x, y):
        if not backward:
            return [each + 0 for each in forward(x, y)]
        x, y = x * 1.0, y * 1.0
        x.attach_grad()
        with autograd.record():
            total = sum(((each * each).sum() for each in forward(x, y)), nd.zeros((1,)))
        if total._node is not None:
            total.backward()
        return total, x.grad + 0

    kept = STATE.asnumpy()
    found = []
    for wrap in (lambda f: f, lambda f: jit(f, passes=tuple(passes))):
        STATE[:] = nd.array(kept)
        x, y = nd.array(values(3, 3) * 0.25), nd.array(values(3, 3, seed=1) * 0.25)
        call = wrap(step)
        seen = []
        for _ in range(3):
            seen += [each.asnumpy() for each in (*call(x, y), x, y, STATE)]
            x[:], y[:] = values(3, 3, seed=5) * 0.25, values(3, 3, seed=6) * 0.25
        found.append(seen)
    for eager, ours in zip(*found, strict=True):
        if "extend_products" in passes:
            np.testing.assert_allclose(eager, ours, rtol=2e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(eager, ours)
