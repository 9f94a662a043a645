"""Blocks: names, structure, hooks, calls."""

import threading

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import autograd, gluon, nd
from numbagrad.gluon import nn


@pytest.fixture(autouse=True)
def fresh_names():
    """Counters start at 0 in each test."""
    with mx.name.NameManager():
        yield


class Net(nn.Block):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.a = nn.Dense(2)
            self.w = self.params.get("w", shape=(2,))
            self.b = nn.HybridSequential()
            with self.b.name_scope():
                self.b.add(nn.Dense(1), nn.Dense(1))
            self.c = nn.HybridSequential(prefix="")
            with self.c.name_scope():
                self.c.add(nn.Dense(1))


# The names that MXNet 1.9.1 gives to the same block.
NAMES = (
    "net0_w net0_dense0_weight net0_dense0_bias net0_hybridsequential0_dense0_weight "
    "net0_hybridsequential0_dense0_bias net0_hybridsequential0_dense1_weight net0_hybridsequential0_dense1_bias "
    "net0_dense1_weight net0_dense1_bias"
).split()


def test_names():
    net = Net()
    assert (net.prefix, net.name) == ("net0_", "net0")
    assert list(net.collect_params()) == NAMES
    assert list(net.params) == ["net0_w"]
    other = Net(params=net.collect_params())
    assert other.prefix == "net1_"
    assert list(other.collect_params()) == NAMES
    assert other.a.weight is net.a.weight
    assert list(Net(prefix="").collect_params()) == [name.removeprefix("net0_") for name in NAMES]
    assert nn.Dense(1, prefix="fc_").name == "fc"
    assert (nn.Dense(1, activation="relu").act.prefix, nn.Activation("tanh").prefix) == ("dense2_relu_", "tanh0_")


def test_names_of_threads_and_prefixes():
    with mx.name.Prefix("left_"):
        assert nn.Dense(1).prefix == "left_dense0_"
    assert nn.Dense(1).prefix == "dense0_"
    found = []
    thread = threading.Thread(target=lambda: found.append(nn.Dense(1).prefix))
    thread.start()
    thread.join()
    assert found == ["dense0_"]
    assert nn.Dense(1).prefix == "dense1_"


def test_attribute_scopes():
    with mx.AttrScope(a="1", b="2"):
        with mx.AttrScope(b="3"):
            assert mx.AttrScope.current.get({"c": "4"}) == {"a": "1", "b": "3", "c": "4"}
        assert mx.AttrScope.current.get(None) == {"a": "1", "b": "2"}
    assert mx.AttrScope.current.get(None) == {}
    with pytest.raises(ValueError, match="string"):
        mx.AttrScope(a=1)


def test_collect_params_selects_by_the_beginning_of_a_name():
    net = Net()
    assert list(net.collect_params(".*weight")) == [name for name in NAMES if name.endswith("weight")]
    assert list(net.collect_params("net0_d")) == [name for name in NAMES if name.startswith("net0_d")]
    assert list(net.collect_params("dense")) == []


def test_repr():
    net = nn.HybridSequential()
    net.add(nn.Dense(3, activation="relu"), nn.Dropout(0.5), nn.Dense(2, in_units=3))
    assert repr(net) == (
        "HybridSequential(\n  (0): Dense(None -> 3, Activation(relu))\n  (1): Dropout(p = 0.5, axes=())\n"
        "  (2): Dense(3 -> 2, linear)\n)"
    )
    outer = nn.Sequential()
    outer.add(net, nn.Flatten())
    assert repr(outer).startswith("Sequential(\n  (0): HybridSequential(\n    (0): Dense(None")
    assert repr(Net()).splitlines()[1] == "  (a): Dense(None -> 2, linear)"


def test_attributes():
    block = gluon.Block()
    block.child = nn.Dense(1)
    second = nn.Dense(2)
    block.child = second
    assert list(block._children.values()) == [second]
    for wrong in (nn.Dropout(0.5), 3, None):
        with pytest.raises(TypeError, match="Changing attribute type for child"):
            block.child = wrong
    block.w = gluon.Parameter("w", shape=1)
    with pytest.raises(AssertionError, match="Overriding Parameter attribute w"):
        block.w = gluon.Parameter("v", shape=1)
    block.number = 1
    block.number = "one"
    hybrid = nn.HybridSequential()
    with pytest.raises(ValueError, match="Children of HybridBlock must also be HybridBlock"):
        hybrid.add(nn.Sequential())


def test_blocks_in_lists_are_reported():
    block = gluon.Block()
    block.layers = [nn.Dense(1)]
    with pytest.warns(UserWarning, match=r'"Block.layers" is an unregistered container'):
        assert len(block.collect_params()) == 0
    block.register_child(block.layers[0])
    assert len(block.collect_params()) == 2


