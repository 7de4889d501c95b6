"""What is queued on a stream, for its text in notebooks."""

from cython.operator cimport dereference as deref
from libcpp.vector cimport vector

from anabranch._core.core cimport CStream, Point, TracedOperation, traced_after
from anabranch._core.tracing cimport name_of
from anabranch._stream.stream cimport Stream


def queued(Stream stream not None):
    """Return how many operations have not completed, on a GPU at most so many, and the names that are known of them.

    A trace that is on knows the names of what was enqueued since it began. Waits for nothing.

    Raises
    ------
    KernelError
        One of them has failed.
    """
    cdef CStream* queue = stream.get()
    cdef Point over = 0
    cdef Point last = queue.issued()
    cdef Point issued = last
    cdef Point middle
    while over < last:  # the newest completed point is between the two
        middle = over + (last - over + 1) // 2
        if queue.backend().query(deref(queue), middle):
            over = middle
        else:
            last = middle - 1
    return issued - over, _names(traced_after(deref(queue), over))


cdef list _names(const vector[TracedOperation]& traced):
    cdef size_t i
    return ["added wait" if traced[i].added else name_of(traced[i]) for i in range(traced.size())]
