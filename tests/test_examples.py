"""The programs in `examples`, as a reader would start them."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import anabranch as ab

pytestmark = [pytest.mark.numba, pytest.mark.timeout(300)]
for package in ("numba", "PIL", "rich", "scipy", "skimage"):
    pytest.importorskip(package, reason=f"{package} is not installed, and the examples need it")

from PIL import Image  # noqa: E402
from scipy import ndimage  # noqa: E402

FOLDER = Path(__file__).parents[1] / "examples"
PHOTO_PIPELINE = FOLDER / "photo_pipeline.py"
PHOTO_CLUSTER = FOLDER / "photo_cluster.py"  # a part of it, for Dask
PROGRAMS = sorted(set(FOLDER.glob("*.py")) - {PHOTO_CLUSTER})
ON_GPUS_ONLY = FOLDER / "cuda_module.py"

each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
each_kind = [pytest.param("cpu")]
if ab.devices("cuda"):
    lacks_compiler = find_spec("numba_cuda_mlir") is None
    reason = "numba-cuda-mlir is not installed, and kernels need it on CUDA"
    each_kind.append(pytest.param("cuda", marks=pytest.mark.skipif(lacks_compiler, reason=reason)))

ORIENTATION = 0x0112
LIES_ON_ITS_SIDE = 6


def start(*command, env=()):
    return subprocess.run(
        [sys.executable, "-W", "error", *map(str, command)],
        env={**os.environ, "COLUMNS": "120", **dict(env)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def demo(*arguments, **options):
    return start("-m", "anabranch", "demo", *arguments, **options)


def random_photo(height, width, channels=3, seed=0):
    """Return something with edges, slopes and noise, in which no pixel is like its neighbours."""
    random = np.random.default_rng(seed)
    coarse = random.normal(size=(height // 8 + 2, width // 8 + 2, channels))
    smooth = ndimage.zoom(coarse, (8, 8, 1), order=1)[:height, :width]
    return (128 + 60 * smooth + 8 * random.normal(size=smooth.shape)).clip(0, 255).astype("uint8")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder with a photograph of every kind, and things that are none."""
    folder = tmp_path_factory.mktemp("photos")
    exif = Image.Exif()
    exif[ORIENTATION] = LIES_ON_ITS_SIDE
    Image.fromarray(random_photo(120, 200)).save(folder / "wide.jpg", quality=95, exif=exif)
    Image.fromarray(random_photo(301, 77, seed=1)).save(folder / "TALL.PNG")
    Image.fromarray(random_photo(64, 64, 1, seed=2)[..., 0]).save(folder / "grey.png")
    Image.fromarray(random_photo(50, 90, 4, seed=3)).save(folder / "transparent.png")
    Image.fromarray(random_photo(1, 9, seed=4)).save(folder / "line.png")
    Image.fromarray(random_photo(1, 1, seed=5)).save(folder / "dot.png")
    Image.fromarray(random_photo(40, 30, seed=6)).save(folder / "twice.png")
    Image.fromarray(random_photo(30, 40, seed=7)).save(folder / "twice.jpeg")
    (folder / "notes.txt").write_text("not a photograph")
    (folder / "more").mkdir()
    return folder


NAMES = {
    "wide.jpg": "wide",
    "TALL.PNG": "TALL",
    "grey.png": "grey",
    "transparent.png": "transparent",
    "line.png": "line",
    "dot.png": "dot",
    "twice.png": "twice.png",
    "twice.jpeg": "twice.jpeg",
}


@pytest.fixture(scope="module", params=each_kind)
def done(request, photos, tmp_path_factory):
    """The output folder of a demo of all photographs on a device of each kind, and what it printed."""
    output = tmp_path_factory.mktemp("demo") / "a" / "new" / "folder"
    options = ("--output", output, "--streams", 3, "--rounds", 1)
    result = demo(photos, *options, env={"ANABRANCH_DEVICE": request.param})
    assert (result.returncode, result.stderr) == (0, "")
    assert f"on {request.param}:0: " in result.stdout
    return output, result.stdout


