"""Marking variables, and gradients for them: ``backward`` and ``grad``."""

import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from numbagrad import tape
from numbagrad import walk as walking
from numbagrad.errors import MXNetError
from numbagrad.launch import aside
from numbagrad.ops.arithmetic import add
from numbagrad.ops.casting import cast
from numbagrad.ops.dtypes import FLOAT32, floating
from numbagrad.ops.shaping import full_like, identity
from numbagrad.tape import Leaf, place, rebound, state
from numbagrad.vjp import zeros
from numbagrad.walk import NOTHING, chain

_one_pass = threading.RLock()
"""Held during a pass, which keeps its state on nodes and leaves: threads may share parameters."""


def _renew() -> None:
    """A forked child has no thread that could let go of the lock."""
    global _one_pass
    _one_pass = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)

REQUESTS = ("write", "add", "null")


def attach_grad(array: Any, grad_req: str = "write") -> None:
    """Make `array` a variable with a zero gradient buffer of its own; see :meth:`NDArray.attach_grad`."""
    if grad_req not in REQUESTS:
        raise KeyError(f"attach_grad: grad_req {grad_req!r} is none of {', '.join(REQUESTS)}")
    array._node = Leaf(zeros(array._shape, floating(array._flat.dtype)), grad_req)
    rebound(array)


def mark_variables(variables: Any, gradients: Any, grad_reqs: str | Sequence[str] = "write") -> None:
    """Make arrays variables whose gradients go to the given arrays.

    Parameters
    ----------
    variables, gradients : NDArray or list of NDArray
        A gradient has the shape of its variable, and its dtype, or float32 for an int variable; it is not zeroed.
    grad_reqs : str or list of str
        ``write``, ``add`` or ``null``, for all or one a variable.

    Raises
    ------
    MXNetError
        Where a gradient has another shape or dtype than its variable, or the numbers of them differ.
    """
    if isinstance(variables, tape.new):  # type: ignore[arg-type]
        variables, gradients = [variables], [gradients]
    if isinstance(grad_reqs, str):
        grad_reqs = [grad_reqs] * len(variables)
    if not len(variables) == len(gradients) == len(grad_reqs):
        raise MXNetError(
            f"mark_variables: {len(variables)} variables, {len(gradients)} gradients, {len(grad_reqs)} requests"
        )
    for variable, gradient, request in zip(variables, gradients, grad_reqs, strict=True):
        if request not in REQUESTS:
            raise KeyError(f"mark_variables: grad_req {request!r} is none of {', '.join(REQUESTS)}")
        dtype = variable._flat.dtype
        if variable._shape != gradient._shape or gradient._flat.dtype not in (dtype, floating(dtype)):
            raise MXNetError(
                f"mark_variables: a variable of shape {variable._shape} and dtype {variable._flat.dtype} cannot have a "
                f"gradient of shape {gradient._shape} and dtype {gradient._flat.dtype}"
            )
    for variable, gradient, request in zip(variables, gradients, grad_reqs, strict=True):
        gradient._storage.pinned = True
        variable._node = Leaf(gradient.detach(), request)
        rebound(variable)


_KEPT_ONES: dict[Any, Any] = {}


def ones(array: Any) -> Any:
    """The head gradient of a head that was given none; small ones are kept, and never written to."""
    dtype = array._flat.dtype
    shape = array._shape
    key = shape if dtype is FLOAT32 else (shape, floating(dtype))
    found = _KEPT_ONES.get(key)
    if found is None:
        with aside():  # it outlives the step
            found = tape.new(np.ones(array._flat.size, floating(dtype)), shape)
        if array._flat.size <= 4096 and len(_KEPT_ONES) < 256:
            _KEPT_ONES[key] = found
            tape.ONES.add(id(found._flat))
    return found


def _heads(name: str, heads: Any, head_grads: Any) -> list[tuple[Any, Any]]:
    """Pairs of a node and its head gradient, all of them checked."""
    if not isinstance(heads, (list, tuple)):
        heads = [heads]
        if head_grads is not None and not isinstance(head_grads, (list, tuple)):
            head_grads = [head_grads]
    if head_grads is None:
        head_grads = [None] * len(heads)
    elif not isinstance(head_grads, (list, tuple)):
        head_grads = [head_grads]
    assert len(heads) == len(head_grads), f"{name}: {len(heads)} heads but {len(head_grads)} head gradients"
    pairs = []
    for head, gradient in zip(heads, head_grads, strict=True):
        for array in (head,) if gradient is None else (head, gradient):
            if not isinstance(array, tape.new):  # type: ignore[arg-type]
                raise TypeError(f"{name}: heads and head gradients are NDArrays, not {type(array).__name__}")
        if head._node is None:
            raise MXNetError(
                f"{name}: cannot differentiate an array of shape {head._shape} that is not in a graph: it was not "
                "computed inside autograd.record() from a marked array (attach_grad), or its graph was freed by an "
                "earlier backward"
            )
        if gradient is None:
            gradient = ones(head)
        elif gradient._shape != head._shape or (
            gradient._flat.dtype not in (head._flat.dtype, floating(head._flat.dtype))
        ):
            raise MXNetError(
                f"{name}: a head of shape {head._shape} and dtype {head._flat.dtype} cannot take a head gradient of "
                f"shape {gradient._shape} and dtype {gradient._flat.dtype}"
            )
        else:
            gradient._storage.pinned = True
            if gradient._flat.dtype.kind != "f":  # of an int head; gradients are floats
                gradient = cast(gradient, dtype=floating(gradient._flat.dtype))
        pairs.append((head._node, gradient))
    return pairs


