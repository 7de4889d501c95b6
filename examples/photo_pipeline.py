"""Photographs on several streams: decode, copy in, blur, find edges, sharpen, copy out, encode.

The work on one photograph is a chain, so it goes on one stream. Two photographs have nothing to do with each other, so
they go on two: while one is decoded, another is blurred and a third is written. Decoding and encoding are host
functions, put into the stream like everything else; they run when what is before them in their stream is done. The
program queues everything, and then takes the results as they come. The only order there is, is that of each stream.

The job is done on one stream and on several, and every picture it writes is compared with SciPy's. It runs on the
current device, which is a GPU if there is one; ANABRANCH_DEVICE=cpu chooses the CPU. On a GPU the copies from and to
pinned memory of one photograph, the kernels of another, and reading and writing files go on at the same time. On a CPU
device the kernels of one stream already use all cores; what several streams gain there is that files are read and
written meanwhile.

    python photo_pipeline.py [FOLDER] [--output DIR] [--streams N] [--rounds N] [--cluster local:N | tcp://HOST:PORT]
"""

import argparse
import math
import time
from concurrent.futures import as_completed
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from scipy import ndimage

import anabranch as ab

RED, GREEN, BLUE = 0.2126, 0.7152, 0.0722  # their shares of the luminance
SIGMA, RADIUS = 2.0, 6  # of the blur, in pixels
AMOUNT = 1.0  # of sharpening: how often the difference to the blurred photograph is added

# In levels from 0 to 255, how far a pixel may be from SciPy's: half a level is lost when results are rounded to whole
# ones, and the rest is for computing with float32 where SciPy does with float64.
TOLERANCE = 0.51

# The photographs that scikit-image ships, and nothing of its drawings and masks.
BUNDLED = """
    astronaut.png brick.png camera.png cell.png chelsea.png clock_motion.png coffee.png coins.png grass.png gravel.png
    hubble_deep_field.jpg ihc.png moon.png motorcycle_left.png motorcycle_right.png page.png retina.jpg rocket.jpg
"""


# -- on the device: kernels, called once per pixel, and what they call --


def clamp(position, size):
    """Return the position, or the nearest one inside."""
    return min(max(position, 0), size - 1)


def level(value):
    """Return the nearest of the levels from 0 to 255."""
    return np.uint8(min(max(value, 0.0), 255.0) + 0.5)


@ab.kernel
def luminance(pixel, photo: ab.In, luma: ab.Out):
    """Make a grey photograph of a coloured one."""
    y, x = pixel
    luma[y, x] = RED * photo[y, x, 0] + GREEN * photo[y, x, 1] + BLUE * photo[y, x, 2]


@ab.kernel
def blur_along_x(pixel, weights: ab.In, source: ab.In, target: ab.Out):
    """Replace each pixel by a weighted mean of its row's."""
    y, x = pixel
    total = weights[RADIUS] * source[y, x]
    for d in range(1, RADIUS + 1):
        left, right = clamp(x - d, source.shape[1]), clamp(x + d, source.shape[1])
        total += weights[RADIUS + d] * (source[y, left] + source[y, right])
    target[y, x] = total


@ab.kernel
def blur_along_y(pixel, weights: ab.In, source: ab.In, target: ab.Out):
    """Replace each pixel by a weighted mean of its column's."""
    y, x = pixel
    total = weights[RADIUS] * source[y, x]
    for d in range(1, RADIUS + 1):
        up, down = clamp(y - d, source.shape[0]), clamp(y + d, source.shape[0])
        total += weights[RADIUS + d] * (source[up, x] + source[down, x])
    target[y, x] = total


@ab.kernel
def sobel(pixel, source: ab.In, edges: ab.Out):
    """Find edges: how much a pixel's neighbours on one side differ from those on the other."""
    y, x = pixel
    up, down = clamp(y - 1, source.shape[0]), clamp(y + 1, source.shape[0])
    left, right = clamp(x - 1, source.shape[1]), clamp(x + 1, source.shape[1])
    along_x = source[up, right] + 2 * source[y, right] + source[down, right]
    along_x -= source[up, left] + 2 * source[y, left] + source[down, left]
    along_y = source[down, left] + 2 * source[down, x] + source[down, right]
    along_y -= source[up, left] + 2 * source[up, x] + source[up, right]
    edges[y, x] = level(math.sqrt(along_x * along_x + along_y * along_y))


