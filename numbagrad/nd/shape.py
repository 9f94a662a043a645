"""Functions that move elements about without changing them."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.nd.creation import hosted
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.output import deliver
from numbagrad.nd.reshaping import resolve_shape
from numbagrad.ops import joining, padding, shaping
from numbagrad.ops.broadcasting import broadcast_to as broadcast_op
from numbagrad.ops.folding import normal_axes
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.shaping import normal_axis

Out = NDArray | None
Name = str | None


def _ints(value: int | Sequence[int]) -> tuple[int, ...]:
    return (int(value),) if isinstance(value, (int, np.integer)) else tuple(index(n) for n in value)


def _moved(data: NDArray, shape: Shape, inplace: bool, out: Out) -> NDArray:
    """`data` in another shape: a copy, or a view on the same memory."""
    return deliver((shaping.reshape if inplace else shaping.reshape_copy)(data, shape=shape), out)


# ----------------------------------------------------------------------------------------------- other shapes


def reshape(data: NDArray, shape: Any = None, reverse: bool = False, out: Out = None, name: Name = None) -> NDArray:
    """A copy in another shape; the codes of `shape` are those of :meth:`NDArray.reshape`, which makes a view."""
    assert shape is not None, "reshape: a shape must be given"
    return _moved(data, resolve_shape(data._shape, _ints(shape), reverse), False, out)


def reshape_like(
    lhs: NDArray,
    rhs: NDArray,
    lhs_begin: int | None = None,
    lhs_end: int | None = None,
    rhs_begin: int | None = None,
    rhs_end: int | None = None,
    out: Out = None,
    name: Name = None,
) -> NDArray:
    """A copy of `lhs` in which its axes [lhs_begin, lhs_end) have the lengths of axes [rhs_begin, rhs_end) of `rhs`."""
    left = slice(lhs_begin, lhs_end).indices(len(lhs._shape))
    middle = rhs._shape[slice(rhs_begin, rhs_end)]
    return _moved(lhs, lhs._shape[: left[0]] + middle + lhs._shape[left[1] :], False, out)


def flatten(data: NDArray, inplace: bool = False, out: Out = None, name: Name = None) -> NDArray:
    """A copy (a view if `inplace`) with all axes but the first merged; (n, 1) of a vector."""
    if not data._shape:
        return _moved(data, (1, 1), inplace, out)
    return _moved(data, (data._shape[0], size_of(data._shape[1:])), inplace, out)


def expand_dims(data: NDArray, axis: int, inplace: bool = False, out: Out = None, name: Name = None) -> NDArray:
    """A copy (a view if `inplace`) with a new axis of length 1 at position `axis`."""
    k = normal_axis("expand_dims", axis, len(data._shape) + 1)
    return _moved(data, (*data._shape[:k], 1, *data._shape[k:]), inplace, out)


def squeeze(
    data: NDArray,
    axis: int | Sequence[int] | None = None,
    inplace: bool = False,
    out: Out = None,
    name: Name = None,
) -> NDArray:
    """A copy (a view if `inplace`) without the axes of length 1, or those of them that are given.

    At least one axis stays. MXNetError for a given axis of another length.
    """
    shape = data._shape
    if axis is None:
        axes = tuple(k for k, n in enumerate(shape) if n == 1)
    else:
        axes = normal_axes("squeeze", axis if isinstance(axis, int) else tuple(axis), len(shape))
        for k in axes:
            if shape[k] != 1:
                raise MXNetError(f"squeeze: axis {k} of {shape} has length {shape[k]}, not 1")
    left = tuple(n for k, n in enumerate(shape) if k not in axes)
    return _moved(data, left or ((1,) if shape else ()), inplace, out)


# ------------------------------------------------------------------------------------------- orders of elements


def transpose(data: NDArray, axes: Sequence[int] | int | None = None, out: Out = None, name: Name = None) -> NDArray:
    """A copy with the axes in the order `axes`; None or ``()`` reverses them."""
    ndim = len(data._shape)
    order = tuple(range(ndim - 1, -1, -1)) if axes is None else _ints(axes)
    if not order:
        order = tuple(range(ndim - 1, -1, -1))
    return deliver(shaping.transpose(data, axes=tuple(normal_axis("transpose", k, ndim) for k in order)), out)


def _transpose_method(self: NDArray, *axes: int | Sequence[int] | None, **kwargs: Any) -> NDArray:
    """The array with its axes in another order: ``x.transpose(1, 0)``, ``x.transpose((1, 0))``; see nd.transpose."""
    if axes and not (len(axes) == 1 and (axes[0] is None or not isinstance(axes[0], (int, np.integer)))):
        return transpose(self, axes, **kwargs)  # type: ignore[arg-type]
    return transpose(self, *axes, **kwargs)  # type: ignore[arg-type]


def swapaxes(data: NDArray, dim1: int = 0, dim2: int = 0, out: Out = None, name: Name = None) -> NDArray:
    """A copy with two axes exchanged."""
    order = list(range(len(data._shape)))
    a, b = normal_axis("swapaxes", dim1, len(order)), normal_axis("swapaxes", dim2, len(order))
    order[a], order[b] = b, a
    return deliver(shaping.transpose(data, axes=tuple(order)), out)


def flip(data: NDArray, axis: int | Sequence[int], out: Out = None, name: Name = None) -> NDArray:
    """A copy with the order of elements reversed along `axis`, one or several."""
    axes = normal_axes("flip", _ints(axis), len(data._shape))
    return deliver(shaping.flip(data, axes=axes), out)


def _blocks(data: NDArray, block_size: int, name: str, depth: bool) -> tuple[int, int, int, int]:
    if len(data._shape) != 4:
        raise MXNetError(f"{name}: takes arrays of 4 axes (batch, depth, height, width), not {data._shape}")
    n, c, h, w = data._shape
    wrong = c % block_size**2 if depth else h % block_size or w % block_size
    if wrong:
        raise MXNetError(f"{name}: blocks of {block_size} do not divide {data._shape}")
    return n, c, h, w


def depth_to_space(data: NDArray, block_size: int, out: Out = None, name: Name = None) -> NDArray:
    """(n, c b b, h, w) as (n, c, h b, w b): depth spread over blocks of b by b."""
    b = block_size
    n, c, h, w = _blocks(data, b, "depth_to_space", True)
    c //= b * b
    split = shaping.reshape(data, shape=(n, b, b, c, h, w))
    moved = shaping.transpose(split, axes=(0, 3, 4, 1, 5, 2))
    return deliver(shaping.reshape(moved, shape=(n, c, h * b, w * b)), out)


def space_to_depth(data: NDArray, block_size: int, out: Out = None, name: Name = None) -> NDArray:
    """(n, c, h, w) as (n, c b b, h/b, w/b): blocks of b by b gathered in depth; undoes :func:`depth_to_space`."""
    b = block_size
    n, c, h, w = _blocks(data, b, "space_to_depth", False)
    split = shaping.reshape(data, shape=(n, c, h // b, b, w // b, b))
    moved = shaping.transpose(split, axes=(0, 3, 5, 1, 2, 4))
    return deliver(shaping.reshape(moved, shape=(n, c * b * b, h // b, w // b)), out)


# -------------------------------------------------------------------------------------------------- repetitions


def broadcast_to(data: NDArray, shape: Any, out: Out = None, name: Name = None) -> NDArray:
    """`data` repeated along its axes of length 1; a 0 in `shape` keeps the axis."""
    target = _ints(shape)
    if len(target) == len(data._shape):
        target = tuple(m if n == 0 else n for m, n in zip(data._shape, target, strict=True))
    return deliver(broadcast_op(data, shape=target), out)


def _broadcast_to_method(self: NDArray, *axes: int | Sequence[int], shape: Any = None) -> NDArray:
    """The array repeated to a shape, given axis by axis, as a tuple or as `shape`, by NumPy's rules.

    ValueError where it does not fit.
    """
    if bool(axes) is (shape is not None):
        raise TypeError("broadcast_to: takes one shape")
    given: Any = axes if shape is None else (shape,)
    target = _ints(given[0]) if len(given) == 1 else _ints(given)
    try:
        return broadcast_op(self, shape=target)
    except MXNetError as error:
        raise ValueError(str(error)) from None


def broadcast_like(
    lhs: NDArray,
    rhs: NDArray,
    lhs_axes: Sequence[int] | None = None,
    rhs_axes: Sequence[int] | None = None,
    out: Out = None,
    name: Name = None,
) -> NDArray:
    """`lhs` repeated to the shape of `rhs`, or along `lhs_axes` to the lengths of `rhs_axes` of `rhs`."""
    if (lhs_axes is None) != (rhs_axes is None):
        raise MXNetError("broadcast_like: give both lhs_axes and rhs_axes, or neither")
    if lhs_axes is None or rhs_axes is None:
        return deliver(broadcast_op(lhs, shape=rhs._shape), out)
    left, right = _ints(lhs_axes), _ints(rhs_axes)
    if len(left) != len(right) or not left:
        raise MXNetError(f"broadcast_like: {len(left)} lhs_axes but {len(right)} rhs_axes; at least one of each")
    shape = list(lhs._shape)
    for k, j in zip(left, right, strict=True):
        shape[normal_axis("broadcast_like", k, len(shape))] = rhs._shape[
            normal_axis("broadcast_like", j, len(rhs._shape))
        ]
    return deliver(broadcast_op(lhs, shape=tuple(shape)), out)


def broadcast_axis(
    data: NDArray, axis: int | Sequence[int] = (), size: int | Sequence[int] = (), out: Out = None, name: Name = None
) -> NDArray:
    """`data` repeated to length `size` along `axis`, one or several, of length 1."""
    axes, sizes = _ints(axis), _ints(size)
    if len(axes) != len(sizes):
        raise MXNetError(f"broadcast_axis: {len(axes)} axes but {len(sizes)} sizes")
    shape = list(data._shape)
    for k, n in zip(axes, sizes, strict=True):
        shape[normal_axis("broadcast_axis", k, len(shape))] = n
    return deliver(broadcast_op(data, shape=tuple(shape)), out)


def tile(data: NDArray, reps: int | Sequence[int], out: Out = None, name: Name = None) -> NDArray:
    """`data` laid out `reps` times along each axis, as NumPy's tile."""
    counts = _ints(reps)
    shape = data._shape
    shape = (1,) * (len(counts) - len(shape)) + shape
    counts = (1,) * (len(shape) - len(counts)) + counts
    if any(n < 0 for n in counts):
        raise MXNetError(f"tile: repetitions cannot be negative: {counts}")
    spread = tuple(n for pair in zip(counts, shape, strict=True) for n in pair)
    parts = tuple(n for m in shape for n in (1, m))
    repeated = broadcast_op(shaping.reshape(data, shape=parts), shape=spread)
    whole = tuple(m * n for m, n in zip(shape, counts, strict=True))
    return deliver(shaping.reshape(repeated, shape=whole), out)


