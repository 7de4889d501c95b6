"""Reports of races."""
