"""Declarations of kernels in CUDA C++ source.

Not a compiler: it finds the ``__global__`` functions of a text and splits their parameter lists. Types behind a macro
or a ``using`` remain unknown, and the launch then checks sizes only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

_LITERAL_OR_COMMENT: Final = re.compile(
    r'R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/',
    re.DOTALL,
)
_DIRECTIVE: Final = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.MULTILINE | re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
# Names before a parenthesis that are not part of a declarator.
_ATTRIBUTES: Final = frozenset(
    ["__launch_bounds__", "__cluster_dims__", "__block_size__", "__maxnreg__", "__attribute__", "alignas", "decltype"]
)
_QUALIFIERS: Final = re.compile(
    r"\b(?:__restrict__|__restrict|restrict|__grid_constant__|volatile|struct|class|enum)\b"
)
_TYPES: Final = {
    "bool": "bool", "char": "int8", "signed char": "int8", "unsigned char": "uint8", "byte": "uint8",
    "short": "int16", "unsigned short": "uint16", "int": "int32", "signed": "int32", "signed int": "int32",
    "unsigned": "uint32", "unsigned int": "uint32", "long": "int64", "long long": "int64", "unsigned long": "uint64",
    "unsigned long long": "uint64", "size_t": "uint64", "ptrdiff_t": "int64", "half": "float16", "__half": "float16",
    "float": "float32", "double": "float64", "cuFloatComplex": "complex64", "cuComplex": "complex64",
    "cuDoubleComplex": "complex128", "complex<float>": "complex64", "complex<double>": "complex128",
    **{f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip


class CppParameter(NamedTuple):
    """A parameter of a kernel as the source declares it.

    Attributes
    ----------
    name : str
        Empty without a name.
    pointer : bool
        Whether it is declared as a pointer or an array.
    const : bool
        For a pointer: whether it points to const.
    dtype : str or None
        Dtype of a scalar or of a pointer's elements, if the source spells it out.
    """

    name: str
    pointer: bool
    const: bool
    dtype: str | None


class CppKernel(NamedTuple):
    """A kernel as the source declares it: its name, its template's parameter names, its parameters as text."""

    name: str
    template: tuple[str, ...]
    parameters: tuple[str, ...]

    def read(self, arguments: tuple[str, ...] = ()) -> list[CppParameter]:
        """Return the parameters, with `arguments` in place of the template's."""
        known = dict(zip(self.template, arguments, strict=False))
        return [_read(text, known) for text in self.parameters]


def kernels(source: str) -> list[CppKernel]:
    """Return the kernels that `source` declares, in order; each overload and specialisation once."""
    text = _DIRECTIVE.sub(" ", _LITERAL_OR_COMMENT.sub(_blank, source))
    found = []
    for match in re.finditer(r"\b__global__\b", text):
        declarator = _declarator(text, match.end())
        if declarator is None:
            continue
        name, start = declarator
        end = _closing(text, start)
        if end is None:
            continue
        parameters = tuple(part for part in split(text[start + 1 : end]) if part not in ("", "void"))
        found.append(CppKernel(name, _template_before(text, match.start()), parameters))
    return found


def expression_parts(expression: str) -> tuple[str, tuple[str, ...]]:
    """Split a name expression such as ``scale<float, 4>`` into the name and the template's arguments."""
    name, opening, rest = expression.strip().lstrip("&").partition("<")
    name = name.strip().rpartition("::")[2]
    if not opening:
        return name, ()
    return name, tuple(split(rest.rstrip()[:-1]))


def _blank(match: re.Match[str]) -> str:
    # A literal keeps its quotes, which preserves `extern "C"`.
    return " " if match[0].startswith("/") else '""'


