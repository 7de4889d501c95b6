"""The benchmarks of how long kernels take on the device compute what their twins do, and are judged by the best."""

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
TWINS = {"c++", "numba"}


@pytest.fixture(scope="module")
def modules():
    """Import modules of the benchmarks by name, as their programs do."""
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module
    sys.path.remove(str(FOLDER))


@pytest.mark.numba
@pytest.mark.timeout(120)  # Numba compiles each kernel twice
def test_kernels_on_the_cpu_compute_what_their_twins_do(tmp_path):
    command = [sys.executable, str(FOLDER / "compare.py"), "--quick", "kernels.cpu.*.1K", "--save", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    (record,) = tmp_path.glob("*-kernels-*.json")
    values = json.loads(record.read_text())["values"]
    assert len(values) == 15
    twins = TWINS if shutil.which("g++") else {"numba"}
    for name, results in values.items():
        assert results.keys() == {"anabranch", *twins} - ({"numba"} if "histogram" in name else set())
        assert all(result["median"] > 0 for result in results.values())
    assert all(name in done.stdout for name in values)


def test_every_kernel_has_a_twin_written_by_hand_on_every_device(modules):
    known = {name: set(twins) for name, twins in modules("harness").load().items() if name.startswith("kernels.")}
    assert len(known) == 15 * 4 * 2 + 2 * 4
    assert [name for name, twins in known.items() if not {"anabranch", "c++"} <= twins] == []


@pytest.mark.parametrize(("ours", "verdict"), [(84, "met"), (85, "missed")])
def test_a_kernel_is_judged_by_the_fastest_twin_written_by_hand(modules, ours, verdict):
    compare, result = modules("compare"), modules("harness").Result
    results = {
        "anabranch": result("ns", [ours]),
        "c++": result("ns", [100.0]),
        "numba": result("ns", [80.0]),
        "warp": result("ns", [40.0]),
    }
    cells = compare.floor_cells("kernels.cpu.five_point.1M", results)
    others = "c++ 1.25, warp 0.50"
    expected = ("80 ns numba", f"{ours} ns", f"{ours / 80:.3f}", "≤ 1.05", verdict, others)
    assert cells == ("kernels.cpu.five_point.1M", *expected)


def test_a_kernel_without_a_twin_is_not_judged(modules):
    compare, result = modules("compare"), modules("harness").Result
    results = {"anabranch": result("ns", [100.0]), "c++": result(absent="there is no g++")}
    cells = compare.floor_cells("kernels.cpu.five_point.1M", results)
    reason = "absent: there is no g++"
    assert cells == ("kernels.cpu.five_point.1M", reason, "100 ns", "", "≤ 1.05", reason, "")


def test_results_that_differ_from_the_first_are_refused(modules):
    import numpy

    kernels = modules("kernels")
    exact, near = (kernels.MAKERS[name]("1K") for name in ("five_point", "mandelbrot"))
    found, other = numpy.zeros(2000), numpy.zeros(2000)
    other[7] = 1
    kernels.arrays_of(near)
    near.check(found)
    near.check(other)
    with pytest.raises(ArithmeticError, match="mandelbrot of 1K: 2000 of 2000 results differ"):
        near.check(found + 1)
    kernels.arrays_of(exact)
    exact.check(found)
    with pytest.raises(ArithmeticError, match="five_point of 1K: 1 of 2000 results differ"):
        exact.check(other)


@pytest.mark.parametrize("count", [2**10, 2**16])
def test_places_are_all_indices_once(modules, count):
    places = modules("kernels").places(count, "int32")
    assert sorted(places.tolist()) == list(range(count))
    assert places.tolist() != list(range(count))


def test_blocks_cover_the_index_space(modules):
    grid_of = modules("kernels.cuda_source").grid_of
    assert grid_of((1000,), (256, 1, 1)) == (4, 1, 1)
    assert grid_of((10, 64), (32, 8, 1)) == (2, 2, 1)
    assert grid_of((3, 5, 64), (32, 4, 2)) == (2, 2, 2)


def test_the_source_of_the_twins_on_cuda_compiles(modules):
    pytest.importorskip("cuda.bindings.nvrtc")
    from anabranch.kernels._cpp.nvrtc import compile_source

    kernels, texts = modules("kernels"), modules("kernels.cuda_source")
    image = compile_source(texts.SOURCE, (), (), 90).image
    assert [name for name in kernels.MAKERS if name.encode() not in image] == []
    assert b"hold" in compile_source(modules("kernels.device_time").HOLD, (), (), 90).image
