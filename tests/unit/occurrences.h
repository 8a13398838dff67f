// How often a text stands in another one, without overlaps.
#pragma once

#include <string>

namespace sailor {

inline size_t occurrences(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

}  // namespace sailor
