"""Parameters on disk."""

import itertools

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import gluon, nd
from numbagrad.gluon import nn

# What MXNet 1.9.1 wrote for HybridSequential(Dense(1, in_units=2)), weight [[1.5, -2]], bias [0.25].
WRITTEN_BY_MXNET = bytes.fromhex(
    "120100000000000000000000000000000200000000000000c9fa93f900000000020000000100000000000000020000000000000001000000"
    "00000000000000000000c03f000000c0c9fa93f9000000000100000001000000000000000100000000000000000000000000803e02000000"
    "000000000800000000000000302e7765696768740600000000000000302e62696173"
)


def mlp(*sizes, kind=nn.HybridSequential, dtype="float32", prefix=None):
    net = kind(prefix=prefix)
    with net.name_scope():
        for n_in, n_out in itertools.pairwise(sizes):
            net.add(nn.Dense(n_out, in_units=n_in, dtype=dtype))
    return net


@pytest.fixture
def file(tmp_path):
    return str(tmp_path / "net.params")


def values(net):
    return {name: parameter.data().tolist() for name, parameter in net._collect_params_with_prefix().items()}


def test_bytes_are_those_of_mxnet(file):
    net = mlp(2, 1)
    net.initialize()
    net[0].weight.set_data(nd.array([[1.5, -2]]))
    net[0].bias.set_data(nd.array([0.25]))
    net.save_parameters(file)
    with open(file, "rb") as stream:
        assert stream.read() == WRITTEN_BY_MXNET
    other = nn.HybridSequential()
    other.add(nn.Dense(1))
    other.load_parameters(file)
    assert values(other) == {"0.weight": [[1.5, -2]], "0.bias": [0.25]}
    assert other[0].weight.grad().tolist() == [[0, 0]]


def test_names_are_paths(file):
    class Net(nn.Block):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.scale = self.params.get("another_name", shape=(1,))
            self.body = mlp(2, 3, 1)
            self.norm = nn.BatchNorm(in_channels=1)

        def forward(self, x):
            return self.norm(self.body(x)) * self.scale.data()

    net = Net()
    net.initialize()
    net.save_parameters(file)
    assert (
        list(nd.load(file))
        == (
            "scale body.0.weight body.0.bias body.1.weight body.1.bias "
            "norm.gamma norm.beta norm.running_mean norm.running_var"
        ).split()
    )
    other = Net()
    other.load_parameters(file, ctx=mx.cpu(1))
    assert values(other) == values(net)
    assert other.scale.list_ctx() == [mx.cpu(1)]


def test_a_lone_layer(file):
    layer = nn.Dense(2, in_units=1)
    layer.initialize()
    layer.save_parameters(file)
    assert list(nd.load(file)) == ["weight", "bias"]
    other = nn.Dense(2)
    other.load_parameters(file)
    assert values(other) == values(layer)


def test_full_names_of_older_files(file):
    net = mlp(2, 3, prefix="old_")
    net.initialize()
    with pytest.warns(UserWarning, match="save_params is deprecated"):
        net.save_params(file)
    assert list(nd.load(file)) == ["dense0_weight", "dense0_bias"]
    other = mlp(2, 3, prefix="new_")
    with pytest.warns(UserWarning, match="load_params is deprecated"):
        other.load_params(file)
    assert values(other) == values(net)


def test_missing_and_extra(file):
    mlp_file = mlp(2, 3, 1)
    mlp_file.initialize()
    mlp_file.save_parameters(file)
    small, large = mlp(2, 3), mlp(2, 3, 1, 1)
    with pytest.raises(ValueError, match=r"'1.weight'.*not present"):
        small.load_parameters(file)
    small.load_parameters(file, ignore_extra=True)
    assert small[0].weight.data().tolist() == mlp_file[0].weight.data().tolist()
    with pytest.raises(AssertionError, match=r"'2.weight' is missing"):
        large.load_parameters(file)
    large.load_parameters(file, allow_missing=True)
    assert large[1].bias.data().tolist() == mlp_file[1].bias.data().tolist()
    with pytest.raises(RuntimeError, match="has not been initialized"):
        large.save_parameters(file)
    with pytest.raises(mx.MXNetError):
        small.load_parameters(file + ".none")


