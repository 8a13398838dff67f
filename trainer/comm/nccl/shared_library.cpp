#include "trainer/comm/nccl/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>

namespace sailor {

SharedLibrary::SharedLibrary(const std::string& name)
    : name_(name), handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!handle_) {
    throw std::runtime_error(
        fmt::format("{}; install it on this node, or name its folder in LD_LIBRARY_PATH", ::dlerror()));
  }
}

void* SharedLibrary::address(const char* symbol) const {
  void* const found = ::dlsym(handle_, symbol);
  if (!found) throw std::runtime_error(fmt::format("{} has no {}: it is too old", name_, symbol));
  return found;
}

}  // namespace sailor
