"""The operators of arrays compute what NumPy's do: values, dtypes, shapes and errors."""

import operator
from enum import IntEnum

import numpy as np
import pytest

import anabranch as ab

from ..arrays import DTYPES

pytestmark = [pytest.mark.numba, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
TOLERANCES = {2: 2e-3, 4: 1e-5, 8: 1e-12}
# For each operation some pairs of dtypes, others for each; together all kinds. Each pair is a kernel of its own.
PAIRS = [
    (operation, DTYPES[(3 * number + 5 * k) % 14], DTYPES[(number + 3 * k + k // 5) % 14])
    for number, operation in enumerate(ARITHMETIC + COMPARISONS)
    for k in range(6)
]


class Level(IntEnum):
    LOW = 3


def numbers(dtype, count=24, seed=0):
    """Return numbers of which some are extreme, zero, infinite or nan."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(count) < 0.5
    if kind in "iu":
        limits = np.iinfo(dtype)
        made = rng.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)
        made[::3] = rng.integers(0, 5, made[::3].size).astype(dtype)
        return made
    made = rng.normal(size=count) * 4
    if kind == "c":
        made = made + 1j * rng.normal(size=count)
    made[:3] = 0, np.nan, np.inf
    return made.astype(dtype)


def same(result, expected):
    """Check an array against what NumPy has: exactly but for the rounding of floats."""
    expected = np.asarray(expected)
    found = result.numpy()
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind in "fc":
        size = expected.dtype.itemsize // (2 if expected.dtype.kind == "c" else 1)
        np.testing.assert_allclose(found, expected, rtol=TOLERANCES[size], atol=TOLERANCES[size])
    else:
        np.testing.assert_array_equal(found, expected)


def check(operation, *operands):
    """Compare an operation on arrays with NumPy's on the same operands; errors are of the same kind."""
    arrays = [ab.array(each) if isinstance(each, np.ndarray) else each for each in operands]
    try:
        expected = operation(*operands)
    except (TypeError, ValueError, OverflowError) as error:
        with pytest.raises(TypeError if isinstance(error, TypeError) else type(error)):
            operation(*arrays)
        return
    same(operation(*arrays), expected)


@pytest.mark.parametrize(("operation", "first", "second"), PAIRS, ids=lambda part: getattr(part, "__name__", part))
def test_operators_of_two_arrays_are_numpy_s(operation, first, second):
    a, b = numbers(first), numbers(second, seed=1)
    if operation is operator.pow and b.dtype.kind in "iu":
        b = (np.abs(b.astype("float64")) % 5).astype(second)
    if operation is operator.pow and "c" in (a.dtype.kind, b.dtype.kind):
        a, b = a[3:], b[3:]  # what becomes of infinite and missing parts is the C library's choice
    check(operation, a, b)


@pytest.mark.parametrize("operation", COMPARISONS, ids=lambda operation: operation.__name__)
def test_integers_of_different_signs_are_compared_exactly(operation):
    signed = np.array([-1, 0, 5, 2**63 - 1, -(2**63)], "int64")
    unsigned = np.array([2**64 - 1, 0, 5, 2**63, 2**63], "uint64")
    check(operation, signed, unsigned)
    check(operation, unsigned, signed)


@pytest.mark.parametrize("number", [2, 2.5, True, np.float64(1.5), np.int8(3), 1j], ids=repr)
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "complex64"])
def test_numbers_take_the_dtype_of_the_array_as_in_numpy(dtype, number):
    array = np.array([1, 0, 1, 2, 0], dtype)
    for operation in (operator.add, operator.sub, operator.truediv, operator.eq):
        check(operation, array, number)
        check(lambda a, n, operation=operation: operation(n, a), array, number)


def test_enumerations_count_as_python_s_numbers():
    same(ab.ones(3, "int8") + Level.LOW, np.full(3, 4, "int8"))


@pytest.mark.parametrize("dtype", ["int16", "float32", "float64", "complex128"])
def test_squares_are_powers(dtype):
    array = numbers(dtype)[3:]
    check(lambda a: a**2, array)
    check(lambda a: a**2.0, array)


@pytest.mark.parametrize("dtype", ["int16", "float16", "float32", "float64"])
def test_powers_of_one_half_are_roots(dtype):
    array = np.concatenate([numbers(dtype)[:9], np.array([-0.0, 1e4, -1e4]).astype(dtype)])
    check(lambda a: a**0.5, array)
    check(lambda a: a.reshape(3, 4).T ** 0.5, array)
    if dtype.startswith("float"):
        # No power of minus infinity is nan.
        check(lambda a: a**0.5, np.array([-np.inf, np.inf, -2, np.nan], dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_powers_1_and_minus_1_are_exact(dtype):
    limits = np.finfo(dtype)
    extreme = [0, -0.0, np.inf, -np.inf, np.nan, limits.tiny, limits.smallest_subnormal, limits.max, -limits.max]
    array = np.concatenate([np.array(extreme, dtype), np.random.default_rng(7).normal(size=10_007).astype(dtype)])
    for power, expected in (1, array), (1.0, array), (-1, array**-1), (-1.0, np.reciprocal(array)):
        for view in (np.s_[:], np.s_[::-3]):
            found = (ab.array(array)[view] ** power).numpy()
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, expected[view])
            same_sign = np.signbit(found) == np.signbit(expected[view])
            assert np.all(same_sign | np.isnan(found))


@pytest.mark.parametrize("dtype", ["bool", "int16", "uint8", "complex64"])
def test_other_numbers_have_the_powers_1_and_minus_1_too(dtype):
    for power in (1, 1.0, -1.0, *([-1] if dtype == "complex64" else [])):
        check(lambda a, power=power: a**power, np.array([1, 2, 5, 1]).astype(dtype))


NAMES = {2: "square", 0.5: "sqrt", 1: "positive", -1: "reciprocal"}


@pytest.mark.parametrize("power", [2, 2.0, 0.5, 1, -1, -1.0])
def test_simple_powers_replace_their_operand_without_a_power(power):
    array = numbers("float32")
    for view in (np.s_[:], np.s_[::2], np.s_[::-1]):
        ours, theirs = ab.array(array), array.copy()
        part, expected = ours[view], theirs[view]
        with ab.trace() as trace:
            part **= power
        expected **= power
        same(ours, theirs)
        launched = [each.name for each in trace.operations if each.kind == "kernel"]
        assert launched == [NAMES[power]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_of_one_array_are_numpy_s(dtype):
    for operation in (operator.neg, operator.pos, abs):
        check(operation, numbers(dtype))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_of_any_size_have_an_absolute_value(dtype):
    limits = np.finfo(dtype)
    parts = [0, -0.0, 1, -3, 4, 5, 12, limits.tiny, limits.max / 2, limits.max**0.5, np.inf, -np.inf, np.nan]
    x = np.array([complex(float(a), float(b)) for a in parts for b in parts], dtype)
    found = abs(ab.array(x)).numpy()
    np.testing.assert_allclose(found, abs(x), rtol=4 * limits.eps)
    assert abs(ab.array(np.array([3 - 4j, 5 + 12j, -8 + 15j], dtype))).tolist() == [5, 13, 17]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32"])
def test_bitwise_operators_are_numpy_s(dtype):
    a, b = numbers(dtype), numbers(dtype, seed=1)
    for operation in (operator.and_, operator.or_, operator.xor):
        check(operation, a, b)
        check(operation, a, True)
    check(operator.invert, a)


def test_conditions_are_combined_in_place():
    x = np.arange(6, dtype="float32")
    ours, theirs = ab.array(x), x.copy()
    inside, expected = ours > 0, theirs > 0
    inside &= ours < 4
    expected &= theirs < 4
    inside ^= ours == 2
    expected ^= theirs == 2
    same(inside, expected)
    inside |= True
    assert inside.all().item()


def test_quotient_and_remainder_come_together():
    array = np.array([-7, 7, 5], "int32")
    for operands in ((ab.array(array), 3), (22, ab.array(array))):
        expected = divmod(*(each if isinstance(each, int) else array for each in operands))
        for part, theirs in zip(divmod(*operands), expected, strict=True):
            same(part, theirs)


@pytest.mark.parametrize("number", [300, -1])
def test_comparisons_with_a_number_beyond_the_dtype_have_an_answer(number):
    array = np.array([1, 200], "uint8")
    for operation in COMPARISONS:
        check(operation, array, number)
        check(lambda a, n, operation=operation: operation(n, a), array, number)


def test_other_operations_with_such_a_number_raise():
    with pytest.raises(OverflowError, match="300 out of bounds for uint8"):
        ab.zeros(3, "uint8") + 300
    with pytest.raises(ValueError, match="negative integer power"):
        ab.ones(3, "int32") ** -1


def test_integer_powers_to_negative_elements_are_integer_parts():
    a, b = np.array([1, -1, -1, 2, 0], "int32"), np.array([-2, -2, -3, -1, -1], "int32")
    np.testing.assert_array_equal((ab.array(a) ** ab.array(b)).numpy(), [1, 1, -1, 0, 0])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        *[
            ((4, 6), (6,)),
            ((4, 6), (4, 1)),
            ((6,), (4, 1)),
            ((), (3,)),
            ((), ()),
            ((1, 1), (3,)),
            ((3, 1, 5), (1, 4, 1)),
        ],
        *[((0, 3), (3,)), ((2, 0), (1, 1)), ((2, 3, 2, 3, 2, 3), (2, 1, 2, 1, 2, 1)), ((2, 3, 4, 5), (2, 1, 4, 1))],
    ],
    ids=str,
)
def test_shapes_are_broadcast(a, b):
    rng = np.random.default_rng(2)
    check(operator.add, rng.random(a, "float32"), rng.random(b, "float32"))
    check(operator.sub, rng.random(b, "float32"), rng.random(a, "float32"))


def test_random_views_are_computed_with():
    rng = np.random.default_rng(3)
    for _ in range(40):
        ndim = rng.integers(1, 6)
        shape = tuple(rng.integers(1, 5, ndim))
        keys = [tuple(slice(None, None, rng.choice([1, 2, -1, -2])) for _ in shape) for _ in range(2)]
        key = keys[0]
        one = rng.random(shape, "float32")
        other = rng.random(shape, "float32")
        first, second = ab.array(one), ab.array(other)
        same(first[key] * second[key], one[key] * other[key])
        same(-first[keys[1]], -one[keys[1]])
        same(first[key] + 2, one[key] + 2)


def test_shapes_that_do_not_fit_raise():
    with pytest.raises(ValueError, match=r"\(4, 6\) and \(5,\) cannot be broadcast"):
        ab.zeros((4, 6)) + ab.zeros(5)


@pytest.mark.parametrize("other", [np.ones(3), [1, 2, 3], (1, 2, 3)], ids=lambda other: type(other).__name__)
def test_data_of_the_host_is_refused_on_either_side(other):
    array = ab.ones(3)
    for operation in (operator.add, operator.eq, operator.lt):
        for operands in ((array, other), (other, array)):
            with pytest.raises(TypeError, match=r"anabranch\.array"):
                operation(*operands)
    with pytest.raises(TypeError):
        array += other


@pytest.mark.parametrize("other", [None, "text", object()], ids=lambda other: type(other).__name__)
def test_comparing_with_something_else_is_no_identity(other):
    array = ab.ones(3)
    for operation in (operator.eq, operator.ne):
        with pytest.raises(TypeError, match="`is` for identity"):
            operation(array, other)
    with pytest.raises(TypeError):
        array + other


def test_what_compares_itself_with_arrays_may():
    class Anything:
        def __eq__(self, other):
            return True

        __hash__ = None

    assert (ab.ones(3) == Anything()) is True


def test_arrays_are_hashed_by_identity():
    a, b = ab.ones(3), ab.ones(3)
    assert hash(a) != hash(b)
    assert {a: 1, b: 2}[a] == 1
    assert len({a, a, b}) == 2


def test_closed_arrays_are_refused():
    array = ab.ones(3)
    array.close()
    for operation in (lambda a: a + 1, lambda a: 1 + a, lambda a: -a, lambda a: a.sum(), lambda a: a == a):
        with pytest.raises(ab.ClosedError):
            operation(array)


@pytest.mark.parametrize("dtype", ["bool", "int16", "float16", "complex64"])
def test_elements_are_chosen(dtype):
    x, y = numbers(dtype, 24).reshape(4, 6), numbers("float32", 6, seed=1)
    condition = numbers("float32", 24, seed=2).reshape(4, 6) > 0
    test, a, b = map(ab.array, (condition, x, y))
    same(ab.where(test, a, b), np.where(condition, x, y))
    same(ab.where(test[:, ::2], a[:, ::2], True), np.where(condition[:, ::2], x[:, ::2], True))
    same(ab.where(b, 1, a), np.where(y, 1, x))


def test_choosing_refuses_what_is_no_array():
    with pytest.raises(TypeError, match="condition is an Array"):
        ab.where(True, ab.ones(3), 0)
    with pytest.raises(TypeError, match="where takes arrays and numbers, not list"):
        ab.where(ab.ones(3), [1, 2, 3], 0)


@pytest.mark.parametrize("arguments", [(5,), (2, 9, 3), (0.0, 1, 0.1), (5, 0, -1), (3, 3), (1, 2.5)], ids=str)
def test_numbers_count_as_in_numpy(arguments):
    same(ab.arange(*arguments), np.arange(*arguments))


NUMPY_S = [
    *((np.int8(5),), (np.uint64(5),), (np.float32(2),), (np.float32(0), 3, np.float32(0.5)), (np.float16(2),)),
    *((np.uint8(250), np.uint8(255), np.uint8(2)), (np.int16(0), np.int32(5), 2), (np.bool_(False), 3), (0, 5, True)),
    *((2**63, 2**63 + 3), (0, 2**63 + 3, 2**62), (2**63 + 5, 2**63, -2, "uint64"), (250, 255, 10, "uint8")),
]


@pytest.mark.parametrize("arguments", NUMPY_S, ids=str)
def test_numbers_of_numpy_count_as_in_numpy(arguments):
    same(ab.arange(*arguments), np.arange(*arguments))


def test_differences_of_narrow_numbers_do_not_wrap_around():
    same(ab.arange(np.uint8(0), 300), np.arange(300))
    same(ab.arange(np.int8(-100), np.int8(100), np.int8(50)), np.arange(-100, 100, 50))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "float32", "complex64"])
