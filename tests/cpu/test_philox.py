"""Philox against the known answers that its authors publish (`kat_vectors` of Random123)."""

import pytest

from anabranch.kernels._random import philox, random

ONES = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ONES,) * 4, (ONES,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_known_answers(counter, key, answer):
    assert philox(*counter, *key) == answer


def test_a_number_has_the_first_53_bits():
    assert random(0, 0) == ((0xE169C58D << 32 | 0x6627E8D5) >> 11) / 2**53
    assert random(0, 0) == random(2**64, -(2**64))
