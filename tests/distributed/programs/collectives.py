"""Random collectives on random streams, each against NumPy: SEED BATCHES."""

import sys
from functools import reduce

import numpy as np

import anabranch as ab

seed, batches = map(int, sys.argv[1:])
comm = ab.distributed.init(timeout=60)
streams = [ab.Stream(name=f"s{number}") for number in range(3)]
assert (comm.backend, comm.device, comm.closed) == ("mpi", ab.Device("cpu"), False)
assert 0 <= comm.local_rank < comm.local_size <= comm.size

DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64")
MOVED = (*DTYPES, "float16", "complex64", "complex128")
UFUNCS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}


def values(rank, number, shape, dtype):
    made = np.random.default_rng((seed, number, rank)).integers(0, 4, shape)
    return made.astype(dtype)


def strided(rng, content):
    """Return an array with this content that may be a view with gaps or with negative strides."""
    if content.ndim == 0 or rng.random() < 0.5:
        return ab.array(content)
    step = int(rng.choice([-2, -1, 2, 3]))
    base = ab.zeros((content.shape[0] * abs(step), *content.shape[1:]), content.dtype)
    view = base[::step]
    ab.copy(view, ab.array(content))
    return view


def some_reduction(rng):
    op = str(rng.choice(["sum", "prod", "min", "max", "avg"]))
    if op == "avg":
        return op, str(rng.choice(["float32", "float64", "complex64", "complex128"]))
    return op, str(rng.choice([*DTYPES, *(("complex64", "complex128") if op in ("sum", "prod") else ())]))


def reduced(op, all_values):
    if op == "avg":
        return reduce(np.add, all_values) / np.array(comm.size, all_values[0].real.dtype)
    return reduce(UFUNCS[op], all_values)


class Round:
    """One collective: what it is, the same on every rank; what it makes; what that has to be."""

    def __init__(self, number):
        rng = np.random.default_rng((seed, number))
        self.number, self.size = number, comm.size
        self.verb = str(rng.choice(VERBS))
        self.op, self.dtype = some_reduction(rng)
        if "reduce" not in self.verb:
            self.dtype = str(rng.choice(MOVED))
        self.shape = tuple(int(n) for n in rng.integers(1, 9, int(rng.integers(0, 4))))
        if rng.random() < 0.1:
            self.shape = (int(rng.integers(10_000, 100_000)),)
        self.root = int(rng.integers(comm.size))
        self.stream = streams[int(rng.integers(len(streams)))]
        self.gated = int(rng.integers(comm.size)) if rng.random() < 0.3 else None
        self.own = np.random.default_rng((seed, number, comm.rank, 1))
        self.result = self.expected = None

    def input(self, shape=None):
        return [
            values(rank, self.number, self.shape if shape is None else shape, self.dtype) for rank in range(comm.size)
        ]

    def output(self, shape):
        return strided(self.own, np.zeros(shape, self.dtype))

    def expect(self, result, expected):
        self.result, self.expected = result, expected

    def check(self):
        if self.result is not None:
            np.testing.assert_allclose(self.result.numpy(), self.expected, rtol=1e-6, err_msg=str(vars(self)))

    def all_reduce(self):
        inputs = self.input()
        x = strided(self.own, inputs[comm.rank])
        out = self.output(self.shape) if self.own.random() < 0.5 else None
        comm.all_reduce(x, self.op, out, stream=self.stream)
        self.expect(x if out is None else out, reduced(self.op, inputs))

    def reduce(self):
        inputs = self.input()
        x = strided(self.own, inputs[comm.rank])
        out = self.output(self.shape) if self.own.random() < 0.5 else None
        comm.reduce(x, self.op, self.root, out, stream=self.stream)
        if comm.rank == self.root:
            self.expect(x if out is None else out, reduced(self.op, inputs))
        else:
            self.expect(x, inputs[comm.rank])

    def broadcast(self):
        inputs = self.input()
        x = strided(self.own, inputs[comm.rank])
        comm.broadcast(x, self.root, stream=self.stream)
        self.expect(x, inputs[self.root])

    def all_gather(self):
        inputs = self.input()
        out = self.output((comm.size, *self.shape))
        if self.own.random() < 0.3:
            x = out[comm.rank]  # shares its memory
            ab.copy(x, ab.array(inputs[comm.rank]))
        else:
            x = strided(self.own, inputs[comm.rank])
        comm.all_gather(out, x, stream=self.stream)
        self.expect(out, np.stack(inputs))

    def reduce_scatter(self):
        inputs = self.input((comm.size, *self.shape))
        out = self.output(self.shape)
        comm.reduce_scatter(out, strided(self.own, inputs[comm.rank]), self.op, stream=self.stream)
        self.expect(out, reduced(self.op, inputs)[comm.rank])

    def all_to_all(self):
        inputs = self.input((comm.size, *self.shape))
        out = self.output((comm.size, *self.shape))
        comm.all_to_all(out, strided(self.own, inputs[comm.rank]), stream=self.stream)
        self.expect(out, np.stack([each[comm.rank] for each in inputs]))

    def gather(self):
        inputs = self.input()
        out = self.output((comm.size, *self.shape)) if comm.rank == self.root else None
        comm.gather(out, strided(self.own, inputs[comm.rank]), self.root, stream=self.stream)
        if out is not None:
            self.expect(out, np.stack(inputs))

    def scatter(self):
        content = values(self.root, self.number, (comm.size, *self.shape), self.dtype)
        out = self.output(self.shape)
        x = strided(self.own, content) if comm.rank == self.root else None
        comm.scatter(out, x, self.root, stream=self.stream)
        self.expect(out, content[comm.rank])

    def messages(self):
        inputs = self.input()
        out = self.output(self.shape)
        step = self.number % comm.size
        with comm.group():
            comm.send(strided(self.own, inputs[comm.rank]), (comm.rank + step) % comm.size, stream=self.stream)
            comm.recv(out, (comm.rank - step) % comm.size, stream=self.stream)
        self.expect(out, inputs[(comm.rank - step) % comm.size])

    def barrier(self):
        comm.barrier(stream=self.stream)


VERBS = [
    name for name in vars(Round) if name not in ("input", "output", "expect", "check") and not name.startswith("_")
]

done = set()
for batch in range(batches):
    gates, rounds = [], [Round(batch * 8 + number) for number in range(8)]
    for each in rounds:
        if each.gated == comm.rank:
            gates.append(ab.testing.Gate(each.stream))
        getattr(each, each.verb)()
        done.add(each.verb)
    for gate in gates:
        gate.open()
    for each in rounds:
        each.check()
print(sorted(done))