def repeat(data: NDArray, repeats: int, axis: int | None = None, out: Out = None, name: Name = None) -> NDArray:
    """Each element `repeats` times along `axis`; None: of all elements, flattened."""
    if repeats < 0:
        raise MXNetError(f"repeat: repeats cannot be negative: {repeats}")
    shape = (data._flat.size,) if axis is None else data._shape
    k = 0 if axis is None else normal_axis("repeat", axis, len(shape))
    parts = shaping.reshape(data, shape=(*shape[: k + 1], 1, *shape[k + 1 :]))
    repeated = broadcast_op(parts, shape=(*shape[: k + 1], repeats, *shape[k + 1 :]))
    return deliver(shaping.reshape(repeated, shape=(*shape[:k], shape[k] * repeats, *shape[k + 1 :])), out)


def pad(
    data: NDArray,
    mode: str = "constant",
    pad_width: Sequence[int] = (),
    constant_value: float = 0.0,
    out: Out = None,
    name: Name = None,
) -> NDArray:
    """`data` inside margins.

    Parameters
    ----------
    data : NDArray
        Of any number of axes.
    mode : {"constant", "edge", "reflect"}
        Fill the margins with `constant_value`, with the outermost elements, or with the elements mirrored at the
        outermost ones (which are not repeated).
    pad_width : sequence of int
        Before and after, axis by axis: two for each axis.

    Raises
    ------
    MXNetError
        For another mode, another number of widths, negative widths, or a reflection wider than the array.
    """
    widths = _ints(pad_width)
    shape = data._shape
    if mode not in ("constant", "edge", "reflect"):
        raise MXNetError(f"pad: mode is constant, edge or reflect, not {mode!r}")
    if len(widths) != 2 * len(shape) or any(n < 0 for n in widths):
        raise MXNetError(f"pad: takes {2 * len(shape)} widths, none of them negative, for {shape}, not {widths}")
    before, after = widths[::2], widths[1::2]
    if mode == "constant":
        return deliver(padding.pad_constant(data, before=before, after=after, value=constant_value), out)
    result = data
    for k, (front, back) in enumerate(zip(before, after, strict=True)):
        if front or back:
            result = _margins(result, k, front, back, mode)
    return deliver(shaping.identity(data) if result is data else result, out)


