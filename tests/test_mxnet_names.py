"""The names, keywords and values that MXNet's programs use most: they are there, and calls with them work.

Counted in the lessons of "Dive into Deep Learning", in MXNet's own documents and examples, and in programs of users.
"""

import inspect

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, gluon, nd

NAMES = {
    "": "Context cpu current_context gpu nd ndarray autograd gluon init random metric io optimizer lr_scheduler",
    "nd": """
        FullyConnected abs arange arccos argsort array broadcast_div broadcast_mul broadcast_sub ceil clip concat dot
        elemwise_add empty exp eye floor full load log log_softmax
        max maximum mean min nansum norm normal ones ones_like
        pick power random random_normal random_uniform relu reshape sample_multinomial save sign split sqrt square stack
        sum tile transpose waitall zeros zeros_like
    """,
    "nd.random": "normal uniform",
    "nd.NDArray": """
        T __add__ __eq__ __ge__ __getitem__ __gt__ __iadd__
        __imul__ __isub__ __iter__ __itruediv__ __len__ __lt__ __mul__
        __neg__ __pow__ __radd__ __rmul__ __rtruediv__ __setitem__
        __sub__ __truediv__ abs argmax asnumpy asscalar astype
        attach_grad backward copy copyto dtype exp grad log mean
        norm ones_like relu reshape shape sigmoid size sqrt square
        sum take tanh topk wait_to_read zeros_like
    """,
    "autograd": "is_training predict_mode record train_mode",
    "gluon": "Block HybridBlock Parameter ParameterDict Trainer",
    "gluon.HybridBlock": """
        __call__ collect_params forward hybrid_forward hybridize initialize load_parameters name_scope params prefix
        save_parameters
    """,
    "gluon.nn": "Dense Dropout ELU HybridSequential LeakyReLU PReLU SELU Sequential Swish",
    "gluon.nn.Sequential": "__getitem__ __len__ add",
    "gluon.loss": """
        CosineEmbeddingLoss HingeLoss HuberLoss KLDivLoss L2Loss LogisticLoss Loss SoftmaxCrossEntropyLoss
    """,
    "gluon.data": "ArrayDataset DataLoader RandomSampler",
    "gluon.data.Dataset": "__getitem__ __len__ transform_first",
    "gluon.data.DataLoader": "__iter__",
    "gluon.Parameter": "data grad initialize set_data",
    "gluon.ParameterDict": "__getitem__ get get_constant initialize items load save",
    "gluon.Trainer": "load_states save_states step",
    "gluon.utils": "split_and_load",
    "init": "Constant Initializer Normal Xavier",
    "init.Initializer": "_init_weight",
    "random": "seed uniform",
    "metric": "Accuracy F1",
    "metric.EvalMetric": "get reset update",
    "io": "NDArrayIter",
    "io.DataIter": "__next__ next reset",
    "lr_scheduler": "FactorScheduler MultiFactorScheduler PolyScheduler",
    "optimizer": "AdaDelta AdaGrad Adam Adamax DCASGD FTML Ftrl NAG Nadam RMSProp SGD SGLD Signum",
    "test_utils": "list_gpus",
}

KEYWORDS = {
    "gluon.Block.load_parameters": "ctx",
    "gluon.Block.initialize": "force_reinit init",
    "gluon.Parameter.initialize": "ctx force_reinit init",
    "gluon.Parameter": "grad_req init shape",
    "gluon.ParameterDict": "prefix",
    "gluon.ParameterDict.initialize": "ctx force_reinit",
    "gluon.Trainer": "optimizer optimizer_params params",
    "gluon.Trainer.step": "batch_size",
    "gluon.data.DataLoader": "batch_sampler num_workers shuffle",
    "gluon.nn.Dense": "activation in_units params prefix units",
    "io.NDArrayIter": "batch_size data label shuffle",
    "metric.EvalMetric.update": "labels preds",
}


def find(path):
    found = mx
    for part in filter(None, path.split(".")):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("home", NAMES)
def test_names_are_there(home):
    place = find(home)
    assert [name for name in NAMES[home].split() if not hasattr(place, name)] == []


