"""The optimisers beyond SGD and Adam, against MXNet 1.9.1 and against themselves in tables and captured steps."""

import pickle

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, gluon, nd, optimizer
from numbagrad.errors import MXNetError

START = np.array([0.5, -1.25, 2.0, 0.1])

# What MXNet 1.9.1 makes of START in six updates, in float32.
REAL: list = [
    ("nag", {"momentum": 0.9, "learning_rate": 0.1}, [-0.074336, -1.3609756, 0.6842873, 0.8230733]),
    (
        "nag",
        {"momentum": 0.9, "learning_rate": 0.1, "clip_gradient": 0.4, "rescale_grad": 0.5},
        [0.212832, -1.2647778, 1.6751633, 0.2355713],
    ),
    ("adagrad", {}, [0.4663977, -1.2553972, 1.9903612, 0.101426]),
    ("adagrad", {"wd": 0.05, "clip_gradient": 0.4, "rescale_grad": 0.5}, [0.4649526, -1.2501014, 1.9828403, 0.104332]),
    ("rmsprop", {}, [0.4887824, -1.2521732, 1.9972759, 0.0999965]),
    (
        "rmsprop",
        {
            "wd": 0.05,
            "clip_gradient": 0.4,
            "rescale_grad": 0.5,
            "gamma1": 0.8,
            "epsilon": 0.001,
            "learning_rate": 0.1,
            "clip_weights": 1.5,
        },
        [-0.2605234, -1.3213415, 1.4517947, 0.1357479],
    ),
    ("rmsprop", {"centered": True}, [0.4570898, -1.2409678, 1.977373, 0.1155597]),
    (
        "rmsprop",
        {
            "wd": 0.05,
            "clip_gradient": 0.4,
            "rescale_grad": 0.5,
            "centered": True,
            "gamma1": 0.8,
            "gamma2": 0.7,
            "epsilon": 0.001,
            "learning_rate": 0.1,
        },
        [-1.5711223, -0.8451085, 0.5923676, 0.8619861],
    ),
    ("adadelta", {}, [0.4445992, -1.2703438, 1.9931706, 0.0923507]),
    (
        "adadelta",
        {"wd": 0.05, "clip_gradient": 0.4, "rescale_grad": 1.0, "rho": 0.8, "epsilon": 0.001},
        [0.0144166, -1.0521727, 1.4622873, 0.010742],
    ),
    ("ftrl", {}, [0.0123784, -0.5630477, 1.2495619, 0.0714738]),
    (
        "ftrl",
        {"wd": 0.05, "clip_gradient": 0.4, "rescale_grad": 0.5, "lamda1": 0.3, "beta": 0.5, "learning_rate": 0.3},
        [-0.0735625, -0.510847, 0.6459417, -0.0],
    ),
    ("adamax", {}, [0.489073, -1.2464513, 1.9937176, 0.1048301]),
    (
        "adamax",
        {"wd": 0.05, "clip_gradient": 0.4, "rescale_grad": 0.5, "beta1": 0.8, "beta2": 0.9, "learning_rate": 0.1},
        [-0.1645819, -1.0425457, 1.5897135, 0.3340638],
    ),
    ("signum", {}, [0.4400001, -1.23, 1.9400001, 0.14]),
    (
        "signum",
        {"wd": 0.05, "clip_gradient": 0.4, "rescale_grad": 0.5, "momentum": 0.8, "wd_lh": 0.1, "learning_rate": 0.1},
        [-0.1144584, -0.9896516, 1.2977617, 0.2813465],
    ),
    ("signum", {"momentum": 0.0, "wd": 0.1}, [0.4371574, -1.2625486, 1.98812, 0.0993117]),
    ("ftml", {}, [0.4681923, -1.255376, 1.9913054, 0.1009361]),
    (
        "ftml",
        {
            "wd": 0.05,
            "clip_gradient": 0.4,
            "rescale_grad": 0.5,
            "beta1": 0.5,
            "beta2": 0.9,
            "epsilon": 0.001,
            "learning_rate": 0.1,
        },
        [0.1559606, -1.2729671, 1.8755127, 0.11811],
    ),
    ("nadam", {}, [0.4955361, -1.250953, 1.9988415, 0.0999941]),
    (
        "nadam",
        {
            "wd": 0.05,
            "clip_gradient": 0.4,
            "rescale_grad": 0.5,
            "beta1": 0.8,
            "beta2": 0.9,
            "epsilon": 0.001,
            "schedule_decay": 0.1,
            "learning_rate": 0.1,
        },
        [0.005381, -1.2731223, 1.8097737, 0.1258122],
    ),
    ("dcasgd", {"lamda": 0.5, "learning_rate": 0.1}, [0.3503882, -1.3930309, 1.8590151, 0.0175725]),
    (
        "dcasgd",
        {"wd": 0.05, "clip_gradient": 0.4, "rescale_grad": 0.5, "learning_rate": 0.1},
        [0.4112087, -1.267658, 1.9147702, 0.0706433],
    ),
    ("lamb", {}, [0.4901145, -1.2480408, 1.9940464, 0.1038508]),
    (
        "lamb",
        {
            "wd": 0.05,
            "clip_gradient": 0.4,
            "rescale_grad": 0.5,
            "beta1": 0.8,
            "beta2": 0.9,
            "epsilon": 0.001,
            "learning_rate": 0.1,
            "lower_bound": 3.0,
            "upper_bound": 5.0,
        },
        [-0.6923813, -1.0659611, 1.3015527, 0.3855356],
    ),
    ("lamb", {"bias_correction": False, "upper_bound": 1.0}, [0.495895, -1.2491893, 1.997529, 0.101597]),
    ("test", {"rescale_grad": 0.5}, [1.25, -0.5, 2.7500002, 0.8500001]),
]
TABLES = ["nag", "adagrad", "rmsprop", "centered", "adadelta", "ftrl", "adamax", "signum", "ftml", "lamb"]
COMPOSED = ["nadam", "dcasgd", "sgld", "test"]


