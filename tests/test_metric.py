"""Metrics: their values, their two sums, names and configurations."""

import json
import math

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import nd

RNG = np.random.default_rng(5)
P = RNG.uniform(0.05, 1, (6, 3))
P /= P.sum(1, keepdims=True)
CLASS = np.array([0, 1, 2, 1, 0, 2])
X, Y = RNG.normal(size=(2, 4, 3))
TWO = np.array([[0.1, 0.9], [0.5, 0.5], [0.85, 0.15], [0.3, 0.7]])  # classes 1, 0, 0, 1
BINARY = np.array([1, 0, 1, 0])

CASES = {
    "acc": ((), CLASS, P, (P.argmax(1) == CLASS).mean()),
    "accuracy": ((0,), np.array([0, 0, 1]), P[:4], (P[:4].argmax(0) == [0, 0, 1]).mean()),
    "top_k_accuracy": ((2,), CLASS, P, (np.argsort(-P, 1)[:, :2] == CLASS[:, None]).any(1).mean()),
    "f1": ((), BINARY, TWO, 0.5),  # tp 1, fp 1, fn 1, tn 1
    "mcc": ((), BINARY, TWO, 0.0),
    "ce": ((), CLASS, P, -np.log(P[np.arange(6), CLASS] + 1e-12).mean()),
    "nll_loss": ((0.5,), CLASS, P, -np.log(P[np.arange(6), CLASS] + 0.5).mean()),
    "perplexity": ((None,), CLASS, P, np.exp(-np.log(P[np.arange(6), CLASS]).mean())),
    "mae": ((), X, Y, np.abs(X - Y).mean()),
    "mse": ((), X, Y, ((X - Y) ** 2).mean()),
    "rmse": ((), X, Y, np.sqrt(((X - Y) ** 2).mean())),
    "pearsonr": ((), X, Y, np.corrcoef(X.ravel(), Y.ravel())[0, 1]),
    "loss": ((), X, Y, Y.mean()),
}


@pytest.mark.parametrize("name", CASES)
def test_value_and_configuration(name):
    args, label, pred, expected = CASES[name]
    metric = mx.metric.create(name, *args)
    assert math.isnan(metric.get()[1])
    metric.update([nd.array(label)], [nd.array(pred)])
    title, value = metric.get()
    assert type(value) is float
    assert value == pytest.approx(expected, rel=1e-5, abs=1e-6)
    again = mx.metric.create(json.dumps(metric.get_config()))
    assert again.get_config() == metric.get_config()
    again.update(nd.array(label), nd.array(pred))
    assert again.get() == (title, value)
    assert str(again) == f"EvalMetric: {{'{title}': {value}}}"


def test_names():
    assert mx.metric.TopKAccuracy(top_k=3).get()[0] == "top_k_accuracy_3"
    assert mx.metric.create("CrossEntropy").name == "cross-entropy"
    assert mx.metric.create("acc", name="mine").get_name_value()[0][0] == "mine"
    with pytest.raises(AssertionError, match="nosuch"):
        mx.metric.create("nosuch")
    with pytest.raises(AssertionError, match="top_k"):
        mx.metric.TopKAccuracy(1)


@pytest.mark.parametrize("name", ["f1", "mcc", "pearsonr"])
def test_macro_averages_scores_and_micro_pools(name):
    batches = [(BINARY, TWO), (np.array([1, 1, 0, 0]), TWO)]
    if name == "pearsonr":
        batches = [(X, Y), (Y * 2, X + 1)]
    scores, macro = [], mx.metric.create(name)
    micro = mx.metric.create(name, average="micro")
    for label, pred in batches:
        one = mx.metric.create(name)
        for each in (one, macro, micro):
            each.update([nd.array(label)], [nd.array(pred)])
        scores.append(one.get()[1])
    assert macro.get()[1] == pytest.approx(np.mean(scores))
    pooled = mx.metric.create(name)
    pooled.update(
        [nd.array(np.concatenate([b[0] for b in batches]))], [nd.array(np.concatenate([b[1] for b in batches]))]
    )
    assert micro.get()[1] == pytest.approx(pooled.get()[1])
    with pytest.raises(ValueError, match="macro or micro"):
        mx.metric.create(name, average="mean")


def test_f1_and_mcc_of_one_update_pool_its_batches():
    f1, mcc = mx.metric.F1(), mx.metric.MCC()
    labels, preds = [nd.array([1, 0]), nd.array([1, 0])], [nd.array(TWO[:2]), nd.array([[0.85, 0.15], [1, 0]])]
    f1.update(labels, preds)  # tp 1, fn 1, tn 2
    mcc.update(labels, preds)
    assert f1.get()[1] == pytest.approx(2 / 3)
    assert mcc.get()[1] == pytest.approx(2 / math.sqrt(1 * 2 * 2 * 3))
    with pytest.raises(ValueError, match="binary"):
        f1.update([nd.array([0, 1, 2])], [nd.array(TWO[:3])])


