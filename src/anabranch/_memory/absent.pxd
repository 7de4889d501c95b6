# Has a class say what stands for names that it lacks. A __getattr__ would slow down every other attribute, which the
# interpreter then no longer specializes.
cdef int add_absent(type cls) except -1
