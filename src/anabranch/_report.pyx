"""Races as errors."""

from anabranch import _race

from anabranch._core cimport Access, CStream, Ref, Site
from anabranch._device cimport device_of
from anabranch._hazard cimport Found
from anabranch._stream cimport Stream

from anabranch._hazard import codes


cdef object _place(const Site& site):
    code = codes.get(site.code)
    return (None, None) if code is None else _race.place(code, site.instruction)


cdef Stream _stream_object(const Ref[CStream]& record):
    cdef Stream stream
    if record.get() == NULL:
        return None
    stream = Stream.__new__(Stream)
    stream.record = record
    stream.device = device_of(&record.get().backend())
    stream.key = record.get().handle()
    stream._name = record.get().name().decode() or None
    return stream


cdef object _side(const Site& site, const Ref[CStream]& stream, Access access):
    file, line = _place(site)
    return _race.Side(file, line, _stream_object(stream), access != Access.read, access != Access.write)


def report(found, races):
    """Raise the first of the races that were found, or add them all to `races`."""
    cdef Found each
    errors = []
    for each in found:
        errors.append(_race.error(
            _side(each.first.site, each.first.stream, each.first.access),
            _side(each.site, each.stream, each.access),
            (_place(each.allocated), each.size, (each.low, each.high)), each.open))
    # An access that both reads and writes is told by the first kind that holds.
    errors.sort(key=lambda error: _race.kinds.index(error.kind))
    if races is None:
        raise errors[0]
    _race.collect(races, errors)
