"""A task's state: current device, current streams, hazard mode, and the sites of its operations."""
