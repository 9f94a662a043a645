"""The step in PyTorch and in JAX, as their documentation recommends."""

from benchmarks.workloads import LEARNING_RATE, WORKLOADS, data


def torch_eager(name, optimizer="sgd"):
    """PyTorch: Sequential of Linear, optim.SGD or optim.Adam."""
    import torch

    workload = WORKLOADS[name]
    x, y, weights, biases = data(name)
    modules = []
    for w, b in zip(weights, biases):
        linear = torch.nn.Linear(*w.shape)
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(w.T))
            linear.bias.copy_(torch.tensor(b))
        modules += [linear, torch.nn.ReLU()]
    net = torch.nn.Sequential(*modules[:-1])
    features, labels = torch.tensor(x), torch.tensor(y)
    if workload.loss == "bce":
        loss_of, labels = torch.nn.BCEWithLogitsLoss(), labels[:, None].float()
    else:
        loss_of = torch.nn.CrossEntropyLoss()
    rule = torch.optim.SGD if optimizer == "sgd" else torch.optim.Adam
    trainer = rule(net.parameters(), lr=LEARNING_RATE)

    def step():
        trainer.zero_grad()
        loss = loss_of(net(features), labels)
        loss.backward()
        trainer.step()
        return loss

    return step


def jax_jit(name):
    """JAX: jit of the whole step, parameters donated."""
    import jax
    import jax.numpy as jnp

    x, y, weights, biases = data(name)
    binary = WORKLOADS[name].loss == "bce"
    features, labels = jnp.asarray(x), jnp.asarray(y)

    def loss_of(parameters, x, y):
        for w, b in parameters[:-1]:
            x = jax.nn.relu(x @ w + b)
        w, b = parameters[-1]
        out = x @ w + b
        if binary:
            return jnp.mean(jax.nn.softplus(out[:, 0]) - out[:, 0] * y)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(out), y[:, None], axis=1))

    def update(parameters, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
        return jax.tree.map(lambda p, g: p - LEARNING_RATE * g, parameters, gradients), loss

    compiled = jax.jit(update, donate_argnums=0)
    parameters = [(jnp.asarray(w), jnp.asarray(b)) for w, b in zip(weights, biases)]

    def step():
        nonlocal parameters
        parameters, loss = compiled(parameters, features, labels)
        return loss.block_until_ready()

    return step
