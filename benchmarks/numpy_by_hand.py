"""The step written out by hand in NumPy: forward, loss, backward and SGD in place, no autograd.

As someone who knows NumPy writes it: few whole-array expressions, the batch mean folded into the learning rate.
"""

import numpy as np

from benchmarks.workloads import LEARNING_RATE, WORKLOADS, data


def build(name):
    """The step of workload `name` as a function without arguments that returns the loss."""
    x, y, weights, biases = data(name)
    if WORKLOADS[name].loss == "bce":
        return _one_unit(x, y.astype(np.float32), weights[0][:, 0].copy(), biases[0])
    return _perceptron(x, y, weights, biases)


def _one_unit(x, z, w, b):
    """Sigmoid cross entropy by softplus: s = log(1 + e^o), loss = s - o z, sigmoid(o) = e^(o - s)."""
    batch, rate = len(x), np.float32(LEARNING_RATE / len(x))
    zero = np.float32(0)

    def step():
        o = x.dot(w)
        o += b
        s = np.logaddexp(zero, o)
        loss = (s.sum() - o.dot(z)) / batch
        g = np.exp(o - s)
        g -= z
        w[...] -= rate * g.dot(x)
        b[...] -= rate * g.sum()
        return loss

    return step


def _perceptron(x, y, weights, biases):
    """Softmax cross entropy over logits shifted by their row maximum."""
    batch, rate = len(x), np.float32(LEARNING_RATE / len(x))
    rows, last = np.arange(batch), len(weights) - 1

    def step():
        inputs = [x]
        for i, (w, b) in enumerate(zip(weights, biases)):
            out = inputs[-1] @ w
            out += b
            if i < last:
                np.maximum(out, 0, out=out)
            inputs.append(out)
        logits = inputs.pop()
        logits -= logits.max(axis=1, keepdims=True)
        g = np.exp(logits)
        total = g.sum(axis=1, keepdims=True)
        loss = (np.log(total[:, 0]) - logits[rows, y]).mean()
        g /= total
        g[rows, y] -= 1
        for i in range(last, -1, -1):
            if i:
                back = g @ weights[i].T
                back *= inputs[i] > 0
            weights[i] -= rate * (inputs[i].T @ g)
            biases[i] -= rate * g.sum(axis=0)
            if i:
                g = back
        return loss

    return step
