"""The dense-training workloads that every speed comparison uses."""

from typing import NamedTuple

import numpy as np

LEARNING_RATE = 0.01


class Workload(NamedTuple):
    """One network trained on one fixed batch with plain SGD; ReLU between layers."""

    batch: int
    widths: tuple
    loss: str
    stands_for: str


WORKLOADS = {
    "A": Workload(64, (10, 1), "bce", "one Dense(1) with sigmoid cross entropy"),
    "E": Workload(32, (4, 64, 64, 2), "ce", "tiny MLP: control, physics, finance"),
    "B": Workload(256, (784, 256, 10), "ce", "MLP on 28x28 images"),
    "C": Workload(128, (784, 512, 512, 10), "ce", "three-layer MLP"),
    "D": Workload(512, (1024, 4096, 4096, 10), "ce", "GEMM-bound MLP"),
}


def data(name):
    """The batch and the first parameters of workload `name`, the same in every process.

    Returns
    -------
    x : float32 (batch, inputs)
    y : int64 (batch,)
    weights : list of float32 (inputs, units)
    biases : list of float32 (units,)
    """
    workload = WORKLOADS[name]
    layers = list(zip(workload.widths, workload.widths[1:]))
    classes = 2 if workload.loss == "bce" else workload.widths[-1]
    rng = np.random.default_rng(0)
    x = rng.standard_normal((workload.batch, workload.widths[0])).astype(np.float32)
    y = rng.integers(0, classes, workload.batch)
    weights = [(rng.standard_normal(layer) * np.sqrt(2 / layer[0])).astype(np.float32) for layer in layers]
    biases = [np.zeros(units, np.float32) for _, units in layers]
    return x, y, weights, biases
