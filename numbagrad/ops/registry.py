"""What an op is: one declaration that says how it is computed, differentiated and checked.

Three kinds:

:class:`Elementwise`
    an expression graph, from which loops and every derivative follow;
:class:`Composed`
    a forward in kernels and a VJP written as calls of other ops, so that every order of derivative exists;
:class:`Fused`
    forward and VJP in hand-written kernels, and a ``reference`` of other ops that higher orders go through.

An op knows neither the array class nor the tape. Its forward reads ``x._flat`` (1-d NumPy array) and ``x._shape`` of
each input and returns ``(flat, shape)``; calling an op hands it to the :data:`executor`, which wraps and records.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from numbagrad.kernels.kernel import Kernel, LoopForm
from numbagrad.native.derivatives import gradients
from numbagrad.native.expr import Expr, constant, inputs_of, substitute, symbol, trace
from numbagrad.native.source import compile_loop, loops_of
from numbagrad.ops.layout import Layout
from numbagrad.tape import Rule

Shape = tuple[int, ...]
Output = tuple[np.ndarray, Shape]


class ArrayLike(Protocol):
    """What an op's forward sees of an array."""

    _flat: np.ndarray
    _shape: Shape


class Context(Protocol):
    """What a VJP rule sees of the recorded call: ``x(i)``, ``y(i)``, ``shape(i)``, ``params``, ``wanted``, ``aux``."""

    params: dict[str, Any]
    aux: Any

    def x(self, i: int) -> Any:
        """The i-th input, as it was saved."""

    def y(self, i: int = 0) -> Any:
        """The i-th output, as it was saved."""

    def shape(self, i: int) -> Shape:
        """The shape of the i-th input."""

    def wants(self, i: int) -> bool:
        """Whether the gradient of the i-th input is wanted."""


class Sample(NamedTuple):
    """One call for the sweep over the registry.

    ``arrays`` are NumPy arrays (float64 where differentiable) or None; ``expected(*arrays)`` is the right value by
    NumPy or SciPy; ``smooth`` says whether finite differences make sense there. Gradients are checked of the op after
    ``through``, an op itself, for ops that are defined on a part of all arrays only, as symmetric matrices.
    """

    arrays: tuple[Any, ...]
    params: dict[str, Any]
    expected: Callable[..., Any]
    smooth: bool = True
    through: Callable[..., Any] | None = None


WRITTEN = object()
"""Returned by a fused VJP for a gradient that it wrote straight into the buffer offered to it."""


class Op(Rule):
    """The part of a declaration that all kinds share; ``REGISTRY[name]`` finds it."""

    kind = "op"
    chains = True
    view = False

    def __init__(self, name: str, samples: Callable[[], Sequence[Any]] | None, differentiable: bool = True) -> None:
        self.name = name
        self.samples = samples
        self.differentiable = differentiable

    def __call__(self, *arrays: Any, **params: Any) -> Any:
        """Apply the op to arrays."""
        return executor(self, arrays, params)

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def _not_ready(op: Op, arrays: tuple[Any, ...], params: dict[str, Any]) -> Any:
    raise RuntimeError("no executor: import numbagrad, not one of its parts")


executor: Callable[..., Any] = _not_ready
"""Runs general ops on arrays and records them; set by ``numbagrad.dispatch``."""

finish: Callable[..., Any] = _not_ready
"""``finish(op, arrays, params, flat, shape, aux)``: the last part of the executor, for ops on the hot path that check
and compute by themselves; set by ``numbagrad.dispatch``."""

elementwise_executor: Callable[..., Any] = _not_ready
"""Runs elementwise ops on arrays and numbers and records them; set by ``numbagrad.dispatch``."""

REGISTRY: dict[str, Op] = {}


def _register(op: Op) -> Any:
    if op.name in REGISTRY:
        raise ValueError(f"there is an op {op.name} already")
    REGISTRY[op.name] = op
    return op


# ----------------------------------------------------------------------------------------------- elementwise


@dataclass(slots=True)
class Derivative:
    """The VJP of an elementwise op for one set of wanted inputs.

    In its expressions symbol ``n`` is the output and symbol ``n + 1`` the head gradient, n being the arity.
    """

    expressions: tuple[Expr | None, ...]
    takes: tuple[int, ...]
    """The inputs that the expressions read."""
    takes_output: bool
    """Whether they read the output."""


@dataclass(slots=True)
class VJPLoop:
    """A derivative compiled for a dtype and a pattern; None for the kernel where all gradients are the head."""

    derivative: Derivative
    kernel: Kernel | None
    computed: tuple[int, ...]
    """The inputs whose gradients the kernel writes, in order."""
    wanted: int
    """How many inputs have a gradient."""
    dtype: np.dtype
    loops: int
    """How many loops the kernel has: one, or over rows and columns, or planes, rows and columns."""