def test_pcc_is_mcc_of_two_classes_and_takes_more():
    pcc, mcc = mx.metric.PCC(), mx.metric.MCC()
    label = np.array([1, 0, 1, 1])
    for metric in (pcc, mcc):
        metric.update([nd.array(label)], [nd.array(TWO)])
    assert pcc.get()[1] == pytest.approx(mcc.get()[1])
    pcc.reset_local()
    # Gorodkin: of one-hot rows the correlation of all entries, each class centred by itself.
    found, right = np.eye(3)[P.argmax(1)], np.eye(3)[CLASS]
    a, b = found - found.mean(0), right - right.mean(0)
    pcc.update([nd.array(CLASS)], [nd.array(P)])
    assert pcc.get()[1] == pytest.approx((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))
    assert pcc.get_global()[1] != pcc.get()[1]


@pytest.mark.parametrize("name", ["acc", "ce", "f1", "pcc", "pearsonr", "perplexity"])
def test_the_global_sum_outlives_a_local_reset(name):
    args = (None,) if name == "perplexity" else ()
    one, other = mx.metric.create(name, *args), mx.metric.create(name, *args)
    label = nd.array(BINARY)
    for pred in (TWO, 1 - TWO, TWO**2):
        given = [nd.array(TWO if name == "pearsonr" else BINARY)], [nd.array(pred)]
        one.update(*given)
        one.reset_local()
        other.update(*given)
    assert one.get_global() == other.get()
    assert math.isnan(one.get()[1])
    one.reset()
    assert math.isnan(one.get_global()[1])
    assert label.shape == (4,)


def test_composite():
    metric = mx.metric.create(["acc", mx.metric.F1()])
    metric.update([nd.array(BINARY)], [nd.array(TWO)])
    assert metric.get() == (["accuracy", "f1"], [0.5, 0.5])
    assert metric.get_name_value() == [("accuracy", 0.5), ("f1", 0.5)]
    assert metric.get_metric(1).name == "f1"
    with pytest.raises(ValueError, match="out of range"):
        metric.get_metric(2)
    assert mx.metric.create(json.dumps(metric.get_config())).get_config() == metric.get_config()
    metric.reset()
    assert all(math.isnan(value) for value in metric.get()[1])


def test_custom():
    def apart(label, pred):
        assert type(label) is np.ndarray
        return np.abs(label - pred).sum(), label.size

    for metric in (mx.metric.create(apart), mx.metric.np(apart), mx.metric.CustomMetric(apart)):
        metric.update([nd.array(X)], [nd.array(Y)])
        name, value = metric.get()
        assert name == "apart"
        assert value == pytest.approx(np.abs(X - Y).mean(), rel=1e-5)
    assert mx.metric.create(lambda a, b: 1).name == "custom(<lambda>)"
    extra = mx.metric.CustomMetric(lambda a, b: 2, allow_extra_outputs=True)
    extra.update([nd.array(X)], [nd.array(Y), nd.array(Y)])
    assert extra.get()[1] == 2
    with pytest.raises(NotImplementedError):
        extra.get_config()


def test_own_classes_register_and_use_the_plain_sums():
    @mx.metric.register
    class CountsForATest(mx.metric.EvalMetric):
        def update(self, labels, preds):
            self.sum_metric += 3
            self.num_inst += 2

    try:
        metric = mx.metric.create("countsforatest", "mine")
        metric.update(None, None)
        assert metric.get() == ("mine", 1.5)
    finally:
        del mx.metric.EvalMetric.registry["countsforatest"]


def test_dicts_are_taken_by_name():
    metric = mx.metric.MAE(output_names=["b"], label_names=["y"])
    metric.update_dict({"x": nd.ones(2), "y": nd.zeros(2)}, {"a": nd.ones(2), "b": nd.full(2, 4)})
    assert metric.get()[1] == 4


def test_lengths_must_fit():
    with pytest.raises(ValueError, match="does not match"):
        mx.metric.Accuracy().update([nd.array([0])], [nd.array([[1, 0]]), nd.array([[1, 0]])])
    with pytest.raises(ValueError, match="3 labels but 2"):
        mx.metric.Accuracy().update([nd.array([0, 1, 1])], [nd.array([[1, 0], [0, 1]])])
    with pytest.raises(ValueError, match=r"\(2, 2\)"):
        mx.metric.check_label_shapes(nd.zeros(3), nd.zeros((2, 2)), shape=True)
    assert mx.metric.check_label_shapes(nd.zeros(3), nd.zeros((3, 2)), wrap=True)[0][0].shape == (3,)


def test_an_ignored_label_does_not_count():
    metric = mx.metric.Perplexity(ignore_label=2)
    metric.update([nd.array(CLASS)], [nd.array(P)])
    kept = P[np.arange(6), CLASS][CLASS != 2]
    assert metric.get()[1] == pytest.approx(np.exp(-np.log(kept).mean()), rel=1e-5)
