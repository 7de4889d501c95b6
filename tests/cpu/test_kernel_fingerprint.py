"""What tells kernels apart in the disk cache: worlds of modules, edited at random, are one only if they are alike."""

import enum
import functools
import json
import math
import operator
import struct
import sys
import types
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.kernels._digest import UncacheableError
from anabranch.kernels._fingerprint import fingerprint
from anabranch.kernels._overload import Overloads
from anabranch.kernels._reference import helpers, references

np = pytest.importorskip("numpy")

NONE = Overloads(False, {}, frozenset())

# Each means something else to a compiler than every other one, however it is printed.
VALUES = [
    *("0", "1", "-1", "255", "256", "-256", "10**5000", "10**5000 + 1", "True", "False", "None", "..."),
    *("0.0", "-0.0", "1.0", "float('inf')", "float('nan')", "struct.unpack('<d', bytes(6) + bytes([255, 255]))[0]"),
    *("0j", "1j", "complex(1, -0.0)", "complex(1, 0.0)", "complex(1, float('nan'))"),
    *("''", "'1'", "'\\udc80'", "b''", "b'1'", "()", "(1,)", "((1,),)", "(1, 1)", "((1, 1),)", "(1, (1,))"),
    *("frozenset({1})", "frozenset({1.0})", "frozenset({1, 2})", "frozenset({'1'})", "slice(1)", "slice(1, None)"),
    *("np.float32(.1)", "np.float64(.1)", "np.float64(np.float32(.1))", "np.int8(1)", "np.int16(1)", "np.uint8(1)"),
    *("np.longlong(1)", "np.int_(1)", "np.bool_(True)", "np.complex64(1)", "np.complex128(1)", "np.bytes_(b'1')"),
    *("np.datetime64(1, 's')", "np.datetime64(1, 'ms')", "np.timedelta64(1, 's')", "np.datetime64(1, '2s')"),
    *(
        "np.dtype('f4')",
        "np.dtype('>f4')",
        "np.dtype('f8')",
        "np.dtype('M8[s]')",
        "np.dtype('M8[ms]')",
        "np.dtype('V8')",
    ),
    *("np.dtype('i4,f4')", "np.dtype('f4,i4')", "np.dtype('i4,(2,)f4')", "np.dtype([('a', 'i4'), ('b', 'f4')])"),
    *("np.dtype([('b', 'i4'), ('a', 'f4')])", "np.dtype([(('t', 'a'), 'i4'), ('b', 'f4')])", "np.dtype('u1,f4')"),
    *("np.dtype('u1,f4', align=True)", "np.dtype(('i4', (2,)))", "np.dtype(('i4', (2, 1)))", "np.dtype(np.record)"),
    *("np.dtype({'names': ['a'], 'formats': ['i4'], 'offsets': [4]})", "np.dtype([('a', 'i4'), ('b', 'i4,f4')])"),
    *("np.zeros(2, 'f4')", "np.zeros(2, 'i4')", "np.zeros(2, '>i4')", "np.zeros((2, 1), 'i4')", "np.ones(2, 'i4')"),
    *("np.zeros((2, 2))", "np.zeros((2, 2), order='F')", "np.zeros(4)[::2]", "np.array(0.0)", "np.array(-0.0)"),
    *("np.zeros(1, 'i4,f4')", "np.zeros(1, 'f4,i4')", "frozen(np.zeros(2, 'i4'))", "np.zeros(9, 'u1')[1:].view('i4')"),
    *("np.zeros(1, 'i4,f4')[0]", "np.zeros(1, 'f4,i4')[0]", "np.array(['1'])", "np.float32", "np.float64", "np.sin"),
    *("np.cos", "np.where", "math.sin", "math.cos", "math.pi", "abs", "min", "range", "operator.add", "int", "float"),
    *(
        "Colour.RED",
        "Colour.BLUE",
        "Number.ONE",
        "Colour",
        "Number",
        "lambda v: v",
        "lambda v: v + 1",
        "lambda v: v + 1.0",
    ),
]

