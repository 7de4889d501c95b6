"""New arguments for graphs: `set_args`, `update`, `instance`."""

import gc

import pytest

import anabranch as ab

from ..accesses import ready
from .replays import assert_all, edges, give, replays_to


@ab.kernel
def scale(i, factor, x: ab.In, y: ab.Out):
    y[i] = factor * x[i]


@ab.kernel
def typed(i, x: ab.In["float32", 1], y: ab.Out["float32", 1]):  # noqa: F821
    y[i] = x[i]


def filling(array, *values):
    with ab.capture(ab.Stream(array.device)) as graph:
        for value in values:
            ab.fill(array, value)
    return graph


class Scaling:
    """A graph of one launch, with its arrays."""

    def __init__(self, device):
        self.stream, self.x, self.y, self.z = ab.Stream(device), ready(device), ready(device), ready(device)
        give(self.x, 1)
        with ab.capture(self.stream) as self.graph:
            ab.launch(scale, 8, 2.0, self.x, self.y)
        (self.node,) = self.graph.nodes


@pytest.fixture
def scaling(device):
    return Scaling(device)


@pytest.mark.numba
def test_arguments_are_those_of_the_launch_without_dim(scaling):
    scaling.graph.set_args(scaling.node, 5.0, scaling.x, scaling.z)
    scaling.graph.launch(scaling.stream)
    assert_all(scaling.y, 0)
    assert_all(scaling.z, 5)


@pytest.mark.numba
def test_queued_replays_keep_their_arguments(scaling):
    with ab.testing.Gate(scaling.stream):
        scaling.graph.launch(scaling.stream)
        scaling.graph.set_args(scaling.node, 5.0, scaling.x, scaling.z)
        scaling.graph.launch(scaling.stream)
        scaling.graph.set_args(scaling.node, 9.0, scaling.x, scaling.x)
    assert_all(scaling.y, 2)
    assert_all(scaling.z, 5)
    assert_all(scaling.x, 1)


@pytest.mark.numba
def test_queued_replays_keep_the_arrays_that_were_replaced(device, scaling):
    with ab.testing.Gate(scaling.stream):
        scaling.graph.launch(scaling.stream)
        old, result = scaling.x, scaling.y
        scaling.x = ready(device)
        scaling.graph.set_args(scaling.node, 5.0, scaling.x, scaling.z)
        old.close()
        others = [ab.full(8, -1, "float32", device=device) for _ in range(20)]
        gc.collect()
    scaling.stream.synchronize()
    assert_all(result, 2)
    assert len(others) == 20


@pytest.mark.numba
def test_new_arguments_need_no_new_instantiation(scaling):
    for factor in range(5):
        scaling.graph.set_args(scaling.node, float(factor), scaling.x, scaling.y)
        scaling.graph.launch(scaling.stream)
        assert_all(scaling.y, factor)
    assert (scaling.graph.instantiations, scaling.graph.replays) == (1, 5)


@pytest.mark.numba
def test_hazards_know_the_new_arguments(scaling, other):
    scaling.graph.set_args(scaling.node, 5.0, scaling.x, scaling.z)
    with ab.hazards("check"):
        scaling.graph.launch(scaling.stream)
        ab.fill(scaling.y, 3, stream=other)
        with pytest.raises(ab.RaceError):
            ab.fill(scaling.z, 3, stream=other)


@pytest.mark.numba
@pytest.mark.parametrize(
    ("error", "arguments"),
    [
        (TypeError, lambda s, there: (2.0, s.x)),
        (TypeError, lambda s, there: (2.0, s.x, s.y, s.z)),
        (TypeError, lambda s, there: (2.0, 1.0, s.y)),
        (TypeError, lambda s, there: (2.0, "x", s.y)),
        (ab.DeviceError, lambda s, there: (2.0, there, s.z)),
        (ab.DeviceError, lambda s, there: (2.0, s.x, there)),
    ],
    ids=["too few", "too many", "scalar for array", "no array", "wrong device", "wrong device to write"],
)
def test_wrong_arguments_leave_everything_as_it_was(scaling, other_device, error, arguments):
    there = ready(other_device)
    with pytest.raises(error):
        scaling.graph.set_args(scaling.node, *arguments(scaling, there))
    scaling.graph.launch(scaling.stream)
    assert_all(scaling.y, 2)
    assert_all(scaling.z, 0)
    assert scaling.graph.instantiations == 1


