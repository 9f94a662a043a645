"""backward: marking, heads, gradients of every shape of graph, graphs kept and freed, errors that change nothing."""

import contextlib
import gc
import weakref

import numpy as np
import pytest

from numbagrad import autograd, gluon, nd
from numbagrad.autograd import gradients
from numbagrad.errors import MXNetError
from numbagrad.ops.dense import fully_connected
from numbagrad.ops.loss import softmax_ce


def leaf(*values, request="write"):
    x = nd.array(values)
    x.attach_grad(request)
    return x


def values(x):
    return x.grad.asnumpy().tolist()


# ---------------------------------------------------------------------------------------------------- marking


def test_attach_grad_gives_zeros_and_again_a_new_buffer():
    x = leaf(1.0, 2.0)
    assert values(x) == [0.0, 0.0]
    with autograd.record():
        y = x * 3
    old = x.grad
    x.attach_grad()
    y.backward()
    assert old.asnumpy().tolist() == [3.0, 3.0]  # the graph was recorded with the old one
    assert values(x) == [0.0, 0.0]


def test_attach_grad_drops_the_history():
    x = leaf(1.0, 2.0)
    with autograd.record():
        y = x * 2
        y.attach_grad()
        z = y * y
    z.backward()
    assert values(x) == [0.0, 0.0]
    assert values(y) == [4.0, 8.0]


def test_requests_are_checked_before_anything_changes():
    x = leaf(1.0)
    with pytest.raises(KeyError, match="often"):
        x.attach_grad("often")
    with pytest.raises(KeyError):
        autograd.mark_variables([x, x], [nd.zeros((1,))] * 2, ["write", "often"])
    for gradient in (nd.zeros((2,)), nd.zeros((1,), dtype="float64")):
        with pytest.raises(MXNetError, match="mark_variables"):
            autograd.mark_variables(x, gradient)
    with pytest.raises(MXNetError, match="2 variables, 1 gradients"):
        autograd.mark_variables([x, x], [nd.zeros((1,))])
    x.grad[:] = 4
    assert values(x) == [4.0]


def test_marked_buffers_are_used_as_they_are():
    x, w = nd.array([1.0, 2.0]), nd.array([3.0, 4.0])
    dx, dw = nd.array([10.0, 10.0]), nd.array([10.0, 10.0])
    autograd.mark_variables([x, w], [dx, dw], ["add", "write"])
    with autograd.record():
        y = x * w
    y.backward()
    assert dx.asnumpy().tolist() == [13.0, 14.0]
    assert dw.asnumpy().tolist() == [1.0, 2.0]
    dx[:] = 0
    assert values(x) == [0.0, 0.0]


def test_grad_is_one_buffer_seen_through_every_handle():
    x = leaf(1.0)
    first = x.grad
    for factor in (2.0, 3.0):
        with autograd.record():
            y = x * factor
        y.backward()
        assert first.asnumpy().tolist() == [factor]
    assert (x * 2).grad is None


def test_fresh_grad():
    x, other = leaf(1.0), leaf(1.0)
    assert x._fresh_grad == 0
    with autograd.record():
        y = x * 2
    y.backward()
    assert (x._fresh_grad, other._fresh_grad) == (1, 0)
    x._fresh_grad = 0
    assert x._fresh_grad == 0
    assert nd.zeros((1,))._fresh_grad == 0


# ------------------------------------------------------------------------------------------------------ heads


def test_a_head_of_several_elements_counts_as_its_sum():
    x = leaf(1.0, 2.0)
    with autograd.record():
        y = x * x
    y.backward()
    assert values(x) == [2.0, 4.0]


def test_head_gradients():
    x = leaf(1.0, 2.0)
    with autograd.record():
        y = x * x
    y.backward(nd.array([10.0, 0.5]), retain_graph=True)
    assert values(x) == [20.0, 2.0]
    autograd.backward([y], [None])
    assert values(x) == [2.0, 4.0]