def test_what_does_not_fit_changes_nothing(file):
    saved = mlp(2, 3, 4)
    saved.initialize("ones")
    saved.save_parameters(file)
    net = mlp(2, 3, 5)
    net.initialize("zeros")
    before = values(net)
    with pytest.raises(AssertionError, match=r"shape incompatible expected \(5, 3\) vs saved \(4, 3\)"):
        net.load_parameters(file)
    assert values(net) == before
    double = mlp(2, 3, 4, dtype="float64")
    double.initialize("zeros")
    before = values(double)
    with pytest.raises(AssertionError, match="dtype incompatible expected float64"):
        double.load_parameters(file)
    with pytest.raises(AssertionError, match="dtype_source"):
        double.load_parameters(file, cast_dtype=True, dtype_source="x")
    with pytest.raises(AssertionError, match="previous initialized"):
        double.load_parameters(file, ctx=mx.cpu(1), cast_dtype=True)
    assert values(double) == before
    double.load_parameters(file, cast_dtype=True)
    assert double[0].weight.data().dtype == np.float64
    assert double[0].weight.data().tolist() == [[1, 1]] * 3
    double.load_parameters(file, cast_dtype=True, dtype_source="saved")
    assert double[0].weight.data().dtype == np.float32
    with open(file, "r+b") as stream:
        stream.truncate(100)
    before = values(double)
    with pytest.raises(mx.MXNetError):
        double.load_parameters(file)
    assert values(double) == before


def test_shared_parameters(file):
    first = nn.Dense(2, in_units=2)
    net = nn.HybridSequential()
    net.add(first, nn.Dense(2, in_units=2, params=first.params))
    net.initialize()
    net.save_parameters(file)
    assert list(nd.load(file)) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    net.save_parameters(file, deduplicate=True)
    assert len(nd.load(file)) == 2
    other = nn.HybridSequential()
    first = nn.Dense(2, in_units=2)
    other.add(first, nn.Dense(2, in_units=2, params=first.params))
    other.load_parameters(file)
    assert values(other) == values(net)


def test_dicts_on_disk(file):
    net = mlp(2, 1, prefix="net_")
    net.initialize()
    params = net.collect_params()
    params.save(file, strip_prefix="net_")
    assert list(nd.load(file)) == ["dense0_weight", "dense0_bias"]
    with pytest.raises(ValueError, match="does not start with 'x_'"):
        params.save(file, strip_prefix="x_")
    nd.save(file, {"arg:dense0_weight": nd.array([[7.0, 8.0]]), "aux:dense0_bias": nd.array([9.0])})
    params.load(file, restore_prefix="net_")
    assert values(net) == {"0.weight": [[7, 8]], "0.bias": [9]}
    nd.save(file, {"net_dense0_weight": nd.zeros((1, 2)), "extra": nd.zeros(1)})
    with pytest.raises(AssertionError, match="'net_dense0_bias' is missing"):
        params.load(file)
    with pytest.raises(AssertionError, match="'extra' loaded"):
        params.load(file, allow_missing=True)
    assert values(net)["0.weight"] == [[7, 8]]
    params.load(file, allow_missing=True, ignore_extra=True)
    assert values(net) == {"0.weight": [[0, 0]], "0.bias": [9]}


def test_replicas_are_averaged(file):
    parameter = gluon.ParameterDict()
    parameter.get("w", shape=1)
    parameter.initialize("ones", ctx=[mx.cpu(0), mx.cpu(1)])
    parameter["w"].list_data()[1][:] = 4
    parameter.save(file)
    assert nd.load(file)["w"].tolist() == [2.5]


def test_arrays_without_names(file):
    nd.save(file, [nd.zeros(1)])
    layer = nn.Dense(1, in_units=1)
    for read in (layer.load_parameters, layer.collect_params().load):
        with pytest.raises(mx.MXNetError, match="no names"):
            read(file)
    nd.save(file, [])
    nn.HybridSequential().load_parameters(file)
