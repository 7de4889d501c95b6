"""Numbers for the parameters of a module's kernels, and arrays that are closed while a launch is under way."""

import sys

import numpy as np
import pytest

import anabranch as ab
from anabranch._launch.grid import GridKernel
from anabranch.kernels._cpp.parameter import ModuleParameter, access_codes, from_symbol
from anabranch.kernels._cuda import ptx

# Without a device


class LoadingError(Exception):
    """The arguments were taken, and the kernel is to be loaded."""


class Stub(GridKernel):
    """A kernel that is never loaded."""

    name = "stub"

    def __init__(self, *rules):
        self.parameters = tuple(
            ModuleParameter(f"p{i}", kind, size, "inout" if kind == "pointer" else None, None)
            for i, (kind, size) in enumerate(rules)
        )
        self._rule([(kind, size, 0, None) for kind, size in rules], ())

    def _load_for(self, device):
        raise LoadingError


def give(rule, value):
    with ab.Device("cpu"):
        ab.launch(Stub(("pointer", 8), rule), ab.LaunchConfig(1, 1), ab.zeros(1), value)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (("bits", 1), -128), (("bits", 2), 65535), (("bits", 4), 1.5), (("bits", 8), 2**64 - 1), (("bits", 8), 1.5),
        (("bits", 12), np.zeros(3, "float32")), (("bits", 16), 1j), (("bits", 16), bytes(16)),
        (("float", 2), 1.5), (("float", 2), 1e300), (("float", 4), 3), (("float", 8), True), (("float", 8), 10**300),
        (("float", 4), np.float16(1)), (("float", 4), np.int8(1)), (("signed", 1), -128),
        (("unsigned", 1), np.uint8(255)), (("signed", 8), True), (("bool", 1), 2**70),
    ],
    ids=str,
)  # fmt: skip
def test_a_number_that_fits_its_parameter_is_taken(rule, value):
    with pytest.raises(LoadingError):
        give(rule, value)


@pytest.mark.parametrize("size", [12, 16, 24])
@pytest.mark.parametrize("value", [5, -5, True, 2**100], ids=str)
def test_bytes_that_no_integer_has_are_no_integer(size, value):
    with pytest.raises(TypeError, match=f"'p1': declared as {size} bytes"):
        give(("bits", size), value)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (("bits", 8), 2**64), (("bits", 8), -(2**63) - 1), (("signed", 8), 2**63), (("unsigned", 8), -1),
        (("integer", 1), 256), (("float", 2), 10**400), (("float", 4), 10**400), (("float", 8), -(10**400)),
        (("float", 8), 10**5000), (("signed", 8), 10**5000),
    ],
    ids=lambda value: str(value) if isinstance(value, tuple) else f"{value.bit_length()} bits",
)  # fmt: skip
def test_a_number_that_does_not_fit_its_parameter_is_refused_by_name(rule, value):
    with pytest.raises(ValueError, match=r"'p1'.* does not fit"):
        give(rule, value)


class ClosingFloat(float):
    def __float__(self):
        self.array.close()
        return 3.0


class ClosingInt(int):
    def __int__(self):
        self.array.close()
        return 3


class ClosingBuffer:
    def __buffer__(self, flags):
        self.array.close()
        return memoryview(bytes(3))


@pytest.mark.parametrize(
    ("rule", "number"),
    [
        (("float", 8), ClosingFloat(3)), (("bits", 4), ClosingFloat(3)), (("float", 2), ClosingFloat(3)),
        (("signed", 4), ClosingInt(3)), (("bits", 4), ClosingInt(3)), (("bool", 1), ClosingInt(3)),
        pytest.param(
            ("struct", 3), ClosingBuffer(),
            marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="__buffer__ came with Python 3.12"),
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, tuple) else type(value).__name__,
)  # fmt: skip
def test_a_number_that_closes_an_array_before_it_is_an_error(rule, number):
    number.array = ab.zeros(1, device="cpu")
    with pytest.raises(ab.ClosedError):
        ab.launch(Stub(("pointer", 8), rule), ab.LaunchConfig(1, 1), number.array, number)


TWO = r"""
    .version 8.0
    .target sm_90
    .address_size 64
    .visible .entry two(.param .u64 .ptr .global .align 4 p, .param .u64 q, .param .b128 wide) { ret; }
"""


def test_one_word_for_the_access_counts_for_arrays_that_the_code_does_not_mark():
    parameters = from_symbol(ptx.entries(TWO)["two"], [8, 8, 16])
    assert [parameter.kind for parameter in parameters] == ["pointer", "integer", "bits"]
    codes, by_order = access_codes("two", parameters, "in")
    assert codes == [1, None, None]
    assert by_order[:2] == (1, 1)


# With a simulated driver, whose kernel `add` adds four bytes to an integer

ADD = r"""
    import numpy as np
    import anabranch as ab

    def kernel(kind):
        text = ".version 8.0\n.target sm_90\n.address_size 64\n"
        text += f".visible .entry add(.param .u64 p, .param .{kind} number) {{ ret; }}\n"
        return ab.Module(text).get_kernel("add")

    config, device = ab.LaunchConfig(1, 1), ab.Device("cuda:0")
"""


def test_a_half_arrives_as_one(run_with):
    script = (
        ADD
        + """
    for kind, value in ("f32", 1.5), ("f16", 1.5), ("f16", -2), ("f16", 1e300), ("f16", np.float16(0.1)):
        x = ab.zeros(1, "int32", device=device)
        ab.launch(kernel(kind), config, x, value)
        with np.errstate(over="ignore"):
            expected = np.array(value).astype("float" + kind[1:])
        assert x.numpy().tobytes()[: expected.nbytes] == expected.tobytes(), (kind, value)
    print("all")
    """
    )
    assert run_with(script, FAKE_MISSING="cuFuncGetParamInfo") == "all\n"


def test_an_array_closed_while_the_kernel_is_loaded_is_an_error(run_with):
    script = (
        ADD
        + """
    add, other = kernel("u32"), ab.Device("cuda:1")
    x = ab.zeros(1, "int32", device=other)
    load = type(add)._load_for

    def load_then_close(self, device):
        load(self, device)
        x.close()

    type(add)._load_for = load_then_close
    try:
        ab.launch(add, config, x, 5)
    except ab.ClosedError:
        print("closed")
    y = ab.zeros(1, "int32", device=other)
    ab.launch(add, config, y, 5)
    print(y.numpy())
    """
    )
    assert run_with(script, FAKE_MISSING="cuFuncGetParamInfo", FAKE_DEVICES="2") == "closed\n[5]\n"
