"""Helpers for tests of code that uses streams."""

from anabranch._stream.gate import Gate, fail
from anabranch.testing._explore import explore
from anabranch.testing._report import Report

__all__ = ["Gate", "Report", "explore", "fail"]
