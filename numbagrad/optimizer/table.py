"""All parameters updated by one kernel call, through tables of addresses."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from numbagrad import launch as door
from numbagrad.array import wrote
from numbagrad.launch import launch
from numbagrad.optimizer.base import Optimizer, SettingEpoch, as_tuple
from numbagrad.tape import RebindEpoch


class _Group:
    """Parameters of one dtype and number of states: their addresses, and the rows of numbers that updates read."""

    def __init__(
        self, optimizer: Optimizer, dtype: str, members: Sequence[tuple[Any, Any, Any, tuple[Any, ...]]]
    ) -> None:
        rule = optimizer.rules[len(members[0][3])]
        self.kernel = rule.tables[dtype]
        self.begin = rule.begin
        self.members = members
        self.storages = [array._storage for _, weight, _, states in members for array in (weight, *states)]
        self.count = len(members)
        table = [
            [*(array._flat.ctypes.data for array in (weight, grad, *states)), weight._flat.size]
            for _, weight, grad, states in members
        ]
        self.width = len(rule.columns)
        self.rows = np.zeros(self.count * self.width)
        self.by_row = [self.rows[i * self.width : (i + 1) * self.width] for i in range(self.count)]
        self.made = self.rows[self.width - 1 :: self.width]
        self.arguments = (np.array(table, np.int64).reshape(-1), self.rows, self.count)
        for (index, *_), row in zip(members, self.by_row, strict=True):
            row[-1] = optimizer._index_update_count.get(index, optimizer.begin_num_update)

    def fill(self, optimizer: Optimizer, lr: float) -> bool:
        """Write the rows, all but the step counts; whether decay or clipping came or went."""
        rest = optimizer.row()
        before = [(row[1] != 0, row[2] > 0) for row in self.by_row]
        for (index, *_), row in zip(self.members, self.by_row, strict=True):
            row[0] = lr * optimizer._multiplier(index, "lr_mult", optimizer.lr_mult)
            row[1] = optimizer._get_wd(index)
            row[2:-1] = rest
        return before != [(row[1] != 0, row[2] > 0) for row in self.by_row]


class Table:
    """One optimiser step over many parameters.

    Parameters
    ----------
    optimizer : Optimizer
        One with ``rules``.
    members : list of (index, weight, gradient, state)
        Their dtypes must be among the kernels'; addresses are read once, so make a new table when a storage changes.

    Notes
    -----
    The step counts are in the rows, where the kernels raise them; :meth:`counts` reads them.
    """

    def __init__(self, optimizer: Optimizer, members: Sequence[tuple[Any, Any, Any, Any]]) -> None:
        self.optimizer = optimizer
        kinds: dict[tuple[int, str], list[Any]] = {}
        for index, weight, grad, state in members:
            states = as_tuple(state)
            optimizer.check(index, weight._shape, weight._flat.dtype, states, grad)
            kinds.setdefault((len(states), weight._flat.dtype.name), []).append((index, weight, grad, states))
        self.groups = [_Group(optimizer, dtype, part) for (_, dtype), part in kinds.items()]
        self._epoch = -1
        self._scheduled = False
        self._lr = 0.0

    def counts(self) -> dict[Any, int]:
        """How often each parameter has been updated."""
        return {
            index: int(row[-1])
            for group in self.groups
            for (index, *_), row in zip(group.members, group.by_row, strict=True)
        }

    def prepare(self, skip: Collection[Any] = ()) -> None:
        """Bring the rows up to date with the rate and the attributes of optimiser and parameters."""
        optimizer = self.optimizer
        epoch = SettingEpoch.value
        if optimizer.lr_scheduler is None:
            if epoch == self._epoch:
                return
            lr = optimizer.lr
        else:
            # A step has one number, and so one rate: that of the parameter with the most updates.
            if skip:
                number = max([n + (index not in skip) for index, n in self.counts().items()])
            else:
                number = int(max([max(group.made.tolist()) for group in self.groups], default=0)) + 1
            lr = optimizer.lr_scheduler(max(optimizer._num_update, number))
            if lr == self._lr and epoch == self._epoch:
                return
        changed = [group.fill(optimizer, lr) for group in self.groups]
        scheduled = optimizer.lr_scheduler is not None
        if self._epoch >= 0 and (any(changed) or scheduled != self._scheduled):
            RebindEpoch.value += 1  # a captured step may have been simplified by what was 0, or asks no schedule
        self._epoch = epoch
        self._scheduled = scheduled
        self._lr = lr

    def run(self, rescale: float, skip: Collection[Any] = ()) -> None:
        """Update every weight, but for those of the indices in `skip`, from its gradient times `rescale`."""
        if door.mode is None and not skip:
            optimizer = self.optimizer
            if self._epoch != SettingEpoch.value or optimizer.lr_scheduler is not None:
                self.prepare()
            for group in self.groups:
                launch(group.kernel, *group.arguments, rescale)
                wrote(*group.storages)
            return
        # A schedule is asked at each step; without one there is something to do only when a setting has changed.
        scheduled = self.optimizer.lr_scheduler is not None
        door.host(partial(self.prepare, skip), before=True, epoch=None if scheduled else SettingEpoch)
        kernel = self.optimizer.kernel
        for group in self.groups:
            if group.begin is not None:
                rows = [row for (index, *_), row in zip(group.members, group.by_row, strict=True) if index not in skip]
                for each in rows if skip else [group.rows]:
                    launch(group.begin, each, each.size // group.width)
            for (index, weight, grad, states), row in zip(group.members, group.by_row, strict=True):
                if index not in skip:
                    flats = [state._flat for state in states]
                    launch(kernel(states), weight._flat, grad._flat, *flats, row, rescale)
                    wrote(weight._storage, *[state._storage for state in states])
