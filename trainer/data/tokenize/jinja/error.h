// Errors within a template, and the limits that end a hostile one.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace sailor::jinja {

// Has no place: JinjaTemplate adds file and line.
class TemplateError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What one rendering may do: bytes of text and values that it makes, and the nodes that it evaluates.
class Budget {
 public:
  static constexpr std::size_t kMostWork = std::size_t{1} << 28;

  void charge(std::size_t work) {
    if (work > left_) throw TemplateError("takes too long or makes too much text: does a loop never end?");
    left_ -= work;
  }

 private:
  std::size_t left_ = kMostWork;
};

// The work of looking at one of many values.
inline constexpr std::size_t kWorkPerValue = 32;

// Levels of nested values, and of calls and expressions within each other: the stack has room for them.
inline constexpr int kMostValueLevels = 100, kMostNodeLevels = 200, kMostCallLevels = 800;

// Of a template: its size, and its different names, which every branch is looked through for (symbols.h).
inline constexpr std::size_t kMostTemplateBytes = 256 << 10, kMostNames = 500;

}  // namespace sailor::jinja
