"""What metrics share: two running sums, a name, a configuration; lists of metrics; and how they are looked up."""

import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from numbagrad.nd.ndarray import NDArray

NAN = float("nan")


def to_numpy(values: Any) -> np.ndarray:
    """The values of an NDArray or of anything that NumPy takes."""
    return values.asnumpy() if isinstance(values, NDArray) else np.asarray(values)


def check_label_shapes(labels: Any, preds: Any, wrap: bool = False, shape: bool = False) -> tuple[Any, Any]:
    """`labels` and `preds`, checked.

    Parameters
    ----------
    labels, preds : NDArray or list of NDArray
    wrap : bool
        Make lists of single arrays.
    shape : bool
        Compare shapes, not lengths.

    Raises
    ------
    ValueError
        If they differ.
    """
    left, right = (labels.shape, preds.shape) if shape else (len(labels), len(preds))
    if left != right:
        raise ValueError(f"Shape of labels {left} does not match shape of predictions {right}")
    if wrap:
        labels = [labels] if isinstance(labels, NDArray) else labels
        preds = [preds] if isinstance(preds, NDArray) else preds
    return labels, preds


def pairs(labels: Any, preds: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Labels and predictions side by side, as NumPy arrays."""
    labels = [labels] if isinstance(labels, (NDArray, np.ndarray)) else labels
    preds = [preds] if isinstance(preds, (NDArray, np.ndarray)) else preds
    check_label_shapes(labels, preds)
    return [(to_numpy(label), to_numpy(pred)) for label, pred in zip(labels, preds, strict=True)]


class EvalMetric:
    """A figure that is the mean of something over all that was seen since the last reset.

    Parameters
    ----------
    name : str
    output_names, label_names : list of str, optional
        Which entries of the dicts :meth:`update_dict` takes; all by default.
    **kwargs
        More of the configuration.

    Notes
    -----
    A metric states :meth:`update`, which calls :meth:`add` with a sum and how many it is over. There are two of each:
    what :meth:`reset_local` clears and :meth:`get` tells, and what only :meth:`reset` clears and :meth:`get_global`
    tells. Values are read at once, so a step that updates a metric cannot be captured.
    """

    registry: ClassVar[dict[str, type["EvalMetric"]]] = {}

    sum_metric: float
    num_inst: float
    global_sum_metric: float
    global_num_inst: float

    def __init__(
        self,
        name: str,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.name = str(name)
        self.output_names = output_names
        self.label_names = label_names
        self._kwargs = kwargs
        self.reset()

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"

    def get_config(self) -> dict[str, Any]:
        """What :func:`create` makes the metric of again; JSON can hold it."""
        return {
            **self._kwargs,
            "metric": type(self).__name__,
            "name": self.name,
            "output_names": self.output_names,
            "label_names": self.label_names,
        }

    # ----------------------------------------------------------------------------------------------- updates

    def update(self, labels: Any, preds: Any) -> None:
        """Take account of a batch: lists of arrays, or single ones."""
        raise NotImplementedError

    def update_dict(self, label: dict[str, Any], pred: dict[str, Any]) -> None:
        """Take account of a batch given by names."""
        labels = list(label.values()) if self.label_names is None else [label[name] for name in self.label_names]
        preds = list(pred.values()) if self.output_names is None else [pred[name] for name in self.output_names]
        self.update(labels, preds)

    def add(self, total: float, count: float) -> None:
        """Add a sum over `count` things to both sums."""
        self.sum_metric += total
        self.num_inst += count
        self.global_sum_metric += total
        self.global_num_inst += count

    def reset(self) -> None:
        """Forget everything."""
        self.num_inst = self.sum_metric = 0
        self.global_num_inst = self.global_sum_metric = 0

    def reset_local(self) -> None:
        """Forget what :meth:`get` tells."""
        self.num_inst = self.sum_metric = 0

    # ----------------------------------------------------------------------------------------------- values

    def value(self, total: float, count: float) -> float:
        """The figure of a sum over `count` things; NaN of nothing."""
        return float(total / count) if count else NAN

    def get(self) -> tuple[Any, Any]:
        """The name and the value since the last reset of any kind."""
        return self.name, self.value(self.sum_metric, self.num_inst)

    def get_global(self) -> tuple[Any, Any]:
        """The name and the value since the last :meth:`reset`."""
        return self.name, self.value(self.global_sum_metric, self.global_num_inst)

    def get_name_value(self) -> list[tuple[str, Any]]:
        """:meth:`get` as a list of pairs."""
        return _paired(*self.get())

    def get_global_name_value(self) -> list[tuple[str, Any]]:
        """:meth:`get_global` as a list of pairs."""
        return _paired(*self.get_global())


def _paired(name: Any, value: Any) -> list[tuple[str, Any]]:
    if isinstance(name, list):
        return list(zip(name, value, strict=True))
    return [(name, value)]


Class = TypeVar("Class", bound=type[EvalMetric])


def register(klass: Class, *names: str) -> Class:
    """Let :func:`create` know a metric by its class name in lower case, and by other names; a decorator."""
    for name in (klass.__name__, *names):
        EvalMetric.registry[name.lower()] = klass
    return klass


def alias(*names: str) -> Callable[[Class], Class]:
    """The decorator that registers a metric under further names."""
    return lambda klass: register(klass, *names)


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """A metric.

    Parameters
    ----------
    metric : str, callable, EvalMetric, dict or list of these
        A registered name or a configuration in JSON; a function of label and prediction, for :class:`CustomMetric`; a
        metric, returned as it is; a configuration; a list, for :class:`CompositeEvalMetric`.
    *args, **kwargs
        For the metric.

    Raises
    ------
    AssertionError
        For a name that is not registered.

    Examples
    --------
    >>> import numbagrad as mx
    >>> accuracy = mx.metric.create("acc")
    >>> accuracy.update([mx.nd.array([0, 1])], [mx.nd.array([[0.9, 0.1], [0.8, 0.2]])])
    >>> accuracy.get()
    ('accuracy', 0.5)
    """
    if isinstance(metric, EvalMetric):
        return metric
    if isinstance(metric, list):
        composite = CompositeEvalMetric()
        for each in metric:
            composite.add(create(each, *args, **kwargs))
        return composite
    if isinstance(metric, str) and metric.lstrip().startswith("{"):
        metric = json.loads(metric)
    if isinstance(metric, dict):
        config = dict(metric)
        return create(config.pop("metric"), **config)
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    assert isinstance(metric, str), f"create: takes a name, a function or a metric, not {type(metric).__name__}"
    known = EvalMetric.registry
    assert metric.lower() in known, (
        f"create: no metric is registered as {metric!r}; there are {', '.join(sorted(known))}"
    )
    return known[metric.lower()](*args, **kwargs)


@alias("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics, updated with the same labels and predictions; :meth:`get` tells lists.

    Parameters
    ----------
    metrics : list, optional
        What :func:`create` takes.
    """

    def __init__(
        self,
        metrics: Sequence[Any] | None = None,
        name: str = "composite",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        self.metrics = [create(each) for each in metrics or ()]
        super().__init__(name, output_names, label_names)

    def add(self, metric: Any) -> None:  # type: ignore[override]
        """Add a metric, or what :func:`create` makes one of."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """The metric number `index`; ValueError if there is none."""
        try:
            return self.metrics[index]
        except IndexError:
            raise ValueError(f"Metric index {index} is out of range 0 and {len(self.metrics)}") from None

    def get_config(self) -> dict[str, Any]:
        """What :func:`create` makes the metric of again."""
        return {**super().get_config(), "metrics": [each.get_config() for each in self.metrics]}

    def update(self, labels: Any, preds: Any) -> None:
        """Update each metric."""
        for each in self.metrics:
            each.update(labels, preds)

    def update_dict(self, label: dict[str, Any], pred: dict[str, Any]) -> None:
        """Update each metric, by the names that it, or else this one, asks for."""
        if self.label_names is not None:
            label = {name: label[name] for name in self.label_names if name in label}
        if self.output_names is not None:
            pred = {name: pred[name] for name in self.output_names if name in pred}
        for each in self.metrics:
            each.update_dict(label, pred)

    def reset(self) -> None:
        """Reset each metric."""
        for each in self.metrics:
            each.reset()

    def reset_local(self) -> None:
        """Reset what each metric tells with :meth:`get`."""
        for each in self.metrics:
            each.reset_local()

    def get(self) -> tuple[list[str], list[Any]]:
        """The names and the values."""
        return _unpaired([pair for each in self.metrics for pair in each.get_name_value()])

    def get_global(self) -> tuple[list[str], list[Any]]:
        """The names and the values since the last :meth:`reset`."""
        return _unpaired([pair for each in self.metrics for pair in each.get_global_name_value()])


def _unpaired(found: list[tuple[str, Any]]) -> tuple[list[str], list[Any]]:
    return [name for name, _ in found], [value for _, value in found]


@register
class Loss(EvalMetric):
    """The mean of the predictions, which are losses; labels are ignored."""

    def __init__(
        self, name: str = "loss", output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None
    ) -> None:
        super().__init__(name, output_names, label_names)

    def update(self, labels: Any, preds: Any) -> None:
        """Take account of an array of losses or a list of them."""
        for pred in [preds] if isinstance(preds, (NDArray, np.ndarray)) else preds:
            values = to_numpy(pred)
            self.add(float(values.sum()), values.size)


class CustomMetric(EvalMetric):
    """A metric of a function.

    Parameters
    ----------
    feval : callable
        Of a label and a prediction as NumPy arrays; returns a value, or a sum and how many it is over.
    name : str, optional
        ``custom(...)`` with the function's name by default.
    allow_extra_outputs : bool
        Predictions without a label are ignored.
    """

    def __init__(
        self,
        feval: Callable[[np.ndarray, np.ndarray], Any],
        name: str | None = None,
        allow_extra_outputs: bool = False,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        if name is None:
            name = getattr(feval, "__name__", type(feval).__name__)
            if "<" in name:
                name = f"custom({name})"
        super().__init__(name, output_names, label_names, feval=feval, allow_extra_outputs=allow_extra_outputs)
        self._feval = feval
        self._allow_extra_outputs = allow_extra_outputs

    def update(self, labels: Any, preds: Any) -> None:
        """Take account of a batch."""
        if self._allow_extra_outputs and not isinstance(preds, NDArray) and not isinstance(labels, NDArray):
            preds = preds[: len(labels)]
        for label, pred in pairs(labels, preds):
            result = self._feval(label, pred)
            if isinstance(result, tuple):
                self.add(*result)
            else:
                self.add(result, 1)

    def get_config(self) -> dict[str, Any]:
        """NotImplementedError: a function has no JSON."""
        raise NotImplementedError("a metric of a function cannot be serialized")


EvalMetric.registry["custommetric"] = CustomMetric


def np_metric(
    numpy_feval: Callable[[np.ndarray, np.ndarray], Any], name: str | None = None, allow_extra_outputs: bool = False
) -> CustomMetric:
    """A :class:`CustomMetric` of a function of NumPy arrays; ``metric.np``."""
    return CustomMetric(numpy_feval, name or numpy_feval.__name__, allow_extra_outputs)