CONFIG = "SCALE = {module}"
WITHIN = "DEPTH = {submodule}"
HELPERS = """
FACTOR = {helper}

def deeper(v, d={default}, *, k={keyword}):
    return v {operator} FACTOR

def helper(v):
    return deeper(v) + 1
"""
MAIN = """
CONSTANT = {constant}
WITHIN = {within}

def make():
    closed = {closure}
    def kernel(i, o):
        o[i] = config.SCALE
        o[i] = config.sub.DEPTH
        o[i] = helper(o[i])
        o[i] = closed
        o[i] = CONSTANT
        o[i] = (lambda: WITHIN)()
        o[i] = nowhere
    return kernel
"""
PLACES = ("module", "submodule", "helper", "default", "keyword", "constant", "within", "closure")


def frozen(array):
    array.flags.writeable = False
    return array


def module(source, **names):
    """Run source as a new module. The definitions of values that are classes are new ones, too."""

    class Colour(enum.Enum):
        RED = 1
        BLUE = 2

    class Number(enum.IntEnum):
        ONE = 1

    made = types.ModuleType("made")
    known = {"np": np, "math": math, "operator": operator, "struct": struct, "frozen": frozen}
    vars(made).update(known, Colour=Colour, Number=Number, **names)
    exec(compile(dedent(source), "<made>", "exec"), vars(made))
    return made


def world(edits):
    """Return the kernel of a world in which these values, as source, stand at these places."""
    edits = {**dict.fromkeys(PLACES, "1"), "operator": "+", **edits}
    config = module(CONFIG.format(**edits), sub=module(WITHIN.format(**edits)))
    helper = module(HELPERS.format(**edits)).helper
    return module(MAIN.format(**edits), config=config, helper=helper).make()


def digest(function):
    return fingerprint(function, NONE)


@pytest.mark.parametrize("place", PLACES)
def test_values_differ_wherever_they_stand(place):
    digests = {}
    for value in VALUES:
        digests.setdefault(digest(world({place: value})), []).append(value)
    assert [values for values in digests.values() if len(values) > 1] == []


edits = st.dictionaries(st.sampled_from(PLACES), st.sampled_from(VALUES))
operators = st.sampled_from(["+", "-", "*", "if v else"])


@given(edits, operators, edits, operators)
def test_worlds_are_one_if_they_are_alike(first, operator, edit, other):
    second = {**first, **edit}
    alike = operator == other and all(first.get(place, "1") == second.get(place, "1") for place in PLACES)
    digests = digest(world({**first, "operator": operator})), digest(world({**second, "operator": other}))
    assert (digests[0] == digests[1]) is alike


@given(st.integers() | st.floats() | st.complex_numbers() | st.text() | st.binary())
def test_what_is_alike_has_one_digest(value):
    def kernel(i, o):
        o[i] = value

    copy = types.FunctionType(kernel.__code__, {}, "kernel", None, (types.CellType(value),))
    assert digest(kernel) == digest(copy)


def test_what_is_printed_alike_differs():
    with np.printoptions(legacy="1.25"):
        assert digest(world({"constant": "np.float32(.1)"})) != digest(world({"constant": "np.float64(.1)"}))


def test_lines_count_from_the_first():
    source = "def kernel(i, o):\n    o[i] = 1\n    o[i] = (lambda: 2)()\n"
    first, moved, apart, within = (
        module(text).kernel
        for text in (source, f"\n\n{source}", source.replace("1\n", "1\n\n"), source.replace("(lambda", "(\nlambda"))
    )
    assert digest(first) == digest(moved)
    assert len({digest(first), digest(apart), digest(within)}) == 3


def test_a_closure_variable_and_a_global_of_one_name_are_two():
    source = """
        name = {0}
        def make():
            name = {1}
            def kernel(i, o):
                def inner():
                    global name
                    return name
                o[i] = inner() + name
            return kernel
        """
    digests = {digest(module(source.format(*values)).make()) for values in ((1, 1), (1, 2), (2, 1), (2, 2))}
    assert len(digests) == 4


def test_an_attribute_behind_many_names_is_followed():
    """Past 255 names the bytecode has a prefix before the load of an attribute."""
    lines = "\n".join(f"    o[i] = n{number}" for number in range(300))
    source = f"def kernel(i, o):\n{lines}\n    o[i] = config.SCALE\n"
    digests = {digest(module(source, config=module(f"SCALE = {value}")).kernel) for value in (1, 2)}
    assert len(digests) == 2


