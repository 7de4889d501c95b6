"""What a graphed function reads that is no argument: a later change of it warns."""

import types
import warnings

import pytest

import anabranch as ab

from ..arrays import zeros


def in_module(**names):
    """Return a graphed function of a module of its own, which fills an array with `value`, and the module's names."""

    def step(x):
        ab.fill(x, value)  # noqa: F821

    scope = {"ab": ab, **names}
    return ab.graphed(types.FunctionType(step.__code__, scope, "step")), scope


def test_a_global_that_changed_warns_once_and_names_it(device, stream):
    step, scope = in_module(value=1)
    x = zeros(4, device=device)
    step(x)
    step(x)
    scope["value"] = 2
    with pytest.warns(RuntimeWarning, match="step was captured with value = 1, which is 2 now") as told:
        step(x)
    step(x)  # another warning would be an error
    assert "call step.clear()" in str(told[0].message)
    assert told[0].filename == __file__
    assert x.numpy().tolist() == [1] * 4
    step.clear()
    step(x)
    assert x.numpy().tolist() == [2] * 4


def test_an_equal_value_is_no_change(device, stream):
    step, scope = in_module(value=1000.0)
    x = zeros(4, device=device)
    step(x)
    scope["value"] = float("1000")
    step(x)
    assert step.graphs == 1


def test_a_variable_of_the_function_around_warns(device, stream):
    value = 1

    @ab.graphed
    def step(x):
        ab.fill(x, value)

    x = zeros(4, device=device)
    step(x)
    value = 2
    with pytest.warns(RuntimeWarning, match="value = 1, which is 2 now"):
        step(x)


def test_another_array_warns_whatever_it_holds(device, stream):
    source, x = zeros(4, device=device), zeros(4, device=device)

    @ab.graphed
    def step(x):
        ab.copy(x, source)

    step(x)
    step(x)
    source = zeros(4, device=device)
    with pytest.warns(RuntimeWarning, match="with source = <Array"):
        step(x)


def test_a_function_that_was_defined_again_warns_if_it_is_another(device, stream):
    def defined(value):
        if value == 1:
            return lambda x: ab.fill(x, 1)
        return lambda x: ab.fill(x, 2)

    part = defined(1)

    @ab.graphed
    def step(x):
        part(x)

    x = zeros(4, device=device)
    step(x)
    part = defined(1)
    step(x)
    part = defined(2)
    with pytest.warns(RuntimeWarning, match="step was captured with part = <function"):
        step(x)


@pytest.mark.numba
def test_a_kernel_that_was_decorated_again_warns_if_it_is_another(device, stream):
    def scaled(factor):
        if factor == 1:

            @ab.kernel
            def scale(i, x: ab.InOut):
                x[i] = x[i] * 2
        else:

            @ab.kernel
            def scale(i, x: ab.InOut):
                x[i] = x[i] * 3

        return scale

    scale = scaled(1)

    @ab.graphed
    def step(x):
        ab.launch(scale, 4, x)

    x = ab.ones(4, device=device)
    step(x)
    scale = scaled(1)
    step(x)
    scale = scaled(2)
    with pytest.warns(RuntimeWarning, match="step was captured with scale = <kernel "):
        step(x)
    assert x.numpy().tolist() == [8] * 4


def test_a_warning_that_is_an_error_launches_nothing(device, stream):
    step, scope = in_module(value=1)
    x = zeros(4, device=device)
    step(x)
    ab.fill(x, 5)
    scope["value"] = 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="value"):
            step(x)
    assert x.numpy().tolist() == [5] * 4
