"""Bad input of every kind: an error that names the op and what it met, and everything left as it was."""

import pickle
import re

import numpy as np
import pytest

from numbagrad import Context, autograd, gluon, init, metric, nd, optimizer
from numbagrad.base import MXNetError
from numbagrad.gluon import nn
from numbagrad.gluon.parameter import DeferredInitializationError

X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


class Setting:
    """A network after one training step, arrays of a program, and a picture of all there is."""

    def __init__(self):
        self.x = nd.array(X)
        self.y = nd.array([1.0, 2.0])
        self.labels = nd.array([0.0, 1.0])
        self.v = nd.array([1.0, 2.0, 3.0])
        self.v.attach_grad()
        self.v.grad[:] = 7
        self.net = nn.Dense(2, in_units=3, prefix="net_")
        self.net.initialize()
        self.loss = gluon.loss.SoftmaxCrossEntropyLoss()
        self.trainer = gluon.Trainer(self.net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
        with autograd.record():
            loss = self.loss(self.net(self.x), self.labels)
        loss.backward()
        self.trainer.step(2)

    def picture(self):
        parameters = list(self.net.collect_params().values())
        return [
            autograd.is_recording(),
            autograd.is_training(),
            self.trainer.learning_rate,
            [
                array.asnumpy().tolist()
                for array in (
                    self.x,
                    self.y,
                    self.v,
                    self.v.grad,
                    *[p.data() for p in parameters],
                    *[p.grad() for p in parameters],
                )
            ],
        ]


@pytest.fixture
def setting():
    return Setting()


def initialized(block):
    block.initialize()
    return block


def refused(setting, kind, words, call):
    """`call` raises `kind` with all of `words` in its message, and the picture stays as it was."""
    before = setting.picture()
    with pytest.raises(kind) as caught:
        call()
    assert setting.picture() == before
    message = str(caught.value)
    for word in words:
        assert word in message, f"{word!r} is not in {message!r}"


SHAPES = {
    "add": (lambda s: s.x + s.y, ("add", "(2, 3)", "(2,)")),
    "in place": (lambda s: s.x.__iadd__(nd.zeros((4, 2, 3))), ("add", "(4, 2, 3)", "(2, 3)")),
    "dot": (lambda s: nd.dot(s.x, s.x), ("dot", "(2, 3) by (2, 3)", "axis -1 of the first is 3, axis 0 of the second")),
    "concat": (lambda s: nd.concat(s.x, s.y, dim=0), ("concat", "(2, 3)", "(2,)")),
    "reshape": (lambda s: s.x.reshape((4, 2)), ("reshape", "(4, 2)", "(2, 3)")),
    "network": (lambda s: s.net(nd.zeros((5, 4))), ("FullyConnected", "(5, 4)", "(2, 3)")),
    "head gradient": (lambda s: s.v.backward(nd.ones((2,))), ("backward", "(3,)", "(2,)")),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_that_do_not_fit(setting, name):
    call, words = SHAPES[name]
    refused(setting, MXNetError, words, lambda: call(setting))


@pytest.mark.parametrize("name", ["add", "network"])
def test_shapes_that_do_not_fit_while_recording(setting, name):
    call, words = SHAPES[name]

    def recorded():
        with autograd.record():
            call(setting)

    refused(setting, MXNetError, words, recorded)


def test_label_shapes(setting):
    words = "labels of shape (3,)", "predictions of shape (2, 2)"
    refused(setting, ValueError, words, lambda: setting.loss(setting.net(setting.x), setting.v))
    l2 = gluon.loss.L2Loss()
    refused(setting, ValueError, ("label of shape (2,)", "of shape (2, 3)"), lambda: l2(setting.x, setting.y))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: nd.array([1], dtype="complex64"), ("complex64", "float32")),
        (lambda s: s.x.astype("float1"), ("'float1'", "float32")),
        (lambda s: nd.exp([1.0, 2.0]), ("exp", "list")),
        (lambda s: s.x + "1", ("+", "NDArray", "str")),
        (lambda s: nd.dot(s.x, X), ("dot", "list")),
    ],
)
def test_dtypes_and_types(setting, call, words):
    refused(setting, TypeError, words, lambda: call(setting))


def test_head_gradient_of_another_dtype(setting):
    head = nd.ones((3,), dtype="float64")
    refused(setting, MXNetError, ("backward", "float32", "float64"), lambda: setting.v.backward(head))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: nd.exp(s.x, base=2), ("exp", "'base'")),
        (lambda s: nd.sum(s.x, axes=1), ("sum", "'axes'")),
        (lambda s: nd.FullyConnected(s.x, s.x, hidden=2), ("FullyConnected", "'hidden'")),
        (lambda s: nn.Dense(3, in_unit=2), ("Dense", "'in_unit'")),
        (lambda s: gluon.Trainer(s.net.collect_params(), "sgd", {"lr": 0.1}), ("'lr'",)),
        (lambda s: gluon.loss.L2Loss(wait=1), ("'wait'",)),
    ],
)
def test_unknown_keywords(setting, call, words):
    refused(setting, TypeError, words, lambda: call(setting))


