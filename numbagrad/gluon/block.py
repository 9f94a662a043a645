"""Blocks: what layers, losses and networks are made of."""

import re
import warnings
from collections.abc import Callable
from typing import Any

from numbagrad import initializer, nd
from numbagrad.capture import jit
from numbagrad.errors import CaptureError
from numbagrad.gluon import checkpoint
from numbagrad.gluon.hooks import HookHandle
from numbagrad.gluon.naming import BlockScope
from numbagrad.gluon.parameter import DeferredInitializationError, Parameter
from numbagrad.gluon.parameter_dict import ParameterDict
from numbagrad.gluon.summary import summary
from numbagrad.nd.ndarray import NDArray
from numbagrad.tape import RebindEpoch
from numbagrad.tape import state as flags

_BlockScope = BlockScope
_UNIFORM = initializer.Uniform()
_NOT_GIVEN: Any = object()


def indent(text: str) -> str:
    """`text` with all lines but the first moved in by two."""
    return text.replace("\n", "\n  ")


def _holds_other_block(value: Any, known: Any) -> bool:
    """Whether nested lists and dicts hold a block that is not among `known`."""
    if isinstance(value, (list, tuple)):
        return any(_holds_other_block(one, known) for one in value)
    if isinstance(value, dict):
        return any(_holds_other_block(one, known) for one in value.values())
    return isinstance(value, Block) and value not in known


