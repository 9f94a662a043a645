"""Splitting batches over device labels, and clipping gradients together."""

import itertools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from numbagrad import nd
from numbagrad.context import Context
from numbagrad.gluon.hooks import HookHandle
from numbagrad.nd.arguments import expect_array
from numbagrad.nd.indexing import getitem
from numbagrad.nd.ndarray import NDArray

__all__ = ["HookHandle", "clip_global_norm", "split_and_load", "split_data"]


def split_data(data: NDArray, num_slice: int, batch_axis: int = 0, even_split: bool = True) -> list[NDArray]:
    """Cut an array into `num_slice` parts along `batch_axis`.

    Parameters
    ----------
    data : NDArray
    num_slice : int
    batch_axis : int
    even_split : bool
        Refuse parts of different lengths; otherwise the first ones are longer by one.

    Raises
    ------
    ValueError
        If the parts cannot be equal although they must be.
    """
    size = data.shape[batch_axis]
    if even_split and size % num_slice:
        raise ValueError(
            f"data with shape {data.shape} cannot be evenly split into {num_slice} slices along axis {batch_axis}. "
            f"Use a batch size that's multiple of {num_slice} or set even_split=False to allow uneven partitioning "
            "of data."
        )
    step, more = divmod(size, num_slice)
    ends = [0]
    for i in range(num_slice):
        ends.append(ends[-1] + step + (i < more))
    if num_slice == 1:
        return [data]
    if batch_axis == 0:
        return [getitem(data, slice(start, end)) for start, end in itertools.pairwise(ends)]
    return [nd.slice_axis(data, axis=batch_axis, begin=start, end=end) for start, end in itertools.pairwise(ends)]


def split_and_load(
    data: Any, ctx_list: Sequence[Context], batch_axis: int = 0, even_split: bool = True
) -> list[NDArray]:
    """Cut an array (or what ``nd.array`` makes one of) into a part for each label; see :func:`split_data`."""
    if not isinstance(data, NDArray):
        data = nd.array(data, ctx=ctx_list[0])
    if len(ctx_list) == 1:
        return [data.as_in_context(ctx_list[0])]
    parts = split_data(data, len(ctx_list), batch_axis, even_split)
    return [part.as_in_context(ctx) for part, ctx in zip(parts, ctx_list)]


def clip_global_norm(arrays: Sequence[NDArray], max_norm: float, check_isfinite: bool = True) -> Any:
    """Scale arrays in place so that the 2-norm of all their elements together is at most `max_norm`.

    Parameters
    ----------
    arrays : list of NDArray
    max_norm : float
    check_isfinite : bool
        Warn where the norm is NaN or infinite.

    Returns
    -------
    numpy.float32
        The norm before scaling; an NDArray of shape (1,) with ``check_isfinite=False``.
    """
    assert len(arrays) > 0, "clip_global_norm: at least one array is needed"
    expect_array("clip_global_norm", *arrays)
    norms = [float(nd.norm(array.detach().astype("float64", copy=False)).asscalar()) for array in arrays]
    total = math.hypot(*norms)
    if check_isfinite and not math.isfinite(total):
        warnings.warn("nan or inf is detected. Clipping results will be undefined.", stacklevel=2)
    scale = max_norm / (total + 1e-8)
    if not scale >= 1.0:
        for array in arrays:
            array *= scale
    return np.float32(total) if check_isfinite else nd.array([total], dtype="float32")
