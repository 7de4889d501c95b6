#include "condition.hpp"

#include "backend.hpp"
#include "condition_ptx.hpp"

namespace anabranch::cuda {

bool Conditions::exist() noexcept {
  return driver->version >= 12040 && driver->cuGraphAddNode && driver->cuGraphConditionalHandleCreate;
}

void Conditions::load() {
  std::call_once(loaded_, [this] {
    const ContextScope scope(device_.context());
    CUmodule module = nullptr;
    device_.check(driver->cuModuleLoadDataEx(&module, condition_ptx, 0, nullptr, nullptr), "loading the conditions");
    device_.check(driver->cuModuleGetFunction(&one_, module, "set_condition"), "finding a condition");
    device_.check(driver->cuModuleGetFunction(&both_, module, "set_conditions"), "finding a condition");
  });
}

CUfunction Conditions::one() {
  load();
  return one_;
}

CUfunction Conditions::both() {
  load();
  return both_;
}

}  // namespace anabranch::cuda
