"""Memory in use by other libraries, whose operations on our streams we do not see."""

cimport cython

from anabranch._core.core cimport CStream, HazardMode, Ref, Site
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState, current_state
from anabranch._task.site cimport current_site


@cython.final
cdef class ExternalUse:
    """From now until `end`, arrays that are exported to a stream, or imported on it, count as in use there.

    Whoever looks for order with them meanwhile finds an access by what the stream has got by then; the end is one, too.
    """
    def __init__(self, Stream stream not None):
        self.core = CLoan.open(Ref[CStream].share(stream.get()))

    def end(self):
        """End it, at the first call."""
        cdef TaskState state = current_state()
        cdef Site site
        if state.mode == <int>HazardMode.check:
            site = current_site()
        self.core.get().close(<HazardMode>state.mode, site)
