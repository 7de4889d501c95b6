"""Reductions on CUDA devices, by kernels in CUDA C++ (`reduction.cu`) that are made for a reduction and a dtype."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from anabranch._launch.configuration import LaunchConfig
from anabranch._launch.launch import launch
from anabranch._memory.array import Array
from anabranch._memory.factories import empty
from anabranch._stream.stream import Stream
from anabranch.kernels._cpp.module import Module, ModuleKernel

_THREADS: Final = 256
_LANES: Final = 32
_MOST_BLOCKS: Final = 528  # of a result's ranges: four for each multiprocessor of an H100
_LEAST_RANGE: Final = 8192  # elements for a block of its own
_LEAST_ROWS: Final = 64  # of a range of columns
_VERY_SHORT: Final = 16  # rows of up to as many elements have a thread each
_TEAMS: Final = {"warp_rows": (_LANES, 768), "team_rows": (128, 4096)}  # threads of a row of up to as many words
_WORD: Final = 16  # bytes
_BUSY: Final = 1 << 16  # threads that have an H100 load as fast as it can
_GRID_AXIS: Final = 65535

_C_TYPES: Final = {
    "bool": "unsigned char",
    "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int", "uint64": "unsigned long long",
    "float16": "unsigned short", "float32": "float", "float64": "double",
    "complex64": "Complex<float>", "complex128": "Complex<double>",
}  # fmt: skip
_SIZES: Final = {"signed char": 1, "unsigned char": 1, "short": 2, "unsigned short": 2, "int": 4, "unsigned int": 4,
                 "float": 4, "long long": 8, "unsigned long long": 8, "double": 8,
                 "Complex<float>": 8, "Complex<double>": 16}  # fmt: skip

_PRELUDE: Final = """
typedef long long Int;
template <typename F> struct Complex { F re, im; };
template <typename F> __device__ Complex<F> operator+(Complex<F> a, Complex<F> b) { return {a.re + b.re, a.im + b.im}; }
template <typename F> __device__ Complex<F> operator*(Complex<F> a, Complex<F> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <typename F> __device__ Complex<F> operator/(Complex<F> a, double b) { return {F(a.re / b), F(a.im / b)}; }
template <typename V> __device__ bool is_nan(V v) { return v != v; }
template <typename F> __device__ bool is_nan(Complex<F> v) { return v.re != v.re || v.im != v.im; }
template <typename V> __device__ bool less(V a, V b) { return a < b; }
template <typename F> __device__ bool less(Complex<F> a, Complex<F> b) {
  return a.re < b.re || (a.re == b.re && a.im < b.im);
}
__device__ float widened(unsigned short half) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(half));
  return wide;
}
__device__ unsigned short rounded(float wide) {
  unsigned short half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(wide));
  return half;
}
"""

_ROWS: Final = """
extern "C" __global__ void __launch_bounds__(256) NAME(
    const void* x, long long row_step, long long step, long long rows, long long count, long long size, double divisor,
    void* out) {
  FUNCTION(x, row_step, step, rows, count, size, divisor, out);
}
"""
_COLUMNS: Final = """
extern "C" __global__ void __launch_bounds__(256) NAME(
    const void* x, long long outer_step, long long step, long long inner_step, long long outer, long long count,
    long long inner, long long size, double divisor, void* out) {
  FUNCTION(x, outer_step, step, inner_step, outer, count, inner, size, divisor, out);
}
"""
# Per kernel: its parameters, and what it calls: for elements or for totals, and whether that is the last launch.
_ENTRIES: Final = {
    "rows_only": (_ROWS, "reduce_rows<true, true>"),
    "rows_first": (_ROWS, "reduce_rows<true, false>"),
    "rows_last": (_ROWS, "reduce_rows<false, true>"),
    "warp_rows": (_ROWS, "reduce_short_rows<true, true, 32>"),
    "team_rows": (_ROWS, "reduce_short_rows<true, true, 128>"),
    "columns_only": (_COLUMNS, "reduce_columns<true, true>"),
    "columns_first": (_COLUMNS, "reduce_columns<true, false>"),
    "columns_last": (_COLUMNS, "reduce_columns<false, true>"),
}

_COMBINE: Final = {
    "sum": "a + b",
    "mean": "a + b",
    "prod": "a * b",
    "any": "a | b",
    "all": "a & b",
    "min": "is_nan(a) ? a : is_nan(b) || less(b, a) ? b : a",
    "max": "is_nan(a) ? a : is_nan(b) || less(a, b) ? b : a",
}
_IDENTITIES: Final = {"sum": 0, "mean": 0, "prod": 1, "any": 0, "all": 1}


def _value(dtype: str, text: str = "x") -> str:
    return f"widened({text})" if dtype == "float16" else text


def _of_numbers(name: str, source: str, accumulator: str, result: str) -> str:
    total = "float" if accumulator == "float16" else _C_TYPES[accumulator]
    loaded = _value(source)
    if name in ("any", "all"):
        loaded = "x.re != 0 || x.im != 0" if source.startswith("complex") else f"{loaded} != 0"
    finished = "a"
    if name == "mean":
        finished = "a / count" if accumulator.startswith("complex") else "Total(a / Total(count))"
    if result == "float16":
        finished = f"rounded({finished})"
    begin = "(first)"
    if name in _IDENTITIES:
        number = _IDENTITIES[name]
        begin = f"(Total{{{number}, 0}})" if accumulator.startswith("complex") else f"(Total({number}))"
    load = "x" if source == accumulator and name not in ("any", "all") and source != "float16" else f"Total({loaded})"
    return f"""