def _declarator(text: str, at: int) -> tuple[str, int] | None:
    """Return the name of the function declared from `at` on, and the position where its parameter list opens."""
    name = ""
    while at < len(text):
        character = text[at]
        if character in ";{":
            return None
        if character == "(":
            if name and name not in _ATTRIBUTES:
                return name, at
            end = _closing(text, at)
            if end is None:
                return None
            at = end + 1
            continue
        if character == "<":  # a specialisation's arguments
            depth_end = _closing(text, at)
            at = len(text) if depth_end is None else depth_end + 1
            continue
        word = _NAME.match(text, at)
        if word is not None:
            name, at = word[0], word.end()
            continue
        at += 1
    return None


def _closing(text: str, at: int) -> int | None:
    """Return the position of the bracket that closes the one at `at`."""
    for position, depth in _depths(text[at:]):
        if depth == 0 and position > 0:
            return at + position
    return None


def _depths(text: str) -> Iterator[tuple[int, int]]:
    """Yield each position with the nesting depth after it; ``<`` and ``>`` inside other brackets do not count."""
    stack: list[str] = []
    for position, character in enumerate(text):
        if character in "([{":
            stack.append(character)
        elif character in ")]}":
            while stack and stack.pop() == "<":
                continue
        elif character == "<" and (not stack or stack[-1] in "<("):
            stack.append(character)
        elif character == ">" and stack and stack[-1] == "<" and text[position - 1] != "-":
            stack.pop()
        yield position, len(stack)


def split(text: str) -> list[str]:
    """Split a list at its commas, except those inside brackets."""
    parts, start = [], 0
    for position, depth in _depths(text):
        if depth == 0 and text[position] == ",":
            parts.append(text[start:position])
            start = position + 1
    return [" ".join(part.split()) for part in (*parts, text[start:])]


def _template_before(text: str, at: int) -> tuple[str, ...]:
    """Return the parameter names of the template that the declaration at `at` belongs to."""
    head = text[max(text.rfind(";", 0, at), text.rfind("}", 0, at)) + 1 : at]
    opening = re.search(r"\btemplate\s*<", head)
    if opening is None:
        return ()
    end = _closing(head, opening.end() - 1)
    parts = split(head[opening.end() : end]) if end is not None else []
    names = (_NAME.findall(part.partition("=")[0]) for part in parts)
    return tuple(words[-1] if words else "" for words in names)


def _read(text: str, known: Mapping[str, str]) -> CppParameter:
    text = re.sub(r"\b\w+\s*::\s*|::", "", _QUALIFIERS.sub(" ", text.partition("=")[0]))
    text, brackets, _ = text.partition("[")
    shown = _without_arguments(text)
    words = _NAME.findall(shown)
    name = ""
    stars = shown.split("*")
    last = [word for word in _NAME.findall(stars[-1]) if word != "const"]
    if len(stars) > 1:
        name = last[-1] if last else ""
    elif len([word for word in words if word not in ("const", "unsigned", "signed", "long", "short")]) > 1 or (
        len(words) > 1 and words[-1] not in ("const", "int", "char", "long", "short", "double", "unsigned", "signed")
    ):
        name = words[-1]
    pointer = len(stars) > 1 or bool(brackets)
    level = stars[-2] if len(stars) > 1 else stars[0]
    base = (
        re.sub(rf"\b{re.escape(name)}\b\s*$", "", text.partition("*")[0].strip())
        if len(stars) == 1 and name
        else (text.partition("*")[0])
    )
    dtype = _dtype(base, known) if len(stars) + bool(brackets) <= 2 else None
    return CppParameter(name, pointer, pointer and bool(re.search(r"\bconst\b", level)), dtype)


def _without_arguments(text: str) -> str:
    """Return `text` with everything inside ``<>`` blanked out."""
    shown, before = [], 0
    for position, depth in _depths(text):
        shown.append(" " if depth or before else text[position])
        before = depth
    return "".join(shown)


def _dtype(text: str, known: Mapping[str, str]) -> str | None:
    words = " ".join(word for word in re.sub(r"([<>,&])", r" \1 ", text).split() if word != "const")
    words = known.get(words, words)
    words = re.sub(r"\s*([<>,])\s*", r"\1", words).strip()
    words = re.sub(r"\b(long|short) int\b", r"\1", words)
    return _TYPES.get(words)
