// A stretch of a document between added tokens, on its way through the steps of a tokenizer: normalized, then
// split into pieces.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sailor {

struct Segment {
  std::u16string text;
  std::vector<std::size_t> ends;  // of the pieces in `text`; none is empty, together they are all of it
  bool at_start = false;          // its first character is the first one of the document
};

}  // namespace sailor
