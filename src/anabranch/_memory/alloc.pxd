from libc.stdint cimport int64_t

from anabranch._core.core cimport Layout, MemoryKind
from anabranch._device.device cimport DeviceBase
from anabranch._memory.array cimport Array
from anabranch._memory.dtype cimport ElementType
from anabranch._stream.stream cimport Stream


# The layout for a shape as the user gave it. Raises TypeError or ValueError.
cdef Layout layout_of(object shape, int64_t itemsize) except *
# The layout of external memory, with strides in bytes or None.
cdef Layout layout_of_others(object shape, object strides, int64_t itemsize) except *
# A new array; without a stream, its memory may be used at once everywhere.
cdef Array new_array(DeviceBase device, const Layout& layout, ElementType dtype, Stream stream, MemoryKind kind)
# An array over memory of `owner`, which stays alive until the last use is completed. `whole`: all of the owner's bytes,
# if known and more than the array's.
cdef Array adopt_array(
    DeviceBase device, Layout layout, object dtype, char* data, bint read_only, object owner, char* whole, size_t bytes)
