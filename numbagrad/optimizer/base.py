"""What optimisers share: rates, decay, counts of updates, and how they are looked up by name."""

from typing import Any, ClassVar

import numpy as np

from numbagrad.array import wrote
from numbagrad.dispatch import check_writable
from numbagrad.errors import MXNetError
from numbagrad.kernels.kernel import Kernel
from numbagrad.kernels.rule import Rule
from numbagrad.launch import launch
from numbagrad.nd.arguments import expect_array
from numbagrad.nd.refusal import guarded
from numbagrad.ops.casting import cast_flat, write_cast
from numbagrad.ops.dtypes import FLOAT32
from numbagrad.tape import RebindEpoch
from numbagrad.vjp import zeros

_HALF = np.dtype("float16")


class SettingEpoch:
    """Counts how often a public attribute of an optimiser, or ``lr_mult`` or ``wd_mult`` of a parameter, was set.

    Tables, and what a captured step does before its kernels, look again when it has risen.
    """

    value = 0


@guarded
class Optimizer:
    """A rule that updates weights, one numbered parameter at a time or all in one call.

    Parameters
    ----------
    rescale_grad : float
        Gradients are multiplied by it.
    param_idx2name : dict of int to str, optional
        Names; weight decay then spares those that do not end in ``_weight`` or ``_gamma``.
    wd : float
        Weight decay.
    clip_gradient : float, optional
        Gradients are clipped to its range.
    learning_rate : float, optional
        0.01 unless the rule says otherwise.
    lr_scheduler : LRScheduler, optional
        Gives the rate from the number of updates; `learning_rate` becomes its base.
    begin_num_update : int
        The count to start from.
    multi_precision : bool
        Keep a float32 copy of float16 weights and update that.
    param_dict : dict of int to Parameter, optional
        Their ``lr_mult`` and ``wd_mult`` scale rate and decay.

    Notes
    -----
    An optimiser states ``rules`` and :meth:`row` (see ``kernels.rule``); or it overrides :meth:`update`.
    """

    registry: ClassVar[dict[str, type["Optimizer"]]] = {}
    rules: ClassVar[dict[int, Rule]] = {}
    """The kernels by the number of states a parameter, all with the same columns; empty where there is only
    ``update``."""

    master_last: ClassVar[bool] = False
    """Whether the float32 copy of a float16 weight stands behind the state, as MXNet has it for some rules."""

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if not name.startswith("_"):
            SettingEpoch.value += 1

    def __init__(
        self,
        rescale_grad: float = 1.0,
        param_idx2name: dict[int, str] | None = None,
        wd: float = 0.0,
        clip_gradient: float | None = None,
        learning_rate: float | None = None,
        lr_scheduler: Any = None,
        begin_num_update: int = 0,
        multi_precision: bool = False,
        param_dict: dict[int, Any] | None = None,
    ) -> None:
        self.rescale_grad = rescale_grad
        self.wd = wd
        self.clip_gradient = clip_gradient
        self.lr = 0.01 if learning_rate is None else learning_rate
        self.lr_scheduler = lr_scheduler
        if lr_scheduler is not None:
            if learning_rate is None:
                self.lr = lr_scheduler.base_lr
            else:
                lr_scheduler.base_lr = learning_rate
        self.begin_num_update = begin_num_update
        self._num_update = begin_num_update
        self._counts: dict[Any, int] = {}
        self._table: Any = None
        self.multi_precision = multi_precision
        self.idx2name = dict(param_idx2name or {})
        self.param_dict = param_dict or {}
        self.lr_mult: dict[Any, float] = {}
        self.wd_mult: dict[Any, float] = {}
        self.set_wd_mult({})

    # ------------------------------------------------------------------------------------------- the rule

    def create_state(self, index: Any, weight: Any) -> Any:
        """The state that the rule keeps for `weight`: None, an NDArray or a tuple of them."""
        return None

    def row(self) -> tuple[float, ...]:
        """What a row of the kernels' table holds after rate and decay and before the step count."""
        raise NotImplementedError

    def kernel(self, states: tuple[Any, ...]) -> Kernel:
        """The kernel over one array."""
        return self.rules[len(states)].array

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Update `weight` in place from `grad`; lists update one by one."""
        if isinstance(index, (list, tuple)):
            for each in zip(index, weight, grad, state, strict=True):
                self.update(*each)
            return
        states = as_tuple(state)
        expect_array(type(self).__name__, weight, grad, *states)
        check_writable(weight, "Optimizer.update")
        self.check(index, weight._shape, weight._flat.dtype, states, grad)
        self._update_count(index)
        made = self._index_update_count[index] - 1
        row = np.array([self._get_lr(index), self._get_wd(index), *self.row(), made])
        begin = self.rules[len(states)].begin
        if begin is not None:
            launch(begin, row, 1)
        scale = float(self.rescale_grad)
        flats = [weight._flat, grad._flat, *[each._flat for each in states]]
        if weight._flat.dtype == _HALF:
            wide = [cast_flat(flat, FLOAT32) for flat in flats]
            launch(self.kernel(states), *wide, row, scale)
            for source, target in zip(wide, flats, strict=True):
                if target is not grad._flat:
                    write_cast(source, target)
        else:
            launch(self.kernel(states), *flats, row, scale)
        for array in (weight, *states):
            wrote(array._storage)

    def create_state_multi_precision(self, index: Any, weight: Any) -> Any:
        """The state, behind a float32 copy of a float16 weight where `multi_precision` asks for one."""
        if self.multi_precision and weight._flat.dtype == _HALF:
            master = weight.astype(FLOAT32)
            inner = self.create_state(index, master)
            return (inner, master) if self.master_last else (master, inner)
        return self.create_state(index, weight)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """:meth:`update`, on the float32 copy where there is one; lists update one by one."""
        if isinstance(index, (list, tuple)):
            for each in zip(index, weight, grad, state, strict=True):
                self.update_multi_precision(*each)
            return
        if self.multi_precision and weight._flat.dtype == _HALF:
            check_writable(weight, "Optimizer.update")
            master, inner = self._parted(state)
            self.update(index, master, grad.astype(FLOAT32), inner)
            write_cast(master._flat, weight._flat)
            wrote(weight._storage)
        else:
            self.update(index, weight, grad, state)

    def _parted(self, state: Any) -> tuple[Any, Any]:
        """The float32 copy and the state of the rule."""
        first, second = state
        return (second, first) if self.master_last else (first, second)

    def check(self, index: Any, shape: Any, dtype: Any, states: tuple[Any, ...], grad: Any = None) -> None:
        """See that the kernels can take these arrays for a weight of that shape and dtype.

        Raises
        ------
        MXNetError
            Where they cannot.
        """
        name = type(self).__name__
        if dtype.kind != "f":
            raise MXNetError(f"{name}: parameter {index} of dtype {dtype} cannot be trained: weights must be floating")
        arrays = states if grad is None else (grad, *states)
        if any(each._shape != shape or each._flat.dtype != dtype for each in arrays):
            found = ", ".join(f"{each._shape} {each._flat.dtype}" for each in arrays)
            raise MXNetError(
                f"{name}: gradient and states of parameter {index} must be of its shape and dtype, {shape} {dtype}, "
                f"not {found}"
            )
        if len(states) not in self.rules:
            counts = " or ".join(map(str, self.rules))
            raise MXNetError(f"{name}: parameter {index} needs {counts} states, not {len(states)}")

    def check_multi_precision(self, index: Any, shape: Any, dtype: Any, state: Any) -> None:
        """:meth:`check` for a state of :meth:`create_state_multi_precision`."""
        if self.multi_precision and dtype == _HALF:
            master, state = self._parted(state)
            self.check(index, shape, FLOAT32, as_tuple(state), master)
        else:
            self.check(index, shape, dtype, as_tuple(state))

    # -------------------------------------------------------------------------------------- rates, counts

    @property
    def learning_rate(self) -> float:
        """The rate now: the scheduler's, or the fixed one."""
        return self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)

    def set_learning_rate(self, lr: float) -> None:
        """Set the fixed rate.

        Raises
        ------
        UserWarning
            If a scheduler decides.
        """
        if self.lr_scheduler is not None:
            raise UserWarning("the learning rate is the scheduler's to decide; set its base_lr instead")
        if not isinstance(lr, (int, float, np.number)):
            raise TypeError(f"set_learning_rate: lr must be a number, not {lr!r}")
        self.lr = lr

    def set_lr_mult(self, args_lr_mult: dict[Any, float]) -> None:
        """Set the factors of the rate, by name or index."""
        self.lr_mult = dict(args_lr_mult)

    def set_wd_mult(self, args_wd_mult: dict[Any, float]) -> None:
        """Set the factors of weight decay, by name or index; known names that are no weight or gamma get 0."""
        self.wd_mult = {
            name: 0.0 for name in self.idx2name.values() if not name.endswith(("_weight", "_gamma"))
        } | dict(args_wd_mult)

    @property
    def num_update(self) -> int:
        """The greatest number of updates that any parameter has had."""
        return max([self._num_update, *self._index_update_count.values()])

    @num_update.setter
    def num_update(self, number: int) -> None:
        self._num_update = number

    @property
    def _index_update_count(self) -> dict[Any, int]:
        """The number of updates of each parameter; a table keeps its own in its rows."""
        if self._table is not None:
            self._counts.update(self._table.counts())
        return self._counts

    def _release_table(self) -> None:
        """Take the step counts back from the table; its trainer will make another one."""
        self._counts, self._table = self._index_update_count, None

    def _update_count(self, index: Any) -> None:
        if self._table is not None:
            self._release_table()
            RebindEpoch.value += 1  # captured steps count in the rows of that table
        counts = self._counts
        counts[index] = counts.get(index, self.begin_num_update) + 1
        self._num_update = max(self._num_update, counts[index])

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: everything but the table and the parameters, which the next trainer gives it."""
        return {**self.__dict__, "_counts": dict(self._index_update_count), "_table": None, "param_dict": {}}

    def _multiplier(self, index: Any, attribute: str, table: dict[Any, float]) -> float:
        if index in self.param_dict:
            return getattr(self.param_dict[index], attribute)
        if index in table:
            return table[index]
        return table.get(self.idx2name.get(index), 1.0)

    def _get_lr(self, index: Any) -> float:
        return self.learning_rate * self._multiplier(index, "lr_mult", self.lr_mult)

    def _get_wd(self, index: Any) -> float:
        return self.wd * self._multiplier(index, "wd_mult", self.wd_mult)

    def _clip(self) -> float:
        return -1.0 if self.clip_gradient is None else self.clip_gradient


def as_tuple(state: Any) -> tuple[Any, ...]:
    """An optimiser's state as a tuple of arrays."""
    if state is None:
        return ()
    return tuple(state) if isinstance(state, (tuple, list)) else (state,)


def register(klass: type[Optimizer]) -> type[Optimizer]:
    """Make an optimiser known by its lower-cased class name; usable as a decorator."""
    Optimizer.registry[klass.__name__.lower()] = guarded(klass)
    return klass


def create(name: str, **kwargs: Any) -> Optimizer:
    """The optimiser of that name, any case.

    Raises
    ------
    ValueError
        If there is none.
    """
    found = Optimizer.registry.get(str(name).lower())
    if found is None:
        raise ValueError(f"no optimizer {name!r}; there are {', '.join(sorted(Optimizer.registry))}")
    return found(**kwargs)


def zeros_like(weight: Any) -> Any:
    """A state of zeros in the shape and dtype of `weight`."""
    return zeros(weight._shape, weight._flat.dtype)
