"""Collectives between real GPUs, each against NumPy: SEED."""

import sys
from functools import reduce

import numpy as np

import anabranch as ab

(seed,) = map(int, sys.argv[1:])
comm = ab.distributed.init(timeout=60)
assert comm.backend == "nccl", comm.backend
assert comm.device.kind == "cuda"
rank, size = comm.rank, comm.size
streams = [ab.Stream(comm.device) for _ in range(3)]
rng = np.random.default_rng(seed)  # the same on every rank
VERBS = ("all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter", "ring")
UFUNCS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}


def values(number, length, dtype):
    """Return what each rank has."""
    return [np.random.default_rng((seed, number, each)).integers(0, 4, length).astype(dtype) for each in range(size)]


def on_device(content, stream, step):
    """Return an array with this content, a view with gaps if `step` is not 1."""
    base = ab.zeros(content.size * abs(step), content.dtype, stream=stream)
    ab.copy(base[::step], ab.array(content, stream=stream), stream=stream)
    return base[::step]


def same(got, expected):
    np.testing.assert_array_equal(got.numpy(), expected)


for number in range(60):
    verb = VERBS[number % len(VERBS)]
    dtype = str(rng.choice(["int32", "float32", "float64", "uint8", "int64"]))
    op = str(rng.choice(list(UFUNCS)))
    length, step, root = int(rng.integers(1, 2000)), int(rng.choice([1, 1, 2, -1])), int(rng.integers(size))
    stream = streams[int(rng.integers(3))]
    each = values(number, length, dtype)
    total = reduce(UFUNCS[op], each).astype(dtype)
    mine = on_device(each[rank], stream, step)
    whole = [np.concatenate([one, one + 1] * size)[: length * size] for one in each]
    part = slice(rank * length, (rank + 1) * length)
    large = on_device(whole[rank], stream, step)
    out, out_large = (ab.empty(count, dtype, device=comm.device, stream=stream) for count in (length, length * size))
    match verb:
        case "all_reduce":
            comm.all_reduce(mine, op, stream=stream)
            same(mine, total)
        case "reduce":
            comm.reduce(mine, op, root=root, stream=stream)
            if rank == root:
                same(mine, total)
        case "broadcast":
            comm.broadcast(mine, root=root, stream=stream)
            same(mine, each[root])
        case "all_gather":
            comm.all_gather(out_large, mine, stream=stream)
            same(out_large, np.concatenate(each))
        case "reduce_scatter":
            comm.reduce_scatter(out, large, op, stream=stream)
            same(out, reduce(UFUNCS[op], whole)[part].astype(dtype))
        case "all_to_all":
            comm.all_to_all(out_large, large, stream=stream)
            same(out_large, np.concatenate([one[part] for one in whole]))
        case "gather":
            comm.gather(out_large if rank == root else None, mine, root=root, stream=stream)
            if rank == root:
                same(out_large, np.concatenate(each))
        case "scatter":
            comm.scatter(out, large if rank == root else None, root=root, stream=stream)
            same(out, whole[root][part])
        case _:
            with comm.group():
                comm.send(mine, (rank + 1) % size, stream=stream)
                comm.recv(out, (rank - 1) % size, stream=stream)
            same(out, each[(rank - 1) % size])

# Hazards order what other streams do with the array.
x = ab.full(1 << 20, 1.0, device=comm.device, stream=streams[0])
for turn in range(20):
    comm.all_reduce(x, "max", stream=streams[turn % 3])
    ab.fill(x, float(turn), stream=streams[(turn + 1) % 3])
comm.all_reduce(x, stream=streams[2])
same(x, np.full(1 << 20, 19.0 * size, "float32"))

# A stream that holds work, behind which the calls of other streams wait, too.
gate = ab.testing.Gate(streams[0])
ab.fill(x, 1.0 + rank, stream=streams[0])
comm.all_reduce(x, stream=streams[0])
z = ab.full(8, float(rank), device=comm.device, stream=streams[1])
comm.all_reduce(z, stream=streams[1])
gate.open()
same(x, np.full(1 << 20, sum(1.0 + each for each in range(size)), "float32"))
same(z, np.full(8, sum(range(size)), "float32"))

# Graphs, beside calls outside of them.
with ab.capture(streams[0]) as graph:
    ab.fill(x, 2.0 + rank, stream=streams[0])
    comm.all_reduce(x, stream=streams[0])
    comm.all_gather(ab.empty(8 * size, x.dtype, device=comm.device, stream=streams[0]), x[:8], stream=streams[0])
for _ in range(5):
    graph.launch(streams[0])
    comm.all_reduce(z, "max", stream=streams[1])
total = sum(2.0 + each for each in range(size))
same(x, np.full(1 << 20, total, "float32"))
graph.close()
ab.synchronize()

half = comm.split(rank % 2)
y = ab.full(8, float(rank), device=comm.device)
half.all_reduce(y)
same(y, np.full(8, sum(range(rank % 2, size, 2)), "float32"))
comm.barrier()
half.close()
comm.close()
print(f"{size} ranks are fine")
