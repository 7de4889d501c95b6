"""Heat in a plate, step by step until it has settled: a loop that the device ends, as calls and as graphs.

The edges of the plate keep their temperature; inside, each step turns a cell into the mean of its four neighbours. Two
arrays take turns, now and after. At the end of each round of steps the largest change of the last one decides whether
there is another, and only the device knows it. The same function is run in three ways: as it stands, where the host
waits for the flag before each round; captured, where a replay loops by itself; and as a graphed function, which is
captured at its first call and replayed for other plates. They compute the same numbers, bit by bit.
"""

import time

import numpy as np

import anabranch as ab

TOLERANCE = 1e-4  # of a plate whose hot edge has 1: the change in a step at which it counts as settled
STEPS = 10  # of each round


@ab.kernel
def spread(index, now: ab.In, after: ab.InOut):
    """Turn a cell inside the plate into the mean of its neighbours; the edges of `after` stay what they are."""
    row, column = index[0] + 1, index[1] + 1
    above, below = now[row - 1, column], now[row + 1, column]
    after[row, column] = 0.25 * (above + below + now[row, column - 1] + now[row, column + 1])


@ab.kernel
def compare(row, now: ab.In, after: ab.In, change: ab.InOut):
    """Find the largest change of a row, and let it count if no other row has a larger one."""
    largest = 0.0
    for column in range(now.shape[1]):
        largest = max(largest, abs(after[row, column] - now[row, column]))
    ab.atomic_max(change, 0, largest)


@ab.kernel
def decide(_, tolerance, change: ab.In, rounds: ab.InOut, again: ab.Out):
    """Count the round, and say whether there is another."""
    rounds[0] += 1
    again[0] = 1 if change[0] > tolerance else 0


def settle(plate, other, change, rounds, again):
    """Enqueue steps until the plate has settled. `other` has the same edges."""
    height, width = plate.shape
    inside = (height - 2, width - 2)

    def one_round():
        for _ in range(STEPS // 2):
            ab.launch(spread, inside, plate, other)
            ab.launch(spread, inside, other, plate)
        ab.fill(change, 0)
        ab.launch(compare, height, other, plate, change)
        ab.launch(decide, 1, TOLERANCE, change, rounds, again)

    ab.fill(rounds, 0)
    ab.fill(again, 1)
    ab.run_while(again, one_round)


def plate_of(n, hot):
    """Return the arrays of a plate with one hot edge."""
    start = np.zeros((n, n))
    start[0] = hot
    plate, other = ab.array(start), ab.array(start)
    return plate, other, ab.empty(1, "float64"), ab.empty(1, "int64"), ab.empty(1, "int32")


def measure(run, plate, start, repeat=3):
    """Run from the start a few times; return the milliseconds, the temperatures and the rounds."""
    best = float("inf")
    for _ in range(repeat):
        for array in plate[:2]:
            ab.copy(array, start)
        ab.synchronize()
        begin = time.perf_counter()
        run()
        ab.synchronize()
        best = min(best, time.perf_counter() - begin)
    return 1000 * best, plate[0].numpy(), int(plate[3].numpy()[0])


def expected(start, rounds):
    """Return what so many rounds come to, computed by NumPy."""
    plate = start.copy()
    for _ in range(STEPS * rounds):
        plate[1:-1, 1:-1] = 0.25 * (plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:])
    return plate


def main():
    """Settle a plate in three ways, and one more plate with the graph of the first."""
    n = 66
    plate = plate_of(n, hot=1.0)
    start = ab.array(plate[0].numpy())
    settle(*plate)  # compiles the kernels

    with ab.capture() as graph:
        settle(*plate)  # nothing runs: the graph has the loop, and the loop the round
    graphed = ab.graphed(settle)

    ways = {
        "calls": lambda: settle(*plate),
        "graph": graph.launch,
        "graphed": lambda: graphed(*plate),
    }
    results = {name: measure(run, plate, start) for name, run in ways.items()}

    calls, temperatures, rounds = results["calls"]
    np.testing.assert_allclose(temperatures, expected(start.numpy(), rounds), rtol=1e-10, atol=1e-12)
    print(f"{n} x {n} cells on {ab.current_device().alias}: settled after {rounds * STEPS} steps")
    print(f"{'':8}{'ms':>10}{'speed':>9}")
    for name, (milliseconds, found, count) in results.items():
        assert count == rounds
        assert np.array_equal(found, temperatures)
        print(f"{name:8}{milliseconds:10.2f}{calls / milliseconds:8.2f}x")

    # A plate of the same size and twice the temperature: no other capture, and a loop that takes other rounds.
    warmer = plate_of(n, hot=2.0)
    graphed(*warmer)
    assert graphed.graphs == 1
    assert warmer[3].numpy()[0] > rounds
    print(f"twice as warm, by the same graph: {warmer[3].numpy()[0] * STEPS} steps")


if __name__ == "__main__":
    main()