class Loop:
    """An elementwise op compiled for a dtype and a pattern, with its VJPs as they are asked for."""

    __slots__ = ("dtype", "kernel", "op", "out_dtype", "pattern", "vjp_of_one", "vjps")

    def __init__(self, op: "Elementwise", dtype: np.dtype, pattern: str) -> None:
        self.op = op
        self.dtype = dtype
        self.pattern = pattern
        self.out_dtype = np.dtype(bool) if op.result == "bool" else dtype
        function, roles = compile_loop(op.name, [op.graph], dtype.name, pattern, [self.out_dtype.name])
        self.kernel = Kernel(op.name, function, roles, {})
        self.kernel.loop = LoopForm((op.graph,), dtype.name, pattern, (self.out_dtype.name,))
        self.vjps: dict[tuple[bool, ...], VJPLoop] = {}
        self.vjp_of_one: VJPLoop | None = None
        """Of an op of one input: its VJP, once it was asked for."""

    def vjp(self, wanted: tuple[bool, ...]) -> VJPLoop:
        """The VJP for the inputs marked in `wanted`."""
        found = self.vjps.get(wanted)
        if found is None:
            found = self.vjps[wanted] = self._compile_vjp(wanted)
            if len(wanted) == 1:
                self.vjp_of_one = found
        return found

    def _compile_vjp(self, wanted: tuple[bool, ...]) -> VJPLoop:
        op, n = self.op, self.op.arity
        derivative = op.derivative(wanted)
        head = symbol(n + 1)
        computed = [i for i, e in enumerate(derivative.expressions) if e is not None and e is not head]
        count = sum(e is not None for e in derivative.expressions)
        if not computed:
            return VJPLoop(derivative, None, (), count, self.dtype, 1)
        takes = {*derivative.takes, n + 1} | ({n} if derivative.takes_output else set())
        kinds = [*self.pattern.replace("S", "s"), "s", "s"]
        pattern = "".join(kind if i in takes else "-" for i, kind in enumerate(kinds))
        roots = [e for e in derivative.expressions if e is not None and e is not head]
        function, roles = compile_loop(
            f"{op.name}_vjp", roots, self.dtype.name, pattern, [self.dtype.name] * len(roots)
        )
        kernel = Kernel(f"{op.name}_vjp", function, roles, {})
        kernel.loop = LoopForm(tuple(roots), self.dtype.name, pattern, (self.dtype.name,) * len(roots))
        return VJPLoop(derivative, kernel, tuple(computed), count, self.dtype, loops_of(pattern))


Plan = tuple[Loop, Layout]
"""What a call on arrays of certain shapes runs, and how they line up."""


class Elementwise(Op):
    """An op whose result at a place depends on its inputs at that place alone.

    Parameters
    ----------
    name : str
        Its name in the registry, in messages and in profiles.
    function : callable
        Takes `arity` symbols, returns an expression of them; called once.
    result : {"same", "float", "bool"}
        The dtype rule: the promoted dtype of the inputs; the same after integers became float32; bool.
    vjp : callable, optional
        ``vjp(g, y, *inputs)`` returning one expression or None an input, where a better form than the derived one
        exists.
    numpy : callable
        The same function of NumPy arrays, for the sweep.
    domain : pair of float, or one pair an input
        Where it is defined and smooth, for the sweep.
    """

    kind = "elementwise"

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        arity: int,
        *,
        result: str = "same",
        vjp: Callable[..., Any] | None = None,
        numpy: Callable[..., Any] | None = None,
        domain: tuple[Any, ...] = (-2.0, 2.0),
        differentiable: bool = True,
    ) -> None:
        super().__init__(name, None, differentiable)
        self.numpy = numpy
        self.domains = domain if isinstance(domain[0], tuple) else (domain,) * arity
        self.arity = arity
        self.result = result
        self.graph = trace(function, arity)
        self._vjp = vjp
        self._loops: dict[tuple[np.dtype, str], Loop] = {}
        self.same: dict[np.dtype, Loop] = {}
        """The loops of the commonest pattern, all inputs of full size, by dtype."""
        self.right: dict[np.dtype, Loop] = {}
        """Those of an array and a number, as dispatch has asked for them."""
        self.left: dict[np.dtype, Loop] = {}
        """Those of a number and an array."""
        self.plans: dict[tuple[Any, ...], Plan] = {}
        """What two arrays of different shapes run, by their dtype and shapes."""
        self._derivatives: dict[tuple[bool, ...], Derivative] = {}

    def __call__(self, *args: Any) -> Any:
        """Apply the op to arrays and numbers."""
        return elementwise_executor(self, args)

    def loop(self, dtype: np.dtype, pattern: str) -> Loop:
        """The op compiled for inputs of `dtype` that come in `pattern`."""
        found = self._loops.get((dtype, pattern))
        if found is None:
            found = self._loops[dtype, pattern] = Loop(self, dtype, pattern)
            if pattern == "s" * self.arity:
                self.same[dtype] = found
        return found

    def derivative(self, wanted: tuple[bool, ...]) -> Derivative:
        """The expressions of the VJP for the inputs marked in `wanted`."""
        found = self._derivatives.get(wanted)
        if found is None:
            n = self.arity
            inputs = [symbol(i) for i in range(n)]
            head, result = symbol(n + 1), symbol(n)
            if self._vjp is not None:
                parts = [
                    None if part is None else part if isinstance(part, Expr) else constant(part)
                    for part in self._vjp(head, result, *inputs)
                ]
            else:
                parts = gradients(self.graph, head, inputs)
                if self.graph.op not in ("input", "const"):
                    parts = [None if part is None else substitute(part, self.graph, result) for part in parts]
            expressions = tuple(part if want else None for part, want in zip(parts, wanted, strict=True))
            takes = inputs_of(*[part for part in expressions if part is not None]) - {n + 1}
            found = self._derivatives[wanted] = Derivative(expressions, tuple(sorted(takes - {n})), n in takes)
        return found


