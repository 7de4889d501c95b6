"""`launch`: the call itself."""

from types import FunctionType

from cpython.object cimport PyObject

from anabranch._core.builtin cimport make_function
from anabranch._core.immortal cimport make_immortal_once_shared
from anabranch._launch.call_args cimport CallArgs
from anabranch._launch.configuration cimport LaunchConfig
from anabranch._launch.grid cimport GridKernel, launch_grid
from anabranch._launch.indices cimport KernelBase, launch_indices

cdef bytes _description = b"""launch(kernel, dim, /, *args, stream=None, device=None, block=None)
--

Run a kernel once per index. Returns at once; the kernel runs in the order of its stream.

Parameters
----------
kernel : Kernel or ModuleKernel
    Made by `anabranch.kernel`, or found in an `anabranch.Module`.
dim : int, tuple of int or LaunchConfig
    The sizes of the index space, 1 to 4 of them. 0 checks the arguments and runs nothing. For a kernel of a
    module the blocks to run.
*args
    One array or number per parameter after the index. An array may be passed twice.
stream : Stream, optional
    None: the current stream of the device.
device : Device or str, optional
    None: the stream's, else that of the arrays, else the current one.
block : int, optional
    Threads per block where a device has blocks; ignored on the CPU.

Raises
------
TypeError
    For a wrong number of arguments, or one of a kind or dtype that the parameter, which is named, does not take.
DeviceError
    For an array of another device.
ClosedError
    For an array or a stream that is closed, also if another thread closes it while the kernel is compiled.
ValueError
    For dimensions that make no sense, a number that does not fit, a stream and a device that differ, or read-only
    memory for a parameter that writes.
CompileError
    If the kernel cannot be compiled for these kinds of arguments. Nothing is enqueued in any of these cases."""


cdef str _by_position = (
    "launch takes the dimensions and the kernel's arguments by position: ab.launch(kernel, dim, *inputs, *outputs)")


cdef object _launch(PyObject* module, PyObject** args, Py_ssize_t count, PyObject* names):
    cdef CallArgs given
    if count < 2:
        if names != NULL and {"dim", "inputs", "outputs"}.intersection(<tuple>names):
            raise TypeError(_by_position)
        raise TypeError(f"launch takes a kernel and its dimensions, then the kernel's arguments; {count} were given")
    cdef PyObject* kernel = args[0]
    cdef PyObject* dim = args[1]
    given.args = args + 2
    given.count = count - 2
    given.stream = NULL
    given.device = NULL
    given.block = NULL
    if names != NULL:
        _read_names(&given, args + count, <tuple>names)
    if isinstance(<object>kernel, KernelBase):
        make_immortal_once_shared(kernel)
        launch_indices(<KernelBase>kernel, <object>dim, &given)
    elif isinstance(<object>kernel, GridKernel) and isinstance(<object>dim, LaunchConfig) and given.block == NULL:
        make_immortal_once_shared(kernel)
        launch_grid(<GridKernel>kernel, <LaunchConfig>dim, &given)
    else:
        _refuse(<object>kernel, <object>dim)
    return None


cdef int _read_names(CallArgs* given, PyObject** values, tuple names) except -1:
    cdef PyObject* value
    for i, name in enumerate(names):
        value = values[i]
        if <object>value is None:
            value = NULL
        if name == "stream":
            given.stream = value
        elif name == "device":
            given.device = value
        elif name == "block":
            given.block = value
        elif name in ("dim", "inputs", "outputs"):
            raise TypeError(_by_position)
        else:
            raise TypeError(f"launch takes stream, device and block by name, not {name!r}")
    return 0


cdef int _refuse(object kernel, object dim) except -1:
    if not isinstance(kernel, GridKernel):
        hint = f"; decorate {kernel.__name__} with @ab.kernel" if type(kernel) is FunctionType else ""
        kind = type(kernel).__name__
        raise TypeError(f"only kernels are launched, made by @ab.kernel or ab.Module, not {kind}{hint}")
    if not isinstance(dim, LaunchConfig):
        raise TypeError(
            f"kernel {kernel.name!r} computes its own index: launch it with an ab.LaunchConfig, not {dim!r}")
    raise TypeError(f"kernel {kernel.name!r} is launched with the blocks of its ab.LaunchConfig; leave block out")


launch = make_function(b"launch", _launch, _description, __name__)
