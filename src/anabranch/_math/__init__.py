"""Element-wise arithmetic and reductions of arrays, and arrays of sequences."""