@ab.kernel
def unsharp(pixel, photo: ab.In, luma: ab.In, blurred: ab.In, sharpened: ab.Out):
    """Sharpen: add what blurring takes away."""
    y, x = pixel
    added = AMOUNT * (luma[y, x] - blurred[y, x])
    for channel in range(3):
        sharpened[y, x, channel] = level(photo[y, x, channel] + added)


# -- on the host: functions that streams call --


def decode(path, pixels):
    """Read a photograph into pinned memory; return how the camera was held, for the pictures that are made of it."""
    try:
        with Image.open(path) as image:
            pixels[...] = image.convert("RGB")
            return image.info.get("exif", b"")
    except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises, by kind of damage
        raise OSError(f"{path} cannot be read: {error}") from error


def encode(decoded, pictures):
    """Write pictures from pinned memory to files, hardly compressed: more would take longer than all the rest."""
    # A host function that raises fails its future and nothing else, so here we are even if there was nothing to decode.
    exif = decoded.result()
    for path, pixels in pictures.items():
        Image.fromarray(pixels).save(path, "PNG", exif=exif, compress_level=1)


# -- the job --


class Photo:
    """A photograph's file, its size, and the files that are made of it."""

    def __init__(self, path, name, output):
        with Image.open(path) as image:  # reads no more than the size
            self.shape = (image.height, image.width)
        self.path = path
        self.size = math.prod(self.shape)
        self.edges, self.sharpened = output / f"{name}-edges.png", output / f"{name}-sharpened.png"


class Pinned:
    """Host memory that a device can copy from and to by itself, for one picture after another."""

    def __init__(self, size):
        self.array = ab.empty(size, "uint8", device="cpu", pinned=True)
        self.bytes = np.asarray(self.array)  # the same memory, for host functions

    def picture(self, shape):
        """Return the memory as a picture of that shape."""
        return self.bytes[: math.prod(shape)].reshape(shape)


class Lane:
    """A stream, and the pinned memory through which its photographs go."""

    def __init__(self, name, largest, weights):
        self.stream = ab.Stream(name=name)
        self.weights = weights
        self.photo, self.edges, self.sharpened = Pinned(3 * largest), Pinned(largest), Pinned(3 * largest)
        self.pixels = 0  # of all its photographs
        self.marks = []  # for each of them, the events between its parts

    def mark(self):
        """Record an event that takes the time."""
        return self.stream.record_event(ab.Event(enable_timing=True))

    def enqueue(self, photo):
        """Put all the work on a photograph into the stream. Waits for nothing; returns a future."""
        grey, color = photo.shape, (*photo.shape, 3)
        with self.stream as stream:  # everything in this block goes there
            begun = self.mark()
            decoded = stream.submit(decode, photo.path, self.photo.picture(color))
            ready = self.mark()

            # Memory of the device costs nothing: what one photograph has used, the stream gives to the next. Pinned
            # memory is expensive, so a lane keeps its own, and its order keeps one photograph from overwriting another.
            original, sharpened = ab.empty(color, "uint8"), ab.empty(color, "uint8")
            luma, half, blurred, edges = ab.empty(grey), ab.empty(grey), ab.empty(grey), ab.empty(grey, "uint8")
            # The stream is named, since pinned memory may be another device's: that of the first CPU device.
            ab.copy(original, self.photo.array, stream=stream, count=original.size)
            ab.launch(luminance, grey, original, luma)
            ab.launch(blur_along_x, grey, self.weights, luma, half)
            ab.launch(blur_along_y, grey, self.weights, half, blurred)
            ab.launch(sobel, grey, blurred, edges)
            ab.launch(unsharp, grey, original, luma, blurred, sharpened)
            ab.copy(self.edges.array, edges, stream=stream, count=edges.size)
            ab.copy(self.sharpened.array, sharpened, stream=stream, count=sharpened.size)
            computed = self.mark()

            pictures = {photo.edges: self.edges.picture(grey), photo.sharpened: self.sharpened.picture(color)}
            encoded = stream.submit(encode, decoded, pictures)
            self.marks.append([begun, ready, computed, self.mark()])
        self.pixels += photo.size
        return encoded


