"""The trainer: applies an optimiser to the parameters of a network."""

import os
import pickle
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numbagrad import launch as door
from numbagrad import optimizer as optimizers
from numbagrad.array import wrote
from numbagrad.dispatch import check_writable
from numbagrad.errors import CaptureError, MXNetError
from numbagrad.gluon.parameter import DeferredInitializationError, Parameter
from numbagrad.kernels.strided import add_into, copy, fill
from numbagrad.launch import launch
from numbagrad.optimizer.table import Table
from numbagrad.optimizer.updater import Updater
from numbagrad.tape import RebindEpoch, state


class Trainer:
    """Updates parameters from their gradients.

    Parameters
    ----------
    params : ParameterDict, dict or list of Parameter
        Dicts are taken in the order of their names.
    optimizer : str or Optimizer
        A registered name (``"sgd"``, ``"adam"``) or an instance.
    optimizer_params : dict, optional
        Keywords for the named optimiser.
    kvstore, compression_params, update_on_kvstore
        Accepted for MXNet's sake. Replicas of a parameter on several CPU labels are always summed and kept equal.

    Raises
    ------
    ValueError
        If `params` is no dict or list of Parameters.

    Examples
    --------
    >>> from numbagrad import autograd, gluon, nd
    >>> net = gluon.nn.Dense(1, in_units=2)
    >>> net.initialize()
    >>> trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    >>> with autograd.record():
    ...     loss = net(nd.ones((4, 2)))
    >>> loss.backward()
    >>> before = net.bias.data().asscalar()
    >>> trainer.step(4)
    >>> round(float(net.bias.data().asscalar() - before), 4)
    -0.1
    """

    def __init__(
        self,
        params: Any,
        optimizer: str | optimizers.Optimizer,
        optimizer_params: dict[str, Any] | None = None,
        kvstore: Any = "device",
        compression_params: Any = None,
        update_on_kvstore: bool | None = None,
    ) -> None:
        if isinstance(params, Mapping) or hasattr(params, "items"):
            params = [params[name] for name in sorted(params.keys())]
        if not isinstance(params, (list, tuple)):
            raise ValueError(f"Trainer: params must be a dict or list of Parameters, not {type(params).__name__}")
        for param in params:
            if not isinstance(param, Parameter):
                raise ValueError(f"Trainer: params must hold Parameters, not {type(param).__name__}")
        self._params: list[Parameter] = list(params)
        self._param2idx = {param.name: i for i, param in enumerate(self._params)}
        self._init_optimizer(optimizer, dict(optimizer_params or {}))
        self._scale = float(self._optimizer.rescale_grad)
        self._kvstore = None
        self._table: Table | None = None
        self._table_epoch = -1
        self._leaves: list[Any] = []
        self._contexts: list[Any] = []

    def _init_optimizer(self, optimizer: Any, optimizer_params: dict[str, Any]) -> None:
        param_dict = dict(enumerate(self._params))
        if isinstance(optimizer, optimizers.Optimizer):
            assert not optimizer_params, "Trainer: optimizer_params must be empty when optimizer is an instance"
            self._optimizer = optimizer
            self._optimizer.param_dict = param_dict
        else:
            self._optimizer = optimizers.create(optimizer, param_dict=param_dict, **optimizer_params)
        self._updaters = [Updater(self._optimizer)]

    # ------------------------------------------------------------------------------------------ properties

    @property
    def optimizer(self) -> optimizers.Optimizer:
        """The optimiser."""
        return self._optimizer

    @property
    def learning_rate(self) -> float:
        """The learning rate now."""
        return self._optimizer.learning_rate

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate.

        Raises
        ------
        UserWarning
            If a scheduler decides it.
        """
        self._optimizer.set_learning_rate(lr)

    # ------------------------------------------------------------------------------------------------ steps

    def step(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """Update the parameters from gradients that are sums over `batch_size` examples.

        Parameters
        ----------
        batch_size : int
            Gradients are divided by it.
        ignore_stale_grad : bool
            Skip parameters that no backward has reached since their last update, instead of raising.

        Raises
        ------
        UserWarning
            For such a parameter; nothing has been updated then.
        ZeroDivisionError
            For a batch size of 0.
        """
        scale = self._scale / batch_size
        if self._optimizer.rescale_grad != scale:
            self._optimizer.rescale_grad = scale
        if self._table is None or self._table_epoch != RebindEpoch.value:
            with door.aside():
                self._rebuild()
        table = self._table
        if table is None:
            self._reduce()
            self._update_each(ignore_stale_grad)
            return
        if state.recording:
            self._refuse_recording()
        for leaf in self._leaves:
            if leaf.flag[0] != 1:
                self._update_each(ignore_stale_grad)
                return
        table.run(scale)
        if door.mode is None:
            for leaf in self._leaves:
                leaf.flag[0] = 0
        else:
            for leaf in self._leaves:
                launch(fill, 0, leaf.flag, 1)

    def update(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """:meth:`step` without summing the replicas' gradients, which :meth:`allreduce_grads` has done."""
        self._optimizer.rescale_grad = self._scale / batch_size
        self._update_each(ignore_stale_grad)

    def allreduce_grads(self) -> None:
        """Sum the gradients of a parameter's replicas into each of them."""
        self._reduce()

    def _refuse_recording(self) -> None:
        for param in self._params:
            if param.grad_req != "null":
                check_writable(param.list_data()[0], "Trainer.step")

    def _trained(self) -> list[tuple[int, Parameter]]:
        trained = []
        for i, param in enumerate(self._params):
            if param.grad_req == "null":
                continue
            param.list_data()  # raises for a parameter that is not initialised
            trained.append((i, param))
        return trained

    def _rebuild(self) -> None:
        """Look up storages and states again; without a table where the optimiser or a parameter does not fit one."""
        self._drop_table()
        trained = self._trained()
        kernels = self._optimizer.table_kernels
        if type(self._optimizer).update is not optimizers.Optimizer.update or any(
            len(param.list_data()) > 1 or param.list_data()[0]._flat.dtype.name not in kernels for _, param in trained
        ):
            return
        states = self._updaters[0].states
        members = []
        self._leaves = []
        for i, param in trained:
            data = param.list_data()[0]
            if i not in states:
                states[i] = self._optimizer.create_state_multi_precision(i, data)
            members.append((i, data, data._node.gradient, states[i]))
            self._leaves.append(data._node)
        self._optimizer._table = self._table = Table(self._optimizer, members)
        self._table_epoch = RebindEpoch.value

    def _drop_table(self) -> None:
        """Take the step counts back from the table, and forget it."""
        if self._table is not None:
            self._optimizer._counts = dict(self._optimizer._index_update_count)
            self._optimizer._table = self._table = None

    def _reduce(self) -> None:
        for _, param in self._trained():
            grads = param.list_grad()
            if len(grads) > 1:
                first = grads[0]
                for other in grads[1:]:
                    launch(add_into, other._flat, first._flat, first._flat.size)
                for other in grads[1:]:
                    launch(copy, first._flat, other._flat, first._flat.size)
                for each in grads:
                    wrote(each._storage)

    def _update_each(self, ignore_stale_grad: bool) -> None:
        """Update parameter by parameter."""
        if door.mode is not None:
            raise CaptureError(
                "Trainer.step: this update cannot be captured: the optimizer has no kernel for a table, a gradient is "
                "stale, or a parameter has replicas or another dtype than float32 and float64"
            )
        if self._table is not None:
            self._drop_table()
            RebindEpoch.value += 1
        trained = self._trained()
        stale = [param for _, param in trained if not all(data._fresh_grad for data in param.list_data())]
        if stale and not ignore_stale_grad:
            raise UserWarning(
                f"the gradient of parameter {stale[0].name} is stale: no backward has reached it since its last "
                "update. Call step(ignore_stale_grad=True) to update the others only"
            )
        if state.recording:
            self._refuse_recording()
        skip = set(map(id, stale))
        used = [(i, param) for i, param in trained if id(param) not in skip]
        while len(self._updaters) < max((len(param.list_data()) for _, param in used), default=1):
            self._updaters.append(Updater(self._optimizer))
        for i, param in used:
            counts = self._optimizer._index_update_count
            before = counts.get(i)
            for k, (data, grad) in enumerate(zip(param.list_data(), param.list_grad(), strict=True)):
                if k and before is not None:
                    counts[i] = before  # a replica is the same update, not another one
                elif k:
                    counts.pop(i, None)
                self._updaters[k](i, grad, data)
        for _, param in used:
            for data in param.list_data():
                data._fresh_grad = 0

    # ----------------------------------------------------------------------------------------------- states

    def save_states(self, fname: str) -> None:
        """Write the optimiser and its states to a file, whole or not at all."""
        self._drop_table()
        for i, param in self._trained():
            for k, data in enumerate(param.list_data()):
                if k < len(self._updaters) and i not in self._updaters[k].states:
                    self._updaters[k].states[i] = self._optimizer.create_state_multi_precision(i, data)
        optimizer = self._optimizer
        param_dict, optimizer.param_dict = optimizer.param_dict, {}
        try:
            content = pickle.dumps(("numbagrad trainer states", [u.states for u in self._updaters], optimizer))
        finally:
            optimizer.param_dict = param_dict
        target = Path(fname)
        handle, aside = tempfile.mkstemp(dir=target.absolute().parent, prefix=".writing-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(aside, target)
        except BaseException:
            Path(aside).unlink(missing_ok=True)
            raise

    def load_states(self, fname: str) -> None:
        """Take over the optimiser and the states of a file written by :meth:`save_states`.

        Raises
        ------
        MXNetError
            If the file is missing or is none; the trainer stays as it was.

        Notes
        -----
        The file is unpickled: load only what you trust.
        """
        try:
            tag, states, optimizer = pickle.loads(Path(fname).read_bytes())
            if tag != "numbagrad trainer states":
                raise ValueError("another kind of file")
        except Exception as error:
            raise MXNetError(f"load_states: {fname} holds no trainer states: {error}") from error
        optimizer.param_dict = dict(enumerate(self._params))
        self._optimizer = optimizer
        self._updaters = []
        for each in states:
            updater = Updater(optimizer)
            updater.states = each
            self._updaters.append(updater)
        self._table = None
        RebindEpoch.value += 1


__all__ = ["DeferredInitializationError", "Trainer"]
