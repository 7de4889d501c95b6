"""The progress thread, which drives the collectives over MPI, and the transport that it calls."""

cimport cython
from libc.stdint cimport uintptr_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from anabranch._core.core cimport now_nanoseconds
from anabranch._task.site cimport current_site, place_of


def now():
    """Return the time of traces, in nanoseconds of this machine's clock."""
    return now_nanoseconds()


def current_place():
    """Return file and line of the program that is running."""
    return place_of(current_site())


def descriptor():
    """Return a file descriptor that is readable while there are failures to be taken."""
    return Progress.instance().descriptor()


def take_failures():
    """Return what went wrong: channels, as `MpiEngine.has_channel` takes them, numbers, whether late, and texts."""
    cdef vector[ChannelFailure] found = Progress.instance().take_failures()
    return [
        (<uintptr_t>found[i].channel.get(), found[i].collective.number, found[i].late,
         found[i].text.decode(errors="replace"))
        for i in range(found.size())
    ]


def in_flight():
    """Return how many operations have started and not completed."""
    return Progress.instance().in_flight()


def stop():
    """End the progress thread. Returns whether nothing was in flight."""
    cdef cbool idle
    with nogil:
        idle = Progress.instance().stop()
    return idle


@cython.final
cdef class Transport:
    """Functions of the MPI library, by address: those that start collectives in the order of `VERBS`."""

    def __init__(self, start, test, get_count, error_string, comm_free, in_place, bint large_counts):
        cdef MpiFunctions functions
        cdef int verb
        for verb, address in enumerate(start):
            functions.start[verb] = <void*><uintptr_t>address
        functions.test = <void*><uintptr_t>test
        functions.get_count = <void*><uintptr_t>get_count
        functions.large_counts = large_counts
        functions.error_string = <void*><uintptr_t>error_string
        functions.comm_free = <void*><uintptr_t>comm_free
        functions.in_place = <void*><uintptr_t>in_place
        self.core = make_mpi_transport(functions)
