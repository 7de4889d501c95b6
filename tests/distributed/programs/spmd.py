"""A random program of collectives, kernels, fills and copies under "auto", against its simulation: SEED STEPS."""

import sys

import numpy as np

import anabranch as ab

seed, steps = map(int, sys.argv[1:])
comm = ab.distributed.init(timeout=60)
other = comm.split(0, -comm.rank)  # the same ranks, the other way round
streams = [ab.Stream() for _ in range(4)]
n = 48


@ab.kernel
def combine(i, factor, x: ab.In, y: ab.InOut):
    y[i] = factor * x[i] + y[i]


arrays = [ab.array(np.arange(n, dtype="int64") + 100 * comm.rank + which) for which in range(5)]
model = [[np.arange(n, dtype="int64") + 100 * rank + which for which in range(5)] for rank in range(comm.size)]
rng = np.random.default_rng(seed)
own = slice(n // comm.size)  # a rank's part of what all have together
order = {comm: range(comm.size), other: range(comm.size)[::-1]}  # of the ranks in each communicator


def of(which, part):
    return arrays[which][part]


for _ in range(steps):
    kind = rng.choice(
        ["reduce", "broadcast", "kernel", "copy", "fill", "shift", "all_gather", "all_to_all", "reduce_scatter"]
    )
    stream = streams[int(rng.integers(4))]
    a, b = (int(which) for which in rng.choice(5, 2, replace=False))
    low = int(rng.integers(0, n - 8))
    part = slice(low, int(rng.integers(low + 1, n)), int(rng.integers(1, 3)))
    root, used = int(rng.integers(comm.size)), comm if rng.random() < 0.7 else other
    if kind == "reduce":
        used.all_reduce(of(a, part), "sum", of(b, part), stream=stream)
        total = sum(mine[a][part] for mine in model)
        for mine in model:
            mine[b][part] = total
    elif kind == "broadcast":
        comm.broadcast(of(a, part), root, stream=stream)
        sent = model[root][a][part].copy()
        for mine in model:
            mine[a][part] = sent
    elif kind == "kernel":
        ab.launch(combine, len(range(*part.indices(n))), 3, of(a, part), of(b, part), stream=stream)
        for mine in model:
            mine[b][part] = 3 * mine[a][part] + mine[b][part]
    elif kind == "copy":
        ab.copy(of(b, part), of(a, part), stream=stream)
        for mine in model:
            mine[b][part] = mine[a][part]
    elif kind == "fill":
        value = int(rng.integers(100))
        ab.fill(of(a, part), value, stream=stream)
        for mine in model:
            mine[a][part] = value
    elif kind == "all_gather":
        used.all_gather(arrays[b], of(a, own), stream=stream)
        gathered = np.concatenate([model[rank][a][own] for rank in order[used]])
        for mine in model:
            mine[b][:] = gathered
    elif kind == "all_to_all":
        used.all_to_all(arrays[b], arrays[a], stream=stream)
        sent = [model[rank][a].reshape(comm.size, -1) for rank in order[used]]
        for place, rank in enumerate(order[used]):
            model[rank][b][:] = np.concatenate([theirs[place] for theirs in sent])
    elif kind == "reduce_scatter":
        used.reduce_scatter(of(b, own), arrays[a], stream=stream)
        total = sum(mine[a] for mine in model).reshape(comm.size, -1)
        for place, rank in enumerate(order[used]):
            model[rank][b][own] = total[place]
    else:
        with comm.group():
            comm.send(of(a, part), (comm.rank + 1) % comm.size, stream=stream)
            comm.recv(of(b, part), (comm.rank - 1) % comm.size, stream=stream)
        sent = [mine[a][part].copy() for mine in model]
        for rank, mine in enumerate(model):
            mine[b][part] = sent[rank - 1]

for array, expected in zip(arrays, model[comm.rank], strict=True):
    np.testing.assert_array_equal(array.numpy(), expected)
print("equal")