def parameters(function):
    """The parameters of a function; of a class with ``**kwargs`` those of the classes below it too."""
    if not inspect.isclass(function):
        return set(inspect.signature(function).parameters)
    found = set()
    for klass in function.__mro__:
        if "__init__" in vars(klass):
            own = inspect.signature(klass.__init__).parameters.values()
            found |= {each.name for each in own}
            if not any(each.kind is each.VAR_KEYWORD for each in own):
                break
    return found


@pytest.mark.parametrize("path", KEYWORDS)
def test_keywords_are_there(path):
    assert set(KEYWORDS[path].split()) - parameters(find(path)) == set()


A, B = nd.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]]), nd.array([[1.0, 2.0, 4.0], [2.0, 1.0, 0.5]])
a, b = A.asnumpy(), B.asnumpy()
CPU = mx.cpu()

CALLS = [
    (lambda: nd.FullyConnected(A, B, no_bias=True, num_hidden=2), a @ b.T),
    (lambda: nd.abs(A), abs(a)),
    (lambda: nd.arange(2, 8, 2), [2, 4, 6]),
    (lambda: nd.arccos(nd.array([0, 1])), [np.pi / 2, 0]),
    (lambda: nd.argsort(A, axis=0), a.argsort(0)),
    (lambda: nd.array([1, 2], dtype="int32"), [1, 2]),
    (lambda: nd.broadcast_div(A, B), a / b),
    (lambda: nd.broadcast_mul(A, B), a * b),
    (lambda: nd.broadcast_sub(A, B), a - b),
    (lambda: nd.ceil(A), np.ceil(a)),
    (lambda: nd.clip(A, 0, 1), a.clip(0, 1)),
    (lambda: nd.concat(A, B, A, B, dim=0), np.concatenate([a, b, a, b])),
    (lambda: nd.dot(A, B.T), a @ b.T),
    (lambda: nd.elemwise_add(A, B, out=nd.zeros((2, 3))), a + b),
    (lambda: nd.empty(shape=(2, 3), ctx=CPU).zeros_like(), np.zeros((2, 3))),
    (lambda: nd.exp(A), np.exp(a)),
    (lambda: nd.eye(2, ctx=CPU), np.eye(2)),
    (lambda: nd.floor(A), np.floor(a)),
    (lambda: nd.full((2,), 3), [3, 3]),
    (lambda: nd.log(B), np.log(b)),
    (lambda: nd.log_softmax(A), a - np.log(np.exp(a).sum(1, keepdims=True))),
    (lambda: nd.max(A, axis=1), a.max(1)),
    (lambda: nd.maximum(A, B), np.maximum(a, b)),
    (lambda: nd.mean(A, 0), a.mean(0)),
    (lambda: nd.min(A), [a.min()]),
    (lambda: nd.nansum(A, axis=1, exclude=True), a.sum(0)),
    (lambda: nd.norm(A), [np.linalg.norm(a)]),
    (lambda: nd.ones(shape=(2, 1)), [[1], [1]]),
    (lambda: nd.ones_like(A), np.ones((2, 3))),
    (lambda: nd.pick(A, nd.array([2, 0]), 1), [2, 1.5]),
    (lambda: nd.power(B, 3), b**3),
    (lambda: nd.relu(A), a.clip(0)),
    (lambda: nd.reshape(A, (3, -1)), a.reshape(3, 2)),
    (lambda: nd.sample_multinomial(data=nd.array([0, 1]), shape=(2,)), [1, 1]),
    (lambda: nd.sign(A), np.sign(a)),
    (lambda: nd.split(A, num_outputs=3)[1], a[:, 1:2]),
    (lambda: nd.sqrt(B), np.sqrt(b)),
    (lambda: nd.square(A), a**2),
    (lambda: nd.stack(A, B, axis=1), np.stack([a, b], 1)),
    (lambda: nd.sum(A, axis=1, exclude=True, keepdims=True), a.sum(0, keepdims=True)),
    (lambda: nd.tile(A, (2, 1)), np.tile(a, (2, 1))),
    (lambda: nd.transpose(A, (1, 0)), a.T),
    (lambda: nd.zeros(shape=(2,)), [0, 0]),
    (lambda: nd.zeros_like(A), np.zeros((2, 3))),
    (lambda: A.T + 2 * B.T - (1 + A).T, 2 * b.T - 1),
    (lambda: -A / 2 + 1 / B + B**2, -a / 2 + 1 / b + b**2),
    (lambda: (A == B) + (A >= B) + (A > B) + (A < B), np.where(a >= b, 2.0, 1.0) * np.where(a == b, 2, 1)),
    (lambda: A.abs().sqrt().log().tanh().sigmoid().exp(), np.exp(1 / (1 + np.exp(-np.tanh(np.log(np.sqrt(abs(a)))))))),
    (lambda: A.argmax(axis=1), a.argmax(1)),
    (lambda: A.sum(axis=0, keepdims=True), a.sum(0, keepdims=True)),
    (lambda: A.topk(k=2), np.argsort(-a, 1)[:, :2]),
    (lambda: A.take(nd.array([1, 0, 1])), a[[1, 0, 1]]),
    (lambda: A.astype("int32"), a.astype("int32")),
    (lambda: A[1], a[1]),
    (lambda: A[0:1], a[0:1]),
    (lambda: A[0:2, :], a[0:2]),
    (lambda: A[:, 1], a[:, 1]),
    (lambda: A[1, 2], [a[1, 2]]),
    (lambda: A[1, :], a[1]),
    (lambda: A[0:2, 1], a[0:2, 1]),
]


