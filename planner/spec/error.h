// The errors of the planner library.
//
// InputError is an error that the user can fix: a wrong file, option or value. It carries the place (file and
// line); its text says what is wrong and what to do, on one line. Programs print it as `sailor: FILE:LINE:
// TEXT` and exit with 2. Every other failure (a full disk, a vanished server) is a std::runtime_error: exit
// code 1.
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
  // The text is always one line that fits a screen: control characters in quoted names become spaces, and
  // text beyond kLongestText bytes is cut.
  InputError(Where where, const std::string& what)
      : std::runtime_error(legible(where.file.empty() ? what : where.text() + ": " + what)),
        where_(std::move(where)) {}
  explicit InputError(const std::string& what) : std::runtime_error(legible(what)) {}

  static constexpr size_t kLongestText = 2000;

  const Where& where() const { return where_; }

 private:
  static std::string legible(std::string text) {
    if (text.size() > kLongestText) {
      text.resize(kLongestText);
      while ((text.back() & 0xC0) == 0x80) text.pop_back();  // not in the middle of a UTF-8 sequence
      if ((text.back() & 0x80) != 0) text.pop_back();
      text += "...";
    }
    for (char& c : text)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    return text;
  }

  Where where_;
};

// Exit codes of every program of the project (DESIGN: command line).
enum ExitCode { kDone = 0, kFailed = 1, kBadInput = 2, kInfeasible = 3, kTimeLimit = 4 };

}  // namespace sailor
