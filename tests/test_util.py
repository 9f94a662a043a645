"""MXNet's switches, engine settings and base types."""

import threading

import numpy as np
import pytest

import numbagrad as mx


def test_np_shape_is_a_switch_of_the_thread():
    assert not mx.is_np_shape()
    seen = []
    with mx.np_shape(True):
        with mx.np_shape(False):
            assert not mx.is_np_shape()
        assert mx.util.is_np_shape()
        thread = threading.Thread(target=lambda: seen.append(mx.is_np_shape()))
        thread.start()
        thread.join()
    assert seen == [False]
    assert mx.set_np_shape(True) is False
    assert mx.set_np_shape(False) is True
    assert not mx.is_np_array()


def test_use_np_shape_decorates_functions_and_classes():
    @mx.use_np_shape
    def function(x):
        """Its text."""
        return x, mx.is_np_shape()

    @mx.use_np_shape
    class Class:
        def method(self):
            return mx.is_np_shape()

    assert function(3) == (3, True)
    assert function.__doc__ == "Its text."
    assert Class().method()
    assert not mx.is_np_shape()
    with pytest.raises(TypeError):
        mx.use_np_shape(3)


def test_environment(monkeypatch):
    monkeypatch.delenv("NUMBAGRAD_NO_SUCH", raising=False)
    assert mx.util.getenv("NUMBAGRAD_NO_SUCH") is None
    mx.util.setenv("NUMBAGRAD_NO_SUCH", "3")
    assert mx.util.getenv("NUMBAGRAD_NO_SUCH") == "3"
    mx.util.setenv("NUMBAGRAD_NO_SUCH", None)
    assert mx.util.getenv("NUMBAGRAD_NO_SUCH") is None


def test_engine_settings():
    before = mx.engine.set_bulk_size(7)
    with mx.engine.bulk(3):
        assert mx.engine.set_bulk_size(3) == 3
    assert mx.engine.set_bulk_size(before) == 7


def test_base_types():
    assert isinstance("a", mx.base.string_types)
    assert isinstance(np.float32(1), mx.base.numeric_types)
    assert isinstance(1, mx.base.integer_types)
    assert mx.base.py_str(b"a") == "a"


def test_default_ctx_can_be_set():
    context = mx.Context
    first = context.default_ctx
    try:
        context.default_ctx = mx.cpu(3)
        assert mx.current_context() == mx.cpu(3)
        assert mx.nd.zeros((1,)).context == mx.cpu(3)
        with mx.cpu(5):
            context.default_ctx = mx.cpu(6)
            assert mx.current_context() == mx.cpu(6)
        assert context.default_ctx == mx.cpu(3)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(context.default_ctx))
        thread.start()
        thread.join()
        assert seen == [mx.cpu(0)]
        with pytest.raises(TypeError):
            context.default_ctx = "cpu"
    finally:
        context.default_ctx = first


def test_build_features():
    features = mx.runtime.Features()
    assert not features.is_enabled("cuda")
    assert features.is_enabled("LAPACK")
    assert features["LAPACK"] in mx.runtime.feature_list()
    assert repr(features).startswith("[✖ CUDA, ")
    with pytest.raises(RuntimeError, match="NOSUCH"):
        features.is_enabled("nosuch")
