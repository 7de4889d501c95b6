"""Reads and checks ELF files, 64-bit and little-endian: object files for the CPU, and cubins.

Given a broken object file, LLVM ends the process or accesses memory out of bounds. A file from disk is therefore
checked first: each offset, index and size must lie within its container, and everything must be of a kind that LLVM
emits for our code. The instructions themselves are not checked.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QIIq")
_IDENT: Final = b"\x7fELF\x02\x01\x01"

_RELOCATABLE, _EXECUTABLE = 1, 2
_MACHINES: Final = {"x86_64": 62, "aarch64": 183}
_CUDA: Final = 190

_NULL, _BYTES, _SYMBOLS, _STRINGS, _RELOCATIONS, _NOTE, _ZEROS = 0, 1, 2, 3, 4, 7, 8
_UNWIND, _ADDRESS_USES = 0x70000001, 0x6FFF4C03
_KINDS: Final = {_NULL, _BYTES, _SYMBOLS, _STRINGS, _RELOCATIONS, _NOTE, _ZEROS, _UNWIND, _ADDRESS_USES}
_LOADED, _CODE = 0x2, 0x4
# Writable, loaded, executable, merged, strings, two kinds of references between sections, large code, excluded.
_FLAGS: Final = 0x1 | _LOADED | _CODE | 0x10 | 0x20 | 0x40 | 0x80 | 0x10000000 | 0x80000000

_UNDEFINED, _RESERVED, _ABSOLUTE, _COMMON = 0, 0xFF00, 0xFFF1, 0xFFF2
_NO_TYPE, _OBJECT, _FUNCTION, _OF_SECTION, _OF_FILE = 0, 1, 2, 3, 4
_LOCAL, _GLOBAL, _WEAK = 0, 1, 2

# Bytes that each relocation changes, per machine: the relocations of the large code model, for code at any address.
# LLVM's loader assumes that the targets of other relocations are near enough.
_WIDTHS: Final = {
    62: {1: 8, 24: 8},  # 64, PC64
    # ABS64, PREL64; MOVW_UABS_G0_NC to G3; JUMP26, CALL26; ADR_GOT_PAGE, LD64_GOT_LO12_NC
    183: {257: 8, 260: 8, **dict.fromkeys((264, 266, 268, 269, 282, 283, 311, 312), 4)},
}
_MAX_ALIGNMENT: Final = 1 << 12  # a page; our code asks for less
_MAX_LOADED: Final = 1 << 28


class ObjectError(ValueError):
    """A file is broken or not an ELF file of the expected kind. The message says where."""


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    at: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Symbol(NamedTuple):
    name: int
    info: int
    other: int
    section: int
    value: int
    size: int

    @property
    def binding(self) -> int:
        return self.info >> 4

    @property
    def type(self) -> int:
        return self.info & 15


def check_object(code: bytes, symbol: str) -> None:
    """Check that an object file for this processor has the form that LLVM emits and defines the function `symbol`.

    Raises
    ------
    ObjectError
        The file is unsafe to pass to LLVM.
    """
    machine = _MACHINES.get(platform.machine(), 0)
    sections = _sections(code, _RELOCATABLE, machine)
    _require(_header(code)[6] % 8 == 0, "place of the section table")
    loaded = 0
    for section in sections:
        _require(section.at % 8 == 0 or section.kind not in (_SYMBOLS, _RELOCATIONS), "place of a table")
        _require(section.kind in _KINDS and not section.flags & ~_FLAGS, "kind of a section")
        _require(section.address == 0, "address of a section")
        if section.flags & _LOADED:
            _require(section.kind in (_BYTES, _ZEROS, _UNWIND), "kind of a loaded section")
            _require(_text(code, sections, section.name) != b".eh_frame", "unwind tables")
            loaded += section.size + section.alignment
    _require(loaded <= _MAX_LOADED, "size of what is loaded")
    (table,) = _only(sections)
    symbols = _symbols(code, sections[table])
    for position, one in enumerate(symbols):
        _check_symbol(one, position, sections, code, sections[table])
    for section in sections:
        if section.kind == _RELOCATIONS:
            _require(section.link == table, "symbol table of relocations")
            _check_relocations(code, section, sections, symbols, _WIDTHS[machine])
    _check_entry(code, symbol, sections, symbols, sections[table])


def check_cubin(image: bytes, symbol: str) -> None:
    """Check that a cubin is intact as far as plain ELF goes, and contains the kernel `symbol`.

    Raises
    ------
    ObjectError
        The cubin fails the check.
    """
    sections = _sections(image, _EXECUTABLE, _CUDA)
    start, size, count = (_header(image)[field] for field in (5, 9, 10))
    _require(count == 0 or size == _SEGMENT.size, "sizes in the header")
    _require(start + count * size <= len(image), "segment table")
    for number in range(count):
        segment = _SEGMENT.unpack_from(image, start + number * size)
        _require(segment[2] + segment[5] <= len(image), "end of a segment")
    (table,) = _only(sections)
    symbols = _symbols(image, sections[table])
    names = sections[sections[table].link]
    for one in symbols:
        _require(one.name < names.size, "name of a symbol")
        _require(one.section < len(sections) or one.section >= _RESERVED, "section of a symbol")
    _check_entry(image, symbol, sections, symbols, sections[table])


def without_unwind_tables(code: bytes) -> bytes:
    """Return an object file without its unwind tables: no exception crosses a kernel.

    LLVM would register the tables with the C library, which trusts them.
    """
    if code[: len(_IDENT)] != _IDENT:
        return code
    changed = bytearray(code)
    sections = _sections(code)
    for number, section in enumerate(sections):
        if _text(code, sections, section.name) == b".eh_frame":  # LLVM finds it by name
            _SECTION.pack_into(changed, _header(code)[6] + number * _SECTION.size, *section._replace(name=0))
    return bytes(changed)


def undefined_symbols(code: bytes) -> list[str]:
    """Return the undefined names that an object file uses. Formats other than ELF give an empty list."""
    if code[: len(_IDENT)] != _IDENT:
        return []
    sections = _sections(code)
    found = [
        _string(code, sections[table.link], symbol.name).decode()
        for table in sections
        if table.kind == _SYMBOLS
        for symbol in _symbols(code, table)
        if symbol.name and symbol.section == _UNDEFINED
    ]
    return [name for name in found if name != "_GLOBAL_OFFSET_TABLE_"]


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ObjectError(f"broken object file: {what}")


def _header(code: bytes) -> tuple[int, ...]:
    _require(len(code) >= _HEADER.size and code[: len(_IDENT)] == _IDENT, "header")
    return _HEADER.unpack_from(code)


def _sections(code: bytes, kind: int | None = None, machine: int | None = None) -> list[_Section]:
    """Return the sections. Their contents lie within the file."""
    _, found_kind, found_machine, version, _, _, start, _, size, _, _, entry_size, count, names = _header(code)
    _require(kind is None or (found_kind, found_machine) == (kind, machine), "kind or machine")
    _require(version == 1 and size == _HEADER.size and entry_size == _SECTION.size, "sizes in the header")
    _require(_HEADER.size <= start and start + count * entry_size <= len(code), "section table")
    sections = [_Section(*_SECTION.unpack_from(code, start + number * entry_size)) for number in range(count)]
    for number, section in enumerate(sections):
        _require(number > 0 or not any(section), "first section")
        _require(section.alignment <= _MAX_ALIGNMENT, "alignment of a section")
        _require(not section.alignment & (section.alignment - 1), "alignment of a section")
        if section.kind not in (_NULL, _ZEROS):
            _require(section.at + section.size <= len(code), "end of a section")
        if section.kind in (_SYMBOLS, _RELOCATIONS):
            expected = _SYMBOL.size if section.kind == _SYMBOLS else _RELOCATION.size
            _require(section.entry_size == expected and section.size % expected == 0, "entries of a section")
            _require(section.link < count, "what a section is for")
        if section.kind == _STRINGS:
            _require(section.size > 0 and code[section.at + section.size - 1] == 0, "end of the strings")
        if section.kind == _SYMBOLS:
            _require(sections[section.link].kind == _STRINGS, "strings of the symbols")
    _require(0 < names < count and sections[names].kind == _STRINGS, "names of the sections")
    _require(all(section.name < sections[names].size for section in sections), "name of a section")
    return sections


def _only(sections: Sequence[_Section]) -> list[int]:
    tables = [number for number, section in enumerate(sections) if section.kind == _SYMBOLS]
    _require(len(tables) == 1, "number of symbol tables")
    return tables


def _symbols(code: bytes, table: _Section) -> list[_Symbol]:
    return [_Symbol(*entry) for entry in _SYMBOL.iter_unpack(code[table.at : table.at + table.size])]


def _string(code: bytes, strings: _Section, at: int) -> bytes:
    _require(at < strings.size, "name")
    start = strings.at + at
    return code[start : code.index(b"\0", start)]


def _text(code: bytes, sections: Sequence[_Section], name: int) -> bytes:
    return _string(code, sections[_header(code)[13]], name)


def _check_symbol(symbol: _Symbol, number: int, sections: Sequence[_Section], code: bytes, table: _Section) -> None:
    if number == 0:
        _require(not any(symbol), "first symbol")
        return
    _require(symbol.type <= _OF_FILE and symbol.binding <= _WEAK, "kind of a symbol")
    name = _string(code, sections[table.link], symbol.name)
    _require(name.isascii() and (bool(name) or symbol.type == _OF_SECTION), "name of a symbol")
    if symbol.type == _OF_FILE:
        _require(symbol.section == _ABSOLUTE, "section of a file's name")
    elif symbol.section == _UNDEFINED:
        _require(symbol.binding != _LOCAL and symbol.type != _OF_SECTION, "kind of an undefined symbol")
    elif symbol.section == _COMMON:
        alignment = symbol.value
        _require(0 < alignment <= _MAX_ALIGNMENT and not alignment & (alignment - 1), "alignment of a symbol")
        _require(symbol.binding == _GLOBAL and symbol.type == _OBJECT, "kind of a common symbol")
        _require(0 < symbol.size <= _MAX_ALIGNMENT, "size of a common symbol")
    else:
        _require(symbol.section < len(sections), "section of a symbol")
        section = sections[symbol.section]
        _require(bool(section.flags & _LOADED) or symbol.type == _OF_SECTION, "section of a symbol")
        _require(symbol.value + symbol.size <= section.size, "end of a symbol")


def _check_relocations(
    code: bytes,
    table: _Section,
    sections: Sequence[_Section],
    symbols: Sequence[_Symbol],
    widths: dict[int, int],
) -> None:
    _require(0 < table.info < len(sections), "what relocations are for")
    target = sections[table.info]
    _require(bool(target.flags & _LOADED) and target.kind != _ZEROS, "what relocations are for")
    for at, kind, number, addend in _RELOCATION.iter_unpack(code[table.at : table.at + table.size]):
        _require(kind in widths and at + widths[kind] <= target.size, "relocation's place")
        _require(abs(addend) <= _MAX_LOADED, "relocation's distance")
        _require(0 < number < len(symbols), "relocation's symbol")
        symbol = symbols[number]
        _require(symbol.type != _OF_FILE, "relocation's symbol")
        if symbol.type == _OF_SECTION:
            _require(bool(sections[symbol.section].flags & _LOADED), "relocation's section")


def _check_entry(
    code: bytes, name: str, sections: Sequence[_Section], symbols: Sequence[_Symbol], table: _Section
) -> None:
    found = [one for one in symbols if _string(code, sections[table.link], one.name) == name.encode()]
    _require(len(found) == 1, f"function {name}")
    entry = found[0]
    _require(entry.type == _FUNCTION and entry.binding == _GLOBAL, f"kind of {name}")
    _require(0 < entry.section < len(sections), f"section of {name}")
    section = sections[entry.section]
    _require(bool(section.flags & _LOADED) and bool(section.flags & _CODE), f"section of {name}")
    _require(entry.size > 0 and entry.value + entry.size <= section.size, f"end of {name}")
