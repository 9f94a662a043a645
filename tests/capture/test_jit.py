"""What ``jit`` promises: arguments, results, guards, programs that alias, bind anew and differentiate."""

import functools
import importlib

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, gluon, jit, nd
from numbagrad.capture.fast import fast_call
from numbagrad.errors import CaptureError
from numbagrad.native.cache import compilations


def values(*arrays):
    return [x.asnumpy().tolist() for x in arrays]


def net_and_trainer(optimizer="sgd", **options):
    net = gluon.nn.Dense(2, in_units=3)
    net.initialize(mx.init.Constant(0.5))
    return net, gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.1, **options})


def stepper(net, trainer, **how):
    def step(x):
        with autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(x.shape[0])
        return loss

    return jit(step, **how) if how else step


# ------------------------------------------------------------------------------------- arguments and results


def test_nested_containers_scalars_none_str_and_kwargs():
    @jit
    def f(tree, scale, *, extra=None, mode="plus"):
        a, (b, c) = tree["a"], tree["rest"]
        y = a * scale + b if mode == "plus" else a * scale - b
        return {"y": y, "same": c, "more": [y if extra is None else y + extra, scale, mode, None]}

    for k in (1.0, 2.0):
        for mode, sign in (("plus", 1), ("minus", -1)):
            a, b, c = nd.array([k]), nd.array([10 * k]), nd.array([0.0])
            found = f({"a": a, "rest": (b, c)}, 3, mode=mode)
            assert found["y"].asscalar() == 3 * k + sign * 10 * k
            assert found["same"] is c
            assert found["more"][1:] == [3, mode, None]
            found = f({"a": a, "rest": (b, c)}, 3, extra=a, mode=mode)
            assert found["more"][0].asscalar() == 4 * k + sign * 10 * k
    assert f.report().startswith("f: 4 variant(s)")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
def test_numpy_arguments_also_not_contiguous_arrive_at_every_call(dtype):
    kept = nd.zeros((2, 2))

    @jit
    def f(a):
        kept[:] = a
        return nd.array(a) * 2, kept + 1, nd.array(a[1])

    for k in (0, 1, 3):
        for a in (np.full((2, 2), k, dtype), np.full((2, 4), k, dtype)[:, ::2], np.full((2, 2), k, dtype).T):
            k = float(a[0, 0])
            assert values(*f(a)) == [[[2 * k] * 2] * 2, [[k + 1] * 2] * 2, [k, k]]


def test_numpy_arguments_off_their_alignment():
    f = jit(lambda a: nd.array(a) * 2)
    memory = np.arange(1, 13, dtype=np.float32).tobytes()
    for start in (0, 1, 2):
        a = np.frombuffer(b"\0" * start + memory, np.float32, 12, start)
        assert f(a).tolist() == (2 * np.arange(1.0, 13.0)).tolist()


def test_numpy_views_of_one_array_at_other_places():
    f = jit(lambda a, b: nd.array(a) - nd.array(b))
    whole = np.arange(8, dtype=np.float32)
    assert values(f(whole[:3], whole[1:4]), f(whole[2:5], whole[5:8])) == [[-1.0] * 3, [-3.0] * 3]
    assert values(f(whole[:3], np.ones(3, np.float32))) == [[-1.0, 0.0, 1.0]]


@pytest.mark.parametrize(
    "how", [lambda a: a + 1, lambda a: a[0], float, lambda a: a.sum(), np.exp, lambda a: a.tolist()]
)
def test_numpy_computing_on_an_argument_is_refused(how):
    with pytest.raises(CaptureError, match="NumPy argument"):
        jit(lambda a: nd.ones((1,)) * nd.array(how(a)))(np.ones(1, np.float32))


def test_a_negative_zero_and_a_tuple_of_another_type_are_other_values():
    f = jit(lambda x, s: x * s)
    x = nd.ones((1,))
    assert [np.signbit(f(x, s).asscalar()) for s in (0.0, -0.0, 0.0)] == [False, True, False]
    power = (2,)
    g = jit(lambda x: x * power[0])
    i = nd.ones((1,), dtype="int32")
    assert g(i).dtype == np.int32
    power = (2.0,)
    assert g(i).dtype == np.float32