@pytest.mark.parametrize("k", range(len(CALLS)))
def test_calls(k):
    call, expected = CALLS[k]
    np.testing.assert_allclose(call().asnumpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (slice(None), 7),
        (1, nd.array([7, 8, 9])),
        ((1, 2), 7),
        ((slice(0, 1), slice(None)), 7),
        ((1, slice(None)), 7),
        ((slice(None), 1), 7),
        ((slice(0, 2), slice(1, 3)), 7),
    ],
)
def test_writes(key, value):
    x, expected = A.copy(), a.copy()
    x[key] = value
    expected[key] = np.asarray(value)
    np.testing.assert_array_equal(x.asnumpy(), expected)


def test_samplers_take_their_keywords():
    for sampler in (nd.random.uniform, nd.random_uniform):
        x = sampler(low=2, high=3, shape=(2, 3), ctx=CPU)
        assert x.shape == (2, 3)
        assert 2 <= x.min().asscalar() <= x.max().asscalar() < 3
    for sampler in (nd.random.normal, nd.random_normal, nd.normal):
        x = sampler(loc=100, scale=0.1, shape=(2, 3), ctx=CPU)
        assert abs(x.mean().asscalar() - 100) < 1
    mx.random.seed(1)
    assert mx.random.uniform(shape=(2,)).shape == (2,)


