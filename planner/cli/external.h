// Verbs that are programs of their own (`sailor run` is `sailor-run`), so that planning never loads their
// libraries.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace sailor::cli {

// A program that was run has failed and said why: nothing is left to print.
class ExternalFailure : public std::runtime_error {
 public:
  ExternalFailure(const std::string& program, int code)
      : std::runtime_error(program + " failed"), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

// Path of `sailor-VERB` in $SAILOR_LIBEXEC, beside the running program, or in ../libexec/sailor; empty when
// there is none.
std::string find_external(const std::string& verb);
// All verbs that find_external() would find, sorted.
std::vector<std::string> external_verbs();
// Replaces this process. Throws std::runtime_error when that fails.
[[noreturn]] void exec_external(const std::string& path, const std::vector<std::string>& arguments);
// Runs a program to its end and returns what it wrote to stdout; stderr passes through. Throws
// ExternalFailure when it fails.
std::string capture_external(const std::string& path, const std::vector<std::string>& arguments);

}  // namespace sailor::cli
