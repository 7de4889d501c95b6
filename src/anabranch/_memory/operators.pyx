"""What the operators and reductions of arrays call. The module that implements them is above arrays."""


cdef class Operators:
    cdef object binary(self, int operation, object left, object right):
        raise NotImplementedError

    cdef object in_place(self, int operation, object array, object other):
        raise NotImplementedError

    cdef object unary(self, int operation, object array):
        raise NotImplementedError

    cdef object reduce(
            self, int reduction, object array, object axis, bint keepdims, object stream, object other):
        raise NotImplementedError


cdef Operators _operators = Operators()


cdef int provide_operators(Operators provided) except -1:
    global _operators
    _operators = provided
    return 0