def test_unknown_names(setting):
    params = setting.net.collect_params()
    refused(setting, ValueError, ("'sgdd'", "sgd"), lambda: gluon.Trainer(params, "sgdd"))
    refused(setting, KeyError, ("'wirte'", "write"), lambda: setting.v.attach_grad("wirte"))
    refused(setting, AssertionError, ("xaver", "xavier"), lambda: setting.net.initialize("xaver", force_reinit=True))


def test_backward_twice(setting):
    v = setting.v
    with autograd.record():
        y = v * v
        z = y * 2
    z.backward()
    assert v.grad.asnumpy().tolist() == [4, 8, 12]
    for head in (z, y):
        refused(setting, MXNetError, ("backward", "freed by an earlier backward"), head.backward)
    with autograd.record():
        y = v * v
    y.backward(retain_graph=True)
    y.backward()
    assert v.grad.asnumpy().tolist() == [2, 4, 6]


def test_backward_of_what_was_not_recorded(setting):
    y = setting.v * 2
    refused(setting, MXNetError, ("backward", "(3,)", "autograd.record()"), y.backward)
    with autograd.record():
        y = setting.x * 2
    refused(setting, MXNetError, ("backward", "(2, 3)", "attach_grad"), y.backward)
    with autograd.record():
        y = setting.v * 2
    refused(setting, MXNetError, ("grad", "(2, 3)", "attach_grad"), lambda: autograd.grad(y, setting.x))


def test_one_bad_head_of_several_writes_no_gradient(setting):
    with autograd.record():
        y = setting.v * 2
    bad = setting.x * 2
    refused(setting, MXNetError, ("backward", "(2, 3)"), lambda: autograd.backward([y, bad]))
    y.backward()
    assert setting.v.grad.asnumpy().tolist() == [2, 2, 2]


def _add(x):
    x += 1


def _set(x):
    x[:] = 5


def _element(x):
    x[0] = 5


@pytest.mark.parametrize("write", [_add, _set, _element])
def test_writes_to_recorded_arrays(setting, write):
    with autograd.record():
        y = setting.v * setting.v
        for array in (setting.v, y):
            value = array.asnumpy()
            with pytest.raises(MXNetError, match=re.escape("Inplace operations (+=, -=, x[:]=, etc)")):
                write(array)
            np.testing.assert_array_equal(array.asnumpy(), value)
    y.backward()
    assert setting.v.grad.asnumpy().tolist() == [2, 4, 6]


def test_a_write_between_forward_and_backward(setting):
    with autograd.record():
        y = setting.v * setting.v
    setting.v += 1
    refused(setting, MXNetError, ("backward", "multiply", "(3,)", "written in place"), y.backward)


@pytest.mark.parametrize(
    ("labels", "word"),
    [
        ([np.nan, 0.0], "NaN"),
        ([0.5, 0.0], "whole number"),
        ([0.0, 2.0], "out of range"),
        ([-1.0, 0.0], "out of range"),
        ([0.0, 1e30], "out of range"),
        ([np.inf, 0.0], "out of range"),
    ],
)
def test_labels_that_are_no_class(setting, labels, word):
    labels = nd.array(labels)

    def step():
        with autograd.record():
            loss = setting.loss(setting.net(setting.x), labels)
        loss.backward()
        setting.trainer.step(2)

    refused(setting, MXNetError, ("SoftmaxCrossEntropyLoss", "label", word, "[0, classes)"), step)


def test_nan_targets_of_a_regression_stay_in_their_row():
    loss = gluon.loss.L2Loss()(nd.array(X), nd.array([[np.nan, 0.0, 0.0], [4.0, 5.0, 8.0]])).asnumpy()
    assert np.isnan(loss[0])
    assert loss[1] == pytest.approx(4 / 3 / 2)


def test_an_empty_batch_has_zero_gradients(setting):
    params = setting.net.collect_params()
    before = [p.data().asnumpy() for p in params.values()]
    with autograd.record():
        out = setting.net(nd.zeros((0, 3)))
        loss = setting.loss(out, nd.zeros((0,)))
    assert (out.shape, loss.shape) == ((0, 2), (0,))
    loss.backward()
    for p in params.values():
        assert (p.grad().asnumpy() == 0).all()
    refused(setting, ZeroDivisionError, (), lambda: setting.trainer.step(0))
    for p, value in zip(params.values(), before, strict=True):
        assert (p.data().asnumpy() == value).all()


def test_reductions_of_nothing():
    nothing = nd.zeros((0, 3))
    assert nothing.sum().asscalar() == 0
    assert np.isnan(nothing.mean().asscalar())
    with pytest.raises(MXNetError, match=r"max: .*\(0, 3\)"):
        nothing.max()