class Run(NamedTuple):
    """The job, done."""

    lanes: list
    seconds: float


def weights_of_blur():
    """Return the weights of a pixel and its neighbours on both sides, which are the same along x and along y."""
    weights = np.exp(-0.5 * (np.arange(-RADIUS, RADIUS + 1) / SIGMA) ** 2)
    return ab.array(weights / weights.sum(), "float32")


def largest_of(photos):
    """Return how many pixels the largest photograph has."""
    return max(photo.size for photo in photos)


def run(photos, streams, advance):
    """Do the job on a number of streams, and call `advance` for each photograph that is done."""
    largest, weights = largest_of(photos), weights_of_blur()
    lanes = [Lane(f"lane {number}", largest, weights) for number in range(1, streams + 1)]

    begin = time.perf_counter()
    futures = []
    for photo in sorted(photos, key=lambda photo: photo.size, reverse=True):
        emptiest = min(lanes, key=lambda lane: lane.pixels)
        futures.append(emptiest.enqueue(photo))
    for future in as_completed(futures):
        future.result()
        advance()
    for lane in lanes:
        lane.stream.synchronize()  # the last events, too
    return Run(lanes, time.perf_counter() - begin)


def check(photo):
    """Compare the pictures made of a photograph with SciPy's; return the largest difference in levels."""
    original = np.asarray(Image.open(photo.path).convert("RGB"), "float64")
    luma = original @ [RED, GREEN, BLUE]
    blurred = ndimage.gaussian_filter(luma, SIGMA, mode="nearest", radius=RADIUS)
    edges = np.hypot(ndimage.sobel(blurred, 0, mode="nearest"), ndimage.sobel(blurred, 1, mode="nearest"))
    sharpened = original + AMOUNT * (luma - blurred)[..., np.newaxis]
    largest = 0.0
    for path, expected in {photo.edges: edges, photo.sharpened: sharpened}.items():
        difference = np.abs(np.asarray(Image.open(path)) - expected.clip(0, 255)).max()
        if difference > TOLERANCE:
            raise SystemExit(f"{path} differs from SciPy's by {difference:.3f} levels; {TOLERANCE} are tolerated")
        largest = max(largest, difference)
    return largest


# -- the program --


def find(folder, output):
    """Return the photographs of a folder, or scikit-image's."""
    if folder is None:
        from skimage import data_dir

        paths = [Path(data_dir, name) for name in BUNDLED.split()]
    else:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in {".jpeg", ".jpg", ".png"})
    if not paths:
        raise OSError(f"{folder} has no photographs: no file in it ends in .jpg, .jpeg or .png")
    stems = [path.stem for path in paths]
    return [Photo(path, path.stem if stems.count(path.stem) == 1 else path.name, output) for path in paths]


def shares(lane, seconds):
    """Return which shares of the time a lane was decoding, computing, encoding, and busy with any of them."""
    spent = [[begin.elapsed_time(end) for begin, end in pairwise(marks)] for marks in lane.marks]
    parts = [sum(part) / 1000 / seconds for part in zip(*spent, strict=True)]
    return [f"{share:.0%}" for share in (*parts, sum(parts))]


def summary(one, several):
    """Return the closing table."""
    table = Table("", "photos", "time", "speed-up", "decode", "compute", "encode", "busy")
    for column in table.columns[1:]:
        column.justify = "right"
    for lanes, seconds in one, several:
        photos = sum(len(lane.marks) for lane in lanes)
        name, speedup = streams_in_words(len(lanes)), one.seconds / seconds
        table.add_row(name, str(photos), f"{seconds:.2f} s", f"{speedup:.2f}", style="bold")
        for lane in lanes:
            table.add_row(f"  {lane.stream.name}", str(len(lane.marks)), "", "", *shares(lane, seconds))
        table.add_section()
    return table


