"""Files in MXNet's format, against bytes that MXNet 1.9.1 wrote."""

import copy
import os
import pickle
import random
import struct

import numpy as np
import pytest

import numbagrad as mx
from numbagrad import nd

BY_MXNET = bytes.fromhex(
    "120100000000000000000000000000000400000000000000"
    "c9fa93f9000000000200000001000000000000000200000000000000010000000000000000000000"
    "0000803f00000040"
    "c9fa93f900000000010000000300000000000000010000000000000006000000"
    "000000000000000001000000000000000200000000000000"
    "c9fa93f900000000010000000200000000000000010000000000000002000000003c003c"
    "c9fa93f9000000000100000002000000000000000100000000000000030000000304"
    "0400000000000000010000000000000061010000000000000062010000000000000068010000000000000074"
)
"""``nd.save(f, {"a": array([[1, 2]]), "b": arange(3, int64), "h": ones(2, float16), "t": array([3, 4], uint8)})``."""


def content():
    return {
        "a": nd.array([[1, 2]]),
        "b": nd.arange(3, dtype="int64"),
        "h": nd.ones((2,), dtype="float16"),
        "t": nd.array([3, 4], dtype="uint8"),
    }


def assert_same(found, expected):
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].dtype is array.dtype
        assert found[name].shape == array.shape
        assert (found[name].asnumpy() == array.asnumpy()).all()


def test_what_mxnet_wrote_is_read_and_written_alike(tmp_path):
    assert_same(nd.load_frombuffer(BY_MXNET), content())
    path = tmp_path / "x.params"
    nd.save(str(path), content())
    assert path.read_bytes() == BY_MXNET


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "int8", "int32", "int64", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 1)])
def test_every_dtype_and_shape_comes_back(tmp_path, dtype, shape):
    values = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype)
    path = tmp_path / "one"
    nd.save(path, nd.array(values, dtype=dtype))
    (found,) = nd.load(path)
    assert found.dtype is values.dtype.type
    assert found.shape == shape
    assert (found.asnumpy() == values).all()


def test_lists_dicts_and_nothing(tmp_path):
    path = str(tmp_path / "x")
    nd.save(path, [nd.ones(2), nd.zeros((1, 2))])
    assert [x.shape for x in nd.load(path)] == [(2,), (1, 2)]
    for empty in ([], {}):
        nd.save(path, empty)
        assert nd.load(path) == []
    nd.save(path, {"zweite ü": nd.ones(1), "": nd.zeros(1)})
    assert list(nd.load(path)) == ["zweite ü", ""]
    for bad, error in (((nd.ones(1),), ValueError), ([1], TypeError), ({1: nd.ones(1)}, TypeError), (3, ValueError)):
        with pytest.raises(error):
            nd.save(path, bad)
    assert list(nd.load(path)) == ["zweite ü", ""]
    assert os.listdir(tmp_path) == ["x"]


def record(head, shape_form, shape):
    return head + struct.pack(f"<{len(shape)}{shape_form}iii", *shape, 2, 1, 0)


def test_old_versions_and_other_devices():
    data = np.array([[1.5, -2.0]], "<f4").tobytes()
    v0 = record(struct.pack("<I", 2), "I", (1, 2)) + data
    v1 = record(struct.pack("<Ii", 0xF993FAC8, 2), "q", (1, 2)) + data
    v2 = record(struct.pack("<Iii", 0xF993FAC9, 0, 2), "q", (1, 2)) + data
    v3 = record(struct.pack("<Iii", 0xF993FACA, 0, 2), "q", (1, 2)) + data
    file = struct.pack("<QQQ", 0x112, 0, 4) + v0 + v1 + v2 + v3 + struct.pack("<Q", 0)
    arrays = nd.load_frombuffer(file)
    assert [x.asnumpy().tolist() for x in arrays] == [[[1.5, -2.0]]] * 4
    assert all(x.context == mx.cpu() for x in arrays)
    nothing = struct.pack("<Iii", 0xF993FAC9, 0, 0)
    (empty,) = nd.load_frombuffer(struct.pack("<QQQ", 0x112, 0, 1) + nothing + struct.pack("<Q", 0))
    assert empty.size == 0


def test_every_truncation_is_refused():
    for end in range(len(BY_MXNET)):
        with pytest.raises(mx.MXNetError, match="the buffer"):
            nd.load_frombuffer(BY_MXNET[:end])


def test_damage_never_does_worse_than_an_error():
    rng = random.Random(2)
    for _ in range(1000):
        damaged = bytearray(BY_MXNET)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            nd.load_frombuffer(bytes(damaged))
        except mx.MXNetError as error:
            assert "load" in str(error)  # noqa: PT017 - some damage cannot be seen


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (struct.pack("<QQQ", 0x113, 0, 0), "0x112"),
        (struct.pack("<QQQ", 0x112, 0, 2**60), "claims"),
        (struct.pack("<QQQIiiq", 0x112, 0, 1, 0xF993FAC9, 0, 1, 2**40) + struct.pack("<iii", 1, 0, 0), "expected"),
        (struct.pack("<QQQIii", 0x112, 0, 1, 0xF993FAC9, 1, 1), "storage type 1"),
        (struct.pack("<QQQIiiq", 0x112, 0, 1, 0xF993FAC9, 0, 1, 1) + struct.pack("<iii", 1, 0, 12), "dtype code 12"),
        (struct.pack("<QQQIii", 0x112, 0, 1, 0xF993FAC9, 0, -3), "axes"),
        (struct.pack("<QQQQ", 0x112, 0, 0, 5), "5 names"),
    ],
)
def test_foreign_files(tmp_path, head, why):
    path = tmp_path / "odd.params"
    path.write_bytes(head)
    with pytest.raises(mx.MXNetError, match=rf"odd\.params.*{why}"):
        nd.load(path)


def test_missing_files():
    with pytest.raises(mx.MXNetError, match="nowhere"):
        nd.load("nowhere/x.params")
    with pytest.raises(TypeError, match="name of a file"):
        nd.load(3)
    with pytest.raises(TypeError, match="bytes"):
        nd.load_frombuffer(3)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.params"
    nd.save(path, [nd.ones(2)])
    before = path.read_bytes()

    def refuse(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        nd.save(path, [nd.zeros(5)])
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.params"]


def test_pickle_and_copies():
    x = nd.array([[1, 2]], dtype="float64")
    x.attach_grad()
    for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert y.dtype is np.float64
        assert y.asnumpy().tolist() == [[1, 2]]
        assert y.grad is None
    z = nd.zeros(1)
    z.__setstate__(x.__getstate__())
    assert z.asnumpy().tolist() == [[1, 2]]
