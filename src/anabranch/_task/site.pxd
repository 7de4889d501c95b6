from anabranch._core.core cimport Site

# Where the program is: in the innermost function that is not this package's own.
cdef Site current_site() except *

# The file and line of a site; None and None of one that is not known.
cdef tuple place_of(const Site& site)
