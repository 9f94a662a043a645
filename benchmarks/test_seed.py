"""The program many start with, end to end: ten epochs of one Dense(1) over 1,000 rows from a shuffling DataLoader."""

import pytest

pytest.importorskip("numbagrad.gluon")
import numbagrad as mx
from numbagrad import autograd, gluon, nd

EPOCHS, ROWS, FEATURES, BATCH = 10, 1000, 10, 64


class Net(gluon.Block):
    """One dense unit."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.fc = gluon.nn.Dense(1)

    def forward(self, x):
        return self.fc(x)


def train(loader):
    """Ten epochs of a new network; the mean loss of each."""
    net = Net()
    net.initialize()
    loss_of = gluon.loss.SigmoidBinaryCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    history = []
    for _ in range(EPOCHS):
        total = 0
        for features, labels in loader:
            with autograd.record():
                loss = loss_of(net(features), labels)
            loss.backward()
            trainer.step(features.shape[0])
            total += nd.mean(loss).asscalar()
        history.append(total / len(loader))
    return history


def test_ten_epochs(benchmark):
    mx.random.seed(0)
    features = nd.random.randn(ROWS, FEATURES)
    labels = nd.random.randint(0, 2, (ROWS,))
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(features, labels), batch_size=BATCH, shuffle=True)
    history = benchmark(train, loader)
    assert len(history) == EPOCHS
    assert history[-1] < history[0]