# -- all --


def run_example(program, photos, output, start=start, **environment):
    arguments = [photos, "--output", output, "--rounds", 1] if program == PHOTO_PIPELINE else []
    result = start(program, *arguments, env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


@pytest.fixture
def run_prepared(prepared, tmp_path, photos):
    """Run an example in less time than in the interpreter of its own that it has where it runs for the first time."""

    def start(program, *arguments, env):
        environment = {**os.environ, "COLUMNS": "120", **env}
        return prepared.run(program, *arguments, env=environment, cwd=FOLDER.parent, timeout=120)

    return lambda program, **environment: run_example(program, photos, tmp_path, start, **environment)


@pytest.mark.parametrize("kind", each_kind)
@each_program
def test_every_example_runs_on_every_kind_of_device(program, kind, photos, tmp_path):
    if program == ON_GPUS_ONLY and kind == "cpu":
        pytest.skip("CUDA C++ does not run on the CPU")
    assert run_example(program, photos, tmp_path, ANABRANCH_DEVICE=kind)


@each_program
def test_every_example_makes_its_order_itself_on_the_second_cpu_device_with_one_worker(program, run_prepared):
    second = {"ANABRANCH_DEVICE": "cpu:1", "ANABRANCH_CPU_DEVICES": "2", "ANABRANCH_CPU_WORKERS": "1"}
    run_prepared(program, ANABRANCH_HAZARDS="check", **second)


@pytest.mark.skipif(len(ab.devices("cuda")) < 2, reason="there is no second CUDA device")
@each_program
def test_every_example_runs_on_the_second_cuda_device(program, photos, tmp_path):
    run_example(program, photos, tmp_path, ANABRANCH_DEVICE="cuda:1")


@pytest.mark.skipif(bool(ab.devices("cuda")), reason="there is a CUDA device, which the example uses")
def test_without_a_gpu_an_example_of_cuda_cpp_says_why_it_does_nothing(photos, tmp_path):
    said = run_example(ON_GPUS_ONLY, photos, tmp_path)
    assert "nothing to do" in said
    with pytest.raises(ab.DeviceError) as told:
        ab.Device("cuda:0")
    assert str(told.value) in said


@pytest.mark.parametrize("name", ["concurrent_devices.py", "peer_copies.py"])
def test_an_example_for_two_devices_says_so_where_there_is_one(name):
    if ab.devices("cuda"):
        pytest.skip("there is a CUDA device, and so a second one")
    result = start(FOLDER / name, env={"ANABRANCH_CPU_DEVICES": "1"})
    assert result.returncode == 1
    assert "two devices" in result.stderr


FAILING_LAUNCH = """
import runpy, sys
import anabranch as ab

launch, number, path = ab.launch, int(sys.argv[1]), sys.argv[2]

def one_fails(*arguments, stream):
    global number
    number -= 1
    if number == 0:
        ab.testing.fail(stream, "the one that fails")
    launch(*arguments, stream=stream)

ab.launch = one_fails
runpy.run_path(path)
"""


@pytest.mark.parametrize("number", [5, 600], ids=["asyncio", "threads"])  # after two services of 288 requests each
def test_a_request_that_fails_ends_its_connection(number):
    result = start("-c", FAILING_LAUNCH, number, FOLDER / "image_server.py")
    assert result.returncode == 1
    assert "KernelError: the one that fails" in result.stderr
    assert "IncompleteReadError" in result.stderr  # which the client meets


# -- the demo --


@pytest.mark.parametrize("name", NAMES)
def test_the_demo_agrees_with_scipy(name, photos, done):
    output, _ = done
    original = np.asarray(Image.open(photos / name).convert("RGB")).astype("float64")
    luma = np.tensordot(original, [0.2126, 0.7152, 0.0722], axes=1)
    weights = np.exp(-np.square(np.arange(-6, 7) / 2) / 2)
    blurred = ndimage.correlate(luma, np.outer(weights, weights) / weights.sum() ** 2, mode="nearest")
    along_x = ndimage.correlate(blurred, [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], mode="nearest")
    along_y = ndimage.correlate(blurred, [[-1, -2, -1], [0, 0, 0], [1, 2, 1]], mode="nearest")
    expected = {
        "edges": np.sqrt(along_x**2 + along_y**2),
        "sharpened": original + (luma - blurred)[..., np.newaxis],
    }
    for kind, values in expected.items():
        written = np.asarray(Image.open(output / f"{NAMES[name]}-{kind}.png"))
        assert written.shape == values.shape
        np.testing.assert_allclose(written, values.clip(0, 255), rtol=0, atol=0.51)


def test_the_demo_writes_two_pictures_of_each_photograph(done):
    output, _ = done
    expected = {f"{name}-{kind}.png" for name in NAMES.values() for kind in ("edges", "sharpened")}
    assert {path.name for path in output.iterdir()} == expected


def test_the_demo_keeps_how_the_camera_was_held(done):
    output, _ = done
    for kind in "edges", "sharpened":
        with Image.open(output / f"wide-{kind}.png") as image:
            assert image.getexif()[ORIENTATION] == LIES_ON_ITS_SIDE


def test_the_demo_ends_with_a_table(done):
    _, text = done
    table = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
    one, its_lane, several, *lanes = table
    assert (one[0], one[1], one[3]) == ("1 stream", "8", "1.00")
    assert (several[0], several[1]) == ("3 streams", "8")
    assert float(several[3]) > 0
    assert [lane[0] for lane in (its_lane, *lanes)] == ["lane 1", "lane 1", "lane 2", "lane 3"]
    assert sum(int(lane[1]) for lane in lanes) == 8
    for lane in its_lane, *lanes:
        *parts, busy = (int(cell.removesuffix("%")) for cell in lane[4:])
        assert abs(sum(parts) - busy) <= 2
        assert 0 < busy <= 101
    assert "levels of SciPy's; 0.51 are tolerated" in text
    assert "8 photographs" in text


def test_the_demo_takes_scikit_images_photographs_by_default():
    program = imported()
    paths = [photo.path for photo in program.find(None, Path())]
    assert len(paths) == 18
    assert all("skimage" in path.parts for path in paths)


def imported():
    spec = spec_from_file_location("photo_pipeline", PHOTO_PIPELINE)
    program = module_from_spec(spec)
    spec.loader.exec_module(program)
    return program


def test_the_demo_finds_a_wrong_pixel(photos, done, tmp_path):
    output, _ = done
    program = imported()
    photo = program.Photo(photos / "wide.jpg", "wide", tmp_path)
    for path in photo.edges, photo.sharpened:
        path.write_bytes((output / path.name).read_bytes())
    assert 0 < program.check(photo) <= program.TOLERANCE
    pixels = np.array(Image.open(photo.sharpened))
    pixels[7, 5, 2] ^= 1
    Image.fromarray(pixels).save(photo.sharpened)
    with pytest.raises(SystemExit, match=r"wide-sharpened\.png differs from SciPy's by \d\.\d+ levels; 0\.51 are"):
        program.check(photo)


# -- the demo on a cluster; what happens when a worker dies is in distributed/test_demo_cluster.py --


def test_the_demo_on_a_cluster_makes_the_same_files(photos, done, tmp_path):
    pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    output, text = done
    options = ("--output", tmp_path, "--rounds", 1, "--cluster", "local:2", "--streams", 2)
    result = demo(photos, *options, env={"ANABRANCH_DEVICE": "cuda" if " on cuda:" in text else "cpu"})
    assert (result.returncode, result.stderr) == (0, "")
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in output.iterdir()}
    assert [path.name for path in tmp_path.iterdir() if path.read_bytes() != (output / path.name).read_bytes()] == []
    assert re.search(r"2 workers, 2 streams each +│ 8 ", result.stdout)
    assert result.stdout.count("2 workers ") == 1  # the progress of all


