"""Heat in a plate that several processes share: what neighbours need travels while each computes what nobody needs.

The plate is cut into bands of rows, one for each rank, with a row of the neighbour above and of the one below around
it. In each step the border rows are computed and sent on one stream, while another computes the inside of the band. In
the first version nothing waits explicitly: hazards put the streams in order. In the second, events do. Both give the
same numbers as one process, bit by bit.

Run it with ``mpiexec -n 4 python examples/heat_distributed.py``, or as it is, for one rank. It saves the timeline of
all ranks, in ``heat_distributed.html`` or in the file that an argument names.
"""

import sys

import numpy as np

import anabranch as ab

ROWS, COLUMNS, STEPS = 2048, 2048, 12


@ab.kernel
def spread(index, now: ab.In, after: ab.InOut):
    """Turn a cell into the mean of its neighbours; `now` has a row more than `after` above and below."""
    row, column = index[0] + 1, index[1] + 1
    above, below = now[row - 1, column], now[row + 1, column]
    after[row - 1, column] = 0.25 * (above + below + now[row, column - 1] + now[row, column + 1])


def start_of(first, last):
    """Return the rows from `first` to before `last` of the plate at the beginning: one hot edge, one warm spot."""
    plate = np.zeros((ROWS + 2, COLUMNS))
    plate[0] = 1.0
    plate[ROWS // 2 : ROWS // 2 + 8, 100:200] = 3.0
    return plate[first:last]


class Band:
    """The rows of one rank, twice, with a row of each neighbour; and the two streams."""

    def __init__(self, comm):
        self.comm = comm
        self.first = comm.rank * ROWS // comm.size
        self.height = (comm.rank + 1) * ROWS // comm.size - self.first
        rows = start_of(self.first, self.first + self.height + 2)
        self.plates = ab.array(rows), ab.array(rows)
        self.inner, self.border = ab.Stream(name="inner"), ab.Stream(name="border", priority=-1)
        ab.synchronize()

    def compute(self, stream, now, after, first, last):
        """Compute the rows from `first` to before `last`. The views tell hazards which rows that reads and writes."""
        ab.launch(spread, (last - first, COLUMNS - 2), now[first - 1 : last + 1], after[first:last], stream=stream)

    def exchange(self, after):
        """Send the border rows, and receive those of the neighbours, as one operation of the border stream."""
        comm, last = self.comm, self.height
        with comm.group():
            for neighbour, own, theirs in ((comm.rank - 1, 1, 0), (comm.rank + 1, last, last + 1)):
                if 0 <= neighbour < comm.size:
                    comm.send(after[own], neighbour, stream=self.border)
                    comm.recv(after[theirs], neighbour, stream=self.border)

    def step(self, now, after):
        """Enqueue a step. What waits for what follows from what each operation reads and writes."""
        self.compute(self.border, now, after, 1, 2)
        self.compute(self.border, now, after, self.height, self.height + 1)
        self.exchange(after)
        self.compute(self.inner, now, after, 2, self.height)

    def step_with_events(self, now, after):
        """Enqueue the same, with explicit waits: each stream waits for what the other did in the step before."""
        inner, border = self.inner.record_event(), self.border.record_event()
        self.border.wait_event(inner)
        self.inner.wait_event(border)
        self.step(now, after)

    def run(self, step):
        """Return the rows of this rank after all steps."""
        for plate in self.plates:
            ab.copy(plate, ab.array(start_of(self.first, self.first + self.height + 2)))
        ab.synchronize()
        now, after = self.plates
        for _ in range(STEPS):
            step(now, after)
            now, after = after, now
        return now.numpy()[1:-1]


def expected():
    """Return the plate after all steps, computed by NumPy."""
    plate = start_of(0, ROWS + 2).copy()
    for _ in range(STEPS):
        above, below = plate[:-2, 1:-1], plate[2:, 1:-1]
        plate[1:-1, 1:-1] = 0.25 * (above + below + plate[1:-1, :-2] + plate[1:-1, 2:])
    return plate[1:-1]


def hidden(trace):
    """Return the share of the exchanges' time in which kernels of the inside ran."""
    kernels = [each for each in trace.operations if each.kind == "kernel" and each.stream.name == "inner"]
    spans = [(each.begin, each.end) for each in kernels]
    exchanges = [each for each in trace.operations if each.kind == "collective"]
    covered = sum(
        max(0.0, min(end, exchange.end) - max(begin, exchange.begin)) for exchange in exchanges for begin, end in spans
    )
    return covered / (sum(exchange.end - exchange.begin for exchange in exchanges) or 1.0)


def main(timeline="heat_distributed.html"):
    """Run both versions on all ranks, compare them, and show how much of the exchange was hidden."""
    with ab.distributed.init() as comm:
        band = Band(comm)
        with ab.hazards("auto"):
            band.run(band.step)  # compiles the kernel
            with ab.trace() as trace:
                ordered = band.run(band.step)
        with ab.hazards("check"):  # an exchange without an event would be an error here
            explicit = band.run(band.step_with_events)
        assert np.array_equal(ordered, explicit)
        assert np.array_equal(ordered, expected()[band.first : band.first + band.height])

        share = ab.full(1, hidden(trace))
        comm.all_reduce(share, "avg")
        if comm.rank == 0:
            print(f"{ROWS} x {COLUMNS} cells on {comm.size} ranks: {share.numpy()[0]:.0%} of the exchange was hidden")
        trace.save(timeline, comm=comm)


if __name__ == "__main__":
    main(*sys.argv[1:])
