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
    sizes: dict[str, int]
    kept: tuple[int, ...]
    """The number of elements of each kept array."""


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
        self.shape = shape
        self._first = forward
        self._backward = backward
        self._plans: dict[Any, Plan] = {}

    def __call__(self, *arrays: Any, **params: Any) -> Any:
        """Apply the op: inputs are brought to the dtypes of its rule, on the tape."""
        declared = self.declaration
        if len(arrays) != len(declared.inputs):
            raise TypeError(f"{self.name}: takes {' '.join(declared.inputs)}, got {len(arrays)} arguments")
        for x, array in zip(declared.inputs, arrays, strict=True):
            if type(array) is not tape.new:
                raise TypeError(f"{self.name}: {x} must be an NDArray, not {type(array).__name__}")
        fixed = declared.fixed
        free = [array._flat.dtype for x, array in zip(declared.inputs, arrays, strict=True) if x not in fixed]
        common = floating(promote(free)) if free else FLOAT32
        taken = tuple(cast(array, dtype=fixed.get(x, common)) for x, array in zip(declared.inputs, arrays, strict=True))
        return registry.executor(self, taken, self._numbers(params))

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
        plan = self._plan(tuple([array._shape for array in arrays]), params)
        common = next((a._flat.dtype for x, a in zip(declared.inputs, arrays) if x not in declared.fixed), FLOAT32)
        out = np.empty(size_of(plan.shape), declared.fixed.get("y", common))
        kept = [np.empty(n, declared.fixed.get(k, common)) for k, n in zip(declared.keeps, plan.kept, strict=True)]
        values = {**plan.sizes, **params, "y": out, **dict(zip(declared.keeps, kept, strict=True))}
        values.update({x: array._flat for x, array in zip(declared.inputs, arrays, strict=True)})
        self._launch(self._first, values)
        return out, plan.shape, (plan, kept)

    def _vjp(self, context: Any, g: Any, into: Any) -> list[Any]:
        declared = self.declaration
        results: list[Any] = [None] * len(declared.inputs)
        if g._flat.dtype.kind != "f" or declared.fixed.get("y", FLOAT32).kind != "f":
            return results
        if not self._backward:
            raise MXNetError(f"{self.name}: it has no gradient: it was registered without vjp")
        plan, kept = context.aux
        values = {**plan.sizes, **context.params, "g": g._flat, **dict(zip(declared.keeps, kept, strict=True))}
        values.update({x: array._flat for x, array in zip(declared.inputs, context.arrays, strict=True)})
        if self.saves_y:
            values["y"] = context.out[0][1]
        for step in self._backward:
            if not any(context.wants(i) for i in step.writes):
                continue
            for i in step.writes:
                array = context.arrays[i]
                offered = into(context.parents[i], False) if context.wants(i) else None
                flat = np.empty(array._flat.size, array._flat.dtype) if offered is None else offered[0]
                results[i] = (flat, array._shape) if offered is None else WRITTEN
                values[f"d{declared.inputs[i]}"] = flat
            self._launch(step, values)
        return results

    def _launch(self, step: Step, values: dict[str, Any]) -> None:
        try:
            launch(step.kernel, *[values[each] for each in step.names])
        except CompilationError as error:
            arguments = ", ".join(
                f"{each}: {getattr(values[each], 'dtype', type(values[each]).__name__)}" for each in step.names
            )
            raise MXNetError(f"{step.kernel.name}({arguments}) cannot be compiled: {error}") from error

    def _plan(self, shapes: tuple[Shape, ...], params: dict[str, Any]) -> Plan:
        key = shapes, *params.values()
        found = self._plans.get(key)
        if found is None:
            found = self._make_plan(shapes, params)
            if len(self._plans) < _PLANS:
                self._plans[key] = found
        return found

    def _make_plan(self, shapes: tuple[Shape, ...], params: dict[str, Any]) -> Plan:
        name, _, keeps, sizes, *_ = self.declaration
        if self.shape is None:
            if len(set(shapes)) > 1:
                raise MXNetError(f"{name}: the inputs must have one shape, not {', '.join(map(str, shapes))}")
            return Plan(shapes[0], {"n": size_of(shapes[0])}, tuple(size_of(shapes[0]) for _ in keeps))
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
        return Plan(said["y"], {each: said[each] for each in sizes}, tuple(size_of(said[each]) for each in keeps))

    def _no_reference(self, *arrays: Any, **params: Any) -> Any:
        raise MXNetError(
            f"{self.name}: a second-order gradient goes through a reference, a function of other ops that computes the "
            "same: register_op(..., reference=...)"
        )

    def __repr__(self) -> str:
        return f"<own op {self.name}({', '.join((*self.declaration.inputs, *self.declaration.params))})>"
