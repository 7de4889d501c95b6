"""Built-in functions that receive their arguments in place, without reference counting."""

from cpython.object cimport PyObject

cdef extern from *:
    """
    // Called once per module: the definition is static.
    [[maybe_unused]] static PyObject* make_function(
        const char* name, PyObject* (*call)(PyObject*, PyObject**, Py_ssize_t, PyObject*), const char* description,
        PyObject* module) {
      static PyMethodDef method;
      method = {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)), METH_FASTCALL | METH_KEYWORDS,
                description};
      return PyCFunction_NewEx(&method, nullptr, module);
    }
    """
    # `description` begins with the signature. The callee receives the names of keyword arguments as a tuple, or NULL.
    object make_function(
        const char* name, object (*call)(PyObject*, PyObject**, Py_ssize_t, PyObject*), const char* description,
        object module)
