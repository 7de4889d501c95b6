"""`Module`: kernels written in CUDA C++ or compiled elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from anabranch._core.errors import CompileError, DeviceError
from anabranch._device.device import Device, current_device, devices
from anabranch._launch.grid import GridKernel
from anabranch._launch.loaded import LoadedCode, architecture
from anabranch.kernels._cpp.parameter import ModuleParameter, access_codes, from_source, from_symbol

if TYPE_CHECKING:
    from anabranch._device.device import DeviceLike
    from anabranch.kernels._cpp.declaration import CppKernel
    from anabranch.kernels._cuda.ptx import PtxParameter

_Access: TypeAlias = str | Sequence[str] | Mapping[str, str] | None


class KernelAttributes(NamedTuple):
    """The driver's description of a kernel on a device; sizes in bytes.

    Attributes
    ----------
    registers : int
        Per thread.
    max_threads : int
        In one block.
    shared_memory : int
        Static, per block.
    local_memory : int
        Per thread.
    constant_memory : int
        Of the module.
    max_shared_memory : int
        Static and dynamic together, per block.
    binary_version : int
        90 for sm_90.
    """

    registers: int
    max_threads: int
    shared_memory: int
    local_memory: int
    constant_memory: int
    max_shared_memory: int
    binary_version: int


class _Code(NamedTuple):
    """Code loaded on one device: the code, the symbols of name expressions, the parameters by symbol."""

    loaded: LoadedCode
    symbols: dict[str, str]
    parameters: dict[str, list[PtxParameter]]


class Module:
    """Kernels from CUDA C++, or from compiled code. It is compiled for each device when it is first needed there.

    Safe to use from any thread, as its kernels are: of several that need the code at once, one compiles it.

    Parameters
    ----------
    source : str or bytes
        CUDA C++ as str. Or code: PTX as str or bytes, a cubin, a fat binary or LTO-IR as bytes.
    options : sequence of str
        Options of NVRTC for CUDA C++, such as ``["--std=c++20", "-DN=4"]``. The architecture is the device's unless
        they name one.

    Raises
    ------
    CompileError
        The source is wrong; the message shows the line. It is compiled at once where there is a CUDA device.
    ModuleNotFoundError
        cuda-core is not installed.

    Examples
    --------
    ::

        source = '''
        template <typename T> __global__ void scale(const T* x, T* y, T factor, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] = factor * x[i];
        }
        '''
        scale = Module(source).get_kernel("scale<float>")
        launch(scale, LaunchConfig(4, 256), x, y, 2.0, 1000)
    """

    def __init__(self, source: str | bytes | bytearray | memoryview, *, options: Sequence[str] = ()) -> None:
        if isinstance(options, str) or not all(isinstance(option, str) for option in options):
            raise TypeError(f"options is a sequence of str, such as ['--std=c++20'], not {options!r}")
        if not isinstance(source, str):
            source = bytes(source)
        if not source:
            raise ValueError("a module needs a source; this one is empty")
        self._options = tuple(options)
        self._source = source if isinstance(source, str) and not _is_ptx(source) else None
        self._binary = b"" if self._source is not None else source.encode() if isinstance(source, str) else source
        if self._binary and self._options:
            raise ValueError("options are for CUDA C++; this module is compiled code")
        self._declared: dict[str, CppKernel] | None = None
        self._expressions: tuple[str, ...] = ()
        self._codes: dict[tuple[Device, tuple[str, ...]], _Code] = {}
        self._lock = threading.RLock()
        found = devices("cuda")
        if found:
            current = current_device()
            self._code(current if current in found else found[0])

    def get_kernel(self, name: str, access: _Access = None) -> ModuleKernel:
        """Return a kernel of the module.

        Parameters
        ----------
        name : str
            Its name; a name expression such as ``"scale<float>"`` for a template. In compiled code its symbol.
        access : str, sequence of str or dict, optional
            What the kernel does with its arrays: ``"in"``, ``"out"`` or ``"inout"``, for all, for each in their
            order, or by the name of the parameter. None, and what a dict leaves out: ``"in"`` where the source
            declares a pointer to const, else ``"inout"``.

        Raises
        ------
        CompileError
            There is no such kernel, or the template cannot be instantiated.
        DeviceError
            There is no CUDA device.
        """
        found = devices("cuda")
        if not found:
            raise DeviceError(f"kernel {name!r} needs a CUDA device; there is none")
        current = current_device()
        return ModuleKernel(self, name, access, current if current in found else found[0])

    def __repr__(self) -> str:
        what = "CUDA C++" if self._source is not None else f"{len(self._binary)} bytes of code"
        return f"<Module of {what}>"

    def _code(self, device: Device, expression: str | None = None) -> _Code:
        """Return the module's code on a device, including the kernel of a name expression."""
        with self._lock:
            if expression is not None and expression not in self._expressions:
                self._instantiate(device, expression)
            # A kernel keeps the code in which it was found, and therefore that code's variables.
            wanted = () if expression is None else self._expressions[: self._expressions.index(expression) + 1]
            key = device, wanted
            if key not in self._codes:
                self._codes[key] = self._build(device, wanted)
            return self._codes[key]

    def _instantiate(self, device: Device, expression: str) -> None:
        expressions = (*self._expressions, expression)
        self._codes[device, expressions] = self._build(device, expressions)
        self._expressions = expressions

    def _build(self, device: Device, expressions: tuple[str, ...]) -> _Code:
        from anabranch.kernels._cuda import ptx

        number = architecture(device)
        if number == 0:
            raise DeviceError(f"a module runs on CUDA devices, not on {device.alias}")
        if self._source is not None:
            from anabranch.kernels._cpp.nvrtc import compile_source

            program = compile_source(self._source, self._options, expressions, number)
            return _Code(_load(device, program.image), program.symbols, ptx.entries(program.ptx))
        if _is_ptx(self._binary):
            text = self._binary.rstrip(b"\0")
            return _Code(_load(device, text + b"\0"), {}, ptx.entries(text.decode(errors="replace")))
        image = self._binary
        if not _is_loadable(image):
            from anabranch.kernels._cuda.link import link_ltoir

            image = link_ltoir(image, number)
        return _Code(_load(device, image), {}, {})

    def _declaration(self, name: str) -> CppKernel | None:
        if self._source is None:
            return None
        if self._declared is None:
            from anabranch.kernels._cpp import declaration

            # The first of several overloads; for the others, which a name expression may select, only sizes are
            # checked.
            self._declared = {}
            for kernel in declaration.kernels(self._source):
                self._declared.setdefault(kernel.name, kernel)
        return self._declared.get(name)