OPTIMIZERS = {
    "sgd": {"learning_rate": 0.1, "wd": 0.01, "momentum": 0.9, "lr_scheduler": None},
    "adam": {"learning_rate": 0.1, "wd": 0.01, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-6},
    "adadelta": {"rho": 0.9, "epsilon": 1e-3},
    "adagrad": {"learning_rate": 0.1, "eps": 1e-5},
    "rmsprop": {"learning_rate": 0.1, "gamma1": 0.9, "gamma2": 0.9, "epsilon": 1e-6, "centered": True},
    "adamax": {"learning_rate": 0.1, "beta1": 0.9, "beta2": 0.99},
    "ftml": {"learning_rate": 0.1, "beta1": 0.6, "beta2": 0.99, "epsilon": 1e-6},
    "ftrl": {"learning_rate": 0.1, "lamda1": 0.01, "beta": 1},
    "nag": {"learning_rate": 0.1, "momentum": 0.9},
    "nadam": {"learning_rate": 0.1, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-6},
    "signum": {"learning_rate": 0.1, "momentum": 0.9, "wd_lh": 0.01},
    "dcasgd": {"momentum": 0.5, "lamda": 0.01},
    "sgld": {"learning_rate": 0.01},
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_trainer_with_each_optimizer(name):
    net = gluon.nn.Sequential()
    with net.name_scope():
        net.add(gluon.nn.Dense(units=4, activation="relu", in_units=3), gluon.nn.Dense(1, activation="softrelu"))
    net.initialize(init=mx.init.Normal(sigma=0.1), force_reinit=True)
    trainer = gluon.Trainer(params=net.collect_params(), optimizer=name, optimizer_params=OPTIMIZERS[name])
    before = None
    for _ in range(2):
        with autograd.record():
            loss = gluon.loss.L2Loss()(net(A), nd.array([0.3, 0.1]))
        loss.backward()
        before = net[1].bias.data().asscalar()
        trainer.step(batch_size=2)
    after = net[1].bias.data().asscalar()
    assert np.isfinite(after)
    assert after != before


@pytest.mark.parametrize(
    "scheduler",
    [
        mx.lr_scheduler.FactorScheduler(step=2, factor=0.5),
        mx.lr_scheduler.MultiFactorScheduler(step=[2, 4], factor=0.5),
        mx.lr_scheduler.PolyScheduler(max_update=10, base_lr=0.1, pwr=2),
    ],
)
def test_schedules_lower_the_rate(scheduler):
    optimizer = mx.optimizer.SGD(learning_rate=0.1, momentum=0.9, wd=0, lr_scheduler=scheduler)
    w = nd.ones((2,))
    state = optimizer.create_state(0, w)
    for _ in range(6):
        optimizer.update(0, w, nd.ones((2,)), state)
    assert optimizer.learning_rate < 0.1


def test_parameters_and_dicts_of_them(tmp_path):
    params = gluon.ParameterDict(prefix="net_")
    weight = params.get("weight", shape=(2, 3), grad_req="write", allow_deferred_init=True, differentiable=True)
    params.get_constant("scale", nd.array([2]))
    params.initialize(ctx=CPU, force_reinit=True)
    weight.initialize(init=mx.init.Xavier(magnitude=2), ctx=CPU, force_reinit=True)
    weight.set_data(A)
    assert weight.name == "net_weight"
    assert weight.shape == weight.grad().shape == (2, 3)
    params.save(str(tmp_path / "p"))
    weight.set_data(B)
    params.load(str(tmp_path / "p"), CPU)
    np.testing.assert_array_equal(params["net_weight"].data().asnumpy(), a)
    assert dict(params.items())["net_weight"] is weight
    assert gluon.Parameter("w", grad_req="write", shape=(1,), init=mx.init.Constant(3)).grad_req == "write"


LOSSES = {
    "CosineEmbeddingLoss": (A, B, nd.array([1, -1])),
    "HingeLoss": (A, nd.sign(A)),
    "HuberLoss": (A, B),
    "KLDivLoss": (nd.log_softmax(A), nd.softmax(B)),
    "L2Loss": (A, B),
    "LogisticLoss": (A, nd.sign(A)),
    "SoftmaxCrossEntropyLoss": (A, nd.array([2, 0])),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    more = {"HuberLoss": {"rho": 0.5}, "KLDivLoss": {"from_logits": True}}.get(name, {})
    assert np.isfinite(getattr(gluon.loss, name)(**more)(*LOSSES[name]).asnumpy()).all()


@pytest.mark.parametrize("name", ["ELU", "LeakyReLU", "PReLU", "SELU", "Swish", "Dropout"])
def test_activations(name):
    layer = getattr(gluon.nn, name)(*{"LeakyReLU": [0.1], "Dropout": [0.5]}.get(name, []))
    layer.initialize()
    layer.hybridize()
    with autograd.train_mode():
        assert autograd.is_training()
        assert layer(A).shape == A.shape


def test_data_is_loaded_in_batches():
    data = gluon.data.ArrayDataset(A, nd.array([0, 1])).transform_first(lambda x: x * 2)
    (batch,) = gluon.data.DataLoader(data, 2, shuffle=True, num_workers=0)
    assert sorted(batch[1].asnumpy().tolist()) == [0, 1]
    assert batch[0].sum().asscalar() == pytest.approx(2 * a.sum())
    batches = gluon.data.BatchSampler(gluon.data.RandomSampler(2), 1)
    assert len(list(gluon.data.DataLoader(data, batch_sampler=batches))) == 2
    assert [part.shape for part in gluon.utils.split_and_load(A, [CPU, mx.cpu(1)])] == [(1, 3), (1, 3)]
    (one,) = mx.io.NDArrayIter(data=A, label=nd.array([0, 1]), batch_size=2, shuffle=True)
    metric = mx.metric.Accuracy()
    metric.update(labels=one.label, preds=one.data)
    assert 0 <= metric.get()[1] <= 1
