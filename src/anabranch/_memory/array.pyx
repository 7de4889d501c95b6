"""Arrays: memory of a device with a shape and a dtype, and views of it."""

cimport cython
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t, uintptr_t
from libcpp.vector cimport vector

from anabranch._memory import display, exports, host_view

from anabranch._core cimport core
from anabranch._core.core cimport Access as MemoryAccess
from anabranch._core.core cimport (
    CBackend, CStream, Elements, MemoryKind, StreamOptions, Touch, Use, byte_t, copy_elements,
    host_function_stream, pass_threads, row_major,
)
from anabranch._core.explore cimport TouchSpan, expect, exploring
from anabranch._hazards.ordering cimport (
    Submission, begin, commit, follow_use, note_host_access, open_access, order_host, order_return, refuse_alias,
    refuse_captured, uses_before_host, uses_of)
from anabranch._memory.assign cimport assign
from anabranch._memory.copies cimport contiguous_of, converted, copied, moved
from anabranch._memory.dtype cimport element_type
from anabranch._memory.operators cimport (
    absolute_operator, add_operator, all_reduction, and_operator, any_reduction, floor_divide_operator,
    greatest_position_reduction, greatest_reduction, invert_operator, least_position_reduction, least_reduction,
    mean_reduction, multiply_operator, negative_operator, operators, or_operator, positive_operator, power_operator,
    product_reduction, remainder_operator, subtract_operator, sum_reduction, true_divide_operator, xor_operator)
from anabranch._memory.slice cimport element_of, view_of, whole_of
from anabranch._memory.staging cimport download
from anabranch._memory.views cimport reshaped, retyped, squeezed, transposed
from anabranch._stream.current cimport stream_of_record
from anabranch._task.context cimport TaskState, current_state

from anabranch._core.errors import ClosedError

cdef enum:  # codes of dtypes
    first_integer = 1
    last_integer = 8

cdef dict _accesses = {"in": MemoryAccess.read, "out": MemoryAccess.write, "inout": MemoryAccess.read_write}


