"""Foundations of every other package: the core's declarations, exceptions, and small utilities of the binding."""
