"""Traces: what ran where and when, and which wait held it."""
