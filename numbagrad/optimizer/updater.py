"""An optimiser together with the states it keeps."""

import pickle
from typing import Any

from numbagrad.optimizer.base import Optimizer


class Updater:
    """Callable ``(index, grad, weight)``: updates the weight and keeps its state under the index."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.states: dict[Any, Any] = {}

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        """Update `weight` from `grad`, with the state kept for `index`."""
        if isinstance(index, (list, tuple)):
            for each in zip(index, grad, weight, strict=True):
                self(*each)
            return
        if index not in self.states:
            self.states[index] = self.optimizer.create_state_multi_precision(index, weight)
        self.optimizer.update_multi_precision(index, weight, grad, self.states[index])

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """The states, and with `dump_optimizer` the optimiser, pickled."""
        return pickle.dumps((self.states, self.optimizer) if dump_optimizer else self.states)

    def set_states(self, states: bytes) -> None:
        """Take over what :meth:`get_states` gave."""
        found = pickle.loads(states)
        if isinstance(found, tuple):
            self.states, self.optimizer = found
        else:
            self.states = found


def get_updater(optimizer: Optimizer) -> Updater:
    """An :class:`Updater` for `optimizer`."""
    return Updater(optimizer)
