"""Traces: what streams did, and when."""
