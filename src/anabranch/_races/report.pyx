"""Conversion of races to errors."""

from anabranch._races import race

from anabranch._core.core cimport Access, CStream, Ref, Site, StreamRole
from anabranch._hazards.ordering cimport Found
from anabranch._stream.current cimport stream_of_record
from anabranch._task.site cimport place_of


cdef object _side(const Site& site, const Ref[CStream]& stream, Access access):
    file, line = place_of(site)
    return race.Side(file, line, stream_of_record(stream), access != Access.read, access != Access.write)


cdef bint _is_elsewhere(const Ref[CStream]& stream) except -1:
    # Whether it is another thread's per-thread stream, which this thread cannot name.
    if stream.get() == NULL or stream.get().role() != StreamRole.per_thread:
        return False
    return stream.get() != stream.get().backend().default_stream(StreamRole.per_thread).get()


def report(found, races):
    """Raise the first of the races found, or add all of them to `races`."""
    cdef Found each
    errors = []
    for each in found:
        errors.append(race.error(
            _side(each.first.site, each.first.stream, each.first.access),
            _side(each.site, each.stream, each.access),
            (place_of(each.allocated), each.size, (each.low, each.high)), each.open, each.returned,
            _is_elsewhere(each.first.stream)))
    # An access that both reads and writes is reported as the first kind that applies.
    errors.sort(key=lambda error: race.kinds.index(error.kind))
    if races is None:
        raise errors[0]
    race.collect(races, errors)