def _margins(x: NDArray, k: int, front: int, back: int, mode: str) -> NDArray:
    """`x` with margins along axis `k` made of its own elements."""
    n = x._shape[k]
    wide = max(front, back)
    if n == 0 or (mode == "reflect" and wide >= n):
        raise MXNetError(f"pad: axis {k} of {x._shape} is too short for {mode} margins of {wide}")

    def part(start: int, length: int) -> NDArray:
        shape = tuple(length if j == k else m for j, m in enumerate(x._shape))
        return padding.crop(x, begin=tuple(start if j == k else 0 for j in range(len(shape))), shape=shape)

    def edge(start: int, width: int) -> NDArray:
        shape = tuple(width if j == k else m for j, m in enumerate(x._shape))
        return broadcast_op(part(start, 1), shape=shape)

    parts = [x]
    if front:
        parts.insert(0, edge(0, front) if mode == "edge" else shaping.flip(part(1, front), axes=(k,)))
    if back:
        parts.append(edge(n - 1, back) if mode == "edge" else shaping.flip(part(n - 1 - back, back), axes=(k,)))
    return joining.concat(parts, k, "pad")


# ---------------------------------------------------------------------------------------------- joining, splitting


def _all_arrays(name: str, data: Sequence[Any]) -> list[NDArray]:
    arrays = list(data[0]) if len(data) == 1 and isinstance(data[0], (list, tuple)) else list(data)
    for array in arrays:
        if type(array) is not NDArray:
            raise TypeError(f"{name}: takes NDArrays, not {type(array).__name__}")
    return arrays