def test_parameters_without_values(setting):
    bare = nn.Dense(2, in_units=3, prefix="bare_")
    deferred = nn.Dense(2, prefix="late_")
    deferred.initialize()
    trainer = gluon.Trainer(deferred.collect_params(), "sgd")
    for call in (lambda: bare(setting.x), bare.weight.data, bare.weight.grad):
        refused(setting, RuntimeError, ("bare_weight", "initialize()"), call)
    for call in (deferred.weight.data, lambda: trainer.step(1)):
        refused(setting, DeferredInitializationError, ("late_weight", "(2, 0)", "in_units"), call)
    deferred(setting.x)
    assert deferred.weight.shape == (2, 3)


@pytest.mark.parametrize("content", [b"", b"neither an array file nor a pickle", pickle.dumps({"a": 1})])
def test_wrong_files(setting, content, tmp_path):
    path = tmp_path / "wrong"
    path.write_bytes(content)
    for name, load in (
        ("load", nd.load),
        ("load", setting.net.load_parameters),
        ("load_states", setting.trainer.load_states),
    ):
        refused(setting, MXNetError, (name, str(path)), lambda load=load: load(str(path)))


def test_states_of_another_trainer_are_refused_or_fit(setting, tmp_path):
    path = str(tmp_path / "states")
    setting.trainer.save_states(path)
    setting.trainer.load_states(path)
    refused(setting, MXNetError, ("load_states",), lambda: setting.trainer.load_states(path + ".missing"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: nn.Dense("3"), ("Dense", "units", "int", "'3'")),
        (lambda s: nn.Dropout(None), ("Dropout", "rate", "number", "None")),
        (lambda s: nn.Sequential().add(nn.Dense(2), 1), ("Sequential", "Blocks", "int")),
        (lambda s: gluon.Parameter("w", shape=(2, 1.5)), ("'w'", "shape", "ints", "(2, 1.5)")),
        (lambda s: gluon.loss.HuberLoss(rho="x"), ("HuberLoss", "rho", "number", "'x'")),
        (lambda s: gluon.loss.L1Loss()(s.x, [1.0, 2.0]), ("l1loss", "label", "list")),
        (lambda s: gluon.loss.SoftmaxCELoss()(s.x, [1, 2]), ("softmaxcrossentropyloss", "label", "list")),
        (lambda s: init.Normal("x"), ("Normal", "sigma", "number", "'x'")),
        (lambda s: gluon.Trainer(s.net.collect_params(), "adam", {"beta1": None}), ("Adam", "beta1", "None")),
        (lambda s: optimizer.SGD(learning_rate="fast"), ("SGD", "learning_rate", "'fast'")),
        (lambda s: optimizer.SGD().update(0, s.v, [1.0], None), ("SGD", "list")),
        (lambda s: s.trainer.set_learning_rate("x"), ("set_learning_rate", "'x'")),
        (lambda s: s.trainer.step("x"), ("Trainer.step", "batch_size", "'x'")),
        (lambda s: gluon.utils.clip_global_norm([s.x, 1], 1), ("clip_global_norm", "int")),
        (lambda s: s.x.reshape("x"), ("reshape", "shape", "'x'")),
        (lambda s: s.x.astype("int16"), ("astype", "int16", "float32")),
        (lambda s: s.x.as_in_context("cpu"), ("as_in_context", "ctx", "Context", "'cpu'")),
        (lambda s: np.sum(s.x, axis="x"), ("np.sum", "axis", "'x'")),
        (lambda s: np.add(s.x, "x"), ("np.add", "str")),
        (lambda s: nd.contrib.foreach(1, s.x, []), ("foreach", "int")),
    ],
)
def test_settings_and_arguments_of_a_wrong_kind(setting, call, words):
    refused(setting, TypeError, words, lambda: call(setting))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda s: optimizer.LAMB().update(0, s.v, s.y, None), MXNetError, ("LAMB", "(3,)", "(2,)")),
        (lambda s: initialized(nn.LayerNorm(axis=2))(s.x), MXNetError, ("LayerNorm", "axis 2", "2 dimensions")),
        (lambda s: initialized(nn.BatchNorm(axis=5))(s.x), MXNetError, ("BatchNorm", "axis 5", "2 dimensions")),
        (lambda s: gluon.loss.KLDivLoss()(s.x, s.y), MXNetError, ("(2, 3)", "(2,)")),
        (lambda s: metric.MSE().update([s.v], [s.y]), ValueError, ("mse", "(3, 1)", "(2, 1)")),
        (lambda s: np.add(s.x, s.y), MXNetError, ("np.add", "(2, 3)", "(2,)")),
        (lambda s: Context("tpu"), KeyError, ("'tpu'", "cpu")),
    ],
)
def test_shapes_axes_and_names_elsewhere(setting, call, kind, words):
    refused(setting, kind, words, lambda: call(setting))


def test_errors_of_functions_that_a_loop_calls_stay_as_they_are(setting):
    class Own(ValueError):
        pass

    def body(x, states):
        raise Own("own")

    with pytest.raises(Own, match=r"^own$"):
        nd.contrib.foreach(body, setting.x, [])
