"""Ops that run users' kernels."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from numbagrad import tape
from numbagrad.errors import MXNetError
from numbagrad.launch import launch
from numbagrad.native.compiler import CompilationError
from numbagrad.ops import registry
from numbagrad.ops.casting import cast
from numbagrad.ops.dtypes import FLOAT32, floating, promote
from numbagrad.ops.layout import Shape, size_of
from numbagrad.ops.registry import WRITTEN, Fused
from numbagrad.own_ops.declaration import Declaration, Step

_PLANS = 1024


class Plan(NamedTuple):
    """What the shape rule says for some shapes and parameters."""

    shape: Shape
    size: int
    kept: tuple[int, ...]
    """The number of elements of each kept array."""
    sizes: tuple[int, ...]


class OwnOp(Fused):
    """An op made of a user's kernels; call it with arrays, and its parameters as keywords."""

    def __init__(
        self,
        declaration: Declaration,
        forward: Step,
        backward: Sequence[Step],
        shape: Callable[..., Any] | None,
        reference: Callable[..., Any] | None,
    ) -> None:
        super().__init__(
            declaration.name,
            self._forward,
            self._vjp,
            self._no_reference if reference is None else reference,
            saves="y0" if any("y" in step.names for step in backward) else "",
            differentiable=bool(backward),
        )
        self.declaration = declaration
        self.__module__ = forward.module
        self.shape = shape
        self._first = forward
        self._backward = backward
        self._plans: dict[Any, Plan] = {}
        self._dtypes: dict[tuple[np.dtype, ...], tuple[np.dtype, ...]] = {}
        self._defaults = self._numbers({})

    def __call__(self, *arrays: Any, **params: Any) -> Any:
        """Apply the op: inputs are brought to the dtypes of its rule, on the tape."""
        inputs = self.declaration.inputs
        if len(arrays) != len(inputs):
            raise TypeError(f"{self.name}: takes {' '.join(inputs)}, got {len(arrays)} arguments")
        new = tape.new
        for x, array in zip(inputs, arrays, strict=True):
            if type(array) is not new:
                raise TypeError(f"{self.name}: {x} must be an NDArray, not {type(array).__name__}")
        have = tuple([array._flat.dtype for array in arrays])
        wanted = self._dtypes.get(have)
        if wanted is None:
            wanted = self._dtypes[have] = self._dtypes_for(have)
        if wanted != have:
            arrays = tuple(cast(array, dtype=dtype) for array, dtype in zip(arrays, wanted, strict=True))
        return registry.executor(self, arrays, self._numbers(params) if params else self._defaults)

    def _dtypes_for(self, have: tuple[np.dtype, ...]) -> tuple[np.dtype, ...]:
        fixed = self.declaration.fixed
        free = [dtype for x, dtype in zip(self.declaration.inputs, have, strict=True) if x not in fixed]
        common = floating(promote(free)) if free else FLOAT32
        return tuple(fixed.get(x, common) for x in self.declaration.inputs)

    def _numbers(self, given: dict[str, Any]) -> dict[str, Any]:
        """All parameters, as the numbers that kernels take."""
        declared = self.declaration.params
        for name, value in given.items():
            if name not in declared:
                raise TypeError(f"{self.name}: {name!r} is none of its parameters {', '.join(declared) or '(none)'}")
            if not isinstance(value, (int, float, np.generic)):
                raise TypeError(f"{self.name}: the parameter {name!r} is a number, not {type(value).__name__}")
        return {
            name: int(given.get(name, default)) if isinstance(default, int) else float(given.get(name, default))
            for name, default in declared.items()
        }

    def _forward(self, *arrays: Any, **params: Any) -> Any:
        declared = self.declaration
        key = (*[array._shape for array in arrays], *params.values())
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plan(tuple([array._shape for array in arrays]), params)
            if len(self._plans) < _PLANS:
                self._plans[key] = plan
        common = next((a._flat.dtype for x, a in zip(declared.inputs, arrays) if x not in declared.fixed), FLOAT32)
        out = np.empty(plan.size, declared.fixed.get("y", common))
        kept = [np.empty(n, declared.fixed.get(k, common)) for k, n in zip(declared.keeps, plan.kept, strict=True)]
        self._launch(self._first, [*[array._flat for array in arrays], out, *kept, *plan.sizes, *params.values()])
        return out, plan.shape, (plan, kept)

    def _vjp(self, context: Any, g: Any, into: Any) -> list[Any]:
        declared = self.declaration
        arrays, parents = context.arrays, context.parents
        results: list[Any] = [None] * len(arrays)
        if declared.fixed.get("y", FLOAT32).kind != "f":
            return results
        if not self._backward:
            raise MXNetError(f"{self.name}: it has no gradient: it was registered without vjp")
        plan, kept = context.aux
        y = context.out[0][1] if self.saves_y else None
        flats = [array._flat for array in arrays]
        values = [*flats, y, *kept, *plan.sizes, *context.params.values(), g._flat, *results]
        first = len(values) - len(arrays)
        for step in self._backward:
            if all(parents[i] is None for i in step.writes):
                continue
            for i in step.writes:
                offered = into(parents[i], False) if parents[i] is not None else None
                if offered is None:
                    flat = np.empty(flats[i].size, flats[i].dtype)
                    results[i] = (flat, arrays[i]._shape)
                else:
                    flat = offered[0]
                    results[i] = WRITTEN
                values[first + i] = flat
            self._launch(step, values)
        return results

    def _launch(self, step: Step, values: list[Any]) -> None:
        arguments = [values[k] for k in step.places]
        try:
            launch(step.kernel, *arguments)
        except CompilationError as error:
            kinds = ", ".join(
                f"{name}: {getattr(value, 'dtype', type(value).__name__)}"
                for name, value in zip(step.names, arguments, strict=True)
            )
            raise MXNetError(f"{step.kernel.name}({kinds}) cannot be compiled: {error}") from error

    def _plan(self, shapes: tuple[Shape, ...], params: dict[str, Any]) -> Plan:
        name, _, keeps, sizes, *_ = self.declaration
        if self.shape is None:
            if len(set(shapes)) > 1:
                raise MXNetError(f"{name}: the inputs must have one shape, not {', '.join(map(str, shapes))}")
            n = size_of(shapes[0])
            return Plan(shapes[0], n, (n,) * len(keeps), (n,))
        try:
            said = self.shape(*shapes, **params)
        except (ValueError, AssertionError, IndexError) as error:
            raise MXNetError(f"{name}: inputs of shapes {', '.join(map(str, shapes))} do not fit: {error}") from error
        wanted = ["y", *keeps, *sizes]
        if not isinstance(said, Mapping) or set(said) != set(wanted):
            got = ", ".join(map(str, said)) if isinstance(said, Mapping) else repr(said)
            raise MXNetError(f"{name}: shape must return a dict of {', '.join(wanted)}, not of {got}")
        for each in ("y", *keeps):
            if not isinstance(said[each], tuple) or not all(isinstance(k, int) and k >= 0 for k in said[each]):
                raise MXNetError(f"{name}: shape says {said[each]!r} for the array {each}; it must be a shape")
        for each in sizes:
            if not isinstance(said[each], int) or said[each] < 0:
                raise MXNetError(f"{name}: shape says {said[each]!r} for the size {each}; it must be an int")
        kept = tuple(size_of(said[each]) for each in keeps)
        return Plan(said["y"], size_of(said["y"]), kept, tuple(said[each] for each in sizes))

    def _no_reference(self, *arrays: Any, **params: Any) -> Any:
        raise MXNetError(
            f"{self.name}: a second-order gradient goes through a reference, a function of other ops that computes the "
            "same: register_op(..., reference=...)"
        )

    def __reduce__(self) -> str:
        return self.name  # by name, as a function; copies are the op itself

    def __repr__(self) -> str:
        return f"<own op {self.name}({', '.join((*self.declaration.inputs, *self.declaration.params))})>"
