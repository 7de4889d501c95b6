"""The extent of a launch: blocks, or an index space."""

from cpython.bool cimport PyBool_Check
from cpython.long cimport PyLong_Check

from anabranch._core.core cimport LaunchShape


cdef class LaunchConfig:
    """LaunchConfig(grid, block, shared_memory=0, cluster=None, cooperative=False)\n--\n
    How many blocks of how many threads a launch runs. Immutable.

    Parameters
    ----------
    grid : int or tuple of int
        Blocks, in up to 3 dimensions.
    block : int or tuple of int
        Threads per block, in up to 3 dimensions, at most 1024 in all.
    shared_memory : int
        Bytes of dynamic shared memory per block.
    cluster : int or tuple of int, optional
        Blocks per cluster, in up to 3 dimensions; the grid is a multiple of it.
    cooperative : bool
        Whether all blocks run at the same time, so that they may wait for each other.

    Raises
    ------
    TypeError, ValueError
        For sizes that no device has.

    Examples
    --------
    >>> LaunchConfig(128, (16, 16))
    LaunchConfig(grid=(128, 1, 1), block=(16, 16, 1))
    """

    def __init__(self, grid, block, shared_memory=0, cluster=None, cooperative=False):
        cdef int d
        blocks = _sizes("grid", grid, (2**31 - 1, 65535, 65535))
        threads = _sizes("block", block, (1024, 1024, 64))
        if threads[0] * threads[1] * threads[2] > 1024:
            raise ValueError(f"block is {block!r}: a block has at most 1024 threads in all")
        if not PyLong_Check(shared_memory) or PyBool_Check(shared_memory):
            raise TypeError(f"shared_memory is a number of bytes, not {shared_memory!r}")
        if not 0 <= shared_memory < 2**31:
            raise ValueError(f"shared_memory is a number of bytes from 0 on, not {shared_memory!r}")
        if not PyBool_Check(cooperative):
            raise TypeError(f"cooperative is True or False, not {cooperative!r}")
        clusters = (0, 0, 0) if cluster is None else _sizes("cluster", cluster, (16, 16, 16))
        if cluster is not None:
            if clusters[0] * clusters[1] * clusters[2] > 16:
                raise ValueError(f"cluster is {cluster!r}: a cluster has at most 16 blocks in all")
            if any(blocks[d] % clusters[d] for d in range(3)):
                raise ValueError(f"grid is {grid!r}, which is no multiple of the cluster, {cluster!r}")
        for d in range(3):
            self.shape.grid[d] = blocks[d]
            self.shape.block[d] = threads[d]
            self.shape.cluster[d] = clusters[d]
        self.shape.shared_memory = shared_memory
        self.shape.cooperative = cooperative
        self.threads = threads[0] * threads[1] * threads[2]

    @property
    def grid(self):
        """Blocks in each of 3 dimensions."""
        return self.shape.grid[0], self.shape.grid[1], self.shape.grid[2]

    @property
    def block(self):
        """Threads per block in each of 3 dimensions."""
        return self.shape.block[0], self.shape.block[1], self.shape.block[2]

    @property
    def shared_memory(self):
        """Bytes of dynamic shared memory per block."""
        return self.shape.shared_memory

    @property
    def cluster(self):
        """Blocks per cluster in each of 3 dimensions, or None."""
        if self.shape.cluster[0] == 0:
            return None
        return self.shape.cluster[0], self.shape.cluster[1], self.shape.cluster[2]

    @property
    def cooperative(self):
        """Whether all blocks run at the same time."""
        return bool(self.shape.cooperative)

    def _key(self):
        return self.grid, self.block, self.shared_memory, self.cluster, self.cooperative

    def __eq__(self, other):
        if not isinstance(other, LaunchConfig):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __reduce__(self):
        return LaunchConfig, self._key()

    def __repr__(self):
        text = f"LaunchConfig(grid={self.grid}, block={self.block}"
        if self.shared_memory:
            text += f", shared_memory={self.shared_memory}"
        if self.cluster is not None:
            text += f", cluster={self.cluster}"
        return text + (", cooperative=True)" if self.cooperative else ")")


cdef tuple _sizes(str name, object value, tuple most):
    sizes = value if isinstance(value, tuple) else (value,)
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"{name} has 1 to 3 dimensions, not {len(sizes)}")
    found = []
    for size, limit in zip(sizes, most):
        if PyBool_Check(size) or not hasattr(type(size), "__index__"):
            raise TypeError(f"{name} is an int or a tuple of ints, not {value!r}")
        size = size.__index__()
        if not 1 <= size <= limit:
            raise ValueError(f"{name} is {value!r}; its sizes in 3 dimensions are from 1 to {most}")
        found.append(size)
    return tuple(found + [1] * (3 - len(found)))


cdef int read_dimensions(object dim, LaunchShape* shape) except -1:
    cdef tuple sizes = dim if isinstance(dim, tuple) else (dim,)
    cdef int d
    if not 1 <= len(sizes) <= 4:
        raise ValueError(f"a launch has 1 to 4 dimensions, not {len(sizes)}")
    shape.ndim = len(sizes)
    # Of the sizes that are not 0, so that it is not their order that says which are too large.
    total = 1
    for d, size in enumerate(sizes):
        if type(size) is not int:
            if not hasattr(type(size), "__index__") or isinstance(size, bool):
                raise TypeError(f"dim is an int or a tuple of ints, not {dim!r}")
            if hasattr(type(size), "__dlpack__") and size.ndim:
                raise TypeError(
                    "the second argument is dim, the size of the launch, not an array: launch(kernel, n, ...)")
            size = size.__index__()
        if size < 0:
            raise ValueError(f"dim is {dim!r}; sizes of a launch must not be negative")
        total *= size or 1
        if total >= most_indices:
            raise ValueError(f"dim {dim!r} is too large: the product of its sizes, but for 0, must be below 2**62")
        shape.dims[d] = size
    return 0
