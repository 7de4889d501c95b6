"""What compiled kernels are kept under: later processes get what they would have compiled, and nothing older."""

import os

import pytest

import anabranch as ab
from anabranch.kernels import _settings
from anabranch.kernels._cache_key import cache_key
from anabranch.kernels._cpu import compiler

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.numba

ARRAY = ("array", "float64", 1, True, False)
CPU = {"ANABRANCH_DEVICE": "cpu"}


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ANABRANCH_CACHE_DIR", str(tmp_path / "cache"))


def key(kernel, backend="cpu", facts=()):
    """Return the key of a kernel that takes arrays."""
    parameters = kernel.parameters
    return cache_key(backend, kernel._function, parameters, (1, (ARRAY,) * len(parameters)), facts)


# What another process edited

CONFIG = """
import enum
import numpy as np

{0}

class Kind(enum.Enum):
    RED = {1}
    BLUE = 7

def deeper(v, d={1}):
    return v + d

def helper(v):
    return deeper(v)

def make(closed={1}):
    def inner(v):
        return v + closed
    return inner

inner = make()
"""

# What a kernel does with the module, and what stands in that before and after an edit.
BODIES = {
    "c = config; o[i] = c.SCALE": ("SCALE = 1", "SCALE = 22"),
    "o[i] = getattr(config, 'SIZE')": ("SIZE = 1", "SIZE = 22"),
    "o[i] = config.SCALAR": ("SCALAR = np.float32(.1)", "SCALAR = np.float64(.1)"),
    "o[i] = config.TABLE[0].a": (
        "TABLE = np.array([(1, 2.5)], [('a', 'i4'), ('b', 'f4')])",
        "TABLE = np.array([(1, 2.5)], [('b', 'i4'), ('a', 'f4')])",
    ),
    "o[i] = config.ORDER[1, 0]": (
        "ORDER = np.array([[1, 2], [3, 4]])",
        "ORDER = np.array([[1, 3], [2, 4]])",
    ),
    "o[i] = config.helper(1) + config.inner(2)": ("", ""),
    "o[i] = config.Kind.RED.value": ("", ""),
    "o[i] = 1 / config.ZERO": ("ZERO = 0.0", "ZERO = -0.0"),
}

SCRIPT = """
import numpy as np
import anabranch as ab
from anabranch.kernels._cpu import compiler
from anabranch.kernels import _settings
import config

np.set_printoptions(legacy="1.25")
{kernels}
for kernel in ({names}):
    o = ab.zeros(1, "float64")
    ab.launch(kernel, 1, o)
    print(repr(float(o.numpy()[0])))
print(compiler.compilations)
"""


def test_an_edit_between_two_processes_is_seen(run_python, tmp_path):
    names = [f"k{number}" for number in range(len(BODIES))]
    kernels = "\n".join(
        f"@ab.kernel\ndef {name}(i, o):\n    {body}\n" for name, body in zip(names, BODIES, strict=True)
    )
    script = SCRIPT.format(kernels=kernels, names=", ".join(names))

    def run(edit, cache):
        lines = "\n".join(lines[edit] for lines in BODIES.values())
        (tmp_path / "config.py").write_text(CONFIG.format(lines, edit + 1))
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        env = {**CPU, "PYTHONPATH": path, "ANABRANCH_CACHE_DIR": str(tmp_path / cache)}
        *results, compilations = run_python(script, env=env | {"PYTHONDONTWRITEBYTECODE": "1"}).split()
        return results, int(compilations)

    first, compiled = run(0, "cache")
    assert compiled == len(BODIES)
    edited, compiled = run(1, "cache")
    assert compiled == len(BODIES)
    assert [a == b for a, b in zip(first, edited, strict=True)] == [False] * len(BODIES)
    assert edited == run(1, "other")[0]
    again, compiled = run(1, "cache")
    assert (again, compiled) == (edited, 2)  # the two that hand the module on
    assert run(0, "cache") == (first, 2)


def test_a_change_while_it_is_compiled_keeps_it_off_the_disk(tmp_path, monkeypatch):
    scale = 1

    @ab.kernel
    def kernel(i, o):
        o[i] = scale

    compile_it = compiler._compile

    def meanwhile(*args):
        nonlocal scale
        scale += 1
        return compile_it(*args)

    with monkeypatch.context() as patch:
        patch.setattr(compiler, "_compile", meanwhile)
        kernel.compile_cpu((1, (ARRAY,)))
    assert not (tmp_path / "cache").exists()
    ab.kernel(kernel._function).compile_cpu((1, (ARRAY,)))
    assert (tmp_path / "cache").exists()


def test_a_launch_with_functions_of_the_c_library_needs_no_numba(run_python):
    script = """
        import math
        import sys
        import anabranch as ab
        import numpy as np

        @ab.kernel
        def kernel(i, o):
            o[i] = math.sin(o[i]) + np.cos(o[i]) + math.exp(o[i]) + np.log(1 + o[i]) + o[i] ** 2.5
            o[i] += math.tanh(o[i]) + np.arctan2(o[i], 2) + math.erf(o[i])

        @ab.kernel
        def clear(i, o):  # a call of memset()
            for k in range(o.shape[0]):
                o[k] = 0

        a, wide = ab.zeros(1), ab.zeros(1000, "float64")
        for array in a, wide:
            ab.launch(kernel, 1, array)
            ab.launch(clear, 1, array)
        ab.synchronize()
        print("numba" in sys.modules)
        """
    assert [run_python(script, env=CPU) for _ in range(2)] == ["True\n", "False\n"]


# Our own options, and Numba's


