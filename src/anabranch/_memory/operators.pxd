cdef class Operators:
    """The operators of arrays, which a folder above this one provides; see `Array`."""
    cdef object binary(self, int operation, object left, object right)
    cdef object in_place(self, int operation, object array, object other)
    cdef object unary(self, int operation, object array)
    # `other`: a result or a dtype that was asked for, which is refused.
    cdef object reduce(
        self, int reduction, object array, object axis, bint keepdims, object stream, object other)


# Positions in the names of `anabranch._math.operator_names` and `anabranch._math.reduction_names`. The first six are
# Python's for comparisons.
cdef enum:
    equal_operator = 2
    add_operator = 6
    subtract_operator
    multiply_operator
    true_divide_operator
    floor_divide_operator
    remainder_operator
    power_operator
    and_operator
    or_operator
    xor_operator
    negative_operator
    positive_operator
    absolute_operator
    invert_operator
    square_operator
    root_operator
    reciprocal_operator

cdef enum:
    sum_reduction
    product_reduction
    least_reduction
    greatest_reduction
    mean_reduction
    any_reduction
    all_reduction
    least_position_reduction
    greatest_position_reduction

cdef int provide_operators(Operators provided) except -1
cdef inline Operators operators():
    return _operators

cdef Operators _operators