def test_bad_head_gradients_leave_everything():
    x = leaf(1.0, 2.0)
    with autograd.record():
        y = x * x
    with pytest.raises(MXNetError, match=r"\(2,\).*\(3,\)"):
        y.backward(nd.zeros((3,)))
    with pytest.raises(MXNetError, match="float64"):
        y.backward(nd.zeros((2,), dtype="float64"))
    with pytest.raises(AssertionError, match="1 heads but 2"):
        autograd.backward([y], [None, None])
    with pytest.raises(TypeError, match="ndarray"):
        y.backward(np.ones(2, np.float32))
    with pytest.raises(TypeError, match="int"):
        autograd.backward(3)
    assert values(x) == [0.0, 0.0]
    y.backward()
    assert values(x) == [2.0, 4.0]


def test_several_heads_add_up_also_where_one_is_above_another():
    x = leaf(1.0, 2.0, 3.0)
    with autograd.record():
        y = x * x
        z = nd.exp(y * 0.1) + y
    autograd.backward([y, z], [nd.array([1.0, 2.0, 3.0]), None])
    # MXNet 1.9.1
    np.testing.assert_allclose(x.grad.asnumpy(), [4.221034049987793, 12.596729278564453, 25.47576141357422], rtol=1e-6)


@pytest.mark.parametrize("times", [2, 3])
def test_the_same_head_counts_each_time(times):
    x = leaf(1.0, 2.0)
    with autograd.record():
        y = x * x
    autograd.backward([y] * times)
    assert values(x) == [times * 2.0, times * 4.0]


@pytest.mark.parametrize("request_", ["write", "add"])
def test_a_leaf_as_head(request_):
    x = leaf(1.0, 2.0, request=request_)
    x.grad[:] = 5
    x.backward()
    before = 5.0 if request_ == "add" else 0.0
    assert values(x) == [before + 1.0] * 2
    with autograd.record():
        y = x * 3
    autograd.backward([x, y, x])
    before = before + 1.0 if request_ == "add" else 0.0
    assert values(x) == [before + 5.0] * 2


# ----------------------------------------------------------------------------------------------------- graphs


def test_fan_out_and_diamond():
    x = leaf(0.5, -0.25)
    with autograd.record():
        a = x * 2
        b = nd.tanh(a)
        c = a * a
        y = b * c + a + x + x * x * x
    y.backward()
    t = np.array([0.5, -0.25])
    slope = 2 * (1 - np.tanh(2 * t) ** 2) * 4 * t**2 + np.tanh(2 * t) * 8 * t + 3 + 3 * t**2
    np.testing.assert_allclose(x.grad.asnumpy(), slope, rtol=1e-5)


