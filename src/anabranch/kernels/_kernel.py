"""`kernel`: a Python function that runs once per index of a launch."""

from __future__ import annotations

import functools
import opcode
import sys
import threading
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

from anabranch._launch.constants import Constants
from anabranch._launch.indices import KernelBase
from anabranch._launch.target import Target
from anabranch.kernels._block import runs_in_blocks
from anabranch.kernels._parameter import Parameter, read_parameters
from anabranch.kernels._reference import constant_reads
from anabranch.kernels._signature import Signature, check_signature

if TYPE_CHECKING:
    from anabranch.kernels._cpu.loader import Compiled
    from anabranch.kernels._cuda.compiler import CompiledPTX

_BACKWARD: Final = frozenset(number for name, number in opcode.opmap.items() if "JUMP_BACKWARD" in name)


def has_loop(function: FunctionType) -> bool:
    """Return whether a function itself, rather than one that it calls, jumps backward."""
    return not _BACKWARD.isdisjoint(function.__code__.co_code[::2])


class Kernel(KernelBase):
    """A kernel written in Python, made by `anabranch.kernel` and run by `anabranch.launch`.

    Safe to launch from any thread: of several that need it for arguments of a new kind, one compiles it.

    Attributes
    ----------
    name : str
        The function's name.
    parameters : tuple of Parameter
        The parameters after the index.
    compiled_cpu : dict
        Native code for the CPU per signature and whether indices are checked, filled by `compile_cpu`.
        A reader needs no lock.
    compiled_cuda : dict
        Code for CUDA per signature and target, filled by `compile_cuda`.
    """

    name: str
    parameters: tuple[Parameter, ...]
    compiled_cpu: dict[tuple[Signature, bool], Compiled]
    compiled_cuda: dict[tuple[Signature, Target], CompiledPTX]

    def __init__(self, function: FunctionType, scope: dict[str, Any]) -> None:
        self.parameters = read_parameters(function, scope)
        codes = tuple(parameter.access_code for parameter in self.parameters)
        self._bind(codes, has_loop(function), runs_in_blocks(function))
        functools.update_wrapper(self, function)  # type: ignore[arg-type]
        self._function = function
        self.name = function.__name__
        self.compiled_cpu = {}
        self.compiled_cuda = {}
        self._compiling = threading.Lock()

    def compile_cpu(self, signature: Signature, checked: bool = False) -> Compiled:
        """Return native code for arguments of these kinds, compiled at most once.

        Parameters
        ----------
        signature : tuple
            ``(launch_ndim, (code, ...))`` with a code ``("array", dtype, ndim, contiguous,
            readonly)`` or ``("scalar", dtype)`` per parameter after the index.
        checked : bool, optional
            Whether every index is checked.

        Returns
        -------
        Compiled
            Its `address` is that of ``int64_t(int64_t begin, int64_t end, const int64_t* dims,
            const void* args)``, see ``anabranch/kernel/kernel.hpp``, callable from any thread without
            the interpreter. It reads one 8-byte slot per scalar (two per complex number) as the
            dtype in the signature widened:
            integers and booleans to 64 bits, floats to float64.

        Raises
        ------
        TypeError, ValueError
            The kernel does not take such arguments.
        anabranch.CompileError
            The function cannot be compiled.
        ModuleNotFoundError
            Numba is not installed.
        """
        compiled = self.compiled_cpu.get((signature, checked))
        if compiled is not None:
            return compiled
        check_signature(self.name, self.parameters, signature)
        with self._compiling:
            compiled = self.compiled_cpu.get((signature, checked))
            if compiled is None:
                from anabranch.kernels._cpu.compiler import compile_kernel

                compiled = compile_kernel(self._function, self.parameters, signature, checked)
                self.compiled_cpu[signature, checked] = compiled
        return compiled

    def compile_cuda(self, signature: Signature, target: Target) -> CompiledPTX:
        """Return code for CUDA devices, compiled at most once. Needs no device.

        Parameters
        ----------
        signature : tuple
            As for `compile_cpu`.
        target : Target
            Compute capability and kind of code.

        Raises
        ------
        TypeError, ValueError
            The kernel does not take such arguments.
        anabranch.CompileError
            The function cannot be compiled.
        ModuleNotFoundError
            numba-cuda-mlir is not installed.
        """
        compiled = self.compiled_cuda.get((signature, target))
        if compiled is not None:
            return compiled
        check_signature(self.name, self.parameters, signature)
        with self._compiling:
            compiled = self.compiled_cuda.get((signature, target))
            if compiled is None:
                from anabranch.kernels._cuda.compiler import compile_kernel

                compiled = compile_kernel(self._function, self.parameters, signature, target)
                self.compiled_cuda[signature, target] = compiled
        return compiled

    def _constants(self) -> Constants | None:
        reads = list(constant_reads(self._function))
        made, advice = f"kernel {self.name!r} was compiled", "a parameter, or decorate the function again"
        return Constants(made, "the kernel keeps", advice, reads) if reads else None

    # Type checkers refuse what these refuse. With `NoReturn` they would take a call for the end of a function instead.
    if not TYPE_CHECKING:

        def __call__(self, *args: object, **kwargs: object) -> NoReturn:
            raise TypeError(
                f"kernel {self.name!r} is not called; ab.launch({self.name}, dim, ...) runs it once per index"
            )

        def __getitem__(self, sizes: object) -> NoReturn:
            dim = repr(sizes).strip("()")
            raise TypeError(
                f"kernel {self.name!r} has no [{dim}]: ab.launch({self.name}, dim, ...) runs it for dim indices, and "
                "the device chooses the blocks, or the kernel, which calls ab.block"
            )

        __iter__ = None

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> str:
        # By its name, as the function that it stands for.
        name = self._function.__qualname__
        found: object = sys.modules.get(self._function.__module__)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not self:
            raise TypeError(
                f"{self!r} is not found as {self._function.__module__}.{name}, by which another process would look for "
                "it: hand over a function that makes it"
            )
        return name

    def __repr__(self) -> str:
        code = self._function.__code__
        names = ", ".join(code.co_varnames[: code.co_argcount])
        return f"<kernel {self._function.__qualname__}({names})>"


def kernel(function: Callable[..., None]) -> Kernel:
    """Turn a Python function into a kernel.

    The function is called once per index of a launch: its first parameter is the index, an int,
    or a tuple of ints for a launch of 2 to 4 dimensions, and the others are the launch's arguments.
    `In`, `Out` and `InOut` in an annotation say what it does with an array; an annotation such as
    ``float`` or ``"float32"`` casts a scalar. It runs as native code, on any device, so it may use
    numbers, arrays, tuples, loops, `math`, NumPy's functions of scalars, the atomics, and plain
    Python functions that do the same. Globals and closure variables are constants of the kernel.

    Division follows NumPy, indices may be negative and are not checked against the shape, and
    the calls for different indices run at the same time, in no order.

    Raises
    ------
    TypeError
        The function cannot be a kernel, or an annotation means nothing here.

    Examples
    --------
    >>> @kernel
    ... def saxpy(i, alpha: "float32", x, y):
    ...     y[i] = alpha * x[i] + y[i]
    >>> saxpy
    <kernel saxpy(i, alpha, x, y)>
    """
    if not isinstance(function, FunctionType):
        raise TypeError(f"@ab.kernel decorates a plain Python function, not {type(function).__name__} {function!r}")
    return Kernel(function, sys._getframe(1).f_locals)
