"""Copies and pickles of parameters, blocks and losses: values and settings; gradients start at zero."""

import copy
import pickle

import numpy as np
import pytest

from numbagrad import autograd, gluon, nd


def unpickled(value):
    return pickle.loads(pickle.dumps(value))


DEEP = pytest.mark.parametrize("duplicate", [copy.deepcopy, unpickled])


@DEEP
@pytest.mark.parametrize("request_", ["write", "add", "null"])
def test_a_parameter(duplicate, request_):
    p = gluon.Parameter("weight", shape=(2,), grad_req=request_, lr_mult=3.0, wd_mult=0.5)
    p.initialize(init="ones")
    if request_ != "null":
        p.grad()[:] = 7
    q = duplicate(p)
    assert (q.name, q.shape, q.grad_req, q.lr_mult, q.wd_mult) == ("weight", (2,), request_, 3.0, 0.5)
    assert q.data().tolist() == [1.0, 1.0]
    q.set_data([2.0, 2.0])
    assert p.data().tolist() == [1.0, 1.0]
    if request_ != "null":
        assert q.grad().tolist() == [0.0, 0.0]
        with autograd.record():
            loss = (q.data() * 5).sum()
        loss.backward()
        assert q.grad().tolist() == [5.0, 5.0]
        assert p.grad().tolist() == [7.0, 7.0]


def network(hybridize):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(3, activation="tanh"), gluon.nn.BatchNorm(), gluon.nn.Dense(2))
    net.initialize()
    x = nd.array([[0.5, -1.0], [1.0, 2.0]])
    if hybridize:
        net.hybridize()
    net(x)
    return net, x


def step(net, x):
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for _ in range(2):
        with autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(1)
    return net(x).asnumpy()


@DEEP
@pytest.mark.parametrize("hybridize", [False, True])
def test_a_network_trains_on_as_the_first_one(duplicate, hybridize):
    net, x = network(hybridize)
    step(net, x)
    other = duplicate(net)
    before = net(x).asnumpy()
    np.testing.assert_array_equal(other(x).asnumpy(), before)
    assert sorted(other.collect_params()) == sorted(net.collect_params())
    trained = step(other, x)
    assert not np.array_equal(trained, before)
    np.testing.assert_array_equal(net(x).asnumpy(), before)
    np.testing.assert_array_equal(step(net, x), trained)


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_shallow_copy_shares_parameters(hybridize):
    net, x = network(hybridize)
    other = copy.copy(net)
    assert other.collect_params().keys() == net.collect_params().keys()
    step(net, x)
    np.testing.assert_array_equal(other(x).asnumpy(), net(x).asnumpy())
    p = gluon.Parameter("p", shape=(1,))
    p.initialize()
    q = copy.copy(p)
    assert q.data() is p.data()
    assert q.grad()._storage is p.grad()._storage


@DEEP
def test_before_initialisation_and_with_shared_parameters(duplicate):
    net = gluon.nn.HybridSequential()
    first = gluon.nn.Dense(2)
    net.add(first, gluon.nn.Dense(2, params=first.params))
    other = duplicate(net)
    other.initialize()
    assert other(nd.ones((1, 2))).shape == (1, 2)
    assert other[0].weight is other[1].weight
    assert first.weight.shape == (2, 0)


@DEEP
def test_a_loss(duplicate):
    loss = duplicate(gluon.loss.SoftmaxCrossEntropyLoss(axis=0))
    assert loss(nd.zeros((4,)), nd.array(1)).asnumpy() == pytest.approx(np.log(4))