def gradient(t):
    return np.array([0.3, -0.7, 1.9, -2.5]) * (1 - 0.4 * t) + 0.1 * t


def settings(name):
    """The name in the registry and keywords that matter, for a name in TABLES or COMPOSED."""
    more = {"nag": {"momentum": 0.9}, "centered": {"centered": True}, "dcasgd": {"momentum": 0.5}}.get(name, {})
    return ("rmsprop" if name == "centered" else name), {"wd": 0.01, "learning_rate": 0.05, **more}


def run(name, dtype, steps=6, **keywords):
    updater = optimizer.get_updater(optimizer.create(name, **keywords))
    w = nd.array(START, dtype=dtype)
    for t in range(steps):
        updater(0, nd.array(gradient(t), dtype=dtype), w)
    return w, updater


@pytest.mark.parametrize(("name", "keywords", "real"), REAL)
def test_six_updates(name, keywords, real):
    w, _ = run(name, "float32", **keywords)
    # The roots of small sums are steep, and signs jump: rounding in float32 shows more than elsewhere.
    np.testing.assert_allclose(w.asnumpy(), real, rtol=0, atol=3e-6)


@pytest.mark.parametrize("name", [*TABLES, *[name for name in COMPOSED if name != "sgld"]])
def test_precisions_agree(name):
    rule, keywords = settings(name)
    wide, updater = run(rule, "float64", **keywords)
    assert wide.dtype == np.float64
    narrow = run(rule, "float32", **keywords)[0].asnumpy()
    np.testing.assert_allclose(narrow, wide.asnumpy(), rtol=0, atol=2e-5)
    half, updater = run(rule, "float16", multi_precision=True, **keywords)
    assert half.dtype == np.float16
    np.testing.assert_allclose(half.asnumpy(), wide.asnumpy(), rtol=0, atol=2e-2)
    master = updater.states[0][-1 if rule == "nag" else 0]
    assert master.dtype == np.float32
    np.testing.assert_array_equal(master.asnumpy().astype(np.float16), half.asnumpy())


class Data:
    def __init__(self, name, dtype="float32"):
        rule, keywords = settings(name)
        self.params = [gluon.Parameter(f"w{i}", shape=(4,), dtype=dtype) for i in range(2)]
        for param in self.params:
            param.initialize(init=mx.init.Constant(nd.array(START, dtype=dtype)))
        self.trainer = gluon.Trainer(self.params, rule, keywords)

    def step(self, g):
        with autograd.record():
            loss = (self.params[0].data() * g).sum() + (self.params[1].data() * g).sum() * 2
        loss.backward()
        self.trainer.step(1)

    def values(self):
        return [param.data().asnumpy() for param in self.params]