def concat(*data: Any, dim: int = 1, out: Out = None, name: Name = None, num_args: int | None = None) -> NDArray:
    """The arrays one after the other along axis `dim`, which is 1 by default; dtypes mix by category."""
    return deliver(joining.concat(_all_arrays("concat", data), dim), out)


def concatenate(arrays: Sequence[NDArray], axis: int = 0, always_copy: bool = True) -> NDArray:
    """A list of arrays one after the other along `axis`, which is 0 by default.

    With `always_copy` False a list of one array gives that array itself.
    """
    arrays = _all_arrays("concatenate", arrays)
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    return joining.concat(arrays, axis, "concatenate")


def stack(*data: Any, axis: int = 0, out: Out = None, name: Name = None, num_args: int | None = None) -> NDArray:
    """Arrays of one shape side by side along a new axis."""
    arrays = _all_arrays("stack", data)
    if not arrays:
        raise MXNetError("stack: takes at least one array")
    shape = arrays[0]._shape
    for array in arrays:
        if array._shape != shape:
            raise MXNetError(f"stack: shapes {shape} and {array._shape} differ")
    k = normal_axis("stack", axis, len(shape) + 1)
    parts = [shaping.reshape(array, shape=(*shape[:k], 1, *shape[k:])) for array in arrays]
    return deliver(joining.concat(parts, k, "stack"), out)


