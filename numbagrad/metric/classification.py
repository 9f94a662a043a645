"""How often, and how surely, predictions name the right class."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from numbagrad.metric.base import EvalMetric, alias, pairs, register

Names = Sequence[str] | None


@alias("acc")
class Accuracy(EvalMetric):
    """The share of right classes.

    Parameters
    ----------
    axis : int
        The axis of classes of predictions that have not the shape of the labels; the class of the largest counts.
    """

    def __init__(
        self, axis: int = 1, name: str = "accuracy", output_names: Names = None, label_names: Names = None
    ) -> None:
        super().__init__(name, output_names, label_names, axis=axis)
        self.axis = axis

    def update(self, labels: Any, preds: Any) -> None:
        """Take account of a batch."""
        for label, pred in pairs(labels, preds):
            if pred.shape != label.shape:
                pred = pred.argmax(axis=self.axis)
            found, right = pred.astype(np.int32).ravel(), label.astype(np.int32).ravel()
            if found.size != right.size:
                raise ValueError(f"Accuracy: {right.size} labels but {found.size} predictions")
            self.add(int((found == right).sum()), right.size)


@alias("top_k_accuracy", "top_k_acc")
class TopKAccuracy(EvalMetric):
    """The share of labels among the `top_k` largest predictions, of shape (batch, classes)."""

    def __init__(
        self, top_k: int = 1, name: str = "top_k_accuracy", output_names: Names = None, label_names: Names = None
    ) -> None:
        assert top_k > 1, "TopKAccuracy: use Accuracy for a top_k of 1 or less"
        self._title = name
        super().__init__(f"{name}_{top_k}", output_names, label_names, top_k=top_k)
        self.top_k = top_k

    def get_config(self) -> dict[str, Any]:
        """What ``create`` makes the metric of again."""
        return {**super().get_config(), "name": self._title}

    def update(self, labels: Any, preds: Any) -> None:
        """Take account of a batch."""
        for label, pred in pairs(labels, preds):
            assert pred.ndim <= 2, f"TopKAccuracy: predictions have one or two axes, not the shape {pred.shape}"
            right = label.astype(np.int32).ravel()
            if len(pred) != right.size:
                raise ValueError(f"TopKAccuracy: {right.size} labels but {len(pred)} predictions")
            if pred.ndim == 1:
                hits = int((pred.astype(np.int32) == right).sum())
            else:
                k = min(self.top_k, pred.shape[1])
                best = np.argpartition(pred.astype(np.float32), pred.shape[1] - k, axis=1)[:, pred.shape[1] - k :]
                hits = int((best == right[:, None]).sum())
            self.add(hits, right.size)


# ------------------------------------------------------------------------------------------------- two classes


class _Counts:
    """How often each of two classes was taken for each: class 1 is positive."""

    def __init__(self) -> None:
        self.true_positives = self.false_positives = self.false_negatives = self.true_negatives = 0

    @property
    def total(self) -> int:
        """How many there are."""
        return self.true_positives + self.false_positives + self.false_negatives + self.true_negatives

    def count(self, name: str, label: np.ndarray, pred: np.ndarray) -> None:
        """Count a batch: labels, and predictions of shape (batch, 2)."""
        found, right = pred.argmax(axis=1), label.astype(np.int32).ravel()
        if found.size != right.size:
            raise ValueError(f"{name}: {right.size} labels but {found.size} predictions")
        if len(np.unique(right)) > 2:
            raise ValueError(f"{name}: only binary classification is supported")
        said, true = found == 1, right == 1
        self.true_positives += int((said & true).sum())
        self.false_positives += int((said & ~true).sum())
        self.false_negatives += int((~said & true).sum())
        self.true_negatives += int((~said & ~true).sum())

    def join(self, other: "_Counts") -> None:
        """Add the counts of another."""
        self.true_positives += other.true_positives
        self.false_positives += other.false_positives
        self.false_negatives += other.false_negatives
        self.true_negatives += other.true_negatives


class _Binary(EvalMetric):
    """A score of the counts of two classes.

    Parameters
    ----------
    average : {"macro", "micro"}
        The mean over updates of their scores, or the score of all counts.
    """

    title = ""

    def __init__(
        self,
        name: str | None = None,
        output_names: Names = None,
        label_names: Names = None,
        average: str = "macro",
    ) -> None:
        if average not in ("macro", "micro"):
            raise ValueError(f"{type(self).__name__}: average is macro or micro, not {average!r}")
        self.average = average
        super().__init__(self.title if name is None else name, output_names, label_names, average=average)

    def score(self, counts: _Counts) -> float:
        """The score; 0 where it is not defined."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._local, self._global = _Counts(), _Counts()

    def reset_local(self) -> None:
        """Forget what :meth:`get` tells."""
        super().reset_local()
        self._local = _Counts()

    def update(self, labels: Any, preds: Any) -> None:
        """Take account of a batch."""
        batch = _Counts()
        for label, pred in pairs(labels, preds):
            batch.count(type(self).__name__, label, pred)
        if self.average == "macro":
            self.add(self.score(batch), 1)
            return
        self._local.join(batch)
        self._global.join(batch)
        self.num_inst, self.global_num_inst = self._local.total, self._global.total
        self.sum_metric = self.score(self._local) * self.num_inst
        self.global_sum_metric = self.score(self._global) * self.global_num_inst


@register
class F1(_Binary):
    """The harmonic mean of precision and recall of class 1, from predictions of shape (batch, 2)."""

    title = "f1"

    def score(self, counts: _Counts) -> float:
        """``2 tp / (2 tp + fp + fn)``."""
        twice = 2 * counts.true_positives
        whole = twice + counts.false_positives + counts.false_negatives
        return twice / whole if whole else 0.0


