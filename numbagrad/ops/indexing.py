"""Elements chosen by index arrays, and their transposes, which add to the places chosen.

An index array is an ordinary input of any numeric dtype (fractions are cut off) with a zero gradient; positions are
worked out in kernels, so a captured step follows the index array. `mode` says what becomes of an index outside its
axis: ``clip`` moves it to the nearest end, ``wrap`` counts round, ``raise`` counts -n to -1 from the end and refuses
the rest with an IndexError, before anything is written.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from numbagrad import launch as door
from numbagrad import tape
from numbagrad.errors import MXNetError
from numbagrad.kernels import index as kernels
from numbagrad.kernels.kernel import Kernel
from numbagrad.kernels.strided import contiguous_strides
from numbagrad.launch import launch
from numbagrad.ops.arithmetic import equal, where
from numbagrad.ops.casting import cast_flat, raw
from numbagrad.ops.folding import reduced_shape
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.registry import ArrayLike, Context, Output, Sample, composed
from numbagrad.ops.shaping import normal_axis, reshape
from numbagrad.ops.slicing import zeros

_INT64 = np.dtype("int64")
_MODES = {"clip": kernels.CLIP, "wrap": kernels.WRAP, "raise": kernels.RAISE}


def _mode(name: str, mode: str) -> int:
    found = _MODES.get(mode)
    if found is None:
        raise MXNetError(f"{name}: mode must be one of {', '.join(_MODES)}, not {mode!r}")
    return found


def _int64(index: ArrayLike) -> np.ndarray:
    return index._flat if index._flat.dtype == _INT64 else cast_flat(index._flat, _INT64)


def _checked(name: str, shape: Shape, kernel: Kernel, *arguments: Any) -> None:
    """Launch a kernel that refuses indices; say which op it was."""
    try:
        launch(kernel, *arguments)
    except IndexError as error:
        raise IndexError(f"{name}: {error} (array of shape {shape})") from None


def _x(*shape: int) -> np.ndarray:
    return np.cos(np.arange(float(size_of(shape)))).reshape(shape)


# ------------------------------------------------------------------------------------------------ positions


def _positions(name: str, flats: Sequence[np.ndarray], lengths: Shape, strides: Sequence[int]) -> np.ndarray:
    out = zeros(flats[0].size, _INT64)
    for flat, length, stride in zip(flats, lengths, strides, strict=True):
        _checked(name, lengths, kernels.flat_index, flat, out, flat.size, length, stride)
    return out


@composed(
    "positions",
    lambda context, *g: [None] * len(context.params["lengths"]),
    float16=True,
    differentiable=False,
    samples=lambda: [
        Sample(
            (np.array([[0, -1]]), np.array([[2, 1]])),
            {"lengths": (2, 3), "strides": (3, 1)},
            lambda i, j: np.array([[2, 4]]),
        )
    ],
)
def positions(*indices: ArrayLike, lengths: Shape, strides: tuple[int, ...]) -> Output:
    """The sum of ``index * stride`` over index arrays of one shape, int64; -n to -1 count from the end.

    Raises
    ------
    IndexError
        If an index is outside its length.
    """
    return _positions("indexing", [_int64(index) for index in indices], lengths, strides), indices[0]._shape


@composed(
    "nd_positions",
    lambda context, g: None,
    float16=True,
    differentiable=False,
    samples=lambda: [Sample((np.array([[0, -1], [2, 1]]),), {"lengths": (2, 3)}, lambda i: np.array([2, 4]))],
)
def nd_positions(indices: ArrayLike, *, lengths: Shape) -> Output:
    """The flat positions of points in an array of shape `lengths`: coordinate k of each point is ``indices[k]``."""
    flat = _int64(indices)
    shape = indices._shape[1:]
    n = size_of(shape)
    rows = [flat[k * n : (k + 1) * n] for k in range(len(lengths))]
    return _positions("gather_nd", rows, lengths, contiguous_strides(lengths)), shape


@composed(
    "true_positions",
    lambda context, g: None,
    float16=True,
    differentiable=False,
    samples=lambda: [Sample((np.array([[0, 3], [-1, 0]]),), {}, lambda m: np.flatnonzero(m))],
)
def true_positions(mask: ArrayLike) -> Output:
    """Where the flat `mask` is not 0, int64, ascending. The shape depends on values, so they are read."""
    door.reading()
    flat = mask._flat if mask._flat.dtype != np.float16 else cast_flat(mask._flat, np.dtype(bool))
    count = np.empty(1, _INT64)
    launch(kernels.count_true, flat, count, flat.size)
    n = int(count[0])
    out = np.empty(n, _INT64)
    launch(kernels.true_positions, flat, out, flat.size, n)
    return out, (n,)


# ----------------------------------------------------------------------------------------------------- take


def _block(shape: Shape, first: int, last: int) -> tuple[int, int, int]:
    return size_of(shape[:first]), size_of(shape[first:last]), size_of(shape[last:])


def _take_vjp(context: Context, g: Any) -> Any:
    params = context.params
    return take_add(g, context.x(1), **params, shape=context.shape(0)), None


_ROWS = np.array([[2, 0], [2, -1]])


@composed(
    "take",
    _take_vjp,
    saves="x1",
    float16=True,
    samples=lambda: [
        Sample((_x(3, 2), _ROWS), {"first": 0, "last": 1, "mode": "wrap"}, lambda x, i: x[i]),
        Sample((_x(2, 4, 2), _ROWS), {"first": 1, "last": 2, "mode": "clip"}, lambda x, i: x[:, np.maximum(i, 0)]),
        Sample((_x(2, 3), _ROWS), {"first": 0, "last": 2, "mode": "raise"}, lambda x, i: x.ravel()[i]),
    ],
)
def take_(x: ArrayLike, index: ArrayLike, *, first: int, last: int, mode: str) -> Output:
    """`x` at `index` along its axes `first` to `last`, counted as one; their place is taken by those of `index`."""
    shape = x._shape
    outer, n, inner = _block(shape, first, last)
    positions = _int64(index)
    out = np.empty(outer * positions.size * inner, x._flat.dtype)
    _checked(
        "take", shape, kernels.take,
        raw(x._flat), positions, raw(out), outer, n, inner, positions.size, _mode("take", mode),
    )  # fmt: skip
    return out, shape[:first] + index._shape + shape[last:]


def _take_add_vjp(context: Context, g: Any) -> Any:
    params = context.params
    return take_(g, context.x(1), first=params["first"], last=params["last"], mode=params["mode"]), None


def _added(g: np.ndarray, index: np.ndarray) -> np.ndarray:
    out = np.zeros((3, 2))
    np.add.at(out, index, g)
    return out


@composed(
    "take_add",
    _take_add_vjp,
    saves="x1",
    samples=lambda: [
        Sample((_x(2, 2, 2), _ROWS), {"first": 0, "last": 1, "mode": "wrap", "shape": (3, 2)}, _added),
    ],
)
def take_add(g: ArrayLike, index: ArrayLike, *, first: int, last: int, mode: str, shape: Shape) -> Output:
    """Zeros of `shape` with `g` added at `index`; the transpose of `take_`."""
    outer, n, inner = _block(shape, first, last)
    positions = _int64(index)
    out = zeros(size_of(shape), g._flat.dtype)
    _checked(
        "take_add", shape, kernels.take_add,
        g._flat, positions, out, outer, n, inner, positions.size, _mode("take_add", mode),
    )  # fmt: skip
    return out, shape


def take(x: Any, index: Any, *, axis: int = 0, mode: str = "clip") -> Any:
    """`x` at `index` along an axis."""
    axis = normal_axis("take", axis, len(x._shape))
    return take_(x, index, first=axis, last=axis + 1, mode=mode)


def embedding(weight: Any, index: Any) -> Any:
    """The rows of `weight` at `index`, clipped to the table."""
    return take_(weight, index, first=0, last=1, mode="clip")


def gather_nd(x: Any, indices: Any) -> Any:
    """``x[indices[0], indices[1], ...]``.

    Raises
    ------
    MXNetError
        If there are more index rows than axes.
    IndexError
        If an index is out of range.
    """
    span = _span("gather_nd", indices, len(x._shape))
    return take_(x, nd_positions(indices, lengths=x._shape[:span]), first=0, last=span, mode="clip")


def _span(name: str, indices: Any, ndim: int) -> int:
    if not indices._shape or not 0 < indices._shape[0] <= ndim:
        raise MXNetError(
            f"{name}: axis 0 of the indices, of shape {indices._shape}, must count 1 to {ndim} axes of the array"
        )
    return indices._shape[0]


def along(shape: Shape, index: Any, *, axis: int) -> Any:
    """The flat positions in an array of `shape` that `take_along` reads."""
    wanted = index._shape
    steps = contiguous_strides(shape)
    grid = [np.arange(n) * step for n, step in zip(wanted, steps, strict=True)]
    grid[axis] = np.zeros(wanted[axis], _INT64)
    start = np.zeros(wanted, _INT64)
    for k, offsets in enumerate(grid):
        start += offsets.reshape((-1,) + (1,) * (len(wanted) - k - 1))
    base = tape.new(start.reshape(-1), wanted)
    return positions(index, base, lengths=(shape[axis], size_of(shape)), strides=(steps[axis], 1))


def take_along(x: Any, index: Any, *, axis: int) -> Any:
    """``x[..., index[..., k, ...], ...]``: `index` has the axes of `x`, and may have another length along `axis`."""
    return take_(x, along(x._shape, index, axis=axis), first=0, last=len(x._shape), mode="clip")


# ------------------------------------------------------------------------------------------------------ put


def _put_vjp(context: Context, g: Any) -> Any:
    # Of several elements put at one place the last one stays, and it alone has a gradient.
    index, span = context.x(1), context.params["span"]
    n = size_of(context.params["shape"][:span])
    numbers = tape.new(np.arange(index._flat.size), index._shape)
    owner = put(numbers, index, shape=(n,), span=1)
    stays = equal(take_(owner, index, first=0, last=1, mode="clip"), numbers)
    taken = take_(g, index, first=0, last=span, mode="clip")
    trailing = (1,) * (len(taken._shape) - len(index._shape))
    return where(reshape(stays, shape=stays._shape + trailing), taken, 0), None


def _put(x: np.ndarray, index: np.ndarray) -> np.ndarray:
    out = np.zeros((4, 2))
    out[index] = x
    return out


@composed(
    "put",
    _put_vjp,
    saves="x1",
    float16=True,
    samples=lambda: [
        Sample((_x(3, 2), np.array([3, 0, 1])), {"shape": (4, 2), "span": 1}, _put),
        Sample((_x(4, 2), np.array([3, 0, 3, 1])), {"shape": (4, 2), "span": 1}, _put),
    ],
)
def put(x: ArrayLike, index: ArrayLike, *, shape: Shape, span: int) -> Output:
    """Zeros of `shape` with the rows of `x` at `index`, where the first `span` axes of `shape` count as one."""
    _, n, inner = _block(shape, 0, span)
    positions = _int64(index)
    out = zeros(size_of(shape), x._flat.dtype)
    _checked(
        "put", shape, kernels.assign,
        raw(x._flat), positions, raw(out), 1, n, inner, positions.size, kernels.RAISE,
    )  # fmt: skip
    return out, shape


def scatter_nd(x: Any, indices: Any, *, shape: Shape) -> Any:
    """Zeros of `shape` with ``out[indices[0], indices[1], ...] = x``; of several writes to a place the last one stays.

    Raises
    ------
    MXNetError
        If the shapes do not fit.
    IndexError
        If an index is out of range.
    """
    span = _span("scatter_nd", indices, len(shape))
    if x._shape != indices._shape[1:] + shape[span:]:
        raise MXNetError(
            f"scatter_nd: data of shape {x._shape} does not fit indices of shape {indices._shape} into {shape}; "
            f"it must have shape {indices._shape[1:] + shape[span:]}"
        )
    return put(x, nd_positions(indices, lengths=shape[:span]), shape=shape, span=span)


# ----------------------------------------------------------------------------------------------------- pick


def _lines(shape: Shape, axis: int) -> tuple[int, int, int]:
    axis = normal_axis("pick", axis, len(shape))
    return _block(shape, axis, axis + 1)


def _pick_vjp(context: Context, g: Any) -> Any:
    params = context.params
    return pick_add(g, context.x(1), shape=context.shape(0), axis=params["axis"], mode=params["mode"]), None


def _picked(x: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.take_along_axis(x, np.clip(index, 0, x.shape[1] - 1)[:, None], 1)


@composed(
    "pick",
    _pick_vjp,
    saves="x1",
    float16=True,
    samples=lambda: [
        Sample((_x(3, 4), np.array([1, -2, 9])), {"axis": 1, "keepdims": True, "mode": "clip"}, _picked),
        Sample(
            (_x(3, 4, 2), np.array([[2, -1, 0, 4], [0, 0, 1, 1]]).T),
            {"axis": 0, "keepdims": False, "mode": "wrap"},
            lambda x, i: np.take_along_axis(x, i[None] % 3, 0)[0],
        ),
    ],
)
def pick(x: ArrayLike, index: ArrayLike, *, axis: int, keepdims: bool, mode: str) -> Output:
    """One element out of each line along `axis`: `index` has the shape of `x` without it, or with length 1 there.

    Raises
    ------
    MXNetError
        For another shape of `index`.
    """
    shape = x._shape
    outer, n, inner = _lines(shape, axis)
    axes = (normal_axis("pick", axis, len(shape)),)
    kept, dropped = reduced_shape(shape, axes, True), reduced_shape(shape, axes, False)
    if index._shape not in (kept, dropped):
        raise MXNetError(
            f"pick: an index of shape {index._shape} does not fit {shape} along axis {axis}; "
            f"it must be {dropped} or {kept}"
        )
    out = np.empty(outer * inner, x._flat.dtype)
    _checked(
        "pick", shape, kernels.pick,
        raw(x._flat), _int64(index), raw(out), outer, n, inner, _mode("pick", mode),
    )  # fmt: skip
    return out, kept if keepdims else dropped


def _pick_add_vjp(context: Context, g: Any) -> Any:
    params = context.params
    picked = pick(g, context.x(1), axis=params["axis"], keepdims=False, mode=params["mode"])
    return reshape(picked, shape=context.shape(0)), None


def _unpicked(g: np.ndarray, index: np.ndarray) -> np.ndarray:
    out = np.zeros((3, 4))
    out[np.arange(3), index] = g
    return out


@composed(
    "pick_add",
    _pick_add_vjp,
    saves="x1",
    float16=True,
    samples=lambda: [
        Sample((_x(3), np.array([1, 0, 3])), {"shape": (3, 4), "axis": -1, "mode": "clip"}, _unpicked),
    ],
)
def pick_add(g: ArrayLike, index: ArrayLike, *, shape: Shape, axis: int, mode: str) -> Output:
    """Zeros of `shape` with `g` where `pick` took its elements; the transpose of `pick`."""
    outer, n, inner = _lines(shape, axis)
    out = zeros(size_of(shape), g._flat.dtype)
    # Every line gets one element, so float16 may be added to zero as the bits it is.
    _checked(
        "pick_add", shape, kernels.pick_add,
        raw(g._flat), _int64(index), raw(out), outer, n, inner, _mode("pick", mode),
    )  # fmt: skip
    return out, shape


# -------------------------------------------------------------------------------------------------- one-hot


@composed(
    "one_hot",
    lambda context, g: None,
    float16=True,
    differentiable=False,
    samples=lambda: [
        Sample(
            (np.array([[2, 0], [3, -1]]),),
            {"depth": 3, "on": 2.0, "off": 0.5, "dtype": np.dtype("float32")},
            lambda i: np.where(i[..., None] == np.arange(3), 2.0, 0.5),
        )
    ],
)
def one_hot(index: ArrayLike, *, depth: int, on: float, off: float, dtype: np.dtype) -> Output:
    """A new last axis of length `depth`: `on` at `index`, `off` elsewhere; all `off` for an index out of range."""
    positions = _int64(index)
    out = np.empty(positions.size * depth, dtype)
    if dtype == np.float16:
        lit, dark = (int(np.float16(value).view(np.uint16)) for value in (on, off))
        launch(kernels.one_hot, positions, raw(out), positions.size, depth, lit, dark)
    else:
        convert: Any = float if dtype.kind == "f" else int
        launch(kernels.one_hot, positions, out, positions.size, depth, convert(on), convert(off))
    return out, (*index._shape, depth)
