"""The trainer: what a step does to parameters, states, counts and flags."""

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, gluon, nd, optimizer
from numbagrad.errors import InPlaceError, MXNetError

CONTEXTS = [mx.cpu(0), mx.cpu(1)]


def made(name, values, ctx=None, **keywords):
    parameter = gluon.Parameter(name, shape=np.shape(values), init="zeros", **keywords)
    parameter.initialize(ctx=ctx)
    parameter.set_data(np.array(values))
    return parameter


def pair(ctx=None, dtype="float32", **keywords):
    return made("a", [1.0, -2.0, 3.0], ctx, dtype=dtype), made("b", [0.5, 0.25], ctx, dtype=dtype, **keywords)


def run_backward(a, b, t=0):
    """Gradients 2 (t + 1) a and 3."""
    with autograd.record():
        loss = (a.data() ** 2).sum() * (t + 1) + (b.data() * 3).sum()
    loss.backward()


def values(*parameters):
    return [parameter.data().asnumpy().tolist() for parameter in parameters]


def fresh(*parameters):
    return [data._fresh_grad for parameter in parameters for data in parameter.list_data()]


# What MXNet 1.9.1 makes of the pair in five steps of batch size 2, b.lr_mult = 2 and a.wd_mult = 0.5 from the fourth.
REAL = [
    (
        "sgd",
        {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.1},
        [-0.5693336725234985, 1.138667345046997, -1.7080013751983643],
        [-1.1383075714111328, -1.3883075714111328],
    ),
    (
        "adam",
        {"learning_rate": 0.1, "wd": 0.1},
        [0.505574107170105, -1.5092394351959229, 2.5104970932006836],
        [-0.050003618001937866, -0.3000035881996155],
    ),
    (
        "sgd",
        {"learning_rate": 0.1, "lr_scheduler": (2, 0.5)},
        [0.4284000098705292, -0.8568000197410583, 1.2852001190185547],
        [0.08750002086162567, -0.1625000238418579],
    ),
]


@pytest.mark.parametrize(("rule", "keywords", "real_a", "real_b"), REAL)
@pytest.mark.parametrize("ctx", [None, CONTEXTS])
def test_five_steps_with_multipliers_changed_between(rule, keywords, real_a, real_b, ctx):
    keywords = dict(keywords)
    scheduled = "lr_scheduler" in keywords
    if scheduled:
        keywords["lr_scheduler"] = mx.lr_scheduler.FactorScheduler(*keywords["lr_scheduler"])
    a, b = pair(ctx, lr_mult=0.5, wd_mult=0)
    trainer = gluon.Trainer([a, b], rule, keywords)
    rates = []
    for t in range(5):
        if ctx is None:
            run_backward(a, b, t)
        else:  # half of the gradient on each label
            for context in ctx:
                with autograd.record():
                    loss = (a.data(context) ** 2).sum() * (t + 1) / 2 + (b.data(context) * 3).sum() / 2
                loss.backward()
        if t == 3:
            b.lr_mult, a.wd_mult = 2, 0.5
        trainer.step(2)
        rates.append(trainer.learning_rate)
    for parameter, real in ((a, real_a), (b, real_b)):
        for data in parameter.list_data():
            # MXNet rounds beta2 to float32 before it takes 1 - beta2.
            np.testing.assert_allclose(data.asnumpy(), real, rtol=0, atol=5e-6 if rule == "adam" else 1e-6)
        first, *others = [data.asnumpy() for data in parameter.list_data()]
        assert all((first == other).all() for other in others)
    np.testing.assert_allclose(rates, [0.1, 0.1, 0.05, 0.05, 0.025] if scheduled else [0.1] * 5, rtol=1e-12)
    assert trainer.optimizer.num_update == 5
    assert trainer.optimizer.rescale_grad == 0.5
    assert fresh(a, b) == [0] * len(fresh(a, b))