typedef {_C_TYPES[source]} Element;
typedef {total} Total;
typedef {_C_TYPES[result]} Result;
#define BEGIN(first) {begin}
__device__ Total load(Element x, Int) {{ return {load}; }}
__device__ Total combine(Total a, Total b) {{ return {_COMBINE[name]}; }}
__device__ Result finish(Total a, double count) {{ return {finished}; }}
"""


def _of_positions(name: str, source: str) -> str:
    value = "float" if source == "float16" else _C_TYPES[source]
    before = "less(b.value, a.value)" if name == "argmin" else "less(a.value, b.value)"
    after = "less(a.value, b.value)" if name == "argmin" else "less(b.value, a.value)"
    return f"""
typedef {_C_TYPES[source]} Element;
struct Total {{ {value} value; Int position; }};
typedef Int Result;
#define BEGIN(first) (first)
__device__ Total load(Element x, Int position) {{ return {{{_value(source)}, position}}; }}
__device__ Total combine(Total a, Total b) {{
  const bool nan_a = is_nan(a.value), nan_b = is_nan(b.value);
  if (nan_a != nan_b) return nan_a ? a : b;
  if (!nan_a && {before}) return b;
  if (!nan_a && {after}) return a;
  return a.position <= b.position ? a : b;
}}
__device__ Result finish(Total a, double) {{ return a.position; }}
"""


def source_of(name: str, source: str, accumulator: str, result: str) -> str:
    """Return the CUDA C++ of a reduction of elements of a dtype."""
    own = _of_positions(name, source) if name.startswith("arg") else _of_numbers(name, source, accumulator, result)
    entries = [text.replace("NAME", name).replace("FUNCTION", call) for name, (text, call) in _ENTRIES.items()]
    return "".join([_PRELUDE, own, Path(__file__).with_name("reduction.cu").read_text(), *entries])


class _Kernels(NamedTuple):
    """The kernels of a reduction, by name, and the size of what they accumulate, in bytes."""

    kernels: dict[str, ModuleKernel]
    total_size: int

    def totals(self, count: int, stream: Stream) -> Array:
        """Return memory for as many totals."""
        return empty(count * self.total_size, "uint8", stream=stream)


@cache
def _kernels(name: str, source: str, accumulator: str, result: str) -> _Kernels:
    module = Module(source_of(name, source, accumulator, result))
    if name.startswith("arg"):
        size = 8 * (1 + -(-_SIZES["float" if source == "float16" else _C_TYPES[source]] // 8))
    else:
        size = _SIZES["float" if accumulator == "float16" else _C_TYPES[accumulator]]
    return _Kernels({each: module.get_kernel(each, {"x": "in", "out": "out"}) for each in _ENTRIES}, size)


def _ranges(count: int, most: int, least: int) -> tuple[int, int]:
    """Return into how many ranges elements are divided, and the size of each but the last."""
    ranges = max(1, min(most, -(-count // least)))
    size = -(-count // ranges)
    if size >= _LEAST_RANGE:
        size += -size % 16  # whole words
    return -(-count // size), size


def _team(rows: int, words: int) -> str | None:
    """Return the kernel for rows of so many words that no block shares; None where rows have a block or more."""
    for name, (team, most) in _TEAMS.items():
        # Few rows have larger teams, as long as there is a word for each thread.
        if words <= most and (rows * team >= _BUSY or words <= team):
            return name
    return None


def reduce_on_cuda(
    name: str,
    source: str,
    accumulator: str,
    result: str,
    x: Array,
    out: Array,
    extent: tuple[int, int, int],
    stream: Stream,
) -> None:
    """Enqueue a reduction.

    Parameters
    ----------
    name, source, accumulator, result : str
        The reduction, and the dtypes of the elements, of what is accumulated, and of the result.
    x : Array
        The elements, with the three axes `extent`.
    out : Array
        The result, contiguous.
    extent : tuple of int
        Sizes of the outer axes, of those that are reduced, and of the inner ones.
    stream : Stream
        A stream of the arrays' device.
    """
    found = _kernels(name, source, accumulator, result)
    outer, count, inner = extent
    outer_step, step, inner_step = x.strides
    if inner == 1 and count <= _VERY_SHORT and outer > 1:
        _reduce_columns(found, x, out, (1, count, outer), (0, step, outer_step), stream)
    elif inner > 1:
        _reduce_columns(found, x, out, extent, (outer_step, step, inner_step), stream)
    else:
        _reduce_rows(found, x, out, (outer, count), (outer_step, step), stream)


def _reduce_rows(
    found: _Kernels, x: Array, out: Array, extent: tuple[int, int], steps: tuple[int, int], stream: Stream
) -> None:
    rows, count = extent
    divisor = float(count)
    short = _team(rows, -(-count * x.dtype.itemsize // _WORD)) if rows > 1 else None
    if short is not None:
        team = _TEAMS[short][0]
        block = _THREADS if team == _LANES else team
        config = LaunchConfig(min(-(-rows * team // block), 1 << 20), block)
        launch(found.kernels[short], config, x, *steps, rows, count, count, divisor, out, stream=stream)
        return
    ranges, size = _ranges(count, max(1, _MOST_BLOCKS // rows), _LEAST_RANGE)
    config = LaunchConfig((ranges, min(rows, _GRID_AXIS)), _THREADS)
    if ranges == 1:
        launch(found.kernels["rows_only"], config, x, *steps, rows, count, size, divisor, out, stream=stream)
        return
    totals = found.totals(rows * ranges, stream)
    launch(found.kernels["rows_first"], config, x, *steps, rows, count, size, divisor, totals, stream=stream)
    config = LaunchConfig((1, min(rows, _GRID_AXIS)), _THREADS)
    steps = ranges * found.total_size, found.total_size
    launch(found.kernels["rows_last"], config, totals, *steps, rows, ranges, ranges, divisor, out, stream=stream)


def _reduce_columns(
    found: _Kernels, x: Array, out: Array, extent: tuple[int, int, int], steps: tuple[int, int, int], stream: Stream
) -> None:
    outer, count, inner = extent
    divisor = float(count)
    blocks = outer * -(-inner // _LANES)
    ranges, size = _ranges(count, max(1, min(_MOST_BLOCKS // blocks, _GRID_AXIS)), _LEAST_ROWS)
    block = (_LANES, _THREADS // _LANES)

    def config(ranges: int) -> LaunchConfig:
        return LaunchConfig((-(-inner // _LANES), ranges, min(outer, _GRID_AXIS)), block)

    if ranges == 1:
        kernel = found.kernels["columns_only"]
        launch(kernel, config(1), x, *steps, outer, count, inner, size, divisor, out, stream=stream)
        return
    totals = found.totals(outer * ranges * inner, stream)
    kernel = found.kernels["columns_first"]
    launch(kernel, config(ranges), x, *steps, outer, count, inner, size, divisor, totals, stream=stream)
    kernel = found.kernels["columns_last"]
    total = found.total_size
    steps = ranges * inner * total, inner * total, total
    launch(kernel, config(1), totals, *steps, outer, ranges, inner, ranges, divisor, out, stream=stream)
