"""The text of a `CompileError`: the user's line, a short reason, and the kinds of the arguments."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import os
import re
import textwrap
from collections.abc import Sequence
from types import FunctionType, TracebackType
from typing import Final

from anabranch._core.errors import CompileError
from anabranch.kernels._annotation import IN_CODE
from anabranch.kernels._index_error import index_reason
from anabranch.kernels._parameter import Parameter
from anabranch.kernels._reference import codes_of, helpers, references
from anabranch.kernels._signature import Signature, describe
from anabranch.kernels._wording import mixed, reworded, unsupported

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
# Numba's format of a place: "typing of setitem at /home/ada/wave.py (12)".
_PLACE: Final = re.compile(r"\b(?:at|from) (?P<file>[^\n]+?) \((?P<line>\d+)\)")
_LIBRARIES: Final = frozenset({"numba", "numba_cuda_mlir", "numpy", "llvmlite"})
_HERE: Final = os.path.join(os.path.dirname(__file__), "")
_CALL: Final = re.compile(r">>> (.+)")
_CLASS: Final = re.compile(r"^(?:\w+Error|\w+Exception): (?=\S)")
_REJECTED: Final = "Rejected as the implementation raised a specific error:"
_RAISED_FROM: Final = re.compile(r"^raised from (?P<file>.+):\d+$")
_STAGE: Final = re.compile(r"^Failed in \w+ mode pipeline")
# Modules of Numba that each serve one builtin type and reject arguments of any other type.
_TYPE_MODULES: Final = re.compile(r"numba[\\/](?:cpython|typed|experimental)[\\/]")
_PLACE_AFTER: Final = re.compile(r",? (?:Raised from|defined at) [^\n]+ \(\d+\)$")
_READONLY: Final = "Cannot modify readonly array"
_CAPTURED: Final = re.compile(r"(?:Untyped global name|type, assigned to variable|name) '(?P<name>\w+)'")
_RECURSION: Final = "compiler re-entrant"
_MAX_DECORATOR_LINES: Final = 30

NO_MEMORY: Final = (
    "a kernel cannot allocate memory (new arrays, expressions over whole arrays, lists, dicts, "
    "strings): nobody could catch the failure; pass an array in"
)
_NO_LOOP: Final = "'NoneType' object has no attribute 'args'"
_AUGMENTED: Final = re.compile(r"(?:[-+*/%&|^]|<<|>>)=")
_CONTAINER: Final = re.compile(r"\b(?:reflected )?(?:list|set)\(|\bDictType\[")
_NO_PLACE: Final = "unknown location"
_NO_TYPE: Final = "cannot be determined"
CANNOT_HOLD: Final = (
    "the array's dtype cannot hold the result: convert the other operand, as in row *= np.uint8(2), or write the loop"
)
_NO_HALF: Final = (
    "a kernel computes with float32 instead of float16: leave out np.float16; what it stores in an array of float16 is "
    "rounded"
)


def definition(function: FunctionType) -> tuple[str, int]:
    """Return file and line of a function's ``def``."""
    code = function.__code__
    for line in range(code.co_firstlineno, code.co_firstlineno + _MAX_DECORATOR_LINES):
        if linecache.getline(code.co_filename, line).lstrip().startswith("def "):
            return code.co_filename, line
    return code.co_filename, code.co_firstlineno


def compile_error(function: FunctionType, reason: str, place: tuple[str, int], arguments: str = "") -> CompileError:
    """Return the error for `function`.

    Parameters
    ----------
    function : function
        The kernel's function.
    reason : str
        The reason, in a sentence or a few lines.
    place : (str, int)
        File and line, in the kernel or in one of its helpers.
    arguments : str, optional
        Kinds of the arguments it was compiled for.
    """
    text = [f"kernel {function.__qualname__!r} cannot be compiled", f'  File "{place[0]}", line {place[1]}']
    source = linecache.getline(*place).strip()
    if source:
        text.append(f"    {source}")
    text.append(textwrap.indent(reason, "  "))
    if arguments:
        text.append(f"  with {arguments}")
    return CompileError("\n".join(text))


def from_compiler(
    function: FunctionType, parameters: Sequence[Parameter], signature: Signature, error: Exception
) -> CompileError:
    """Return the error for a refusal of Numba, in terms of the user's code."""
    message = _COLOUR.sub("", str(error)) or type(error).__name__
    place = find_place(function, error)
    if _NO_PLACE in message and place == definition(function):
        place = _assignment_within(function) or place
    reason = _readonly_reason(parameters, place) if _READONLY in message else _reason(message)
    source = linecache.getline(*place)
    ours = (
        index_reason(function, signature[0], reason, place)
        or _captured_reason(function, reason)
        or reworded(reason, source)
    )
    arguments = describe(parameters, signature)
    mix = mixed(reason) if "uint64" in arguments or "uint64" in _names(function) else ""
    if ours is not None:
        reason = ours
    elif reason == _NO_LOOP and _AUGMENTED.search(source):
        reason = f"{CANNOT_HOLD}; or the array is declared ab.In"
    elif ":=" in source and _NO_TYPE in reason:  # the compilers take it in some places
        reason = "a kernel cannot assign within this expression (:=): assign before"
    elif _CONTAINER.search(reason):
        reason = NO_MEMORY
    elif "float16" in message and "float16(" in source:
        reason = _NO_HALF
    elif "float16" in reason + arguments and not reason.startswith("atomic_"):
        reason += "\nfew operations take a float16 element as it is; convert it first, as in np.float32(x[i])"
    return compile_error(function, reason + mix, place, arguments)


