"""Parameters: named arrays with gradients, whose shape may be known only at the first use."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numbagrad import autograd, initializer
from numbagrad import launch as door
from numbagrad.array import wrote
from numbagrad.context import CPU0, Context, current_context
from numbagrad.errors import MXNetError
from numbagrad.kernels.strided import fill
from numbagrad.launch import launch
from numbagrad.nd.ndarray import NDArray
from numbagrad.ops.arithmetic import add, multiply
from numbagrad.ops.casting import cast_flat, raw
from numbagrad.ops.dtypes import adopted, as_dtype, floating
from numbagrad.optimizer.base import SettingEpoch
from numbagrad.tape import FOLDED, Leaf, RebindEpoch, readable
from numbagrad.vjp import zeros

REQUESTS = ("write", "add", "null")
STYPES = ("default", "row_sparse", "csr")


class PlacementEpoch:
    """Counts how often a parameter got other arrays or another request, so that trainers know when to look again."""

    value = 0


class DeferredInitializationError(MXNetError):
    """A parameter was asked for its data before its shape was known."""


class Variable(NamedTuple):
    """What :meth:`Parameter.var` gives: a name."""

    name: str


class _Deferred(NamedTuple):
    """What to do once the shape is known."""

    init: Any
    contexts: list[Context]
    default_init: Any
    data: NDArray | None


def is_known(shape: Sequence[int] | None) -> bool:
    """Whether every length of `shape` is known."""
    return shape is not None and all(n > 0 for n in shape)


def fills(shape: Sequence[int], declared: Sequence[int]) -> bool:
    """Whether `shape` is `declared` but for lengths that were unknown."""
    return len(shape) == len(declared) and all(m in (n, 0, -1) for n, m in zip(shape, declared))


def as_array(value: Any) -> NDArray:
    """`value` as an array of its dtype, off the graph: an NDArray shares memory, the rest is copied."""
    if isinstance(value, NDArray):
        return value.detach()
    values = adopted(np.array(value, order="C"))
    return NDArray(values.reshape(-1), values.shape)


def as_contexts(ctx: Any) -> list[Context]:
    """One label or several as a list; None: the current one.

    Raises
    ------
    MXNetError
        For a GPU: nothing can be put there.
    """
    contexts = [current_context()] if ctx is None else [ctx] if isinstance(ctx, Context) else list(ctx)
    for context in contexts:
        if context.device_type == "gpu":
            raise MXNetError(f"there is no {context}: numbagrad computes on the CPU")
    return contexts


def _lengths(name: str, shape: Any) -> tuple[int, ...] | None:
    """A shape as it was given to a parameter; None, 0 and -1 stand for what is not known yet."""
    if shape is None:
        return None
    lengths = (shape,) if isinstance(shape, (int, np.integer)) else shape
    if not isinstance(lengths, (tuple, list)) or not all(isinstance(n, (int, np.integer)) for n in lengths):
        raise TypeError(f"Parameter '{name}': shape must be an int or a sequence of ints, not {shape!r}")
    return tuple(lengths)


def _replica(data: NDArray, dtype: Any, context: Context) -> NDArray:
    """A copy of `data` under a label."""
    result = NDArray(cast_flat(data._flat, np.dtype(dtype)), data._shape)
    result._context = None if context == CPU0 else context
    return result


class Parameter:
    """A named array that belongs to a block.

    Parameters
    ----------
    name : str
    grad_req : {"write", "add", "null"}
        Each backward overwrites the gradient, adds to it, or there is none.
    shape : int or tuple of int, optional
        0 stands for a length that the first use will tell.
    dtype : str or NumPy dtype
    lr_mult, wd_mult : float
        What the optimiser multiplies learning rate and weight decay by.
    init : str or Initializer, optional
        Goes before the initializer of the block.
    allow_deferred_init : bool
        Allow :meth:`initialize` while the shape is unknown.
    differentiable : bool
        False makes `grad_req` null for good.
    stype, grad_stype : str
        Names of MXNet's storage types; arrays are dense whatever they say.

    Raises
    ------
    AssertionError
        For an unknown `grad_req` or storage type.

    Examples
    --------
    >>> from numbagrad import gluon
    >>> weight = gluon.Parameter("weight", shape=(2, 3))
    >>> weight.initialize(init="ones")
    >>> weight.data().shape
    (2, 3)
    """

    def __init__(
        self,
        name: str,
        grad_req: str = "write",
        shape: Any = None,
        dtype: Any = np.float32,
        lr_mult: float = 1.0,
        wd_mult: float = 1.0,
        init: Any = None,
        allow_deferred_init: bool = False,
        differentiable: bool = True,
        stype: str = "default",
        grad_stype: str = "default",
    ) -> None:
        for which, given in (("stype", stype), ("grad_stype", grad_stype)):
            assert given in STYPES, (
                f"{which} for Parameter '{name}' must be one of 'default', 'row_sparse', or 'csr', but got '{given}'"
            )
        self.name = name
        self._data: NDArray | list[NDArray] | None = None
        """The array; a list of replicas where there are several; None before initialisation."""
        self._deferred_init: _Deferred | None = None
        self._differentiable = differentiable
        self._allow_deferred_init = allow_deferred_init
        self._grad_req = "null"
        self._shape = _lengths(name, shape)
        self._dtype = dtype
        self._stype = stype
        self._grad_stype = grad_stype
        self._lr_mult = lr_mult
        self._wd_mult = wd_mult
        self.init = init
        self.grad_req = grad_req

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.name} (shape={self.shape}, dtype={self.dtype})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy or an unpickled parameter: its arrays are marked as :attr:`grad_req` says, with gradients of zeros."""
        self.__dict__.update(state)
        for data in self._replicas():
            if data._node is None and self._grad_req != "null":
                autograd.attach_grad(data, self._grad_req)

    # ------------------------------------------------------------------------------------ what it is

    @property
    def lr_mult(self) -> float:
        """What the optimiser multiplies the learning rate by."""
        return self._lr_mult

    @lr_mult.setter
    def lr_mult(self, factor: float) -> None:
        self._lr_mult = factor
        SettingEpoch.value += 1

    @property
    def wd_mult(self) -> float:
        """What the optimiser multiplies the weight decay by."""
        return self._wd_mult

    @wd_mult.setter
    def wd_mult(self, factor: float) -> None:
        self._wd_mult = factor
        SettingEpoch.value += 1

    @property
    def stype(self) -> str:
        """The storage type it was declared with."""
        return self._stype

    @property
    def grad_req(self) -> str:
        """What backward does with the gradient: ``write``, ``add`` or ``null``."""
        return self._grad_req

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        assert req in REQUESTS, f"grad_req must be one of 'write', 'add', or 'null', but got '{req}'"
        if not self._differentiable:
            req = "null"
        if req == self._grad_req:
            return
        self._grad_req = req
        PlacementEpoch.value += 1
        for data in self._replicas():
            self._mark(data)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape; 0 where a length is not known yet. It can be set as far as it is unknown."""
        return self._shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        mine = self._shape
        if mine is not None:
            assert fills(shape, mine), (
                f"Parameter '{self.name}': expected shape {mine} is incompatible with given shape {shape}"
            )
        self._shape = shape

    @property
    def dtype(self) -> Any:
        """The dtype, as it was given; setting it casts."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self.cast(dtype)

    def var(self) -> Variable:
        """A stand-in for MXNet's symbol: an object with the name."""
        return Variable(self.name)

    # --------------------------------------------------------------------------------- initialisation

    def initialize(
        self, init: Any = None, ctx: Any = None, default_init: Any = None, force_reinit: bool = False
    ) -> None:
        """Give the parameter its first values, and a gradient of zeros.

        Parameters
        ----------
        init : str or Initializer, optional
            The default is the parameter's own :attr:`init`, and then `default_init`.
        ctx : Context or list of Context, optional
            One replica a label; the default is the current label.
        default_init : str or Initializer, optional
            ``Uniform(0.07)`` if it is not given.
        force_reinit : bool
            Initialise anew what is initialised; otherwise that is left alone with a warning.

        Raises
        ------
        ValueError
            If the shape is not known, and the parameter was not declared with ``allow_deferred_init``.
        """
        if self._data is not None and not force_reinit:
            warnings.warn(
                f"Parameter '{self.name}' is already initialized, ignoring. Set force_reinit=True to re-initialize.",
                stacklevel=2,
            )
            return
        contexts = as_contexts(ctx)
        if default_init is None:
            default_init = initializer.Uniform()
        if init is None:
            init = default_init if self.init is None else self.init
        known = is_known(self._shape)
        if not known and not self._allow_deferred_init:
            raise ValueError(f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self._shape}.")
        plan = _Deferred(init, contexts, default_init, None)
        if known:
            data = self._draw(plan)
            self._place(data, contexts)
        else:
            self._data = None
            self._deferred_init = plan

    def _draw(self, plan: _Deferred) -> NDArray:
        assert self._shape is not None
        data = zeros(self._shape, as_dtype(self._dtype))
        with autograd.pause():
            initializer.create(plan.default_init)(initializer.InitDesc(self.name, {"__init__": plan.init}), data)
        return data.detach()

    def _finish_deferred_init(self) -> None:
        """Initialise now, if :meth:`initialize` was waiting for the shape."""
        plan = self._deferred_init
        if plan is None:
            return
        assert is_known(self._shape), (
            f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self._shape}. Please specify "
            "in_units, in_channels, etc for Blocks, or set the shape before the first use."
        )
        with door.aside():  # a captured step that comes first must not draw the parameters again
            self._place(self._draw(plan) if plan.data is None else plan.data, plan.contexts)

    def _place(self, data: NDArray, contexts: Sequence[Context]) -> None:
        """Put copies of `data` under the labels, with gradients."""
        replicas = [_replica(data, as_dtype(self._dtype), context) for context in contexts]
        if self._data is not None:
            RebindEpoch.value += 1  # captured programs have the old ones
        self._data = replicas[0] if len(replicas) == 1 else replicas
        self._deferred_init = None
        PlacementEpoch.value += 1
        for replica in replicas:
            self._mark(replica)

    def _mark(self, data: NDArray) -> None:
        if self._grad_req == "null":
            data._node = None
            RebindEpoch.value += 1
        else:
            autograd.attach_grad(data, self._grad_req)

    # --------------------------------------------------------------------------------------- contents

    def _replicas(self) -> list[NDArray]:
        data = self._data
        return [] if data is None else data if type(data) is list else [data]  # type: ignore[list-item]

    def _initialised(self) -> list[NDArray]:
        """The replicas; raises where there are none."""
        if self._data is not None:
            return self._replicas()
        if self._deferred_init is not None:
            raise DeferredInitializationError(
                f"Parameter '{self.name}' has not been initialized yet because initialization was deferred: its shape "
                f"{self._shape} is not known. Pass one batch of data through the network first, or say in_units, "
                "in_channels and the like when making the layers."
            )
        raise RuntimeError(
            f"Parameter '{self.name}' has not been initialized. Call initialize() on the block first; use "
            "Block.collect_params() rather than Block.params, which leaves out the parameters of child blocks."
        )

    def _on(self, ctx: Any) -> NDArray:
        replicas = self._initialised()
        if ctx is None:
            if len(replicas) == 1:
                return replicas[0]
            ctx = current_context()
        for replica in replicas:
            if replica.context == ctx:
                return replica
        raise RuntimeError(
            f"Parameter '{self.name}' was not initialized on context {ctx}. "
            f"It was only initialized on {self.list_ctx()}."
        )

    def data(self, ctx: Any = None) -> NDArray:
        """The array itself: writing to it changes the parameter.

        Raises
        ------
        RuntimeError
            Before initialisation, and for a label it was not initialised on.
        DeferredInitializationError
            While the shape is not known.
        """
        data = self._data
        if ctx is None and type(data) is NDArray:
            return data
        return self._on(ctx)

    def list_data(self) -> list[NDArray]:
        """The array of every label."""
        return list(self._initialised())

    def _gradient(self, data: NDArray) -> NDArray:
        node = data._node
        if type(node) is not Leaf:
            raise RuntimeError(f"Cannot get gradient array for Parameter '{self.name}' because grad_req='null'")
        return readable(node)

    def grad(self, ctx: Any = None) -> NDArray:
        """The gradient buffer itself; RuntimeError where `grad_req` is null."""
        return self._gradient(self._on(ctx))

    def list_grad(self) -> list[NDArray]:
        """The gradient buffer of every label."""
        return [self._gradient(data) for data in self._initialised()]

    def list_ctx(self) -> list[Context]:
        """The labels it is, or will be, initialised on."""
        if self._data is None and self._deferred_init is not None:
            return list(self._deferred_init.contexts)
        return [data.context for data in self._initialised()]

    def set_data(self, data: Any) -> None:
        """Overwrite the values in place, on all labels.

        Parameters
        ----------
        data : NDArray or array_like
            Of the parameter's shape; cast to its dtype.

        Raises
        ------
        AssertionError
            For another shape, or before :meth:`initialize`.
        MXNetError
            While recording, where the parameter is part of the graph.
        """
        value = as_array(data)
        if self._data is None:
            assert self._deferred_init is not None, f"Parameter '{self.name}' has not been initialized"
            self.shape = value._shape
            self._deferred_init = self._deferred_init._replace(data=value.copy())
            return
        self.shape = value._shape
        for replica in self._replicas():
            replica._assign(value)

    def zero_grad(self) -> None:
        """Set the gradient to zero; nothing where `grad_req` is null."""
        for data in self._replicas():
            node = data._node
            if type(node) is Leaf:
                flat = raw(node.gradient._flat)
                launch(fill, 0, flat, flat.size)
                wrote(node.gradient._storage)
                if node.flag[0] == FOLDED:  # it is in its buffer again
                    launch(fill, 0, node.flag_memory(), 1)

    def cast(self, dtype: Any) -> None:
        """Convert values and gradient to another dtype."""
        target = as_dtype(dtype)
        self._dtype = dtype
        replicas = self._replicas()
        if not replicas:
            return
        made = []
        for data in replicas:
            node = data._node
            replica = _replica(data, target, data.context)
            if type(node) is Leaf:
                replica._node = Leaf(_replica(node.gradient, floating(target), CPU0), node.request)
                replica._node.flag[0] = node.flag[0]
            made.append(replica)
        self._data = made[0] if len(made) == 1 else made
        RebindEpoch.value += 1

    def reset_ctx(self, ctx: Any) -> None:
        """Move the parameter to other labels."""
        contexts = as_contexts(ctx)
        if self._data is not None:
            self._place(self._reduce(), contexts)
        elif self._deferred_init is not None:
            self._deferred_init = self._deferred_init._replace(contexts=contexts)
        else:
            raise ValueError(f"Cannot reset context for Parameter '{self.name}' because it has not been initialized.")

    def _reduce(self) -> NDArray:
        """The mean over the replicas."""
        replicas = [data.detach() for data in self._initialised()]
        if len(replicas) == 1:
            return replicas[0]
        with autograd.pause():
            total = replicas[0]
            for other in replicas[1:]:
                total = add(total, other)
            return multiply(total, 1.0 / len(replicas))

    # ---------------------------------------------------------------------------------------- loading

    def _fitting(self, data: NDArray, ctx: Any, cast_dtype: bool, dtype_source: str) -> None:
        """Check that `data` can be loaded; nothing is changed."""
        head = f"Failed loading Parameter '{self.name}' from saved params:"
        mine = self._shape
        if mine is not None:
            assert fills(data._shape, mine), f"{head} shape incompatible expected {mine} vs saved {data._shape}"
        assert dtype_source in ("current", "saved"), (
            f"dtype_source must be 'current' or 'saved', but got {dtype_source!r}"
        )
        assert cast_dtype or as_dtype(self._dtype) == data._flat.dtype, (
            f"{head} dtype incompatible expected {self._dtype} vs saved {data._flat.dtype}. "
            "Set cast_dtype=True to cast the dtype of saved params."
        )
        if ctx is not None and (self._data is not None or self._deferred_init is not None):
            assert set(as_contexts(ctx)) == set(self.list_ctx()), (
                f"Failed to load Parameter '{self.name}' on {ctx} because it was previous initialized on "
                f"{self.list_ctx()}."
            )

    def _load(self, data: NDArray, ctx: Any, cast_dtype: bool, dtype_source: str) -> None:
        """Take `data`, which :meth:`_fitting` has accepted."""
        if cast_dtype and dtype_source == "saved" and as_dtype(self._dtype) != data._flat.dtype:
            self.cast(data._flat.dtype.type)
        self.shape = data._shape
        if self._data is not None:
            self.set_data(data)
        elif self._deferred_init is not None:
            self._place(data, self._deferred_init.contexts)
        else:
            self._place(data, [CPU0] if ctx is None else as_contexts(ctx))


