"""Arrays that are closed while a launch that was given them is under way."""

import numpy as np
import pytest

import anabranch as ab

from ..arrays import zeros

pytestmark = pytest.mark.numba


@ab.kernel
def put(i, target: ab.Out, value):
    target[i] = value


@pytest.fixture
def closed(device):
    """An array, and a function that closes it and makes another, in the same memory on a CPU. Nobody writes to that."""
    array, others = zeros(1000, device=device), []

    def close():
        if not array.closed:
            array.close()
            others.append(ab.full(1000, 7, "float32", device=device))

    yield array, close
    device.synchronize()
    np.testing.assert_array_equal(others[0].numpy(), np.full(1000, 7))


def closing(base, method, close):
    """A number that calls `close` when it is converted."""

    def convert(self):
        close()
        return {"__float__": float, "__int__": int}[method](3)

    return type("Closing", (base,), {method: convert})(3)


@pytest.mark.parametrize(
    ("base", "method"),
    [(float, "__float__"), (int, "__int__"), (np.float32, "__float__")],
    ids=["float", "int", "NumPy scalar"],
)
def test_a_number_that_closes_an_array_before_it_is_an_error(device, closed, base, method):
    array, close = closed
    ab.launch(put, 1, zeros(1, device=device), base(3))
    with pytest.raises(ab.ClosedError):
        ab.launch(put, 1000, array, closing(base, method, close))


def test_a_number_that_closes_an_array_after_it_is_an_error(device, closed):
    @ab.kernel
    def put_after(i, value, target: ab.Out):
        target[i] = value

    array, close = closed
    ab.launch(put_after, 1, 3.0, zeros(1, device=device))
    with pytest.raises(ab.ClosedError):
        ab.launch(put_after, 1000, closing(float, "__float__", close), array)


def test_a_number_that_converts_itself_counts_as_what_it_derives_from(device):
    array, converted = zeros(4, device=device), []
    ab.launch(put, 4, array, closing(float, "__float__", lambda: converted.append(True)))
    np.testing.assert_array_equal(array.numpy(), np.full(4, 3))
    assert converted == [True]


def test_an_array_closed_while_the_kernel_is_compiled_is_an_error(device, closed, monkeypatch):
    @ab.kernel
    def new(i, target: ab.Out):
        target[i] = 3

    def compile_then_close(*args):
        code = compile_kernel(*args)
        close()
        return code

    array, close = closed
    name = f"compile_{device.kind}"
    compile_kernel = getattr(new, name)
    monkeypatch.setattr(new, name, compile_then_close)
    with pytest.raises(ab.ClosedError):
        ab.launch(new, 1000, array)
    after = zeros(4, device=device)
    ab.launch(new, 4, after)
    np.testing.assert_array_equal(after.numpy(), np.full(4, 3))
