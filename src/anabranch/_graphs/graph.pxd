cimport cython
from anabranch._core.core cimport CStream, Ref, forked
from anabranch._core.graph cimport CGraph, GraphAccesses, Works
from anabranch._device.device cimport DeviceBase
from anabranch._graphs.nodes cimport Recorded
from anabranch._task.context cimport TaskState


cdef class Graph:
    cdef Recorded recorded          # None: it cannot be launched
    cdef DeviceBase _device
    cdef str state                  # why it cannot be launched, or None
    cdef object changing            # the lock of those who change it
    cdef object __weakref__

    # Raises ClosedError, ForkError, CaptureError.
    cdef inline int check(self) except -1:
        return self.refuse() if self.recorded is None or forked() else 0

    # The current recording, which another thread may replace. Raises as `check` does.
    cdef inline Recorded now(self):
        cdef Recorded recorded
        with cython.critical_section(self):
            recorded = self.recorded
        if recorded is None or forked():
            self.refuse()
        return recorded

    # The same, with the current works of its nodes.
    cdef Recorded now_with(self, Ref[Works]* works)
    cdef int refuse(self) except -1
    # Stores the outcome of a capture: a graph, or a failure. Does nothing once the graph is closed.
    cdef int fill(self, const Ref[CGraph]& graph, const Ref[Works]& works, const GraphAccesses& accesses) except -1
    cdef int fail(self, str state) except -1
    cdef int enqueue(self, TaskState state, CStream* queue) except -1