def test_a_matrix_product_and_a_view():
    x, w = nd.array([[1.0, 2.0], [3.0, 4.0]]), nd.array([[1.0, -1.0], [0.5, 2.0]])
    x.attach_grad()
    w.attach_grad()
    with autograd.record():
        y = nd.tanh(nd.dot(x, w)).reshape((4,))
    head = np.array([1.0, 2.0, 3.0, 4.0])
    y.backward(nd.array(head))
    a, b = x.asnumpy().astype("float64"), w.asnumpy().astype("float64")
    slope = head.reshape(2, 2) * (1 - np.tanh(a @ b) ** 2)
    np.testing.assert_allclose(x.grad.asnumpy(), slope @ b.T, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(w.grad.asnumpy(), a.T @ slope, rtol=1e-3, atol=1e-6)


def test_broadcasting_is_undone():
    x, w, s = leaf(1.0, 2.0, 3.0), nd.array([[1.0], [10.0]]), leaf(2.0)
    w.attach_grad()
    with autograd.record():
        y = x * w * s
    y.backward()
    assert values(x) == [22.0] * 3
    assert values(w) == [[12.0], [12.0]]
    assert values(s) == [66.0]


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("dead", [(), (0,), (1,)])
def test_unused_outputs_and_outputs_with_gradient_zero(used, dead):
    x = nd.array([[1.0, 2.0, 3.0, 4.0]])
    x.attach_grad()
    x.grad[:] = 9
    with autograd.record():
        parts = nd.split(x, num_outputs=2, axis=1)
        y = sum(nd.stop_gradient(parts[i]) * 5 for i in dead) + sum(parts[i] * (i + 2) for i in used)
    y.backward()
    assert values(x) == [[2.0 * (0 in used)] * 2 + [3.0 * (1 in used)] * 2]


def test_a_deep_chain_forward_backward_and_dropped():
    x = leaf(1.0)
    with autograd.record():
        y = x
        for _ in range(20_000):
            y = y * 1.0
        z = y + x
    z.backward()
    assert values(x) == [2.0]
    with autograd.record():
        y = x
        for _ in range(20_000):
            y = y * 1.0
    node = weakref.ref(y._node)
    del y
    assert node() is None


def test_add_across_passes():
    x = leaf(0.5, -0.25, request="add")
    x.grad[:] = 10
    for _ in range(3):
        with autograd.record():
            h = nd.tanh(x)
            y = (h * h + h).sum()
        y.backward()
    # MXNet 1.9.1
    np.testing.assert_allclose(x.grad.asnumpy(), [14.539928436279297, 11.438682556152344], rtol=1e-6)


def test_write_add_null_and_a_leaf_that_is_not_reached():
    write, plus, null, stale = leaf(1.0), leaf(2.0, request="add"), leaf(3.0, request="null"), leaf(4.0)
    for x in (write, plus, null, stale):
        x.grad[:] = 7
    with autograd.record():
        stale * 1
        y = write * plus * null
    y.backward()
    assert [values(x) for x in (write, plus, null, stale)] == [[6.0], [10.0], [7.0], [7.0]]
    assert [x._fresh_grad for x in (write, plus, null, stale)] == [1, 1, 0, 0]


def _random_program(seed):
    """A program of a few ops on three leaves, for any array class with these operations."""
    rng = np.random.RandomState(seed)
    steps = [(rng.randint(8), rng.randint(100), rng.randint(100)) for _ in range(12)]

    def run(leaves, tanh, dot, reshape, halves):
        pool = list(leaves)
        for kind, i, j in steps:
            a, b = pool[i % len(pool)], pool[j % len(pool)]
            if kind == 0:
                pool.append(a + b)
            elif kind == 1:
                pool.append(a * b)
            elif kind == 2:
                pool.append(tanh(a))
            elif kind == 3:
                pool.append(tanh(dot(a, b)))
            elif kind == 4:
                pool.append(reshape(a, (4,)) * 0.5)
                pool[-1] = reshape(pool[-1], (2, 2))
            elif kind == 5:
                top, bottom = halves(a)
                pool.append(top * bottom + b)
            elif kind == 6:
                pool.append(halves(a)[j % 2] - b)
            else:
                pool.append(a * 1.5)
        return pool[-1] + pool[-2] * pool[-3]

    return run


@pytest.mark.parametrize("seed", range(25))
def test_random_graphs(seed):
    """Against central differences of the same program in NumPy."""
    program = _random_program(seed)
    start = np.random.RandomState(seed).uniform(-1, 1, (3, 2, 2))

    def value(arrays):
        return program(list(arrays), np.tanh, np.dot, np.reshape, lambda a: (a[:1], a[1:])).sum()

    leaves = [nd.array(a, dtype="float64") for a in start]
    for x in leaves:
        x.attach_grad()
    with autograd.record():
        y = program(leaves, nd.tanh, nd.dot, nd.reshape, lambda a: nd.split(a, num_outputs=2, axis=0))
    y.backward(retain_graph=True)
    assert y.sum().asscalar() == pytest.approx(value(start), rel=1e-12)
    for k, x in enumerate(leaves):
        for i in np.ndindex(2, 2):
            high, low = start.copy(), start.copy()
            high[k][i] += 1e-5
            low[k][i] -= 1e-5
            assert x.grad.asnumpy()[i] == pytest.approx((value(high) - value(low)) / 2e-5, rel=1e-6, abs=1e-7)
    reached = [x for x in leaves if x._fresh_grad]
    for x, found in zip(reached, autograd.grad(y, reached, create_graph=True), strict=True):
        np.testing.assert_allclose(found.asnumpy(), x.grad.asnumpy(), rtol=1e-12, atol=1e-14)


# ----------------------------------------------------------------------------------------------------- aliasing


@pytest.mark.parametrize("request_", ["write", "add"])
def test_gradients_alias_neither_each_other_nor_the_head(request_):
    a, b = leaf(1.0, 2.0, request=request_), leaf(3.0, 4.0, request=request_)
    head = nd.array([5.0, 6.0])
    with autograd.record():
        y = a + b
        z = y.reshape((1, 2)) * 1
    z.backward(head.reshape((1, 2)))
    assert values(a) == values(b) == [5.0, 6.0]
    a.grad[:] = 0
    assert values(b) == [5.0, 6.0]
    assert head.asnumpy().tolist() == [5.0, 6.0]
    x = leaf(1.0, 2.0, request=request_)
    x.backward(head)
    x.grad[:] = 9
    assert head.asnumpy().tolist() == [5.0, 6.0]


def test_an_intermediate_that_became_a_leaf_does_not_hand_its_gradient_on():
    x = leaf(1.0, 2.0, request="add")
    with autograd.record():
        y = x * 1
    y.attach_grad("add")
    head = nd.array([1.0, 1.0])
    for _ in range(2):
        with autograd.record():
            z = y + y + y
        z.backward(head)
    assert values(y) == [6.0, 6.0]
    assert values(x) == [0.0, 0.0]
    assert head.asnumpy().tolist() == [1.0, 1.0]


def test_sums_of_gradients_do_not_write_to_shared_ones():
    x, w = leaf(1.0), leaf(1.0)
    with autograd.record():
        a = x * 1
        b = w * 1
        y = (a + b) + (a + b) + (a + b) + b
    y.backward()
    assert (values(x), values(w)) == ([3.0], [4.0])


def test_the_head_may_be_the_buffer_itself():
    x = leaf(1.0, 2.0)
    x.grad[:] = 3
    with autograd.record():
        y = x * x * x
    y.backward(x.grad)
    assert values(x) == [9.0, 36.0]


# ------------------------------------------------------------------------------------------- kept and freed graphs


def test_a_retained_graph_gives_the_same_again():
    x, total = leaf(1.0, 2.0), leaf(1.0, 2.0, request="add")
    with autograd.record():
        y = nd.tanh(x * total) * x
    y.backward(retain_graph=True)
    first = values(x), values(total)
    y.backward(retain_graph=True)
    y.backward()
    assert values(x) == first[0]
    np.testing.assert_allclose(total.grad.asnumpy(), 3 * np.array(first[1]), rtol=1e-6)
    with pytest.raises(MXNetError, match="freed"):
        y.backward()


def test_a_freed_graph_turns_into_constants():
    x = leaf(2.0)
    with autograd.record():
        y = x * x
        z = y * x
    z.backward()
    assert values(x) == [12.0]
    with pytest.raises(MXNetError, match="freed"):
        z.backward()
    with autograd.record():
        w = y * x
    w.backward()
    assert values(x) == [4.0]
    with autograd.record():
        y += 1
        w = y * x
    w.backward()
    assert values(x) == [5.0]


def test_an_unused_output_of_a_freed_call_is_a_constant_too():
    x, w = nd.array([[1.0, 2.0, 3.0, 4.0]]), nd.array([[1.0, 1.0]])
    x.attach_grad()
    w.attach_grad()
    with autograd.record():
        a, b = nd.split(x, num_outputs=2, axis=1)
    a.backward()
    with autograd.record():
        y = b.reshape((1, 2)) * w + b * w
    y.backward()
    # MXNet 1.9.1
    assert values(x) == [[1.0, 1.0, 0.0, 0.0]]
    assert values(w) == [[6.0, 8.0]]


@pytest.mark.parametrize("recording", [False, True])
def test_a_new_shape_set_in_place_keeps_the_gradient(recording):
    x = leaf(1.0, 2.0, 3.0, 4.0)
    with autograd.record():
        y = x * x
        if recording:
            y.shape = (2, 2)
    if not recording:
        y.shape = (2, 2)
    y.backward(nd.array([[1.0, 2.0], [3.0, 4.0]]))
    assert values(x) == [2.0, 8.0, 18.0, 32.0]
    buffer = x.grad
    x.shape = (2, 2)
    with autograd.record():
        y = x * x
    y.backward()
    assert values(x) == [[2.0, 4.0], [6.0, 8.0]]
    assert buffer.asnumpy().tolist() == [2.0, 4.0, 6.0, 8.0]


def test_a_second_head_over_a_freed_part_raises_and_writes_nothing():
    x, w = leaf(2.0), leaf(3.0)
    with autograd.record():
        shared = x * x
        y, z = shared * 1, shared * w
    y.backward()
    x.grad[:] = 7
    with pytest.raises(MXNetError, match="no inputs require gradients"):
        z.backward()
    assert (values(x), values(w)) == ([7.0], [0.0])


def test_heads_that_are_in_no_graph():
    x = leaf(1.0)
    for head in (x * 2, nd.ones((1,))):
        with pytest.raises(MXNetError, match="not in a graph"):
            head.backward()
    null = leaf(1.0, request="null")
    with autograd.record():
        y = null * 2
    with pytest.raises(MXNetError, match="no inputs require gradients"):
        y.backward()
    with pytest.raises(MXNetError, match="no inputs require gradients"):
        null.backward()


def test_backward_inside_record_is_not_recorded_and_restores_the_flags():
    x = leaf(2.0)
    with autograd.record(train_mode=False):
        y = x * x
        y.backward(train_mode=1)
        assert (autograd.is_recording(), autograd.is_training()) == (True, False)
        with pytest.raises(MXNetError):
            y.backward()
        assert (autograd.is_recording(), autograd.is_training()) == (True, False)
        with pytest.raises(MXNetError):
            x.grad.backward()
    assert values(x) == [4.0]


def test_steps_leave_no_reference_cycles():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)

    def step():
        with autograd.record():
            a, b = nd.split(nd.tanh(x * w).reshape((1, 2)), num_outputs=2, axis=1)
            y = (a * b).sum()
        y.backward()
        with autograd.record():
            y = nd.exp(x * w)
        (g,) = autograd.grad(y, x, create_graph=True)
        g.backward()
        with autograd.record():
            y = x * w
        with contextlib.suppress(MXNetError):
            y.backward(nd.zeros((3,)))

    step()  # the compiler leaves cycles
    while gc.collect():
        pass
    gc.disable()
    try:
        for _ in range(3):
            step()
        assert gc.collect() == 0
    finally:
        gc.enable()