def test_sequential():
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=2), nn.Dense(4, in_units=3), nn.Dense(5, in_units=4))
    assert len(net) == 3
    assert net[-1] is list(net)[2]
    part = net[:2]
    assert type(part) is nn.HybridSequential
    assert (part.prefix, len(part)) == (net.prefix, 2)
    assert part[0] is net[0]
    net.initialize()
    x = nd.array([[1.0, 2.0]])
    assert net(x).tolist() == net[2](part(x)).tolist()
    plain = nn.Sequential()
    plain.add(nn.Dense(1))
    with pytest.warns(UserWarning, match="Consider using HybridSequential"):
        plain.hybridize()


def test_several_outputs_go_on_as_several_inputs():
    class Split(nn.HybridBlock):
        def hybrid_forward(self, F, x):
            return x, 2 * x

    class Sum(nn.HybridBlock):
        def hybrid_forward(self, F, x, y):
            return x + y

    for kind in (nn.Sequential, nn.HybridSequential):
        net = kind()
        net.add(Split(), Sum())
        assert net(nd.array([1.0])).tolist() == [3]
        net.add(Split())
        assert [one.tolist() for one in net(nd.array([1.0]))] == [[3], [6]]


def test_hooks():
    seen = []
    net = nn.HybridSequential()
    net.add(nn.Dense(2, in_units=2, activation="relu"))
    net.initialize()
    handles = [
        net.register_forward_pre_hook(lambda block, args: seen.append(("before", block, args))),
        net.register_forward_hook(lambda block, args, out: seen.append(("after", block, out))),
        net[0].act.register_forward_hook(lambda block, args, out: seen.append(("act", block, out))),
    ]
    x = nd.array([[1.0, -2.0]])
    y = net(x)
    assert [what for what, _, _ in seen] == ["before", "act", "after"]
    assert seen[0][2] == (x,)
    assert seen[2][2] is y
    for handle in handles:
        handle.detach()
        handle.detach()
    assert net(x).tolist() == y.tolist()
    assert len(seen) == 3
    with net.register_forward_hook(lambda *args: seen.append(args)):
        net(x)
    net(x)
    assert len(seen) == 4


def test_apply_goes_from_the_leaves_up():
    net = Net()
    order = []
    assert net.apply(lambda block: order.append(block.name)) is net
    assert order[0] == "net0_dense0"
    assert order[-1] == "net0"
    assert order.index("net0_hybridsequential0_dense1") < order.index("net0_hybridsequential0")


def test_unwritten_forwards():
    for kind in (gluon.Block, gluon.HybridBlock):

        class Empty(kind):
            pass

        with pytest.raises(NotImplementedError, match="Empty"):
            Empty()(nd.ones(1))


def test_inputs_of_hybrid_blocks():
    class First(nn.HybridBlock):
        def hybrid_forward(self, F, x, y):
            return y if x is None else x

    block = First()
    assert block(None, nd.array([3.0])).tolist() == [3]
    assert block([nd.ones(1)], 2.0)[0].tolist() == [1]
    for wrong in ((None, None), (np.ones(1), 2), ([1], "x")):
        with pytest.raises(ValueError, match="must be an NDArray"):
            block(*wrong)
    with pytest.raises(ValueError, match="must be an NDArray"):
        nn.Dense(1, in_units=1)(np.ones((1, 1)))


def test_hybridized_calls_fix_their_pattern():
    class Add(nn.HybridBlock):
        def hybrid_forward(self, F, x, y=None):
            return x if y is None else x + y

    block = Add()
    block.hybridize(static_alloc=True, whatever=1)
    x = nd.ones((2,))
    assert block(x, x).tolist() == [2, 2]
    with pytest.raises(ValueError, match="first call"):
        block(x, None)
    with pytest.raises(ValueError, match="arrays or None"):
        block(x, 2)
    with pytest.raises(ValueError, match="one context"):
        block(x, x.as_in_context(mx.cpu(1)))
    block.hybridize(False)
    assert block(x, 2).tolist() == [3, 3]


def test_hybridize_changes_no_result():
    mx.random.seed(1)
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="tanh"), nn.Dense(1))
    net.initialize()
    x = nd.array([[0.5, -1.0]])
    results = []
    for active in (False, True):
        net.hybridize(active)
        with autograd.record():
            y = net(x)
        y.backward()
        results.append((y.tolist(), net[0].weight.grad().tolist()))
    assert results[0] == results[1]


