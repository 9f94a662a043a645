"""The trainer: applies an optimiser to the parameters of a network."""

import pickle
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from numbagrad import launch as door
from numbagrad import optimizer as optimizers
from numbagrad.array import wrote
from numbagrad.dispatch import check_writable
from numbagrad.errors import CaptureError, MXNetError
from numbagrad.files import write_whole
from numbagrad.gluon.parameter import DeferredInitializationError, Parameter, PlacementEpoch, is_known
from numbagrad.kernels.strided import add_into, copy, fill
from numbagrad.launch import launch
from numbagrad.nd.ndarray import NDArray
from numbagrad.ops.dtypes import as_dtype
from numbagrad.optimizer.table import Table
from numbagrad.optimizer.updater import Updater
from numbagrad.tape import RebindEpoch, state, watch

_TAG = "numbagrad trainer states"


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
        If `params` is no dict or list of Parameters, or the optimiser is not known.
    RuntimeError
        For a parameter on which ``initialize`` was not called.
    AssertionError
        If the parameters are not all on the same labels.

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
        self._params: list[Parameter] = list(dict.fromkeys(params))
        labels = [param.list_ctx() for param in self._params]
        assert all(each == labels[0] for each in labels), (
            f"Trainer: all parameters must be initialized on the same contexts, not {labels}"
        )
        self._param2idx = {param.name: i for i, param in enumerate(self._params)}
        self._init_optimizer(optimizer, dict(optimizer_params or {}))
        self._scale = float(self._optimizer.rescale_grad)
        self._kvstore = None
        self._update_on_kvstore = False  # what MXNet programs ask before they look for the states
        self._table: Table | None = None
        self._epoch = -1
        self._trained: list[tuple[int, Parameter, list[NDArray]]] = []
        self._leaves: list[Any] = []
        self._seen: list[Any] = []

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
        self._update(batch_size, ignore_stale_grad, True)

    def update(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """:meth:`step` without summing the replicas' gradients, which :meth:`allreduce_grads` has done."""
        self._update(batch_size, ignore_stale_grad, False)

    def allreduce_grads(self) -> None:
        """Sum the gradients of a parameter's replicas into each of them."""
        self._look_up()
        self._reduce(())

    def _update(self, batch_size: int, ignore_stale_grad: bool, reduce: bool) -> None:
        try:
            scale = self._scale / float(batch_size)
        except (TypeError, ValueError):
            raise TypeError(f"Trainer.step: batch_size must be a number, not {batch_size!r}") from None
        optimizer = self._optimizer
        if self._epoch != RebindEpoch.value + PlacementEpoch.value or optimizer._table is not self._table:
            self._look_up()
        if state.recording:
            for _, _, replicas in self._trained:
                for data in replicas:
                    check_writable(data, "Trainer.step")
        skip: tuple[int, ...] = ()
        leaves = self._leaves
        for leaf in leaves:
            if leaf.flag[0] != 1:
                skip = self._stale(ignore_stale_grad)
                leaves = [each._node for i, _, replicas in self._trained if i not in skip for each in replicas]
                break
        if optimizer.rescale_grad != scale:
            optimizer.rescale_grad = scale
        if self._table is not None:
            self._table.run(scale, skip)
        else:
            self._update_each(skip, reduce)
        if door.mode is None:
            for leaf in leaves:
                leaf.flag[0] = 0
        else:
            for leaf in leaves:
                launch(fill, 0, leaf.flag_memory(), 1)

    def _stale(self, ignore: bool) -> tuple[int, ...]:
        """The indices of the parameters without a fresh gradient, to skip; raises unless they may be ignored."""
        stale = [(i, param) for i, param, replicas in self._trained if not all(data._fresh_grad for data in replicas)]
        if not ignore:
            raise UserWarning(
                f"the gradient of parameter {stale[0][1].name} is stale: no backward has reached it since its last "
                "update. Call step(batch_size, ignore_stale_grad=True) to update the others only"
            )
        if door.mode is not None:
            raise CaptureError("Trainer.step: a step with stale gradients cannot be captured: it depends on which are")
        return tuple(i for i, _ in stale)

    def _look_up(self) -> None:
        """Find parameters, storages and states again; no table where the optimiser or a parameter does not fit one."""
        optimizer = self._optimizer
        trained = [(i, param, param.list_data()) for i, param in enumerate(self._params) if param.grad_req != "null"]
        every = [data for _, _, replicas in trained for data in replicas]
        seen = [each for data in every for each in (data, data._flat, data._node, data._node.gradient._flat)]
        if self._epoch >= 0 and optimizer._table is self._table and [*map(id, seen)] == [*map(id, self._seen)]:
            self._epoch = RebindEpoch.value + PlacementEpoch.value  # it was about others
            return
        if optimizer._table is not None:
            RebindEpoch.value += 1  # captured steps, of this trainer or another, have the table
        optimizer._release_table()
        self._table = None
        self._epoch = -1
        self._trained = trained
        self._seen = seen
        self._leaves = [data._node for data in every]
        for data in every:
            watch(data)
        if self._fits_table():
            states = self._updaters[0].states
            members = []
            with door.aside():
                for i, _, (data,) in self._trained:
                    if i not in states:
                        states[i] = optimizer.create_state_multi_precision(i, data)
                    members.append((i, data, data._node.gradient, states[i]))
            optimizer._table = self._table = Table(optimizer, members)
        self._epoch = RebindEpoch.value + PlacementEpoch.value

    def _fits_table(self) -> bool:
        rule, shared = type(self._optimizer), optimizers.Optimizer
        return (
            rule.update is shared.update
            and rule.update_multi_precision is shared.update_multi_precision
            and all(
                len(replicas) == 1
                and any(replicas[0]._flat.dtype.name in kernels.tables for kernels in rule.rules.values())
                for _, _, replicas in self._trained
            )
        )

    def _reduce(self, skip: Collection[int]) -> None:
        """Sum the gradients of replicas into each of them."""
        for i, _, replicas in self._trained:
            if len(replicas) > 1 and i not in skip:
                first, *others = [data._node.gradient for data in replicas]
                for other in others:
                    launch(add_into, other._flat, first._flat, first._flat.size)
                for other in others:
                    launch(copy, first._flat, other._flat, first._flat.size)
                wrote(first._storage, *[other._storage for other in others])

    def _update_each(self, skip: Collection[int], reduce: bool) -> None:
        """Update parameter by parameter."""
        if door.mode is not None:
            raise CaptureError(
                "Trainer.step: this update cannot be captured: the optimizer has no kernel for a table, or a parameter "
                "has replicas or another dtype than float32 and float64"
            )
        if reduce:
            self._reduce(skip)
        optimizer = self._optimizer
        counts = optimizer._counts
        used = [(i, param) for i, param, _ in self._trained if i not in skip]
        made = [counts.get(i, optimizer.begin_num_update) for i, _ in used]
        # A step has one number, and so one rate, as in a table.
        optimizer._num_update = max([optimizer._num_update, *[n + 1 for n in made]])
        while len(self._updaters) < max([len(param.list_ctx()) for _, param in used], default=1):
            self._updaters.append(Updater(optimizer))
        for (i, param), n in zip(used, made, strict=True):
            for updater, grad, data in zip(self._updaters, param.list_grad(), param.list_data()):
                counts[i] = n  # a replica is the same update, not another one
                updater(i, grad, data)

    # ----------------------------------------------------------------------------------------------- states

    def save_states(self, fname: str) -> None:
        """Write the optimiser and its states to a file, whole or not at all."""
        content = pickle.dumps((_TAG, [updater.states for updater in self._updaters], self._optimizer))
        write_whole(fname, [content])

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
        content = b""
        try:
            content = Path(fname).read_bytes()
            tag, states, optimizer = pickle.loads(content)
            if tag != _TAG or not isinstance(optimizer, optimizers.Optimizer):
                raise ValueError("another kind of file")
            self._check_states(states, optimizer)
        except Exception as error:
            raise MXNetError(f"load_states: {fname} holds no states for this trainer: {error}") from error
        optimizer.param_dict = dict(enumerate(self._params))
        for _ in range(len(states), max([len(param.list_ctx()) for param in self._params], default=1)):
            states.append(pickle.loads(content)[1][0])  # more replicas than it was saved with
        self._optimizer = optimizer
        self._updaters = []
        for each in states:
            updater = Updater(optimizer)
            updater.states = each
            self._updaters.append(updater)
        self._table = None
        self._epoch = -1
        RebindEpoch.value += 1

    def _check_states(self, states: Sequence[dict[int, Any]], optimizer: optimizers.Optimizer) -> None:
        """Raise where states do not belong to parameters such as these."""
        for i, found in [item for each in states for item in each.items()]:
            if i >= len(self._params):
                raise ValueError(f"it is about more than {len(self._params)} parameters")
            param = self._params[i]
            if type(optimizer).update is optimizers.Optimizer.update and is_known(param.shape):
                optimizer.check_multi_precision(i, param.shape, as_dtype(param.dtype), found)


__all__ = ["DeferredInitializationError", "Trainer"]
