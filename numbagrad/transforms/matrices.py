"""Whole Jacobians and Hessians, a row a backward pass."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from numbagrad import tape
from numbagrad.ops.joining import concat
from numbagrad.ops.shaping import fill_flat, reshape
from numbagrad.tape import state
from numbagrad.transforms.gradients import grad
from numbagrad.transforms.run import Argnums, Run, check_argnums, chosen
from numbagrad.vjp import zeros


def jacobian(function: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The function that returns the Jacobian of `function`.

    Parameters
    ----------
    function : callable
        Of float arrays and containers of them, returning such.
    argnums : int or tuple of int
        The arguments to differentiate for.

    Returns
    -------
    callable
        For an array from an array it returns an array of shape ``value.shape + argument.shape``. Containers nest: those
        of the value hold those of the arguments. It goes backward once an element of the value.

    Examples
    --------
    >>> from numbagrad import nd
    >>> from numbagrad.transforms import jacobian
    >>> jacobian(lambda x: nd.array([[1, 2], [3, 4]]).dot(x))(nd.array([5, 6])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return _jacobian("jacobian", function, argnums)


def hessian(function: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The function that returns the Hessian of `function`, which returns one float array of one element.

    For an array argument it has shape ``argument.shape + argument.shape``; see :func:`jacobian`, of whose gradient it
    is the Jacobian.

    Examples
    --------
    >>> from numbagrad import nd
    >>> from numbagrad.transforms import hessian
    >>> hessian(lambda x: (x * x * x).sum())(nd.array([1, 2])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return _jacobian("hessian", grad(function, argnums), argnums)


def _jacobian(name: str, function: Callable[..., Any], argnums: Argnums) -> Callable[..., Any]:
    numbers = check_argnums(name, argnums)
    single = isinstance(argnums, int)

    @functools.wraps(function, updated=())
    def matrix(*args: Any, **kwargs: Any) -> Any:
        run = Run(name, function, args, chosen(name, numbers, len(args)), kwargs=kwargs)
        parts = [run.packed(_rows(run, output), single) for output in run.outputs]
        return run.like_value(parts)

    return matrix


def _rows(run: Run, output: Any) -> list[Any]:
    """The Jacobian of one output for each input of the run."""
    rows = []
    for k in range(output._flat.size):
        flat = np.empty(output._flat.size, output._flat.dtype)
        fill_flat(flat, 0)
        fill_flat(flat[k : k + 1], 1)
        rows.append(run.gradients([output], [tape.new(flat, output._shape)], run.create_graph))
    found = []
    recording, state.recording = state.recording, run.create_graph
    try:
        for i, x in enumerate(run.inputs):
            shape = output._shape + x._shape
            if rows:
                parts = [reshape(row[i], shape=(1, *x._shape)) for row in rows]
                found.append(reshape(concat(parts, 0), shape=shape))
            else:
                found.append(zeros(shape, x._flat.dtype))
    finally:
        state.recording = recording
    return found
