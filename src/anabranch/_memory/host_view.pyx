"""CPU memory as a NumPy array."""


class _Exporter:
    """Keeps the array alive for a NumPy view of its memory."""

    __slots__ = ("__array_interface__", "array")

    def __init__(self, array, interface):
        self.array = array
        self.__array_interface__ = interface


def over(array, interface):
    """Return a NumPy array over the memory that `interface` describes; it keeps `array` alive."""
    import numpy as np

    if 0 in interface["shape"]:
        empty = np.empty(interface["shape"], interface["typestr"])
        empty.flags.writeable = not interface["data"][1]
        return empty
    return np.asarray(_Exporter(array, interface))


class HostView:
    """Returned by `Array.host`. It may be entered again within its own block."""

    __slots__ = ("_array", "_open", "_write")

    def __init__(self, array, write):
        self._array = array
        self._write = write
        self._open = []  # for each block, its view, and an OpenAccess or None

    def __enter__(self):
        view, access = self._array._view(self._write, lasts=True)
        self._open.append((view, access))
        return view

    def __exit__(self, kind, value, traceback):
        view, access = self._open.pop()
        view.flags.writeable = False
        if access is not None:
            access.end()

    def __repr__(self):
        return f"<host access to {self._array._described()}{', writing' if self._write else ''}>"
