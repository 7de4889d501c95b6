"""Places where a kernel may fail, from compilation to the text of a `KernelError`.

A compiler collects *spots*. A spot names a line by its function and its distance from the function's first line, so it
can be stored with the code and stays correct if the file changes above the function. A loaded kernel has *places*,
which are text.
"""

from __future__ import annotations

import json
import linecache
import pickle
from collections.abc import Sequence
from types import FunctionType
from typing import Any, Final, NamedTuple

from anabranch._task.site import place as place_of_site
from anabranch.kernels._reference import helpers
from anabranch.kernels._signature import Signature

# The error where an array, or a part of one, cannot be changed by a value of another shape.
NO_BROADCAST: Final = "could not broadcast the value to the shape of what it changes"
# The error where NumPy would copy an array before it changes another that shares elements with it.
SHARED_ELEMENTS: Final = "the value shares elements with what it changes: copy it to another array first"


class Spot(NamedTuple):
    """A place in a kernel, as a compiler collects it.

    Attributes
    ----------
    part : int
        0 for the kernel's function, then its helpers in the order of `helpers`; -1: outside the user's code.
    line : int
        Offset from the function's first line.
    what : str
        The error; empty for an index out of bounds, or if only the line is known.
    array : str
        The indexed array's name in messages, or empty.
    parameter : int
        Position of that array among the kernel's parameters after the index, or -1.
    """

    part: int
    line: int
    what: str
    array: str
    parameter: int


class Place(NamedTuple):
    """A place in a loaded kernel; see ``KernelPlace`` in ``anabranch/kernel/kernel.hpp``."""

    where: str
    what: str
    array: str
    slot: int
    ndim: int


def indexed_array(inst: Any, func_ir: Any, ir: Any) -> tuple[str, str]:
    """Return the name of the array that an instruction indexes, and of the parameter that it is or is a view of.

    Either is empty if there is none. `ir` is the compiler's module of instruction classes.
    """
    if isinstance(inst, ir.SetItem | ir.StaticSetItem):
        variable = inst.target
    else:
        variable = _operand(getattr(inst, "value", None), ir)
    name = root = part = ""
    seen: set[str] = set()
    while isinstance(variable, ir.Var) and variable.name not in seen:
        seen.add(variable.name)
        if not name and not variable.is_temp:
            name = str(variable.unversioned_name) + part
        try:
            found = func_ir.get_definition(variable)
        except KeyError:  # assigned in several places
            break
        if isinstance(found, ir.Arg):
            root = str(found.name)
            break
        if isinstance(found, ir.Expr) and "getitem" in found.op:
            part = "[...]"
        variable = _operand(found, ir)
    return name or root, root


def _operand(expression: Any, ir: Any) -> Any:
    """Return the variable that an expression indexes or, failing that, operates on."""
    if not isinstance(expression, ir.Expr):
        return expression
    if expression.op == "call":  # an atomic: the array is the first argument
        return expression.args[0] if expression.args else None
    return expression._kws.get("value")


def array_text(name: str, root: str) -> str:
    """Return the name of an array in messages."""
    return f"'{name}'" if name == root or not root else f"'{name}', a view of '{root}'"


def pack(spots: Sequence[Spot], block: Sequence[int], code: bytes) -> bytes:
    """Return code with its spots and the sizes of its blocks, for storage."""
    return json.dumps([spots, block]).encode() + b"\n" + code


def unpack(stored: bytes) -> tuple[list[Spot], list[int], bytes]:
    """Return the arguments of `pack`.

    Raises
    ------
    ValueError
        `stored` has another format.
    """
    head, _, code = stored.partition(b"\n")
    try:
        found = json.loads(head)
    except RecursionError:
        raise ValueError("lists within lists") from None
    if not isinstance(found, list) or list(map(type, found)) != [list, list]:
        raise ValueError("no lists of spots and sizes")
    spots, block = found
    if not all(map(_is_spot, spots)) or not all(type(size) is int and size > 0 for size in block):
        raise ValueError("no spots and sizes")
    return [Spot(*spot) for spot in spots], block, code


def _is_spot(found: object) -> bool:
    return isinstance(found, list) and list(map(type, found)) == [int, int, str, str, int]


def places_of(spots: Sequence[Spot], function: FunctionType, signature: Signature) -> tuple[Place, ...]:
    """Return the places of a kernel loaded for a signature.

    Raises
    ------
    ValueError
        The spots belong to another kernel.
    """
    parts = (function, *helpers(function)) if spots else ()
    slots = _slots_of(signature)
    found = []
    for spot in spots:
        if spot.part >= len(parts) or spot.parameter >= len(slots):
            raise ValueError(f"{spot} of {function.__qualname__}")
        where = _line_of(parts[spot.part], spot.line) if spot.part >= 0 else ""
        slot, ndim = slots[spot.parameter] if spot.parameter >= 0 else (-1, 0)
        found.append(Place(where, spot.what, spot.array, slot, ndim))
    return tuple(found)


def _slots_of(signature: Signature) -> list[tuple[int, int]]:
    found = []
    slot = 0
    for code in signature[1]:
        ndim = code[2] if code[0] == "array" else 0
        found.append((slot, ndim))
        if code[0] == "array":
            slot += 1 + 2 * ndim
        else:
            slot += 2 if code[1].startswith("complex") else 1
    return found


def _line_of(part: FunctionType, offset: int) -> str:
    code = part.__code__
    line = code.co_firstlineno + offset
    text = f'  File "{code.co_filename}", line {line}, in {part.__name__}'
    source = linecache.getline(code.co_filename, line).strip()
    return f"{text}\n    {source}" if source else text


def message_of(message: str, code: int, instruction: int, raised: bytes) -> str:
    """Complete the message of a failed kernel.

    Parameters
    ----------
    message : str
        The core's message: the kernel, the index, the line of the kernel.
    code, instruction : int
        Site of the launch; 0: unknown.
    raised : bytes
        The exception as Numba pickles it, or empty.
    """
    head, _, where = message.partition("\n")
    if raised:
        head += f": {_exception_text(raised)}"
    file, line = place_of_site(code, instruction)
    launched = f'\n  launched at File "{file}", line {line}' if file is not None else ""
    return head + (f"\n{where}" if where else "") + launched


def _exception_text(raised: bytes) -> str:
    try:
        kind, args, *_ = pickle.loads(raised)
        return f"{kind.__name__}: {', '.join(map(str, args or ()))}"
    except Exception:  # the pickle of another Numba version
        return "an error in a function of Numba's"
