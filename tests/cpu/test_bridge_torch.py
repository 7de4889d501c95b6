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


def test_what_pytorch_cannot_have_without_a_copy_it_has_with_one(torch):
    x = ab.array(np.arange(4.0))
    assert torch.from_dlpack(x[::-1], copy=True).tolist() == [3, 2, 1, 0]


def test_tensors_of_dtypes_that_arrays_do_not_hold_are_moved_as_integers(torch):
    tensor = torch.ones(3, dtype=torch.bfloat16)
    with pytest.raises(TypeError, match=r"bfloat16 is none that arrays hold.*view\(torch.int16\)"):
        ab.from_dlpack(tensor)
    moved = ab.empty(3, "int16")
    ab.copy(moved, ab.from_dlpack(tensor.view(torch.int16)))
    assert torch.from_dlpack(moved).view(torch.bfloat16).tolist() == [1, 1, 1]
