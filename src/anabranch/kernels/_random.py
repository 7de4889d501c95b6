"""Random numbers for kernels: Philox 4x32 with 10 rounds, which has a counter in the place of a state.

Plain Python that the kernels' compilers take as it is. Products of two 32-bit words overflow the signed 64-bit integers
of kernels, with the bits that unsigned ones have; the masks keep those.

J. Salmon, M. Moraes, R. Dror, D. Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

from __future__ import annotations


def philox(c0: int, c1: int, c2: int, c3: int, k0: int, k1: int) -> tuple[int, int, int, int]:
    """Return the four 32-bit words of Philox 4x32-10 for a counter of four words and a key of two."""
    for _ in range(10):
        first, second = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0 = ((second >> 32) ^ c1 ^ k0) & 0xFFFFFFFF
        c2 = ((first >> 32) ^ c3 ^ k1) & 0xFFFFFFFF
        c1, c3 = second & 0xFFFFFFFF, first & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def random(seed: int, counter: int) -> float:
    """Return a random number in [0, 1), which `seed` and `counter` determine.

    For kernels: numbers of different counters, or of different seeds, are independent, and there is no state that
    indices would share. The same on every device, and outside of kernels. For several numbers per index make several
    counters, such as ``3 * i + k``.

    Parameters
    ----------
    seed, counter : int
        64 bits of each count.

    Returns
    -------
    float
        A multiple of 2 ** -53, from the first two words of Philox 4x32-10 with the seed as key.

    Examples
    --------
    >>> import anabranch as ab
    >>> ab.random(1, 0) == ab.random(1, 0), ab.random(1, 0) == ab.random(1, 1)
    (True, False)
    """
    # Refuses floats, and makes Python's integers of NumPy's, whose products would be of their own few bits.
    seed, counter = int(seed | 0), int(counter | 0)
    low, high, _, _ = philox(
        counter & 0xFFFFFFFF, (counter >> 32) & 0xFFFFFFFF, 0, 0, seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF
    )
    return ((high << 21) | (low >> 11)) * 2.0**-53
