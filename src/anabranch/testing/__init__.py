"""Helpers for tests of code that uses streams."""

from anabranch._stream.gate import Gate, fail

__all__ = ["Gate", "fail"]
