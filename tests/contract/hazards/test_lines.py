"""Which source line a race names: the innermost one that is not of this package."""

import functools

import pytest

import anabranch as ab

from ..accesses import ready, streams, write
from ..arrays import TIMEOUT


@pytest.fixture(autouse=True)
def _checked(on_device):
    with ab.hazards("check"):
        yield


def caught_line(call):
    """Where the second access of a race was, by its error."""
    with pytest.raises(ab.RaceError) as caught:
        call()
    return caught.value.second.file, caught.value.second.line


@pytest.fixture
def second(device):
    """Make an access that races, by a call."""
    (a, b), array = streams(device), ready(device)
    write(array, a)
    return functools.partial(ab.fill, array, 1, stream=b)


def test_a_call_over_several_lines_is_named_by_its_first(a, b, array):
    write(array, a)

    # fmt: off
    def call():
        ab.fill(
            array,
            2,
            stream=b,
        )
    # fmt: on

    assert caught_line(call) == (__file__, call.__code__.co_firstlineno + 1)


def test_an_access_in_a_lambda_is_its_line(second):
    call = lambda: second()  # noqa: E731
    assert caught_line(call) == (__file__, call.__code__.co_firstlineno)


def test_an_access_in_a_decorated_function_is_the_functions_line(second):
    def decorate(function):
        @functools.wraps(function)
        def inner(*args):
            return function(*args)

        return inner

    @decorate
    @decorate
    def call():
        second()

    assert caught_line(call) == (__file__, call.__wrapped__.__wrapped__.__code__.co_firstlineno + 3)


def test_an_access_that_a_decorator_makes_is_the_decorators_line(second):
    def decorate(function):
        def inner():
            second()
            function()

        return inner

    call = decorate(int)
    assert caught_line(call) == (__file__, call.__code__.co_firstlineno + 1)


@pytest.mark.parametrize(
    "name",
    [
        {},
        {"__name__": "__main__"},
        {"__name__": "anabranchish"},
        {"__name__": None},
    ],
    ids=str,
)
def test_an_access_in_generated_code_has_the_file_name_that_it_was_given(second, name):
    code = compile("\n\nsecond()\n", "<made of nothing>", "exec")
    assert caught_line(lambda: exec(code, {"second": second, **name})) == ("<made of nothing>", 3)


def test_an_access_in_a_comprehension_or_generator_is_its_line(second):
    calls = [lambda: [second() for _ in range(1)], lambda: list(second() for _ in range(1))]  # noqa: C400
    for call in calls:
        assert caught_line(call) == (__file__, call.__code__.co_firstlineno)


def test_an_access_made_by_a_builtin_is_the_line_of_its_call(second):
    call = lambda: list(map(lambda f: f(), [second]))  # noqa: C417, E731
    assert caught_line(call) == (__file__, call.__code__.co_firstlineno)


def test_an_access_in_a_thread_is_the_line_of_its_function(in_thread, a, b, array):
    def use():
        with ab.hazards("check"):
            ab.fill(array, 1, stream=a)

    in_thread(use).result(TIMEOUT)
    with pytest.raises(ab.RaceError) as caught:
        write(array, b)
    assert (caught.value.first.file, caught.value.first.line) == (__file__, use.__code__.co_firstlineno + 2)


def test_code_that_is_gone_is_still_named(a, b, array):
    namespace = {}
    exec(compile("def use(write):\n    write()\n", "<soon gone>", "exec"), namespace)
    namespace.pop("use")(functools.partial(ab.fill, array, 1, stream=a))
    with pytest.raises(ab.RaceError) as caught:
        write(array, b)
    assert (caught.value.first.file, caught.value.first.line) == ("<soon gone>", 2)


def test_lines_are_told_however_often_their_function_has_run(a, b, array):
    def either(first):
        if first:
            ab.fill(array, 1, stream=a)
        else:
            ab.fill(array, 2, stream=a)

    def each():
        ab.fill(array, 1, stream=a)
        yield 1
        ab.fill(array, 2, stream=a)
        yield 3

    def line_of_first():
        with pytest.raises(ab.RaceError) as caught:
            write(array, b)
        assert caught.value.first.file == __file__
        return caught.value.first.line

    for _ in range(3):
        for first, distance in (True, 2), (False, 4):
            either(first)
            assert line_of_first() - either.__code__.co_firstlineno == distance
        for distance in each():
            assert line_of_first() - each.__code__.co_firstlineno == distance


def test_a_function_of_one_code_in_several_files_is_told_by_its_own(a, b, array):
    code = compile("fill(array, 1, stream=stream)", "<one>", "exec")
    for file in "<one>", "<other>", "<one>":
        for _ in range(2):
            exec(code.replace(co_filename=file), {"fill": ab.fill, "array": array, "stream": a})
        with pytest.raises(ab.RaceError) as caught:
            write(array, b)
        assert (caught.value.first.file, caught.value.first.line) == (file, 1)


def test_what_was_enqueued_under_auto_races_though_its_line_is_not_known(a, b, array):
    with ab.testing.Gate(a):
        with ab.hazards("auto"):
            write(array, a)
        with pytest.raises(ab.RaceError) as caught:
            write(array, b)
    assert caught.value.first.stream == a


@pytest.mark.parametrize(
    "call",
    [
        lambda array, other: ab.fill(array, 1),
        lambda array, other: ab.copy(other, array),
        lambda array, other: array.__setitem__(slice(2), 1),
        pytest.param(lambda array, other: array + 1, marks=pytest.mark.numba),
        pytest.param(lambda array, other: array.sum(), marks=pytest.mark.numba),
        lambda array, other: array.copy(),
        lambda array, other: array[::2].contiguous(),
    ],
)
def test_the_traceback_ends_in_the_program(a, b, array, call):
    other = ready(array.device)
    write(array, a)
    with b, pytest.raises(ab.RaceError) as caught:
        call(array, other)
    assert caught.traceback[-1].path.samefile(__file__)


@pytest.mark.numba
def test_the_traceback_of_a_launch_ends_in_the_program(a, b, array):
    @ab.kernel
    def clear(i, x: ab.Out):
        x[i] = 0

    write(array, a)
    with pytest.raises(ab.RaceError) as caught:
        ab.launch(clear, array.shape, array, stream=b)
    assert caught.traceback[-1].path.samefile(__file__)


def test_the_traceback_goes_through_the_functions_that_the_package_calls(a, array):
    @ab.graphed
    def body(x):
        raise ab.RaceError("of the program")

    with a, pytest.raises(ab.RaceError) as caught:
        body(array)
    assert caught.traceback[-1].name == "body"


def test_other_errors_keep_the_frames_of_the_package(array):
    with pytest.raises(TypeError) as caught:
        ab.copy(array, object())
    assert not str(caught.traceback[-1].path).endswith(__file__)