def _assignment_within(function: FunctionType) -> tuple[str, int] | None:
    """Return the place of the first assignment within an expression; None if there is none, or no source."""
    file, line = definition(function)
    for number in range(line, line + len(inspect.getblock(linecache.getlines(file)[line - 1 :]))):
        if ":=" in linecache.getline(file, number):
            return file, number
    return None


def _names(function: FunctionType) -> set[str]:
    """Return the names of globals and attributes that a function and its helpers read."""
    parts = (function, *helpers(function))
    return {name for part in parts for code in codes_of(part.__code__) for name in code.co_names}


def find_place(function: FunctionType, error: Exception) -> tuple[str, int]:
    """Return the innermost place in the user's source that a Numba error names."""
    for match in _PLACE.finditer(_COLOUR.sub("", str(error))):
        if is_users(match["file"]):
            return match["file"], int(match["line"])
    for at in (getattr(error, "loc", None), *_locations(error.__traceback__)):
        file, line = getattr(at, "filename", None), getattr(at, "line", None)
        if isinstance(file, str) and isinstance(line, int) and is_users(file):
            return file, line
    return definition(function)


def _locations(traceback: TracebackType | None) -> list[object]:
    """Return the places of what the compiler was about when it raised an error, from the innermost call outwards."""
    found: list[object] = []
    while traceback is not None:
        found += map(_location, traceback.tb_frame.f_locals.values())
        traceback = traceback.tb_next
    return found[::-1]


def _location(value: object) -> object:
    try:
        return getattr(value, "loc", None)
    except Exception:  # of a compiler's object that has attributes of its own
        return None


def is_users(file: str) -> bool:
    """Whether a file is no part of a compiler or of this package, not generated, and known to the compiler."""
    return not file.startswith(("<anabranch", _NO_PLACE, _HERE)) and not _LIBRARIES & set(re.split(r"[\\/]", file))


def _reason(message: str) -> str:
    """Return the innermost cause from Numba's message, which nests one cause per call."""
    lines = [line.strip() for line in message.splitlines()]
    lines = [line for line in lines if line and not _STAGE.match(_CLASS.sub("", line))]
    if _RECURSION in message:
        return "a kernel cannot call a function that calls itself"
    cause = _specific_cause(lines) or (_CLASS.sub("", lines[0]) if lines else message)
    calls = _CALL.findall(message)
    if cause.startswith("No implementation of function") and calls:
        return f"Numba has no {calls[-1]}"
    return _PLACE_AFTER.sub("", cause)


def captured(name: str, value: object) -> str:
    """Return the reason for a kernel that cannot have a value from outside."""
    if value is vars(builtins).get(name):
        return unsupported(name)
    return (
        f"{name!r}, of type {type(value).__name__}, comes from outside the kernel; only numbers, tuples of them, NumPy "
        "arrays and plain functions may: make it a parameter"
    )


def _captured_reason(function: FunctionType, reason: str) -> str | None:
    """Return the reason if the compiler has refused a value from outside the kernel."""
    found = _CAPTURED.search(reason)
    if found is None:
        return None
    for part in (function, *helpers(function)):
        for name, value in references(part):
            if name == found["name"]:
                return captured(name, value)
    return None  # a name that is not defined


def _specific_cause(lines: Sequence[str]) -> str | None:
    opened: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line == _REJECTED:
            opened.append(_CLASS.sub("", following))
        raised = _RAISED_FROM.match(line)
        if raised and opened:
            cause = opened.pop()
            if not _TYPE_MODULES.search(raised["file"]):
                return cause
    return None


def _readonly_reason(parameters: Sequence[Parameter], place: tuple[str, int]) -> str:
    declared = [parameter.name for parameter in parameters if parameter.access_code == IN_CODE]
    written = _names_written(linecache.getline(*place).strip())
    names = [name for name in declared if name in written] or declared
    if not names:
        return "the kernel writes an array whose memory is read-only"
    which = " or ".join(repr(name) for name in names)
    return f"the kernel writes {which}, declared ab.In; declare it ab.InOut, or ab.Out if it is only written"


def _names_written(source: str) -> set[str]:
    """Return the names that one line of source assigns into or passes to an atomic."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # part of a statement, or the head of one
        return set()
    names = set()
    for node in ast.walk(tree):
        target: ast.AST | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            target = node.value
        elif isinstance(node, ast.Call) and node.args and "atomic" in ast.unparse(node.func):
            target = node.args[0]
        if target is not None:
            names |= {child.id for child in ast.walk(target) if isinstance(child, ast.Name)}
    return names
