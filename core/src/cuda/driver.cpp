#include "driver.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

namespace anabranch::cuda {

const Driver* driver = nullptr;

namespace {

constexpr int oldest_version = 12000;

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Fills the table. Returns the reason if a required function is missing.
std::string load(Driver& table) {
  // Stays open: streams and memory are released until the process ends.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return "the CUDA driver is not installed: libcuda.so.1 cannot be opened";
  const auto lookup = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
  if (!lookup) return "the CUDA driver is older than CUDA 12.0; install a newer one";
  const auto find = [&](const char* name, int version, bool needed, auto& function) -> std::string {
    void* address = nullptr;
    CUdriverProcAddressQueryResult found{};
    const CUresult status = lookup(name, &address, version, CU_GET_PROC_ADDRESS_DEFAULT, &found);
    if (status == CUDA_SUCCESS && address && found == CU_GET_PROC_ADDRESS_SUCCESS) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
      return {};
    }
    return needed ? std::string("the CUDA driver has no ") + name + "; it must be of CUDA 12.0 or later"
                  : std::string();
  };
  std::string missing;
#define ANABRANCH_FIND(name, version) \
  if (missing = find(#name, oldest_version, true, table.name); !missing.empty()) return missing;
  ANABRANCH_DRIVER_FUNCTIONS(ANABRANCH_FIND)
#undef ANABRANCH_FIND
#define ANABRANCH_FIND(name, version) find(#name, version, false, table.name);
  ANABRANCH_DRIVER_OPTIONS(ANABRANCH_FIND)
#undef ANABRANCH_FIND
  return {};
}

Installation install() {
  Installation result;
  Driver& table = result.driver;
  result.missing = load(table);
  if (!result.missing.empty()) return result;
  constexpr auto no_gpu = "the CUDA driver sees no GPU; is CUDA_VISIBLE_DEVICES empty?";
  const CUresult status = table.cuInit(0);
  if (status == CUDA_ERROR_NO_DEVICE) {
    result.missing = no_gpu;
    return result;
  }
  if (status != CUDA_SUCCESS) {
    const char* text = nullptr;
    table.cuGetErrorString(status, &text);
    result.missing = std::string("the CUDA driver does not start: ") + (text ? text : "unknown error") + " (" +
                     std::to_string(static_cast<int>(status)) + ")";
    return result;
  }
  table.cuDriverGetVersion(&table.version);
  if (table.version < oldest_version) {
    result.missing = "the CUDA driver is of CUDA " + version_text(table.version) + "; it must be of 12.0 or later";
    return result;
  }
  int count = 0;
  if (table.cuDeviceGetCount(&count) != CUDA_SUCCESS || count == 0) {
    result.missing = no_gpu;
    return result;
  }
  result.devices = count;
  return result;
}

}  // namespace

const Installation& installation() {
  static const Installation* const found = [] {
    auto* made = new Installation(install());
    if (made->devices > 0) driver = &made->driver;
    return made;
  }();
  return *found;
}

std::string error_name(CUresult code) {
  const char* name = nullptr;
  driver->cuGetErrorName(code, &name);
  return name ? name : "CUDA error " + std::to_string(static_cast<int>(code));
}

DriverError driver_error(CUresult code, const char* what) {
  const char* text = nullptr;
  driver->cuGetErrorString(code, &text);
  return {static_cast<int>(code), error_name(code), std::string(what) + ": " + (text ? text : "unknown error")};
}

bool under_sanitizer() noexcept {
  static const bool under = [] {
    const char* value = std::getenv("ANABRANCH_CUDA_SANITIZER");
    return value && std::string_view(value) == "1";
  }();
  return under;
}

bool is_sticky(CUresult code) noexcept {
  switch (static_cast<int>(code)) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_CONTAINED:
      return true;
    default:
      return false;
  }
}

}  // namespace anabranch::cuda
