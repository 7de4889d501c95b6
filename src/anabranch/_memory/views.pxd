from anabranch._core.core cimport Layout
from anabranch._memory.array cimport Array

# Views of the same elements. `axes` and `axis`: what the user gave. Raise TypeError and ValueError.
cdef Array transposed(Array array, tuple axes)
cdef Array reshaped(Array array, tuple shape)
cdef Array squeezed(Array array, object axis)
# The same bytes as elements of another dtype.
cdef Array retyped(Array array, object dtype)
# As many dimensions and elements as `like` has, repeated as NumPy broadcasts them.
cdef Array broadcast(Array array, const Layout& like)