class Block:
    """A layer or a network: parameters, child blocks and a ``forward``.

    Blocks and Parameters that are assigned to attributes are registered under the attribute's name.

    Parameters
    ----------
    prefix : str, optional
        Put before the names of parameters and of children made inside :meth:`name_scope`; by default the class name and
        a counter. With ``""`` the scope changes nothing.
    params : ParameterDict, optional
        Take the parameters of another block instead of making new ones.

    Examples
    --------
    >>> from numbagrad import gluon, nd
    >>> class Twice(gluon.Block):
    ...     def __init__(self, **kwargs):
    ...         super().__init__(**kwargs)
    ...         self.dense = gluon.nn.Dense(3, in_units=2)
    ...     def forward(self, x):
    ...         return 2 * self.dense(x)
    >>> net = Twice()
    >>> net.initialize()
    >>> net(nd.ones((4, 2))).shape
    (4, 3)
    """

    _hooked = False
    """Whether a call must do more than ``forward``."""

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        self._empty_prefix = prefix == ""
        self._prefix, self._params = BlockScope.create(prefix, params, self._alias())
        self._name = self._prefix[:-1] if self._prefix.endswith("_") else self._prefix
        self._scope = BlockScope(self)
        self._children: dict[str, Block] = {}
        self._reg_params: dict[str, Parameter] = {}
        self._forward_hooks: dict[int, Callable[..., Any]] = {}
        self._forward_pre_hooks: dict[int, Callable[..., Any]] = {}

    def __call__(self, x: Any = _NOT_GIVEN, y: Any = _NOT_GIVEN, /, *more: Any) -> Any:
        """Call ``forward`` with the arguments, and the hooks before and after it."""
        # One or two arguments, the common case, are passed on without a tuple: a third faster.
        if self._hooked or more or x is _NOT_GIVEN:
            return self._call_hooked(tuple([arg for arg in (x, y, *more) if arg is not _NOT_GIVEN]))
        if y is _NOT_GIVEN:
            return self.forward(x)
        return self.forward(x, y)

    def _call_hooked(self, args: tuple[Any, ...]) -> Any:
        for hook in list(self._forward_pre_hooks.values()):
            hook(self, args)
        output = self.forward(*args)
        for hook in list(self._forward_hooks.values()):
            hook(self, args, output)
        return output

    def forward(self, *args: Any) -> Any:
        """Compute the output; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must define forward")

    # ------------------------------------------------------------------------------------- structure

    def __setattr__(self, name: str, value: Any) -> None:
        existing = self.__dict__.get(name)
        if isinstance(existing, (Block, Parameter)) and not isinstance(value, type(existing)):
            raise TypeError(
                f"Changing attribute type for {name} from {type(existing)} to {type(value)} is not allowed."
            )
        if isinstance(value, Block):
            self.register_child(value, name)
        elif isinstance(value, Parameter):
            assert name not in self._reg_params, (
                f"Overriding Parameter attribute {name} is not allowed. If you want to share parameters between "
                "blocks, pass 'params' when making them."
            )
            self._reg_params[name] = value
        object.__setattr__(self, name, value)

    def register_child(self, block: "Block", name: str | None = None) -> None:
        """Make `block` a child; its name is by default its number."""
        self._children[str(len(self._children)) if name is None else name] = block

    def _alias(self) -> str:
        return type(self).__name__.lower()

    @property
    def prefix(self) -> str:
        """What the names of the parameters start with."""
        return self._prefix

    @property
    def name(self) -> str:
        """The prefix without the last underscore."""
        return self._name

    @property
    def params(self) -> ParameterDict:
        """The block's own parameters, without those of its children."""
        return self._params

    def name_scope(self) -> BlockScope:
        """A scope for making children: ``with self.name_scope():`` puts the block's prefix before theirs."""
        return self._scope

    def collect_params(self, select: str | None = None) -> ParameterDict:
        """The parameters of the block and of everything below it.

        Parameters
        ----------
        select : str, optional
            A regular expression that names must match at their start.
        """
        known = list(self._children.values())
        for key, value in self.__dict__.items():
            if key != "_children" and isinstance(value, (list, tuple, dict)) and _holds_other_block(value, known):
                warnings.warn(
                    f'"{type(self).__name__}.{key}" is an unregistered container with Blocks: those inside a list, '
                    "tuple or dict are not found. Call register_child() for each, or use nn.Sequential or "
                    "nn.HybridSequential.",
                    stacklevel=2,
                )
        found = ParameterDict(self._params.prefix)
        if select is None:
            found.update(self._params)
        else:
            matches = re.compile(select).match
            found.update({name: parameter for name, parameter in self._params.items() if matches(name)})
        for child in self._children.values():
            found.update(child.collect_params(select))
        return found

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """The parameters by their path of attribute names."""
        if prefix:
            prefix += "."
        found = {prefix + name: parameter for name, parameter in self._reg_params.items()}
        for name, child in self._children.items():
            found.update(child._collect_params_with_prefix(prefix + name))
        return found

    def __repr__(self) -> str:
        lines = [
            f"  ({key}): {indent(repr(value))}" for key, value in self.__dict__.items() if isinstance(value, Block)
        ]
        return f"{type(self).__name__}(\n" + "\n".join(lines) + "\n)"

    def apply(self, fn: Callable[["Block"], Any]) -> "Block":
        """Call ``fn(block)`` for every block below this one and then for itself; returns itself."""
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

    def summary(self, *inputs: Any) -> None:
        """Print the layers with their output shapes and numbers of parameters, found by calling with `inputs`.

        Raises
        ------
        AssertionError
            For a hybridized block.
        """
        summary(self, *inputs)

    # ----------------------------------------------------------------------------------------- hooks

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Have ``hook(block, args)`` called before each ``forward``; ``detach()`` of the handle ends it."""
        return self._add_hook(self._forward_pre_hooks, hook)

    def register_forward_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Have ``hook(block, args, output)`` called after each ``forward``; ``detach()`` of the handle ends it."""
        return self._add_hook(self._forward_hooks, hook)

    def _add_hook(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> HookHandle:
        handle = HookHandle(self, hooks, hook)
        self._hooks_changed()
        return handle

    def _hooks_changed(self) -> None:
        hooked = bool(self._forward_hooks or self._forward_pre_hooks) or type(self).__call__ is not Block.__call__
        object.__setattr__(self, "_hooked", hooked)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__call__" in cls.__dict__:
            cls._hooked = True

    # ------------------------------------------------------------------------------------ parameters

    def initialize(
        self, init: Any = _UNIFORM, ctx: Any = None, verbose: bool = False, force_reinit: bool = False
    ) -> None:
        """Initialise all parameters of the block and below; see :meth:`ParameterDict.initialize`."""
        self.collect_params().initialize(init, ctx, verbose, force_reinit)

    def cast(self, dtype: Any) -> None:
        """Convert all parameters to another dtype."""
        for child in self._children.values():
            child.cast(dtype)
        for parameter in self._params.values():
            parameter.cast(dtype)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Let every :class:`HybridBlock` below know; results do not change."""
        for child in self._children.values():
            child.hybridize(active, **kwargs)

    def save_parameters(self, filename: str, deduplicate: bool = False) -> None:
        """Write the parameters to a file, under their paths of attribute names (``0.weight``, ``dense0.bias``).

        Parameters
        ----------
        filename : str
        deduplicate : bool
            Store a shared parameter once, not once a path.

        Raises
        ------
        RuntimeError
            If one is not initialised.
        """
        checkpoint.save(self, filename, deduplicate)

    def load_parameters(
        self,
        filename: str,
        ctx: Any = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Read parameters that :meth:`save_parameters` wrote: all of them, or, after an error, none.

        Parameters
        ----------
        filename : str
        ctx : Context or list of Context, optional
            For parameters that are not initialised; the default is the CPU.
        allow_missing, ignore_extra : bool
            Accept a file with fewer, or more, than the parameters.
        cast_dtype : bool
            Cast where the dtypes differ: the values, or with ``dtype_source="saved"`` the parameter.
        dtype_source : {"current", "saved"}

        Raises
        ------
        AssertionError
            If a parameter is missing in the file, or its shape or dtype does not fit.
        ValueError
            If the file has more.
        MXNetError
            If there is no such file, or it is damaged.
        """
        checkpoint.load(self, filename, ctx, allow_missing, ignore_extra, cast_dtype, dtype_source)

    def save_params(self, filename: str) -> None:
        """Deprecated: :meth:`save_parameters`, under full names less the prefix."""
        warnings.warn("save_params is deprecated. Please use save_parameters.", stacklevel=2)
        self.collect_params().save(filename, strip_prefix=self.prefix)

    def load_params(
        self, filename: str, ctx: Any = None, allow_missing: bool = False, ignore_extra: bool = False
    ) -> None:
        """Deprecated: :meth:`load_parameters`."""
        warnings.warn("load_params is deprecated. Please use load_parameters.", stacklevel=2)
        self.load_parameters(filename, ctx, allow_missing, ignore_extra)


def _leaves(value: Any) -> list[Any]:
    """What nested lists and tuples hold, one after the other."""
    if isinstance(value, (list, tuple)):
        return [leaf for one in value for leaf in _leaves(one)]
    return [value]


def _pattern(value: Any) -> Any:
    """How lists are nested in `value`, and where None stands."""
    if isinstance(value, (list, tuple)):
        return tuple(_pattern(one) for one in value)
    return value is None


class HybridBlock(Block):
    """A block that computes with the functions it is handed.

    A subclass writes ``hybrid_forward(self, F, x, *args, **params)``: `F` is the ``nd`` module, and the parameters
    assigned to attributes arrive as keywords under the attributes' names. Overriding ``forward`` works as well.
    """

    _active = False
    _checked = False
    _captured: Any = None

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix, params)
        self._call_pattern: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A layer here may define forward for speed; who overrides its hybrid_forward means that.
        if "hybrid_forward" in cls.__dict__ and "forward" not in cls.__dict__:
            cls.forward = HybridBlock.forward  # type: ignore[method-assign]

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Make `block`, which must be a HybridBlock, a child."""
        if not isinstance(block, HybridBlock):
            raise ValueError(
                f"Children of HybridBlock must also be HybridBlock, but {block} has type {type(block)}. If you are "
                "using Sequential, please try HybridSequential instead."
            )
        super().register_child(block, name)
        if self._active:
            RebindEpoch.value += 1  # what was captured, here or in a block around this one, did not call the child

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Capture the block's calls and replay them natively; results and gradients do not change.

        Parameters
        ----------
        active : bool
        **kwargs
            MXNet's options (``static_alloc``, ``static_shape`` ...), accepted and not needed.

        Notes
        -----
        As in MXNet the inputs of a hybridized block are arrays or None, on one device label, and which are None is
        fixed by the first call; ValueError else. A block that cannot be captured - it reads the value of an array,
        say - goes on as before, with one warning that says why.
        """
        object.__setattr__(self, "_active", active)
        object.__setattr__(self, "_checked", active)
        self._call_pattern = None
        self._capture_anew()
        self._hooks_changed()
        super().hybridize(active, **kwargs)

    def _capture_anew(self) -> None:
        captured = jit(type(self).forward).__get__(self, type(self)) if self._active else None
        object.__setattr__(self, "_captured", captured)

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and pickled: captured programs are not, a hybridized copy captures its own."""
        return {name: value for name, value in self.__dict__.items() if name != "_captured"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._capture_anew()

    def _hooks_changed(self) -> None:
        super()._hooks_changed()
        if self._checked:
            object.__setattr__(self, "_hooked", True)

    def _call_hooked(self, args: tuple[Any, ...]) -> Any:
        if self._checked:
            if len(args) == 1 and type(args[0]) is NDArray and self._call_pattern == (False,):
                pass
            else:
                self._check_call(args)
            if not self._forward_hooks and not self._forward_pre_hooks:
                return self._replayed(args)
        return super()._call_hooked(args)

    def _replayed(self, args: tuple[Any, ...]) -> Any:
        """What ``forward`` computes, captured where that is possible."""
        captured = self._captured
        if captured is None or flags.recomputing or getattr(args[0], "_context", None) is not None:
            return self.forward(*args)  # a program moves running statistics whenever it runs
        try:
            return captured(*args)
        except CaptureError as error:
            object.__setattr__(self, "_captured", None)
            message = f"{self.name} cannot be captured and runs as if it were not hybridized: {error}"
            warnings.warn(message, stacklevel=4)
            return self.forward(*args)

    def _check_call(self, args: tuple[Any, ...]) -> None:
        leaves = _leaves(args)
        arrays = [leaf for leaf in leaves if isinstance(leaf, NDArray)]
        _need_an_array(self, arrays)
        for leaf in leaves:
            if leaf is not None and not isinstance(leaf, NDArray):
                raise ValueError(
                    f"{self.name}: inputs of a hybridized block are arrays or None, not {type(leaf).__name__}"
                )
        if len({array.context for array in arrays}) > 1:
            raise ValueError(
                f"{self.name}: inputs of a hybridized block must be on one context, not on "
                f"{', '.join(str(array.context) for array in arrays)}"
            )
        pattern = _pattern(args)
        if self._call_pattern is None:
            self._call_pattern = pattern
        elif self._call_pattern != pattern:
            raise ValueError(
                f"{self.name}: the first call of a hybridized block fixes which inputs are None and how they are "
                "nested; this call differs from it"
            )

    def infer_shape(self, *args: Any) -> None:
        """Set the shapes of the block's own parameters from inputs; to be overridden where some may be unknown."""
        unknown = [parameter.name for parameter in self._reg_params.values() if parameter._deferred_init is not None]
        raise ValueError(
            f"{self.name}: the shapes of {', '.join(unknown)} are not known, and {type(self).__name__} does not say "
            "how they follow from the inputs: give them in full, or define infer_shape(self, *args), which sets them"
        )

    def forward(self, x: Any, *args: Any) -> Any:
        """Fetch the parameters and call ``hybrid_forward``."""
        if type(x) is not NDArray:
            _need_an_array(self, [leaf for leaf in _leaves((x, *args)) if isinstance(leaf, NDArray)])
        registered = self._reg_params
        if not registered:
            return self.hybrid_forward(nd, x, *args)
        try:
            params = {name: parameter.data() for name, parameter in registered.items()}
        except DeferredInitializationError:
            self._infer(x, *args)
            params = {name: parameter.data() for name, parameter in registered.items()}
        except RuntimeError:
            # Several replicas: those of the label of the input.
            ctx = next(leaf.context for leaf in _leaves((x, *args)) if isinstance(leaf, NDArray))
            params = {name: parameter.data(ctx) for name, parameter in registered.items()}
        return self.hybrid_forward(nd, x, *args, **params)

    def _infer(self, *args: Any) -> None:
        """Finish the initialisation of the block's own parameters."""
        self.infer_shape(*args)
        for parameter in self._reg_params.values():
            parameter._finish_deferred_init()

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute the output with the functions of `F`; to be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must define hybrid_forward or forward")


def _need_an_array(block: Block, arrays: list[Any]) -> None:
    if not arrays:
        raise ValueError(
            f"{block.name}: at least one input of a {type(block).__name__} must be an NDArray; "
            "make one of a NumPy array with nd.array"
        )
