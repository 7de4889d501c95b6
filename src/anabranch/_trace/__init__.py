"""Traces: operations of streams with their times."""
