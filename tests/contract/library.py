"""Kernels that call functions of Python's, `math` and NumPy which the compilers lack, and what Python computes."""

# ruff: noqa: B905 - kernels have no strict zip

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import anabranch as ab

from . import loops

FLOATS = 26


def run_floats(i: int, x: ab.In, y: ab.In, result: ab.Out):
    a, b = x[i], y[i]
    result[i, 0] = math.fmod(a, b)
    result[i, 1] = math.remainder(a, b)
    rest, whole = math.modf(a)
    result[i, 2] = rest
    result[i, 3] = whole
    result[i, 4] = math.cbrt(a)
    result[i, 5] = math.hypot(a, b, 2.0) + math.hypot(a, b)
    result[i, 6] = math.log(1 + abs(a), 3.0) + math.log(1 + abs(b))
    result[i, 7] = math.dist((a, b), (b, a)) + math.dist(x, y)
    result[i, 8] = math.isclose(a, b)
    result[i, 9] = math.isclose(a, b, rel_tol=0.5) + 2 * math.isclose(a, b, abs_tol=1.0)
    result[i, 10] = math.prod((a, b, a)) + math.prod(x[:3])
    result[i, 11] = any((a > b, a > 1)) + 2 * all((a > b, a > 1))
    result[i, 12] = any(x[i:]) + 2 * all(x[i:])
    result[i, 13] = np.clip(a, -1.0, 1.0)
    result[i, 14] = np.clip(a, None, 0.5) + 10 * np.clip(a, a_min=0.25, a_max=None)
    result[i, 15] = np.where(a > b, a, 0.0)
    result[i, 16] = np.heaviside(a, 0.5)
    result[i, 17] = np.interp(a, x, y) + np.interp(b, KNOTS, KNOTS)
    result[i, 18] = np.searchsorted(KNOTS, a) + 10 * np.searchsorted(x, b)
    total = 0.0
    for value in reversed(x):
        total = 2 * total + value
    result[i, 19] = total
    for value in reversed((a, b, a)):
        total = 3 * total + value
    result[i, 20] = total
    total = 0.0
    for place, value in enumerate(reversed(y[i:])):
        total += place * value
    result[i, 21] = total
    result[i, 22] = x.var() + np.var(y[i:])
    result[i, 23] = x[i:].std() + np.std(y)
    result[i, 24] = min(np.finfo(np.float32).max, np.finfo(x.dtype).eps) + np.finfo(np.float64).nmant
    result[i, 25] = np.iinfo(np.int16).max - np.iinfo(np.int8).min


KNOTS = np.array([-1.0, 0.0, 0.5, 2.0])
floats = ab.kernel(run_floats)

INTEGERS = 11


def run_integers(i: int, x: ab.In, y: ab.In, result: ab.Out):
    a, b = x[i], y[i]
    result[i, 0] = math.gcd(a, b)
    result[i, 1] = math.lcm(a, b)
    result[i, 2] = math.comb(abs(a), i)
    result[i, 3] = math.perm(abs(a), i)
    result[i, 4] = math.factorial(i)
    result[i, 5] = math.isqrt(abs(b))
    result[i, 6] = math.prod(x[: i + 1])
    order = 0
    for k in reversed(range(i)):
        order = 7 * order + k
    result[i, 7] = order
    for k in reversed(range(2, 9 - i, 3)):
        order = 7 * order + k
    result[i, 8] = order
    for k in reversed(range(i, -4, -2)):
        order = 7 * order + k
    result[i, 9] = order
    for k, value in zip(reversed(range(len(x))), x):
        order += k * value
    result[i, 10] = order


integers = ab.kernel(run_integers)


SHIFTS = 8


def run_shifts(i: int, x: ab.In, counts: ab.In, result: ab.Out):
    result[i, 0] = x[i] << counts[i]
    result[i, 1] = x[i] >> counts[i]
    result[i, 2] = np.left_shift(x[i], counts[i])
    result[i, 3] = np.right_shift(x[i], counts[i])
    result[i, 4] = np.int64(1) << np.int64(counts[i])
    result[i, 5] = x[i] >> 40
    value = x[i]
    value <<= counts[i]
    result[i, 6] = value
    value = x[i]
    value >>= counts[i]
    result[i, 7] = value


