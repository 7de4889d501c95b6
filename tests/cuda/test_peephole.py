"""Improvements of PTX: loops with two exits, and atomics whose results nothing reads. They need no device."""

import re

import numpy as np
import pytest

import anabranch as ab
from anabranch._launch.target import Target
from anabranch.kernels._cuda.peephole import improve, merge_exits, reduce_unread

LOOP = """{
	@%p1 bra 	$L__BB0_9;

	mov.u64 	%rd1, 0;
	mov.f64 	%fd1, %fd9;

$L__BB0_1:
	fma.rn.f64 	%fd2, %fd1, %fd1, %fd9;
	add.s64 	%rd1, %rd1, 1;
	setp.gt.u64 	%p2, %rd1, 63;
	@%p2 bra 	$L__BB0_2;

	mul.f64 	%fd3, %fd2, %fd2;
	setp.le.f64 	%p3, %fd3, 0d4010000000000000;
	mov.f64 	%fd1, %fd2;
	@%p3 bra 	$L__BB0_1;

$L__BB0_2:
	st.global.u64 	[%rd2], %rd1;

$L__BB0_9:
	ret;
}"""
MERGED = """
	setp.le.u64 	%p2, %rd1, 63;
	mul.f64 	%fd3, %fd2, %fd2;
	setp.le.f64 	%p3, %fd3, 0d4010000000000000;
	mov.f64 	%fd1, %fd2;
	and.pred  	%p2, %p2, %p3;
	@%p2 bra 	$L__BB0_1;

$L__BB0_2:
"""


def test_a_loop_with_two_exits_gets_one():
    merged = merge_exits(LOOP)
    assert merged == LOOP[: LOOP.index("\n\tsetp.gt")] + MERGED + LOOP[LOOP.index("\tst.") :]
    assert merge_exits(merged) == merged


@pytest.mark.parametrize(
    ("order", "opposite"),
    [
        *[("gt.u64", "le.u64"), ("eq.b32", "ne.b32"), ("hs.u32", "lo.u32"), ("ge.s16", "lt.s16")],
        *[("gt.f64", "leu.f64"), ("gtu.f64", "le.f64"), ("eq.ftz.f32", "neu.ftz.f32"), ("nan.f32", "num.f32")],
    ],
)
def test_the_opposite_of_a_comparison_of_floats_is_true_for_nan(order, opposite):
    assert f"setp.{opposite} \t%p2," in merge_exits(LOOP.replace("gt.u64", order))


# What is changed in the loop; each makes a value of the last round count, or takes too long for it.
KEPT = {
    "store": ("mul.f64 	%fd3, %fd2, %fd2;", "st.global.f64 	[%rd3], %fd2;\n	mul.f64 	%fd3, %fd2, %fd2;"),
    "load": ("mul.f64 	%fd3, %fd2, %fd2;", "ld.global.f64 	%fd3, [%rd3];"),
    "division": ("mul.f64 	%fd3, %fd2, %fd2;", "div.rn.f64 	%fd3, %fd2, %fd9;"),
    "length": ("mul.f64 	%fd3, %fd2, %fd2;", 9 * "mul.f64 	%fd3, %fd2, %fd2;\n\t"),
    "carry": ("mul.f64 	%fd3, %fd2, %fd2;", "add.cc.u32 	%r3, %r2, %r2;\n	mul.f64 	%fd3, %fd2, %fd2;"),
    "assembly": (
        "mul.f64 	%fd3, %fd2, %fd2;",
        "// begin inline asm\n	mul.f64 	%fd3, %fd2, %fd2;\n	// end inline asm",
    ),
    "predicated": ("mul.f64 	%fd3, %fd2, %fd2;", "@%p9 mul.f64 	%fd3, %fd2, %fd2;"),
    "read behind": ("[%rd2], %rd1;", "[%rd2], %fd1;"),
    "read before": ("@%p1 bra", "st.global.f64 	[%rd3], %fd1;\n	@%p1 bra"),
    "not set at the entry": ("mov.f64 	%fd1, %fd9;", ""),
    "set too late": ("mov.f64 	%fd1, %fd9;", "add.f64 	%fd8, %fd1, %fd9;\n	mov.f64 	%fd1, %fd9;"),
    "another entry": ("@%p1 bra 	$L__BB0_9;", "@%p1 bra 	$L__BB0_1;"),
    "a label inside": ("add.s64", "\n$L__BB0_7:\n	add.s64"),
    "first condition read": ("[%rd2], %rd1;", "[%rd2], %rd1;\n	selp.u32 	%r1, 1, 0, %p2;"),
    "first condition not compared": ("setp.gt.u64 	%p2, %rd1, 63;", "and.pred 	%p2, %p8, %p9;"),
    "two predicates": ("setp.gt.u64 	%p2,", "setp.gt.u64 	%p2|%p8,"),
    "two conditions": ("setp.gt.u64 	%p2, %rd1, 63;", "setp.gt.and.u64 	%p2, %rd1, 63, %p8;"),
    "exit elsewhere": ("@%p2 bra 	$L__BB0_2;", "@%p2 bra 	$L__BB0_9;"),
    "no loop": ("@%p3 bra 	$L__BB0_1;", "@%p3 bra 	$L__BB0_9;"),
}


