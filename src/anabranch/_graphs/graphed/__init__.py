"""Functions that are captured once and replayed as graphs."""