def test_what_is_declared_is_in_the_key():
    def plain(i, x, y):
        y[i] = x[i]

    keys = set()
    for annotations in ({}, {"x": ab.In}, {"x": ab.Out}, {"x": float}, {"x": "float32"}, {"y": ab.In}, {"y": int}):
        plain.__annotations__ = annotations
        keys.add(key(ab.kernel(plain)))
    assert len(keys) == 7
    assert len({key(ab.kernel(plain), facts=facts) for facts in ((), (1,), (1.0,), ("1",), ((1,),))}) == 5
    assert len({key(ab.kernel(plain), backend) for backend in ("cpu", "cuda")} | {None}) == 3


def test_what_the_future_changes_is_in_the_key():
    keys = set()
    for future in ("", "annotations", "barry_as_FLUFL"):
        scope = {}
        exec((f"from __future__ import {future}\n" if future else "") + "def kernel(i, o):\n    o[i] = i\n", scope)
        keys.add(key(ab.kernel(scope["kernel"])))
    assert len(keys) == 3


def own_inline(*_):
    return False


def test_options_of_a_helper_are_in_the_key():
    import numba
    from numba.core import compiler

    class Pipeline(compiler.Compiler):
        pass

    def key_with(**options):
        helper = numba.njit(**options)(lambda v: v + 1)

        @ab.kernel
        def kernel(i, o):
            o[i] = helper(o[i])

        return key(kernel)

    cacheable = (
        {},
        {"fastmath": True},
        {"fastmath": {"nnan"}},
        {"fastmath": {"nnan", "ninf"}},
        {"error_model": "numpy"},
    )
    keys = [key_with(**options) for options in cacheable]
    assert None not in keys
    assert len(set(keys)) == len(cacheable)
    assert key_with(fastmath={"ninf", "nnan"}) == keys[3]
    for options in ({"locals": {"v": numba.float32}}, {"inline": own_inline}, {"pipeline_class": Pipeline}):
        assert key_with(**options) is None
    fixed = numba.njit("float64(float64)")(lambda v: v + 1)

    @ab.kernel
    def kernel(i, o):
        o[i] = fixed(o[i])

    assert key(kernel) is None


SETTINGS = """
import os
import sys
from pathlib import Path
import anabranch as ab
from anabranch.kernels._cache_key import cache_key

@ab.kernel
def kernel(i, o):
    o[i] = i

def key(backend="{backend}"):
    return cache_key(backend, kernel._function, kernel.parameters, (1, (("array", "float64", 1, True, False),)), ())

"""


@pytest.mark.parametrize(("backend", "package"), [("cpu", "numba"), ("cuda", "numba_cuda_mlir")])
def test_configuration_is_in_the_key_without_the_compiler(run_python, tmp_path, monkeypatch, backend, package):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    script = f"""
        keys = [key()]
        os.environ["NUMBA_OPT"] = "1"
        keys.append(key())
        os.environ["NUMBA_LOOP_VECTORIZE"] = "0"
        keys.append(key())
        Path(".numba_config.yaml").write_text("boundscheck: 1")
        keys.append(key())
        Path(".numba_config.yaml").write_text("boundscheck: 0")
        keys.append(key())
        os.chdir("/")
        assert key() == keys[2]
        print(len(set(keys)), None in keys, {package!r} in sys.modules)
        """
    assert run_python(SETTINGS.format(backend=backend) + dedented(script)) == "5 False False\n"


@pytest.mark.parametrize(
    ("backend", "config"), [("cpu", "numba.core.config"), ("cuda", "numba_cuda_mlir.numba_cuda.core.config")]
)
def test_configuration_that_the_program_changed_has_no_key(run_python, backend, config):
    pytest.importorskip(config.partition(".")[0])
    script = f"""
        before = key()
        import warnings
        warnings.simplefilter("ignore")  # what the compilers' import warns of
        import {config.partition(".")[0]}
        import {config} as config
        assert key() == before
        config.THREADING_LAYER = "workqueue"
        assert key() == before
        found = config.LOOP_VECTORIZE
        config.LOOP_VECTORIZE = 0
        assert key() is None
        config.LOOP_VECTORIZE = found
        assert key() == before
        os.environ["NUMBA_OPT"] = "1"  # which the compiler sees when it compiles next
        assert key() is None
        config.reload_config()
        assert key() not in (None, before)
        """
    run_python(SETTINGS.format(backend=backend) + dedented(script))


def dedented(script):
    return "\n".join(line.removeprefix(" " * 8) for line in script.splitlines())


def test_packages_that_extend_numba_are_known_by_their_versions(tmp_path, monkeypatch):
    @ab.kernel
    def kernel(i, o):
        o[i] = i

    def key_with(version, origin="{}"):
        information = tmp_path / "extends-1.dist-info"
        information.mkdir(exist_ok=True)
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: extends\nVersion: {version}\n")
        (information / "entry_points.txt").write_text("[numba_extensions]\ninit = extends.to_numba:register\n")
        (information / "direct_url.json").write_text(origin)
        _settings.extensions.cache_clear()
        return key(kernel)

    keys = [key(kernel)]
    monkeypatch.syspath_prepend(tmp_path)
    try:
        keys += key_with("1"), key_with("2"), key_with("2", '{"url": "file:///a", "dir_info": {}}')
        assert len(set(keys)) == 3
        assert keys[2] == keys[3]
        assert key_with("2", '{"dir_info":{"editable":true}}') is None
        assert _settings.extensions.cache_info().currsize == 0
    finally:
        monkeypatch.undo()
        _settings.extensions.cache_clear()
