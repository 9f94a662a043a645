"""Distances between predictions and labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from numbagrad.metric.base import EvalMetric, alias, pairs, register


def _column(values: np.ndarray) -> np.ndarray:
    return values.reshape(-1, 1) if values.ndim == 1 else values


class _Distance(EvalMetric):
    """The mean over batches of a distance; vectors are columns."""

    title = ""

    def __init__(
        self,
        name: str | None = None,
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(self.title if name is None else name, output_names, label_names)

    def distance(self, difference: np.ndarray) -> Any:
        """The distance of one batch."""
        raise NotImplementedError

    def update(self, labels: Any, preds: Any) -> None:
        """Take account of a batch."""
        for label, pred in pairs(labels, preds):
            label, pred = _column(label), _column(pred)
            if label.shape != pred.shape:
                raise ValueError(f"{self.name}: labels of shape {label.shape} but predictions of shape {pred.shape}")
            self.add(float(self.distance(label - pred)), 1)


@register
class MAE(_Distance):
    """The mean over batches of the mean absolute error."""

    title = "mae"

    def distance(self, difference: np.ndarray) -> Any:
        """The mean absolute error."""
        return np.abs(difference).mean()


@register
class MSE(_Distance):
    """The mean over batches of the mean squared error."""

    title = "mse"

    def distance(self, difference: np.ndarray) -> Any:
        """The mean squared error."""
        return (difference**2).mean()


@register
class RMSE(_Distance):
    """The mean over batches of the root of the mean squared error."""

    title = "rmse"

    def distance(self, difference: np.ndarray) -> Any:
        """The root of the mean squared error."""
        return np.sqrt((difference**2).mean())


class _Moments:
    """Count, means and central second moments of pairs, joined batch by batch (Chan, Golub and LeVeque 1983)."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = np.zeros(2)
        self.products = np.zeros((2, 2))

    def join(self, values: np.ndarray) -> None:
        """Add pairs, of shape (2, n)."""
        n = values.shape[1]
        if not n:
            return
        mean = values.mean(axis=1)
        centered = values - mean[:, None]
        apart = mean - self.mean
        total = self.count + n
        self.products += centered @ centered.T + np.outer(apart, apart) * (self.count * n / total)
        self.mean += apart * (n / total)
        self.count = total

    def correlation(self) -> float:
        """Pearson's r; NaN where one of the two is constant."""
        scale = np.sqrt(self.products[0, 0] * self.products[1, 1])
        return float(self.products[0, 1] / scale) if scale > 0 else float("nan")


@alias("pearsonr")
class PearsonCorrelation(EvalMetric):
    """Pearson's correlation of predictions and labels.

    Parameters
    ----------
    average : {"macro", "micro"}
        The mean over batches of their correlations, or the correlation over everything.
    """

    def __init__(
        self,
        name: str = "pearsonr",
        output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
        average: str = "macro",
    ) -> None:
        if average not in ("macro", "micro"):
            raise ValueError(f"PearsonCorrelation: average is macro or micro, not {average!r}")
        self.average = average
        super().__init__(name, output_names, label_names, average=average)

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._local, self._global = _Moments(), _Moments()

    def reset_local(self) -> None:
        """Forget what :meth:`get` tells."""
        super().reset_local()
        self._local = _Moments()

    def update(self, labels: Any, preds: Any) -> None:
        """Take account of a batch."""
        for label, pred in pairs(labels, preds):
            if label.shape != pred.shape:
                raise ValueError(f"PearsonCorrelation: labels of shape {label.shape}, predictions of {pred.shape}")
            values = np.array([pred.ravel(), label.ravel()], np.float64)
            if self.average == "macro":
                batch = _Moments()
                batch.join(values)
                self.add(batch.correlation(), 1)
                continue
            for moments in (self._local, self._global):
                moments.join(values)
            self.num_inst, self.global_num_inst = self._local.count, self._global.count
            self.sum_metric = self._local.correlation() * self.num_inst
            self.global_sum_metric = self._global.correlation() * self.global_num_inst