@pytest.mark.parametrize("cluster", ["local:0", "local:two", "somewhere"])
def test_a_cluster_that_is_none(told, cluster, photos, tmp_path):
    result = told(photos, "--output", tmp_path, "--cluster", cluster)
    assert result.returncode == 2
    assert f"{cluster!r} is neither local:N nor an address" in result.stderr


def test_a_cluster_without_dask(photos):
    code = "import sys; sys.modules['distributed'] = None; sys.argv[0] = 'demo'; from runpy import run_path;"
    result = start("-c", f"{code} run_path({str(PHOTO_PIPELINE)!r}, run_name='__main__')", "--cluster", "local:2")
    assert result.returncode == 2
    assert "pip install 'anabranch[dask]'" in result.stderr


# -- the demo's errors: a line that names the file, and no traceback --


@pytest.fixture
def told(prepared):
    """Run the demo for what it tells about its arguments, where the packages that it begins with are imported."""

    def run(*arguments):
        program, environment = Path(__file__).with_name("command_line.py"), {**os.environ, "COLUMNS": "120"}
        return prepared.run(program, "demo", *arguments, env=environment, cwd=FOLDER.parent, timeout=120)

    return run


def refused(result, *words):
    assert result.returncode == 1
    assert result.stderr.startswith("anabranch demo: ")
    assert len(result.stderr.splitlines()) == 1
    for word in words:
        assert str(word) in result.stderr


