"""Checkpoints: what a function computes is not kept for backward, but computed again there."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from numbagrad import tape
from numbagrad.containers import flatten, rebuild
from numbagrad.errors import MXNetError
from numbagrad.kernels.strided import copy
from numbagrad.launch import launch
from numbagrad.ops.random import STATE
from numbagrad.tape import Leaf, Node, Projection, Rule, argument, place, state
from numbagrad.transforms.run import is_array, name_of
from numbagrad.walk import NOTHING, walk


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with a smaller tape: backward runs it again instead of keeping what it computes.

    Of a recorded call only the arguments, the results and the state of the random numbers are kept, and what lies in
    between during backward, one call at a time (T. Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016).

    Parameters
    ----------
    function : callable
        Takes and returns NDArrays, containers of them and anything else; a Block, for example. It may use recorded
        arrays and parameters that are no arguments, and must compute the same when it is run again: what it reaches
        besides its arguments must not have been changed by then.

    Returns
    -------
    callable
        The same function: gradients of every order, random numbers drawn, running statistics moved once.

    Raises
    ------
    MXNetError
        From backward, where an argument was written to since, or the second run does not compute what the first did.

    Examples
    --------
    >>> from numbagrad import autograd, nd
    >>> from numbagrad.transforms import checkpoint
    >>> x = nd.array([1, 2])
    >>> x.attach_grad()
    >>> with autograd.record():
    ...     y = checkpoint(lambda x: nd.exp(nd.log(x) * 3))(x)
    >>> y.backward()
    >>> x.grad.round().tolist()
    [3.0, 12.0]
    """

    @functools.wraps(function, updated=())
    def segment(*args: Any, **kwargs: Any) -> Any:
        if not state.recording:
            return function(*args, **kwargs)
        leaves: list[Any] = []
        structure = flatten((args, kwargs), leaves)
        call = _Segment(function, structure, leaves)
        first = tape.next_id()
        outputs = call.run(call.places(leaves))
        call.taped = [k for k, output in enumerate(outputs) if _recorded_since(output, first)]
        if not call.taped:
            return rebuild(call.form, iter(outputs))
        call.outside = _outside([outputs[k]._node for k in call.taped], first)
        node = call.node(leaves)
        node.outputs = [(outputs[k]._shape, outputs[k]._flat.dtype) for k in call.taped]
        for i, k in enumerate(call.taped):
            inner = outputs[k]
            outputs[k] = tape.new(inner._flat, inner._shape, inner._storage)
            outputs[k]._context = inner._context
            outputs[k]._node = Projection(node, i)
        return rebuild(call.form, iter(outputs))

    return segment


def _recorded_since(value: Any, first: int) -> bool:
    return is_array(value) and type(value._node) not in (type(None), Leaf) and value._node.id >= first


def _outside(nodes: list[Any], first: int) -> list[Any]:
    """The places from before the run that it has reached other than by its arguments, leaves among them."""
    found: dict[Any, None] = {}
    seen = set(nodes)
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if node.op is tape.Argument:
            continue
        for parent in node.parents:
            if parent is not None and parent not in seen:
                seen.add(parent)
                if type(parent) is Leaf or parent.id < first:
                    found[parent] = None
                else:
                    stack.append(parent)
    return list(found)


class _Segment(Rule):
    """One recorded call as the tape sees it: an op of its own."""

    multi = True
    may_fail = True

    def __init__(self, function: Callable[..., Any], structure: Any, leaves: list[Any]) -> None:
        self.name = f"checkpoint({name_of(function)})"
        self.taped: list[int] = []
        self.outside: list[Any] = []
        self._function = function
        self._structure = structure
        self._others = [None if is_array(leaf) else leaf for leaf in leaves]
        self._training = state.training
        self.form: Any = None
        self._stream = np.empty_like(STATE)
        _copy_stream(STATE, self._stream)

    def places(self, leaves: list[Any]) -> list[Any]:
        """The arguments for one run: those on the tape at places of their own."""
        return [argument(leaf) if is_array(leaf) and place(leaf) is not None else leaf for leaf in leaves]

    def run(self, inputs: list[Any]) -> list[Any]:
        """Call the function; returns the leaves of what it returns."""
        args, kwargs = rebuild(self._structure, iter(inputs))
        outputs: list[Any] = []
        self.form = flatten(self._function(*args, **kwargs), outputs)
        return outputs

    def node(self, leaves: list[Any]) -> Node:
        """The call on the tape: its parents are the places of the arguments, then those of :attr:`outside`."""
        arrays = [tape.new(leaf._flat, leaf._shape, leaf._storage) if is_array(leaf) else None for leaf in leaves]
        for array, leaf in zip(arrays, leaves, strict=True):
            if array is not None:
                array._context = leaf._context
        parents = [place(leaf) if is_array(leaf) else None for leaf in leaves] + self.outside
        return Node(self, parents, arrays, (), None, {}, None)

    def vjp(self, node: Any, *gradients: Any) -> list[Any]:
        """Run the function again, and go backward through that."""
        create_graph, training = state.recording, state.training
        leaves = []
        for array, parent, other in zip(node.arrays, node.parents, self._others):  # the others' parents come last
            leaf = other
            if array is not None:
                leaf = tape.new(array._flat, array._shape, array._storage)
                leaf._context, leaf._node = array._context, parent
            leaves.append(leaf)
        inputs = self.places(leaves)
        now = np.empty_like(STATE)
        _copy_stream(STATE, now)
        _copy_stream(self._stream, STATE)
        first = tape.next_id()
        recomputing = state.recomputing
        state.recording, state.training, state.recomputing = True, self._training, True
        try:
            outputs = self.run(inputs)
        finally:
            state.recording, state.training, state.recomputing = create_graph, training, recomputing
            _copy_stream(now, STATE)
        self._check(node, outputs)
        heads = [(outputs[k]._node, g) for k, g in zip(self.taped, gradients, strict=True)]
        targets = [x._node for x, parent in zip(inputs, node.parents) if parent is not None]
        # The walk that we are in has its marks and gradients on the places outside.
        held = [(end, end.mark, getattr(end, "grad", NOTHING)) for end in self.outside]
        found = walk(heads, True, create_graph, [*targets, *self.outside], first)
        for end, mark, gradient in held:
            end.mark, end.grad = mark, gradient
        remaining = iter([g if is_array(g) else None for g in found])
        return [None if parent is None else next(remaining) for parent in node.parents]

    def _check(self, node: Any, outputs: list[Any]) -> None:
        kinds = [(output._shape, output._flat.dtype) if is_array(output) else None for output in outputs]
        taped = [k for k, output in enumerate(outputs) if is_array(output) and output._node is not None]
        if not set(self.taped) <= set(taped) or [kinds[k] for k in self.taped] != node.outputs:
            raise MXNetError(
                f"{self.name}: run again in backward it does not return what it returned before; it must depend on its "
                "arguments alone, and on arrays that do not change"
            )


def _copy_stream(source: np.ndarray, target: np.ndarray) -> None:
    launch(copy, source.view(np.int64), target.view(np.int64), source.size)
