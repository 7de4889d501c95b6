"""Built-in functions: they find their arguments where the interpreter has them, with no reference counted."""

from cpython.object cimport PyObject

cdef extern from *:
    """
    // Once per module: what it describes stays.
    [[maybe_unused]] static PyObject* make_function(
        const char* name, PyObject* (*call)(PyObject*, PyObject**, Py_ssize_t, PyObject*), const char* description,
        PyObject* module) {
      static PyMethodDef method;
      method = {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)), METH_FASTCALL | METH_KEYWORDS,
                description};
      return PyCFunction_NewEx(&method, nullptr, module);
    }
    """
    # `description` begins with the signature. The names of what is given by name are a tuple, or NULL.
    object make_function(
        const char* name, object (*call)(PyObject*, PyObject**, Py_ssize_t, PyObject*), const char* description,
        object module)