def test_parameters_reach_hybrid_forward():
    class Scale(nn.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.factor = self.params.get("factor", shape=(1,), init=mx.init.Constant(3))
            self.rate = self.params.get_constant("rate", [10.0])

        def hybrid_forward(self, F, x, factor, rate):
            assert F is nd
            return x * factor + rate

    block = Scale()
    block.initialize()
    with autograd.record():
        y = block(nd.array([2.0]))
    y.backward()
    assert y.tolist() == [16]
    assert block.factor.grad().tolist() == [2]

    class Wrapped(nn.Dense):
        def hybrid_forward(self, F, x, weight, bias):
            return super().hybrid_forward(F, 2 * x, weight, bias)

    layer = Wrapped(1, in_units=1, weight_initializer="ones")
    layer.initialize()
    assert layer(nd.array([[5.0]])).tolist() == [[10]]


def test_deferred_shapes_of_ones_own_block():
    class Product(nn.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.w = self.params.get("w", shape=(2, 0), init="ones", allow_deferred_init=True)

        def hybrid_forward(self, F, x, w):
            return F.dot(x, w, transpose_b=True)

    class Known(Product):
        def infer_shape(self, x):
            self.w.shape = (2, x.shape[1])

    block = Known()
    block.initialize()
    assert block(nd.array([[1.0, 2, 3]])).tolist() == [[6, 6]]
    block = Product()
    block.initialize()
    with pytest.raises(ValueError, match=r"product0_w.*infer_shape"):
        block(nd.ones((1, 3)))


def test_summary(capsys):
    net = nn.HybridSequential()
    net.add(nn.Dense(3, activation="relu"), nn.Dropout(0.5), nn.Dense(2))
    net.initialize()
    net.summary(nd.ones((2, 5)))
    # As MXNet 1.9.1 prints it.
    assert capsys.readouterr().out == (
        "--------------------------------------------------------------------------------\n"
        "        Layer (type)                                Output Shape         Param #\n"
        "================================================================================\n"
        "               Input                                      (2, 5)               0\n"
        "        Activation-1                                      (2, 3)               0\n"
        "             Dense-2                                      (2, 3)              18\n"
        "           Dropout-3                                      (2, 3)               0\n"
        "             Dense-4                                      (2, 2)               8\n"
        "================================================================================\n"
        "Parameters in forward computation graph, duplicate included\n"
        "   Total params: 26\n"
        "   Trainable params: 26\n"
        "   Non-trainable params: 0\n"
        "Shared params in forward computation graph: 0\n"
        "Unique parameters in model: 26\n"
        "--------------------------------------------------------------------------------\n"
    )
    assert not net[0]._hooked
    net.hybridize()
    with pytest.raises(AssertionError, match="must not be hybridized"):
        net.summary(nd.ones((2, 5)))


def test_any_number_of_arguments():
    class Count(gluon.Block):
        def forward(self, *args):
            return len(args)

    block = Count()
    assert [block(*range(n)) for n in range(5)] == [0, 1, 2, 3, 4]
    seen = []
    block.register_forward_hook(lambda block, args, out: seen.append(args))
    assert [block(*range(n)) for n in range(5)] == [0, 1, 2, 3, 4]
    assert seen == [tuple(range(n)) for n in range(5)]


def test_own_call():
    class Called(nn.Dense):
        def __call__(self, x):
            return super().__call__(x) + 1

    net = nn.HybridSequential()
    net.add(Called(1, in_units=1, weight_initializer="ones"))
    net.initialize()
    assert net(nd.array([[2.0]])).tolist() == [[3]]
    net[0].register_forward_hook(lambda *args: None).detach()
    assert net(nd.array([[2.0]])).tolist() == [[3]]


@pytest.mark.parametrize("nested", [False, True])
def test_a_child_that_comes_after_the_first_call_is_called(nested):
    net = inner = nn.HybridSequential()
    if nested:
        net = nn.HybridSequential()
        net.add(inner)
    inner.add(nn.Dense(2, weight_initializer="ones", flatten=False))
    net.hybridize()
    net.initialize()
    x = nd.ones((2, 3, 5))
    assert net(x).asnumpy().tolist() == np.full((2, 3, 2), 5).tolist()
    inner.add(nn.Flatten())
    assert net(x).asnumpy().tolist() == np.full((2, 6), 5).tolist()


def test_a_child_exchanged_after_the_first_call_is_called():
    net = nn.HybridSequential()
    with net.name_scope():
        net.fc1 = nn.Dense(4, flatten=False)
        net.fc2 = nn.Dense(4, flatten=False)
    net.hybridize()
    net.initialize()
    assert net(nd.ones((2, 3, 5))).shape == (2, 3, 4)
    net.fc2 = nn.Dense(4, flatten=True)
    net.fc2.initialize()
    assert net(nd.ones((2, 3, 5))).shape == (2, 4)