shifts = ab.kernel(run_shifts)

POWERS = 8


def run_powers(i: int, z: ab.In, n: ab.In, result: ab.Out):
    result[i, 0] = z[i] ** 2
    result[i, 1] = z[i] ** -1
    result[i, 2] = z[i] ** n[i]
    result[i, 3] = z[i] ** len(z)
    result[i, 4] = z[i] ** 0
    result[i, 5] = z[i] ** 0.5
    result[i, 6] = z[i] ** 1j
    square = z[i]
    square **= 2
    result[i, 7] = square


powers = ab.kernel(run_powers)


def is_far(value):
    if value > 1.5:
        return True
    return None


def doubled(value):
    if value > 0:
        return 2 * value
    return None


OPTIONAL = 7


def run_optional(i: int, x: ab.In, y: ab.In, result: ab.Out):
    result[i, 0] = 1 if is_far(x[i]) else 2
    best = None
    for value in y:
        if best is None or value < best:
            best = value
    result[i, 1] = best
    found = doubled(x[i])
    result[i, 2] = 0 if found is None else found
    if found is not None:
        result[i, 3] = found + 1
    result[i, 4] = 5 if found else 6
    result[i, 5] = min(best, 3.0) + abs(best)
    best -= 1
    result[i, 6] = best


optional = ab.kernel(run_optional)


class State(NamedTuple):
    """A position and a speed."""

    place: float
    speed: float


def moved(state, time):
    return State(state.place + time * state.speed, speed=state.speed)


def decay(value):
    return -value


def growth(value):
    return value * value


def stepped(rate, value, time):
    """Return the value after a step of Heun's method."""
    first = rate(value)
    return value + time / 2 * (first + rate(value + time * first))


NAMED = 6


def run_named(i: int, x: ab.In, y: ab.In, result: ab.Out):
    state = State(x[i], y[i])
    for _ in range(i):
        state = moved(state, 0.5)
    result[i, 0] = state.place
    place, speed = moved(state, i)
    result[i, 1] = place - speed
    result[i, 2] = State(speed=1.0, place=i)[0] + len(state)
    result[i, 3] = state == moved(state, 0)
    result[i, 4] = stepped(decay, y[i], 0.1)
    speed_up = stepped
    result[i, 5] = speed_up(growth, y[i], x[i])


named = ab.kernel(run_named)


def numbers(dtype="float64"):
    """Return increasing numbers, and others to compare them with: some equal, some nearly, some far off."""
    x = np.array([-2.5, -1.0, -0.3, 0.0, 0.4, 1.0, 1.75, 6.0], dtype)
    return x, np.array([0.7, -1.0, 2.0, 0.5, 0.4 + 1e-3, 1.5, -3.5, 2.0], dtype)


def whole_numbers():
    """Return integers, of which some have a common divisor."""
    return np.array([12, -18, 7, 9, -5, 10, 8, 11]), np.array([18, 12, 49, -6, 25, 2**58, 10**18, 99])


def shifted(dtype):
    """Return integers of a dtype, and counts of bits by which to shift them, some as large as the dtype or larger."""
    return np.array([5, 7, -9, 1, -1, 3, 100, 77]).astype(dtype), np.array([0, 3, 31, 63, 64, 70, 65, 7]).astype(dtype)


def complex_numbers(dtype="complex128"):
    """Return complex numbers, and integers to raise them to."""
    z = np.array([-2, -3, 0.5, 2j, 1 + 1j, -0.5 + 2j], dtype)
    return z, np.array([2, 3, -1, 200 if dtype == "complex128" else 60, 5, -50])


def of_shifts(x, counts):
    return loops.computed(run_shifts, SHIFTS, x, counts)


def of_powers(z, n):
    result = np.zeros((len(z), POWERS), "complex128")
    for i in range(len(z)):
        run_powers(i, z.astype("complex128"), n, result)
    return result


def of_floats(x, y):
    return loops.computed(run_floats, FLOATS, x, y)


def of_integers(x, y):
    return loops.computed(run_integers, INTEGERS, x, y)


def of_optional(x, y):
    return loops.computed(run_optional, OPTIONAL, x, y)


def of_named(x, y):
    return loops.computed(run_named, NAMED, x, y)
