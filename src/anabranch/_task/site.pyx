"""Sites: places in programs, stored as cheap pairs and resolved to file and line only for messages."""

from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t

from anabranch._core.core cimport Site, calling_site
from anabranch._core.gc_pause cimport pause_collector, resume_collector

cdef extern from "anabranch/_task/site.hpp" namespace "anabranch::python":
    cppclass Codes:
        void add(const void*)
    Site site_within(const Codes&)

cdef extern from *:
    """
    static PyObject* innermost_frame() { return reinterpret_cast<PyObject*>(PyEval_GetFrame()); }
    static PyObject* code_of(PyObject* frame) {
      return reinterpret_cast<PyObject*>(PyFrame_GetCode(reinterpret_cast<PyFrameObject*>(frame)));
    }
    static int instruction_of(PyObject* frame) { return PyFrame_GetLasti(reinterpret_cast<PyFrameObject*>(frame)); }
    static bool runs_python() { return Py_IsInitialized() && anabranch::python::runs_python(); }
    // An object may be destroyed while an exception propagates, and the exception must survive.
    static anabranch::Site with_raised_aside(anabranch::Site (*find)()) {
      const anabranch::python::RaisedAside aside;
      return find();
    }
    """
    PyObject* innermost_frame()
    object code_of(object frame)
    int instruction_of(object frame)
    bint runs_python() nogil
    Site with_raised_aside(Site (*find)() noexcept) noexcept

# Code objects that sites name, kept alive; and code objects known to be outside this package.
cdef dict _codes = {}
cdef Codes _known


def is_own(namespace):
    """Return whether a function with these globals belongs to this package."""
    name = namespace.get("__name__", "")
    return isinstance(name, str) and (name == "anabranch" or name.startswith("anabranch."))


cdef Site current_site() except *:
    cdef Site known = site_within(_known)
    return known if known.code != 0 else _other_site()


cdef Site _other_site() except *:
    # Reading frames creates objects, and a collection could close an array that the caller is using.
    cdef bint collected = pause_collector()
    try:
        return _find_site()
    finally:
        if collected:
            resume_collector()


cdef Site _find_site() except *:
    # Functions written in Cython have no frames.
    cdef Site site
    cdef PyObject* found = innermost_frame()
    if found == NULL:
        return site
    frame = <object>found
    while frame.f_back is not None and is_own(frame.f_globals):
        frame = frame.f_back
    code = code_of(frame)
    _codes[id(code)] = code
    site.code = <uintptr_t><PyObject*>code
    site.instruction = instruction_of(frame)
    if <PyObject*>frame == found and not is_own(frame.f_globals):
        _known.add(<PyObject*>code)
    return site


cdef tuple place_of(const Site& site):
    code = _codes.get(site.code)
    if code is None:
        return None, None
    for start, end, line in code.co_lines():
        if start <= site.instruction < end:
            return code.co_filename, line if line is not None else code.co_firstlineno
    return code.co_filename, code.co_firstlineno


def place(code, instruction):
    """Return file and line of a site given as numbers; (None, None) for an unknown one."""
    cdef Site site
    site.code = code
    site.instruction = instruction
    return place_of(site)


cdef Site _site_if_known() noexcept:
    cdef Site nowhere
    try:
        return current_site()
    except BaseException:
        return nowhere


cdef Site _site_of_thread() noexcept with gil:
    return with_raised_aside(_site_if_known)


cdef Site _calling_site() noexcept nogil:
    cdef Site nowhere
    return _site_of_thread() if runs_python() else nowhere


calling_site.store(_calling_site)
