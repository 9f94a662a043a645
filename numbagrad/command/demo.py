"""``numbagrad demo``: a dense network trained on scikit-learn's handwritten digits, with curves and parameters."""

import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from numbagrad import autograd, gluon, initializer, nd, random

BATCH = 64
LEARNING_RATE = 2e-3
TEST_SHARE = 0.2
SPLIT_SEED = 0
"""The split does not follow ``--seed``, so that accuracies of different seeds compare."""


class History(NamedTuple):
    """What happened, one entry an epoch; accuracies are those after it."""

    loss: list[float]
    train_accuracy: list[float]
    test_accuracy: list[float]
    steps_per_second: float


def digits() -> tuple[Any, Any, Any, Any]:
    """The 1,797 images of 8 by 8, as rows of 64 numbers in [0, 1], split into training and test rows.

    Returns
    -------
    train images (1437, 64), test images (360, 64) : float32; train labels, test labels : int64
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    return tuple(train_test_split(images, labels, test_size=TEST_SHARE, random_state=SPLIT_SEED, stratify=labels))


def network() -> Any:
    """64 pixels, two hidden layers, ten classes."""
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(256, activation="relu"), gluon.nn.Dropout(0.4))
    net.add(gluon.nn.Dense(256, activation="relu"), gluon.nn.Dropout(0.4))
    net.add(gluon.nn.Dense(10))
    net.initialize(initializer.Xavier())
    return net


def accuracy(net: Any, images: Any, labels: Any) -> float:
    """The share of `images` that `net` puts into the right class."""
    return float((net(images).argmax(axis=1) == labels).mean().asscalar())


def train(net: Any, train_set: tuple[Any, Any], test_set: tuple[Any, Any], epochs: int, progress: Any) -> History:
    """Train `net` in place with Adam; `progress` is a tqdm bar with one tick a step."""
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(*train_set), batch_size=BATCH, shuffle=True)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": LEARNING_RATE})
    history = History([], [], [], 0.0)
    times = []
    for epoch in range(epochs):
        start = time.perf_counter()
        total = 0.0
        # Towards the end small steps: the last accuracy is then no matter of luck.
        trainer.set_learning_rate(LEARNING_RATE * (0.1 if epoch >= 0.7 * epochs else 1))
        for images, labels in loader:
            with autograd.record():
                loss = loss_of(net(images), labels)
            loss.backward()
            trainer.step(images.shape[0])
            total += float(loss.sum().asscalar())
            progress.update()
        times.append(time.perf_counter() - start)
        history.loss.append(total / train_set[0].shape[0])
        history.train_accuracy.append(accuracy(net, *train_set))
        history.test_accuracy.append(accuracy(net, *test_set))
        progress.set_postfix_str(f"loss {history.loss[-1]:.4f}, test accuracy {history.test_accuracy[-1]:.2%}")
    # The first epoch compiles or loads kernels.
    counted = times[1:] or times
    return history._replace(steps_per_second=len(counted) * len(loader) / sum(counted))


def draw(history: History, path: Path) -> None:
    """Write the curves to the PNG file `path`: the loss on the left, accuracies on the right."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    figure = Figure(figsize=(10, 4.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    epochs = np.arange(1, len(history.loss) + 1)
    marker = "o" if len(epochs) == 1 else ""
    left.semilogy(epochs, history.loss, color="tab:blue", linewidth=2, marker=marker)
    left.set(title="Cross-entropy while training", xlabel="epoch", ylabel="mean loss per image (log scale)")
    test = history.test_accuracy
    right.plot(epochs, history.train_accuracy, color="tab:blue", linewidth=2, marker=marker, label="training images")
    right.plot(epochs, test, color="tab:orange", linewidth=2, marker=marker, label="test images")
    last = (float(epochs[-1]), test[-1])
    place: dict[str, Any] = {"xytext": (0, -16), "textcoords": "offset points", "ha": "right"}
    right.annotate(f"{test[-1]:.1%}", last, color="tab:orange", **place)
    right.set(title="Accuracy", xlabel="epoch", ylabel="share of images classified correctly")
    # Below is the first epoch or two, which would squeeze what is of interest.
    right.set_ylim(max(0.0, min(1.0, min(history.train_accuracy[1:] + test[1:], default=0.0)) - 0.05), 1.005)
    right.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    right.legend(loc="lower right", frameon=False)
    for axes in (left, right):
        margin = max(0.5, 0.02 * len(epochs))
        axes.set_xlim(1 - margin, len(epochs) + margin)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle("numbagrad: a dense network learns 8 × 8 handwritten digits")
    figure.savefig(path)


def demo(*, epochs: int, seed: int, out: str) -> int:
    """Train, report, and write ``curves.png`` and ``digits.params`` to the folder `out`; returns the exit status."""
    try:
        import matplotlib  # noqa: F401
        import sklearn  # noqa: F401
        from threadpoolctl import threadpool_limits
        from tqdm import tqdm
    except ImportError as error:
        print(
            f"numbagrad demo: needs {(error.name or 'a package').partition('.')[0]}, which is not installed; "
            'all that it needs comes with\n    pip install "numbagrad[examples]"',
            file=sys.stderr,
        )
        return 1
    folder = Path(out)
    try:  # before the work, not after it
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"numbagrad demo: cannot write to {out}: {error.strerror}", file=sys.stderr)
        return 2
    random.seed(seed)
    np.random.seed(seed % 2**32)  # the order of batches
    train_images, test_images, train_labels, test_labels = digits()
    train_set = nd.array(train_images), nd.array(train_labels)
    test_set = nd.array(test_images), nd.array(test_labels)
    print(f"{len(train_labels)} images to train on, {len(test_labels)} to test with; epochs: {epochs}, seed: {seed}")
    net = network()
    steps = epochs * -(-len(train_labels) // BATCH)
    # Products this small gain nothing from a second BLAS thread, and on a busy machine lose by 50 times: threads spin.
    with threadpool_limits(1, user_api="blas"), tqdm(total=steps, unit="step", desc="training") as progress:
        history = train(net, train_set, test_set, epochs, progress)
    curves, parameters = folder / "curves.png", folder / "digits.params"
    try:
        draw(history, curves)
        net.save_parameters(str(parameters))
    except OSError as error:
        print(f"numbagrad demo: cannot write to {out}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"test accuracy  {history.test_accuracy[-1]:.2%}")
    print(f"speed          {history.steps_per_second:,.0f} steps a second ({BATCH} images each)")
    print(f"curves         {curves}")
    print(f"parameters     {parameters}")
    return 0