# -------------------------------------------------------------- the walk of a chain against the walk of any graph


def _layers(request):
    rng = np.random.RandomState(3)
    x = nd.array(rng.randn(5, 4).astype("float32"))
    weights = [nd.array(rng.randn(*s).astype("float32")) for s in ((4, 4), (4,), (3, 4), (3,))]
    for w in weights:
        w.attach_grad(request)
        w._node.gradient[:] = 0.5
    return x, weights


def _plain(request):
    x, (w, b, v, c) = _layers(request)
    label = nd.array([0, 1, 2, 1, 0], dtype="int64")
    return lambda: softmax_ce(fully_connected(fully_connected(x, w, b, 3), v, c), label, weight=1.0), (w, b, v, c)


def _shared(request):
    x, (w, b, v, c) = _layers(request)
    return lambda: fully_connected(fully_connected(fully_connected(x, w, b, 3), w, b, 1), v, c), (w, b, v, c)


def _input_marked(request):
    x, (w, _, v, c) = _layers(request)
    x.attach_grad(request)
    return lambda: fully_connected(fully_connected(x, w, None, 2), v, c), (x, w, v, c)


def _nan(request):
    x, (w, b, v, c) = _layers(request)
    x[0, 0] = np.nan
    return lambda: fully_connected(fully_connected(x, w, b, 1), v, c), (w, b, v, c)


