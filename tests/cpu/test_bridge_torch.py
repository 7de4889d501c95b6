"""A bridge with PyTorch on a CPU stream, whose operations run at once."""

import numpy as np
import pytest

import anabranch as ab


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def test_pytorch_sees_what_the_stream_has_done(torch):
    stream = ab.Stream("cpu")
    x = ab.zeros(1000, stream=stream)
    with ab.testing.Gate(stream) as gate:
        ab.fill(x, 3, stream=stream)
        stream.submit(lambda: None)
        gate.open()
        with stream.bridge("torch") as bridged:
            assert bridged.torch is None
            tensor = torch.from_dlpack(x)
            assert tensor.data_ptr() == x.ptr
            tensor += 1
            y = ab.empty(1000)
            ab.copy(y, x)
    np.testing.assert_array_equal(y.numpy(), 4)


def test_tensors_are_taken_in_order(torch):
    stream = ab.Stream("cpu")
    with stream.bridge():
        tensor = torch.full((1000,), 2.0)
        x = ab.from_dlpack(tensor)
        tensor *= 3
        y = ab.empty(1000)
        ab.copy(y, x)
    np.testing.assert_array_equal(y.numpy(), 6)
