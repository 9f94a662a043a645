"""MXNet's imperative training API - autograd, nd, gluon - on Numba kernels."""

from numbagrad.collector import held_back as _held_back

with _held_back():  # classes and functions by the thousand, and none is garbage
    from numbagrad import (
        attribute,
        autograd,
        base,
        context,
        engine,
        gluon,
        initializer,
        io,
        lr_scheduler,
        metric,
        name,
        nd,
        optimizer,
        random,
        runtime,
        scalar,
        testing,
        transforms,
        util,
    )
    from numbagrad.absent import absent as _absent
    from numbagrad.absent import guard as _guard
    from numbagrad.attribute import AttrScope
    from numbagrad.capture import jit
    from numbagrad.context import Context, cpu, cpu_pinned, current_context, gpu, num_gpus
    from numbagrad.errors import MXNetError
    from numbagrad.own_ops import elementwise, register_op
    from numbagrad.util import is_np_array, is_np_shape, np_shape, set_np_shape, use_np_shape

init = initializer
ndarray = nd
rnd = random

__version__ = "0.1.0"
__all__ = [
    "AttrScope",
    "Context",
    "MXNetError",
    "attribute",
    "autograd",
    "base",
    "context",
    "cpu",
    "cpu_pinned",
    "current_context",
    "elementwise",
    "engine",
    "gluon",
    "gpu",
    "init",
    "initializer",
    "io",
    "is_np_array",
    "is_np_shape",
    "jit",
    "lr_scheduler",
    "metric",
    "name",
    "nd",
    "ndarray",
    "np_shape",
    "num_gpus",
    "optimizer",
    "random",
    "register_op",
    "rnd",
    "runtime",
    "scalar",
    "set_np_shape",
    "test_utils",
    "testing",
    "transforms",
    "use_np_shape",
    "util",
]

# A program that asks for a name of MXNet that is not here yet is told so, and what is near.
_guard(
    attribute, autograd, base, context, engine, initializer, io, lr_scheduler, metric, name, nd, nd.contrib, nd.linalg,
    nd.random, optimizer, random, runtime, util, gluon, gluon.block, gluon.data, gluon.loss, gluon.nn, gluon.parameter,
    gluon.trainer, gluon.utils,
)  # fmt: skip
__getattr__ = _absent(__name__, later=("test_utils",))  # it takes a tenth of our import, for tests alone
