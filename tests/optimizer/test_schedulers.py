"""Learning rate schedules, update by update."""

import numpy as np
import pytest

from numbagrad import lr_scheduler as schedules
from numbagrad import nd, optimizer

# The rates that MXNet 1.9.1 gives for the numbers 0 to 11.
REAL = [
    (
        lambda: schedules.FactorScheduler(3, 0.5, stop_factor_lr=0.1, base_lr=1.0),
        [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125],
    ),
    (
        lambda: schedules.FactorScheduler(2, 0.5, base_lr=1.0, warmup_steps=4, warmup_begin_lr=0.2),
        [0.2, 0.4, 0.6, 0.8, 0.5, 0.25, 0.25, 0.125, 0.125, 0.0625, 0.0625, 0.03125],
    ),
    (
        lambda: schedules.MultiFactorScheduler([2, 5], 0.1, base_lr=1.0),
        [1, 1, 1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01],
    ),
    (
        lambda: schedules.MultiFactorScheduler(
            [2, 5], 0.1, base_lr=1.0, warmup_steps=3, warmup_begin_lr=0.5, warmup_mode="constant"
        ),
        [0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01],
    ),
    (
        lambda: schedules.PolyScheduler(8, base_lr=1.0),
        [1, 0.765625, 0.5625, 0.390625, 0.25, 0.140625, 0.0625, 0.015625, 0, 0, 0, 0],
    ),
    (
        lambda: schedules.PolyScheduler(8, base_lr=1.0, pwr=1, final_lr=0.1, warmup_steps=2, warmup_begin_lr=0.3),
        [0.3, 0.65, 1, 0.85, 0.7, 0.55, 0.4, 0.25, 0.1, 0.1, 0.1, 0.1],
    ),
    (
        lambda: schedules.CosineScheduler(8, base_lr=1.0, final_lr=0.2),
        [
            1,
            0.969551813,
            0.882842712,
            0.753073373,
            0.6,
            0.446926627,
            0.317157288,
            0.230448187,
            0.2,
            0.2,
            0.2,
            0.2,
        ],
    ),
    (
        lambda: schedules.CosineScheduler(8, base_lr=1.0, warmup_steps=3),
        [0, 1 / 3, 2 / 3, 1, 0.904508497, 0.654508497, 0.345491503, 0.095491503, 0, 0, 0, 0],
    ),
]


@pytest.mark.parametrize(("make", "rates"), REAL)
def test_rates(make, rates):
    scheduler = make()
    np.testing.assert_allclose([scheduler(n) for n in range(12)], rates, rtol=0, atol=1e-9)
    # Asking again, or only for the end, gives the same.
    assert scheduler(11) == scheduler(11)
    np.testing.assert_allclose(make()(11), rates[11], rtol=0, atol=1e-9)


def test_the_floor_of_a_factor():
    scheduler = schedules.FactorScheduler(1, 0.1, stop_factor_lr=0.05, base_lr=1.0)
    np.testing.assert_allclose([scheduler(n) for n in (1, 2, 3, 9)], [1, 0.1, 0.05, 0.05], rtol=1e-12)


@pytest.mark.parametrize("kind", [schedules.PolyScheduler, schedules.CosineScheduler])
def test_a_warm_up_that_takes_all_updates(kind):
    scheduler = kind(2, base_lr=1.0, final_lr=0.25, warmup_steps=2)
    assert [scheduler(n) for n in (0, 1, 2, 3)] == [0, 0.5, 0.25, 0.25]


@pytest.mark.parametrize(
    "make",
    [
        lambda: schedules.LRScheduler(0.1, warmup_begin_lr=0.2),
        lambda: schedules.LRScheduler(warmup_steps=-1),
        lambda: schedules.LRScheduler(warmup_mode="cubic"),
        lambda: schedules.FactorScheduler(0),
        lambda: schedules.FactorScheduler(1, 1.5),
        lambda: schedules.MultiFactorScheduler([]),
        lambda: schedules.MultiFactorScheduler([2, 2]),
        lambda: schedules.MultiFactorScheduler([0, 2]),
        lambda: schedules.MultiFactorScheduler([1], 2),
        lambda: schedules.PolyScheduler(0),
        lambda: schedules.CosineScheduler(2.5),
    ],
)
def test_bad_schedules(make):
    with pytest.raises(ValueError, match="must"):
        make()


def test_a_schedule_without_a_rule():
    with pytest.raises(NotImplementedError, match="LRScheduler"):
        schedules.LRScheduler()(1)


def test_the_first_update_is_number_one():
    asked = []

    def scheduler(n):
        asked.append(n)
        return 1.0 / n

    scheduler.base_lr = 1.0
    rule = optimizer.SGD(lr_scheduler=scheduler)
    updater = optimizer.get_updater(rule)
    w, v = nd.array([0.0]), nd.array([0.0])
    for _ in range(3):
        updater(0, nd.ones(1), w)
        updater(1, nd.ones(1), v)
    assert asked == [1, 1, 2, 2, 3, 3]
    np.testing.assert_allclose(w.asscalar(), -(1 + 1 / 2 + 1 / 3), rtol=1e-6)
    assert rule.learning_rate == 1 / 3


def test_which_base_rate_counts():
    # As in MXNet: a rate that is given, or that the rule has by default, goes before the schedule's own.
    for rule, given, expected in (("sgd", {}, 1.0), ("sgd", {"learning_rate": 0.5}, 0.5), ("adam", {}, 0.001)):
        scheduler = schedules.FactorScheduler(3, 0.5, base_lr=1.0)
        made = optimizer.create(rule, lr_scheduler=scheduler, **given)
        assert made.learning_rate == scheduler.base_lr == expected
