"""The result of a captured function, rebuilt for the arguments of later calls."""

import functools
import operator

from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from anabranch._core.core cimport CStream, Ref, Storage
from anabranch._memory.array cimport Array
from anabranch._memory.traced_scalar cimport TracedScalar
from anabranch._stream.host_node cimport read_graphed_arguments_with

from anabranch._core.errors import CaptureError

cdef tuple _constants = (int, float, complex, bool, str, bytes)

cdef enum:
    # Of tuples, lists and dictionaries within each other. One that contains itself has more.
    most_levels = 64


cdef Array stand_in(Array array, Ref[Storage] storage):
    cdef Array made = Array.__new__(Array)
    made.storage = storage
    made._device = array._device
    made.layout = array.layout
    made.data = array.data
    made._dtype = array._dtype
    made.code = array.code
    made.contiguous = array.contiguous
    made._read_only = array._read_only
    made._open = True
    return made


cdef int argument_of(Storage* storage, const vector[Ref[Storage]]& aliases) noexcept:
    cdef size_t i
    for i in range(aliases.size()):
        if aliases[i].get() == storage:
            return i
    return -1


cdef object result_of(
        object result, list stand_ins, const vector[Ref[Storage]]& aliases, const vector[char*]& firsts,
        const vector[int]& positions, int level=0):
    # A function of a call's arguments that returns what the captured call did; None if that is None. It must not keep
    # the arguments of the captured one.
    cdef int argument
    cdef Array view
    if result is None:
        return None
    if type(result) is TracedScalar:
        return functools.partial(_scalar_of, result)
    if type(result) is tuple or type(result) is list or type(result) is dict:
        if level == most_levels:
            raise CaptureError("it returns a tuple, list or dictionary that is nested too deeply, or contains itself")
        parts = [result_of(each, stand_ins, aliases, firsts, positions, level + 1) for each in result]
        if type(result) is not dict:
            return functools.partial(_sequence_of, type(result), parts)
        values = [result_of(each, stand_ins, aliases, firsts, positions, level + 1) for each in result.values()]
        return functools.partial(_mapping_of, parts, values)
    for i, each in enumerate(stand_ins):
        if each is result:
            return operator.itemgetter(i)
    if type(result) is Array:
        argument = argument_of((<Array>result).storage.get(), aliases)
        if argument >= 0:
            view = stand_in(<Array>result, aliases[argument])
            view.let_go()
            return functools.partial(
                _view_of, view, positions[argument], (<Array>result).data - firsts[argument])
        return functools.partial(_array_of, result, stand_in(<Array>result, (<Array>result).storage))
    elif type(result) not in _constants:
        raise CaptureError(f"it returns a {type(result).__name__}, in which arguments of the call are not found again")
    return functools.partial(_constant_of, result)


def _constant_of(value, args):
    return value


def _array_of(Array result, Array kept, args):
    # The program may close what it was given. The graph keeps the memory in any case.
    return result if result._open else stand_in(kept, kept.storage)


def _scalar_of(TracedScalar scalar, args):
    return scalar.of(args)


def _sequence_of(kind, parts, args):
    return kind([None if part is None else part(args) for part in parts])


def _mapping_of(keys, values, args):
    return dict(zip(_sequence_of(list, keys, args), _sequence_of(list, values, args), strict=True))


def _view_of(Array like, position, offset, args):
    cdef Array array = args[position]
    cdef Array view = stand_in(like, array.storage)
    view.data = array.data + <int64_t>offset
    return view


cdef object _host_argument(CStream* stream, object argument):
    # In a graphed call, a traced number becomes its value; an array cannot be exchanged by later calls.
    if type(argument) is TracedScalar:
        return (<TracedScalar>argument).concretize()
    if type(argument) is Array and (<Array>argument).storage.get().original().get() != NULL:
        stream.capture().refuse(b"a host function has an array of the call, which later calls could not exchange")
    return argument


read_graphed_arguments_with(_host_argument)
