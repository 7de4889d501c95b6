from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

# Structures of DLPack 1.x (dmlc.github.io/dlpack). The ABI is stable within a major version.
cdef extern from *:
    """
    #include <cstdint>
    extern "C" {
    struct DLDevice { int32_t device_type; int32_t device_id; };
    struct DLDataType { uint8_t code; uint8_t bits; uint16_t lanes; };
    struct DLTensor {
      void* data; DLDevice device; int32_t ndim; DLDataType dtype; int64_t *shape, *strides; uint64_t byte_offset;
    };
    struct DLManagedTensor { DLTensor dl_tensor; void* manager_ctx; void (*deleter)(DLManagedTensor*); };
    struct DLPackVersion { uint32_t major; uint32_t minor; };
    struct DLManagedTensorVersioned {
      DLPackVersion version; void* manager_ctx; void (*deleter)(DLManagedTensorVersioned*); uint64_t flags;
      DLTensor dl_tensor;
    };
    }
    // A consumer of the capsule may delete it on any thread, with or without the interpreter lock.
    template <class T> static void delete_export(T* tensor) {
      PyGILState_STATE state = PyGILState_Ensure();
      Py_DECREF(static_cast<PyObject*>(tensor->manager_ctx));
      PyGILState_Release(state);
      free(tensor);
    }
    """
    struct DLDevice:
        int32_t device_type
        int32_t device_id
    struct DLDataType:
        uint8_t code
        uint8_t bits
        uint16_t lanes
    struct DLTensor:
        void* data
        DLDevice device
        int32_t ndim
        DLDataType dtype
        int64_t* shape
        int64_t* strides
        uint64_t byte_offset
    struct DLManagedTensor:
        DLTensor dl_tensor
        void* manager_ctx
        void (*deleter)(DLManagedTensor*) noexcept
    struct DLPackVersion:
        uint32_t major
        uint32_t minor
    struct DLManagedTensorVersioned:
        DLPackVersion version
        void* manager_ctx
        void (*deleter)(DLManagedTensorVersioned*) noexcept
        uint64_t flags
        DLTensor dl_tensor
    void delete_plain "delete_export<DLManagedTensor>"(DLManagedTensor*) noexcept
    void delete_versioned "delete_export<DLManagedTensorVersioned>"(DLManagedTensorVersioned*) noexcept

cdef enum:
    DL_CPU = 1
    DL_CUDA = 2
    DL_CUDA_HOST = 3
    DL_CUDA_MANAGED = 13
    DL_READ_ONLY = 1
    DL_BFLOAT = 4
    DL_COPIED = 2
