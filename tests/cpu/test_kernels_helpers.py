"""Functions that kernels on the CPU call: whose meaning they have, and of when."""

import pytest

import anabranch as ab

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.numba


def test_an_overload_of_a_helper_is_honoured():
    from numba import extending

    def doubled(x):
        return 2 * x

    @extending.overload(doubled)
    def _(x):
        return lambda x: 3 * x

    @ab.kernel
    def use(i, y: ab.Out):
        y[i] = doubled(i)

    y = ab.zeros(3, device="cpu")
    ab.launch(use, 3, y)
    np.testing.assert_array_equal(y.numpy(), [0, 3, 6])


def test_helpers_have_the_globals_of_the_moment_when_a_kernel_is_compiled():
    scope = {"FACTOR": 2.0}
    exec("def scaled(x):\n    return FACTOR * x\n", scope)
    scaled = scope["scaled"]

    def result():
        @ab.kernel
        def use(i, y: ab.Out):
            y[i] = scaled(i)

        y = ab.zeros(2, device="cpu")
        ab.launch(use, 2, y)
        return y.numpy().tolist()

    assert result() == [0, 2]
    scope["FACTOR"] = 5.0
    assert result() == [0, 5]


def test_a_helper_that_numba_has_compiled_for_python_divides_as_numpy_does():
    import numba

    @numba.njit
    def divided(x, y):
        return x / y

    with pytest.raises(ZeroDivisionError):
        divided(1.0, 0.0)

    @ab.kernel
    def use(i, y: ab.Out):
        y[i] = divided(1.0, float(i))

    y = ab.zeros(2, device="cpu")
    ab.launch(use, 2, y)
    np.testing.assert_array_equal(y.numpy(), [np.inf, 1])