def _null(request):
    x, (w, b, v, c) = _layers(request)
    b.attach_grad("null")
    return lambda: fully_connected(fully_connected(x, w, b, 3), v, c), (w, v, c)


def _label_on_tape(request):
    logits = nd.array([[0.5, -1.0], [2.0, 0.25]])
    source = nd.array([[np.inf], [-np.inf]])
    w = nd.array([[1.0]])
    w.attach_grad(request)
    w._node.gradient[:] = 0.5
    return lambda: softmax_ce(logits, fully_connected(source, w, None, 2), weight=1.0), (w,)


def _of_all_kinds(request):
    x, (w, b, _, _) = _layers(request)
    return lambda: ((3.0 - nd.dot(x, w, transpose_b=True)).tanh() * b).sum(axis=0).reshape((2, 2)), (w, b)


def _used_twice(request):
    _, (w, _, _, _) = _layers(request)
    return lambda: (w * w).sum(), (w,)


@pytest.mark.parametrize("request_", ["write", "add"])
@pytest.mark.parametrize(
    ("program", "is_chain"),
    [
        (_plain, True),
        (_shared, False),
        (_input_marked, True),
        (_nan, True),
        (_null, False),
        (_label_on_tape, True),
        (_of_all_kinds, True),
        (_used_twice, False),
    ],
)
def test_a_chain_gives_what_the_general_walk_gives(monkeypatch, program, is_chain, request_):
    chain = gradients.chain
    taken = []

    def watched(*arguments):
        taken.append(chain(*arguments))
        return taken[-1]

    found = []
    for stand_in in (watched, lambda *arguments: False):
        monkeypatch.setattr(gradients, "chain", stand_in)
        run, leaves = program(request_)
        with autograd.record():
            y = run()
        y.backward(retain_graph=True)
        y.backward()
        assert all(x._fresh_grad for x in leaves)
        with pytest.raises(MXNetError):
            y.backward()
        found.append([x.grad.asnumpy() for x in leaves])
    assert taken[0] is is_chain  # the first pass writes, so the second one looks at versions
    for fast, general in zip(*found, strict=True):
        np.testing.assert_array_equal(fast, general)


