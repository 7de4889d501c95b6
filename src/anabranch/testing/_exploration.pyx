"""Runs of a program under chosen schedules, as the core makes them."""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from anabranch._core.core cimport (
    Failure, Ref, Site, host_function_stream, nanoseconds, raise_unnoted, translate)
from anabranch._task.site cimport place_of

from anabranch._core.errors import Error

cdef extern from "anabranch/explore/explore.hpp" namespace "anabranch::explore" nogil:
    cdef cppclass Happened:
        uint32_t process
        uint32_t index
        string lane
        string what
        Site site
        vector[size_t] reversible
    cdef cppclass Stuck:
        string lane
        string what
        string waits_for
        Site site
    cdef cppclass Outcome:
        cbool fresh
        string schedule
        vector[Happened] events
        string diverged
        Ref[Failure] failure
        string failed_at
        string violation
        Site violated_at
        vector[Stuck] deadlock
        cbool uncontrolled
    cdef cppclass CExploration "anabranch::explore::Exploration":
        @staticmethod
        unique_ptr[CExploration] of_classes() except +translate
        @staticmethod
        unique_ptr[CExploration] at_random(uint64_t, uint64_t) except +translate
        @staticmethod
        unique_ptr[CExploration] of_schedule(const string&) except +translate
        cbool more()
        void begin() except +translate
        cbool drain(nanoseconds, cbool) except +translate
        Outcome end(cbool) except +translate
        size_t events()
        double bound()

# The interval at which a wait handles signals.
cdef int64_t signal_interval_ns = 20_000_000


cdef str _text(const string& text):
    return text.decode("utf-8", "replace")


@cython.final
cdef class Ended:
    """What is known of a run that is over."""
    cdef readonly bint fresh
    cdef readonly bint uncontrolled
    cdef readonly str schedule
    cdef readonly str diverged
    cdef readonly str failed_at
    cdef readonly object failure
    cdef readonly list events
    cdef readonly list deadlock
    cdef readonly str violation
    cdef readonly tuple violated_at


@cython.final
cdef class Exploration:
    """Runs under one schedule after another: ``begin``, the program, ``drain``, ``end``, while there is ``more``.

    Parameters
    ----------
    schedules : str or int
        As of `explore`.
    seed : int
    """

    cdef unique_ptr[CExploration] core

    def __cinit__(self, schedules, seed):
        cdef string text
        if isinstance(schedules, int):
            self.core = CExploration.at_random(<uint64_t>schedules, <uint64_t>(seed & 0xFFFFFFFFFFFFFFFF))
        elif schedules == "dpor":
            self.core = CExploration.of_classes()
        else:
            text = schedules.encode("utf-8", "surrogatepass")
            self.core = CExploration.of_schedule(text)

    @property
    def more(self):
        """Whether there is another run."""
        return self.core.get().more()

    @property
    def bound(self):
        """The least probability with which a run at random finds a bug of depth 3."""
        return self.core.get().bound()

    @property
    def operations(self):
        """How many events the newest run has had."""
        return self.core.get().events()

    def begin(self):
        """Begin a run with this thread as the host. Raises Error in a host function, whose stream it would wait for."""
        if host_function_stream() != NULL:
            raise Error("explore waits for all streams, so it cannot be called in a host function of one")
        with nogil:
            self.core.get().begin()

    def drain(self, bint give_up):
        """Run what the program has left in its streams. Ctrl-C interrupts it."""
        cdef bint over = False
        while not over:
            with nogil:
                over = self.core.get().drain(nanoseconds(signal_interval_ns), give_up)
            if not over:
                PyErr_CheckSignals()

    def end(self, bint details):
        """End the run and return what is known of it."""
        cdef Outcome outcome = self.core.get().end(details)
        cdef Ended ended = Ended.__new__(Ended)
        cdef size_t i
        ended.fresh = outcome.fresh
        ended.uncontrolled = outcome.uncontrolled
        ended.schedule = _text(outcome.schedule)
        ended.diverged = _text(outcome.diverged)
        ended.failed_at = _text(outcome.failed_at)
        ended.violation = _text(outcome.violation)
        ended.violated_at = place_of(outcome.violated_at)
        ended.events = []
        ended.deadlock = []
        if outcome.failure.get() != NULL:
            try:
                raise_unnoted(deref(outcome.failure.get()))
            except Exception as error:
                ended.failure = error
        for i in range(outcome.events.size()):
            ended.events.append((
                (outcome.events[i].process, outcome.events[i].index), _text(outcome.events[i].lane),
                _text(outcome.events[i].what), place_of(outcome.events[i].site), outcome.events[i].reversible))
        for i in range(outcome.deadlock.size()):
            ended.deadlock.append((
                _text(outcome.deadlock[i].lane), _text(outcome.deadlock[i].what),
                _text(outcome.deadlock[i].waits_for), place_of(outcome.deadlock[i].site)))
        return ended
