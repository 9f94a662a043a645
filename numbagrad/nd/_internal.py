"""``nd._internal``: operators that MXNet spells with an underscore, as far as programs call them by that name."""

from collections.abc import Callable
from typing import Any

from numbagrad.nd import creation, elementwise, random, shape
from numbagrad.nd.arguments import REQUIRED, check_out, expect_array, spelled
from numbagrad.nd.indexing import setitem
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.ops import arithmetic as a
from numbagrad.ops.registry import Elementwise
from numbagrad.ops.shaping import identity

_SCALAR: dict[str, tuple[Elementwise, bool]] = {
    "_plus_scalar": (a.add, False),
    "_minus_scalar": (a.subtract, False),
    "_rminus_scalar": (a.subtract, True),
    "_mul_scalar": (a.multiply, False),
    "_div_scalar": (a.divide, False),
    "_rdiv_scalar": (a.divide, True),
    "_mod_scalar": (a.mod, False),
    "_rmod_scalar": (a.mod, True),
    "_power_scalar": (a.power, False),
    "_rpower_scalar": (a.power, True),
    "_hypot_scalar": (a.hypot, False),
    "_maximum_scalar": (a.maximum, False),
    "_minimum_scalar": (a.minimum, False),
    "_equal_scalar": (a.equal, False),
    "_not_equal_scalar": (a.not_equal, False),
    "_greater_scalar": (a.greater, False),
    "_greater_equal_scalar": (a.greater_equal, False),
    "_lesser_scalar": (a.lesser, False),
    "_lesser_equal_scalar": (a.lesser_equal, False),
    "_logical_and_scalar": (a.logical_and, False),
    "_logical_or_scalar": (a.logical_or, False),
    "_logical_xor_scalar": (a.logical_xor, False),
}
"""The op, and whether the number comes first."""


def _with_scalar(name: str, op: Elementwise, first: bool) -> Any:
    def call(data: NDArray, scalar: float, is_int: bool, out: Any) -> NDArray:
        expect_array(name, data)
        return deliver(op(scalar, data) if first else op(data, scalar), out)

    order = "the number, the array" if first else "the array, the number"
    parameters = {"data": REQUIRED, "scalar": 1.0, "is_int": True, "out": None, "name": None}
    return spelled(name, f"{op.name} of {order}.", parameters, call, {"data": NDArray, "scalar": float})


def _crop_assign(
    lhs: NDArray, rhs: NDArray, begin: Any, end: Any, step: Any = None, out: Any = None, name: str | None = None
) -> NDArray:
    """A copy of `lhs` (itself where it is `out`) with ``lhs[begin:end:step] = rhs``, axis by axis."""
    expect_array("_crop_assign", lhs, rhs)
    return _assigned("_crop_assign", lhs, rhs, begin, end, step, out)


def _crop_assign_scalar(
    data: NDArray,
    scalar: float = 0.0,
    begin: Any = (),
    end: Any = (),
    step: Any = None,
    out: Any = None,
    name: str | None = None,
) -> NDArray:
    """A copy of `data` (itself where it is `out`) with ``data[begin:end:step] = scalar``, axis by axis."""
    expect_array("_crop_assign_scalar", data)
    return _assigned("_crop_assign_scalar", data, scalar, begin, end, step, out)


def _assigned(name: str, data: NDArray, value: Any, begin: Any, end: Any, step: Any, out: Any) -> NDArray:
    if out is not None:
        check_out(name, data._shape, out)
    steps = step or (None,) * len(begin)
    target = data if out is data else identity(data)
    setitem(target, tuple(slice(*each) for each in zip(begin, end, steps, strict=True)), value)
    return target if out is None or out is data else deliver(target, out)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _with_scalar(name, *row) for name, row in _SCALAR.items()},
    **{f"_{name}": function for name, function in random.FUNCTIONS.items() if name.startswith(("random_", "sample_"))},
    "_arange": creation.arange,
    "_copy": elementwise.identity,
    "_copyto": elementwise.identity,
    "_crop_assign": _crop_assign,
    "_crop_assign_scalar": _crop_assign_scalar,
    "_div": elementwise.ARRAYS["elemwise_div"],
    "_eye": creation.eye,
    "_full": creation.full,
    "_linspace": creation.linspace,
    "_maximum": elementwise.ARRAYS["broadcast_maximum"],
    "_minimum": elementwise.ARRAYS["broadcast_minimum"],
    "_minus": elementwise.ARRAYS["elemwise_sub"],
    "_mul": elementwise.ARRAYS["elemwise_mul"],
    "_ones": creation.ones,
    "_plus": elementwise.ARRAYS["elemwise_add"],
    "_shuffle": random.shuffle,
    "_slice_assign": _crop_assign,
    "_slice_assign_scalar": _crop_assign_scalar,
    "_split_v2": shape.split_v2,
    "_zeros": creation.zeros,
}

globals().update(FUNCTIONS)

__all__ = [*FUNCTIONS]
