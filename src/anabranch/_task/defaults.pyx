"""The initial hazard mode of threads, from the environment unless the program has set another."""

import os

from anabranch._core.core cimport HazardMode, begin_checks

modes = {"auto": HazardMode.automatic, "check": HazardMode.check, "off": HazardMode.off}

# -1: not read yet.
cdef int _first_mode = -1
cdef int _first_bounds = -1


cdef int set_first_mode(int mode) except -1:
    global _first_mode
    if mode == <int>HazardMode.check:
        begin_checks()
    _first_mode = mode
    return 0


cdef int first_mode() except -1:
    if _first_mode < 0:
        _mode_of_environment()
    return _first_mode


cdef int _mode_of_environment() except -1:
    name = os.environ.get("ANABRANCH_HAZARDS") or "auto"
    if name not in modes:
        raise ValueError(f"ANABRANCH_HAZARDS is {name!r}; it is one of {', '.join(modes)}")
    return set_first_mode(modes[name])


cdef int first_bounds() except -1:
    global _first_bounds
    if _first_bounds < 0:
        name = os.environ.get("ANABRANCH_BOUNDS") or "0"
        if name not in ("0", "1"):
            raise ValueError(f"ANABRANCH_BOUNDS is {name!r}; it is 0 or 1")
        _first_bounds = name == "1"
    return _first_bounds
