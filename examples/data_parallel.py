"""Training on several processes: each computes the gradients of its part of the data, and all use the mean of them.

The gradients of a layer are known before those of the layer below it. So the layers are grouped into buckets, and the
mean of a bucket is on its way, on a stream of its own, while the next one is computed: what PyTorch's
DistributedDataParallel does. The other version computes everything first. Both train the same model.

Run it with ``mpiexec -n 2 python examples/data_parallel.py``, or as it is, for one rank.
"""

import time

import numpy as np

import anabranch as ab

LAYERS, WIDTH, SAMPLES, STEPS = 6, 96, 64, 8
LAYERS_IN_BUCKET = 2
RATE = 0.05


@ab.kernel
def forward(index, x: ab.In, weights: ab.In, y: ab.Out):
    """Apply a linear layer and a soft step: y = z / (1 + abs(z)) with z = x @ weights."""
    total = 0.0
    for i in range(weights.shape[0]):
        total += x[index[0], i] * weights[i, index[1]]
    y[index] = total / (1 + abs(total))


@ab.kernel
def miss(index, y: ab.In, target: ab.In, error: ab.Out):
    """Find how far the output is off, as the gradient of half the mean square."""
    error[index] = (y[index] - target[index]) / y.shape[0]


@ab.kernel
def through(index, y: ab.In, error: ab.InOut):
    """Take an error back through the soft step, whose slope is (1 - abs(y)) ** 2."""
    slope = 1 - abs(y[index])
    error[index] *= slope * slope


@ab.kernel
def weigh(index, x: ab.In, error: ab.In, gradient: ab.Out):
    """Find the gradient of a layer's weights: x.T @ error."""
    total = 0.0
    for sample in range(x.shape[0]):
        total += x[sample, index[0]] * error[sample, index[1]]
    gradient[index] = total


@ab.kernel
def below(index, error: ab.In, weights: ab.In, error_below: ab.Out):
    """Find the error of the layer below: error @ weights.T."""
    total = 0.0
    for i in range(weights.shape[1]):
        total += error[index[0], i] * weights[index[1], i]
    error_below[index] = total


@ab.kernel
def learn(index, rate, gradient: ab.In, weights: ab.InOut):
    """Take a step against the gradient."""
    weights[index] -= rate * gradient[index]


class Model:
    """What one rank has. The weights of all layers are one array, and so are the gradients: buckets are views."""

    def __init__(self, comm):
        self.comm = comm
        shape = (LAYERS, WIDTH, WIDTH)
        self.weights = ab.array(np.random.default_rng(0).normal(size=shape, scale=1 / np.sqrt(WIDTH)))
        self.gradients = ab.zeros(shape, "float64")
        self.values = ab.zeros((LAYERS + 1, SAMPLES, WIDTH), "float64")
        self.errors = ab.zeros((LAYERS + 1, SAMPLES, WIDTH), "float64")
        data = np.random.default_rng(1 + comm.rank)  # each rank has samples of its own
        ab.copy(self.values[0], ab.array(data.normal(size=(SAMPLES, WIDTH))))
        self.target = ab.array(0.5 * np.tanh(data.normal(size=(SAMPLES, WIDTH))))
        self.compute, self.reduce = ab.Stream(name="compute"), ab.Stream(name="reduce", priority=-1)
        ab.synchronize()

    def gradients_of(self, layer):
        """Enqueue what leads from the error of a layer's output to its gradient and to the error of its input."""
        error = self.errors[layer + 1]
        ab.launch(through, (SAMPLES, WIDTH), self.values[layer + 1], error)
        ab.launch(weigh, (WIDTH, WIDTH), self.values[layer], error, self.gradients[layer])
        ab.launch(below, (SAMPLES, WIDTH), error, self.weights[layer], self.errors[layer])

    def step(self, reduce):
        """Enqueue one step of training. `reduce(bucket)` is called when the gradients of a bucket are enqueued."""
        with self.compute:
            for layer in range(LAYERS):
                ab.launch(forward, (SAMPLES, WIDTH), self.values[layer], self.weights[layer], self.values[layer + 1])
            ab.launch(miss, (SAMPLES, WIDTH), self.values[LAYERS], self.target, self.errors[LAYERS])
            for first in reversed(range(0, LAYERS, LAYERS_IN_BUCKET)):
                bucket = slice(first, first + LAYERS_IN_BUCKET)
                for layer in reversed(range(LAYERS)[bucket]):
                    self.gradients_of(layer)
                reduce(bucket)
            self.compute.wait_stream(self.reduce)
            ab.launch(learn, self.weights.shape, RATE, self.gradients, self.weights)

    def reduce_at_once(self, bucket):
        """Reduce a bucket while the next is computed."""
        self.reduce.wait_stream(self.compute)
        self.comm.all_reduce(self.gradients[bucket], "avg", stream=self.reduce)

    def reduce_last(self, bucket):
        """Reduce all gradients, when the last bucket is there."""
        if bucket.start == 0:
            self.comm.all_reduce(self.gradients, "avg", stream=self.compute)


def train(comm, overlapped):
    """Train a model; return its weights and the milliseconds of a step."""
    model = Model(comm)
    reduce = model.reduce_at_once if overlapped else model.reduce_last
    model.step(reduce)  # compiles the kernels
    ab.synchronize()
    begin = time.perf_counter()
    for _ in range(STEPS):
        model.step(reduce)
    ab.synchronize()
    return model.weights.numpy(), 1000 * (time.perf_counter() - begin) / STEPS


def main():
    """Train with and without overlap, and compare the models of all ranks."""
    with ab.distributed.init() as comm:
        at_once, fast = train(comm, overlapped=True)
        last, slow = train(comm, overlapped=False)
        np.testing.assert_allclose(at_once, last, rtol=1e-9)  # a sum of another size may be added in another order
        everyone = ab.zeros((comm.size, *at_once.shape), "float64")
        comm.all_gather(everyone, ab.array(at_once))
        assert all(np.array_equal(weights, at_once) for weights in everyone.numpy())
        if comm.rank == 0:
            print(f"{comm.size} ranks, {LAYERS} layers: a step takes {slow:.1f} ms, with overlap {fast:.1f} ms")


if __name__ == "__main__":
    main()
