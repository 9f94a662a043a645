"""The most that NumPy by hand can do: the step with buffers made once and `out=` everywhere, reductions as ufuncs.

Nobody writes training code like this; it shows how much of `numpy_by_hand` is temporaries.
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
    o, s, g, update, total = np.empty_like(z), np.empty_like(z), np.empty_like(z), np.empty_like(w), np.empty_like(b)
    zero = np.float32(0)

    def step():
        x.dot(w, out=o)
        np.add(o, b, out=o)
        np.logaddexp(zero, o, out=s)
        loss = (np.add.reduce(s) - o.dot(z)) / batch
        np.subtract(o, s, out=o)
        np.exp(o, out=g)
        np.subtract(g, z, out=g)
        g.dot(x, out=update)
        np.multiply(update, rate, out=update)
        np.subtract(w, update, out=w)
        np.add.reduce(g, keepdims=True, out=total)
        np.multiply(total, rate, out=total)
        np.subtract(b, total, out=b)
        return loss

    return step


def _perceptron(x, y, weights, biases):
    """Softmax cross entropy over logits shifted by their row maximum."""
    batch, rate = len(x), np.float32(LEARNING_RATE / len(x))
    layers = len(weights)
    h = [x] + [np.empty((batch, b.size), np.float32) for b in biases]
    g = [None] + [np.empty_like(a) for a in h[1:]]
    masks = [None] + [np.empty(a.shape, np.bool_) for a in h[1:-1]]
    updates = [np.empty_like(w) for w in weights]
    sums = [np.empty_like(b) for b in biases]
    top, total = np.empty((batch, 1), np.float32), np.empty((batch, 1), np.float32)
    chosen = np.arange(batch) * biases[-1].size + y
    zero = np.float32(0)

    def step():
        for i in range(layers):
            out = h[i + 1]
            np.dot(h[i], weights[i], out=out)
            np.add(out, biases[i], out=out)
            if i < layers - 1:
                np.maximum(out, zero, out=out)
        logits, grad = h[-1], g[-1]
        np.maximum.reduce(logits, axis=1, keepdims=True, out=top)
        np.subtract(logits, top, out=logits)
        np.exp(logits, out=grad)
        np.add.reduce(grad, axis=1, keepdims=True, out=total)
        np.divide(grad, total, out=grad)
        grad.reshape(-1)[chosen] -= 1
        np.log(total, out=total)
        loss = (np.add.reduce(total, axis=None) - np.add.reduce(logits.reshape(-1).take(chosen))) / batch
        for i in range(layers - 1, -1, -1):
            grad = g[i + 1]
            if i < layers - 1:
                np.greater(h[i + 1], zero, out=masks[i + 1])
                np.multiply(grad, masks[i + 1], out=grad)
            if i:
                np.dot(grad, weights[i].T, out=g[i])
            np.dot(h[i].T, grad, out=updates[i])
            np.multiply(updates[i], rate, out=updates[i])
            np.subtract(weights[i], updates[i], out=weights[i])
            np.add.reduce(grad, axis=0, out=sums[i])
            np.multiply(sums[i], rate, out=sums[i])
            np.subtract(biases[i], sums[i], out=biases[i])
        return loss

    return step
