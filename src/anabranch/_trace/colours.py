"""Colours of a timeline, for pictures and the page."""

from __future__ import annotations

# By kind, on a light and a dark background. White text, or black on dark backgrounds, is readable on them.
KINDS: dict[str, tuple[str, str]] = {
    "kernel": ("#2f63d6", "#79a6ff"),
    "copy": ("#0f7d68", "#45c7a5"),
    "fill": ("#8f6200", "#e3b341"),
    "host": ("#7b49cc", "#bd9bff"),
    "graph": ("#b83280", "#f58bc0"),
    "collective": ("#00708a", "#4fc3dd"),
    "compile": ("#57534e", "#c9b8a3"),
    "wait": ("#8a94a0", "#7d8794"),
    "added": ("#d1431f", "#ff8163"),
    "record": ("#32383f", "#e6edf3"),
    "alloc": ("#1a7f37", "#56d364"),
    "free": ("#a0222f", "#ff7b72"),
}

GROUND: dict[str, tuple[str, str]] = {
    "ground": ("#ffffff", "#0d1117"),
    "lane": ("#f3f5f8", "#161b22"),
    "line": ("#d5dbe2", "#2d343d"),
    "text": ("#1f2328", "#e6edf3"),
    "faint": ("#59636e", "#9198a1"),
    "block-text": ("#ffffff", "#0b0f16"),
}


def variables() -> str:
    """Return the colours as CSS variables, for the background that the reader prefers."""
    light, dark = (
        "".join(f"--{name}:{pair[ground]};" for name, pair in {**GROUND, **KINDS}.items()) for ground in (0, 1)
    )
    return f":root{{color-scheme:light dark;{light}}}\n@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
