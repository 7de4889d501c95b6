from anabranch._core.core cimport Site

# The site in the innermost function outside this package.
cdef Site current_site() except *

# File and line of a site; (None, None) for an unknown one.
cdef tuple place_of(const Site& site)
