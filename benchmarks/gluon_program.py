"""The step as a user of the gluon API writes it; the same text runs on numbagrad and on MXNet."""

from benchmarks.workloads import LEARNING_RATE, WORKLOADS, data


def build(mx, name, compiled=False, optimizer="sgd"):
    """The step of workload `name` on the framework `mx`, returning the loss of each example.

    With `compiled`, the step goes through ``numbagrad.jit``.
    """
    workload = WORKLOADS[name]
    x, y, weights, biases = data(name)
    net = mx.gluon.nn.HybridSequential()
    for i, (inputs, units) in enumerate(zip(workload.widths, workload.widths[1:])):
        activation = "relu" if i < len(weights) - 1 else None
        net.add(mx.gluon.nn.Dense(units, activation=activation, in_units=inputs))
    net.initialize()
    for layer, w, b in zip(net, weights, biases):
        layer.weight.set_data(mx.nd.array(w.T))
        layer.bias.set_data(mx.nd.array(b))
    losses = mx.gluon.loss
    loss_of = losses.SigmoidBinaryCrossEntropyLoss() if workload.loss == "bce" else losses.SoftmaxCrossEntropyLoss()
    trainer = mx.gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": LEARNING_RATE})
    features, labels, batch = mx.nd.array(x), mx.nd.array(y), workload.batch
    record = mx.autograd.record

    def step():
        with record():
            loss = loss_of(net(features), labels)
        loss.backward()
        trainer.step(batch)
        return loss

    return mx.jit(step) if compiled else step
