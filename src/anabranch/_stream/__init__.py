"""Streams, events, and host functions in stream order."""
