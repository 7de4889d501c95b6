"""One rank explores programs with collectives: a wait that is missing is found, and that there is none proven."""

import numpy as np

import anabranch as ab

comm = ab.distributed.init()
kinds = {
    "all_reduce": lambda x, y, s: comm.all_reduce(x, out=y, stream=s),
    "all_gather": lambda x, y, s: comm.all_gather(y.reshape(1, 4), x, stream=s),
    "reduce_scatter": lambda x, y, s: comm.reduce_scatter(y, x, stream=s),
    "all_to_all": lambda x, y, s: comm.all_to_all(y, x, stream=s),
    "gather": lambda x, y, s: comm.gather(y, x, stream=s),
    "scatter": lambda x, y, s: comm.scatter(y, x, stream=s),
    "reduce": lambda x, y, s: comm.reduce(x, out=y, stream=s),
}


def messages(x, y, stream):
    with comm.group():
        comm.send(x, 0, stream=stream)
        comm.recv(y, 0, stream=stream)


kinds["messages"] = messages


def program(call, waits):
    def run():
        x, y = ab.zeros(4), ab.zeros(4)
        first, second = ab.Stream(name="first"), ab.Stream(name="second")
        ab.synchronize()
        with ab.hazards("off"):
            ab.fill(x, 3, stream=first)
            if waits:
                second.wait_stream(first)
            call(x, y, second)
            second.synchronize()
            first.synchronize()
        assert np.array_equal(y.numpy(), [3, 3, 3, 3])

    return run


for name, call in kinds.items():
    right = ab.testing.explore(program(call, True))
    assert (right.ok, right.complete) == (True, True), (name, right)
    wrong = ab.testing.explore(program(call, False))
    assert not wrong.ok, (name, wrong)


def in_place():
    x = ab.zeros(4)
    first, second = ab.Stream(), ab.Stream()
    ab.fill(x, 1, stream=first)
    comm.all_reduce(x, stream=second)
    comm.barrier(stream=first)
    comm.broadcast(x[::2], stream=first)
    ab.fill(x, 2, stream=second)
    assert x.numpy().tolist() == [2.0] * 4


def reshaped():
    x, y = ab.ones(6), ab.zeros((2, 3))
    with comm.group():
        comm.send(x, 0)
        comm.recv(y, 0)
    assert y.numpy().tolist() == [[1.0] * 3] * 2


report = ab.testing.explore(reshaped)
assert (report.ok, report.complete) == (True, True), report


def unsent():
    with comm.group():
        comm.recv(ab.zeros(4), 0)


report = ab.testing.explore(unsent)
assert not report.ok
assert "has no send in its group" in str(report), report

report = ab.testing.explore(in_place)  # hazards order it
assert (report.ok, report.complete) == (True, True), report
print("fine")