def test_methods_keep_their_own_programs_and_let_go_of_their_instance():
    import gc
    import weakref

    class Scaled:
        def __init__(self, k):
            self.k = nd.array([k])

        @jit
        def call(self, x):
            return x * self.k

    a, b = Scaled(2.0), Scaled(5.0)
    x = nd.array([3.0])
    assert values(a.call(x), b.call(x), a.call(x), b.call(x)) == [[6.0], [15.0], [6.0], [15.0]]
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None


def test_device_labels_are_kept():
    f = jit(lambda x: x + 1)
    for context in (mx.cpu(1), mx.cpu(0), mx.cpu(1), mx.cpu(1)):
        assert f(nd.ones((2,), ctx=context)).context == context


def test_results_are_fresh_arrays():
    f = jit(lambda x: (x + 1, x * 2))
    first = f(nd.array([1.0]))
    f(nd.array([5.0]))
    third = f(nd.array([7.0]))
    third[0][:] = 0
    assert values(*first, *third) == [[2.0], [2.0], [0.0], [14.0]]


# --------------------------------------------------------------------------------------------------- aliasing


def cases_of_aliasing():
    def add(x, y):
        x += y
        return x * 1

    def shift(x, y):
        x[1:] = x[:-1]
        y[0] = x[1] + y[-1]
        return x + y

    def write(x, y):
        x[:] = y * 2
        y[1:3] = x[0:2]
        return x, y, x + y

    return [add, shift, write]


@pytest.mark.parametrize("function", cases_of_aliasing(), ids=lambda f: f.__name__)
def test_arguments_that_share_memory(function):
    found = []
    for call in (jit(function), function):
        for pick in (
            lambda b: (b[0:3], b[3:6]),
            lambda b: (b, b),
            lambda b: (b[0:3], b[1:4]),
            lambda b: (b[0:3], b[3:6]),
            lambda b: (b[1:4], b[0:3]),
        ):
            for _ in range(3):
                base = nd.arange(6) + 1
                result = call(*pick(base))
                found.append(values(*(result if isinstance(result, tuple) else (result,)), base))
    assert found[: len(found) // 2] == found[len(found) // 2 :]


def test_an_argument_that_the_function_also_reaches_by_name():
    c, d = nd.array([1.0]), nd.array([5.0])
    held = {"deep": [nd.array([100.0])]}
    f = jit(lambda x: x * 10 + c + held["deep"][0])
    assert values(f(c), f(d), f(c), f(held["deep"][0]), f(d)) == [[111.0], [151.0], [111.0], [1101.0], [151.0]]


TABLE = nd.array([7.0])


def scaled_by_the_table(x):
    return x * TABLE


class Scaled:
    table = nd.array([9.0])

    def __call__(self, x):
        return x * self.table


@pytest.mark.parametrize("call", [scaled_by_the_table, Scaled(), functools.partial(scaled_by_the_table)])
def test_an_argument_that_the_function_also_reaches_through_another_one(call):
    table = Scaled.table if isinstance(call, Scaled) else TABLE
    f = jit(lambda x: call(x) + 0)
    n = table.asscalar()
    assert values(f(table), f(nd.array([1.0])), f(table)) == [[n * n], [n], [n * n]]


def test_nobody_looks_for_arguments_that_are_gone(monkeypatch):
    module = importlib.import_module("numbagrad.capture.guards")
    looked = []
    monkeypatch.setattr(module, "_held", lambda function: looked.append(function) or set())
    f = jit(lambda x: x * 2)
    assert [f(nd.array([k])).asscalar() for k in (1.0, 2.0, 3.0)] == [2.0, 4.0, 6.0]
    assert not looked
    kept = [nd.array([k, k]) for k in (1.0, 2.0, 3.0)]
    assert values(*map(f, kept)) == [[2.0] * 2, [4.0] * 2, [6.0] * 2]
    assert len(looked) == 1


def test_an_alias_of_a_weight_that_the_step_updates_is_passed_later():
    found = []
    for how in ({"keep_grads": False}, {}):
        net = gluon.nn.Dense(3, in_units=3)
        net.initialize(mx.init.Constant(0.5))
        step = stepper(net, gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}), **how)
        alias, x = net.weight.data().detach(), nd.array(np.arange(9.0).reshape(3, 3))
        for given in (x, x * 2, alias, alias, x):
            found.append(step(given).asnumpy())
        found.append(net.weight.data().asnumpy())
    for ours, theirs in zip(found[:6], found[6:], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_an_argument_that_is_a_parameter():
    net, _ = net_and_trainer()
    f = jit(lambda w, x: (w * 2).sum() + net(x).sum())
    x = nd.ones((1, 3))
    w = net.weight.data()
    other = nd.zeros((2, 3))
    assert values(f(w, x), f(other, x), f(w, x)) == [[9.0], [3.0], [9.0]]
    w[:] = 1
    assert values(f(w, x), f(other, x)) == [[18.0], [6.0]]


def test_a_parameter_shared_by_two_layers():
    def a_net():
        mx.random.seed(1)
        net = gluon.nn.HybridSequential()
        net.add(gluon.nn.Dense(3, in_units=3))
        net.add(gluon.nn.Dense(3, in_units=3, params=net[0].params))
        net.initialize()
        return net

    found = []
    for how in ({"keep_grads": True}, {}):
        net = a_net()
        step = stepper(net, gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01}), **how)
        losses = [step(nd.ones((2, 3)) * k).asscalar() for k in (1, 2, 3, 4)]
        found.append([*losses, *net[0].weight.data().asnumpy().ravel()])
    assert found[0] == found[1]


