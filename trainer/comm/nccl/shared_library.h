// A shared library that is loaded at run time, so that one build works on machines with and without it. It
// stays loaded: CUDA's libraries cannot be unloaded.
#pragma once

#include <string>

namespace sailor {

class SharedLibrary {
 public:
  // `name` as for dlopen: if it is the soname of a library that is loaded already (libtorch's), that one is
  // used. Throws std::runtime_error with the loader's reason.
  explicit SharedLibrary(const std::string& name);

  // Throws std::runtime_error if the library is too old to have it.
  template <class Function>
  void find(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(address(symbol));
  }

 private:
  void* address(const char* symbol) const;

  std::string name_;
  void* handle_;
};

}  // namespace sailor
