"""The forms of expressions in random kernels, by the kind of their value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Kind = str  # "int", "float", "bool" or "complex"

# Each takes a probe and the depth left for its parts.
_Maker = Callable[[Any, int], str]


def _form(template: str, *kinds: Kind) -> _Maker:
    def make(probe: Any, depth: int) -> str:
        return template.format(*(probe.expression(kind, depth) for kind in kinds))

    return make


def _elements(template: str, kind: Kind) -> _Maker:
    """Of an element: finite, and small."""
    return lambda probe, _: template.format(probe.element(kind))


def _rows(template: str, *kinds: Kind) -> _Maker:
    return lambda probe, _: template.format(*(probe.row(kind) for kind in kinds))


EXPRESSIONS: dict[Kind, list[_Maker]] = {
    "int": [
        *(_form(f"({{0}} {operator} {{1}})", "int", "int") for operator in "+-*&|^"),
        _form("({0} // (abs({1}) % 7 + 1))", "int", "int"),
        _form("({0} % (abs({1}) % 9 + 1))", "int", "int"),
        _form("({0} % -(abs({1}) % 9 + 1))", "int", "int"),
        _form("({0} << ({1} & 7))", "int", "int"),
        _form("({0} >> ({1} & 7))", "int", "int"),
        _form("({0} << {1})", "int", "int"),
        _form("({0} >> {1})", "int", "int"),
        _form("(-{0})", "int"),
        _form("(~{0})", "int"),
        _form("abs({0})", "int"),
        _form("min({0}, {1})", "int", "int"),
        _form("max({0}, {1}, {2})", "int", "int", "int"),
        _form("({0} if {1} else {2})", "int", "bool", "int"),
        _form("({0} + {1})", "int", "bool"),
        _form("({0} * {1})", "bool", "int"),
        _form("int({0})", "bool"),
        _form("clip({0}, -50, {1})", "int", "int"),
        _form("np.int32({0})", "int"),
        _form("np.uint8({0})", "int"),
        _form("np.int16({0})", "int"),
        _form("({0} ** 2)", "int"),
        _form("math.gcd({0}, {1})", "int", "int"),
        _form("math.lcm({0} & 63, {1} & 31)", "int", "int"),
        _form("math.comb({0} & 31, {1} & 7)", "int", "int"),
        _form("math.isqrt(abs({0}))", "int"),
        _form("math.factorial({0} & 15)", "int"),
        _form("np.where({0}, {1}, {2})", "bool", "int", "int"),
        _form("({0} or {1})", "int", "int"),
        _form("({0} and {1})", "int", "int"),
        _elements("int({0})", "float"),
        _elements("math.floor({0})", "float"),
        _elements("math.ceil({0} * 3)", "float"),
        _elements("round({0})", "float"),
        _rows("{0}.sum()", "int"),
        _rows("{0}.max()", "int"),
        _rows("len({0})", "float"),
        _rows("{0}.sum()", "bool"),
    ],
    "float": [
        *(_form(f"({{0}} {operator} {{1}})", "float", "float") for operator in "+-*/+-*"),
        _form("({0} + {1})", "float", "int"),
        _form("({0} * {1})", "int", "float"),
        _form("({0} / {1})", "int", "int"),
        _form("({0} // {1})", "float", "float"),
        _form("({0} % {1})", "float", "float"),
        _form("(-{0})", "float"),
        _form("abs({0})", "float"),
        _form("abs({0})", "complex"),
        _form("math.sqrt(abs({0}))", "float"),
        _form("math.sin({0})", "float"),
        _form("math.floor({0} * 0.5) * 1.0", "float"),
        _form("np.cos({0})", "float"),
        _form("math.exp(-abs({0}))", "float"),
        _form("math.hypot({0}, {1})", "float", "float"),
        _form("math.hypot({0}, {1}, {2})", "float", "float", "float"),
        _form("math.log(1 + abs({0}), 3.0)", "float"),
        _form("math.cbrt({0})", "float"),
        _form("math.fmod({0}, {1})", "float", "float"),
        _form("math.modf({0})[0]", "float"),
        _form("math.dist(({0}, {1}), ({1}, {0}))", "float", "float"),
        _form("np.clip({0}, -1.5, {1})", "float", "float"),
        _form("np.where({0}, {1}, {2})", "bool", "float", "float"),
        _form("np.heaviside({0}, 0.25)", "float"),
        _form("math.atan2({0}, {1})", "float", "float"),
        _form("math.copysign({0}, {1})", "float", "float"),
        _form("np.sqrt({0})", "float"),
        _form("np.floor({0})", "float"),
        _form("np.float32({0})", "float"),
        _form("float({0})", "int"),
        _form("({0} ** 2)", "float"),
        _form("({0} ** 0.5)", "int"),
        _form("({0} ** -1)", "float"),
        _form("(abs({0}) ** {1})", "float", "float"),
        _form("min({0}, {1})", "float", "float"),
        _form("max({0}, {1})", "float", "int"),
        _form("clip({0}, -2.0, {1})", "float", "float"),
        _form("({0} if {1} else {2})", "float", "bool", "float"),
        _form("({0} if {1} else {2})", "int", "bool", "float"),
        _form("{0}.real", "complex"),
        _form("{0}.imag", "complex"),
        _form("({0} * {1})", "float", "bool"),
        _rows("{0}.sum()", "float"),
        _rows("{0}.prod()", "float"),
        _rows("{0}.min()", "float"),
        _rows("{0}[::-1].max()", "float"),
        _rows("{0}.var()", "float"),
        _rows("{0}.std()", "int"),
        _rows("math.prod({0}[:3])", "float"),
        _rows("mean({0})", "float"),
        _rows("mean({0})", "int"),
    ],
    "bool": [
        *(_form(f"({{0}} {operator} {{1}})", "int", "int") for operator in ("<", "<=", "==", "!=", ">", ">=")),
        *(_form(f"({{0}} {operator} {{1}})", "float", "float") for operator in ("<", ">=", "==", "!=")),
        _form("({0} < {1})", "int", "float"),
        _form("({0} == {1})", "complex", "complex"),
        _form("({0} == {1})", "bool", "bool"),
        _form("({0} == {1})", "bool", "int"),
        _form("({0} and {1})", "bool", "bool"),
        _form("({0} or {1})", "bool", "bool"),
        _form("(not {0})", "bool"),
        _form("(not {0})", "int"),
        _form("({0} < {1} <= {2})", "int", "int", "int"),
        _form("(-1.0 < {0} < {1})", "float", "float"),
        _form("bool({0})", "int"),
        _form("bool({0})", "float"),
        _form("bool({0})", "complex"),
        _form("({0} & {1})", "bool", "bool"),
        _form("({0} ^ {1})", "bool", "bool"),
        _form("({0} if {1} else {2})", "bool", "bool", "bool"),
        _form("math.isclose({0}, {1}, rel_tol=0.25)", "float", "float"),
        _form("any(({0}, {1}))", "bool", "bool"),
        _form("all(({0}, {1}))", "int", "int"),
        _rows("any({0})", "bool"),
        _rows("all({0}[1:])", "int"),
        _form("math.isnan({0})", "float"),
        _form("math.isinf({0})", "float"),
        _form("np.isfinite({0})", "float"),
        _form("(({0}, {1}) < ({2}, {1}))", "int", "float", "int"),
        _form("({0} in (1, 2, 5))", "int"),
        _form("({0} not in (3, 7))", "int"),
        _form("({0} in (0, 1))", "float"),
        _form("({0} in (0.5, {1}))", "float", "float"),
        _form("({0} in (1j, 0j))", "complex"),
    ],
    "complex": [
        *(_form(f"({{0}} {operator} {{1}})", "complex", "complex") for operator in "+-*+"),
        _form("({0} * {1})", "complex", "float"),
        _form("({0} + {1})", "int", "complex"),
        _form("({0} / {1})", "complex", "complex"),
        _form("(-{0})", "complex"),
        _form("({0} ** ({1} & 7))", "complex", "int"),
        _form("{0}.conjugate()", "complex"),
        _form("complex({0}, {1})", "float", "float"),
        _form("complex({0})", "float"),
        _form("np.complex64({0})", "complex"),
        _form("({0} ** 2)", "complex"),
        _form("({0} if {1} else {2})", "complex", "bool", "complex"),
        _form("np.exp(1j * {0})", "float"),
        _rows("{0}.sum()", "complex"),
    ],
}
