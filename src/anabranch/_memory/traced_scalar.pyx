"""Numbers that stand for arguments while a function is captured for repeated calls.

Results computed from them are computed again in each call. If the program inspects a value, to branch on it or to use
it as a size, the captured graph is valid for that value only.
"""

import math
import operator

cimport cython

from anabranch._memory.array cimport Array


@cython.final
cdef class TracedScalar:
    @property
    def __class__(self):
        return type(self.concretize())

    cdef object of(self, tuple args):
        if self.fn is None:
            return args[self.position]
        values = [(<TracedScalar>each).of(args) if type(each) is TracedScalar else each for each in self.operands]
        return self.fn(*values)

    cdef object concretize(self):
        # Marks every argument that the value is computed from.
        if self.fn is None:
            self.looked.add(self.position)
        else:
            for each in self.operands:
                if type(each) is TracedScalar:
                    (<TracedScalar>each).concretize()
        return self.value

    def __bool__(self):
        return bool(self.concretize())

    def __int__(self):
        return int(self.concretize())

    def __index__(self):
        return operator.index(self.concretize())

    def __float__(self):
        return float(self.concretize())

    def __complex__(self):
        return complex(self.concretize())

    def __hash__(self):
        return hash(self.concretize())

    def __str__(self):
        return str(self.concretize())

    def __repr__(self):
        return repr(self.concretize())

    def __format__(self, spec):
        return format(self.concretize(), spec)

    def __round__(self, digits=None):
        return round(self.concretize()) if digits is None else round(self.concretize(), digits)

    def __trunc__(self):
        return int(self.concretize())

    def __eq__(self, other):
        if type(other) is Array:
            return NotImplemented
        return self.concretize() == _value(other)

    def __ne__(self, other):
        if type(other) is Array:
            return NotImplemented
        return self.concretize() != _value(other)

    def __lt__(self, other):
        if type(other) is Array:
            return NotImplemented
        return self.concretize() < _value(other)

    def __le__(self, other):
        if type(other) is Array:
            return NotImplemented
        return self.concretize() <= _value(other)

    def __gt__(self, other):
        if type(other) is Array:
            return NotImplemented
        return self.concretize() > _value(other)

    def __ge__(self, other):
        if type(other) is Array:
            return NotImplemented
        return self.concretize() >= _value(other)

    def __neg__(self):
        return _computed(operator.neg, self)

    def __pos__(self):
        return _computed(operator.pos, self)

    def __abs__(self):
        return _computed(operator.abs, self)

    def __invert__(self):
        return _computed(operator.invert, self)

    def __add__(self, other):
        return _computed(operator.add, self, other)

    def __radd__(self, other):
        return _computed(operator.add, other, self)

    def __sub__(self, other):
        return _computed(operator.sub, self, other)

    def __rsub__(self, other):
        return _computed(operator.sub, other, self)

    def __mul__(self, other):
        return _computed(operator.mul, self, other)

    def __rmul__(self, other):
        return _computed(operator.mul, other, self)

    def __truediv__(self, other):
        return _computed(operator.truediv, self, other)

    def __rtruediv__(self, other):
        return _computed(operator.truediv, other, self)

    def __floordiv__(self, other):
        return _computed(operator.floordiv, self, other)

    def __rfloordiv__(self, other):
        return _computed(operator.floordiv, other, self)

    def __mod__(self, other):
        return _computed(operator.mod, self, other)

    def __rmod__(self, other):
        return _computed(operator.mod, other, self)

    def __and__(self, other):
        return _computed(operator.and_, self, other)

    def __rand__(self, other):
        return _computed(operator.and_, other, self)

    def __or__(self, other):
        return _computed(operator.or_, self, other)

    def __ror__(self, other):
        return _computed(operator.or_, other, self)

    def __xor__(self, other):
        return _computed(operator.xor, self, other)

    def __rxor__(self, other):
        return _computed(operator.xor, other, self)

    def __lshift__(self, other):
        return _computed(operator.lshift, self, other)

    def __rlshift__(self, other):
        return _computed(operator.lshift, other, self)

    def __rshift__(self, other):
        return _computed(operator.rshift, self, other)

    def __rrshift__(self, other):
        return _computed(operator.rshift, other, self)

    def __divmod__(self, other):
        return divmod(self.concretize(), _value(other))

    def __rdivmod__(self, other):
        return divmod(_value(other), self.concretize())

    def __floor__(self):
        return math.floor(self.concretize())

    def __ceil__(self):
        return math.ceil(self.concretize())

    def __pow__(self, other, modulus):
        if modulus is None:
            return _computed(pow, self, other)
        return pow(self.concretize(), _value(other), _value(modulus))

    def __rpow__(self, other, modulus):
        return _computed(pow, other, self)

    def __array_ufunc__(self, ufunc, method, *operands, **options):
        # NumPy computes with the value once, including its arrays' operators.
        options = {name: _value(each) for name, each in options.items()}
        return getattr(ufunc, method)(*[_value(each) for each in operands], **options)

    def __array__(self, dtype=None, copy=None):
        import numpy

        return numpy.array(self.concretize(), dtype)

    def __getattr__(self, name):
        # A method or attribute of the number, such as `real` or `dtype`.
        return getattr(self.concretize(), name)


cdef object _value(object other):
    return (<TracedScalar>other).concretize() if type(other) is TracedScalar else other


cdef object _computed(object fn, object first, object second=None):
    if type(first) is Array or type(second) is Array:
        return NotImplemented  # the array's own operator takes the number as an argument of its kernel
    operands = (first,) if second is None else (first, second)
    for each in operands:
        if type(each) is not TracedScalar and type(each) not in (int, float, complex, bool):
            # NumPy arrays and the like receive the value itself.
            return fn(*[_value(each) for each in operands])
    cdef TracedScalar made = TracedScalar.__new__(TracedScalar)
    made.value = fn(*[(<TracedScalar>each).value if type(each) is TracedScalar else each for each in operands])
    made.fn = fn
    made.operands = operands
    made.position = -1
    return made


cdef TracedScalar scalar_argument(object value, int position, set looked):
    cdef TracedScalar made = TracedScalar.__new__(TracedScalar)
    made.value = value
    made.position = position
    made.looked = looked
    return made


cdef tuple marks_of(tuple args):
    marks = []
    slot = 0
    for position, each in enumerate(args):
        if type(each) is Array:
            if (<Array>each).storage.get().original().get() != NULL:
                marks.append((position, slot, each))
            slot += 1 + 2 * (<Array>each).layout.ndim
            continue
        if type(each) is TracedScalar:
            marks.append((position, slot, each))
            each = (<TracedScalar>each).value
        slot += 2 if isinstance(each, complex) or getattr(getattr(each, "dtype", None), "kind", "") == "c" else 1
    return tuple(marks)
