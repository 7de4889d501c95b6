"""The benchmarks run, and judge as they say. What they measure is not looked at here."""

import importlib
import importlib.util
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import anabranch as ab

FOLDER = Path(__file__).parents[1] / "benchmarks"
DIFFERENCES = {"hazard.auto_extra", "hazard.check_extra"}
NEEDS_NUMBA = DIFFERENCES | {
    "launch.enqueue_empty",
    "launch.4args",
    "launch.4args_held",
    "launch.4args_checked",
    "launch.chain1000",
    "kernel.saxpy_memory_bound",
    "graph.node",
    "graph.node_enqueued",
    "graph.launch10",
    "graph.set_args",
    "graph.graphed10",
    "graph.capture1000",
    *("math.add_small", "math.sum_small", "math.add_10m", "math.sum_10m", "math.max_10m"),
    *("math.sum_rows", "math.sum_columns"),
}

# Warp compiles the kernels of its twins.
pytestmark = [pytest.mark.source, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def modules():
    """Import modules of the benchmarks by name, as their programs do."""
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module
    sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def saved(tmp_path_factory, modules):
    """Run every benchmark but the times of kernels, and every twin, a few times; what the run put on record."""
    folder = tmp_path_factory.mktemp("results")
    beginnings = {name.split(".")[0] for name in modules("harness").load()} - {"kernels"}
    command = [sys.executable, str(FOLDER / "compare.py"), "--quick", "--save", str(folder), *sorted(beginnings)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    (text,) = folder.glob("*.md")
    (data,) = folder.glob("*.json")
    return {**json.loads(data.read_text()), "text": text.read_text()}


# In one test, because every process of pytest that has one of them runs all benchmarks.
def test_every_benchmark_runs_or_says_what_is_missing(saved, modules):
    everything_of_ours_ran(saved, modules)
    only_what_is_not_installed_is_absent(saved)
    if not ab.devices("cuda"):
        every_twin_says_that_there_is_no_gpu(saved, modules)
    assert saved["cpu"] in saved["text"]
    assert "kernel.saxpy_memory_bound" in saved["text"]
    assert str(FOLDER.parent) not in str(saved)


def everything_of_ours_ran(saved, modules):
    absent = {"import", "first.kernel_cold", "first.kernel_warm"}  # unless installed as users do
    if not importlib.util.find_spec("numba"):
        absent |= NEEDS_NUMBA
    known = {name for name in modules("harness").load() if not name.startswith("kernels.")}
    if not ab.devices("cuda"):
        absent |= {name for name in known if name.startswith(("cuda.", "copy.cuda.", "math.cuda."))}
    elif not importlib.util.find_spec("numba_cuda_mlir"):
        absent.add("cuda.launch.kernel4")
    assert {name for name in known if "anabranch" not in saved["values"].get(name, {})} <= absent
    times = [results for name, results in saved["values"].items() if name not in DIFFERENCES]
    timed = [result for results in times for result in results.values() if result["unit"] == "ns"]
    assert all(result["median"] > 0 for result in timed)


def every_twin_says_that_there_is_no_gpu(saved, modules):
    on_gpu = {name: twins for name, twins in modules("harness").load().items() if name.startswith("cuda.")}
    reason = "there is no CUDA device"
    assert {name: saved["absent"][name] for name in on_gpu} == {
        name: dict.fromkeys(twins, reason) for name, twins in on_gpu.items()
    }


def only_what_is_not_installed_is_absent(saved):
    on_cpu = [
        twins for name, twins in saved["absent"].items() if not name.startswith(("cuda.", "copy.cuda.", "math.cuda."))
    ]
    absent = {name for twins in on_cpu for name in twins} - {"anabranch", "numpy"}
    assert absent == {name for name in ("warp", "numba") if importlib.util.find_spec(name) is None}


def test_targets_are_of_benchmarks_that_exist(modules):
    compare, known = modules("compare"), modules("harness").load()
    assert set(compare.LIMITS) <= set(known)
    targets = {(name, twin) for name, twins in compare.RATIOS.items() for twin in twins}
    assert targets <= {(name, twin) for name, twins in known.items() for twin in twins}


def test_twins_have_the_ids_of_ours(modules):
    assert {name for name, twins in modules("harness").load().items() if "anabranch" not in twins} == set()


@pytest.mark.parametrize(("ours", "verdict"), [(14, "met"), (15, "met"), (16, "missed")])
def test_a_ratio_is_judged(modules, ours, verdict):
    compare, result = modules("compare"), modules("harness").Result
    results = {"anabranch": result("ns", [ours] * 3), "warp": result("ns", [100.0, 1.0, 900.0])}
    rows = compare.rows_of("launch.4args", results)
    assert [(row.twin, row.ratio, row.verdict) for row in rows] == [("warp", ours / 100, verdict)]


def test_every_benchmark_of_the_cuda_device_has_its_twin_in_c(modules, tmp_path):
    known, driver = modules("harness").load(), modules("twins.driver")
    on_gpu = {name for name in known if name.startswith("cuda.")}
    assert on_gpu == {name for name, twins in known.items() if "driver" in twins}
    library = driver.load(driver.build(tmp_path, "-Werror"))
    in_c = [library.twin_id(position) for position in range(len(on_gpu) + 1)]
    assert in_c.pop() is None
    assert on_gpu == {name.decode() for name in in_c}


@pytest.mark.parametrize(("ours", "verdict"), [(110, "met"), (111, "missed")])
def test_the_cuda_device_is_judged_by_the_floor(modules, ours, verdict):
    compare, result = modules("compare"), modules("harness").Result
    results = {
        "anabranch": result("ns", [ours]),
        "driver": result("ns", [100.0]),
        "torch": result("ns", [175.0]),
        "cupy": result(absent="cupy cannot be imported"),
        "cuda.core": result(failure="Traceback"),
    }
    cells = compare.floor_cells("cuda.launch.4args", results)
    others = "torch 1.75, cuda.core failed"
    assert cells == ("cuda.launch.4args", "100 ns", f"{ours} ns", f"{ours / 100:.3f}", "≤ 1.1", verdict, others)


def test_a_limit_holds_whatever_the_floor_is(modules):
    compare, result = modules("compare"), modules("harness").Result
    results = {name: result("ns", [value]) for name, value in [("anabranch", 41.0), ("driver", 2.0), ("cupy", 57.0)]}
    expected = ("cuda.stream.current", "2 ns", "41 ns", "", "≤ 40 ns", "missed", "cupy 57 ns")
    assert compare.floor_cells("cuda.stream.current", results) == expected


def test_what_cannot_be_measured_says_why_in_its_row(modules):
    compare, result = modules("compare"), modules("harness").Result
    results = {"anabranch": result(absent="no compiler"), "driver": result("ns", [100.0])}
    expected = ("cuda.launch.kernel4", "100 ns", "-", "", "", "absent: no compiler", "")
    assert compare.floor_cells("cuda.launch.kernel4", results) == expected


@pytest.mark.parametrize(
    ("name", "pattern", "chosen"),
    [
        ("cuda.event.record", "cuda", True),
        ("cuda.event.record", "cuda.event", True),
        ("cuda.event.record", "*.record", True),
        ("cuda.event.record_wait", "cuda.event.record", False),
        ("event.record", "cuda", False),
    ],
)
def test_benchmarks_are_chosen_by_pattern_or_beginning(modules, name, pattern, chosen):
    assert modules("compare").matches(name, pattern) == chosen


def test_a_package_that_is_broken_counts_as_absent(modules, monkeypatch, tmp_path):
    (tmp_path / "package_that_is_broken.py").write_text("raise OSError('libbroken.so is missing')")
    monkeypatch.syspath_prepend(tmp_path)
    for _ in range(2):
        with pytest.raises(modules("harness").AbsentError, match=r"libbroken\.so is missing"):
            modules("gpu").imported("package_that_is_broken")


def test_threads_run_at_the_same_time_and_share_the_calls(modules):
    meeting, done = threading.Barrier(3, timeout=30), []

    def make():
        maker = threading.get_ident()

        def body(calls):
            meeting.wait()
            done.append(calls if threading.get_ident() == maker else "another's")

        return body

    cases = modules("harness").in_threads([make] * 3, lambda: done.append("drained"))
    case = next(cases)
    assert case.sample(quick=True) > 0
    assert case.sample(quick=True) > 0
    assert done == [3, 3, 3, "drained"] * 2
    assert next(cases, None) is None


@pytest.mark.parametrize(("lived", "verdict"), [(115, "met"), (116, "missed")])
def test_a_process_that_has_lived_is_judged_by_a_fresh_one(modules, lived, verdict):
    module, result = modules("lived"), modules("harness").Result
    fresh_results = {"anabranch": result("ns", [100]), "driver": result("ns", [80])}
    ages = module.Ages(fresh_results, {"anabranch": result("ns", [lived]), "driver": result("ns", [200])})
    aged, in_lived = f"{lived / 100:.3f}", f"{lived / 200:.3f}"
    row = ("cuda.event.query", "100 ns", "1.250", f"{lived} ns", in_lived, aged, "2.500", "≤ 1.15", verdict)
    assert module.age_cells("cuda.event.query", ages) == row
    assert ages.record() == {
        "fresh": {"anabranch": 100, "driver": 80},
        "lived": {"anabranch": lived, "driver": 200},
        "fresh_ratio": 1.25,
        "lived_ratio": lived / 200,
        "aged": lived / 100,
        "floor_aged": 2.5,
        "verdict": verdict,
    }


def test_what_one_age_lacks_is_not_judged(modules):
    module, result = modules("lived"), modules("harness").Result
    ages = module.Ages({"anabranch": result("ns", [100])}, {"anabranch": result(failure="Traceback")})
    expected = ("cuda.event.query", "100 ns", "", "-", "", "", "", "≤ 1.15", "")
    assert module.age_cells("cuda.event.query", ages) == expected


def test_both_ages_are_measured_in_processes_of_their_own(modules):
    names = ["event.query", "cuda.event.query"]
    ages, _ = modules("lived").measure_ages(names, quick=True)
    assert list(ages) == names
    for results in ages["event.query"].both:
        assert results["anabranch"].value > 0
        assert "warp" not in results
    if not ab.devices("cuda"):
        assert {result.absent for each in ages["cuda.event.query"].both for result in each.values()} == {
            "there is no CUDA device"
        }


def test_a_row_is_taken_from_the_process_whose_floor_was_lowest(modules):
    module, result = modules("lived"), modules("harness").Result
    slow, quick, broken = (
        {"cuda.event.query": {"anabranch": result("ns", [ours]), "driver": result("ns", floor)}}
        for ours, floor in ((300, [180, 190]), (150, [100, 110]), (90, []))
    )
    ages = module.undisturbed([slow, quick], "cuda.event.query")
    assert ages is quick["cuda.event.query"]
    assert module.undisturbed([slow, broken], "cuda.event.query") is broken["cuda.event.query"]


def test_a_life_keeps_half_of_its_memory_and_most_of_its_streams(modules):
    kept = modules("lived").live("cpu", 2000)
    large = [each for each in kept if isinstance(each, ab.Array) and each.size == 2000]
    assert [array.numpy()[-1] for array in large] == [1.0] * 8
    assert len([each for each in kept if isinstance(each, ab.Stream)]) == 66


def test_a_limit_is_judged(modules):
    compare, result = modules("compare"), modules("harness").Result
    rows = [compare.rows_of("object.event_bytes", {"anabranch": result("B", [size])}) for size in (1024, 1025)]
    assert [row.verdict for (row,) in rows] == ["met", "missed"]


def test_a_failure_is_told_from_an_absence(modules):
    harness, compare = modules("harness"), modules("compare")

    def missing():
        import package_that_nobody_has  # noqa: F401

        yield

    def broken():
        yield harness.Timed(lambda calls: 1 / 0)

    def broken_at_the_end():
        yield harness.Timed(lambda calls: None)
        raise ValueError

    results = harness.measure({"warp": missing, "futures": broken, "anabranch": broken_at_the_end}, quick=True)
    assert "package_that_nobody_has" in results["warp"].absent
    assert "ZeroDivisionError" in results["futures"].failure
    assert "ValueError" in results["anabranch"].failure
    verdicts = {row.twin: row.verdict.split(":")[0] for row in compare.rows_of("launch.4args", results)}
    assert verdicts == {"warp": "absent", "futures": "failed"}


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0, "ns", "0 ns"),
        (41.26, "ns", "41.3 ns"),
        (1234.0, "ns", "1.23 µs"),
        (2e9, "ns", "2 s"),
        (1000.0, "B", "1000 B"),
        (1536.0, "B", "1.5 KiB"),
    ],
)
def test_values_are_written_in_a_unit_that_suits(modules, value, unit, text):
    assert modules("compare").in_words(value, unit) == text