def test_a_gradient_of_zero_meets_no_infinity():
    run, (w,) = _label_on_tape("write")
    with autograd.record():
        y = run()
    y.backward()
    assert values(w) == [[0.0]]


def test_a_chain_looks_at_the_memory_it_needs():
    x, (w, b, v, c) = _layers("write")
    with autograd.record():
        y = fully_connected(fully_connected(x, w, b, 3), v, c)
    v += 1
    with pytest.raises(MXNetError, match="dense needs"):
        y.backward()
    assert values(b) == [0.5] * 4


@pytest.mark.parametrize("loss", [gluon.loss.SigmoidBCELoss, gluon.loss.L2Loss, gluon.loss.SoftmaxCELoss])
def test_derivatives_that_a_loss_has_ready_belong_to_who_gets_them(loss):
    x = nd.array([[0.5, -1.0, 2.0], [1.0, 0.0, -0.5]])
    label = nd.array([2, 0]) if loss is gluon.loss.SoftmaxCELoss else nd.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    x.attach_grad()
    with autograd.record():
        y = loss()(x, label)
    (first,) = autograd.grad(y, x, retain_graph=True)
    expected = first.asnumpy()
    first[:] = 7
    (second,) = autograd.grad(y, x, retain_graph=True)
    np.testing.assert_array_equal(second.asnumpy(), expected)
    y.backward(nd.array([2.0, 2.0]))
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * expected, rtol=1e-6)
