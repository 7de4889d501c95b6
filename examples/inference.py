"""A small network answers batch after batch, over several streams: as calls, and as a graph that is launched per batch.

Each half of a batch is copied to the device on one stream while another computes what it can of the half before. Two
heads look at the same features, each on a branch of its own that also copies its answer back. In calls that is a dozen
operations per batch, and as many waits between the streams. Captured, the same lines are one graph, and a batch is one
launch: what streams and events said has become the graph's edges.

Batches alternate between two lanes with arrays of their own, so that the host fills one while the device is at work on
the other. The graph of a lane works on the same pinned arrays in each replay; the host writes the batch there before
it, and reads the answers after it.
"""

import time

import numpy as np

import anabranch as ab

BATCH, INPUTS, FEATURES, CLASSES, NUMBERS = 16, 48, 32, 8, 4


@ab.kernel
def dense(index, floor: np.float32, x: ab.In, weights: ab.In, bias: ab.In, y: ab.Out):
    """Compute an element of x @ weights + bias, but no less than the floor: 0 makes it a ReLU."""
    row, column = index
    total = bias[column]
    for k in range(x.shape[1]):
        total += x[row, k] * weights[k, column]
    y[row, column] = max(total, floor)


def layer(x, parameters, y, *, relu=True, stream=None):
    """Enqueue a layer."""
    ab.launch(dense, y.shape, 0.0 if relu else -np.inf, x, *parameters, y, stream=stream)


class Network:
    """Weights and biases of three layers and two heads, on the host and on the device."""

    def __init__(self, random):
        sizes = zip((INPUTS, *[FEATURES] * 4), (*[FEATURES] * 3, CLASSES, NUMBERS), strict=True)
        self.on_host = [
            (random.normal(0, inputs**-0.5, (inputs, outputs)).astype("float32"), np.linspace(-0.1, 0.1, outputs))
            for inputs, outputs in sizes
        ]
        self.on_device = [(ab.array(weights), ab.array(bias, "float32")) for weights, bias in self.on_host]

    def expected(self, x):
        """Compute the answers with NumPy."""
        *layers, classes, numbers = self.on_host
        for weights, bias in layers:
            x = np.maximum(x @ weights + bias, 0)
        return [x @ weights + bias for weights, bias in (classes, numbers)]


class Lane:
    """Arrays for one batch, and the streams that it takes."""

    def __init__(self, network, name):
        self.network = network
        self.compute, self.upload = ab.Stream(name=f"{name} compute"), ab.Stream(name=f"{name} upload")
        self.batch = ab.array(np.zeros((BATCH, INPUTS), "float32"), device="cpu", pinned=True)
        self.answers = [
            ab.array(np.zeros((BATCH, outputs), "float32"), device="cpu", pinned=True) for outputs in (CLASSES, NUMBERS)
        ]
        with self.compute:
            self.x = ab.empty((BATCH, INPUTS))
            self.one, self.two = ab.empty((BATCH, FEATURES)), ab.empty((BATCH, FEATURES))
            self.outputs = [ab.empty(answer.shape) for answer in self.answers]

    def enqueue(self):
        """Enqueue all that a batch takes."""
        first, second, third, *heads = self.network.on_device
        self.upload.wait_stream(self.compute)  # the last batch is through; and in a capture it takes part from here on
        for half in slice(0, BATCH // 2), slice(BATCH // 2, BATCH):
            ab.copy(self.x[half], self.batch[half], stream=self.upload)
            self.compute.wait_event(self.upload.record_event())  # for this half only
            layer(self.x[half], first, self.one[half], stream=self.compute)
        layer(self.one, second, self.two, stream=self.compute)
        layer(self.two, third, self.one, stream=self.compute)
        with ab.fork(2, stream=self.compute) as branches:
            for branch, head, output, answer in zip(branches, heads, self.outputs, self.answers, strict=True):
                layer(self.one, head, output, relu=False, stream=branch)
                ab.copy(answer, output, stream=branch)

    def capture(self):
        """Capture the same as a graph."""
        with ab.capture(self.compute) as graph:
            self.enqueue()
        return graph

    def take(self, answers):
        """Wait for the answers, and add them to a list."""
        self.compute.synchronize()  # has joined what copies them
        found = []
        for answer in self.answers:
            with answer.host() as values:
                found.append(values.copy())
        answers.append(found)


def answer_all(batches, lanes, start):
    """Send the batches through the lanes; return the answers, the batches per second and the host's time per batch."""
    answers, waiting, calls = [], [], 0.0
    begin = time.perf_counter()
    for number, batch in enumerate(batches):
        lane = lanes[number % len(lanes)]
        if len(waiting) == len(lanes):
            waiting.pop(0).take(answers)
        with lane.batch.host(write=True) as values:
            values[:] = batch
        called = time.perf_counter()
        start(lane)
        calls += time.perf_counter() - called
        waiting.append(lane)
    for lane in waiting:
        lane.take(answers)
    return answers, len(batches) / (time.perf_counter() - begin), 1e6 * calls / len(batches)


def check(answers, expected):
    """Compare with what NumPy has computed."""
    for found, right in zip(answers, expected, strict=True):
        for one, other in zip(found, right, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def main():
    """Answer the same batches by calls and by graphs."""
    random = np.random.default_rng(0)
    network = Network(random)
    batches = random.normal(size=(300, BATCH, INPUTS)).astype("float32")
    expected = [network.expected(batch) for batch in batches]

    lanes = [Lane(network, f"lane {number}") for number in range(2)]
    graphs = {lane: lane.capture() for lane in lanes}
    ways = {"calls": Lane.enqueue, "graph": lambda lane: graphs[lane].launch(lane.compute)}

    kinds = [node.kind for node in graphs[lanes[0]].nodes]
    print(f"a batch on {ab.current_device().alias}: {kinds.count('copy')} copies, {kinds.count('kernel')} kernels")
    print(f"{'':8}{'batches/s':>12}{'speed':>9}{'host µs per batch':>20}")
    best = {}
    for name, start in ways.items():
        answer_all(batches[:2], lanes, start)  # compiles the kernels
        answers, *best[name] = max((answer_all(batches, lanes, start) for _ in range(5)), key=lambda each: each[1])
        check(answers, expected)
        rate, calls = best[name]
        print(f"{name:8}{rate:12.0f}{rate / best['calls'][0]:8.2f}x{calls:20.1f}")


if __name__ == "__main__":
    main()
