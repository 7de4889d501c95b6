"""Random kernels.

A kernel has several probes, blocks of statements that share nothing but the arguments. Each stores its result in a
column of its own, so that a column that differs names the statements that computed it.

The programs leave out what has no one meaning: division by 0 of integers, indices out of bounds, conversions of floats
that an integer cannot hold, and unsigned integers of 64 bits. Integers wrap around.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from .expressions import EXPRESSIONS, Kind

ROWS = 4  # indices of the launch, and the rows of the two-dimensional arrays
LENGTH = 5  # of each row

# The parameters that are arrays: their dtype, of one dimension and of two.
LINES = {"n": "int64", "s": "int16", "u": "uint8", "x": "float64", "h": "float32", "b": "bool", "z": "complex128"}
TABLES = {"m": "int32", "t": "float64", "c": "complex64", "d": "bool"}
SCALARS = {"p": "int", "a": "float"}
RESULTS = {"int": ("ints", "int64"), "float": ("floats", "float64"), "complex": ("numbers", "complex128")}
_KINDS = {"i": "int", "u": "int", "f": "float", "b": "bool", "c": "complex"}

HELPERS = """
def clip(value, low, high):
    if value < low:
        return low
    if value > high:
        return high
    return value


def both(left, right):
    return left + right, left - right


def mean(row):
    total = 0.0
    for value in row:
        total += value
    return total / len(row)
