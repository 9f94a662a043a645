"""``numbagrad demo``: a dense network learns scikit-learn's handwritten digits, eagerly and captured, side by side."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from numbagrad import autograd, gluon, initializer, jit, lr_scheduler, nd, random

BATCH = 32
LEARNING_RATE = 6e-3
"""At the start; it falls to 0 along a cosine."""
TEST_SHARE = 0.2
SPLIT_SEED = 0
"""The split does not follow ``--seed``, so that accuracies of different seeds compare."""


class History(NamedTuple):
    """What happened: the mean loss of each step, and the rest once an epoch, accuracies after it."""

    losses: list[float]
    train_accuracy: list[float]
    test_accuracy: list[float]
    steps_per_second: list[float]


def speeds(eager: History, captured: History) -> tuple[float, float, float]:
    """Steps a second of both, and how many times as fast the second is: medians of the epochs.

    The first epoch is left out: it compiles or loads kernels, and captures. Speeds of one epoch are measured one after
    the other, so a ratio is steadier than speeds are.
    """
    both = np.array([eager.steps_per_second, captured.steps_per_second])
    slow, fast = both[:, 1:] if both.shape[1] > 1 else both
    return float(np.median(slow)), float(np.median(fast)), float(np.median(fast / slow))


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
    net.add(gluon.nn.Dense(128, activation="relu"), gluon.nn.Dropout(0.3))
    net.add(gluon.nn.Dense(128, activation="relu"), gluon.nn.Dropout(0.3))
    net.add(gluon.nn.Dense(10))
    net.initialize(initializer.Xavier())
    return net


def accuracy(net: Any, images: Any, labels: Any) -> float:
    """The share of `images` that `net` puts into the right class."""
    return float((net(images).argmax(axis=1) == labels).mean().asscalar())


class Run:
    """A network and its training step; `mode` is the identity for an eager run, and ``jit`` for a captured one."""

    def __init__(self, mode: Callable[[Any], Any], updates: int) -> None:
        net = self.net = network()
        schedule = lr_scheduler.CosineScheduler(updates, LEARNING_RATE)
        trainer = gluon.Trainer(
            net.collect_params(), "adam", {"learning_rate": LEARNING_RATE, "lr_scheduler": schedule}
        )
        loss_of = gluon.loss.SoftmaxCrossEntropyLoss()

        def step(images: Any, labels: Any) -> Any:
            with autograd.record():
                loss = loss_of(net(images), labels)
            loss.backward()
            trainer.step(images.shape[0])
            return loss

        self.step = mode(step)
        self.history = History([], [], [], [])

    def epoch(self, loader: Any, progress: Any) -> None:
        """Go through the data once; only the steps are timed."""
        seconds = 0.0
        for images, labels in loader:
            start = time.perf_counter()
            loss = self.step(images, labels)
            seconds += time.perf_counter() - start
            self.history.losses.append(float(loss.mean().asscalar()))
            progress.update()
        self.history.steps_per_second.append(len(loader) / seconds)

    def parameters(self) -> list[Any]:
        """The values of all parameters, in order."""
        return [parameter.data().asnumpy() for parameter in self.net.collect_params().values()]


def train(train_set: tuple[Any, Any], test_set: tuple[Any, Any], epochs: int, seed: int, bar: Any) -> tuple[Run, Run]:
    """Train a network eagerly and a second one captured, epoch by epoch in turn; `bar` makes a tqdm bar."""
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(*train_set), batch_size=BATCH, shuffle=True)
    updates = epochs * len(loader)
    eager, captured = runs = Run(lambda step: step, updates), Run(jit, updates)
    seeds = np.random.default_rng(seed % 2**32).integers(2**32, size=epochs)
    with bar(total=2 * updates, unit="step", desc="training") as progress:
        for epoch_seed in seeds:
            for run in runs:
                random.seed(int(epoch_seed))  # weights, drawn at the first step, and dropout
                np.random.seed(epoch_seed)  # the order of batches
                run.epoch(loader, progress)
                run.history.train_accuracy.append(accuracy(run.net, *train_set))
                run.history.test_accuracy.append(accuracy(run.net, *test_set))
            progress.set_postfix_str(f"test accuracy {captured.history.test_accuracy[-1]:.2%}")
    return eager, captured


def difference(eager: Run, captured: Run) -> str:
    """In words, how far the losses and the parameters of both are apart."""
    ours = [np.array(eager.history.losses), *eager.parameters()]
    theirs = [np.array(captured.history.losses), *captured.parameters()]
    if all(np.array_equal(a, b) for a, b in zip(ours, theirs)):
        return f"all {len(ours[0]):,} losses and all parameters are equal, bit for bit"
    losses, parameters = np.abs(ours[0] - theirs[0]).max(), max(np.abs(a - b).max() for a, b in zip(ours, theirs))
    return f"losses differ by up to {losses:.1e}, parameters by up to {parameters:.1e}"


def draw(eager: History, captured: History, path: Path) -> None:
    """Write the curves of both to the PNG file `path`: losses, accuracies, steps a second.

    Eager curves are broad and light, captured ones thin, dark and dashed on top of them.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter

    figure = Figure(figsize=(13, 4.4), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    left, middle, right = figure.subplots(1, 3)
    epochs = np.arange(1, len(eager.test_accuracy) + 1)
    margin = max(0.5, 0.03 * len(epochs))

    def both(axes: Any, ours: Any, theirs: Any, light: str, dark: str, name: str = "") -> None:
        marker = "o" if len(epochs) == 1 else ""
        axes.plot(epochs, ours, color=light, linewidth=6, marker=marker, markersize=10, label=f"{name}eager")
        style: dict[str, Any] = {"linewidth": 1.6, "linestyle": (0, (4, 2)), "marker": marker, "markersize": 4}
        axes.plot(epochs, theirs, color=dark, label=f"{name}captured", **style)

    def last(axes: Any, value: float, text: str, color: str, below: int) -> None:
        place: dict[str, Any] = {"xytext": (0, below), "textcoords": "offset points", "ha": "right"}
        axes.annotate(text, (float(epochs[-1]), value), color=color, **place)

    losses = [np.mean(np.reshape(history.losses, (len(epochs), -1)), axis=1) for history in (eager, captured)]
    both(left, losses[0], losses[1], "#a6c8ec", "#0b4a8f")
    left.set_yscale("log")
    left.set(title="Cross entropy while training", ylabel="mean loss (log scale)")
    both(middle, eager.train_accuracy, captured.train_accuracy, "#a6c8ec", "#0b4a8f", "training images, ")
    both(middle, eager.test_accuracy, captured.test_accuracy, "#ffd29c", "#b85c00", "test images, ")
    last(middle, captured.test_accuracy[-1], f"{captured.test_accuracy[-1]:.1%}", "#b85c00", -18)
    middle.set(title="Accuracy", ylabel="share of images classified correctly")
    # Below is the first epoch or two, which would squeeze what is of interest.
    seen = eager.train_accuracy[1:] + eager.test_accuracy[1:]
    middle.set_ylim(max(0.0, min(seen, default=0.0) - 0.05), 1.005)
    middle.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    both(right, eager.steps_per_second, captured.steps_per_second, "#a6c8ec", "#0b4a8f")
    right.set(title=f"Speed: captured {speeds(eager, captured)[2]:.1f} times as fast", ylabel="steps a second")
    right.set_ylim(0, 1.25 * max(eager.steps_per_second + captured.steps_per_second))
    right.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    for axes in (left, middle, right):
        axes.set_xlabel("epoch")
        axes.set_xlim(1 - margin, len(epochs) + margin)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False, loc="upper right")
    middle.legend(frameon=False, loc="lower right")
    right.legend(frameon=False, loc="upper center", ncols=2)
    figure.suptitle("numbagrad: a dense network learns 8 × 8 handwritten digits, eagerly and captured by jit")
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
    train_images, test_images, train_labels, test_labels = digits()
    train_set = nd.array(train_images), nd.array(train_labels)
    test_set = nd.array(test_images), nd.array(test_labels)
    print(
        f"{len(train_labels)} images to train on, {len(test_labels)} to test with; "
        f"epochs: {epochs}, batch: {BATCH}, seed: {seed}"
    )
    # Products this small gain nothing from a second BLAS thread, and on a busy machine lose by 50 times: threads spin.
    with threadpool_limits(1, user_api="blas"):
        eager, captured = train(train_set, test_set, epochs, seed, tqdm)
    curves, parameters = folder / "curves.png", folder / "digits.params"
    try:
        draw(eager.history, captured.history, curves)
        captured.net.save_parameters(str(parameters))
    except OSError as error:
        print(f"numbagrad demo: cannot write to {out}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"{'':15}{'eager':>8}{'captured':>11}{'ratio':>8}")
    accuracies = [run.history.test_accuracy[-1] for run in (eager, captured)]
    print(f"{'test accuracy':15}{accuracies[0]:8.2%}{accuracies[1]:11.2%}")
    slow, fast, ratio = speeds(eager.history, captured.history)
    print(f"{'steps a second':15}{slow:8,.0f}{fast:11,.0f}{ratio:8.2f}")
    print(f"{'agreement':15} {difference(eager, captured)}")
    print(f"{'curves':15} {curves}")
    print(f"{'parameters':15} {parameters}")
    return 0
