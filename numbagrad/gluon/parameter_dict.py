"""The parameters of a block, by name."""

import copy
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Any

import numpy as np

from numbagrad import initializer
from numbagrad.context import Context
from numbagrad.gluon.checkpoint import read_named
from numbagrad.gluon.parameter import Constant, Parameter, as_array, load_all
from numbagrad.nd.serialization import save

_UNIFORM = initializer.Uniform()


class ParameterDict:
    """Parameters in the order in which they were made.

    Parameters
    ----------
    prefix : str
        Put before the names of parameters made by :meth:`get`.
    shared : ParameterDict, optional
        Where :meth:`get` looks, and what it makes goes to, too.
    """

    def __init__(self, prefix: str = "", shared: "ParameterDict | None" = None) -> None:
        self._prefix = prefix
        self._params: dict[str, Parameter] = {}
        self._shared = shared

    @property
    def prefix(self) -> str:
        """What is put before the names of new parameters."""
        return self._prefix

    def __repr__(self) -> str:
        lines = "\n".join(f"  {parameter!r}" for parameter in self.values())
        return f"{self._prefix + ' ' if self._prefix else ''}(\n{lines}\n)"

    def __getitem__(self, key: str) -> Parameter:
        return self._params[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __len__(self) -> int:
        return len(self._params)

    def __contains__(self, key: object) -> bool:
        return key in self._params

    def items(self) -> ItemsView[str, Parameter]:
        """Pairs of name and parameter."""
        return self._params.items()

    def keys(self) -> KeysView[str]:
        """The full names."""
        return self._params.keys()

    def values(self) -> ValuesView[Parameter]:
        """The parameters."""
        return self._params.values()

    # ----------------------------------------------------------------------------------- making them

    def _find(self, name: str) -> Parameter | None:
        if name in self._params:
            return self._params[name]
        if self._shared is not None and name in self._shared._params:
            self._params[name] = self._shared._params[name]
            return self._params[name]
        return None

    def get(self, name: str, **kwargs: Any) -> Parameter:
        """The parameter of that name after the prefix, made with `kwargs` if there is none.

        Raises
        ------
        AssertionError
            If there is one, and an attribute of it contradicts `kwargs`; unknown lengths of a shape are filled in.
        """
        name = self._prefix + name
        parameter = self._find(name)
        if parameter is None:
            parameter = self._params[name] = Parameter(name, **kwargs)
            return parameter
        for key, wanted in kwargs.items():
            existing = getattr(parameter, key, None)
            if existing is None:
                setattr(parameter, key, wanted)
                continue
            if wanted is None or wanted == existing:
                continue
            if key == "shape":
                wanted = (wanted,) if isinstance(wanted, int) else tuple(wanted)
                if len(wanted) == len(existing) and all(
                    n == m or n in (0, -1) or m in (0, -1) for n, m in zip(wanted, existing)
                ):
                    parameter._shape = tuple(m if n in (0, -1) else n for n, m in zip(wanted, existing))
                    continue
            elif key == "dtype" and np.dtype(wanted) == np.dtype(existing):
                continue
            raise AssertionError(
                f"Cannot retrieve Parameter '{name}' because desired attribute does not match with stored for "
                f"attribute '{key}': desired '{wanted}' vs stored '{existing}'."
            )
        return parameter

    def get_constant(self, name: str, value: Any = None) -> Constant:
        """The constant of that name after the prefix, made from `value` if there is none.

        Raises
        ------
        KeyError
            If there is none and `value` is None.
        AssertionError
            If there is one of another value, or a parameter that is no constant.
        """
        name = self._prefix + name
        parameter = self._find(name)
        if parameter is None:
            if value is None:
                raise KeyError(
                    f"No constant named '{name}'. Please specify value if you want to create a new constant."
                )
            made = self._params[name] = Constant(name, value)
            return made
        assert isinstance(parameter, Constant), f"Parameter '{name}' already exists but it is not a constant."
        if value is not None:
            assert np.array_equal(as_array(value).asnumpy(), parameter.value.asnumpy()), (
                f"Constant '{name}' already exists but its value doesn't match new value."
            )
        return parameter

    def update(self, other: "ParameterDict | dict[str, Parameter]") -> None:
        """Take over the parameters of another dict.

        Raises
        ------
        AssertionError
            If there is another parameter under one of the names.
        """
        for name, parameter in other.items():
            assert self._params.get(name, parameter) is parameter, (
                f"Cannot update self with other because they have different Parameters with the same name '{name}'"
            )
        self._params.update(other.items())

    # ----------------------------------------------------------------------------------- all of them

    def initialize(
        self, init: Any = _UNIFORM, ctx: Any = None, verbose: bool = False, force_reinit: bool = False
    ) -> None:
        """Initialise all parameters; those with an initializer of their own by that.

        Parameters
        ----------
        init : str or Initializer
            ``Uniform(0.07)`` by default.
        ctx : Context or list of Context, optional
        verbose : bool
            Print what is done.
        force_reinit : bool
            Also those that are initialised already.
        """
        init = initializer.create(init)
        if verbose:
            init = copy.copy(init).set_verbosity(True)
        for parameter in self.values():
            parameter.initialize(None, ctx, init, force_reinit=force_reinit)

    def zero_grad(self) -> None:
        """Set all gradients to zero."""
        for parameter in self.values():
            parameter.zero_grad()

    def reset_ctx(self, ctx: Any) -> None:
        """Move all parameters to other labels."""
        for parameter in self.values():
            parameter.reset_ctx(ctx)

    def list_ctx(self) -> list[Context]:
        """The labels that any of the parameters is on."""
        found: dict[Context, None] = {}
        for parameter in self.values():
            found.update(dict.fromkeys(parameter.list_ctx()))
        return list(found)

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute of all parameters, such as ``grad_req`` or ``lr_mult``."""
        for parameter in self.values():
            setattr(parameter, name, value)

    # --------------------------------------------------------------------------------------- on disk

    def save(self, filename: str, strip_prefix: str = "") -> None:
        """Write the values of all parameters to a file, under their full names less `strip_prefix`.

        Raises
        ------
        ValueError
            If a name does not start with `strip_prefix`.
        """
        for name in self.keys():
            if not name.startswith(strip_prefix):
                raise ValueError(
                    f"Prefix '{strip_prefix}' is to be striped before saving, but Parameter's name '{name}' does not "
                    f"start with '{strip_prefix}'."
                )
        save(filename, {name[len(strip_prefix) :]: parameter._reduce() for name, parameter in self.items()})

    def load(
        self,
        filename: str,
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        restore_prefix: str = "",
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Read values that :meth:`save` wrote; all of them, or, after an error, none.

        Parameters
        ----------
        filename : str
        ctx : Context or list of Context, optional
            For parameters that are not initialised; the default is the CPU.
        allow_missing, ignore_extra : bool
            Accept a file with fewer, or more, than the parameters.
        restore_prefix : str
            Put before the names in the file.
        cast_dtype : bool
            Cast where the dtypes differ: the values, or with ``dtype_source="saved"`` the parameter.
        dtype_source : {"current", "saved"}

        Raises
        ------
        AssertionError
            For a name that is missing or unknown, and for a shape or dtype that does not fit.
        """
        for name in self.keys():
            assert name.startswith(restore_prefix), (
                f"restore_prefix is '{restore_prefix}' but Parameter name '{name}' does not start with it"
            )
        loaded = {
            restore_prefix + (name[4:] if name.startswith(("arg:", "aux:")) else name): data
            for name, data in read_named(filename).items()
        }
        if not allow_missing:
            for name in self.keys():
                assert name in loaded, f"Parameter '{name[len(restore_prefix) :]}' is missing in file '{filename}'"
        if not ignore_extra:
            for name in loaded:
                assert name in self._params, (
                    f"Parameter '{name[len(restore_prefix) :]}' loaded from file '{filename}' is not present in "
                    "ParameterDict"
                )
        load_all(
            ((self._params[name], data) for name, data in loaded.items() if name in self._params),
            ctx,
            cast_dtype,
            dtype_source,
        )