def _cut(data: NDArray, axis: int, lengths: Sequence[int], squeeze_axis: bool, name: str) -> list[NDArray]:
    parts = joining.split(data, axis=axis, lengths=tuple(lengths))
    if squeeze_axis:
        for length in lengths:
            if length != 1:
                raise MXNetError(f"{name}: squeeze_axis needs parts of length 1 along axis {axis}, not {length}")
        shape = (*data._shape[:axis], *data._shape[axis + 1 :])
        parts = [shaping.reshape(part, shape=shape) for part in parts]
    return parts


def split(
    data: NDArray,
    num_outputs: int,
    axis: int = 1,
    squeeze_axis: bool = False,
    out: Any = None,
    name: Name = None,
) -> Any:
    """`num_outputs` equal parts along `axis`, which is 1 by default: a list, or an array where it is one part.

    Raises
    ------
    MXNetError
        If the axis cannot be divided so, or `squeeze_axis` is set and the parts are longer than 1.
    """
    k = normal_axis("split", axis, len(data._shape))
    n = data._shape[k]
    if num_outputs < 1 or n % num_outputs:
        raise MXNetError(f"split: axis {k} of {data._shape} cannot be split into {num_outputs} equal parts")
    parts = _cut(data, k, [n // num_outputs] * num_outputs, squeeze_axis, "split")
    return deliver(parts[0] if num_outputs == 1 else parts, out)


def split_v2(
    ary: NDArray, indices_or_sections: int | Sequence[int], axis: int = 0, squeeze_axis: bool = False
) -> list[NDArray]:
    """Equal parts along `axis` (an int says how many), or the parts between the given positions; a list.

    Raises
    ------
    MXNetError
        If the axis cannot be divided into that many equal parts.
    """
    k = normal_axis("split_v2", axis, len(ary._shape))
    n = ary._shape[k]
    if isinstance(indices_or_sections, (int, np.integer)):
        count = int(indices_or_sections)
        if count < 1 or n % count:
            raise MXNetError(f"split_v2: axis {k} of {ary._shape} cannot be split into {count} equal parts")
        lengths = [n // count] * count
    else:
        marks = [slice(None, mark).indices(n)[1] for mark in (index(m) for m in indices_or_sections)]
        edges = [0, *marks, n]
        if any(b < a for a, b in pairwise(edges)):
            raise MXNetError(f"split_v2: the positions {tuple(indices_or_sections)} do not increase")
        lengths = [b - a for a, b in pairwise(edges)]
    return _cut(ary, k, lengths, squeeze_axis, "split_v2")


# --------------------------------------------------------------------------------------------------- questions


def shape_array(data: NDArray, out: Out = None, name: Name = None) -> NDArray:
    """The shape of `data` as an int64 array."""
    shape = np.array(data._shape, np.int64)
    return deliver(hosted(shape, shape.shape), out)


def size_array(data: NDArray, out: Out = None, name: Name = None) -> NDArray:
    """The number of elements of `data` as an int64 array of shape (1,)."""
    return deliver(hosted(np.array([data._flat.size], np.int64), (1,)), out)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "reshape": reshape,
    "Reshape": reshape,
    "reshape_like": reshape_like,
    "flatten": flatten,
    "Flatten": flatten,
    "expand_dims": expand_dims,
    "squeeze": squeeze,
    "transpose": transpose,
    "swapaxes": swapaxes,
    "SwapAxis": swapaxes,
    "flip": flip,
    "reverse": flip,
    "depth_to_space": depth_to_space,
    "space_to_depth": space_to_depth,
    "broadcast_to": broadcast_to,
    "broadcast_like": broadcast_like,
    "broadcast_axis": broadcast_axis,
    "broadcast_axes": broadcast_axis,
    "tile": tile,
    "repeat": repeat,
    "pad": pad,
    "Pad": pad,
    "concat": concat,
    "Concat": concat,
    "concatenate": concatenate,
    "stack": stack,
    "split": split,
    "SliceChannel": split,
    "split_v2": split_v2,
    "shape_array": shape_array,
    "size_array": size_array,
}
