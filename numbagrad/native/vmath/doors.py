"""Dtype-generic doors: ``exp(x)`` in compiled or plain Python code picks ``exp_float32`` or ``exp_float64``."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer, infer_global


def door(name: str, single: Any, double: Any) -> Callable[..., Any]:
    """The function `name` that calls `single` for float32 scalars, `double` for float64, and refuses all else.

    Its attribute ``implementations`` lets the kernel cache see what it stands for.
    """

    def choose(*arguments: Any) -> Any:
        if all(isinstance(argument, np.float32) for argument in arguments):
            return single(*arguments)
        if all(isinstance(argument, float) for argument in arguments):  # np.float64 is a float
            return double(*arguments)
        raise TypeError(f"{name}: arguments must be all float32 or all float64, not {list(map(type, arguments))}")

    choose.__name__ = choose.__qualname__ = name
    choose.__doc__ = single.__doc__
    choose.implementations = (single, double)  # type: ignore[attr-defined]
    if not hasattr(single, "py_func"):
        return choose

    # A template that resolves to the implementations themselves: no wrapper to compile, no flags to inherit.
    @infer
    class Door(AbstractTemplate):
        key = choose

        def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
            if kws or not args:
                return None
            for implementation, dtype in ((single, types.float32), (double, types.float64)):
                if all(argument == dtype for argument in args):
                    return types.Dispatcher(implementation.helper).get_call_type(self.context, args, kws)
            return None

        def get_impl_key(self, sig: Any) -> Any:
            implementation = single if sig.args[0] == types.float32 else double
            return implementation.helper.get_overload(sig.args)

    infer_global(choose, types.Function(Door))
    return choose
