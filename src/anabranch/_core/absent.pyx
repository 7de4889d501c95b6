"""Names that classes of other libraries have and ours lack: asking for one says what stands for it."""

from cpython.object cimport PyTypeObject

cdef extern from "Python.h":
    void PyType_Modified(PyTypeObject*)


class Absent:
    """An attribute that is not there: of a class and of its objects."""

    def __init__(self, name, hint):
        self._name = name
        self._hint = hint

    def __get__(self, instance, owner):
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}; {self._hint}")

    def __set__(self, instance, value):
        self.__get__(instance, type(instance))

    def __repr__(self):
        return f"<absent; {self._hint}>"


def add_absent(type cls, dict instead):
    """Have a class say what stands for names that it lacks; `instead` has a sentence for each.

    A `__getattr__` would slow down every other attribute, which the interpreter then no longer specializes.
    """
    absent = {name: Absent(name, hint) for name, hint in instead.items()}
    absent["__dir__"] = lambda instance: sorted(set(object.__dir__(instance)) - set(absent) | {"__dir__"})
    # A class of Cython takes no new attributes but through its dictionary.
    attributes = <dict>(<PyTypeObject*>cls).tp_dict
    attributes.update(absent)
    PyType_Modified(<PyTypeObject*>cls)
