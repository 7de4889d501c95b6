"""Captures and graphs."""
