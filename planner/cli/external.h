// Verbs that are separate programs (`sailor run` is `sailor-run`), so that planning never loads their
// libraries.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace sailor::cli {

// A program failed and has printed the reason: nothing is left to print.
class ExternalFailure : public std::runtime_error {
 public:
  ExternalFailure(const std::string& program, int code)
      : std::runtime_error(program + " failed"), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

// Path of `sailor-VERB` in $SAILOR_LIBEXEC, next to the running program, or in ../libexec/sailor; empty if
// there is none.
std::string find_external(const std::string& verb);
// All verbs that find_external() finds, sorted.
std::vector<std::string> external_verbs();
// Replaces this process. Throws std::runtime_error when that fails.
[[noreturn]] void exec_external(const std::string& path, const std::vector<std::string>& arguments);
// Runs a program to its end and returns what it wrote to stdout; stderr passes through. Throws
// ExternalFailure when it fails.
std::string capture_external(const std::string& path, const std::vector<std::string>& arguments);

}  // namespace sailor::cli
