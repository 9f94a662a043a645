"""Prefixes of blocks and of their parameters."""

import threading
from typing import Any

from numbagrad import name as names
from numbagrad.gluon.parameter_dict import ParameterDict


class _Current(threading.local):
    value: "BlockScope | None" = None


class BlockScope:
    """``with block.name_scope():`` gives the blocks made inside the block's prefix, and counters of its own."""

    _current = _Current()

    def __init__(self, block: Any) -> None:
        self._block = block
        self._counter: dict[str, int] = {}
        self._outer: list[BlockScope | None] = []
        self._managers: list[names.Prefix] = []

    @staticmethod
    def create(prefix: str | None, params: ParameterDict | None, hint: str) -> tuple[str, ParameterDict]:
        """Prefix and parameter dict of a new block, made in the current scope."""
        scope = BlockScope._current.value
        if scope is None:
            if prefix is None:
                prefix = names.NameManager.current.get(None, hint) + "_"
            return prefix, ParameterDict(prefix) if params is None else ParameterDict(params.prefix, params)
        if prefix is None:
            count = scope._counter.get(hint, 0)
            scope._counter[hint] = count + 1
            prefix = f"{hint}{count}_"
        if params is None:
            parent = scope._block.params
            params = ParameterDict(parent.prefix + prefix, parent._shared)
        else:
            params = ParameterDict(params.prefix, params)
        return scope._block.prefix + prefix, params

    def __enter__(self) -> "BlockScope":
        if self._block._empty_prefix:
            return self
        self._outer.append(BlockScope._current.value)
        BlockScope._current.value = self
        manager = names.Prefix(self._block.prefix)
        manager.__enter__()
        self._managers.append(manager)
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._block._empty_prefix:
            return
        self._managers.pop().__exit__()
        BlockScope._current.value = self._outer.pop()