def test_counts_are_judged(modules):
    counts = modules("counts")
    limit = counts.limit(1000)
    counted = {"same": 1000, "edge": limit, "more": limit + 1, "fewer": 500, "new": 7}
    verdicts = counts.judge(counted, {"same": 1000, "edge": 1000, "more": 1000, "fewer": 1000})
    assert verdicts == {
        "same": "",
        "edge": "",
        "more": f"MORE than {limit}",
        "fewer": "fewer: put it on record with --update",
        "new": "not on record",
    }


@pytest.mark.parametrize("missing", ["valgrind", "gcc"])
def test_counting_says_which_tool_is_missing(modules, monkeypatch, missing):
    counts = modules("counts")
    found = {} if missing == "valgrind" else {"valgrind": "valgrind"}
    monkeypatch.setattr(counts.shutil, "which", found.get)
    with pytest.raises(counts.UnavailableError, match=f"apt-get install {missing}"):
        counts.count(("stream.current",))


@pytest.mark.parametrize(("more", "verdict"), [(150, ""), (151, "MORE than 150 above launch.4args_held")])
def test_a_launch_that_is_checked_takes_few_instructions_more(modules, more, verdict):
    counted = {"launch.4args_held": 2000, "launch.4args_checked": 2000 + more}
    assert modules("counts").judge(counted, counted)["launch.4args_checked"] == verdict


def test_counted_paths_are_benchmarks(modules):
    assert set(modules("counts").PATHS) <= set(modules("harness").load())
