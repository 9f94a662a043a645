"""What a user declares of an op: the names of its arrays and numbers, and the kernels that take them."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numbagrad.errors import MXNetError
from numbagrad.kernels.kernel import Kernel
from numbagrad.own_ops.adoption import adopt, function_of


class Step(NamedTuple):
    """A kernel, and how it is called."""

    kernel: Kernel
    names: tuple[str, ...]
    """What its arguments are called."""
    places: tuple[int, ...]
    """Where they stand among all values, in the order of :meth:`Declaration.values`."""
    writes: tuple[int, ...]
    """The inputs whose gradients it writes."""
    module: str
    """Where its function was defined."""


class Declaration(NamedTuple):
    """The names of an op's arrays and numbers; what a kernel calls an argument says what it gets."""

    name: str
    inputs: tuple[str, ...]
    keeps: tuple[str, ...]
    sizes: tuple[str, ...]
    params: dict[str, Any]
    fixed: dict[str, np.dtype]
    """The dtypes that do not follow from the inputs."""

    def differentiable(self) -> list[str]:
        """The inputs that have a gradient."""
        return [x for x in self.inputs if x not in self.fixed or self.fixed[x].kind == "f"]

    def values(self) -> tuple[str, ...]:
        """The names of all that kernels can take, in the order in which the op holds them ready."""
        gradients = [f"d{x}" for x in self.inputs]
        return (*self.inputs, "y", *self.keeps, *self.sizes, *self.params, "g", *gradients)

    def step(self, what: str, given: Any, reads: Sequence[str], writes: Sequence[str], failures: Any) -> Step:
        """The kernel of a user's function.

        Raises
        ------
        MXNetError
            If it takes what is not declared, or cannot be a kernel.
        """
        title = f"{self.name}: {what}"
        function = function_of(title, given)
        names = tuple(inspect.signature(function).parameters)
        roles = dict.fromkeys(reads, "in") | dict.fromkeys(writes, "out")
        roles |= dict.fromkeys(self.sizes, "size") | dict.fromkeys(self.params, "scalar")
        for each in names:
            if each not in roles:
                raise MXNetError(f"{title} takes {each!r}; it can take {', '.join(roles)}")
        kernel = Kernel(f"{self.name}_{what}", adopt(function), tuple(roles[each] for each in names), failures)
        places = tuple(self.values().index(each) for each in names)
        written = tuple(i for i, x in enumerate(self.inputs) if f"d{x}" in names)
        return Step(kernel, names, places, written, function.__module__)


def check_names(declared: Declaration) -> None:
    """Refuse names and dtypes that do not fit together."""
    name = declared.name
    if not declared.inputs:
        raise MXNetError(f"{name}: an op has at least one input")
    taken = {"g", "y", *(f"d{x}" for x in declared.inputs)}
    for each in (*declared.inputs, *declared.keeps, *declared.sizes, *declared.params):
        if not each.isidentifier():
            raise MXNetError(f"{name}: {each!r} cannot be the name of an argument")
        if each in taken:
            raise MXNetError(f"{name}: the name {each!r} is taken (y, g and d... are the output and the gradients)")
        taken.add(each)
    for each, value in declared.params.items():
        if not isinstance(value, (int, float)):
            raise MXNetError(f"{name}: the default of the parameter {each!r} must be a number, not {value!r}")
    for each, dtype in declared.fixed.items():
        if each not in (*declared.inputs, "y", *declared.keeps):
            raise MXNetError(f"{name}: dtypes names {each!r}, which is no input, kept array or y")
        if dtype == np.float16:
            raise MXNetError(f"{name}: kernels cannot take float16 ({each!r})")


def check_arity(name: str, what: str, function: Callable[..., Any], declared: Declaration) -> None:
    """Refuse a function that cannot take the inputs and parameters."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        if callable(function):
            return
        raise MXNetError(f"{name}: {what} must be a function, not {type(function).__name__}") from None
    try:
        signature.bind(*declared.inputs, **declared.params)
    except TypeError as error:
        takes = ", ".join((*declared.inputs, *(f"{each}=" for each in declared.params)))
        raise MXNetError(f"{name}: {what} must take ({takes}): {error}") from None