@register
class MCC(_Binary):
    """Matthews' correlation of two classes, from predictions of shape (batch, 2)."""

    title = "mcc"

    def score(self, counts: _Counts) -> float:
        """``(tp tn - fp fn) / sqrt((tp + fp)(tp + fn)(tn + fp)(tn + fn))``."""
        tp, fp = float(counts.true_positives), float(counts.false_positives)
        fn, tn = float(counts.false_negatives), float(counts.true_negatives)
        scale = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
        return float((tp * tn - fp * fn) / scale) if scale else 0.0


@register
class PCC(EvalMetric):
    """The correlation of several classes (Gorodkin 2004), from predictions of shape (batch, classes)."""

    def __init__(self, name: str = "pcc", output_names: Names = None, label_names: Names = None) -> None:
        super().__init__(name, output_names, label_names)

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._local = self._global = np.zeros((2, 2))

    def reset_local(self) -> None:
        """Forget what :meth:`get` tells."""
        super().reset_local()
        self._local = np.zeros((2, 2))

    def update(self, labels: Any, preds: Any) -> None:
        """Take account of a batch."""
        for label, pred in pairs(labels, preds):
            if pred.shape != label.shape:
                pred = pred.argmax(axis=1)
            found, right = pred.astype(np.int32).ravel(), label.astype(np.int32).ravel()
            if found.size != right.size:
                raise ValueError(f"PCC: {right.size} labels but {found.size} predictions")
            n = int(max(found.max(initial=0), right.max(initial=0))) + 1
            matrix = np.bincount(found * n + right, minlength=n * n).reshape(n, n)
            self._local, self._global = _added(self._local, matrix), _added(self._global, matrix)
        self.num_inst, self.global_num_inst = self._local.sum(), self._global.sum()
        self.sum_metric = _class_correlation(self._local) * self.num_inst
        self.global_sum_metric = _class_correlation(self._global) * self.global_num_inst


def _added(matrix: np.ndarray, more: np.ndarray) -> np.ndarray:
    """The sum of two square matrices, the smaller one at the front of zeros."""
    n = max(len(matrix), len(more))
    result = np.zeros((n, n))
    result[: len(matrix), : len(matrix)] += matrix
    result[: len(more), : len(more)] += more
    return result


def _class_correlation(matrix: np.ndarray) -> float:
    """The correlation of rows and columns of a confusion matrix; NaN where one of the two is constant."""
    n = matrix.sum()
    rows, columns = matrix.sum(axis=1), matrix.sum(axis=0)
    scale = np.sqrt(np.sum(rows * (n - rows)) * np.sum(columns * (n - columns)))
    return float((np.trace(matrix) * n - rows @ columns) / scale) if scale > 0 else float("nan")


# ----------------------------------------------------------------------------------------------- probabilities


class _LogLikelihood(EvalMetric):
    """The mean of ``-log(p + eps)`` of the right class, from predictions of shape (batch, classes)."""

    title = ""

    def __init__(
        self, eps: float = 1e-12, name: str | None = None, output_names: Names = None, label_names: Names = None
    ) -> None:
        super().__init__(self.title if name is None else name, output_names, label_names, eps=eps)
        self.eps = eps

    def update(self, labels: Any, preds: Any) -> None:
        """Take account of a batch."""
        for label, pred in pairs(labels, preds):
            right = label.ravel().astype(np.int64)
            if right.size != len(pred):
                raise ValueError(f"{type(self).__name__}: {right.size} labels but {len(pred)} predictions")
            probability = pred[np.arange(right.size), right]
            self.add(float((-np.log(probability + self.eps)).sum()), right.size)


@alias("ce")
class CrossEntropy(_LogLikelihood):
    """The mean of ``-log(p + eps)`` of the right class, from predictions of shape (batch, classes)."""

    title = "cross-entropy"


@alias("nll_loss")
class NegativeLogLikelihood(_LogLikelihood):
    """The mean of ``-log(p + eps)`` of the right class, from predictions of shape (batch, classes)."""

    title = "nll-loss"


@register
class Perplexity(EvalMetric):
    """``exp`` of the mean of ``-log(max(p, 1e-10))`` of the right class.

    Parameters
    ----------
    ignore_label : int or None
        A label that does not count.
    axis : int
        The axis of classes.
    """

    def __init__(
        self,
        ignore_label: int | None,
        axis: int = -1,
        name: str = "perplexity",
        output_names: Names = None,
        label_names: Names = None,
    ) -> None:
        super().__init__(name, output_names, label_names, ignore_label=ignore_label, axis=axis)
        self.ignore_label = ignore_label
        self.axis = axis

    def update(self, labels: Any, preds: Any) -> None:
        """Take account of a batch."""
        for label, pred in pairs(labels, preds):
            rows = np.moveaxis(pred, self.axis, -1).reshape(-1, pred.shape[self.axis])
            right = label.ravel().astype(np.int64)
            if right.size != len(rows):
                raise ValueError(f"Perplexity: {right.size} labels but {len(rows)} predictions")
            probability = rows[np.arange(right.size), np.clip(right, 0, rows.shape[1] - 1)]
            if self.ignore_label is not None:
                probability = probability[right != self.ignore_label]
            self.add(float(-np.log(np.maximum(probability, 1e-10)).sum()), probability.size)

    def value(self, total: float, count: float) -> float:
        """The exponential of the mean; NaN of nothing."""
        return float(np.exp(super().value(total, count)))
