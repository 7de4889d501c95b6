"""A second version of a kernel's loop, with fewer checks inside the loop.

It runs if no written array overlaps another array, if arrays that may be strided are contiguous along the last axis,
and if the values that the kernel compares its last index with equal the length of that axis. One test before the loop
checks all of this.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Final, NamedTuple

from llvmlite import ir
from numba.core import types

from anabranch.kernels._cpu.interior import Interior, find_interior
from anabranch.kernels._cpu.loop_nest import FEW, NO_UNROLLING, Inner, Nest
from anabranch.kernels._cpu.slots import places_of

_I64: Final = ir.IntType(64)
# With more pairs of arrays, the test for overlap is left out.
_MOST_PAIRS: Final = 32


class Better(NamedTuple):
    """Assumptions of the second version.

    Attributes
    ----------
    interior : Interior
        The range where the kernel's comparisons are known.
    arrays : dict of int to Array
        Numba types of the arrays, by the slot of their address.
    launch_ndim : int
        Dimensions of the launch.
    """

    interior: Interior
    arrays: dict[int, Any]
    launch_ndim: int

    @classmethod
    def of(cls, function: Any, kernel: Any, launch_ndim: int, sources: Sequence[Any]) -> Better | None:
        """Return the assumptions for a second version of a compiled kernel; None if it would not be faster."""
        places = places_of(sources)
        arrays = {place: kind for place, kind in zip(places, sources, strict=True) if isinstance(kind, types.Array)}
        index, *names = (f"arg.{name}" for name in kernel.args)
        interior = find_interior(
            function,
            index if launch_ndim == 1 else f"{index}.{launch_ndim - 1}",
            dict(_integers(names, places, sources, kernel.argtypes[1:])),
        )
        better = cls(interior, arrays, launch_ndim)
        pairs = better._pairs()
        if interior.atomic or len(pairs) > _MOST_PAIRS:
            return None
        gains = interior.halo or interior.lengths or better._loose()
        return better if gains else None

    def inner(self) -> Inner:
        """Return the kind of the second version's inner loop."""
        return Inner(self.interior.halo if self.compares() else None)

    def compares(self) -> bool:
        """Whether the kernel compares its last index with numbers or lengths that the second version knows."""
        return bool(self.interior.halo or self.interior.lengths)

    def hints_for_others(self) -> Sequence[list[Any]]:
        """Return hints that keep the first version small where its speed matters little."""
        if self._loose():
            return ()
        # Without lengths the first version serves overlapping arrays, which LLVM does not vectorise anyway. In three
        # dimensions LLVM takes twice as long for the addresses, and few launches differ in shape from their arrays.
        return (NO_UNROLLING,) if self.interior.lengths and self.launch_ndim < 3 else FEW

    def data(self, builder: Any, slots: Any) -> list[Any]:
        """Return the arrays' addresses as arguments of the second version."""
        return [builder.inttoptr(_load(builder, slots, place), _I64.as_pointer()) for place in self.arrays]

    def known(self, context: Any, nest: Nest) -> dict[int, Any]:
        """Return the slots' values that the second version knows without reading them."""
        return {
            **dict.fromkeys(self.interior.lengths, nest.sizes[-1]),
            **{place + 2 * kind.ndim: _I64(_itemsize(context, kind)) for place, kind in self._loose().items()},
            **dict(zip(self.arrays, nest.pointers, strict=True)),
        }

    def holds(self, context: Any, builder: Any, dims: Any, slots: Any) -> Any:
        """Return whether the arguments fulfil the second version's assumptions."""
        length = _load(builder, dims, self.launch_ndim - 1)
        found = [builder.icmp_signed("==", _load(builder, slots, slot), length) for slot in self.interior.lengths]
        for place, kind in self._loose().items():
            stride = _load(builder, slots, place + 2 * kind.ndim)
            found.append(builder.icmp_signed("==", stride, _I64(_itemsize(context, kind))))
        ends = {place: self._ends(context, builder, slots, place) for place in self.arrays}
        for one, other in self._pairs():
            (low, high), (other_low, other_high) = ends[one], ends[other]
            before = builder.icmp_unsigned("<=", high, other_low)
            found.append(builder.or_(before, builder.icmp_unsigned("<=", other_high, low)))
        return functools.reduce(builder.and_, found, ir.Constant(ir.IntType(1), 1))

    def _loose(self) -> dict[int, Any]:
        # A one-dimensional array with the stride of a contiguous one is contiguous.
        return {place: kind for place, kind in self.arrays.items() if kind.layout != "C" and kind.ndim > 1}

    def _pairs(self) -> list[tuple[int, int]]:
        pairs = combinations(self.arrays, 2)
        return [pair for pair in pairs if any(self.arrays[place].mutable for place in pair)]

    def _ends(self, context: Any, builder: Any, slots: Any, place: int) -> tuple[Any, Any]:
        """Return the addresses of an array's first byte and of the byte after its last."""
        kind = self.arrays[place]
        low = high = _load(builder, slots, place)
        size = _I64(_itemsize(context, kind))
        for axis in range(kind.ndim):
            length = _load(builder, slots, place + 1 + axis)
            if kind.layout == "C":
                size = builder.mul(size, length)
                continue
            reach = builder.mul(builder.sub(length, _I64(1)), _load(builder, slots, place + 1 + kind.ndim + axis))
            backwards = builder.icmp_signed("<", reach, _I64(0))
            low = builder.add(low, builder.select(backwards, reach, _I64(0)))
            high = builder.add(high, builder.select(backwards, _I64(0), reach))
        return low, builder.add(high, size)


def _load(builder: Any, words: Any, position: int) -> Any:
    return builder.load(builder.gep(words, [_I64(position)]))


def _itemsize(context: Any, kind: Any) -> int:
    size: int = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    return size


def _integers(
    names: Sequence[str], places: Sequence[int], sources: Sequence[Any], targets: Sequence[Any]
) -> Iterator[tuple[str, int]]:
    """Yield names and slots of the 64-bit integer parts of arguments: lengths of arrays, and scalars."""
    for name, place, source, target in zip(names, places, sources, targets, strict=True):
        if isinstance(source, types.Array):
            yield from ((f"{name}.5.{axis}", place + 1 + axis) for axis in range(source.ndim))
        elif source == target == types.int64:
            yield name, place
