"""Machine code loaded for a device, and its kernels."""

from cython.operator cimport dereference as deref

from anabranch._core.core cimport CBackend, CKernel, Ref, translate
from anabranch._device.device cimport DeviceBase

cdef extern from *:
    """
    static anabranch::Ref<anabranch::Library> load(anabranch::Backend& backend, const char* data, size_t size) {
      return backend.load_library({reinterpret_cast<const std::byte*>(data), size});
    }
    """
    Ref[Library] load(CBackend&, const char*, size_t) except +translate


cdef class LoadedCode:
    def __init__(self, DeviceBase device not None, bytes image not None):
        """Load machine code, or PTX that ends in a zero byte. Raises ValueError with the driver's words."""
        self.device = device
        self.library = load(deref(device.backend), <const char*>image, len(image))


def architecture(DeviceBase device not None):
    """Return which machine code a device runs: 90 for sm_90; 0 if it loads none."""
    return architecture_of(deref(device.backend))


cdef Ref[CKernel] load_kernel(
        DeviceBase device, bytes image, str symbol, str name, const KernelForm& form) except *:
    cdef LoadedCode code = LoadedCode(device, image)
    return code.library.get().find(symbol.encode(), name.encode(), form)