# ------------------------------------------------------------------------------------------------ gradients


def test_grad_req_add_and_nested_scopes():
    found = []
    for wrap in (jit, lambda f: f):
        x = nd.array([1.0, 2.0])
        x.attach_grad("add")
        seen = nd.zeros((1,))

        def step(scale, x=x, seen=seen):
            with autograd.record():
                y = x * x
                with autograd.pause():
                    seen[:] = seen + y.sum()
                    with autograd.record(train_mode=False):
                        z = (x * 3).sum()
                total = y.sum() * scale + z
            total.backward()
            return total

        step = wrap(step)
        for k in (1.0, 2.0, 3.0):
            found.append(values(step(nd.array([k])), x.grad, seen))
    assert found[:3] == found[3:]


def test_gradient_penalty_inside_the_step():
    found = []
    for wrap in (lambda f: jit(f, keep_grads=True), lambda f: f):
        net, trainer = net_and_trainer()

        def step(x, net=net, trainer=trainer):
            x = x * 1
            x.attach_grad()
            with autograd.record():
                y = nd.tanh(net(x))
                (g,) = autograd.grad(y, [x], create_graph=True)
                loss = (y**2).mean() + (g**2).sum()
            loss.backward()
            trainer.step(1)
            return loss

        step = wrap(step)
        found.append([step(nd.ones((4, 3)) * k).asscalar() for k in (1, 2, 3, 4)])
    assert found[0] == found[1]


def tanh_twice(x):
    return nd.tanh(x) * x


def test_forward_captured_and_backward_outside_with_several_calls_outstanding():
    found = []
    w = nd.array([2.0])
    w.attach_grad()
    for function in (jit(lambda x: nd.exp(x * w) * nd.sigmoid(w)), lambda x: nd.exp(x * w) * nd.sigmoid(w)):
        for _ in range(3):
            with autograd.record():
                ys = [function(nd.array([v])) for v in (0.1, 0.2, 0.3)]
            for retain in (True, True, False):
                for y in ys:
                    y.backward(retain_graph=retain)
                    found.append(w.grad.asscalar())
            with pytest.raises(mx.MXNetError, match="freed"):
                ys[0].backward()
    assert found[:27] == found[27:]


def test_second_order_through_a_captured_call():
    found = []
    for function in (jit(tanh_twice), tanh_twice):
        for v in (0.5, 1.0, -2.0):
            x = nd.array([v])
            x.attach_grad()
            with autograd.record():
                (g,) = autograd.grad(function(x), [x], create_graph=True)
                z = g * g
            z.backward()
            found.append(x.grad.asscalar())
    np.testing.assert_allclose(found[:3], found[3:], rtol=1e-6)


def test_create_graph_through_random_numbers_is_refused():
    x = nd.ones((4,))
    x.attach_grad()
    f = jit(lambda x: nd.Dropout(x * x, p=0.5))
    for _ in range(2):
        with autograd.record():
            y = f(x)
            with pytest.raises(mx.MXNetError, match="create_graph=True runs a captured function again"):
                autograd.grad(y, [x], create_graph=True)


