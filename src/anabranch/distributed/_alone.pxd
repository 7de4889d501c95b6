from anabranch._stream.stream cimport Stream

# Enqueues calls of a communicator of one rank as what an exploration can choose. Raises what copies and host functions
# do.
cdef int explore_alone(list calls, Stream stream) except -1
