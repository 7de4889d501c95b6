"""Object files are looked over before LLVM sees them: what is let through, however it came about, LLVM can load."""

import platform
import random
import struct

import pytest

from anabranch.kernels import _elf
from anabranch.kernels._elf import ObjectError, check_cubin, check_object, undefined_symbols, without_unwind_tables

llvm = pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")

# All that code for kernels has in it: calls, constants, a table of jumps, a common symbol.
SOURCE = r"""
target triple = "{triple}"
@table = internal constant [4 x float] [float 1.0, float 2.0, float 3.0, float 4.0]
@environment = common global ptr null
declare double @sin(double)
declare void @told(i64)
define internal double @helper(double %x) noinline {{
  %y = call double @sin(double %x)
  ret double %y
}}
define i64 @kernel(i64 %b, i64 %e, ptr %d, ptr %a) {{
entry:
  switch i64 %b, label %end [ i64 0, label %a0 i64 1, label %a1 i64 2, label %a2 i64 3, label %a3 i64 4, label %a4 ]
a0:
  %q0 = call double @helper(double 0.1234)
  store double %q0, ptr %a
  br label %end
a1:
  %p1 = getelementptr [4 x float], ptr @table, i64 0, i64 %e
  %q1 = load float, ptr %p1
  store float %q1, ptr %a
  br label %end
a2:
  call void @told(i64 5)
  br label %end
a3:
  store double 3.7e-5, ptr %a
  br label %end
a4:
  %v = load ptr, ptr @environment
  store ptr %v, ptr %a
  br label %end
end:
  ret i64 0
}}
"""
RELOCATIONS = {"x86_64": "static", "aarch64": "default"}
MUTATIONS = 1500

# Loads each file as a kernel is loaded, for a processor that need not be this one, and says how many there were.
LOAD = """
import sys
from pathlib import Path
from llvmlite import binding as llvm
from anabranch.kernels._elf import undefined_symbols

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
triple = "{machine}-unknown-linux-gnu"
for name in ("sin", "told"):
    llvm.add_symbol(name, 4096)
count = 0
for path in sorted(Path({folder!r}).iterdir()):
    code = path.read_bytes()
    if any(llvm.address_of_symbol(name) is None for name in undefined_symbols(code)):
        continue
    machine = llvm.Target.from_triple(triple).create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly('target triple = "' + triple + '"'), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    assert engine.get_function_address("kernel")
    count += 1
print(count)
"""


@pytest.fixture(params=RELOCATIONS)
def machine(request, monkeypatch):
    """A processor whose objects are looked at."""
    monkeypatch.setattr(platform, "machine", lambda: request.param)
    return request.param


@pytest.fixture
def code(machine):
    """An object file for it, as it is stored."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = f"{machine}-unknown-linux-gnu"
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError:
        pytest.skip(f"this LLVM has no code generator for {machine}")
    options = {"opt": 3, "reloc": RELOCATIONS[machine], "codemodel": "jitdefault", "jit": True}
    module = llvm.parse_assembly(SOURCE.format(triple=triple))
    return without_unwind_tables(target.create_target_machine(**options).emit_object(module))


def mutated(code, randomly):
    """Change a few bytes, most of them where an object file says what is where, or cut off the rest."""
    changed = bytearray(code)
    start = struct.unpack_from("<Q", code, 40)[0]
    sections = _elf._sections(code)
    tables = [section for section in sections if section.kind in (2, 3, 4)]
    table = randomly.choice(tables)
    places = [(0, 64), (start, start + 64 * len(sections)), (table.at, table.at + table.size), (0, len(code))]
    low, high = randomly.choices(places, (1, 2, 4, 1))[0]
    for _ in range(randomly.randint(1, 3)):
        value = randomly.choice((0, 1, 2, 4, 7, 8, 16, 127, 128, 255, randomly.randrange(256)))
        changed[randomly.randrange(low, high)] = value
    return bytes(changed[: randomly.randrange(len(code))] if randomly.random() < 0.05 else changed)


@pytest.mark.parametrize("seed", range(2))
def test_what_is_let_through_can_be_loaded(code, machine, seed, tmp_path, run_python):
    randomly = random.Random(seed)
    check_object(code, "kernel")
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "good").write_bytes(code)
    refused = 0
    for number in range(MUTATIONS):
        bad = mutated(code, randomly)
        try:
            check_object(bad, "kernel")
        except ObjectError:
            refused += 1
        else:
            (tmp_path / "objects" / f"{number:04}").write_bytes(bad)
    loaded = int(run_python(LOAD.format(machine=machine, folder=str(tmp_path / "objects"))))
    assert refused > MUTATIONS // 3
    assert loaded > MUTATIONS // 20


def test_every_byte_that_is_missing_is_missed(code):
    for size in range(len(code)):
        with pytest.raises(ObjectError):
            check_object(code[:size], "kernel")


def test_another_function_or_processor_is_refused(code, monkeypatch):
    with pytest.raises(ObjectError, match="function other"):
        check_object(code, "other")
    with pytest.raises(ObjectError, match="machine"):
        check_cubin(code, "kernel")
    for other in {*RELOCATIONS, "riscv64"} - {platform.machine()}:
        monkeypatch.setattr(platform, "machine", lambda name=other: name)
        with pytest.raises(ObjectError, match="machine"):
            check_object(code, "kernel")


def test_undefined_symbols(code):
    assert sorted(undefined_symbols(code)) == ["sin", "told"]
    assert undefined_symbols(b"no object") == []


def test_there_are_no_unwind_tables(code):
    sections = _elf._sections(code)
    header = struct.unpack_from("<16sHHIQQQIHHHHHH", code)
    names = sections[header[-1]]
    name = code.index(b".eh_frame\0", names.at) - names.at
    (number,) = [number for number, section in enumerate(sections) if section.flags and not section.name]
    before = bytearray(code)
    struct.pack_into("<I", before, header[6] + 64 * number, name)
    with pytest.raises(ObjectError, match="unwind"):
        check_object(bytes(before), "kernel")
    assert without_unwind_tables(bytes(before)) == code


def with_field(code, kind, at, form, value):
    """Change one field of the last entry of a table, or of the header of the first section that is loaded."""
    changed = bytearray(code)
    sections = _elf._sections(code)
    if kind is None:
        number = next(number for number, section in enumerate(sections) if section.flags & 2 and section.size)
        start = struct.unpack_from("<Q", code, 40)[0] + 64 * number
    else:
        table = next(section for section in sections if section.kind == kind and section.size)
        start = table.at + table.size - 24
    struct.pack_into(form, changed, start + at, value)
    return bytes(changed)


@pytest.mark.parametrize(
    ("kind", "at", "form", "value", "what"),
    [
        (None, 48, "<Q", 1 << 16, "alignment"),
        (None, 32, "<Q", 1 << 40, "end of a section"),
        (4, 8, "<I", {"x86_64": 2, "aarch64": 263}, "relocation's place"),
        (4, 0, "<Q", 1 << 20, "relocation's place"),
        (4, 12, "<I", 1 << 20, "relocation's symbol"),
        (4, 16, "<q", -(1 << 62), "relocation's distance"),
        (2, 0, "<I", 1 << 20, "name"),
        (2, 6, "<H", 1 << 12, "section of a symbol"),
        (2, 4, "<B", 0x1A, "kind of a symbol"),
    ],
)
def test_each_field_that_leads_astray_is_noticed(code, machine, kind, at, form, value, what):
    bad = with_field(code, kind, at, form, value[machine] if isinstance(value, dict) else value)
    with pytest.raises(ObjectError, match=what):
        check_object(bad, "kernel")
