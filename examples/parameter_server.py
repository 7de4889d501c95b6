"""A parameter server, under every order in which its workers can be done.

Each worker pulls the parameters, computes a gradient, and pushes it. The server asks who is done, and applies what has
come; if nobody is, it waits for the one that has been at it for longest. So the result depends on who is faster, and
may differ from run to run. What must hold in each of them: no gradient is lost or applied twice, and nobody reads what
another one is writing. Exploration runs the program once for each way in which that can go: a query is answered with
both True and False wherever both are possible.
"""

import numpy as np

import anabranch as ab

TARGETS = [[1.0, 5.0], [3.0, -1.0]]  # where each worker's data would have the two parameters
ROUNDS = 2  # of each worker
RATE = 0.25


@ab.kernel
def find_gradient(i, target, parameters: ab.In, gradient: ab.Out):
    """Compute how far a parameter is from where this worker's data would have it."""
    gradient[i] = target - parameters[i]


@ab.kernel
def apply(i, rate, gradient: ab.In, parameters: ab.InOut):
    """Take a step along a gradient."""
    parameters[i] += rate * gradient[i]


class Worker:
    """A stream, and what goes through it."""

    def __init__(self, number, targets):
        self.name, self.targets, self.rounds = f"worker {number}", targets, ROUNDS
        self.stream = ab.Stream("cpu", name=self.name)
        self.pulled, self.gradient = (ab.empty(2, "float64", stream=self.stream) for _ in range(2))
        self.done = ab.Event(device="cpu")

    def begin(self, server, parameters):
        """Pull the parameters as the server has them by then, and compute a gradient."""
        self.rounds -= 1
        server.wait_stream(self.stream)
        ab.copy(self.pulled, parameters, stream=server)
        self.stream.wait_stream(server)
        for i, target in enumerate(self.targets):
            part = slice(i, i + 1)
            ab.launch(find_gradient, 1, target, self.pulled[part], self.gradient[part], stream=self.stream)
        self.stream.record_event(self.done)


def train():
    """Return the parameters, and whose gradients were applied one after the other."""
    server = ab.Stream("cpu", name="server")
    parameters = ab.zeros(2, "float64", stream=server)
    busy = [Worker(number, targets) for number, targets in enumerate(TARGETS)]
    for worker in busy:
        worker.begin(server, parameters)
    applied = []
    while busy:
        for worker in [worker for worker in busy if worker.done.query()] or busy[:1]:
            server.wait_event(worker.done)
            ab.launch(apply, 2, RATE, worker.gradient, parameters, stream=server)
            applied.append(worker.name)
            busy.remove(worker)
            if worker.rounds:
                worker.begin(server, parameters)
                busy.append(worker)
    return parameters.numpy(), applied


seen = set()


def program():
    """Train once, and check what holds whoever is faster."""
    with ab.hazards("off"):
        parameters, applied = train()
    seen.add((*applied, *parameters))
    assert sorted(applied) == sorted(f"worker {number}" for number in range(len(TARGETS)) for _ in range(ROUNDS))
    lowest, highest = np.min(TARGETS, axis=0), np.max(TARGETS, axis=0)
    assert np.all(np.minimum(lowest, 0) <= parameters)
    assert np.all(parameters <= np.maximum(highest, 0))


report = ab.testing.explore(program)
print(report)
assert report.ok
assert report.complete
assert len(seen) > 1
print(f"{report.classes} classes of schedules, which end in {len(seen)} different ways: no gradient is lost in any")
