"""One kernel call over all parameters does, bit for bit, what updates one by one do."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from numbagrad import lr_scheduler, nd, optimizer
from numbagrad.errors import MXNetError
from numbagrad.optimizer.base import SettingEpoch
from numbagrad.optimizer.table import Table
from numbagrad.tape import RebindEpoch

SHAPES = [(3, 5), (1,), (17,), (2, 2)]
RULES = [
    ("sgd", {"learning_rate": 0.1, "clip_gradient": 0.5}),
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01}),
    ("adam", {"learning_rate": 0.1, "wd": 0.01, "clip_gradient": 0.5}),
]


def arrays(dtypes, seed):
    rng = np.random.default_rng(seed)
    return [nd.array(rng.standard_normal(shape), dtype=dtype) for shape, dtype in zip(SHAPES, dtypes, strict=True)]


def setting(name, keywords, dtypes=("float32",) * 4, **more):
    """A table, and an updater with weights of its own, both over the same gradients."""
    grads = arrays(dtypes, 1)
    multipliers = {i: SimpleNamespace(lr_mult=1 + i / 2, wd_mult=i % 2) for i in range(len(grads))}
    rules = [optimizer.create(name, param_dict=multipliers, **keywords, **more) for _ in range(2)]
    weights = [arrays(dtypes, 0) for _ in range(2)]
    states = [rules[0].create_state(i, w) for i, w in enumerate(weights[0])]
    table = rules[0]._table = Table(rules[0], list(zip(range(4), weights[0], grads, states, strict=True)))
    return SimpleNamespace(
        grads=grads, multipliers=multipliers, rule=rules[0], table=table, weights=weights[0], states=states,
        updater=optimizer.get_updater(rules[1]), twins=weights[1],
    )  # fmt: skip


def step(case, rescale, seed, skip=()):
    for grad, value in zip(case.grads, arrays([g.dtype for g in case.grads], seed), strict=True):
        grad[:] = value
    case.table.run(rescale, skip)
    case.updater.optimizer.rescale_grad = rescale
    for i, (grad, twin) in enumerate(zip(case.grads, case.twins, strict=True)):
        if i not in skip:
            case.updater(i, grad, twin)


def agree(case):
    for i, (weight, twin) in enumerate(zip(case.weights, case.twins, strict=True)):
        assert (weight.asnumpy() == twin.asnumpy()).all()
        for ours, theirs in zip(
            optimizer.base.as_tuple(case.states[i]), optimizer.base.as_tuple(case.updater.states.get(i)), strict=False
        ):
            assert (ours.asnumpy() == theirs.asnumpy()).all()
    assert case.rule._index_update_count == case.updater.optimizer._index_update_count
    assert case.rule.num_update == case.updater.optimizer.num_update


@pytest.mark.parametrize(("name", "keywords"), RULES)
@pytest.mark.parametrize("dtypes", [("float32",) * 4, ("float64", "float32", "float64", "float32")])
def test_equal_to_updates_one_by_one(name, keywords, dtypes):
    case = setting(name, keywords, dtypes)
    start = [w.asnumpy() for w in case.weights]
    for t in range(5):
        step(case, 1 / (1 + t), 10 + t)
        agree(case)
    assert not any((w.asnumpy() == old).all() for w, old in zip(case.weights, start, strict=True))
    assert case.table.counts() == dict.fromkeys(range(4), 5)


@pytest.mark.parametrize(("name", "keywords"), RULES)
def test_skipped_parameters_keep_weight_state_and_count(name, keywords):
    case = setting(name, keywords)
    for t, skip in enumerate([(), (0, 2), (3,), ()]):
        step(case, 0.5, 20 + t, skip)
        agree(case)
    assert case.table.counts() == {0: 3, 1: 4, 2: 3, 3: 3}


def test_attributes_set_between_steps():
    case = setting(*RULES[1])
    ours, theirs = case.rule, case.updater.optimizer
    step(case, 1.0, 1)
    for t, (attribute, value) in enumerate(
        [("wd", 0.3), ("momentum", 0.1), ("clip_gradient", 0.2), ("clip_gradient", None), ("lr", 0.7), ("wd", 0)]
    ):
        for rule in (ours, theirs):
            setattr(rule, attribute, value)
        before = [w.asnumpy() for w in case.weights]
        step(case, 1.0, 30 + t)
        agree(case)
        assert not any((w.asnumpy() == old).all() for w, old in zip(case.weights, before, strict=True))
    for rule in (ours, theirs):
        rule.set_learning_rate(0.0)
        rule.momentum = 0.0
    before = [w.asnumpy() for w in case.weights]
    step(case, 1.0, 40)
    agree(case)
    assert all((w.asnumpy() == old).all() for w, old in zip(case.weights, before, strict=True))


def test_multipliers_are_read_again_when_their_epoch_rises():
    case = setting(*RULES[0])
    step(case, 1.0, 1)
    case.multipliers[0].lr_mult = 0.0
    SettingEpoch.value += 1
    before = case.weights[0].asnumpy()
    step(case, 1.0, 2)
    agree(case)
    assert (case.weights[0].asnumpy() == before).all()


def test_a_schedule_is_asked_once_a_step_by_the_greatest_count():
    asked = []

    def scheduler(n):
        asked.append(n)
        return 1.0 / n

    scheduler.base_lr = 1.0
    case = setting("sgd", {}, lr_scheduler=scheduler)
    weight, grad = case.weights[0], case.grads[0]
    start = weight.asnumpy()
    grad[:] = 1
    case.table.run(1.0)
    case.table.run(1.0, skip=(0,))
    case.table.run(1.0, skip=(1, 2, 3))  # its second update, in a step that is not the third of any
    case.table.run(1.0)
    assert asked == [1, 2, 2, 3]
    np.testing.assert_allclose(weight.asnumpy(), start - (1 + 1 / 2 + 1 / 3), rtol=1e-6)
    case.rule.num_update = 9
    case.table.run(1.0)
    assert asked[-1] == 9
    assert case.rule.num_update == 9


def test_the_schedule_begins_where_counting_begins():
    scheduler = lr_scheduler.FactorScheduler(10, 0.5, base_lr=1.0)
    case = setting("sgd", {}, lr_scheduler=scheduler, begin_num_update=10)
    case.grads[0][:] = 1
    start = case.weights[0].asnumpy()
    case.table.run(1.0)
    np.testing.assert_allclose(case.weights[0].asnumpy(), start - 0.5, rtol=1e-6)
    assert case.rule.num_update == 11


def test_captured_steps_are_disturbed_only_where_decay_or_clipping_come_or_go():
    case = setting(*RULES[1])
    epoch = RebindEpoch.value
    case.table.run(1.0)
    case.rule.lr = 0.5
    case.rule.wd = 0.25
    case.table.run(1.0)
    assert RebindEpoch.value == epoch
    case.rule.wd = 0.0
    case.table.run(1.0)
    assert RebindEpoch.value == epoch + 1
    case.rule.clip_gradient = 1.0
    case.table.run(1.0)
    assert RebindEpoch.value == epoch + 2


def test_an_update_by_hand_goes_on_from_the_tables_count():
    case = setting(*RULES[2])
    step(case, 1.0, 1)
    step(case, 1.0, 2)
    epoch = RebindEpoch.value
    case.rule.update(0, case.weights[0], case.grads[0], case.states[0])
    case.updater(0, case.grads[0], case.twins[0])
    agree(case)
    assert case.rule._table is None
    assert RebindEpoch.value > epoch
    assert case.rule._index_update_count == {0: 3, 1: 2, 2: 2, 3: 2}


def test_pickled_with_its_counts_and_without_table_and_parameters():
    case = setting(*RULES[2])
    step(case, 1.0, 1)
    rule = pickle.loads(pickle.dumps(case.rule))
    assert rule._table is None
    assert rule.param_dict == {}
    assert rule._index_update_count == dict.fromkeys(range(4), 1)
    assert (rule.lr, rule.beta1, rule.wd) == (0.1, 0.9, 0.01)
    assert case.rule._table is case.table
    assert case.rule.param_dict is case.multipliers


def test_nothing_that_does_not_fit_gets_into_a_table():
    rule = optimizer.Adam()
    w = nd.ones(3)
    for grad, state in ((nd.ones(3), None), (nd.ones(2), (w, w)), (nd.ones(3), (nd.ones(3), nd.ones(2)))):
        with pytest.raises(MXNetError, match=r"Adam.*parameter 0"):
            Table(rule, [(0, w, grad, state)])
