"""A captured call whose results are on the tape: one node, with a program for its VJP."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numbagrad import tape
from numbagrad.array import Array
from numbagrad.capture.guards import flat_of
from numbagrad.capture.program import Program
from numbagrad.containers import flatten, rebuild
from numbagrad.errors import MXNetError
from numbagrad.ops.registry import WRITTEN
from numbagrad.ops.shaping import identity
from numbagrad.tape import Leaf


class Backward:
    """The VJP of a captured call.

    ``wanted`` says for whom it computes gradients: the number of an argument, or a leaf; ``gradients`` for each the
    number of the array that is made for it and its shape, or None where it is zero. ``takes`` are the arguments whose
    memory it takes, ``keeps`` the numbers of the arrays made for results that it takes, ``reads`` the arrays from
    before the call that must not change until then; ``pure`` says that the forward writes to nothing that was there
    before; ``carry_bytes`` is the size of what the forward leaves for it; ``attached`` which results are on the tape.
    """

    def __init__(self, op: "CapturedOp", wanted: list[Any], attached: list[int]) -> None:
        self.op = op
        self.wanted = wanted
        self.attached = attached
        self.program: Program
        self.takes: list[int] = []
        self.keeps: list[int] = []
        self.reads: list[Any] = []
        self.pure = True
        self.gradients: list[tuple[int, tuple[int, ...]] | None] = []
        self.makes: list[tuple[int, np.dtype]] = []
        self.carry_bytes = 0
        self.shapes: list[Any] = []
        op.backward = self


class CapturedOp(tape.Rule):
    """What the walk sees of a captured call."""

    kind = "captured"
    differentiable = True
    direct = True

    def __init__(self, name: str, function: Callable[..., Any], structure: Any, multi: bool) -> None:
        self.name = name
        self.multi = multi
        self.chains = not multi
        self.backward: Backward
        self._function = function
        self._structure = structure

    def vjp(self, node: Any, *gradients_and_into: Any) -> list[Any]:
        """The gradients of the node's parents, by the program; straight into buffers where that is possible."""
        *gradients, into = gradients_and_into
        backward = self.backward
        carry, leaves, kept = node.aux
        made = []
        results: list[Any] = []
        for parent, how in zip(node.parents, backward.gradients, strict=True):
            if how is None:
                results.append(None)
                continue
            number, shape = how
            size, dtype = backward.makes[number]
            fits = type(parent) is Leaf and parent.gradient._flat.size == size and parent.gradient._flat.dtype == dtype
            offered = into(parent, False) if fits else None
            if offered is None:
                flat = np.empty(size, dtype)
                results.append((flat, shape))
            else:
                flat = offered[0]
                results.append(WRITTEN)
            made.append(flat)
        program = backward.program
        arrays = [flat_of(leaves[i]) for i in backward.takes]
        status = program.run(program.code, *arrays, *kept, *[g._flat for g in gradients], *made, carry)
        if status:
            raise program.failure(status)
        return results

    def again(self, node: Any, gradients: Sequence[Any], walk: Callable[..., Any]) -> list[Any]:
        """The gradients of the node's parents, recorded: the function is run again, eagerly."""
        _, leaves, _ = node.aux
        if not self.backward.pure:
            raise MXNetError(
                f"{self.name}: create_graph=True runs a captured function again, and this one draws random numbers or "
                "writes to arrays; call the function itself (not hybridized, not through jit) for higher orders"
            )
        arguments = list(leaves)
        ends: list[Any] = []
        for target, parent in zip(self.backward.wanted, node.parents, strict=True):
            if type(target) is int:
                place = tape.new(leaves[target]._flat, leaves[target]._shape, leaves[target]._storage)
                place._node = parent
                arguments[target] = identity(place)
                ends.append(arguments[target]._node)
            else:
                ends.append(target)
        args, kwargs = rebuild(self._structure, iter(arguments))
        outputs: list[Any] = []
        flatten(self._function(*args, **kwargs), outputs)
        outputs = [outputs[k] for k in self.backward.attached]
        # The inner walk uses the marks of leaves that the outer one may be using too.
        kept = [(end, end.mark, getattr(end, "grad", None)) for end in ends if type(end) is Leaf]
        heads = [(output._node, g) for output, g in zip(outputs, gradients, strict=True)]
        if any(node is None for node, _ in heads):
            raise MXNetError(f"{self.name}: the captured function did not record when it was run again")
        found = walk(heads, True, True, ends)
        for end, mark, grad in kept:
            end.mark, end.grad = mark, grad
        return [g if isinstance(g, Array) else None for g in found]