@pytest.mark.numba
def test_a_wrong_dtype_is_refused(device, x, y):
    with ab.capture(ab.Stream(device)) as graph:
        ab.launch(typed, 8, x, y)
    with pytest.raises(TypeError):
        graph.set_args(graph.nodes[0], ab.zeros(8, "int64", device=device), y)
    graph.launch()


@pytest.mark.numba
def test_a_closed_array_is_refused(device, scaling):
    closed = ready(device)
    closed.close()
    with pytest.raises(ab.ClosedError):
        scaling.graph.set_args(scaling.node, 2.0, closed, scaling.y)
    scaling.graph.launch(scaling.stream)
    assert_all(scaling.y, 2)


@pytest.mark.numba
def test_arrays_that_race_with_another_node_are_refused(device):
    stream, x, y, z, w = ab.Stream(device), *(ready(device) for _ in range(4))
    give(x, 1)
    with ab.capture(stream) as graph, ab.fork(2) as (a, b):
        ab.launch(scale, 8, 2.0, x, y, stream=a)
        ab.launch(scale, 8, 3.0, x, z, stream=b)
    assert edges(graph) == set()
    first, second = graph.nodes
    with pytest.raises(ValueError, match="order"):
        graph.set_args(first, 2.0, x, z)
    with pytest.raises(ValueError, match="order"):
        graph.set_args(first, 2.0, z, y)
    graph.launch(stream)
    assert_all(y, 2)
    assert_all(z, 3)
    graph.set_args(second, 3.0, x, w)
    graph.set_args(first, 7.0, x, z)
    graph.launch(stream)
    assert_all(z, 7)
    assert_all(w, 3)


@pytest.mark.numba
def test_arrays_of_a_node_that_is_in_order_may_be_shared(stream, x, y):
    give(x, 1)
    with ab.capture(stream) as graph:
        ab.launch(scale, 8, 2.0, x, y)
        ab.fill(x, 3)
        ab.fill(y, 4)
    graph.set_args(graph.nodes[0], 2.0, y, x)
    graph.launch(stream)
    assert_all(x, 3)
    assert_all(y, 4)


def test_a_node_that_is_no_launch_is_refused(device):
    graph = filling(ready(device), 1)
    with pytest.raises(ValueError, match="kernel"):
        graph.set_args(graph.nodes[0], 1)


def test_a_node_of_another_graph_is_refused(device):
    one, other = filling(ready(device), 1), filling(ready(device), 1)
    for wrong in other.nodes[0], one.instance().nodes[0], 0, None:
        with pytest.raises((ValueError, TypeError)):
            one.set_args(wrong)


@pytest.mark.numba
def test_instances_have_arguments_of_their_own(scaling):
    other = scaling.graph.instance()
    scaling.graph.set_args(scaling.node, 5.0, scaling.x, scaling.y)
    other.launch(scaling.stream)
    assert_all(scaling.y, 2)
    scaling.graph.launch(scaling.stream)
    assert_all(scaling.y, 5)
    (node,) = other.nodes
    other.set_args(node, 7.0, scaling.x, scaling.z)
    scaling.graph.launch(scaling.stream)
    assert_all(scaling.z, 0)


@pytest.mark.numba
def test_a_graph_within_keeps_the_arguments_that_it_had(scaling):
    with ab.capture(scaling.stream) as outer:
        scaling.graph.launch()
    scaling.graph.set_args(scaling.node, 5.0, scaling.x, scaling.z)
    outer.launch(scaling.stream)
    assert_all(scaling.y, 2)
    assert_all(scaling.z, 0)