def elementwise(name: str, function: Callable[..., Any], arity: int, **more: Any) -> Elementwise:
    """Declare and register an :class:`Elementwise` op."""
    return _register(Elementwise(name, function, arity, **more))


# ------------------------------------------------------------------------------------------ composed and fused


class Composed(Op):
    """A forward in kernels, a VJP in other ops.

    Parameters
    ----------
    forward : callable
        ``forward(*arrays, **params)`` returns ``(flat, shape)``, or ``(flat, shape, aux)`` to keep `aux` for the VJP,
        or a list of ``(flat, shape)`` where `multi`. With `view` the flat result is a slice of the first input's.
        With `float16` it takes that dtype itself (it moves data only); else dispatch computes in float32.
    vjp : callable
        ``vjp(context, *head gradients)`` returns one gradient an input, None for one that is zero or not wanted.
    saves : str
        The inputs and outputs that `vjp` reads, as in ``"x0 x1 y0"``.
    """

    kind = "composed"

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        vjp: Callable[..., Any] | None,
        *,
        saves: str = "",
        multi: bool = False,
        view: bool = False,
        samples: Callable[[], Sequence[Any]] | None = None,
        differentiable: bool = True,
        may_fail: bool = False,
        float16: bool = False,
    ) -> None:
        super().__init__(name, samples, differentiable)
        self.forward = forward
        self.vjp = vjp
        words = saves.split()
        self.saves_x = tuple(int(word[1:]) for word in words if word[0] == "x")
        self.saves_y = tuple(int(word[1:]) for word in words if word[0] == "y")
        self.multi = multi
        self.view = view
        self.may_fail = may_fail
        self.chains = not multi and not may_fail
        self.float16 = float16


class Fused(Composed):
    """Forward and VJP in hand-written kernels.

    Parameters
    ----------
    vjp : callable
        ``vjp(context, *head gradients, into)`` returns one gradient an input as ``(flat, shape)``, or None, or
        :data:`WRITTEN`. ``into(context.parents[i], can_add)`` is None, or ``(flat, accumulate)``: a buffer that the
        gradient of input i may be written to (or added to) instead.
    reference : callable
        ``reference(*arrays, **params)`` computes the same from other ops; higher orders go through it.
    """

    kind = "fused"
    direct = True

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        vjp: Callable[..., Any],
        reference: Callable[..., Any],
        **more: Any,
    ) -> None:
        super().__init__(name, forward, vjp, **more)
        self.reference = reference


def composed(name: str, vjp: Callable[..., Any] | None, **more: Any) -> Callable[[Callable[..., Any]], Composed]:
    """Declare the decorated forward a registered :class:`Composed` op."""
    return lambda forward: _register(Composed(name, forward, vjp, **more))


def fused(
    name: str, vjp: Callable[..., Any], reference: Callable[..., Any], **more: Any
) -> Callable[[Callable[..., Any]], Fused]:
    """Declare the decorated forward a registered :class:`Fused` op."""
    return lambda forward: _register(Fused(name, forward, vjp, reference, **more))