def test_a_weight_written_between_forward_and_backward_is_noticed():
    w = nd.array([2.0])
    w.attach_grad()
    f = jit(lambda x: x * w * w)
    for _ in range(3):
        with autograd.record():
            y = f(nd.array([3.0]))
        w[:] = 2
        with pytest.raises(mx.MXNetError, match="written in place"):
            y.backward()


def test_a_result_overwritten_before_backward_is_noticed():
    x = nd.array([2.0])
    x.attach_grad()
    f = jit(lambda x: nd.sigmoid(x))
    for _ in range(3):
        with autograd.record():
            y = f(x)
        y.detach()[:] = 0
        with pytest.raises(mx.MXNetError, match="written in place"):
            y.backward()


def test_an_argument_on_the_tape_comes_back_as_itself():
    w = nd.array([2.0])
    w.attach_grad()
    f = jit(lambda h: (h, h * 3))
    for v in (1.0, 2.0, 3.0):
        with autograd.record():
            h = w * v
            a, b = f(h)
            total = a + b
        assert a is h
        total.backward()
        assert w.grad.asscalar() == 4 * v


def test_captured_inside_captured():
    inner = jit(lambda x: nd.tanh(x) + 1)
    outer = jit(lambda x: inner(x) * inner(x * 2))
    plain = lambda x: (nd.tanh(x) + 1) * (nd.tanh(x * 2) + 1)  # noqa: E731
    for k in (0.1, 0.2, 0.3):
        x = nd.array([k])
        assert values(outer(x), inner(x)) == values(plain(x), nd.tanh(x) + 1)
    assert outer.report().startswith("<lambda>: 1 variant(s)")


# ----------------------------------------------------------------------------------------------------- guards


def test_shapes_dtypes_flags_and_early_returns():
    @jit
    def f(x, early=False):
        if early:
            return x * 10
        return nd.Dropout(x, p=1.0) + 1

    arrays = [nd.ones((2,)), nd.ones((2, 2)), nd.ones((2,), dtype="float64")]
    for x in arrays * 2:
        assert f(x).dtype == x.dtype
        assert (f(x) == 2).asnumpy().all()
    for x in arrays[::-1] * 2:
        with autograd.train_mode():
            assert (f(x) == 1).asnumpy().all()
    for x in arrays * 2:
        assert (f(x, True) == 10).asnumpy().all()
    report = f.report()
    assert "f: 9 variant(s)" in report
    assert "shape (2, 2), was (2,)" in report
    assert "recording or training changed" in report


def test_closure_and_global_numbers():
    scale = 2
    f = jit(lambda x: x * scale + _shift)
    x = nd.ones((1,))
    global _shift
    _shift = 1
    assert values(f(x), f(x)) == [[3.0], [3.0]]
    scale = 5
    assert values(f(x), f(x)) == [[6.0], [6.0]]
    _shift = 3
    assert values(f(x), f(x)) == [[8.0], [8.0]]
    assert "global _shift is 3, was 1" in f.report()
    assert "a closure variable is 5, was 2" in f.report()


_shift = 1


def test_a_name_bound_to_another_array():
    c = nd.array([1.0])
    f = jit(lambda x: x + c)
    x = nd.zeros((1,))
    assert values(f(x), f(x)) == [[1.0], [1.0]]
    c = nd.array([5.0])
    assert values(f(x), f(x)) == [[5.0], [5.0]]
    assert "another array" in f.report()


def test_rates_decay_multipliers_and_batch_sizes_follow():
    found = []
    for how in ({"keep_grads": False}, {}):
        net, trainer = net_and_trainer()
        step = stepper(net, trainer, **how)
        x = nd.ones((2, 3))

        def change(what, net=net, trainer=trainer):
            if what == "rate":
                trainer.set_learning_rate(0.02)
            elif what == "decay":
                trainer.optimizer.wd = 0.1
            elif what == "clip":
                trainer.optimizer.clip_gradient = 0.3
            elif what == "mult":
                net.weight.lr_mult = 0.5
            elif what == "data":
                net.weight.set_data(nd.ones((2, 3)) * 0.25)
            elif what == "schedule":
                trainer.optimizer.lr_scheduler = mx.lr_scheduler.FactorScheduler(step=1, factor=0.9, base_lr=0.1)
            elif what == "none":
                trainer.optimizer.lr_scheduler = None

        changes = ("", "rate", "mult", "decay", "data", "clip", "schedule", "none")
        for what in changes:
            change(what)
            for _ in range(3):
                step(x)
            step(nd.ones((5, 3)))
            found.append(net.weight.data().asnumpy())
    for ours, theirs in zip(found[: len(changes)], found[len(changes) :], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=3e-6)