def test_what_it_takes():
    a, b = pair()
    by_name = gluon.ParameterDict()
    by_name.update({"b": b, "a": a})
    trainer = gluon.Trainer(by_name, optimizer.SGD(learning_rate=0.5))
    assert trainer._params == [a, b]
    assert trainer.optimizer.param_dict == {0: a, 1: b}
    assert gluon.Trainer((b, a), "SGD")._params == [b, a]
    for bad in (a, "a", [a, a.data()], iter([a])):
        with pytest.raises(ValueError, match="params"):
            gluon.Trainer(bad, "sgd")
    with pytest.raises(ValueError, match=r"no optimizer 'sgdd'.*adam.*sgd"):
        gluon.Trainer([a], "sgdd")
    with pytest.raises(TypeError, match="momentun"):
        gluon.Trainer([a], "sgd", {"momentun": 0.9})
    with pytest.raises(AssertionError, match="optimizer_params"):
        gluon.Trainer([a], optimizer.SGD(), {"momentum": 0.9})
    with pytest.raises(RuntimeError, match="'c' has not been initialized"):
        gluon.Trainer([a, gluon.Parameter("c", shape=2)], "sgd")
    with pytest.raises(AssertionError, match="same contexts"):
        gluon.Trainer([a, made("c", [1.0], CONTEXTS)], "sgd")
    gluon.Trainer([], "sgd").step(1)


def test_gradients_are_divided_by_the_batch_size():
    w = made("w", [1.0])
    trainer = gluon.Trainer([w], "sgd", {"learning_rate": 0.1, "rescale_grad": 0.5})
    expected = 1.0
    for batch_size in (4, 1, np.int64(2), 8.0):
        with autograd.record():
            loss = (w.data() * 3).sum()
        loss.backward()
        trainer.step(batch_size)
        expected -= 0.1 * 0.5 / batch_size * 3
        np.testing.assert_allclose(w.data().asscalar(), expected, rtol=1e-6)


@pytest.mark.parametrize("zero", [0, 0.0, np.int64(0)])
def test_batch_size_zero(zero):
    a, b = pair()
    trainer = gluon.Trainer([a, b], "sgd")
    run_backward(a, b)
    before = values(a, b)
    for call in (trainer.step, trainer.update):
        with pytest.raises(ZeroDivisionError):
            call(zero)
    assert values(a, b) == before
    assert fresh(a, b) == [1, 1]
    assert trainer.optimizer.rescale_grad == 1.0


