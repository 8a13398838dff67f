// The text of an expected error, for tests of broken inputs.
#pragma once

#include <string>

#include "planner/spec/error.h"

namespace sailor::test {

// The text of the error that `f` throws, an InputError's with file and line; "no error" if it throws none.
template <typename Error = InputError, typename F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace sailor::test
