"""Memory in use by other libraries, whose operations on our streams the core does not see."""

cimport cython

from anabranch._core.core cimport CStream, HazardMode, Ref, Site
from anabranch._stream.stream cimport Stream
from anabranch._task.context cimport TaskState, current_state
from anabranch._task.site cimport current_site


@cython.final
cdef class ExternalUse:
    """Count arrays that are exported to a stream, or imported on it, as in use there until `end`.

    Meanwhile a conflicting operation finds an access at the stream's newest point; the end records an access too.
    """
    def __init__(self, Stream stream not None):
        self.core = CExternalUse.open(Ref[CStream].share(stream.get()))

    def end(self):
        """End the use. Only the first call has an effect."""
        cdef TaskState state = current_state()
        cdef Site site
        if state.mode == <int>HazardMode.check:
            site = current_site()
        self.core.get().close(<HazardMode>state.mode, site)
