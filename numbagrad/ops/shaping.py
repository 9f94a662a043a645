"""Ops that move elements: views, broadcasting, transposes."""

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels import strided
from numbagrad.launch import launch
from numbagrad.ops.arithmetic import multiply
from numbagrad.ops.casting import raw
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.registry import ArrayLike, Context, Output, Sample, composed


def _x(*shape: int) -> np.ndarray:
    return np.linspace(-1.0, 2.0, size_of(shape)).reshape(shape)


def gather(x: ArrayLike, offset: int, shape: Shape, strides: Sequence[int]) -> np.ndarray:
    """The elements of a strided view of `x`, in C order, as a new flat array."""
    view = strided.layout(offset, shape, tuple(strides))
    out = np.empty(view.count, x._flat.dtype)
    if view.count:
        launch(strided.gather, raw(x._flat), raw(out), view.meta, view.ndim, view.count)
    return out


def normal_axis(name: str, axis: int, ndim: int) -> int:
    """`axis` counted from the front.

    Raises
    ------
    MXNetError
        If it is out of range.
    TypeError
        If it is no int.
    """
    if type(axis) is not int:
        axis = index(axis)
    if not -ndim <= axis < ndim:
        raise MXNetError(f"{name}: axis {axis} is out of range for {ndim} dimensions")
    return axis % ndim


# --------------------------------------------------------------------------------------------------- identity


@composed("identity", lambda context, g: g, float16=True, samples=lambda: [Sample((_x(2, 3),), {}, np.array)])
def identity(x: ArrayLike) -> Output:
    """A copy."""
    flat = x._flat
    n = len(flat)
    out = np.empty(n, flat.dtype)
    launch(strided.copy, raw(flat), raw(out), n)
    return out, x._shape


@composed(
    "stop_gradient",
    lambda context, g: None,
    float16=True,
    differentiable=False,
    samples=lambda: [Sample((_x(2, 3),), {}, np.array)],
)
def stop_gradient(x: ArrayLike) -> Output:
    """A copy through which no gradient flows."""
    out = np.empty_like(x._flat)
    launch(strided.copy, raw(x._flat), raw(out), out.size)
    return out, x._shape


def _make_loss_vjp(context: Context, g: Any) -> Any:
    return full_like(g, value=1)


@composed(
    "make_loss",
    _make_loss_vjp,
    float16=True,
    differentiable=False,
    samples=lambda: [Sample((_x(2, 3),), {}, np.array)],
)
def make_loss(x: ArrayLike) -> Output:
    """A copy that starts the gradient anew: ones go back from it, whatever comes to it."""
    out = np.empty_like(x._flat)
    launch(strided.copy, raw(x._flat), raw(out), out.size)
    return out, x._shape


@composed(
    "scale_gradient",
    lambda context, g: multiply(g, context.params["factor"]),
    float16=True,
    differentiable=False,
    samples=lambda: [Sample((_x(2, 3),), {"factor": -0.5}, np.array)],
)
def scale_gradient(x: ArrayLike, *, factor: float) -> Output:
    """A copy whose gradient is multiplied by `factor`."""
    out = np.empty_like(x._flat)
    launch(strided.copy, raw(x._flat), raw(out), out.size)
    return out, x._shape


# ---------------------------------------------------------------------------------------------------- reshape


def _reshape_vjp(context: Context, g: Any) -> Any:
    return reshape(g, shape=context.shape(0))


@composed(
    "reshape",
    _reshape_vjp,
    view=True,
    float16=True,
    samples=lambda: [Sample((_x(2, 6),), {"shape": (3, 4)}, lambda x: x.reshape(3, 4))],
)
def reshape(x: ArrayLike, *, shape: Shape) -> Output:
    """The same elements in another shape of equal size; a view."""
    if size_of(shape) != x._flat.size:
        raise MXNetError(
            f"reshape: cannot make {shape} of {x._shape}: {size_of(shape)} elements against {x._flat.size}"
        )
    return x._flat, shape


# ------------------------------------------------------------------------------------------------- transposes


def _transpose_vjp(context: Context, g: Any) -> Any:
    axes = context.params["axes"]
    return transpose(g, axes=tuple(int(k) for k in np.argsort(axes)))


@composed(
    "transpose",
    _transpose_vjp,
    float16=True,
    samples=lambda: [
        Sample((_x(2, 3),), {"axes": (1, 0)}, np.transpose),
        Sample((_x(2, 3, 4),), {"axes": (1, 2, 0)}, lambda x: x.transpose(1, 2, 0)),
    ],
)
def transpose(x: ArrayLike, *, axes: tuple[int, ...]) -> Output:
    """`x` with its axes in the order `axes` (a permutation of all of them, from the front)."""
    if sorted(axes) != list(range(len(x._shape))):
        raise MXNetError(f"transpose: axes {axes} are not a permutation of the {len(x._shape)} axes of {x._shape}")
    own = strided.contiguous_strides(x._shape)
    shape = tuple(x._shape[k] for k in axes)
    return gather(x, 0, shape, [own[k] for k in axes]), shape


# ------------------------------------------------------------------------------------------ copies and constants


@composed(
    "reshape_copy",
    lambda context, g: reshape(g, shape=context.shape(0)),
    float16=True,
    samples=lambda: [Sample((_x(2, 6),), {"shape": (3, 4)}, lambda x: x.reshape(3, 4))],
)
def reshape_copy(x: ArrayLike, *, shape: Shape) -> Output:
    """The same elements in another shape of equal size, in memory of their own."""
    if size_of(shape) != x._flat.size:
        raise MXNetError(
            f"reshape: cannot make {shape} of {x._shape}: {size_of(shape)} elements against {x._flat.size}"
        )
    out = np.empty_like(x._flat)
    launch(strided.copy, raw(x._flat), raw(out), out.size)
    return out, shape


def fill_flat(flat: np.ndarray, value: float) -> None:
    """Write `value`, converted to its dtype, to every element of `flat`."""
    if flat.dtype == np.float16:
        launch(strided.fill, int(np.float16(value).view(np.uint16)), raw(flat), flat.size)
    elif flat.dtype.kind == "f":
        launch(strided.fill, value if type(value) is int else float(value), flat, flat.size)
    else:
        launch(strided.fill, int(value), flat, flat.size)


@composed(
    "full_like",
    lambda context, g: None,
    float16=True,
    differentiable=False,
    samples=lambda: [Sample((_x(2, 3),), {"value": 2}, lambda x: np.full_like(x, 2))],
)
def full_like(x: ArrayLike, *, value: float) -> Output:
    """An array of the shape and dtype of `x`, every element `value`; its gradient is zero."""
    out = np.empty_like(x._flat)
    fill_flat(out, value)
    return out, x._shape


# ------------------------------------------------------------------------------------------ flips


def _flip_vjp(context: Context, g: Any) -> Any:
    return flip(g, axes=context.params["axes"])


@composed(
    "flip",
    _flip_vjp,
    float16=True,
    samples=lambda: [
        Sample((_x(2, 3, 2),), {"axes": (1,)}, lambda x: np.flip(x, 1)),
        Sample((_x(2, 3),), {"axes": (0, 1)}, np.flip),
    ],
)
def flip(x: ArrayLike, *, axes: tuple[int, ...]) -> Output:
    """`x` with the order of elements reversed along `axes` (counted from the front)."""
    own = strided.contiguous_strides(x._shape)
    offset = sum((x._shape[k] - 1) * own[k] for k in axes) if x._flat.size else 0
    return gather(x, offset, x._shape, [-step if k in axes else step for k, step in enumerate(own)]), x._shape
