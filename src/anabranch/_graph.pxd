cimport cython
from libcpp.vector cimport vector

from anabranch._context cimport TaskState
from anabranch._core cimport CStream, Ref, Touch, forked
from anabranch._core_graph cimport CGraph, GraphAccesses, GraphInstance, Works
from anabranch._device cimport DeviceBase


cdef class Node:
    cdef readonly str kind
    cdef readonly str name
    cdef readonly int index
    cdef readonly DeviceBase device
    cdef object origin              # the kernel, function or graph, or the bodies of a branch or loop


# What a graph is until it becomes another. Nothing of it changes, so who launches it needs but a reference.
cdef class Recorded:
    cdef Ref[GraphInstance] core
    cdef Ref[CGraph] graph
    cdef GraphAccesses accesses
    cdef vector[Touch] touches      # the same, as those of one operation
    cdef list devices
    cdef list functions             # the host functions that its replays call
    cdef list _nodes                # once somebody has asked
    cdef list _edges

    cdef list nodes(self)
    cdef list edges(self)


cdef class Graph:
    cdef Recorded recorded          # None: it cannot be launched
    cdef readonly DeviceBase device
    cdef str state                  # why it cannot be launched, or None
    cdef object changing            # the lock of those who change it
    cdef object __weakref__

    # Raises ClosedError, ForkError, CaptureError.
    cdef inline int check(self) except -1:
        return self.refuse() if self.recorded is None or forked() else 0

    # What it is now, which another thread may replace. Raises likewise.
    cdef inline Recorded now(self):
        cdef Recorded recorded
        with cython.critical_section(self):
            recorded = self.recorded
        if recorded is None or forked():
            self.refuse()
        return recorded

    cdef int refuse(self) except -1
    cdef int fill(self, const Ref[CGraph]& graph, const Ref[Works]& works, const GraphAccesses& accesses) except -1
    cdef int enqueue(self, TaskState state, CStream* queue) except -1


# The host functions that replays of a graph may call.
cdef list functions_of(const CGraph& graph)
