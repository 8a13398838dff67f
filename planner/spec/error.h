// The errors of the planner library.
//
// InputError is what a person can mend: a file, an option or a value that is wrong. It carries where (file
// and line) and its text says what is wrong and what to do, on one line. Programs print it as `sailor:
// FILE:LINE: TEXT` and exit with 2. Everything else that fails (a full disk, a vanished server) is a
// std::runtime_error: exit code 1.
#pragma once

#include <stdexcept>
#include <string>

namespace sailor {

// A place in an input file. line counts from 1; 0 means the file as a whole.
struct Where {
  std::string file;
  int line = 0;

  std::string text() const { return line > 0 ? file + ":" + std::to_string(line) : file; }
};

class InputError : public std::runtime_error {
 public:
  // `what` is one line without the place, e.g. `resources.max_gpus: unknown GPU type "A", did you mean "B"?`
  InputError(Where where, const std::string& what)
      : std::runtime_error(where.file.empty() ? what : where.text() + ": " + what),
        where_(std::move(where)) {}
  explicit InputError(const std::string& what) : std::runtime_error(what) {}

  const Where& where() const { return where_; }

 private:
  Where where_;
};

// Exit codes of every program of the project (DESIGN: command line).
enum ExitCode { kDone = 0, kFailed = 1, kBadInput = 2, kInfeasible = 3, kTimeLimit = 4 };

}  // namespace sailor