@pytest.mark.parametrize("what", ["attach_grad", "grad_req", "cast", "reset", "null"])
def test_parameters_bound_to_other_memory(what):
    found = []
    for how in ({"keep_grads": True}, {}):
        net, trainer = net_and_trainer()
        step = stepper(net, trainer, **how)
        x = nd.ones((2, 3))
        for _ in range(3):
            step(x)
        if what == "attach_grad":
            net.weight.data().attach_grad()
        elif what == "grad_req":
            net.weight.grad_req = "add"
        elif what == "cast":
            net.cast("float64")
            x = nd.ones((2, 3), dtype="float64")
            trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
            step = stepper(net, trainer, **how)
        elif what == "reset":
            net.initialize(mx.init.Constant(0.25), force_reinit=True)
        else:
            net.bias.grad_req = "null"
        for _ in range(3):
            step(x)
        found.append((net.weight.data().asnumpy(), net.bias.data().asnumpy()))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_fifty_batch_sizes_compile_nothing_and_stay_right():
    ours, theirs = net_and_trainer(), net_and_trainer()
    step = stepper(*ours, keep_grads=True)
    eager = stepper(*theirs)
    for n in (1, 2):
        step(nd.ones((n, 3)) * 0.1)
        eager(nd.ones((n, 3)) * 0.1)
    compiled = len(compilations)
    for n in [*range(1, 51), *range(50, 0, -7)]:
        x = nd.ones((n, 3)) * 0.1
        assert step(x).asscalar() == eager(x).asscalar()
    assert [entry.name for entry in compilations[compiled:]] == []
    np.testing.assert_array_equal(ours[0].weight.data().asnumpy(), theirs[0].weight.data().asnumpy())


def test_the_number_of_variants_is_bounded():
    f = jit(lambda x: x + 1, max_variants=3)
    for n in (1, 2, 3, 4, 5, 1, 2, 5):
        assert f(nd.zeros((n,))).asnumpy().tolist() == [1.0] * n
    assert f.report().startswith("<lambda>: 3 variant(s)")


def test_source_names_the_line_of_each_row():
    f = jit(lambda x: nd.tanh(x))
    f(nd.ones((2,)))
    (row,) = [line for line in f.source().splitlines() if "tanh" in line]
    assert __file__ in row


def test_random_fills_advance_the_stream():
    def f():
        return nd.random.uniform(shape=(2,)), nd.random.normal(shape=(3,))

    found = []
    for call in (jit(f), f):
        mx.random.seed(3)
        for _ in range(3):
            found += values(*call(), nd.random.uniform(shape=(1,)))
    assert found[:9] == found[9:]


def test_check_finds_what_is_read_once():
    state = {"k": 1.0}
    f = jit(lambda x: x * state["k"], check=True)
    x = nd.ones((1,))
    f(x)
    assert f(x).asscalar() == 1
    state["k"] = 2.0
    with pytest.raises(CaptureError, match="depends on something"):
        f(x)


class _Proxy:
    """Makes up an attribute for any name, as proxies of foreign libraries do."""

    def __getattribute__(self, name):
        return lambda *arguments: name


class _Holder:
    def __init__(self):
        self.foreign = _Proxy()
        self.weight = nd.array([2.0, 3.0])

    def scaled(self, x):
        return x * self.weight


def test_what_a_function_reaches_may_hold_a_proxy():
    holder = _Holder()
    scaled = jit(holder.scaled)
    assert [scaled(nd.array([k, 1.0])).tolist() for k in (1.0, 4.0)] == [[2.0, 3.0], [8.0, 3.0]]


def test_calls_that_alternate_between_variants_unroll_each_once(monkeypatch):
    module = importlib.import_module("numbagrad.capture.jit")
    made = []
    monkeypatch.setattr(module, "fast_call", lambda *given: made.append(given) or fast_call(*given))
    f = jit(lambda x: x * 2.0 + 1.0)
    for _ in range(3):
        for n in (2, 3):
            assert f(nd.ones((n,))).tolist() == [3.0] * n
    assert len(made) == 2
