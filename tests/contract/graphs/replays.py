"""What the tests of graphs share."""

import inspect

import numpy as np

import anabranch as ab

SIZE = 8


def here():
    """Return the line that calls this."""
    return inspect.currentframe().f_back.f_lineno


def line_raised_at(caught):
    """Return the line of the test at which an error was raised."""
    return caught.traceback[0].lineno + 1


def kinds(graph):
    return [node.kind for node in graph.nodes]


def edges(graph):
    """Return the order as pairs of numbers, which are those of the operations as they were captured."""
    return {(before.index, after.index) for before, after in graph.edges}


def assert_edges(graph, expected):
    """The order is as written down, such as `0>1 0>2`."""
    assert edges(graph) == {tuple(map(int, pair.split(">"))) for pair in expected.split()}


def replays(graph, program, expected):
    """Launch the graph of a program, and look at what is in its arrays then, as written down: `x=1 y=2`."""
    graph.launch(program.stream("a"))
    for name, value in (each.split("=") for each in expected.split()):
        assert_all(program.arrays[name], int(value))


def joined(device, stream, count):
    """Make streams that wait for a captured one, and so are captured."""
    made = [ab.Stream(device) for _ in range(count)]
    for one in made:
        one.wait_stream(stream)
    return made


def give(array, value):
    """Set an array, and wait until it is."""
    stream = ab.Stream(array.device)
    ab.fill(array, value, stream=stream)
    stream.synchronize()


def assert_all(array, value):
    np.testing.assert_array_equal(array.numpy(), np.full(array.shape, value, array.dtype))


def replays_to(graph, stream, arrays, *expected):
    """Launch a graph and look at what is in the arrays then."""
    graph.launch(stream)
    for array, value in zip(arrays, expected, strict=True):
        assert_all(array, value)