def test_functions_and_enumerations_are_told_apart_by_what_they_are():
    """Two with the same contents are still two: code may compare them."""
    source = """
        def make():
            def f(v): return v
            return f
        a, b = make(), make()
        {}
        def kernel(i, o):
            o[i] = a, b
        """
    assert digest(module(source.format("")).kernel) != digest(module(source.format("b = a")).kernel)
    other = module("").Colour
    source = "def kernel(i, o):\n    o[i] = Colour.RED, Other.RED\n"
    assert digest(module(source, Other=other).kernel) != digest(module(f"Other = Colour\n{source}").kernel)


def test_a_function_that_calls_itself_has_a_digest():
    first, second = (module(f"def kernel(i, o):\n    kernel(i, {n})\n").kernel for n in (1, 2))
    assert digest(first) != digest(second)


def test_what_is_nested_too_deeply_is_refused():
    value = ()
    for _ in range(5 * sys.getrecursionlimit()):
        value = (value,)

    def kernel(i, o):
        o[i] = value

    with pytest.raises(UncacheableError, match="nested"):
        digest(kernel)


class Lazy(types.ModuleType):
    SCALE = 1


def lazily(name):
    return 1


UNCACHEABLE = {
    "a module in a variable": "c = config; o[i] = c.SCALE",
    "a module that is chosen": "o[i] = (config if i else config).SCALE",
    "a module that is passed": "o[i] = getattr(config, 'SCALE')",
    "a library in a variable": "m = math; o[i] = m.pi",
    "a module in a tuple": "o[i] = modules[0].SCALE",
    "an attribute made when it is asked for": "o[i] = config.LAZY",
    "an attribute of a class of modules": "o[i] = lazy.SCALE",
    "an object": "o[i] = thing",
    "a list": "o[i] = items[0]",
    "a class": "o[i] = Thing()",
    "a bound method": "o[i] = thing.method()",
    "a subclass of an array": "o[i] = matrix[0]",
    "an array of objects": "o[i] = objects[0]",
    "a large array": "o[i] = large[0]",
    "a dtype with a remark": "o[i] = remark",
    "a scalar of a class of its own": "o[i] = own",
    "a set of objects": "o[i] = things",
    "a flag": "o[i] = flag",
    "a foreign function": "o[i] = dumps(1)",
    "a class that bears a library's name": "o[i] = Named(1)",
    "a function with a type of its own": "o[i] = typed(1)",
}


@pytest.mark.parametrize("body", UNCACHEABLE.values(), ids=UNCACHEABLE)
def test_what_cannot_be_followed_is_refused(body):
    class Thing:
        def method(self):
            return 1

    class Named:
        __module__, __qualname__ = "numpy", "float32"

    class Own(np.float64):
        pass

    def typed(v):
        return v

    typed._numba_type_ = object()
    config = module("SCALE = 1\ndef __getattr__(name): return 1")
    vars(config).update(modules=(config,), lazy=Lazy("lazy"), Thing=Thing, thing=Thing(), items=[1], Named=Named)
    vars(config).update(matrix=np.ones(1).view(np.recarray), objects=np.array([None]), large=np.zeros(1 << 20))
    vars(config).update(remark=np.dtype("f4", metadata={"a": 1}), own=Own(1), things=frozenset({Thing()}), typed=typed)
    vars(config).update(flag=enum.Flag("Flag", "A").A, dumps=json.dumps, config=config)
    exec(f"def kernel(i, o):\n    {body}\n", vars(config))
    with pytest.raises(UncacheableError):
        digest(config.kernel)


def test_a_copied_name_does_not_make_a_library():
    @functools.wraps(np.sin)
    def sine(v):
        return v * 2

    @functools.wraps(np.sin)
    def other(v):
        return v * 3

    claims = types.FunctionType(sine.__code__, {"__name__": "math"}, "sin")
    kernels = [
        module("def kernel(i, o):\n    o[i] = f(i)\n", f=function).kernel for function in (sine, other, np.sin, claims)
    ]
    assert [helpers(kernel) for kernel in kernels] == [[sine], [other], [], [claims]]
    assert len(set(map(digest, kernels[:3]))) == 3


def test_references_stop_at_the_first_value_that_is_no_module():
    kernel = world({"module": "np.zeros(2)"})
    names = ["config.SCALE", "config.sub.DEPTH", "helper", "closed", "CONSTANT", "WITHIN"]
    assert [reference.name for reference in references(kernel)] == names