def test_rate_and_attributes_set_between_steps():
    w = made("w", [1.0], dtype="float64")
    trainer = gluon.Trainer([w], "sgd", {"learning_rate": 0.5})

    def step(gradient):
        with autograd.record():
            loss = (w.data() * gradient).sum()
        loss.backward()
        before = w.data().asscalar()
        trainer.step(1)
        return w.data().asscalar() - before, before

    assert step(1.0)[0] == -0.5
    trainer.set_learning_rate(0.25)
    assert trainer.learning_rate == 0.25
    assert step(1.0)[0] == -0.25
    trainer.optimizer.wd = 0.5
    moved, before = step(1.0)
    assert moved == -0.25 * (1 + 0.5 * before)
    w.wd_mult = 0.0
    assert step(1.0)[0] == -0.25
    w.lr_mult = 2.0
    assert step(1.0)[0] == -0.5
    trainer.optimizer.clip_gradient = 0.125
    assert step(1.0)[0] == -0.0625
    gluon.ParameterDict.setattr({"w": w}, "lr_mult", 0.0)
    assert step(1.0)[0] == 0
    w.lr_mult = 1.0
    trainer.optimizer.lr_scheduler = mx.lr_scheduler.FactorScheduler(100, base_lr=1.0)
    assert step(1.0)[0] == -0.125
    with pytest.raises(UserWarning, match="scheduler"):
        trainer.set_learning_rate(0.1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_dtypes(rule, dtype):
    a, b = pair(dtype=dtype)
    c, d = pair(dtype="float64")
    options = {"learning_rate": 0.1, "wd": 0.1} | ({"momentum": 0.9} if rule == "sgd" else {})
    trainer = gluon.Trainer([a, b], rule, {**options, "multi_precision": dtype == "float16"})
    reference = gluon.Trainer([c, d], rule, options)
    for t in range(3):
        run_backward(a, b, t)
        run_backward(c, d, t)
        trainer.step(2)
        reference.step(2)
    tolerance = {"float16": 4e-3, "float32": 2e-6, "float64": 0}[dtype]
    for ours, theirs in ((a, c), (b, d)):
        assert ours.data().dtype == np.dtype(dtype)
        np.testing.assert_allclose(ours.data().asnumpy(), theirs.data().asnumpy(), rtol=0, atol=tolerance)


# ---------------------------------------------------------------------------------------------- stale gradients


@pytest.mark.parametrize("ctx", [None, CONTEXTS])
@pytest.mark.parametrize("seen_before", [False, True])
def test_a_stale_gradient_stops_the_step_before_anything_has_happened(ctx, seen_before):
    a, b = pair(ctx)
    trainer = gluon.Trainer([a, b], "sgd", {"learning_rate": 0.1})
    contexts = ctx or [mx.cpu()]

    def run(*parameters):
        for context in contexts:
            with autograd.record():
                loss = sum((p.data(context) * 2).sum() for p in parameters)
            loss.backward()

    if seen_before:
        run(a, b)
        trainer.step(1)
    run(a)
    before = values(a, b), [g.tolist() for g in a.list_grad()], fresh(a, b)
    count, rescale = trainer.optimizer.num_update, trainer.optimizer.rescale_grad
    for call in (trainer.step, trainer.update):
        with pytest.raises(UserWarning, match=r"parameter b is stale.*ignore_stale_grad=True"):
            call(4)
    assert (values(a, b), [g.tolist() for g in a.list_grad()], fresh(a, b)) == before
    assert (trainer.optimizer.num_update, trainer.optimizer.rescale_grad) == (count, rescale)
    trainer.step(1, ignore_stale_grad=True)
    expected = np.array(before[0][0]) - 0.1 * 2 * len(contexts)
    for data in a.list_data():
        np.testing.assert_allclose(data.asnumpy(), expected, rtol=1e-6)
    assert values(b) == before[0][1:]
    assert not any(fresh(a, b))


def test_counts_after_all_kinds_of_steps():
    a, b = pair(dtype="float64")
    trainer = gluon.Trainer([a, b], "adam", {"learning_rate": 0.1, "begin_num_update": 3})
    twins = pair(dtype="float64")
    updater = optimizer.get_updater(optimizer.Adam(learning_rate=0.1, begin_num_update=3))

    def step(call, parts, **keywords):
        for parameter in (p for i, p in enumerate((a, b)) if i in parts):
            with autograd.record():
                loss = (parameter.data() * 2).sum()
            loss.backward()
        call(2, **keywords)
        for i in parts:
            updater(i, nd.ones(twins[i].shape, dtype="float64"), twins[i].data())

    step(trainer.step, (0, 1))
    step(trainer.update, (0, 1))
    step(trainer.step, (0,), ignore_stale_grad=True)
    step(trainer.update, (1,), ignore_stale_grad=True)
    step(trainer.step, (1,), ignore_stale_grad=True)
    step(trainer.step, (0, 1))
    assert values(a, b) == values(*twins)
    assert trainer.optimizer._index_update_count == updater.optimizer._index_update_count == {0: 7, 1: 8}
    assert trainer.optimizer.num_update == 8
    step(trainer.step, (), ignore_stale_grad=True)
    assert values(a, b) == values(*twins)
    assert trainer.optimizer.num_update == 8


def test_the_rate_of_a_step_is_one_with_and_without_a_table():
    results = []
    for ctx in (None, CONTEXTS):
        a, b = pair(ctx)
        scheduler = mx.lr_scheduler.FactorScheduler(1, 0.5, base_lr=1.0)
        trainer = gluon.Trainer([a, b], "sgd", {"lr_scheduler": scheduler})
        for parts in ((a, b), (b,), (a,), (a, b)):
            for parameter in parts:
                for data in parameter.list_data():
                    with autograd.record():
                        loss = data.sum() / len(parameter.list_data())
                    loss.backward()
            trainer.step(1, ignore_stale_grad=True)
        results.append(values(a, b))
    assert results[0] == results[1]
    # Steps 1 to 4 are numbers 1, 2, 2, 3.
    np.testing.assert_allclose(results[0][1], np.array([0.5, 0.25]) - (1 + 0.5 + 0.25), rtol=1e-6)


def test_null_requests_and_constants_are_skipped():
    a, b = pair()
    constant = gluon.Constant("c", [1.0])
    constant.initialize()
    trainer = gluon.Trainer([a, b, constant], "sgd", {"learning_rate": 0.1})
    run_backward(a, b)
    trainer.step(1)
    b.grad_req = "null"
    before = values(b)
    run_backward(a, b)
    trainer.step(1)
    assert values(b) == before
    assert constant.data().asscalar() == 1
    b.grad_req = "write"
    run_backward(a, b)
    trainer.step(1)
    np.testing.assert_allclose(b.data().asnumpy(), np.array(before[0]) - 0.3, rtol=1e-6)
    assert trainer.optimizer._index_update_count == {0: 3, 1: 2}


def test_deferred_parameters():
    net = gluon.nn.Dense(2)
    net.initialize("ones")
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    for call in (trainer.step, trainer.update):
        with pytest.raises(gluon.parameter.DeferredInitializationError, match="weight"):
            call(1)
    assert trainer.optimizer.num_update == 0
    with autograd.record():
        loss = net(nd.ones((1, 3))).sum()
    loss.backward()
    trainer.step(1)
    assert (net.weight.data().asnumpy() == 0.5).all()
    assert (net.bias.data().asnumpy() == -0.5).all()


def test_parameters_that_get_other_memory_between_steps():
    a, b = pair()
    trainer = gluon.Trainer([a, b], "sgd", {"learning_rate": 0.5, "momentum": 0.0})
    run_backward(a, b)
    trainer.step(1)
    a.initialize("ones", force_reinit=True)
    b.cast("float64")
    run_backward(a, b)
    trainer.step(1)
    assert values(a) == [[0, 0, 0]]
    np.testing.assert_allclose(b.data().asnumpy(), np.array([0.5, 0.25]) - 3, rtol=1e-6)
    a.reset_ctx(CONTEXTS)
    b.reset_ctx(CONTEXTS)
    for context in CONTEXTS:
        with autograd.record():
            loss = a.data(context).sum() + b.data(context).sum()
        loss.backward()
    trainer.step(1)
    assert [data.tolist() for data in a.list_data()] == [[-1, -1, -1]] * 2
    assert trainer.optimizer._index_update_count == {0: 3, 1: 3}


@pytest.mark.parametrize("ctx", [None, CONTEXTS])
@pytest.mark.parametrize("started", [False, True])
def test_no_step_while_recording(ctx, started):
    a, b = pair(ctx)
    trainer = gluon.Trainer([a, b], "sgd", {"learning_rate": 0.1, "momentum": 0.9})

    def run():
        for data in (*a.list_data(), *b.list_data()):
            with autograd.record():
                loss = (data * 2).sum()
            loss.backward()

    run()
    if started:
        trainer.step(1)
        run()
    gradients = [g.tolist() for p in (a, b) for g in p.list_grad()]
    before = values(a, b), fresh(a, b), trainer.optimizer.num_update, trainer.optimizer.rescale_grad
    for call in (trainer.step, trainer.update):
        with autograd.record(), pytest.raises(InPlaceError, match=r"Trainer\.step"):
            call(4)
    assert (values(a, b), fresh(a, b), trainer.optimizer.num_update, trainer.optimizer.rescale_grad) == before
    assert gradients == [g.tolist() for p in (a, b) for g in p.list_grad()]
    trainer.step(1)
    assert values(a, b) != before[0]


def test_a_step_in_two_halves():
    a, b = pair(CONTEXTS)
    trainer = gluon.Trainer([a, b], "sgd", {"learning_rate": 0.5})
    for k, context in enumerate(CONTEXTS, 1):
        with autograd.record():
            loss = (a.data(context) * k).sum() + (b.data(context) * 2 * k).sum()
        loss.backward()
    trainer.allreduce_grads()
    assert [g.tolist() for g in a.list_grad()] == [[3, 3, 3]] * 2
    assert [g.tolist() for g in b.list_grad()] == [[6, 6]] * 2
    gluon.utils.clip_global_norm([b.list_grad()[0]], 6)
    trainer.update(3)
    assert [data.tolist() for data in a.list_data()] == [[0.5, -2.5, 2.5]] * 2
    np.testing.assert_allclose(b.data(CONTEXTS[1]).asnumpy(), np.array([0.5, 0.25]) - 1, rtol=1e-6)
    np.testing.assert_allclose(b.data(CONTEXTS[0]).asnumpy(), np.array([0.5, 0.25]) - 0.5**0.5, rtol=1e-6)


def test_a_shared_parameter_is_updated_once():
    first = gluon.nn.Dense(3, in_units=3, use_bias=False, prefix="shared_")
    second = gluon.nn.Dense(3, in_units=3, use_bias=False, params=first.params)
    first.initialize("ones")
    results = []
    for params in (first.collect_params(), [first.weight, second.weight]):
        first.weight.set_data(np.full((3, 3), 0.5))
        trainer = gluon.Trainer(params, "sgd", {"learning_rate": 0.1})
        with autograd.record():
            loss = second(first(nd.array([[1.0, 2.0, 3.0]]))).sum()
        loss.backward()
        np.testing.assert_allclose(first.weight.grad().asnumpy(), [[4.5, 6.0, 7.5]] * 3, rtol=1e-6)
        trainer.step(1)
        results.append(first.weight.data().asnumpy())
        assert trainer.optimizer.num_update == 1
    np.testing.assert_allclose(results[0], 0.5 - 0.1 * np.array([[4.5, 6.0, 7.5]] * 3), rtol=1e-6)
    assert (results[0] == results[1]).all()


def test_two_trainers_with_one_optimizer():
    rule = optimizer.Adam(learning_rate=0.1)
    a, b = pair(dtype="float64")
    c = made("c", [1.0, -2.0, 3.0], dtype="float64")
    first, second = gluon.Trainer([a], rule), gluon.Trainer([b], rule)
    alone = gluon.Trainer([c], "adam", {"learning_rate": 0.1})
    for _ in range(2):
        for parameter, trainer in ((a, first), (c, alone), (b, second)):
            with autograd.record():
                loss = (parameter.data() * 2).sum()
            loss.backward()
            trainer.step(1)
        alone.optimizer._update_count(0)  # the other trainer's step: both call their parameter 0
    assert rule.num_update == alone.optimizer.num_update == 4
    assert values(a) == values(c)


# -------------------------------------------------------------------------------------------- optimisers by hand


@optimizer.register
class Halver(optimizer.Optimizer):
    """A rule with nothing but ``update``: signs of gradients, at half the rate."""

    def create_state(self, index, weight):
        return nd.zeros(weight.shape)

    def update(self, index, weight, grad, state):
        self._update_count(index)
        state += grad * self.rescale_grad
        weight -= 0.5 * self._get_lr(index) * (nd.sign(grad) + self._get_wd(index) * weight)


@pytest.mark.parametrize("ctx", [None, CONTEXTS])
def test_a_rule_that_only_has_update(ctx):
    a, b = pair(ctx, lr_mult=2.0)
    trainer = gluon.Trainer([a, b], "halver", {"learning_rate": 0.5, "wd": 0.1})
    for _ in range(2):
        for data in (*a.list_data(), *b.list_data()):
            with autograd.record():
                loss = (data * 8).sum()
            loss.backward()
        trainer.step(4 * len(a.list_data()))
    expected_a, expected_b = np.array([1.0, -2.0, 3.0]), np.array([0.5, 0.25])
    for _ in range(2):
        expected_a = expected_a - 0.25 * (1 + 0.1 * expected_a)
        expected_b = expected_b - 0.5 * (1 + 0.1 * expected_b)
    for data in a.list_data():
        np.testing.assert_allclose(data.asnumpy(), expected_a, rtol=1e-6)
    for data in b.list_data():
        np.testing.assert_allclose(data.asnumpy(), expected_b, rtol=1e-6)
    assert trainer._updaters[0].states[0].tolist() == [4, 4, 4]
    assert trainer.optimizer._index_update_count == {0: 2, 1: 2}


# -------------------------------------------------------------------------------------------------------- states


@pytest.mark.parametrize(
    ("rule", "keywords"), [("sgd", {"momentum": 0.9, "wd": 0.1}), ("adam", {"wd": 0.1}), ("halver", {})]
)
@pytest.mark.parametrize("ctx", [None, CONTEXTS])
def test_training_goes_on_from_saved_states_as_if_not_interrupted(tmp_path, rule, keywords, ctx):
    def step(parameters, trainer, t):
        for parameter in parameters:
            for data in parameter.list_data():
                with autograd.record():
                    loss = (data**2).sum() * (1 + t)
                loss.backward()
        trainer.step(2)

    def options():
        return {"lr_scheduler": mx.lr_scheduler.FactorScheduler(2, 0.5), "learning_rate": 0.1, **keywords}

    ours = pair(ctx)
    trainer = gluon.Trainer(list(ours), rule, options())
    for t in range(3):
        step(ours, trainer, t)
    path = str(tmp_path / "states")
    trainer.save_states(path)
    assert [file.name for file in tmp_path.iterdir()] == ["states"]
    others = pair(ctx)
    for mine, theirs in zip(ours, others, strict=True):
        theirs.set_data(mine.list_data()[0])
    resumed = gluon.Trainer(list(others), rule, {"learning_rate": 7.0})
    step(others, resumed, 0)  # what was there goes
    for mine, theirs in zip(ours, others, strict=True):
        theirs.set_data(mine.list_data()[0])
    resumed.load_states(path)
    assert resumed.learning_rate == trainer.learning_rate
    assert resumed.optimizer.param_dict == {0: others[0], 1: others[1]}
    for t in range(3, 6):
        step(ours, trainer, t)
        step(others, resumed, t)
        assert values_of_all(ours) == values_of_all(others)
    assert resumed.optimizer._index_update_count == trainer.optimizer._index_update_count == {0: 6, 1: 6}


def values_of_all(parameters):
    return [data.tolist() for parameter in parameters for data in parameter.list_data()]


def test_states_of_one_label_for_two(tmp_path):
    path = str(tmp_path / "states")
    a, b = pair()
    trainer = gluon.Trainer([a, b], "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    run_backward(a, b)
    trainer.step(1)
    trainer.save_states(path)
    c, d = pair(CONTEXTS)
    two = gluon.Trainer([c, d], "sgd")
    two.load_states(path)
    for data in (*c.list_data(), *d.list_data()):
        with autograd.record():
            loss = data.sum()
        loss.backward()
    two.step(1)
    assert [data.tolist() for data in c.list_data()] == [c.list_data()[0].tolist()] * 2
    expected = np.array([1.0, -2.0, 3.0]) - 0.9 * 0.1 * np.array([2.0, -4.0, 6.0]) - 0.2
    np.testing.assert_allclose(c.list_data()[1].asnumpy(), expected, rtol=1e-6)


def test_files_that_are_not_for_this_trainer(tmp_path):
    a, b = pair()
    options = {"learning_rate": 0.1, "momentum": 0.9}
    trainer = gluon.Trainer([a, b], "sgd", options)
    run_backward(a, b)
    trainer.step(1)

    def saved(name, parameters, rule="sgd"):
        other = gluon.Trainer(parameters, rule, options if rule == "sgd" else {})
        for parameter in parameters:
            with autograd.record():
                loss = parameter.data().sum()
            loss.backward()
        other.step(1)
        other.save_states(str(tmp_path / name))

    wide = made("a", [1.0, 2.0, 3.0, 4.0])
    saved("shape", [wide, pair()[1]])
    saved("adam_shape", [wide, pair()[1]], "adam")
    saved("dtype", list(pair(dtype="float64")))
    saved("more", [*pair(), made("c", [1.0])])
    (tmp_path / "garbage").write_bytes(b"garbage")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "other").write_bytes(b"\x80\x04K\x01.")  # a pickled 1
    rule, before = trainer.optimizer, values(a, b)
    states = [state.tolist() for state in trainer._updaters[0].states.values()]
    for name in ("shape", "adam_shape", "dtype", "more", "garbage", "empty", "other", "missing"):
        with pytest.raises(MXNetError, match=f"load_states: .*{name}"):
            trainer.load_states(str(tmp_path / name))
        assert trainer.optimizer is rule
        assert states == [state.tolist() for state in trainer._updaters[0].states.values()]
    assert values(a, b) == before
    twins = pair()
    reference = gluon.Trainer(list(twins), "sgd", options)
    for _ in range(2):
        run_backward(*twins)
        reference.step(1)
    run_backward(a, b)
    trainer.step(1)
    assert values(a, b) == values(*twins)


def test_saving_does_not_disturb_the_steps(tmp_path):
    a, b = pair()
    trainer = gluon.Trainer([a, b], "adam")
    trainer.save_states(str(tmp_path / "before"))
    run_backward(a, b)
    trainer.step(1)
    table = trainer._table
    trainer.save_states(str(tmp_path / "after"))
    run_backward(a, b)
    trainer.step(1)
    assert trainer._table is table
    assert table is not None
    with pytest.raises(FileNotFoundError):
        trainer.save_states(str(tmp_path / "no" / "where"))
    trainer.load_states(str(tmp_path / "before"))
    assert trainer.optimizer.num_update == 0


# ----------------------------------------------------------------------------------------------- around a trainer


def test_clipping_by_the_global_norm():
    arrays = [nd.array([3.0, 0.0]), nd.array([[4.0]], dtype="float64")]
    assert gluon.utils.clip_global_norm(arrays, 10.0) == np.float32(5)
    assert [x.tolist() for x in arrays] == [[3, 0], [[4]]]
    norm = gluon.utils.clip_global_norm(arrays, 1.0)
    assert norm == np.float32(5)
    assert norm.dtype == np.float32
    np.testing.assert_allclose(arrays[0].asnumpy(), [0.6, 0], rtol=1e-6)
    np.testing.assert_allclose(arrays[1].asnumpy(), [[0.8]], rtol=1e-6)
    unchecked = gluon.utils.clip_global_norm(arrays, 1.0, check_isfinite=False)
    np.testing.assert_allclose(unchecked.asnumpy(), [1], rtol=1e-6)
    zeros = [nd.zeros(3)]
    assert gluon.utils.clip_global_norm(zeros, 1.0) == 0
    assert zeros[0].tolist() == [0, 0, 0]
    with pytest.warns(UserWarning, match="nan or inf"):
        gluon.utils.clip_global_norm([nd.array([np.nan])], 1.0)


def test_clipped_gradients_are_what_a_step_uses():
    a, b = pair()
    trainer = gluon.Trainer([a, b], "sgd", {"learning_rate": 1.0})
    run_backward(a, b)
    total = np.sqrt(4 * (1 + 4 + 9) + 2 * 9)
    norm = gluon.utils.clip_global_norm([a.grad(), b.grad()], 1.0)
    np.testing.assert_allclose(norm, total, rtol=1e-6)
    trainer.step(1)
    np.testing.assert_allclose(b.data().asnumpy(), np.array([0.5, 0.25]) - 3 / total, rtol=1e-6)


def test_an_epoch_with_a_loader_is_the_same_with_the_same_seeds():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((22, 3)).astype("float32")
    y = (x @ [1.0, -2.0, 0.5]).astype("float32")

    def train(seed):
        mx.random.seed(seed)
        np.random.seed(seed)
        net = gluon.nn.Dense(1, in_units=3)
        net.initialize(mx.init.Normal(0.5))
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.5})
        loss_of = gluon.loss.L2Loss()
        loader = gluon.data.DataLoader(gluon.data.ArrayDataset(x, y), 5, shuffle=True)
        losses = []
        for _ in range(12):
            total = 0.0
            for inputs, targets in loader:
                with autograd.record():
                    loss = loss_of(net(inputs), targets)
                loss.backward()
                trainer.step(inputs.shape[0])
                total += float(loss.sum().asscalar())
            losses.append(total)
        assert trainer.optimizer.num_update == 12 * 5
        return losses, values(net.weight, net.bias)

    first, again, other = train(3), train(3), train(4)
    assert first == again
    assert first != other
    assert first[0][-1] < 1e-2 * first[0][0]
    np.testing.assert_allclose(first[1][0], [[1.0, -2.0, 0.5]], rtol=0, atol=0.05)


def test_what_happens_to_other_parameters_leaves_tables_alone():
    a, b = pair()
    trainer = gluon.Trainer([a, b], "sgd", {"learning_rate": 0.5})
    run_backward(a, b)
    trainer.step(1)
    table = trainer._table
    others = pair()
    other = gluon.Trainer(list(others), "sgd", {"learning_rate": 0.5})
    others[0].grad_req = "null"
    others[0].cast("float64")
    for parameters, each in (((a, b), trainer), (others, other), ((a, b), trainer)):
        run_backward(*parameters)
        each.step(1)
    assert trainer._table is table
    a.data().attach_grad()  # a gradient that the table does not know
    run_backward(a, b)
    before = a.data().asnumpy()
    trainer.step(1)
    np.testing.assert_allclose(a.data().asnumpy(), before - 0.5 * 2 * before, rtol=0, atol=1e-6)
    assert trainer._table is not table
    assert trainer.optimizer._index_update_count == {0: 4, 1: 4}