def backward(heads: Any, head_grads: Any = None, retain_graph: bool = False, train_mode: bool = True) -> None:
    """Compute the gradients of `heads` for all marked arrays below them, into their ``grad``.

    Parameters
    ----------
    heads : NDArray or list of NDArray
        Several heads add up.
    head_grads : NDArray, list of NDArray or None
        The gradient of each head, of its shape and dtype; None: ones.
    retain_graph : bool
        Keep the graph, to go through it again.
    train_mode : bool
        The training flag during the pass.

    Raises
    ------
    MXNetError
        For a head that is not in a graph, a graph without a marked array, a head gradient of the wrong shape or dtype,
        or an array that was overwritten although the pass needs it. No gradient has been written then.
    """
    if head_grads is None and type(heads) is tape.new and heads._node is not None:
        gradient = ones(heads)
        _one_pass.acquire()  # a with statement would take a tenth of a microsecond more
        try:
            if chain(heads._node, gradient, retain_graph):  # no flag matters to what it runs
                return
        finally:
            _one_pass.release()
        pairs = [(heads._node, gradient)]
    else:
        pairs = _heads("backward", heads, head_grads)
    flags = state
    recording, training = flags.recording, flags.training
    if recording is False and training is train_mode:
        with _one_pass:
            walking.walk(pairs, retain_graph)
        return
    flags.recording, flags.training = False, bool(train_mode)
    try:
        with _one_pass:
            walking.walk(pairs, retain_graph)
    finally:
        flags.recording, flags.training = recording, training


def grad(
    heads: Any,
    variables: Any,
    head_grads: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    train_mode: bool = True,
) -> list[Any]:
    """Return the gradients of `heads` for `variables` as new arrays; no ``grad`` buffer is touched.

    Parameters
    ----------
    heads : NDArray or list of NDArray
    variables : NDArray or list of NDArray
        Marked arrays, and arguments of a function that a transform differentiates.
    head_grads : NDArray, list of NDArray or None
        The gradient of each head; None: ones.
    retain_graph : bool, optional
        Keep the graph; the default is `create_graph`.
    create_graph : bool
        Record the computation, so that the gradients can be differentiated in turn; also those that are constant,
        whose derivative is 0.
    train_mode : bool
        The training flag during the pass.

    Returns
    -------
    list of NDArray
        One a variable, also for a single one.

    Raises
    ------
    MXNetError
        For a variable that is not marked or that no head depends on, and as :func:`backward`.
    """
    single = isinstance(variables, tape.new)  # type: ignore[arg-type]
    variables = [variables] if single else list(variables)
    assert variables, "grad: at least one variable is needed"
    for variable in variables:
        node = variable._node
        if (type(node) is not Leaf or node.request == "null") and getattr(node, "op", None) is not tape.Argument:
            raise MXNetError(
                f"grad: cannot differentiate for an array of shape {variable._shape} that is not marked: "
                "call attach_grad() on it before recording"
            )
    pairs = _heads("grad", heads, head_grads)
    flags = state
    recording, training = flags.recording, flags.training
    flags.recording, flags.training = bool(create_graph), bool(train_mode)
    try:
        retain = create_graph if retain_graph is None else retain_graph
        found = pull(pairs, variables, retain, bool(create_graph))
        if create_graph:
            # A gradient that depends on no variable is a constant with a derivative, 0, not an array off the graph.
            found = [
                result if result is None or place(result) is not None else add(full_like(variable, value=0), result)
                for variable, result in zip(variables, found, strict=True)
            ]
    finally:
        flags.recording, flags.training = recording, training
    for variable, result in zip(variables, found, strict=True):
        if result is None:
            raise MXNetError(f"grad: no head depends on a variable of shape {variable._shape}")
    return found


def pull(
    pairs: Sequence[tuple[Any, Any]], variables: Sequence[Any], retain: bool, create_graph: bool, since: int = 0
) -> list[Any]:
    """The gradients of heads for `variables`, arrays on memory of their own; None where no head depends on one.

    `pairs` are nodes with their head gradients, of which at least one is needed for each; see :func:`.walk.walk`.
    """
    with _one_pass:
        results = walking.walk(pairs, retain, create_graph, [variable._node for variable in variables], since)
    given = {id(gradient._storage) for _, gradient in pairs}
    found: list[Any] = []
    for variable, result in zip(variables, results, strict=True):
        if result is NOTHING:
            found.append(None)
            continue
        if result is None:
            result = zeros(variable._shape, floating(variable._flat.dtype))
        result = cast(result, dtype=floating(variable._flat.dtype))
        if id(result._storage) in given:
            result = identity(result)
        given.add(id(result._storage))
        found.append(result)
    return found
