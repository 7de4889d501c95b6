"""What is queued on a stream, for its text in notebooks."""

from cython.operator cimport dereference as deref

from anabranch._core.core cimport CStream, Point
from anabranch._stream.stream cimport Stream


def queued(Stream stream not None):
    """Return how many operations have not completed; on a GPU at most so many. Waits for nothing.

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
    return issued - over