def streams_in_words(number):
    """Return, say, "1 stream"."""
    return f"{number} stream{'s' * (number > 1)}"


def device_of_kernels(tell):
    """Return the current device, or the CPU where it is a GPU without a compiler, which `tell` is called about."""
    device = ab.current_device()
    if device.kind == "cuda" and find_spec("numba_cuda_mlir") is None:
        tell(f"{device.alias} is left out: anabranch\\[cu13], or \\[cu12], has what compiles kernels for it")
        device = ab.Device("cpu")
    return device


def compare(photos, streams, rounds, console):
    """Do the job on one stream and on several, in turns, and check what comes of it; print the best times of both."""
    numbers, best, differences = [1, streams], {}, []
    with Progress(console=console) as progress:
        warming = progress.add_task("warming up", total=len(photos) + 1)
        timed = [progress.add_task(streams_in_words(number), total=rounds * len(photos)) for number in numbers]
        checking = progress.add_task("comparing with SciPy", total=2 * rounds * len(photos))

        # Reads the files once and compiles the kernels, so that no run has to.
        for photo in photos:
            photo.path.read_bytes()
            progress.advance(warming)
        run([min(photos, key=lambda photo: photo.size)], 1, partial(progress.advance, warming))

        for _ in range(rounds):
            for number, task in zip(numbers, timed, strict=True):
                done = run(photos, number, partial(progress.advance, task))
                best[task] = min(done, best.get(task, done), key=lambda each: each.seconds)
                for photo in photos:
                    differences.append(check(photo))
                    progress.advance(checking)
    console.print(summary(*best.values()))
    console.print(f"Every picture is within {max(differences):.3f} levels of SciPy's; {TOLERANCE} are tolerated.")


def cluster(text):
    """Return a cluster's name if it is one, for argparse."""
    kind, _, number = text.partition(":")
    if "://" in text or (kind == "local" and number.isdecimal() and int(number) > 0):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is neither local:N nor an address such as tcp://host:8786")


def main():
    """Run the program."""
    parser = argparse.ArgumentParser(description="Sharpen photographs and find edges, on one stream and on several.")
    parser.add_argument("folder", type=Path, nargs="?", help="of JPEG and PNG files; scikit-image's if left out")
    parser.add_argument("--output", type=Path, default="photo-output", metavar="DIR", help="default: %(default)s")
    parser.add_argument("--streams", type=int, default=4, metavar="N", help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="the best one counts; default: %(default)s")
    on_workers = "on Dask workers: so many of this machine, local:N, or those of the scheduler at tcp://HOST:PORT"
    parser.add_argument("--cluster", type=cluster, help=on_workers)
    options = parser.parse_args()
    if min(options.streams, options.rounds) < 1:
        parser.error("streams and rounds are at least 1")
    if options.folder and options.folder.resolve() == options.output.resolve():
        parser.error("the output needs a folder of its own")
    if options.cluster and find_spec("distributed") is None:
        parser.error("--cluster needs Dask: pip install 'anabranch[dask]'")

    console = Console()
    try:
        photos = find(options.folder, options.output)
        options.output.mkdir(parents=True, exist_ok=True)
        megapixels = sum(photo.size for photo in photos) / 1e6
        described = f"{len(photos)} photographs, {megapixels:.1f} megapixels"
        if options.cluster:
            from photo_cluster import develop

            console.print(f"{described}, on {options.cluster}")
            develop(photos, options.cluster, options.streams, options.rounds, console)
        else:
            device = device_of_kernels(console.print)
            console.print(f"{described}, on {device.alias}: {device.name}")
            with device:
                compare(photos, min(options.streams, len(photos)), options.rounds, console)
    except OSError as error:
        raise SystemExit(f"{parser.prog}: {error}") from error
    console.print(f"The pictures are in {options.output}")


if __name__ == "__main__":
    main()
