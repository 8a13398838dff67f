// A shared library that is looked for when the program runs, so that one build serves machines with and
// without it. It stays loaded: CUDA's libraries cannot be taken out of a process again.
#pragma once

#include <string>

namespace sailor {

class SharedLibrary {
 public:
  // `name` as the loader takes it: with its soname, one that the process has already (libtorch's) is taken.
  // Throws std::runtime_error with the loader's reason.
  explicit SharedLibrary(const std::string& name);

  // Throws std::runtime_error when the library is too old to have it.
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
