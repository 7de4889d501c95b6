from libc.stdint cimport int64_t

from anabranch._core.core cimport Layout, max_dimensions
from anabranch._memory.array cimport Array

cdef enum:
    most_operands = 4
    most_axes = 4       # of a launch


# The axes over which an operation runs, and the strides of its operands along them, in bytes; 0 where an operand is
# broadcast.
cdef struct Axes:
    int ndim
    int operands
    int64_t[max_dimensions] shape
    (int64_t[max_dimensions])[most_operands] strides


# Where a kernel finds an operand's element; these are the names in `kernels`.
cdef enum Place:
    scalar_place
    one_place
    all_place
    outer_place     # beyond it, the number of axes: outer_place + 2 for a launch of two axes

# Adds an operand. Raises ValueError if the shapes cannot be broadcast together.
cdef int add_operand(Axes* axes, const Layout& layout) except -1
# The sizes of the axes, as a tuple.
cdef tuple shape_of(const Axes* axes)
# Removes axes of one element, and joins those that are one axis in every operand.
cdef int merge_axes(Axes* axes) noexcept
cdef int place_of(const Axes* axes, int operand) noexcept
# A view of an operand for that place, which stays open.
cdef Array operand_view(const Axes* axes, Array array, int operand, int place)
# A view with the given axes in place of the array's own.
cdef Array view_over(Array array, int ndim, const int64_t* shape, const int64_t* strides)
# A view of all the elements of a contiguous array in one dimension.
cdef Array flat_view(Array array)
# What a launch over the axes takes for its dimensions.
cdef object launch_dim(const Axes* axes)