@cython.final
@cython.freelist(32)
@cython.c_api_binop_methods(True)
cdef class Array:
    """Memory of a device, with a shape and a dtype.

    Made by `empty`, `zeros`, `ones`, `full`, `array`, `asarray`, `from_dlpack`.

    Operations on it are asynchronous; `numpy`, `host`, ``__array__`` and ``__dlpack__`` wait for what they
    need. The memory is freed in stream order, after every stream that used it, whichever thread drops the
    last reference. Indexing with integers, slices, ``...`` and ``None`` gives views, which keep the memory; assigning
    to one, as in ``a[2:5] = 1``, fills or copies on the current stream of the array's device.

    Safe to use from any thread; each operation is enqueued as a whole. Two threads that access the same elements, one
    of them writing, have to agree which comes first.
    """

    def __init__(self):
        raise TypeError("an Array is made by anabranch.empty, zeros, ones, full, array, asarray or from_dlpack")

    cdef int refuse(self) except -1:
        if not self._open:
            raise ClosedError(f"{self._described()} is closed")
        core.check_fork()
        return 0

    cdef Elements elements_of(self, object copy) except *:
        cdef uintptr_t address = copy.__array_interface__["data"][0]
        cdef Elements elements
        elements.pointer = <byte_t*>address
        elements.layout = row_major(self.layout.ndim, self.layout.shape, self.layout.itemsize)
        elements.offset = 0
        elements.home = NULL
        return elements

    cdef int synchronize(self, MemoryAccess access) except -1:
        cdef TaskState state = current_state()
        order_host(state, self.touch(access), False)
        return note_host_access(state, self.touch(access))

    cdef Ref[CStream] reader(self, const vector[Use]& uses) except *:
        cdef CBackend* backend = self._device.backend
        cdef Ref[CStream] stream = backend.create_stream(StreamOptions())
        cdef size_t i
        for i in range(uses.size()):
            # In a host function, later work of its own stream comes after the function.
            if uses[i].stream.get() != host_function_stream():
                backend.wait(deref(stream.get()), deref(uses[i].stream.get()), uses[i].point)
        return stream

    cdef int read_back(self, const Elements& dst, int64_t count) except -1:
        cdef TaskState state = current_state()
        cdef Touch touch = self.touch(MemoryAccess.read)
        refuse_captured(state, touch.storage)
        cdef vector[Use] uses = uses_before_host(state, touch)
        cdef Use use
        cdef Ref[CStream] stream = self.reader(uses)
        # Memory that is dropped during the wait is freed after it.
        self.hold(stream.get(), self._device.backend.newest(deref(stream.get())), MemoryAccess.read)
        if exploring() and self._device.backend.capabilities().host_memory:
            expect(deref(stream.get()), TouchSpan(&touch, 1))
        download(stream.get(), dst, self.elements(0), count)
        self.storage.get().accesses().forget(deref(stream.get()))
        for use in uses:
            follow_use(deref(state.task.core.get()), use)
        return note_host_access(state, touch)

    @property
    def shape(self):
        """The size in each dimension, in elements."""
        self.check()
        return tuple([self.layout.shape[d] for d in range(self.layout.ndim)])

    @property
    def strides(self):
        """The distance between neighbours in each dimension, in bytes."""
        self.check()
        return tuple([self.layout.strides[d] for d in range(self.layout.ndim)])

    @property
    def dtype(self):
        """The type of the elements, a `numpy.dtype`."""
        self.check()
        return self._dtype

    @property
    def ndim(self):
        """The number of dimensions."""
        self.check()
        return self.layout.ndim

    @property
    def size(self):
        """The number of elements."""
        self.check()
        return self.layout.size()

    @property
    def nbytes(self):
        """The size of the elements in bytes."""
        self.check()
        return self.layout.size() * self.layout.itemsize

    @property
    def device(self):
        """The device that owns the memory."""
        return self._device

    @property
    def ptr(self):
        """The address of the first element, on its device."""
        self.check()
        refuse_alias(self.storage.get())
        self.storage.get().share()
        return <uintptr_t>self.data

    @property
    def pinned(self):
        """Whether the memory is host memory that every device can access."""
        self.check()
        return self.storage.get().kind() == MemoryKind.pinned

    @property
    def read_only(self):
        """Whether writes are refused: for imported memory whose owner declared it read-only."""
        self.check()
        return self._read_only

    @property
    def closed(self):
        """Whether `close` was called."""
        return not self._open

    def close(self):
        """Release the memory in stream order: enqueued work completes first.

        Views keep it. Closing again does nothing. Memory of another library goes back to its owner when the work is
        over; with ``ab.hazards("check")`` a `RaceError` of the kind ``"FREE"`` says if that is not known to be so.
        What another thread does with this object at the same time is either enqueued before, or raises `ClosedError`.
        On free-threaded Python that takes stopping all threads for a moment; dropping the last reference does not.
        """
        with cython.critical_section(self):
            order_return(self.storage.get())
            self.let_go()

    cdef int let_go(self) except -1:
        if self._open:
            self._open = False
            pass_threads()
            self.storage.reset()
        return 0

    cdef object fetch(self):
        # The elements as a new NumPy array, once what writes to them is complete.
        import numpy

        self.check()
        cdef Array kept = whole_of(self)
        result = numpy.empty(kept.shape, kept._dtype)
        cdef Elements dst = kept.elements_of(result)
        cdef Elements src = kept.elements(0)
        cdef int64_t count = kept.layout.size()
        if not kept._device.backend.capabilities().host_memory:
            kept.read_back(dst, count)
            return result
        kept.synchronize(MemoryAccess.read)
        with nogil:
            copy_elements(dst, src, count)
        return result

    def numpy(self):
        """Return the elements as a new, read-only `numpy.ndarray`.

        Blocks until the work that this array depends on, which is what writes to it, is complete, and waits
        for no other stream. Releases the interpreter lock; Ctrl-C interrupts it.

        It is a copy, so writing to it would not change this array; that is why NumPy refuses with "assignment
        destination is read-only". To change the array, write ``a[...] = image``, or of host memory
        ``with a.host(write=True) as view: view[:] = image``. For a copy to change, write ``numpy.array(a)``.

        Raises
        ------
        KernelError
            If that work failed.

        Examples
        --------
        >>> import anabranch as ab
        >>> x = ab.zeros(3)
        >>> x.numpy()[:] = 1
        Traceback (most recent call last):
            ...
        ValueError: assignment destination is read-only
        >>> x[...] = 1
        >>> x.numpy()
        array([1., 1., 1.], dtype=float32)
        """
        result = self.fetch()
        result.flags.writeable = False
        return result

    def host(self, write=False):
        """Give the host direct access to CPU memory, for the length of a ``with`` block.

        Parameters
        ----------
        write : bool
            False: the view is read-only, and the host waits for what writes to the array. True: it waits for
            what reads from it, too.

        Returns
        -------
        context manager of numpy.ndarray
            A view of the same memory, without a copy, made when the block is entered. It is read-only after the block.

        Raises
        ------
        ValueError
            For memory that the host cannot reach, or write access to read-only memory.
        KernelError
            On entry, if the work it waits for failed.
        """
        self.check()
        if not self._device.backend.capabilities().host_memory:
            raise ValueError(f"the host cannot reach {self._described()}; use numpy(), or a pinned array")
        if write and self._read_only:
            raise ValueError(f"{self._described()} is read-only memory")
        return host_view.HostView(self, bool(write))

    def _view(self, write, lasts=False):
        # The memory as a NumPy array, once the host may access it; with `lasts`, also the open host access or None.
        self.check()
        cdef Array kept = whole_of(self)
        cdef TaskState state = current_state()
        cdef Touch touch = kept.touch(MemoryAccess.read_write if write else MemoryAccess.read)
        order_host(state, touch, True)
        view = host_view.over(kept, kept._interface(write))
        if lasts:
            return view, open_access(state, touch)
        note_host_access(state, touch)
        return view

    def mark(self, stream, access):
        """Declare that work which other libraries have put into a stream accesses the array.

        Call it after that work was enqueued, for memory that another library's kernels use: later uses of the array are
        then ordered after them. The kernels themselves come after the work that the stream has waited for; under
        ``"auto"``, a call before they are enqueued adds the missing waits.

        Parameters
        ----------
        stream : Stream
            Of any device.
        access : {"in", "out", "inout"}
            What the work does: read, write, or both.

        Raises
        ------
        ValueError
            For another access.
        RaceError
            Under ``"check"``, if the access is not in order with another.
        """
        self.check()
        if not isinstance(access, str) or access not in _accesses:
            raise ValueError(f"access is one of {', '.join(map(repr, _accesses))}, not {access!r}")
        if not isinstance(stream, Stream):
            raise TypeError(f"stream is a Stream, not {type(stream).__name__}")
        cdef CStream* queue = (<Stream>stream).get()
        cdef TaskState state = current_state()
        cdef Touch touch = self.touch(_accesses[access])
        cdef Submission submission
        begin(&submission, state, queue, &touch, 1)
        commit(&submission, state, (<Stream>stream).now(queue))

    def _interface(self, write):
        self.check()
        self.storage.get().share()
        return {
            "version": 3,
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self._dtype.str,
            "data": (<uintptr_t>self.data, not write),
        }

    def __array__(self, dtype=None, copy=None):
        """Return the elements as `numpy` does, of CPU memory without a copy unless one is asked for or needed.

        ``numpy.array(a)`` is a writable copy of its own, of GPU memory too. ``numpy.asarray(a)`` is the same memory, as
        in a block of `host`, and stays so: the program orders what it does with it and what streams do. Of GPU memory
        it is a TypeError.
        """
        import numpy

        self.check()
        if copy:
            own = self.fetch()
            return own if dtype is None else own.astype(dtype, copy=False)
        if not self._device.backend.capabilities().host_memory:
            raise TypeError(f"{self._described()} is not CPU memory; use numpy() or numpy.array() for a copy")
        view = self._view(not self._read_only)
        if dtype is None or numpy.dtype(dtype) == self._dtype:
            return view
        if copy is not None:
            raise ValueError(
                f"{self._described()} has no elements of dtype {numpy.dtype(dtype)}, and a copy was ruled out")
        return view.astype(dtype)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """Export as a DLPack capsule.

        CPU memory is exported once the writes to it have completed; `stream` must then be None. GPU memory is exported
        without waiting for the GPU: the consumer's stream waits for the work that the array depends on. Only work that
        a stream holds back, behind a host function or a gate, blocks the call until it has been submitted to the
        driver. For another `dl_device`, which may only be the CPU, and with `copy`, the call waits and copies.
        """
        self.check()
        return exports.export(self, stream, max_version, dl_device, copy)

    @property
    def __cuda_array_interface__(self):
        """The interface that GPU libraries read. Raises AttributeError for CPU memory.

        Work that is enqueued in the current stream afterwards may use the array.
        """
        self.check()
        return exports.cuda_interface(self)

    def __dlpack_device__(self):
        """Return DLPack's type and number of the device."""
        self.check()
        return exports.device_of(self)

    def __getitem__(self, key):
        return view_of(self, key)

    def __setitem__(self, key, value):
        assign(view_of(self, key), value)

    @property
    def T(self):
        """A view with the dimensions in reverse order."""
        self.check()
        return transposed(self, ())

    def transpose(self, *axes):
        """Return a view with the dimensions in another order.

        Parameters
        ----------
        *axes : int, or one tuple of int
            Which dimension of this array each of the view's is. None given: the reverse order.

        Raises
        ------
        ValueError
            If they do not name each dimension once.
        """
        self.check()
        return transposed(self, axes)

    def reshape(self, *shape):
        """Return a view of the same elements, in row-major order, in another shape.

        Parameters
        ----------
        *shape : int, or one tuple of int
            One size may be -1: what the others leave.

        Raises
        ------
        ValueError
            If the elements are not as many, or if they lie so that only a copy can have that shape: write
            ``x.contiguous().reshape(...)``.
        """
        self.check()
        return reshaped(self, shape)

    def ravel(self):
        """Return a view of one dimension. A ValueError, as of `reshape`, if that takes a copy."""
        self.check()
        return reshaped(self, (-1,) if self.layout.size() != 0 else (0,))

    def squeeze(self, axis=None):
        """Return a view without dimensions of size 1.

        Parameters
        ----------
        axis : int or tuple of int, optional
            Which to leave out; a ValueError if one is not of size 1. None: all of that size.
        """
        self.check()
        return squeezed(self, axis)

    def view(self, dtype):
        """Return a view of the same bytes as elements of another dtype.

        If its elements have another size, the last dimension changes: its elements must be adjacent, and its bytes a
        whole number of the new elements.

        Raises
        ------
        ValueError
            If they are not, or if the memory is not aligned for the dtype. Copy the array first, then.
        TypeError
            For a dtype that arrays cannot hold.

        Examples
        --------
        >>> import anabranch as ab
        >>> z = ab.full(2, 1 + 2j, "complex64")
        >>> z.view("float32").numpy()
        array([1., 2., 1., 2.], dtype=float32)
        """
        self.check()
        return retyped(self, dtype)

    def copy(self, stream=None):
        """Return a new array with the same elements, in row-major order. Asynchronous on the stream.

        It is on the same device, and pinned if this one is.

        Parameters
        ----------
        stream : Stream, optional
            Of the array's device. None: its current stream.

        Raises
        ------
        DeviceError
            If the stream is another device's.
        """
        self.check()
        return copied(self, stream)

    def astype(self, dtype, stream=None):
        """Return a new array with the elements converted to a dtype, as `copy` returns it: asynchronous on the stream.

        Converts as NumPy's ``astype`` does. A number that the dtype cannot represent becomes one that is not
        specified, which may differ between devices.

        Parameters
        ----------
        dtype : dtype-like
        stream : Stream, optional
            Of the array's device. None: its current stream.

        Raises
        ------
        TypeError
            For a dtype that arrays cannot hold, and from complex numbers to real ones: that would drop a part. The
            real parts of a complex64 array are ``x.view("float32")[..., ::2]``.
        DeviceError
            If the stream is another device's.
        """
        self.check()
        return converted(self, element_type(dtype), stream)

    def contiguous(self, stream=None):
        """Return this array if its elements are adjacent in row-major order, else a `copy`, with its errors."""
        self.check()
        # Not asked for here, where the field has this method's name.
        return contiguous_of(self, stream)

    def to(self, device, stream=None):
        """Return a new array with the same elements on a device, even if this array is on it already.

        Asynchronous as `anabranch.copy` is: between a GPU and CPU memory that is not pinned, the call returns when the
        copy is done.

        Parameters
        ----------
        device : Device or str
        stream : Stream, optional
            Of either device. None: the current stream of the new array's device if that is a GPU, else of this one's.

        Raises
        ------
        DeviceError
            If the stream belongs to neither side.
        """
        self.check()
        return moved(self, device, stream)

    def item(self, *index):
        """Return an element as a Python number, once what writes to it is complete.

        ``float(a)``, ``int(a)``, ``complex(a)`` and ``bool(a)`` do the same for an array of one element.

        Parameters
        ----------
        *index : int
            As of NumPy's `item`: none for an array of one element, one for each dimension, or a position in row-major
            order. ``a.item(2, 1)`` is ``a[2, 1].item()``.

        Raises
        ------
        ValueError
            If there is no index and the array does not have one element.
        """
        self.check()
        if index:
            return element_of(self, index).item()
        if self.layout.size() != 1:
            raise ValueError(
                f"{self._described()} has {self.layout.size()} elements; only one becomes a Python number")
        return self.fetch().item()

    def tolist(self):
        """Return the elements as nested lists of Python numbers, once what writes to them is complete, as `numpy`."""
        return self.fetch().tolist()

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __complex__(self):
        return complex(self.item())

    def __index__(self):
        self.check()
        if self.layout.ndim != 0 or not first_integer <= self.code <= last_integer:
            raise TypeError(f"only an integer array of no dimension is an index, not {self._described()}")
        return self.item()

    def __iter__(self):
        return map(self.__getitem__, range(len(self)))

    def __len__(self):
        self.check()
        if self.layout.ndim == 0:
            raise TypeError("an array of no dimension has no length")
        return self.layout.shape[0]

    # NumPy's arrays and scalars leave operators to those here instead of reading the elements.
    __array_priority__ = 1000.0

    def __richcmp__(left, right, int operation):
        return operators().binary(operation, left, right)

    def __hash__(self):
        return <Py_hash_t>(<uintptr_t><void*>self >> 4)

    def __add__(left, right):
        return operators().binary(add_operator, left, right)

    def __iadd__(self, other):
        return operators().in_place(add_operator, self, other)

    def __sub__(left, right):
        return operators().binary(subtract_operator, left, right)

    def __isub__(self, other):
        return operators().in_place(subtract_operator, self, other)

    def __mul__(left, right):
        return operators().binary(multiply_operator, left, right)

    def __imul__(self, other):
        return operators().in_place(multiply_operator, self, other)

    def __truediv__(left, right):
        return operators().binary(true_divide_operator, left, right)

    def __itruediv__(self, other):
        return operators().in_place(true_divide_operator, self, other)

    def __floordiv__(left, right):
        return operators().binary(floor_divide_operator, left, right)

    def __ifloordiv__(self, other):
        return operators().in_place(floor_divide_operator, self, other)

    def __mod__(left, right):
        return operators().binary(remainder_operator, left, right)

    def __imod__(self, other):
        return operators().in_place(remainder_operator, self, other)

    def __pow__(left, right, modulus):
        return NotImplemented if modulus is not None else operators().binary(power_operator, left, right)

    def __ipow__(self, other):
        return operators().in_place(power_operator, self, other)

    def __divmod__(left, right):
        return left // right, left % right

    def __and__(left, right):
        return operators().binary(and_operator, left, right)

    def __iand__(self, other):
        return operators().in_place(and_operator, self, other)

    def __or__(left, right):
        return operators().binary(or_operator, left, right)

    def __ior__(self, other):
        return operators().in_place(or_operator, self, other)

    def __xor__(left, right):
        return operators().binary(xor_operator, left, right)

    def __ixor__(self, other):
        return operators().in_place(xor_operator, self, other)

    def __invert__(self):
        return operators().unary(invert_operator, self)

    def __neg__(self):
        return operators().unary(negative_operator, self)

    def __pos__(self):
        return operators().unary(positive_operator, self)

    def __abs__(self):
        return operators().unary(absolute_operator, self)

    def sum(self, axis=None, *, bint keepdims=False, stream=None, out=None, dtype=None):
        """Return the sum of the elements, over all axes or those given, as a new array. Asynchronous on the stream.

        The other reductions take the same parameters and raise the same errors.

        Parameters
        ----------
        axis : int or tuple of int, optional
            None: all axes; the result has no dimension and stays on the device.
        keepdims : bool
            Keep the axes, with size 1.
        stream : Stream, optional
            None: the current stream of the array's device.
        out, dtype : None
            NumPy's functions, such as ``numpy.sum(array)``, pass them; anything else is a TypeError.

        Raises
        ------
        numpy.exceptions.AxisError
            For an axis that the array does not have.
        DeviceError
            For a stream of another device.
        """
        return operators().reduce(sum_reduction, self, axis, keepdims, stream, out if dtype is None else dtype)

    def prod(self, axis=None, *, bint keepdims=False, stream=None, out=None, dtype=None):
        """Return the product of the elements, as `sum` does."""
        return operators().reduce(product_reduction, self, axis, keepdims, stream, out if dtype is None else dtype)

    def min(self, axis=None, *, bint keepdims=False, stream=None, out=None):
        """Return the least elements, nan if one is nan. A ValueError for no elements; else as `sum`."""
        return operators().reduce(least_reduction, self, axis, keepdims, stream, out)

    def max(self, axis=None, *, bint keepdims=False, stream=None, out=None):
        """Return the greatest elements, nan if one is nan. A ValueError for no elements; else as `sum`."""
        return operators().reduce(greatest_reduction, self, axis, keepdims, stream, out)

    def mean(self, axis=None, *, bint keepdims=False, stream=None, out=None, dtype=None):
        """Return the mean of the elements, nan for none, as `sum` does. That of integers is float64."""
        return operators().reduce(mean_reduction, self, axis, keepdims, stream, out if dtype is None else dtype)

    def any(self, axis=None, *, bint keepdims=False, stream=None, out=None):
        """Return whether any element is true, as `sum` does."""
        return operators().reduce(any_reduction, self, axis, keepdims, stream, out)

    def all(self, axis=None, *, bint keepdims=False, stream=None, out=None):
        """Return whether all elements are true, as `sum` does."""
        return operators().reduce(all_reduction, self, axis, keepdims, stream, out)

    def argmin(self, axis=None, *, bint keepdims=False, stream=None, out=None):
        """Return the position of the least element along one axis, or in the flattened array, as `min`."""
        return operators().reduce(least_position_reduction, self, axis, keepdims, stream, out)

    def argmax(self, axis=None, *, bint keepdims=False, stream=None, out=None):
        """Return the position of the greatest element along one axis, or in the flattened array, as `max`."""
        return operators().reduce(greatest_position_reduction, self, axis, keepdims, stream, out)

    def __copy__(self):
        """As `copy`: ``copy.copy`` and ``copy.deepcopy`` copy the elements, as NumPy's arrays do."""
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce__(self):
        raise TypeError(f"{self._described()} lives in this process; send a copy of its elements, array.numpy()")

    def __contains__(self, value):
        return bool((self == value).any())

    def __format__(self, spec):
        return format(self.item(), spec) if spec and self.ndim == 0 else object.__format__(self, spec)

    def __bool__(self):
        self.check()
        if self.layout.size() != 1:
            raise ValueError(
                f"the truth of an array of {self.layout.size()} elements is not defined: write x.any() or x.all()")
        return bool(self.item())

    def _described(self):
        # For messages: without the elements.
        if self._device is None:
            return "<Array of nothing, closed>"
        if not self._open:
            return f"<Array of {self._device.alias}, closed>"
        pinned = ", pinned" if self.pinned else ""
        return f"<Array {self.shape} {self._dtype} on {self._device.alias}{pinned}>"

    def _completed(self):
        # The elements if all work that writes to them is complete, without waiting for it; else None. And the streams
        # of such work that is pending.
        cdef TaskState state = current_state()
        cdef Array kept = whole_of(self)
        cdef Touch touch = kept.touch(MemoryAccess.read)
        cdef vector[Use] uses
        cdef size_t i
        import numpy

        if state.capture.get() != NULL and state.capture.get().active():
            return None, []
        uses, pending = uses_of(touch), []
        for i in range(uses.size()):
            if uses[i].stream.get().capture() != NULL:
                return None, []
            if not uses[i].stream.get().backend().query(deref(uses[i].stream.get()), uses[i].point):
                pending.append(stream_of_record(uses[i].stream))
        if pending:
            return None, pending
        result = numpy.empty(kept.shape, kept._dtype)
        cdef Elements dst = kept.elements_of(result)
        cdef Ref[CStream] stream
        if kept._device.backend.capabilities().host_memory:
            copy_elements(dst, kept.elements(0), kept.layout.size())
            return result, []
        uses.clear()
        stream = kept.reader(uses)
        kept.hold(stream.get(), kept._device.backend.newest(deref(stream.get())), MemoryAccess.read)
        download(stream.get(), dst, kept.elements(0), kept.layout.size())
        kept.storage.get().accesses().forget(deref(stream.get()))
        return result, []

    def __repr__(self):
        return display.text(self)

    def _repr_html_(self):
        return display.html(self)


cdef int refuse_array(object array, str name) except -1:
    shares = hasattr(array, "__array_interface__") or hasattr(array, "__dlpack__")
    hint = "; wrap it with anabranch.asarray" if shares else ""
    raise TypeError(f"{name} is an Array, not {type(array).__name__}{hint}")
