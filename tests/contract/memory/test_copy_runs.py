"""Copies and fills of contiguous memory of any number of bytes, from any byte on."""

import numpy as np
import pytest

import anabranch as ab

COUNTS = [1, 15, 16, 17, 255, 4096, 65535, 65536, 65536 + 16, 65536 + 21, (1 << 20) + 3]


@pytest.mark.parametrize("first", [0, 1, 16, 20])
@pytest.mark.parametrize("count", COUNTS)
def test_copies_of_any_number_of_bytes(device, count, first):
    values = np.random.default_rng(count).integers(0, 256, count + 64, "uint8")
    source, target = ab.array(values, device=device), ab.full(count + 64, 7, "uint8", device=device)
    ab.copy(target, source, dst_offset=first, src_offset=32 - first, count=count)
    expected = np.full(count + 64, 7, "uint8")
    expected[first : first + count] = values[32 - first : 32 - first + count]
    np.testing.assert_array_equal(target.numpy(), expected)


@pytest.mark.parametrize("first", [0, 1, 2, 16])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("bool", True),
        ("uint8", 0xAB),
        ("int16", -2),
        ("uint16", 0x1234),
        ("float32", 1.5),
        ("float64", -0.1),
        ("complex128", 1 - 2j),
    ],
)
def test_fills_of_any_number_of_bytes(device, dtype, value, count, first):
    elements = max(count // np.dtype(dtype).itemsize, 1)
    array = ab.zeros(elements + 32, dtype, device=device)
    ab.fill(array[first : first + elements], value)
    expected = np.zeros(elements + 32, dtype)
    expected[first : first + elements] = value
    np.testing.assert_array_equal(array.numpy(), expected)