def test_sequences_of_a_dtype_are_numpy_s(dtype):
    same(ab.arange(0, 7, 2, dtype), np.arange(0, 7, 2, dtype))
    same(ab.linspace(0, 7, 10, dtype=dtype), np.linspace(0, 7, 10, dtype=dtype))


def test_spaced_numbers_are_numpy_s():
    same(ab.linspace(1, 2, 7, endpoint=False), np.linspace(1, 2, 7, endpoint=False))
    for arguments in ((0, 1j, 3), (3, 4, 1), (3, 4, 0), (-1, 1)):
        same(ab.linspace(*arguments), np.linspace(*arguments))
    rounded = 1 + 2.0**-11 + 2.0**-30, 2, 3  # from float64 to float16 at once
    assert ab.linspace(*rounded, dtype="float16").tolist() == np.linspace(*rounded, dtype="float16").tolist()


def test_one_spaced_number_is_the_first_of_many():
    assert ab.linspace(-3.7, 1, 1, dtype="int32").tolist() == np.linspace(-3.7, 1, 1, dtype="int32").tolist() == [-4]
    one, two = (ab.linspace(1_000_000, 0, count, dtype="uint8") for count in (1, 2))
    assert one.tolist() == two.tolist()[:1]
    assert ab.linspace(np.complex64(1j), 2, 1).tolist() == [1j]


def test_a_sequence_of_numbers_beyond_64_bits_is_refused():
    with pytest.raises(OverflowError, match=r"stop is 10{30}"):
        ab.arange(10**30)
    with pytest.raises(OverflowError, match=r"linspace: start is 10{30}"):
        ab.linspace(10**30, 1)


@pytest.mark.parametrize("step", [0, np.nan, "1"], ids=repr)
def test_sequences_that_do_not_end_are_refused(step):
    with pytest.raises((ValueError, TypeError), match="arange"):
        ab.arange(0, 5, step)