class ModuleKernel(GridKernel):
    """A kernel of a `Module`, launched by `anabranch.launch` with a `LaunchConfig`.

    Attributes
    ----------
    name : str
        As it was asked for.
    parameters : tuple of ModuleParameter
        The name, kind, size and access of each.
    module : Module
        Where it is from.
    """

    def __init__(self, module: Module, name: str, access: _Access, device: Device) -> None:
        from anabranch.kernels._cpp.declaration import expression_parts

        if not isinstance(name, str):
            raise TypeError(f"the name of a kernel is a str, not {name!r}")
        self.name = name
        self.module = module
        self._lock = threading.Lock()
        # A function with C linkage is its own symbol; a name expression finds any other.
        code = module._code(device)
        self._expression = None if name in code.parameters or module._source is None else name
        if self._expression is not None:
            try:
                code = module._code(device, name)
            except CompileError as error:
                raise CompileError(f"the module has no kernel {name!r}{_known(module)}\n{error}") from None
        symbol = code.symbols.get(name, name)
        try:
            sizes = self._sizes_of(code.loaded, symbol)
        except ValueError:
            known = ", ".join(code.parameters) or "names that its code does not tell"
            raise CompileError(f"the module has no kernel {name!r}; it has {known}") from None
        plain, arguments = expression_parts(name)
        declared = module._declaration(plain)
        in_ptx = code.parameters.get(symbol)
        if declared is not None and in_ptx is not None and len(declared.parameters) == len(in_ptx):
            parameters = from_source(declared.read(arguments), in_ptx)
        else:
            parameters = from_symbol(in_ptx, sizes)
        self._check_sizes(parameters, sizes)
        codes, by_order = access_codes(name, parameters, access)
        self.parameters: tuple[ModuleParameter, ...] = tuple(
            parameter._replace(access=None if code is None else ("inout", "in", "out")[code])
            for parameter, code in zip(parameters, codes, strict=True)
        )
        self._rule(
            [
                (parameter.kind, parameter.size, code or 0, parameter.accepts)
                for parameter, code in zip(parameters, codes, strict=True)
            ],
            by_order,
        )
        self._load(code.loaded, symbol)

    def occupancy(self, block: int | tuple[int, ...], shared_memory: int = 0, *, device: DeviceLike = None) -> int:
        """Return how many blocks one multiprocessor of a device runs at the same time.

        Parameters
        ----------
        block : int or tuple of int
            Threads per block.
        shared_memory : int
            Bytes of dynamic shared memory per block.
        device : Device or str, optional
            None: the current one if that is a CUDA device, else the first.
        """
        threads = 1
        for size in block if isinstance(block, tuple) else (block,):
            threads *= size
        if not 1 <= threads <= 1024:
            raise ValueError(f"block is {block!r}: a block has 1 to 1024 threads")
        if shared_memory < 0:
            raise ValueError(f"shared_memory is a number of bytes from 0 on, not {shared_memory!r}")
        return self._resident_blocks(_cuda_device(device), threads, shared_memory)

    def attributes(self, device: DeviceLike = None) -> KernelAttributes:
        """Return what the driver says of the kernel on a device.

        Parameters
        ----------
        device : Device or str, optional
            None: the current one if that is a CUDA device, else the first.
        """
        return KernelAttributes(**self._attributes(_cuda_device(device)))

    def __call__(self, *args: object, **kwargs: object) -> None:
        raise TypeError(
            f"kernel {self.name!r} is not called; ab.launch(kernel, ab.LaunchConfig(grid, block), ...) runs it"
        )

    def __getitem__(self, sizes: object) -> None:
        raise TypeError(
            f"kernel {self.name!r} has no [...]: ab.launch(kernel, ab.LaunchConfig(grid, block), ...) runs it in blocks"
        )

    __iter__ = None

    def __repr__(self) -> str:
        return f"<kernel {self.name}({', '.join(parameter.describe() for parameter in self.parameters)})>"

    def _check_sizes(self, parameters: Sequence[ModuleParameter], sizes: Sequence[int]) -> None:
        # The driver's list decides; before CUDA 12.4 there is none, and the code's own list decides.
        found = [parameter.size for parameter in parameters]
        if sizes and found != list(sizes):
            raise CompileError(
                f"kernel {self.name!r}: its code declares parameters of {found} bytes, the driver sees {sizes}"
            )

    def _load_for(self, device: Device) -> None:
        """Load the kernel at its first launch on a device."""
        with self._lock:
            code = self.module._code(device, self._expression)
            self._load(code.loaded, code.symbols.get(self.name, self.name))

    def _wrong_count(self, count: int) -> TypeError:
        names = [parameter.name for parameter in self.parameters]
        detail = f"missing {', '.join(names[count:])}" if count < len(names) else f"{count - len(names)} too many"
        return TypeError(
            f"kernel {self.name!r} takes {len(names)} arguments ({', '.join(names)}), not {count}: {detail}"
        )


def _cuda_device(device: DeviceLike) -> Device:
    chosen: Any = current_device() if device is None else Device(device)
    if device is None and chosen.kind != "cuda":
        found = devices("cuda")
        if not found:
            raise DeviceError("there is no CUDA device")
        chosen = found[0]
    result: Device = chosen
    return result


def _load(device: Device, image: bytes) -> LoadedCode:
    try:
        return LoadedCode(device, image)
    except ValueError as error:
        raise CompileError(str(error)) from None


def _known(module: Module) -> str:
    from anabranch.kernels._cpp import declaration

    names = [kernel.name for kernel in declaration.kernels(module._source or "")]
    return f"; it has {', '.join(dict.fromkeys(names))}" if names else ""


def _is_ptx(code: str | bytes) -> bool:
    """Whether a text is PTX, whose first directive is ``.version``."""
    text = code if isinstance(code, str) else code[:65536].decode("latin-1")
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith("//")), "")
    return first.startswith(".version")


def _is_loadable(code: bytes) -> bool:
    """Whether the driver loads the code directly: ELF or a fat binary, but not LTO-IR."""
    return code.startswith((b"\x7fELF", b"\x50\xed\x55\xba"))
