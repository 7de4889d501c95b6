"""Operations with arrays are operations of a stream: in order, in captures, under every hazard mode."""

import re

import numpy as np
import pytest

import anabranch as ab

pytestmark = pytest.mark.numba


def compute(x, y):
    """Use each form of operation once."""
    z = x * 2 + y
    z -= 1
    return ab.where(z > y, z, -y).sum(), z.max(axis=0), z == x


def expected(x, y):
    z = x * 2 + y - 1
    return np.where(z > y, z, -y).sum(), z.max(axis=0), z == x


def check(results, x, y):
    for result, value in zip(results, expected(x, y), strict=True):
        np.testing.assert_allclose(result.numpy(), value, rtol=1e-6)


X, Y = np.arange(12, dtype="float32").reshape(3, 4), np.linspace(-9, 9, 4, dtype="float32")


@pytest.fixture(autouse=True, scope="module")
def compiled():
    """Compile the kernels before a gate holds anything."""
    compute(ab.array(X), ab.array(Y))


def test_operations_wait_for_their_stream(stream):
    x, y = ab.array(X), ab.array(Y)
    with ab.testing.Gate(stream), stream:
        results = compute(x, y)
        total = x.sum(stream=stream)
        assert not stream.query()
    check(results, X, Y)
    assert total.numpy() == X.sum()


def test_a_stream_may_be_named(stream, device):
    x = ab.array(X)
    ab.current_stream(device).synchronize()
    with ab.testing.Gate(stream):
        chosen = ab.where(x, x, 1, stream=stream)
        counted = ab.arange(5, stream=stream)
        assert not stream.query()
        ab.current_stream(device).synchronize()  # it does not wait for the gate
    np.testing.assert_array_equal(chosen.numpy(), np.where(X, X, 1))
    np.testing.assert_array_equal(counted.numpy(), range(5))


def test_missing_order_is_added(a, b):
    x, y = ab.array(X), ab.array(Y)
    gate = ab.testing.Gate(a)
    with a:
        ab.fill(x, 3)
    with b:
        results = compute(x, y)
        assert not b.query()
    gate.open()
    check(results, np.full_like(X, 3), Y)


def test_missing_order_is_reported(a, b):
    x = ab.zeros(8, stream=a)
    with ab.hazards("check"):
        with pytest.raises(ab.RaceError) as caught, b:
            x + 1
        assert caught.value.kind == "RAW"
        with pytest.raises(ab.RaceError) as caught, b:
            x += 1
        b.wait_stream(a)
        with b:
            y = x + 1
    np.testing.assert_array_equal(y.numpy(), np.ones(8))


@pytest.mark.parametrize("name", ["sum", "any", "argmax"])
def test_missing_order_is_reported_of_an_axis_of_one_element(name, a, b):
    x = ab.zeros((8, 1), stream=a)
    with ab.hazards("check"), pytest.raises(ab.RaceError) as caught:
        getattr(x, name)(1, stream=b)
    assert caught.value.kind == "RAW"
    a.synchronize()
    with ab.capture(device=x.device) as graph:
        result = getattr(x, name)(axis=1)
    x[...] = 3
    graph.launch()
    np.testing.assert_array_equal(result.numpy(), getattr(np.full((8, 1), 3), name)(1))


def test_captured_operations_are_replayed(device):
    x, y = ab.array(X), ab.array(Y)
    with ab.capture(device=device) as graph:
        results = compute(x, y)
    names = {"multiply", "add", "subtract", "where", "equal"}
    if device.kind == "cpu":  # on CUDA a reduction is several kernels, named after what each does
        names |= {"sum", "max"}
    assert names <= {node.name for node in graph.nodes}
    for factor in (1, 2):
        ab.copy(x, ab.array(factor * X))
        graph.launch()
        check(results, factor * X, Y)


def test_graphed_functions_take_new_arrays_and_numbers():
    @ab.graphed
    def scaled(x, factor):
        return (x * factor + 1).sum(axis=0)

    for factor in (1.0, 2.0, -3.5):
        for x in (X, 2 * X):
            np.testing.assert_allclose(scaled(ab.array(x), factor).numpy(), (x * factor + 1).sum(axis=0), rtol=1e-6)


def test_arrays_of_two_devices_are_refused(device):
    others = [other for other in ab.devices() if other is not device]
    if not others:
        pytest.skip("there is one device")
    x, y = ab.ones(3), ab.ones(3, device=others[0])
    for operation in (lambda: x + y, lambda: x == y, lambda: ab.where(x, x, y), lambda: x.__iadd__(y)):
        with pytest.raises(ab.DeviceError, match=f"{device.alias}.*{others[0].alias}"):
            operation()
    with pytest.raises(ab.DeviceError, match=others[0].alias):
        x.sum(stream=ab.Stream(others[0]))


def test_checked_kernels_compute_the_same():
    x, y = ab.array(X), ab.array(Y)
    with ab.hazards("auto", bounds=True):
        check(compute(x, y), X, Y)


def test_errors_name_arrays_without_reading_them(device, other_device):
    x, flags = ab.full(3, 42, device=device), ab.ones(3, "bool", device=device)
    y = ab.full(3, 42, device=other_device)
    ab.synchronize()
    assert "42" in repr(x)
    for call in (
        lambda: y.sum(out=x),
        lambda: x + y,
        lambda: ab.where(flags, y, y),
        lambda: x.sum(stream=ab.Stream(other_device)),
    ):
        with pytest.raises((TypeError, ab.DeviceError), match=r"<Array \(3,\)") as found:
            call()
        assert re.search(r"\b42\b", str(found.value)) is None  # an address may have these digits
