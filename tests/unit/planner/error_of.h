// The text of an expected InputError, for tests of broken inputs.
#pragma once

#include <string>

#include "planner/spec/error.h"

namespace sailor::test {

// The text of the InputError that `f` throws, with file and line; "no error" if it throws none.
template <typename F>
std::string error_of(F f) {
  try {
    f();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace sailor::test