@pytest.mark.numba
def test_arguments_may_be_set_from_other_threads(device, scaling, in_threads):
    def work(number):
        for _ in range(20):
            scaling.graph.set_args(scaling.node, float(number), scaling.x, scaling.y)
            scaling.graph.launch(scaling.stream)

    in_threads(3, work)
    assert scaling.y.numpy()[0] in (0, 1, 2)
    assert scaling.graph.replays == 60


# update


def test_an_update_of_the_same_structure_needs_no_new_instantiation(stream, array):
    graph = filling(array, 1, 2)
    for value in 3, 4, 5:
        graph.update(filling(array, 1, value))
        graph.launch(stream)
        assert_all(array, value)
    assert (graph.instantiations, graph.replays) == (1, 3)


def test_an_update_of_another_structure_instantiates_anew(stream, array):
    graph = filling(array, 1)
    graph.update(filling(array, 1, 2, 3))
    graph.launch(stream)
    assert_all(array, 3)
    assert len(graph.nodes) == 3
    assert edges(graph) == {(0, 1), (1, 2)}
    assert graph.instantiations == 2


def test_an_update_of_another_order_instantiates_anew(stream, x, y):
    def beside():
        with ab.capture(stream) as graph, ab.fork(2) as (a, b):
            ab.fill(x, 1, stream=a)
            ab.fill(y, 2, stream=b)
        return graph

    with ab.capture(stream) as graph:
        ab.fill(x, 3)
        ab.fill(y, 4)
    graph.update(beside())
    assert (graph.instantiations, edges(graph)) == (2, set())
    replays_to(graph, stream, [x, y], 1, 2)
    graph.update(beside())
    assert graph.instantiations == 2


def test_queued_replays_stay_what_they_are(stream, x, y):
    graph = filling(x, 1)
    with ab.testing.Gate(stream):
        graph.launch(stream)
        graph.update(filling(y, 2))
        graph.launch(stream)
        graph.update(filling(y, 3, 4))
        graph.launch(stream)
    assert_all(x, 1)
    assert_all(y, 4)


def test_the_other_graph_is_left_as_it_is(stream, x, y):
    graph, other = filling(x, 1), filling(y, 2)
    graph.update(other)
    graph.launch(stream)
    assert_all(y, 2)
    give(y, 0)
    other.launch(stream)
    assert_all(y, 2)
    other.close()
    give(y, 0)
    graph.launch(stream)
    assert_all(y, 2)
    assert_all(x, 0)


def test_hazards_know_what_the_graph_has_become(device):
    (a, b), x, y = (ab.Stream(device), ab.Stream(device)), ready(device), ready(device)
    graph = filling(x, 1)
    graph.update(filling(y, 2))
    with ab.hazards("check"):
        graph.launch(a)
        ab.fill(x, 3, stream=b)
        with pytest.raises(ab.RaceError):
            ab.fill(y, 3, stream=b)


def test_nodes_are_those_of_the_new_graph(array):
    graph = filling(array, 1)
    (old,) = graph.nodes
    graph.update(filling(array, 2))
    assert len(graph.edges) == 0
    assert graph.nodes[0] is not old


def test_a_graph_of_another_device_is_refused(other_device, array):
    graph = filling(array, 1)
    with pytest.raises(ab.DeviceError):
        graph.update(filling(ready(other_device), 2))
    graph.launch()
    assert_all(array, 1)


def test_what_is_no_graph_is_refused(device):
    graph = filling(ready(device), 1)
    for wrong in None, 1, graph.nodes[0]:
        with pytest.raises(TypeError):
            graph.update(wrong)


def test_a_graph_may_be_updated_by_itself(array):
    graph = filling(array, 1)
    graph.update(graph)
    graph.launch()
    assert_all(array, 1)


def test_host_functions_of_the_new_graph_are_called(device):
    stream, calls = ab.Stream(device), []
    graphs = []
    for name in "ab":
        with ab.capture(stream) as graph:
            stream.submit(calls.append, name)
        graphs.append(graph)
    graph, other = graphs
    with ab.testing.Gate(stream):
        graph.launch(stream)
        graph.update(other)
        graph.launch(stream)
        other.launch(stream)
    stream.synchronize()
    assert calls == ["a", "b", "b"]
