"""Draw pause.png: the losses of a training loop with and without ``pause()`` around its ``record()``.

Run it from anywhere: ``python docs/pictures/pause.py``.
"""

import contextlib
import pathlib

import numpy as np

import numbagrad as mx
from numbagrad import autograd, gluon, nd

ROWS, COLUMNS, BATCH, EPOCHS, RATE = 512, 10, 64, 15, 0.3


def data():
    """Rows of ten numbers, labelled by the sign of a noisy linear function of them."""
    numbers = np.random.default_rng(0)
    features = numbers.standard_normal((ROWS, COLUMNS))
    labels = features @ numbers.standard_normal(COLUMNS) + numbers.standard_normal(ROWS) > 0
    return gluon.data.ArrayDataset(nd.array(features), nd.array(labels))


def train(around, rate=RATE):
    """The loss of every step, with each step's recording and backward pass inside ``around()``."""
    mx.random.seed(1)
    np.random.seed(1)  # shuffles
    net = gluon.nn.Dense(1)
    net.initialize()
    loss_of = gluon.loss.SigmoidBinaryCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": rate})
    losses = []
    for _ in range(EPOCHS):
        for x, z in gluon.data.DataLoader(data(), batch_size=BATCH, shuffle=True):
            with around():
                with autograd.record():
                    loss = loss_of(net(x), z)
                loss.backward()
            trainer.step(BATCH)
            losses.append(float(loss.mean().asscalar()))
    return losses


def draw(path):
    """Train three times, draw the losses to `path` and return them."""
    from matplotlib import pyplot as plt

    plain, paused = train(contextlib.nullcontext), train(autograd.pause)
    slow = train(contextlib.nullcontext, RATE / 4)
    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    axes.plot(slow, color="#888888", linewidth=1.2, label="no pause(), a quarter of the learning rate")
    axes.plot(plain, color="#ffb347", linewidth=6, solid_capstyle="round", label="record()")
    axes.plot(paused, color="#1f3b73", linewidth=1.4, linestyle=(0, (4, 2)), label="record() inside pause()")
    axes.set_xlabel("step")
    axes.set_ylabel("loss of the batch")
    axes.set_title("pause() around record() changes nothing")
    axes.set_xlim(0, len(plain) - 1)
    axes.set_ylim(0, None)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return plain, paused, slow


if __name__ == "__main__":
    target = pathlib.Path(__file__).with_suffix(".png")
    plain, paused, _ = draw(target)
    print(f"{target.name}: {len(plain)} steps, largest difference {max(abs(a - b) for a, b in zip(plain, paused))}")