def broken(kind):
    """Return the contents of a file that is not, or not wholly, a picture."""
    if kind.startswith("text"):
        return b"not a photograph"
    file = io.BytesIO()
    Image.fromarray(random_photo(200, 200)).save(file, "JPEG" if kind.endswith("jpg") else "PNG")
    whole = file.getvalue()
    if kind.startswith("cut"):
        return whole[: len(whole) // 2]
    first, second, *rest = whole.split(b"IDAT")
    return b"IDAT".join([first, second + b"\xff\xff\xff\xff" + rest[0], *rest[1:]])


@pytest.mark.parametrize("kind", ["cut.png", "cut.jpg", "text.png", "text.jpg", "chunk.png"])
def test_a_corrupt_picture_is_named(told, kind, tmp_path):
    Image.fromarray(random_photo(20, 20)).save(tmp_path / "sound.png")
    (tmp_path / kind).write_bytes(broken(kind))
    refused(told(tmp_path, "--output", tmp_path / "output", "--rounds", 1), tmp_path / kind)


def test_a_folder_without_photographs(told, tmp_path):
    (tmp_path / "notes.txt").write_text("")
    refused(told(tmp_path, "--output", tmp_path / "output"), tmp_path, "no photographs", ".jpg, .jpeg or .png")
    assert not (tmp_path / "output").exists()


def test_a_folder_that_does_not_exist(told, tmp_path):
    refused(told(tmp_path / "missing"), tmp_path / "missing")


def test_an_output_that_cannot_be_written(told, photos, tmp_path):
    (tmp_path / "file").write_text("")
    refused(told(photos, "--output", tmp_path / "file"), tmp_path / "file")


@pytest.mark.parametrize("option", ["--streams", "--rounds"])
def test_numbers_below_one(told, option, photos, tmp_path):
    result = told(photos, option, 0, "--output", tmp_path)
    assert result.returncode == 2
    assert "at least 1" in result.stderr


def test_photographs_are_not_overwritten(told, photos):
    result = told(photos, "--output", photos / "more" / "..")
    assert result.returncode == 2
    assert "a folder of its own" in result.stderr
