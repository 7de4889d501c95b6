"""A digest of values by type and exact content: values with equal digests are the same to any compiler."""

from __future__ import annotations

import hashlib
import struct
import sys
from typing import Any, Final

from anabranch.kernels._reference import library_name

_ATOMS: Final = frozenset({bool, int, float, complex, str, bytes, type(None), type(...)})
_MAX_ARRAY_BYTES: Final = 1 << 20
_NUMPY_TYPES: Final = 24  # dtypes with a number below are NumPy's own
_NUMPY_KINDS: Final = frozenset("biufcmMSUV")


class UncacheableError(Exception):
    """A function refers to a value that cannot be identified exactly."""


class Digest:
    """A running hash of values. `add_other` handles values that are not plain data."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def result(self) -> bytes:
        """Return the hash of the values added so far."""
        return self._hash.digest()

    def put(self, tag: str, data: bytes = b"") -> None:
        """Add bytes, labelled with a tag."""
        self._hash.update(f"{tag}:{len(data)}:".encode())
        self._hash.update(data)

    def add(self, value: Any) -> None:
        """Add a value with its type.

        Raises
        ------
        UncacheableError
            The value cannot be identified exactly.
        """
        if type(value) in _ATOMS:
            self.put(type(value).__name__, _atom(value))
        elif type(value) is tuple:
            self.put("tuple", _atom(len(value)))
            for item in value:
                self.add(item)
        elif type(value) is slice:
            self.put("slice")
            self.add((value.start, value.stop, value.step))
        elif type(value) is frozenset:  # a constant such as that of `x in {1, 2}`
            self.put("frozenset", b"".join(sorted(map(_digest_of_atom, value))))
        elif not self._add_numpy(value):
            self.add_other(value)

    def add_other(self, value: Any) -> None:
        """Add a value that is neither plain data nor one of NumPy's."""
        raise UncacheableError(f"{value!r}")

    def _add_numpy(self, value: Any) -> bool:
        numpy: Any = sys.modules.get("numpy")
        if numpy is None or not hasattr(numpy, "ndarray"):
            return False
        if isinstance(value, numpy.dtype):
            self.put("dtype")
            self._add_dtype(value)
        elif isinstance(value, numpy.generic):
            if type(value) is not value.dtype.type:
                raise UncacheableError(f"{value!r} is of a class derived from NumPy's")
            self.put("scalar")
            self._add_dtype(value.dtype)
            self.put("data", value.tobytes())
        elif type(value) is numpy.ndarray:
            if value.nbytes > _MAX_ARRAY_BYTES:
                raise UncacheableError(f"an array of {value.nbytes} bytes")
            self.put("array")
            self._add_dtype(value.dtype)
            self.add((value.shape, value.strides, value.flags.aligned, value.flags.writeable))
            self.put("data", value.tobytes())
        else:
            return False
        return True

    def _add_dtype(self, dtype: Any) -> None:
        name = library_name(dtype.type)
        if dtype.num not in range(_NUMPY_TYPES) or dtype.kind not in _NUMPY_KINDS or dtype.metadata or name is None:
            raise UncacheableError(f"dtype {dtype!r} is not one of NumPy's own")
        self.add((name, dtype.num, dtype.str, dtype.itemsize, dtype.alignment, dtype.isalignedstruct))
        self.add(dtype.shape)
        if dtype.subdtype is not None:
            self._add_dtype(dtype.base)
        self.add(dtype.names)
        for field in dtype.names or ():
            kind, offset, *title = dtype.fields[field]
            self.add((offset, *title))
            self._add_dtype(kind)


def _atom(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):  # NaNs differ, and so do the two zeros
        return struct.pack("<d", value)
    if isinstance(value, complex):
        return struct.pack("<dd", value.real, value.imag)
    if type(value) is int:
        return value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return repr(value).encode()


def _digest_of_atom(value: Any) -> bytes:
    if type(value) not in _ATOMS:
        raise UncacheableError(f"a set with {value!r}")
    digest = Digest()
    digest.add(value)
    return digest.result()
