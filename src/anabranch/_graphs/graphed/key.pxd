from libc.string cimport memcmp

from anabranch._core.small_vector cimport Text
from anabranch._task.context cimport TaskState


# The code of a number's type; 0: it is not a number.
cdef int kind_of_number(object value) except -1

# Appends the properties that distinguish captures to the key. Returns those without a text. Raises TypeError for what
# has no hash, and ClosedError.
cdef tuple describe(Text* key, TaskState state, tuple args)


cdef inline bint is_key(bytes known, Text* text) noexcept:
    return <size_t>len(known) == text.size() and memcmp(<const char*>known, text.data(), text.size()) == 0
