"""Two lessons that people bring along, in our own words, as programs for ``mxnet`` under ``numbagrad run``."""

import os
import pathlib
import subprocess
import sys

import numbagrad

ROOT = pathlib.Path(numbagrad.__file__).resolve().parent.parent

PAUSE = """
import numpy as np
import mxnet as mx
from mxnet import autograd, gluon, nd

mx.random.seed(11)
features = nd.random.randn(500, 6)
labels = nd.random.randint(0, 2, (500,))
loader = gluon.data.DataLoader(gluon.data.dataset.ArrayDataset(features, labels), batch_size=32, shuffle=True)


class OneUnit(gluon.Block):
    def __init__(self, **options):
        super().__init__(**options)
        self.layer = gluon.nn.Dense(1)

    def forward(self, x):
        return self.layer(x)


class Nothing:
    def __enter__(self): ...
    def __exit__(self, *error): ...


def fit(around):
    mx.random.seed(3)
    np.random.seed(3)
    net = OneUnit()
    net.initialize()
    loss_of = gluon.loss.SigmoidBinaryCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': 0.05})
    losses = []
    for _ in range(4):
        total = 0
        for x, y in loader:
            with around():
                with autograd.record():
                    loss = loss_of(net(x), y)
                loss.backward()
            trainer.step(x.shape[0])
            total += nd.mean(loss).asscalar()
        losses.append(float(total / len(loader)))
    return losses


plain, paused = fit(Nothing), fit(autograd.pause)
assert labels.dtype == np.int32, labels.dtype
assert plain == paused, (plain, paused)
assert all(np.isfinite(plain)) and plain[-1] < plain[0], plain
# The first loss by NumPy: at the start weights are below 0.07, so it is near log 2.
assert abs(plain[0] - np.log(2)) < 0.02, plain
print('identical', len(plain))
"""

CONTROL_FLOW = """
from mxnet import autograd, nd

column = nd.arange(4).reshape(4, 1)
column.attach_grad()
with autograd.record():
    square = 2 * nd.dot(column.T, column)
square.backward()
assert square.shape == (1, 1) and square.asscalar() == 28
assert column.grad.asnumpy().tolist() == [[0], [4], [8], [12]]
assert (column.grad - 4 * column).norm().asscalar() == 0
print(column.grad)

print(autograd.is_training())
with autograd.record():
    print(autograd.is_training())
print(autograd.is_training())


def grow(x):
    y = x * 2
    while y.norm().asscalar() < 1000:
        y = y * 2
    return y if y.sum().asscalar() > 0 else 100 * y


for start in (nd.random.normal(shape=1), nd.array([0.75]), nd.array([-0.75])):
    start.attach_grad()
    with autograd.record():
        end = grow(start)
    end.backward()
    print((start.grad == end / start).asscalar())
# 0.75 doubles 11 times to 1536; so does -0.75, and then 100 more.
assert start.grad.asscalar() == 100 * 2**11
"""


def run(tmp_path, text):
    (tmp_path / "lesson.py").write_text(text)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "numbagrad", "run", "lesson.py"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )


def test_record_inside_pause_trains_as_without_it(tmp_path):
    done = run(tmp_path, PAUSE)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout == "identical 4\n"


def test_gradients_modes_and_control_flow(tmp_path):
    done = run(tmp_path, CONTROL_FLOW)
    assert (done.stderr, done.returncode) == ("", 0)
    printed = "\n[[ 0.]\n [ 4.]\n [ 8.]\n [12.]]\n<NDArray 4x1 @cpu(0)>\n"
    assert done.stdout == printed + "False\nTrue\nFalse\n" + "1.0\n" * 3