@pytest.mark.parametrize("change", KEPT.values(), ids=list(KEPT))
def test_other_exits_are_kept(change):
    text = LOOP.replace(*change)
    assert text != LOOP
    assert merge_exits(text) == text


ATOMICS = """.visible .entry one()
{
	atom.global.add.u32 %r1, [%rd1], %r11;
	atom.global.max.s64 %rd2, [%rd1], %rd1;
	atom.global.add.noftz.f16 %rs1, [%rd1], %rs2;
	atom.global.add.f64 	%fd1, [%rd1+8], 0d3FF0000000000000;
	atom.global.exch.b32 %r3, [%rd1], %r11;
	atom.global.cas.b32 %r4, [%rd1], %r11, %r12;
	atom.global.min.u32 %r5, [%rd1], %r11;
	st.global.u32 [%rd1], %r5;
}
.func two()
{
	atom.global.min.u32 %r11, [%rd1], %r2;
}
"""
REDUCED = """.visible .entry one()
{
	red.global.add.u32 [%rd1], %r11;
	red.global.max.s64 [%rd1], %rd1;
	red.global.add.noftz.f16 [%rd1], %rs2;
	red.global.add.f64 [%rd1+8], 0d3FF0000000000000;
	atom.global.exch.b32 %r3, [%rd1], %r11;
	atom.global.cas.b32 %r4, [%rd1], %r11, %r12;
	atom.global.min.u32 %r5, [%rd1], %r11;
	st.global.u32 [%rd1], %r5;
}
.func two()
{
	red.global.min.u32 [%rd1], %r2;
}
"""


def test_atomics_whose_result_nothing_in_the_function_reads_are_reductions():
    assert improve(ATOMICS) == REDUCED
    assert reduce_unread(REDUCED) == REDUCED


def escaping(i, c, counts):
    x = 0.0
    count = 0
    while count < 50 and x * x + 0.25 * x <= 4.0:
        x = x * x + c[i]
        count += 1
    counts[i] = count


def escaping_with_last(i, c, counts):
    x = 0.0
    count = 0
    while count < 50 and x * x + 0.25 * x <= 4.0:
        x = x * x + c[i]
        count += 1
    counts[i] = count + (100 if x * x + 0.25 * x > 4.0 else 0)


def repeated(i, c, counts):
    total = 0
    for k in range(9):
        x = 0.125 * k
        count = 0
        while count < 50 and x * x + 0.25 * x <= 4.0:
            x = x * x + c[i]
            count += 1
        total += k * count
    counts[i] = total


def binned(i, x, bins):
    ab.atomic_add(bins, x[i], 1)


def numbered(i, x, bins):
    x[i] = ab.atomic_add(bins, x[i], 1)


SM_90 = Target((9, 0))


def text_of(function, dtype, target=SM_90):
    pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")
    from anabranch.kernels._cuda import codegen

    kernel = ab.kernel(function)
    codes = (("array", dtype, 1, True, False), ("array", "int32", 1, True, False))
    return codegen.build(kernel._function, kernel.parameters, (1, codes), "symbol", target).text


def test_kernels_leave_a_loop_in_one_place():
    text = text_of(escaping, "float64")
    (end,) = re.finditer(r"and\.pred\s+(%p\d+),.*\n\t@\1 bra\s+(\$\w+);\n", text)
    assert "bra" not in text[text.index(f"\n{end[2]}:") : end.start()]


@pytest.mark.parametrize("coarse", [False, True])
def test_kernels_do_not_wait_for_sums_that_they_do_not_read(coarse):
    target = Target((9, 0), coarse=coarse)
    unread, read = (text_of(function, "int32", target) for function in (binned, numbered))
    assert re.findall(r"\b(?:atom|red)\.[\w.]+", unread) == ["red.global.add.u32"]
    assert re.findall(r"\b(?:atom|red)\.[\w.]+", read) == ["atom.global.add.u32"]


@pytest.mark.parametrize("function", [escaping, escaping_with_last, repeated])
def test_loops_with_two_exits_count_as_python_does(cuda, function):
    pytest.importorskip("numba_cuda_mlir", reason="numba-cuda-mlir is not installed")
    # Far enough from the borders that it makes no difference whether products and sums are fused.
    c = np.append(np.linspace(-2.5, 1.5, 33), [np.nan, np.inf])
    counts = ab.zeros(c.size, device=cuda)
    ab.launch(ab.kernel(function), c.size, ab.array(c, device=cuda), counts)
    expected = np.zeros(c.size, "float32")
    with np.errstate(all="ignore"):
        for i in range(c.size):
            function(i, c, expected)
    np.testing.assert_array_equal(counts.numpy(), expected)