@pytest.mark.parametrize("name", TABLES)
def test_a_trainer_updates_all_parameters_as_one_by_one_also_captured(name):
    eager, captured = Data(name), Data(name)
    step = mx.jit(captured.step)
    rule, keywords = settings(name)
    updater = optimizer.get_updater(optimizer.create(rule, **keywords))
    one_by_one = [nd.array(START) for _ in range(2)]
    for t in range(4):
        g = nd.array(gradient(t))
        eager.step(g)
        step(g)
        for i, w in enumerate(one_by_one):
            updater(i, g * (i + 1), w)
    for a, b, c in zip(eager.values(), captured.values(), one_by_one, strict=True):
        np.testing.assert_array_equal(a, c.asnumpy())
        np.testing.assert_array_equal(a, b)
    assert eager.trainer.optimizer.num_update == captured.trainer.optimizer.num_update == 4


@pytest.mark.parametrize("name", [*TABLES, *COMPOSED])
def test_states_survive_a_file(name, tmp_path):
    first, second = Data(name), Data(name)
    for t in range(2):
        first.step(nd.array(gradient(t)))
    first.trainer.save_states(str(tmp_path / "states"))
    second.trainer.load_states(str(tmp_path / "states"))
    for target, source in zip(second.params, first.params, strict=True):
        target.set_data(source.data())
    for data in (first, second):
        mx.random.seed(1)
        data.step(nd.array(gradient(2)))
    for a, b in zip(first.values(), second.values(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_sgld_adds_noise_of_variance_lr():
    mx.random.seed(4)
    rule = optimizer.create("sgld", learning_rate=0.04, wd=0.5)
    w = nd.full((20_000,), 2)
    rule.update(0, w, nd.full((20_000,), 3), None)
    values = w.asnumpy()
    assert values.mean() == pytest.approx(2 - 0.02 * (3 + 0.5 * 2), abs=0.006)
    assert values.std() == pytest.approx(0.2, abs=0.005)


def test_dcasgd_with_momentum():
    rule = optimizer.create("dcasgd", learning_rate=0.1, momentum=0.9, lamda=0.5)
    w = nd.array(START)
    state = rule.create_state(0, w)
    expected, before, move = START.copy(), START.copy(), 0
    for t in range(3):
        g = gradient(t)
        rule.update(0, w, nd.array(g), state)
        move = 0.9 * move - 0.1 * (g + 0.5 * g**2 * (expected - before))
        before, expected = expected, expected + move
    np.testing.assert_allclose(w.asnumpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["adamax", "lamb", "rmsprop", "adadelta"])
def test_a_gradient_of_zero_moves_nothing(name):
    rule = optimizer.create(name)
    w = nd.array(START)
    rule.update(0, w, nd.zeros((4,)), rule.create_state(0, w))
    np.testing.assert_array_equal(w.asnumpy(), START.astype("float32"))


def test_lists_update_one_by_one():
    rule = optimizer.create("lamb", multi_precision=True)
    weights = [nd.array(START, dtype=dtype) for dtype in ("float16", "float32")]
    states = [rule.create_state_multi_precision(i, w) for i, w in enumerate(weights)]
    rule.update_multi_precision([0, 1], weights, [nd.ones((4,), dtype=w.dtype) for w in weights], states)
    for w in weights:
        assert (w.asnumpy() < START).all()


def test_an_optimizer_with_states_is_pickled_with_its_counts():
    _, updater = run("nadam", "float32", 3)
    again = optimizer.get_updater(optimizer.create("nadam"))
    again.set_states(pickle.loads(pickle.dumps(updater.get_states(dump_optimizer=True))))
    results = []
    for each in (updater, again):
        w = nd.array(START)
        each(0, nd.array(gradient(3)), w)
        results.append(w.asnumpy())
    np.testing.assert_array_equal(*results)


def test_recording_refuses_an_update():
    rule = optimizer.create("nadam")
    w = nd.array(START)
    w.attach_grad()
    state = rule.create_state(0, w)
    with autograd.record(), pytest.raises(MXNetError):
        rule.update(0, w, nd.ones((4,)), state)
    np.testing.assert_array_equal(w.asnumpy(), START.astype("float32"))
    assert rule.num_update == 0
