"""Asynchronous copies of arrays to the host, for event loops."""

cimport cython
from cpython.ref cimport Py_INCREF
from cython.operator cimport dereference as deref
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._stream import awaitable

from anabranch._core cimport core
from anabranch._core.core cimport Access as MemoryAccess
from anabranch._core.core cimport (
    ByteRange, CBackend, CStream, Elements, HazardMode, Moment, Record, Ref, Site, Storage, StreamOptions, Touch, Use,
    discard_reference, find_device,
)
from anabranch._core.explore cimport TouchSpan, expect, exploring, pass_views
from anabranch._hazards.ordering cimport begin_operation, follow_use, refuse_captured, refuse_open, uses_before_host
from anabranch._memory.array cimport Array, as_array
from anabranch._memory.slice cimport whole_of
from anabranch._memory.staging cimport enqueue_download
from anabranch._stream.host_threads cimport ensure_host_thread, notification
from anabranch._task.context cimport TaskState, current_state


@cython.final
cdef class Readback:
    """A pending copy to the host. Each await returns the same `numpy.ndarray`."""

    cdef object result
    cdef list notifications

    def __await__(self):
        core.check_fork()
        return awaitable.until(self.notifications, self.result)

    def __reduce__(self):
        raise TypeError(f"{self!r} lives in this process; send the array that awaiting it returns")

    def __repr__(self):
        return f"<Readback of shape {self.result.shape} {self.result.dtype}>"


def to_host(array):
    """Copy an array to the host without blocking: the call enqueues the copy, and awaiting the result waits for it.

    The elements are those at the time of the call: later writes, in any stream, wait for the copy, except under
    ``ab.hazards("off")``. The copy waits for exactly the work that the array depends on, and no stream of the program
    waits for the copy, as with `Array.numpy`. The array may be closed or dropped at once.

    Cancelling the await does not cancel the copy. Any thread may call this. Several tasks, also of different event
    loops, may await the result: they get the same `numpy.ndarray`.

    Parameters
    ----------
    array : Array

    Returns
    -------
    awaitable of numpy.ndarray
        Under asyncio, and under trio. Awaiting it raises the `KernelError` of work that failed.

    Raises
    ------
    CaptureError
        If captured work writes to the array: the graph has to be launched first.

    Examples
    --------
    >>> import asyncio
    >>> import anabranch as ab
    >>> async def main():
    ...     x = ab.full(3, 2.0)
    ...     y = ab.to_host(x)
    ...     ab.fill(x, 0)
    ...     return await y
    >>> asyncio.run(main())
    array([2., 2., 2.])
    """
    import numpy

    # Creating Python objects below may run finalizers, which may close the array.
    cdef Array source = whole_of(as_array(array, "array"))
    cdef TaskState state = current_state()
    cdef Touch touch = source.touch(MemoryAccess.read)
    refuse_captured(state, touch.storage)
    refuse_open(state, touch)
    cdef Readback readback = Readback.__new__(Readback)
    readback.result = numpy.empty(source.shape, source._dtype)
    readback.notifications = []
    if source.layout.size() != 0:
        readback.notifications.append(notification(_enqueue(state, source, touch, readback.result)))
    return readback


cdef Record _enqueue(TaskState state, Array source, const Touch& touch, object result) except *:
    cdef string first = b"cpu:0"
    cdef CBackend* host = &find_device(first)
    cdef vector[Use] uses = uses_before_host(state, touch)
    cdef Ref[CStream] reader = source.reader(uses)
    # The stream of the copy's host part.
    cdef Ref[CStream] last = reader
    cdef Elements dst = source.elements_of(result)
    cdef Moment moment
    cdef const Moment* when = NULL
    cdef Site site
    cdef Record record
    cdef size_t i
    cdef Ref[Storage] target = _keep(deref(host), dst, result)
    cdef ByteRange all
    all.low = 0
    all.high = target.get().bytes()
    begin_operation(deref(reader.get()), deref(state.task.core.get()))
    for i in range(uses.size()):
        follow_use(deref(reader.get()), uses[i])
    moment = reader.get().lane().advance(reader.get().lane().snapshot())
    if state.mode != <int>HazardMode.off:
        when = &moment
    try:
        if source._device.backend.capabilities().host_memory:
            if exploring():
                expect(deref(reader.get()), TouchSpan(&touch, 1))
            record.point = reader.get().backend().copy(
                deref(reader.get()), dst, source.elements(0), source.layout.size())
        else:
            last = host.create_stream(StreamOptions())
            record.point = enqueue_download(
                reader.get(), last.get(), dst, source.elements(0), source.layout.size())
    finally:
        # A silent access: no other stream can wait for this private one except through hazards.
        source.storage.get().accesses().note(
            deref(reader.get()), reader.get().issued(), MemoryAccess.read, touch.footprint(), when, site,
            state.mode == <int>HazardMode.check, True)
        target.get().accesses().note(deref(last.get()), last.get().issued(), MemoryAccess.write, all)
    if exploring():
        with nogil:
            pass_views(deref(reader.get()))
    record.stream = last
    record.past = reader.get().lane().past()
    return record


# Keeps a NumPy array alive while a stream uses its memory.
cdef Ref[Storage] _keep(CBackend& host, const Elements& elements, object array) except *:
    ensure_host_thread()
    Py_INCREF(array)
    return Storage.adopt(host, <void*>elements.pointer, array.nbytes, False, <void*>array, discard_reference)
