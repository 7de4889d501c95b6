"""The running task: its current device, streams and hazard mode, and where in the program it is."""