"""


def _kind_of(dtype: str) -> Kind:
    return _KINDS[np.dtype(dtype).kind]


@dataclass
class Kernel:
    """A random kernel; of each probe, `probes` has the kind of its result, the column, and the statements."""

    source: str
    probes: list[tuple[Kind, int, str]]

    def width(self, kind: Kind) -> int:
        """Return how many columns the results of a kind have."""
        return sum(probe[0] == kind for probe in self.probes)


class _Probe:
    """Writes the statements of one probe."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.names: dict[str, Kind] = {}
        self.counters: list[str] = []  # variables of loops, from 0 to LENGTH - 1
        self.indent = 1
        self.made = 0

    # -- expressions --

    def expression(self, kind: Kind, depth: int) -> str:
        if depth <= 0 or self.rng.random() < 0.1:
            return self.leaf(kind)
        return self.rng.choice(EXPRESSIONS[kind])(self, depth - 1)

    def leaf(self, kind: Kind) -> str:
        known = [name for name, other in self.names.items() if other == kind]
        if known and self.rng.random() < 0.5:
            return self.rng.choice(known)
        if self.rng.random() < 0.25:
            return self.literal(kind)
        if kind == "int" and self.rng.random() < 0.2:
            return self.rng.choice(["i", "p", "len(x)", "t.shape[0]", "m.shape[1]", "z.size", "t.ndim", *self.counters])
        return "a" if kind == "float" and self.rng.random() < 0.1 else self.element(kind)

    def literal(self, kind: Kind) -> str:
        if kind == "int":
            return str(self.rng.choice([0, 1, 2, 3, 7, -1, -5, 100]))
        if kind == "float":
            return self.rng.choice(["0.5", "2.0", "-1.25", "3.0", "1e-3", "math.pi"])
        return self.rng.choice(["True", "False"] if kind == "bool" else ["1j", "(2 - 0.5j)", "1.5j"])

    def element(self, kind: Kind) -> str:
        lines = [name for name, dtype in LINES.items() if _kind_of(dtype) == kind]
        tables = [name for name, dtype in TABLES.items() if _kind_of(dtype) == kind]
        name = self.rng.choice(lines + tables)
        if name in lines:
            has_part = self.rng.random() < 0.15
            return f"{name}{self.part()}[{self.place(2)}]" if has_part else f"{name}[{self.place(LENGTH)}]"
        forms = [f"{name}[i, {self.place(LENGTH)}]", f"{name}[{self.place(ROWS)}, {self.place(LENGTH)}]",
                 f"{name}[i][{self.place(LENGTH)}]", f"{name}[:, {self.place(LENGTH)}][{self.place(ROWS)}]",
                 f"{name}.T[{self.place(LENGTH)}, i]", f"{name}[i, ::-1][{self.place(LENGTH)}]"]  # fmt: skip
        return self.rng.choice(forms)

    def part(self) -> str:
        """A slice that leaves two elements at least."""
        return self.rng.choice(["[1:]", "[:-1]", "[::-1]", "[::2]", "[-2:]", "[1:4]", "[3:0:-1]", "[:]"])

    def place(self, length: int) -> str:
        forms = [str(self.rng.randrange(-length, length))]
        if length >= ROWS:
            forms += ["i", "-1 - i", "i - 1", f"(i + {self.rng.randrange(9)}) % {length}"]
        if length == LENGTH and self.counters:
            forms += [*self.counters, f"{self.rng.choice(self.counters)} - 1"]
        if length == LENGTH:
            forms += ["i + 1", f"p % {LENGTH}"]
        return self.rng.choice(forms)

    def row(self, kind: Kind) -> str:
        """A one-dimensional array."""
        lines = [name for name, dtype in LINES.items() if _kind_of(dtype) == kind]
        tables = [name for name, dtype in TABLES.items() if _kind_of(dtype) == kind]
        name = self.rng.choice(lines + tables)
        if name in lines:
            return name + self.rng.choice(["", self.part()])
        return self.rng.choice([f"{name}[i]", f"{name}[i]{self.part()}", f"{name}[:, 1]", f"{name}[-1, 1:]"])

    # -- statements --

    def fresh(self, kind: Kind) -> str:
        self.made += 1
        name = f"{kind[0]}{self.made}_"
        self.names[name] = kind
        return name

    def add(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def block(self, count: int, depth: int) -> None:
        """Statements of a block; the names that it makes end with it."""
        self.indent += 1
        before = dict(self.names)
        for _ in range(count):
            self.rng.choice(_STATEMENTS if depth > 0 else _PLAIN)(self, depth - 1)
        self.names = before
        self.indent -= 1

    def assign(self, _depth: int) -> None:
        kind = self.rng.choice(["int", "float", "bool", "complex"])
        value = self.expression(kind, 3)
        self.add(f"{self.fresh(kind)} = {value}")

    def change(self, _depth: int) -> None:
        kind = self.rng.choice(["int", "float", "complex", "int", "float"])
        known = [name for name, other in self.names.items() if other == kind]
        if not known:
            return self.assign(0)
        operators = {"int": ["+", "-", "*", "&", "^", "|"], "float": ["+", "-", "*"], "complex": ["+", "-", "*"]}
        name = self.rng.choice(known)
        # Assigned again, a variable keeps its type: both may be booleans or integers, too.
        self.add(f"{name} {self.rng.choice(operators[kind])}= {self.expression(kind, 2)}")
        return None

    def unpack(self, _depth: int) -> None:
        kind = self.rng.choice(["int", "float"])
        left, right = self.expression(kind, 2), self.expression(kind, 2)
        call = self.rng.random() < 0.5
        names = self.fresh(kind), self.fresh(kind)
        self.add(f"{names[0]}, {names[1]} = " + (f"both({left}, {right})" if call else f"{left}, {right}"))
        if self.rng.random() < 0.3:
            self.add(f"{names[0]}, {names[1]} = {names[1]}, {names[0]}")

    def branch(self, depth: int) -> None:
        self.start()
        self.add(f"if {self.expression('bool', 2)}:")
        self.block(self.rng.randint(1, 2), depth)
        self.end()
        if self.rng.random() < 0.6:
            self.add("else:" if self.rng.random() < 0.7 else f"elif {self.expression('bool', 1)}:")
            self.block(self.rng.randint(1, 2), depth)
            self.end()

    def loop(self, depth: int) -> None:
        kind = self.rng.choice(["int", "float", "bool", "complex"])
        self.start()
        self.made += 1
        counter, value = f"k{self.made}", f"e{self.made}"
        headers = [
            (f"for {counter} in range({LENGTH}):", False),
            (f"for {counter} in range({LENGTH - 1}, -1, -2):", False),
            (f"for {counter} in range(p % {LENGTH + 1}):", False),
            (f"for {value} in {self.row(kind)}:", True),
            (f"for {counter}, {value} in enumerate({self.row(kind)}):", True),
            (f"for {counter}, {value} in zip(range({LENGTH}), {self.row(kind)}):", True),
        ]
        header, has_value = self.rng.choice(headers)
        has_counter = counter in header
        before = dict(self.names)
        self.add(header)
        if has_value:
            self.names[value] = kind
        if has_counter:
            self.counters.append(counter)
        self.block(self.rng.randint(1, 2), depth)
        if self.rng.random() < 0.3:
            self.indent += 1
            self.add(f"if {self.expression('bool', 1)}:")
            self.add("    " + self.rng.choice(["break", "continue"]))
            self.indent -= 1
        self.end()
        if has_counter:
            self.counters.pop()
        self.names = before

    def start(self) -> None:
        """Have a variable that the block may change."""
        if "total" not in self.names and self.indent == 1:
            self.add("total = 0.0")
            self.names["total"] = "float"

    def end(self) -> None:
        """Use what the block computed, as its last statement."""
        if "total" in self.names:
            self.add(f"    total += {self.expression('float', 1)}")


_PLAIN = [_Probe.assign, _Probe.assign, _Probe.change, _Probe.change, _Probe.unpack]
_STATEMENTS = [*_PLAIN, _Probe.branch, _Probe.loop]


def random_kernel(seed: int, probes: int = 3) -> Kernel:
    """Write a kernel, the same for the same seed."""
    rng = random.Random(seed)
    parameters = ["i", *(f"{name}: ab.In" for name in (*LINES, *TABLES)), *SCALARS]
    parameters += [f"{name}: ab.Out" for name, _ in RESULTS.values()]
    lines = ["import math", "import numpy as np", "import anabranch as ab", HELPERS, ""]
    lines += ["@ab.kernel", f"def program({', '.join(parameters)}):"]
    written: list[tuple[Kind, int, str]] = []
    for number in range(probes):
        probe = _Probe(rng)
        probe.made = 100 * number  # probes share no variables
        for _ in range(rng.randint(0, 3)):
            rng.choice(_STATEMENTS)(probe, 2)
        kind = "float" if "total" in probe.names else rng.choice(list(RESULTS))
        value = probe.expression(kind, 3)
        if "total" in probe.names:
            value = f"total + {value}"
        position = sum(other == kind for other, _, _ in written)
        probe.add(f"{RESULTS[kind][0]}[i, {position}] = {value}")
        text = "\n".join(probe.lines)
        written.append((kind, position, text))
        lines.append(text)
    return Kernel("\n".join(lines) + "\n", written)


def random_arguments(seed: int) -> tuple[list[np.ndarray], list[int | float]]:
    """Make the arrays and numbers that a random kernel takes; their elements are small."""
    rng = np.random.default_rng(seed)
    arrays = []
    for names, shape in ((LINES, (LENGTH,)), (TABLES, (ROWS, LENGTH))):
        for dtype in names.values():
            values = {
                "int": lambda shape=shape: rng.integers(-9, 100, shape),
                "float": lambda shape=shape: rng.choice([0.0, 1.0, -2.5, 0.5, 7.25, -0.75], shape),
                "bool": lambda shape=shape: rng.random(shape) < 0.5,
                "complex": lambda shape=shape: rng.choice([0, 1, 0.5 - 1j, 2j], shape),
            }[_kind_of(dtype)]()
            arrays.append(values.astype(dtype))
    return arrays, [int(rng.integers(0, 9)), float(rng.choice([0.25, -1.5]))]
