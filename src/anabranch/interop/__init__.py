"""Other libraries: their streams, and their memory."""

from anabranch.interop._bridge import Bridge, Bridged

__all__ = ["Bridge", "Bridged"]
