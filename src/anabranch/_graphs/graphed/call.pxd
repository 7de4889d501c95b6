from libcpp.vector cimport vector
from libc.stdint cimport int64_t

from anabranch._core.core cimport Access, Ref, Storage
from anabranch._core.graph cimport GraphInstance
from anabranch._device.device cimport DeviceBase
from anabranch._graphs.graphed.patches cimport Patches
from anabranch._launch.constants cimport Constants
from anabranch._task.context cimport TaskState


cdef struct AccessOfCall:
    int argument        # of which argument's memory, or -1
    Storage* storage    # else what
    int64_t low         # from the argument's first element, or in the storage
    int64_t high
    Access access


cdef class CapturedCall:
    """A function as it was captured for arguments of a kind."""
    cdef Ref[GraphInstance] core
    cdef Ref[Patches] patches
    cdef DeviceBase device
    cdef vector[int] arguments          # the position of the first array of each block of memory
    cdef vector[AccessOfCall] accesses
    cdef vector[Ref[Storage]] kept
    cdef list numbers                   # for each number that a node is given: scalar, kernel, parameter, what it was
    cdef size_t words
    cdef dict packed                    # the place and size of each of those
    cdef list functions
    cdef object result                  # a function of the arguments, or None
    cdef set looked
    cdef Constants outside              # what the function has read that is no argument, or None


# Captures what the function puts into the current stream. `numbers`: the positions of arguments that are numbers.
# Raises CaptureError, and what the function raises.
cdef CapturedCall capture_call(object fn, tuple args, tuple names, tuple numbers)
# Launches it for the arguments of a call: whether that could be done, and what the function returned. None in place of
# whether, if the function has to be called as it is, and why, if that is worth a warning.
cdef tuple replay_call(CapturedCall call, TaskState state, tuple args)
