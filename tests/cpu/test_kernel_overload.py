"""What others teach the compilers is honoured, and the kernels that it may reach are compiled in each process."""

import pytest

pytest.importorskip("numpy")

pytestmark = pytest.mark.numba

# Says which of several kernels have a key.
SCRIPT = """
import operator
import os
import warnings

import numpy as np

import anabranch as ab
from anabranch.kernels._cache_key import cache_key
from anabranch.kernels._overload import overloads

warnings.simplefilter("ignore")

def mine(v): return v
def jitable(v): return v
def within(v): return mine(v)
def other(v): return v

def key_of(body):
    scope = dict(globals())
    exec("def kernel(i, x, o):\\n    " + body, scope)
    kernel = ab.kernel(scope["kernel"])
    array = ("array", "float64", 1, True, False)
    return cache_key("{backend}", kernel._function, kernel.parameters, (1, (array, array)), ())

def kept():
    bodies = ["mine(i)", "within(i)", "jitable(i)", "other(i)"]
    bodies += ["x.foo()", "x.foa", "getattr(x, 'foa')", "x.bar", "np.sin(i)"]
    return [body for body in bodies if key_of("o[i] = " + body) is not None]

everything = kept()
assert len(everything) == 9
"""

TEACH = {
    "cpu": """
import numba
from numba.extending import *
from numba import types
within_registry = {}
""",
    "cuda": """
from numba_cuda_mlir import types
from numba_cuda_mlir import extending
from numba_cuda_mlir.extending import *
within_registry = {"typing_registry": extending.typing_registry}
""",
}

TAUGHT = """
assert kept() == everything
class Own(types.Type): pass
overload_method(Own, "foo", **within_registry)(lambda x: lambda x: 1)
lower_builtin(operator.add, Own, Own)(lambda *_: None)
assert kept() == everything
register_jitable(jitable, **within_registry)
assert kept() == [body for body in everything if "jitable" not in body]
overload(mine, **within_registry)(lambda v: lambda v: v)
assert kept() == ["other(i)", "x.foo()", "x.foa", "getattr(x, 'foa')", "x.bar", "np.sin(i)"]
overload_method(types.Array, "foo", **within_registry)(lambda x: lambda x: 1)
lowering = {"lowering_registry": extending.lowering_registry} if within_registry else {}
overload_attribute(types.Array, "foa", **within_registry, **lowering)(lambda x: lambda x: 1)
assert kept() == ["other(i)", "x.bar", "np.sin(i)"]

def teach_a_library():
    yield lambda: overload(np.cbrt, **within_registry)(lambda v: lambda v: v)
    yield lambda: overload_method(types.Array, "sum", **within_registry)(lambda x: lambda x: 1)
    yield lambda: type_callable(operator.add, **within_registry)(lambda context: lambda a, b: a)
    yield lambda: lower_builtin(operator.add, types.Integer, types.Integer)(lambda *_: None)
    yield lambda: lower_cast(types.Integer, types.Float)(lambda *_: None)

def from_a_package():
    scope = dict(globals(), __name__="package.part")
    exec("overload(np.cbrt, **within_registry)(lambda v: lambda v: v)", scope)

for teach in teach_a_library():  # each in a process where nothing of a library was taught before
    child = os.fork()
    if not child:
        teach()
        os._exit(kept() != [])
    assert os.waitpid(child, 0)[1] == 0

from_a_package()
assert not overloads("{backend}", frozenset({"package"})).everything
assert kept() == []
"""


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_what_others_overload_is_not_kept(run_python, backend):
    if backend == "cuda":
        pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")
    script = SCRIPT + TEACH[backend] + TAUGHT
    run_python(script.replace("{backend}", backend))


def test_an_overload_is_honoured_and_not_kept(run_python, tmp_path):
    env = {"ANABRANCH_DEVICE": "cpu", "ANABRANCH_CACHE_DIR": str(tmp_path / "cache")}
    script = """
        import anabranch as ab
        from numba.extending import overload

        def helper(v):
            return v + 1

        if {taught}:
            overload(helper)(lambda v: lambda v: v + 100)

        @ab.kernel
        def kernel(i, o):
            o[i] = helper(i)

        o = ab.zeros(1)
        ab.launch(kernel, 1, o)
        print(o.numpy())
        """
    results = [run_python(script.format(taught=taught), env=env) for taught in (False, True)]
    assert results == ["[1.]\n", "[100.]\n"]
    assert len([path for path in (tmp_path / "cache").rglob("*") if path.is_file()]) == 1
