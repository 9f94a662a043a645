"""All parameters updated by one kernel call, through tables of addresses."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from numbagrad import launch as door
from numbagrad.launch import launch
from numbagrad.optimizer.base import Optimizer, as_tuple


class _Group:
    """The parameters of one dtype: their addresses, sizes, and the rows of numbers that their updates read."""

    def __init__(self, optimizer: Optimizer, dtype: str, members: Sequence[tuple[Any, Any, Any, tuple[Any, ...]]]) -> None:
        self.kernel = optimizer.table_kernels[dtype]
        self.members = members
        self.storages = [array._storage for _, weight, _, states in members for array in (weight, *states)]
        self.count = len(members)

        def addresses(arrays: Sequence[Any]) -> np.ndarray:
            return np.array([0 if array is None else array._flat.ctypes.data for array in arrays], np.int64)

        columns = [[weight for _, weight, _, _ in members], [grad for _, _, grad, _ in members]]
        slots = optimizer.state_count
        for k in range(slots):
            columns.append([states[k] if k < len(states) else None for _, _, _, states in members])
        self.tables = [addresses(column) for column in columns]
        self.tables.append(np.array([weight._flat.size for _, weight, _, _ in members], np.int64))
        self.rows: np.ndarray | None = None
        self.width = 0

    def fill(self, optimizer: Optimizer, lr: float, wd: float) -> None:
        """Write the rows."""
        rows = []
        for index, *_ in self.members:
            lr_mult = optimizer._multiplier(index, "lr_mult", optimizer.lr_mult)
            wd_mult = optimizer._multiplier(index, "wd_mult", optimizer.wd_mult)
            rows.append(optimizer.row(index, lr * lr_mult, wd * wd_mult))
        if self.rows is None:
            self.width = len(rows[0])
            self.rows = np.empty(self.count * self.width)
        self.rows[:] = np.array(rows).reshape(-1)


class Table:
    """One optimiser step over many parameters.

    Parameters
    ----------
    optimizer : Optimizer
        One with ``table_kernels``.
    members : list of (index, weight, gradient, state)
        Their dtypes must be among the kernels'; addresses are read once, so make a new table when a storage changes.
    """

    def __init__(self, optimizer: Optimizer, members: Sequence[tuple[Any, Any, Any, Any]]) -> None:
        self.optimizer = optimizer
        self.indices = [index for index, *_ in members]
        by_dtype: dict[str, list[Any]] = {}
        for index, weight, grad, state in members:
            by_dtype.setdefault(weight._flat.dtype.name, []).append((index, weight, grad, as_tuple(state)))
        self.groups = [_Group(optimizer, dtype, part) for dtype, part in by_dtype.items()]
        self._params = [optimizer.param_dict[index] for index in self.indices if index in optimizer.param_dict]
        self._key: Any = None
        self._counted = optimizer.counted

    def refresh(self) -> None:
        """Count the update, and bring the rows up to date with rates, decay and step counts."""
        optimizer = self.optimizer
        counts = optimizer._index_update_count
        begin = optimizer.begin_num_update
        last = begin
        for index in self.indices:
            count = counts.get(index, begin) + 1
            counts[index] = count
            if count > last:
                last = count
        if last > optimizer.num_update:
            optimizer.num_update = last
        lr = optimizer.lr if optimizer.lr_scheduler is None else optimizer.lr_scheduler(optimizer.num_update)
        wd = optimizer.wd
        key = (
            lr,
            wd,
            optimizer.constants(),
            [p.lr_mult for p in self._params],
            [p.wd_mult for p in self._params],
        )
        if key != self._key:
            self._key = key
            for group in self.groups:
                group.fill(optimizer, lr, wd)
        elif self._counted:
            for group in self.groups:
                rows = group.rows
                at = optimizer.columns.index("t")
                for index, *_ in group.members:
                    rows[at] = counts[index]  # type: ignore[index]
                    at += group.width

    def run(self) -> None:
        """Update every weight."""
        if door.mode is None:
            self.refresh()
            for group in self.groups:
                launch(group.kernel, *group.tables, group.rows, group.count)
                for storage in group.storages:
                    storage.version += 1
            return
        if self._key is None:
            for group in self.groups:
                group.rows = np.empty(group.count * len(self.optimizer.columns))
                group.width = len(self.optimizer.columns)
        door.host(self.refresh)
        for group in self.groups:
            for i, (_, weight, grad, states) in enumerate(group.members):
                row = group.rows[i * group.width : (i + 1) * group.width]  # type: ignore[index]
                launch(
                    self.optimizer.kernel(states), weight._flat, grad._flat, *[state._flat for state in states], row
                )
                for array in (weight, *states):
                    array._storage.version += 1