class Constant(Parameter):
    """A parameter that is never trained.

    Parameters
    ----------
    name : str
    value : array_like
        Lists and NumPy arrays become float32.
    """

    def __init__(self, name: str, value: Any) -> None:
        if not isinstance(value, NDArray):
            value = as_array(np.asarray(value, dtype="float32"))
        self.value = value
        super().__init__(name, grad_req="null", shape=value.shape, dtype=value.dtype, init=initializer.Constant(value))

    @property
    def grad_req(self) -> str:
        """Always ``null``."""
        return "null"

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req != "null":
            warnings.warn(
                f'Constant parameter "{self.name}" does not support grad_req other than "null", '
                f'and new value "{req}" is ignored.',
                stacklevel=2,
            )


def load_all(found: Iterable[tuple[Parameter, NDArray]], ctx: Any, cast_dtype: bool, dtype_source: str) -> None:
    """Load arrays into parameters: all of them, or, where one does not fit, none."""
    pairs = list(found)
    for parameter, data in pairs:
        parameter._fitting(data, ctx, cast_dtype, dtype_source)
    for parameter, data in pairs:
        parameter._load(data, ctx, cast_dtype, dtype_source)


def __getattr__(name: str) -> Any:
    # MXNet has it in this module; it is a file of its own here.
    if name == "ParameterDict":
        from numbagrad.gluon.parameter_dict import ParameterDict

        return ParameterDict
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
